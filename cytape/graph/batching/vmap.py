"""`cytape.vmap`: a function of one example becomes a function of batches."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.errors import GraphError, SymbolicTensorError
from cytape.graph.batching.batch_axes import (
    axes_of,
    checked_axes,
    extent_of,
    members_first,
    members_moved,
)
from cytape.graph.batching.members import Value, of_all_members
from cytape.graph.control.function_checks import lent
from cytape.graph.tracing.frozen_draws import call_traced
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.ops.adjoints.conform import broadcast_to, cast, fill_like
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.calls.symbolic import graph_for, in_graph
from cytape.ops.creation import identity
from cytape.ops.indexing import take
from cytape.ops.joining import concatenate
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.names_elsewhere import advising
from cytape.tensor.recording.state import building_into, is_recorded, unrecorded
from cytape.tensor.structures import leaves_of_arguments, leaves_of_result
from cytape.tensor.tensor import Tensor, data_of
from cytape.tensor.variable import Variable

__all__ = ["vmap"]


@advising
def vmap(
    fun: Callable, in_axes: Any = 0, out_axes: Any = 0, chunk_size: int | None = None
) -> Callable[..., Any]:
    """Make the function that computes a function for all members of a batch at once.

    Parameters
    ----------
    fun : callable
        Written for one member, with cytape's functions. Each call traces it with symbols, as
        `function` does. For repeated calls, ``cytape.function(cytape.vmap(fun))`` keeps the trace.
    in_axes : int, None, or sequence or structure of these
        The batch axis of each array among the arguments. None: all members share the argument. A
        tuple or list has an entry per positional argument, which may be structured as the
        argument; an entry may also be one axis for a whole part. Keyword arguments are shared.
    out_axes : int, None, or structure of these
        The batch axis of each result. None: the result does not depend on the member, and is
        returned once.
    chunk_size : int, optional
        The number of members that are computed at a time, to limit memory. By default all.

    Returns
    -------
    callable
        Function of the arguments of `fun`, with batch axes in arguments and results. It returns
        tensors if an argument is a tensor or a variable, or the result is recorded, else arrays.

    Raises
    ------
    TypeError
        If `fun` is not callable or the axes are not integers; in a call, if `fun` does not return
        arrays.
    ValueError
        In a call, if the axes do not fit the arguments or the results, arguments differ in the
        number of members, or nothing is mapped.
    SymbolicTensorError
        In a call, if `fun` needs the value of a member, say in ``if x > 0``: write
        ``cytape.numpy.where`` or `cond`.
    GraphError
        In a call, if `fun` assigns to a variable, which has one value for all members.

    See Also
    --------
    map_fn : One member after the other.

    Notes
    -----
    It can be differentiated, in both modes and to any order, and called in `function`, in graphs
    and in itself; `fun` may be a derivative. Ops without a rule for batches run for one member
    after the other, in a loop without Python: branches and loops of graphs, users' gradient
    functions, `numpy_function`, `lstsq`, long convolutions; filters, quantiles, tables for `interp`
    and indices behind a slice that differ between members; and functions whose result's shape
    depends on values, with the ops that follow until shapes agree again, as in
    ``np.sum(x[x > 0])``. Shapes of results must agree. Numbers that `fun` draws by
    `cytape.numpy.random` differ between members.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> cytape.vmap(np.dot, in_axes=(0, None))(x, np.array([1.0, 10.0]))
    array([21., 43., 65.])

    The gradient of each example's loss:

    >>> def loss(w, x, y):
    ...     return (np.dot(w, x) - y) ** 2
    >>> gradients = cytape.vmap(cytape.grad(loss), in_axes=(None, 0, 0))
    >>> gradients(np.array([1.0, -1.0]), x, np.array([0.0, 0.0, 1.0]))
    array([[ -2.,  -4.],
           [ -6.,  -8.],
           [-20., -24.]])
    """
    return Vectorized(fun, in_axes, out_axes, chunk_size)


class Vectorized:
    """A function of batches, made by `vmap`. A class, so that it can be pickled."""

    def __init__(self, fun: Callable, in_axes: Any, out_axes: Any, chunk_size: int | None) -> None:
        if not callable(fun):
            raise TypeError(f"only functions can be mapped, got {type(fun).__name__}")
        functools.update_wrapper(self, fun, updated=())
        if chunk_size is not None and (
                not isinstance(chunk_size, (int, np.integer)) or chunk_size < 1):
            raise ValueError(f"chunk_size must be a positive integer or None, got {chunk_size!r}")
        self._fun = fun
        self._in_axes = checked_axes(in_axes, "in_axes")
        self._out_axes = checked_axes(out_axes, "out_axes")
        self._chunk_size = chunk_size

    def __repr__(self) -> str:
        return f"<vmap of {self._name}>"

    def __reduce__(self) -> tuple:
        return Vectorized, (self._fun, self._in_axes, self._out_axes, self._chunk_size)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def _name(self) -> str:
        return getattr(self._fun, "__name__", type(self._fun).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function for all members."""
        leaves = leaves_of_arguments(args, (Tensor, np.ndarray))
        axes, places = self._axes(args), nest.paths(args, "args")
        mapped = [i for i, axis in enumerate(axes) if axis is not None]
        tensors = [members_first(leaves[i], axes[i], places[i]) for i in mapped]
        extent = extent_of(tensors, [places[i] for i in mapped])
        tensors = _as_many(tensors, [places[i] for i in mapped])
        graph, arguments, structure, outputs = self._trace(args, kwargs, mapped, tensors)
        out_axes = axes_of(structure, self._out_axes, "out_axes", "results")
        values: dict[int, Value] = {
            symbol: (convert_to_tensor(x), False) for x, symbol in graph.captures}
        symbols = [graph.symbol_of(x) for x in outputs]
        found: list[Value] = []
        parts = []
        for chunk in self._chunks(tensors, extent):
            values.update({symbol: (x, True)
                           for symbol, x in zip(arguments, chunk, strict=True)})
            parts.append(of_all_members(graph, symbols, values, chunk[0].shape[0]))
        for column in zip(*parts, strict=True):
            x, is_mapped = column[0]
            if is_mapped and len(column) > 1:
                x = concatenate([part for part, _ in column])
            found.append((x, is_mapped))
        results = lent([self._placed(x, is_mapped, axis, tensors[0])
                        for (x, is_mapped), axis in zip(found, out_axes, strict=True)])
        if not any(isinstance(leaf, Tensor) for leaf in nest.flatten((args, kwargs))):
            results = list(map(_as_array, results))
        return nest.pack_sequence_as(structure, results)

    def _axes(self, args: tuple) -> list:
        """Return the axis of each leaf of the arguments."""
        axes = self._in_axes
        if isinstance(axes, (list, tuple)):
            if len(axes) != len(args):
                raise ValueError(
                    f"in_axes has {len(axes)} entries, one per positional argument, but "
                    f"{self._name} got {len(args)} of these; keyword arguments are shared")
            axes = tuple(axes)
        return axes_of(args, axes, "in_axes", "arguments")

    def _trace(self, args: tuple, kwargs: dict, mapped: list[int], tensors: list[Tensor]) -> tuple:
        """Call the function with symbols for one member; return graph, symbols and results.

        The results are returned as a structure and as a list of tensors.
        """
        graph = FunctionGraph(f"vmap({self._name})", graph_for(tensors))
        graph.of_member = True
        leaves, kwargs = list(map(_shared, nest.flatten(args))), nest.map_structure(_shared, kwargs)
        with unrecorded(), building_into(graph):
            arguments = [graph.argument(x.shape[1:], x.dtype) for x in tensors]
            symbols = list(map(graph.symbol_of, arguments))  # the function may change its arguments
            leaves, kwargs = nest.map_structure(
                lambda x: in_graph(graph, x) if _is_tensor(x) and x.graph is not None else x,
                (leaves, kwargs))
            for i, argument in zip(mapped, arguments, strict=True):
                leaves[i] = argument
            try:
                results = call_traced(
                    graph, self._fun, nest.pack_sequence_as(args, leaves), kwargs)
            except SymbolicTensorError as error:
                error.add_note(
                    f"{self._name} is called by vmap once for all members, with symbols for the "
                    "values of one: choose by cytape.numpy.where or cytape.cond")
                raise
            outputs = [in_graph(graph, self._output(x)) for x in leaves_of_result(results)]
            structure = nest.pack_sequence_as(results, outputs)
        if graph.assigned:
            names = ", ".join(variable.name for variable in graph.assigned.values())
            raise GraphError(
                f"{self._name} assigns to a variable ({names}), which has one value, not one per "
                "member: return the value, and assign it after the call")
        graph.finalize()
        return graph, symbols, structure, outputs

    def _output(self, x: Any) -> Tensor:
        try:
            return convert_to_tensor(x)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{self._name} must return arrays or tensors, got {x!r}") from error

    def _chunks(self, tensors: list[Tensor], extent: int | None) -> list[list[Tensor]]:
        """Yield parts of the arguments, which are computed one after the other."""
        n = self._chunk_size
        if n is None or extent is not None and extent <= n:
            return [tensors]
        if extent is None:
            raise SymbolicTensorError(
                f"chunk_size={n} needs the number of members, which is known only when the graph "
                "runs: leave it out, or give the arguments a known extent")
        return [[x[start : start + n] for x in tensors] for start in range(0, extent, n)]

    def _placed(self, x: Tensor, is_mapped: bool, axis: Any, like: Tensor) -> Tensor:
        """Return a result with its batch axis at the requested position."""
        if axis is None:
            if is_mapped:
                raise ValueError(
                    f"out_axes is None for a result of {self._name} that differs between members: "
                    "give it an axis, None is for results that all members share")
            return x
        if not is_mapped:
            x = _repeated(x, like)
        return members_moved(x, axis)


