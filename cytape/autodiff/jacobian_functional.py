"""Functions of functions, in reverse mode: Jacobians, whole or of what stands element by element.

Arrays in, arrays out; tensors in, tensors out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cytape.autodiff.jacobian_rows import element_seeds, member_seeds, stack_rows
from cytape.autodiff.recorded_call import RecordedCall
from cytape.autodiff.transformed import (
    Transformed,
    checked_argnum,
    checked_argnums,
    export,
    name_of,
    output_of,
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
    Rows with respect to a complex argument, or of complex results, are gradients as `vjp` gives
    them.

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
        As for `jacrev`.

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

    def jacobian_of(leaf: Any) -> Any:
        target = _target(fun, leaf)
        return _stacked(call, target, element_seeds(target), 0)

    return export(nest.map_structure(jacobian_of, call.value), call.arrays_out)


def _batch_jacobian(fun: Callable, args: tuple, kwargs: dict, argnum: int) -> Any:
    call = RecordedCall(fun, args, kwargs, argnum, False)
    target = _target(fun, call.value)
    if len(call.sources) != 1:
        raise TypeError(
            "batch_jacobian differentiates in one array, not in a structure of "
            f"{len(call.sources)}")
    seeds = member_seeds(target, call.sources[0])
    return export(_stacked(call, target, seeds, 1), call.arrays_out)


def _elementwise_grad(fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple) -> Any:
    call = RecordedCall(fun, args, kwargs, argnums, False)
    return export(call.gradients([_target(fun, call.value)]), call.arrays_out)


def _target(fun: Callable, value: Any) -> Tensor:
    require_result(fun, value)
    target = output_of(fun, value)
    if not target.spec.trainable:
        raise TypeError(
            f"{name_of(fun)} returned an array of dtype {target.dtype}, which has no gradient")
    return target


def _stacked(call: RecordedCall, target: Tensor, seeds: Iterable[Tensor], axis: int) -> Any:
    """Return the gradients of a target by several seeds, put together along its axes >= axis."""
    rows = [nest.flatten(call.gradients([target], [seed], True)) for seed in seeds]
    return nest.pack_sequence_as(call.selected, [
        stack_rows(of_source, source, target.shape, axis, UnconnectedGradients.ZERO)
        for source, of_source in zip(call.sources, zip(*rows, strict=True), strict=True)])
