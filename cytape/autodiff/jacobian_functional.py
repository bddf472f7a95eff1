"""Transforms of functions: Jacobians and Hessians, whole or elementwise.

Arrays in, arrays out; tensors in, tensors out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from cytape.autodiff.forward_functional import followed, pushed
from cytape.autodiff.functional import grad, require_real_for_real
from cytape.autodiff.jacobian_rows import MOST_AT_A_TIME, element_seeds, member_seeds, stack_rows
from cytape.autodiff.recorded_call import RecordedCall
from cytape.autodiff.seeds import zeros
from cytape.autodiff.transform_arguments import (
    Transformed,
    checked_argnum,
    checked_argnums,
    export,
    has_tensors,
    name_of,
    output_of,
    refuse_arrays,
    replace_arguments,
    require_result,
)
from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.tangent_batches import unit_directions_op
from cytape.ops.joining import concatenate
from cytape.ops.rearranging import diagonal
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import extents, moveaxis, reshape, size, transpose
from cytape.tensor import nest
from cytape.tensor.names_elsewhere import advising
from cytape.tensor.structures import leaves_of_result
from cytape.tensor.tensor import Tensor
from cytape.tensor.unconnected_gradients import UnconnectedGradients

__all__ = [
    "batch_jacobian", "elementwise_grad", "hessian", "hessian_diagonal", "jacfwd", "jacobian",
    "jacrev",
]


@advising
def jacrev(fun: Callable, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Make the function that computes a Jacobian in reverse mode: fast for few results.

    The function runs once, then one backward pass for each element of the result; in traced
    functions and graphs with known extents, one pass for all of them. `jacobian` is the same
    function, by autograd's name.

    Parameters
    ----------
    fun : callable
        Returns an array or a structure of arrays.
    argnums : int or sequence of int
        Which positional arguments to differentiate with respect to.

    Returns
    -------
    callable
        Takes the arguments of `fun`. For every array in the result of `fun`, it returns the same
        structure as `grad` for a number: the Jacobian packed like the argument, or a tuple of
        Jacobians if `argnums` is a sequence. Each has the shape of the result followed by that of
        the argument.

    Raises
    ------
    TypeError
        If `fun` is not callable or `argnums` are no integers; in a call, if an argument to be
        differentiated has no gradient, or `fun` does not return arrays of floating point or complex
        numbers.
    ValueError
        In a call, if there is no argument at such a position.
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


jacobian = jacrev  # autograd's name


@advising
def jacfwd(fun: Callable, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Make the function that computes a Jacobian in forward mode: fast for few inputs.

    All directions are taken in one pass; memory grows with their number.

    Parameters
    ----------
    fun, argnums
        As for `jacrev`.

    Returns
    -------
    callable
        As `jacrev` does. A complex result may have real arguments.

    Raises
    ------
    TypeError, ValueError
        As for `jacrev`.

    Notes
    -----
    With respect to a complex argument it is the derivative along the real axis; for a holomorphic
    function, the derivative.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> cytape.jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return Transformed(_jacfwd, fun, checked_argnums(argnums))


def batch_jacobian(fun: Callable, argnum: int = 0) -> Callable[..., Any]:
    """Make the function that computes the Jacobian of each member of a batch.

    It takes one backward pass for each element of a member of the result.

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


