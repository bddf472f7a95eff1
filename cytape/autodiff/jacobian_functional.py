"""Functions of functions, in reverse mode: Jacobians, whole or of what stands element by element.

Arrays in, arrays out; tensors in, tensors out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cytape.autodiff.backward import zeros
from cytape.autodiff.jacobian_rows import element_seeds, member_seeds, stack_rows
from cytape.autodiff.recorded_call import RecordedCall
from cytape.autodiff.transformed import (
    Transformed,
    checked_argnum,
    checked_argnums,
    export,
    name_of,
    output_of,
    refuse_arrays,
    require_result,
)
from cytape.tensor import nest
from cytape.tensor.tensor import Tensor
from cytape.tensor.unconnected_gradients import UnconnectedGradients

__all__ = ["batch_jacobian", "elementwise_grad", "jacobian", "jacrev"]


def jacrev(fun: Callable, argnums: int | Sequence[int] = 0) -> Callable:
    """Make the function that computes a Jacobian in reverse mode: fast for few results.

    The function runs once, and there is one backward pass for each element of what it returns.

    Parameters
    ----------
    fun : callable
        Returns an array or a structure of arrays.
    argnums : int or sequence of int
        Which positional arguments to differentiate with respect to.

    Returns
    -------
    callable
        Takes the arguments of `fun`. For every array that `fun` returns, it returns what `grad`
        returns for a number: the Jacobian packed like the argument, or a tuple of Jacobians if
        `argnums` is a sequence. Each has the shape of the result followed by that of the argument.

    Raises
    ------
    TypeError
        If `fun` is not callable or `argnums` are no integers; in a call, if an argument to be
        differentiated has no gradient, or `fun` does not return arrays of floating point or complex
        numbers.
    ValueError
        In a call, if there is no argument of such a number.
    SymbolicTensorError
        In a graph that does not know how many elements there are.

    See Also
    --------
    jacfwd : In forward mode, for few elements of the arguments.

    Notes
    -----
    Rows with respect to a complex argument are gradients as `vjp` gives them. A real argument of a
    complex result is an error: a gradient would be that of the real part.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> cytape.jacrev(lambda x: x[:2] * x[1])(np.array([1.0, 2.0, 3.0]))
    array([[2., 1., 0.],
           [0., 4., 0.]])
    """
    return Transformed(_jacobian, fun, checked_argnums(argnums))


jacobian = jacrev  # which autograd calls it


def batch_jacobian(fun: Callable, argnum: int = 0) -> Callable:
    """Make the function that computes the Jacobian of each member of a batch.

    There are as many backward passes as one member of the result has elements.

    Parameters
    ----------
    fun : callable
        Returns an array of shape ``(batch, ...)``, whose ``[i]`` depends on the argument's ``[i]``
        only.
    argnum : int
        Which positional argument to differentiate with respect to: of shape ``(batch, ...)``.

    Returns
    -------
    callable
        Takes the arguments of `fun`, and returns an array of the shape of the result followed by
        the argument's without its first extent.

    Raises
    ------
    TypeError
        As for `jacrev`; also if the argument or the result is a structure.
    ValueError
        In a call, if result and argument have not two axes at least and the same number of members.

    See Also
    --------
    GradientTape.batch_jacobian

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> cytape.batch_jacobian(lambda x: x**2)(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[[2., 0.],
            [0., 4.]],
    <BLANKLINE>
           [[6., 0.],
            [0., 8.]]])
    """
    return Transformed(_batch_jacobian, fun, checked_argnum(argnum))


def elementwise_grad(fun: Callable, argnums: int | Sequence[int] = 0) -> Callable:
    """Make the function that differentiates each element of a result in its own element.

    That is the sum of the Jacobian's columns, by one backward pass: its diagonal, if every element
    of the result depends on the same element of the argument only.

    Parameters
    ----------
    fun : callable
        Returns an array.
    argnums : int or sequence of int
        Which positional arguments to differentiate with respect to.

    Returns
    -------
    callable
        Takes the arguments of `fun`; returns what `grad` returns for the sum of what `fun` returns.

    Raises
    ------
    TypeError, ValueError
        As for `jacrev`; also if the result is a structure.

    Notes
    -----
    With respect to a complex argument it is a gradient: for a holomorphic function, the conjugate
    of its derivative.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> slope = cytape.elementwise_grad(lambda x: x**3)
    >>> slope(np.array([1.0, 2.0]))
    array([ 3., 12.])
    >>> cytape.elementwise_grad(slope)(np.array([1.0, 2.0]))
    array([ 6., 12.])
    """
    return Transformed(_elementwise_grad, fun, checked_argnums(argnums))


def _jacobian(fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple) -> Any:
    call = RecordedCall(fun, args, kwargs, argnums, False)
    require_result(fun, call.value)
    refuse_arrays(
        call.value, f"{name_of(fun)} returned what {{}} a TensorArray: return stack() of it")
    results = [output_of(fun, leaf) for leaf in nest.flatten(call.value)]
    targets = [result for result in results if result.spec.trainable]
    if not targets:
        raise TypeError(f"{name_of(fun)} returned no array of a dtype that has a gradient, but of "
                        f"{', '.join(str(result.dtype) for result in results) or 'none'}")
    for target in targets:
        _require_real_for_real(fun, call, target)
    rows = iter(call.rows(targets, [element_seeds(target) for target in targets]))
    jacobians = [
        nest.pack_sequence_as(call.selected, _stacked(call, result, next(rows), 0))
        if result.spec.trainable else _zeros(call, result) for result in results]
    return export(nest.pack_sequence_as(call.value, jacobians), call.arrays_out)


def _batch_jacobian(fun: Callable, args: tuple, kwargs: dict, argnum: int) -> Any:
    call = RecordedCall(fun, args, kwargs, argnum, False)
    target = _only_target(fun, call)
    if len(call.sources) != 1 or nest.flatten(call.selected)[0] is not call.selected:
        raise TypeError(
            f"batch_jacobian differentiates {name_of(fun)} in one array, not in a structure: got "
            f"{type(call.selected).__name__}")
    (source,) = call.sources
    (rows,) = call.rows([target], [member_seeds(target, source)])
    (jacobian,) = _stacked(call, target, rows, 1)
    return export(jacobian, call.arrays_out)


def _elementwise_grad(fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple) -> Any:
    call = RecordedCall(fun, args, kwargs, argnums, False)
    return export(call.gradients([_only_target(fun, call)]), call.arrays_out)


def _only_target(fun: Callable, call: RecordedCall) -> Tensor:
    """Return the array that a function has returned, if it is one to be differentiated."""
    require_result(fun, call.value)
    if isinstance(call.value, (list, tuple, dict)):
        raise TypeError(
            f"{name_of(fun)} must return one array, got a {type(call.value).__name__}: make one of "
            "several by cytape.numpy.stack, or use jacrev or vjp")
    target = output_of(fun, call.value)
    if not target.spec.trainable:
        raise TypeError(
            f"{name_of(fun)} returned an array of dtype {target.dtype}, which has no gradient")
    _require_real_for_real(fun, call, target)
    return target


def _require_real_for_real(fun: Callable, call: RecordedCall, target: Tensor) -> None:
    if target.dtype.kind == "c" and any(source.dtype.kind != "c" for source in call.sources):
        raise TypeError(
            f"{name_of(fun)} returned complex numbers for real arguments: a gradient is that of "
            "their real part only. Use jacfwd, or differentiate the real and the imaginary part")


def _stacked(call: RecordedCall, target: Tensor, rows: list, axis: int) -> list:
    """Return rows per source, put together along the target's axes >= axis."""
    return [
        stack_rows(of_source, source, target.shape, axis, UnconnectedGradients.ZERO)
        for source, of_source in zip(call.sources, zip(*rows, strict=True), strict=True)]


def _zeros(call: RecordedCall, result: Tensor) -> Any:
    return nest.pack_sequence_as(call.selected, [
        zeros(result.shape + source.shape, result.dtype) for source in call.sources])
