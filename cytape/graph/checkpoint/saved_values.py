"""Lists of the values that the backward pass of a function keeps."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cytape.graph.checkpoint.kept_symbols import named_as, root_of
from cytape.graph.control.control_ops import CondOp, LoopOp
from cytape.graph.run.interpreter import needed_nodes
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.trace_derivatives import DerivativeGraph, DerivativeTraces, Ends
from cytape.ops.calls.symbolic import in_graph
from cytape.ops.python.checkpointed_call_op import checkpointed_call_op
from cytape.ops.python.python_ops import given_results_op
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable

__all__ = ["SavedValue", "SavedValues", "saved_values"]


class SavedValue(NamedTuple):
    """A value that a backward pass keeps.

    Attributes
    ----------
    shape : tuple or None
    dtype : dtype
    source : str
        The argument, variable or op type that it is from, and its name, if it has one.
    location : (str, int, str) or None
        Where it is computed: file, line and function. None for arguments, and for values that loops
        and branches keep of their bodies.
    """

    shape: tuple[int | None, ...] | None
    dtype: np.dtype
    source: str
    location: tuple[str, int, str] | None

    @property
    def nbytes(self) -> int | None:
        """The size in bytes; None if an extent is unknown."""
        extents = [None] if self.shape is None else self.shape
        known = [extent for extent in extents if extent is not None]
        return math.prod(known) * self.dtype.itemsize if len(known) == len(extents) else None


class SavedValues(list[SavedValue]):
    """The values that a backward pass keeps, as a list that prints as a table."""

    @property
    def nbytes(self) -> int | None:
        """The total size in bytes; None if an extent is unknown."""
        sizes = [value.nbytes for value in self]
        return None if None in sizes else sum(filter(None, sizes))

    def __repr__(self) -> str:
        n_bytes = "unknown" if self.nbytes is None else f"{self.nbytes:,}"
        rows = [
            (f"{value.dtype}", f"{value.shape}", value.source
             + ("" if value.location is None else ", {}:{} in {}".format(*value.location)))
            for value in self]
        widths = [max([len(row[i]) for row in rows], default=0) for i in range(2)]
        return "\n".join([
            f"{len(self)} value{'s' * (len(self) != 1)}, {n_bytes} bytes",
            *(f"{dtype:{widths[0]}}  {shape:{widths[1]}}  {source}"
              for dtype, shape, source in rows)])


def saved_values(f: Callable, *args: Any, **kwargs: Any) -> SavedValues:
    """List the values that the backward pass of a function keeps, without computing anything.

    Parameters
    ----------
    f : callable
        It is traced. `f` and the functions that it calls may be made by `checkpoint`,
        `recompute_grad` or a `cytape.function` with checkpoints.
    *args, **kwargs
        Arguments of the call. Numbers count as arrays in the first argument, of which `grad` takes
        the gradient; in other arguments they stay numbers.

    Returns
    -------
    SavedValues
        The values that the gradient with respect to all arguments and variables reads, with
        ``shape``, ``dtype``, ``source``, ``location`` and ``nbytes`` each. Constants do not count.
        The values that a loop keeps of all its iterations count as one, of unknown extent (None)
        where a condition decides their number; so do the values that a branch keeps if it runs.

    Raises
    ------
    TypeError
        If `f` is no function.
    SymbolicTensorError
        If `f` asks for the value of a tensor.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> def layer(x, w):
    ...     return np.sum(np.tanh(np.exp(x @ w)))
    >>> x, w = np.ones((2, 3)), np.ones((3, 4))
    >>> [value.source for value in saved_values(layer, x, w)]
    ['argument x', 'argument w', 'Exp', 'Tanh']
    >>> [value.source for value in saved_values(cytape.checkpoint(layer, policy="dots"), x, w)]
    ['argument x', 'argument w', 'MatMul']
    """
    if not callable(f):
        raise TypeError(f"saved_values takes a function, got {type(f).__name__}: {f!r}")
    name = getattr(f, "__name__", type(f).__name__)
    graph = FunctionGraph(name, current_graph())
    sources: dict[int, str] = {}
    with unrecorded(), building_into(graph):
        structure = _with_arguments(graph, f, args, kwargs, sources)
        result = f(*structure[0], **structure[1])
        outputs = [in_graph(graph, convert_to_tensor(x))
                   for x in nest.flatten(result) if isinstance(x, Tensor)]
        trace = ConcreteFunction(name, graph, list(sources), outputs)
        for x, symbol in graph.captures:
            sources[symbol] = f"variable {x.name}" if isinstance(x, Variable) else (
                "a tensor from outside")
        ends = Ends(name, graph, trace.input_symbols, trace.output_symbols)
        traces = DerivativeTraces(
            ends, ConcreteFunction, (), partial(DerivativeGraph, outer_graph=graph))
        backward = traces.backward(
            traces.trainable(ends.output_symbols), traces.trainable(ends.input_symbols))
    return SavedValues([
        *_described(graph, _read(backward, graph), sources),
        *(value._replace(location=None) for value in _described(
            backward.graph, _kept_by_control_flow(backward), {}))])


def _with_arguments(
    graph: FunctionGraph, f: Callable, args: tuple, kwargs: dict, sources: dict[int, str]
) -> tuple[tuple, dict]:
    """Return arguments with symbols in place of their arrays and tensors, which are noted."""
    try:
        bound = inspect.signature(f).bind(*args, **kwargs)
    except (TypeError, ValueError):  # no signature, or the call will raise
        names = [f"args[{i}]" for i in range(len(args))]
    else:
        names = []
        for parameter in bound.signature.parameters.values():
            if parameter.name in bound.arguments and len(names) < len(args):
                names += [f"{parameter.name}[{i}]" for i in range(len(args) - len(names))] if (
                    parameter.kind is parameter.VAR_POSITIONAL) else [parameter.name]

    def symbolic(name: str, argument: Any, takes_number: bool = False) -> Any:
        leaves = nest.flatten(argument)
        for i, (path, leaf) in enumerate(zip(nest.paths(argument, name), leaves, strict=True)):
            if takes_number and isinstance(leaf, (float, complex, np.inexact)):
                leaf = convert_to_tensor(leaf)
            if isinstance(leaf, (Tensor, np.ndarray)) and not isinstance(leaf, Variable):
                leaves[i] = graph.argument(leaf.shape, leaf.dtype)
                sources[graph.symbol_of(leaves[i])] = f"argument {path}"
        return nest.pack_sequence_as(argument, leaves)

    return (tuple(symbolic(name, argument, i == 0)
                  for i, (name, argument) in enumerate(zip(names, args, strict=True))),
            {word: symbolic(word, argument) for word, argument in kwargs.items()})


def _read(backward: ConcreteFunction, graph: FunctionGraph) -> list[int]:
    """List the symbols of a graph that the trace of its backward pass reads."""
    body = backward.graph
    needed = set(needed_nodes(body, list(backward.output_symbols), (), body.stateful))
    return [graph.symbol_of(x) for x, symbol in body.captures
            if x.graph is graph and body.node_of(symbol) in needed]


def _kept_by_control_flow(backward: ConcreteFunction) -> list[int]:
    """List the symbols of a backward pass that loops and branches keep for it.

    These run forward, without waiting for a gradient; optimisation merges them with the loops and
    branches that are differentiated.
    """
    body = backward.graph
    captured = {symbol for _, symbol in body.captures}
    late = {body.node_of(symbol) for symbol in backward.input_symbols if symbol not in captured}
    pending = []
    for node in needed_nodes(body, list(backward.output_symbols), (), body.stateful):
        makers = {*map(body.node_of, body.inputs_of(node)), *body.control_inputs_of(node)}
        if not late.isdisjoint(makers):
            late.add(node)
            pending += body.inputs_of(node)
    found = set()
    seen: set[int] = set()
    while pending:
        symbol = pending.pop()
        node = body.node_of(symbol)
        if node in late or symbol in seen:
            continue
        seen.add(symbol)
        if isinstance(body.ops[node], (CondOp, LoopOp)):
            found.add(symbol)
        else:
            pending += body.inputs_of(node)
    return sorted(found)


def _described(
    graph: FunctionGraph, symbols: Sequence[int], sources: dict[int, str]
) -> list[SavedValue]:
    names = named_as(graph)
    found: dict[int, SavedValue] = {}
    for symbol in symbols:
        root = _origin(graph, symbol)
        node, spec = graph.node_of(root), graph.spec_of(root)
        source = sources.get(root, graph.ops[node].name)
        named = ", ".join(map(repr, names.get(root, ())))
        shape = None if spec.shape is None else tuple(spec.shape)
        found[root] = SavedValue(
            shape, spec.dtype, f"{source} {named}".rstrip(),
            None if root in sources else graph.location_of(node))
    return [found[root] for root in sorted(found)]


def _origin(graph: FunctionGraph, symbol: int) -> int:
    """Return the symbol that identities and kept results of calls pass on."""
    while True:
        symbol = root_of(graph, symbol)
        node = graph.node_of(symbol)
        if graph.ops[node] not in (checkpointed_call_op, given_results_op):
            return symbol
        inputs = graph.inputs_of(node)
        position = graph.output_position(symbol) - len(graph.outputs_of(node))
        symbol = inputs[len(inputs) + position]