@advising
def elementwise_grad(fun: Callable, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Make the function that differentiates each element of a result in its own element.

    It computes the sum of the Jacobian's columns in one backward pass, which is the diagonal if
    every element of the result depends only on the same element of the argument.

    Parameters
    ----------
    fun : callable
        Returns an array.
    argnums : int or sequence of int
        Which positional arguments to differentiate with respect to.

    Returns
    -------
    callable
        Takes the arguments of `fun`; returns the gradient of the sum of its results.

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


@advising
def hessian(fun: Callable, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Make the function that computes the Hessian of a function.

    It is the Jacobian, in forward mode, of the gradient, in reverse mode: one backward pass for
    each element of the result, along all directions at once.

    Parameters
    ----------
    fun : callable
        Returns a scalar, an array or a structure of arrays.
    argnums : int or sequence of int
        Which positional arguments to differentiate with respect to.

    Returns
    -------
    callable
        Takes the arguments of `fun`. The Hessian of a result has its shape, followed by the
        argument's twice; of structures, or several arguments, it is structured like the argument
        twice.

    Raises
    ------
    TypeError, ValueError
        As for `jacrev`.

    See Also
    --------
    hessian_vector_product, hessian_diagonal : For large arguments.

    Notes
    -----
    Of a complex argument it is the derivative along the real axis of the result of `grad` or
    `jacrev`.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> cytape.hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    >>> cytape.hessian(lambda x: x**3)(np.array([1.0, 2.0])).shape
    (2, 2, 2)
    """
    return jacfwd(jacrev(fun, argnums), argnums)


def hessian_diagonal(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    separable_axes: int = 0,
    blocks: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Make the function that computes the diagonal of the Hessian of a scalar-valued function.

    It costs one product of the Hessian and a vector for each element of an argument, less if the
    function is a sum of functions of parts of the argument.

    Parameters
    ----------
    fun : callable
        Returns a scalar.
    argnums
        As for `hessian`.
    separable_axes : int
        Along how many leading axes of the argument `fun` is a sum, of terms that depend on one
        position each: 1 for a sum over the members of a batch, the number of all axes for a sum of
        a function of single elements. There are as many products then as one part has elements.
    blocks : bool
        Whether to return all second derivatives within each part, not the diagonal only.
    chunk_size : int, optional
        How many products are computed at a time. By default as many as fit in vectors of together
        2**20 elements.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns the diagonal, in the structure and the shapes of
        the argument, as `grad` does; with `blocks` an array has the axes of a part twice.

    Raises
    ------
    TypeError, ValueError, SymbolicTensorError
        As for `grad` and `jacrev`; also if an argument has fewer axes than are separable.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> cytape.hessian_diagonal(lambda x: np.prod(x**2))(np.array([1.0, 2.0, 3.0]))
    array([72., 18.,  8.])

    One product, and two for the blocks:

    >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> cytape.hessian_diagonal(lambda x: np.sum(x**3), separable_axes=2)(x)
    array([[ 6., 12.],
           [18., 24.]])
    >>> f = lambda x: np.sum(np.prod(x, axis=1) ** 2)
    >>> cytape.hessian_diagonal(f, separable_axes=1, blocks=True)(x)
    array([[[ 8.,  8.],
            [ 8.,  2.]],
    <BLANKLINE>
           [[32., 48.],
            [48., 18.]]])
    """
    if separable_axes < 0 or chunk_size is not None and chunk_size < 1:
        raise ValueError(
            f"separable_axes must be at least 0 and chunk_size at least 1, got {separable_axes} "
            f"and {chunk_size}")
    return Transformed(
        _hessian_diagonal, fun, checked_argnums(argnums), separable_axes, blocks, chunk_size)


def _jacobian(fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple) -> Any:
    call = RecordedCall(fun, args, kwargs, argnums, False)
    require_result(fun, call.value)
    refuse_arrays(
        call.value, f"{name_of(fun)} returned what {{}} a TensorArray: return stack() of it")
    results = [output_of(fun, leaf) for leaf in leaves_of_result(call.value)]
    targets = [result for result in results if result.spec.trainable]
    if not targets:
        raise TypeError(f"{name_of(fun)} must return an array of a dtype that has a gradient, "
                        "floating point or complex; got "
                        f"{', '.join(str(result.dtype) for result in results) or 'none'}")
    for target in targets:
        require_real_for_real(fun, call, target)
    if targets[0] is call.value and targets[0].shape == ():  # as in `grad`
        return export(call.gradients(targets), call.arrays_out)
    rows = iter(call.rows(targets, [element_seeds(target) for target in targets]))
    jacobians = [
        nest.pack_sequence_as(call.selected, _stacked(call, result, next(rows), 0))
        if result.spec.trainable else _zeros(call, result) for result in results]
    return export(nest.pack_sequence_as(call.value, jacobians), call.arrays_out)


def _jacfwd(fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple) -> Any:
    arrays_out = not has_tensors((args, kwargs))
    selected, sources, args = replace_arguments(fun, args, argnums, kwargs)
    for source in sources:
        shape_rules.shape_of(source.spec, "a Jacobian")
    value, columns, _ = followed(fun, sources, _units(sources), args, kwargs, False, True)
    refuse_arrays(value, f"{name_of(fun)} returned what {{}} a TensorArray: return stack() of it")

    def jacobian_of(batch: Tensor) -> Any:
        parts, start = [], 0
        for source in sources:
            part = batch
            if len(sources) > 1:  # the size of a single one may be unknown
                part = batch[start : start + size(source)]
                start += size(source)
            part = transpose(part, (*range(1, part.ndim), 0))
            if source.ndim != 1:
                part = reshape(part, extents(part)[:-1] + extents(source))
            parts.append(part)
        return nest.pack_sequence_as(selected, parts)

    return export(nest.map_structure(jacobian_of, columns), arrays_out)


def _units(sources: list[Tensor]) -> list:
    """Return the unit directions of all elements of all tensors."""
    if not all([source.spec.known for source in sources]):
        return [unit_directions_op(*sources, place=i) for i in range(len(sources))]
    total = sum([source.size for source in sources])
    units, start = [], 0
    for source in sources:
        block = np.eye(total, source.size, -start, source.dtype)
        units.append(block.reshape((total, *source.shape)))
        start += source.size
    return units


def _hessian_diagonal(
    fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple, separable_axes: int,
    blocks: bool, chunk_size: int | None,
) -> Any:
    arrays_out = not has_tensors((args, kwargs))
    selected, sources, _ = replace_arguments(fun, args, argnums, kwargs)
    gradient = grad(fun, argnums)
    found = []
    for i, source in enumerate(sources):
        parts = []
        for places, directions in _directions(fun, source, separable_axes, chunk_size):
            tangents: list[Any] = [None] * len(sources)
            tangents[i] = directions
            _, products, _ = pushed(
                gradient, args, argnums, nest.pack_sequence_as(selected, tangents),
                use_batch=True, kwargs=kwargs)
            product = nest.flatten(products)[i]
            lead, part = source.shape[:separable_axes], source.shape[separable_axes:]
            product = reshape(product, (len(places), *lead, math.prod(part)))
            parts.append(moveaxis(product, 0, -1) if blocks else diagonal(
                product[..., places.start : places.stop], axis1=0, axis2=-1))
        whole = concatenate(parts, -1) if len(parts) > 1 else parts[0]
        found.append(reshape(
            whole, source.shape + (part if blocks else ())))
    return export(nest.pack_sequence_as(selected, found), arrays_out)


def _directions(
    fun: Callable, source: Tensor, separable_axes: int, chunk_size: int | None
) -> Iterator[tuple[range, np.ndarray]]:
    """Yield the tangent directions and the elements with a tangent, for all parts at once."""
    if not source.spec.known:
        raise SymbolicTensorError(
            "hessian_diagonal computes a product for each element of the arguments of "
            f"{name_of(fun)}, but the number of elements is known only when the graph runs: an "
            f"argument has shape {source.shape}")
    if source.ndim < separable_axes:
        raise ValueError(
            f"separable_axes={separable_axes} is more than the number of axes of an argument of "
            f"{name_of(fun)}, which has shape {source.shape}")
    part = source.shape[separable_axes:]
    n = math.prod(part)
    step = chunk_size or max(1, MOST_AT_A_TIME // max(1, source.size))
    for start in range(0, max(n, 1), step):
        places = range(start, min(start + step, n))
        units = np.eye(len(places), n, start, source.dtype)
        units = units.reshape(len(places), *(1,) * separable_axes, *part)
        yield places, np.broadcast_to(units, (len(places), *source.shape))


def _batch_jacobian(fun: Callable, args: tuple, kwargs: dict, argnum: int) -> Any:
    call = RecordedCall(fun, args, kwargs, argnum, False)
    target = _only_target(fun, call)
    if len(call.sources) != 1 or nest.flatten(call.selected)[0] is not call.selected:
        raise TypeError(
            f"batch_jacobian differentiates {name_of(fun)} with respect to one array, not a "
            f"structure: got {type(call.selected).__name__}")
    (source,) = call.sources
    (rows,) = call.rows([target], [member_seeds(target, source)])
    (jacobian,) = _stacked(call, target, rows, 1)
    return export(jacobian, call.arrays_out)


def _elementwise_grad(fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple) -> Any:
    call = RecordedCall(fun, args, kwargs, argnums, False)
    return export(call.gradients([_only_target(fun, call)]), call.arrays_out)


def _only_target(fun: Callable, call: RecordedCall) -> Tensor:
    """Return a function's result as a tensor; raise if it is not one differentiable array."""
    require_result(fun, call.value)
    if isinstance(call.value, (list, tuple, dict)):
        raise TypeError(
            f"{name_of(fun)} must return one array, got a {type(call.value).__name__}: join "
            "several by cytape.numpy.stack, or use jacrev or vjp")
    target = output_of(fun, call.value)
    if not target.spec.trainable:
        raise TypeError(
            f"{name_of(fun)} returned an array of dtype {target.dtype}, which has no gradient")
    require_real_for_real(fun, call, target)
    return target


def _stacked(call: RecordedCall, target: Tensor, rows: list, axis: int) -> list:
    """Return rows per source, assembled along the target's axes >= axis."""
    return [
        stack_rows(of_source, source, target.shape, axis, UnconnectedGradients.ZERO)
        for source, of_source in zip(call.sources, rows, strict=True)]


def _zeros(call: RecordedCall, result: Tensor) -> Any:
    return nest.pack_sequence_as(call.selected, [
        zeros(result.shape + source.shape, result.dtype) for source in call.sources])