def _as_many(tensors: list[Tensor], places: list[str]) -> list[Tensor]:
    """Return tensors with a check at run time that all batch axes have the same length."""
    first, *others = tensors

    def like(x: Tensor, other: Tensor, place: str) -> Tensor:
        return with_extents(
            x, ValueError, "mapped axes must have the same length, got another length for "
            f"{place} than for {places[0]}", like=other, same=[(0, 0)])

    for x, place in zip(others, places[1:], strict=True):
        first = like(first, x, place)
    return [first, *[like(x, first, place) for x, place in zip(others, places[1:], strict=True)]]


def _repeated(x: Tensor, like: Tensor) -> Tensor:
    """Repeat a shared value along the batch axis of a tensor."""
    if like.shape[0] is not None and x.spec.known:
        return broadcast_to(x, (like.shape[0], *x.shape))
    rows = np.any(like, axis=tuple(range(1, like.ndim)))
    return take(x[np.newaxis], fill_like(cast(rows, np.int64), 0), axis=0)


def _shared(leaf: Any) -> Any:
    """Return an array or tensor as a tensor that the function may write to; others unchanged.

    Written values and indices may be symbols that differ between members.
    """
    if _is_tensor(leaf):
        return leaf if leaf.graph is not None else identity(leaf)
    is_array = isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc"
    return convert_to_tensor(leaf) if is_array else leaf


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and not isinstance(leaf, Variable)


def _as_array(x: Tensor) -> Any:
    """Return a tensor as a new array, a scalar as a number; unchanged if it is recorded."""
    if x.graph is not None or is_recorded(x.id):
        return x
    return np.array(data_of(x))[()]
