"""Transforms of functions: gradients and vector-Jacobian products without an explicit tape.

Arrays in, arrays out; tensors in, tensors out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cytape.autodiff.recorded_call import RecordedCall
from cytape.autodiff.seeds import convert_output_gradients
from cytape.autodiff.transform_arguments import (
    Transformed,
    checked_argnums,
    export,
    has_tensors,
    name_of,
    output_of,
    require_result,
)
from cytape.tensor import nest
from cytape.tensor.names_elsewhere import advising
from cytape.tensor.structures import leaves_of_result
from cytape.tensor.tensor import Tensor

__all__ = ["grad", "value_and_grad", "vjp"]


@advising
def grad(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Make the function that computes the gradient of a scalar-valued function.

    Parameters
    ----------
    fun : callable
        Returns a scalar, or an array of one element. The arguments to differentiate must be
        floating point or complex arrays, numbers or tensors, or structures (lists, tuples, dicts,
        dataclasses, and objects of registered classes, see `register_structure`). A list of numbers
        is a structure, not an array. The function is called with tensors in their place.
    argnums : int or sequence of int
        Which positional arguments to differentiate with respect to.
    has_aux : bool
        Whether `fun` returns a pair, the scalar and auxiliary data.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns a gradient packed like the argument, or a tuple of
        them if `argnums` is a sequence; with `has_aux` a pair, that and the rest. The gradients are
        arrays (numbers for numbers), zero where `fun` does not depend on an argument, and tensors
        if an argument is a tensor or a variable, or the result is being recorded by a tape. It can
        be pickled if `fun` can.

    Raises
    ------
    TypeError
        If `fun` is not callable or `argnums` are no integers; in a call, if an argument to be
        differentiated has no gradient (an integer, say), or `fun` does not return a scalar, or
        returns a complex one for a real argument.
    DetachedError
        In a call, if the result does not depend on such an argument after `fun` has taken a value
        out of a tensor by ``numpy()``, ``item()`` or ``tolist()``: the derivative was lost there.
    ValueError
        In a call, if there is no argument at such a position, or `fun` returns None.

    Warns
    -----
    UnconnectedGradientWarning
        In a call, if the result does not depend on an argument to be differentiated.

    See Also
    --------
    value_and_grad : The value as well.
    vjp : For functions that return arrays.

    Notes
    -----
    The gradient of a complex result follows TensorFlow's convention, see `GradientTape`: JAX's is
    its conjugate.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> cytape.grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    >>> cytape.grad(lambda p: p["w"] * p["x"])({"w": 2.0, "x": 3.0})
    {'w': np.float64(3.0), 'x': np.float64(2.0)}
    >>> float(cytape.grad(cytape.grad(lambda x: x**3))(2.0))
    12.0
    """
    return Transformed(_grad, fun, checked_argnums(argnums), has_aux)


@advising
def value_and_grad(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Make the function that computes a scalar-valued function and its gradient.

    Parameters
    ----------
    fun, argnums, has_aux
        As for `grad`.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns ``(value, gradient)``, with `has_aux`
        ``((value, aux), gradient)``.

    Raises
    ------
    TypeError, ValueError
        As for `grad`.

    Examples
    --------
    The form in which ``scipy.optimize.minimize(..., jac=True)`` wants it:

    >>> import cytape
    >>> import numpy as np
    >>> f = cytape.value_and_grad(lambda x: (x * x).sum())
    >>> value, gradient = f(np.array([1.0, 2.0]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    """
    return Transformed(_value_and_grad, fun, checked_argnums(argnums), has_aux)


def vjp(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """Compute a function, and prepare its vector-Jacobian product.

    Parameters
    ----------
    fun : callable
        Returns an array or a structure of arrays.
    *primals
        Its arguments, as for `grad`; all of them are differentiated.
    has_aux : bool
        Whether `fun` returns a pair: the result to differentiate, and auxiliary data.

    Returns
    -------
    value
        Result of `fun`.
    vjp_fn : callable
        Takes weights in the structure and the shapes of `value`, and returns the tuple of gradients
        of the weighted sum with respect to the primals. It may be called any number of times.
    aux
        The auxiliary data; only with `has_aux`.

    Raises
    ------
    TypeError
        If a primal has no gradient (an integer, say), or `fun` does not return arrays.
    ValueError
        In a call of `vjp_fn`, if the weights have not the structure of `value`.
    InvalidGradientError
        In a call of `vjp_fn`, if a weight has not the shape of its value.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> value, vjp_fn = cytape.vjp(lambda x, y: x * y, np.array([1.0, 2.0]), 3.0)
    >>> value
    array([3., 6.])
    >>> gx, gy = vjp_fn(np.array([1.0, 10.0]))
    >>> gx, float(gy)
    (array([ 3., 30.]), 21.0)
    """
    run = RecordedCall(fun, primals, {}, tuple(range(len(primals))), has_aux)
    outputs = [output_of(fun, leaf) for leaf in leaves_of_result(run.value)]
    value = nest.pack_sequence_as(run.value, outputs)

    def vjp_fn(output_gradients: Any) -> tuple:
        nest.assert_same_structure(value, output_gradients)
        seeds = convert_output_gradients(outputs, output_gradients)
        arrays_out = run.arrays_out and not has_tensors(output_gradients)
        return export(run.gradients(outputs, seeds, keep=True), arrays_out)

    exported = export(value, run.arrays_out)
    return (exported, vjp_fn, run.aux) if has_aux else (exported, vjp_fn)


def _value_and_grad(
    fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple, has_aux: bool
) -> tuple:
    run = RecordedCall(fun, args, kwargs, argnums, has_aux)
    output = _scalar_output(fun, run)
    gradients = export(run.gradients([output]), run.arrays_out)
    value = export(output, run.arrays_out)
    return ((value, run.aux) if has_aux else value), gradients


def _grad(fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple, has_aux: bool) -> Any:
    run = RecordedCall(fun, args, kwargs, argnums, has_aux)
    if not run.arrays_out and not has_aux:
        run.note_kept()
    gradients = export(run.gradients([_scalar_output(fun, run)]), run.arrays_out)
    return (gradients, run.aux) if has_aux else gradients


def _scalar_output(fun: Callable, run: RecordedCall) -> Tensor:
    value = run.value
    require_result(fun, value)
    if isinstance(value, (list, tuple, dict)):
        raise TypeError(
            f"{name_of(fun)} must return one scalar, got a {type(value).__name__}: use vjp, or "
            "has_aux=True if it returns a scalar and something else"
        )
    output = output_of(fun, value)
    if not output.spec.known or output.spec.size != 1:
        raise TypeError(
            f"{name_of(fun)} must return a scalar, got shape {output.shape}: sum it to one, or use "
            "jacobian or vjp, or elementwise_grad if each element depends on one of the argument"
        )
    if not output.spec.trainable:
        raise TypeError(
            f"{name_of(fun)} returned a scalar of dtype {output.dtype}, which has no gradient"
        )
    require_real_for_real(fun, run, output)
    return output


def require_real_for_real(fun: Callable, run: RecordedCall, target: Tensor) -> None:
    """Raise if a result is complex: the gradient would be that of its real part."""
    if target.dtype.kind == "c" and any(source.dtype.kind != "c" for source in run.sources):
        raise TypeError(
            f"{name_of(fun)} returned complex numbers for real arguments: a gradient is that of "
            "their real part only. Take numpy.real or numpy.imag of them, or use jacfwd"
        )
