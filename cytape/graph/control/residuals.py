"""Residuals: values of the forward pass of a body that its backward pass reads.

The gradient of a body is built into one graph with the body. That graph is divided: the forward
part computes the next loop variables and the residuals; the backward part starts from these and the
gradients that arrive. Loop-invariant values are not residuals, nor are values that cost nothing to
recompute. Inner loops and branches made for gradients that only go forward belong to the forward
part, so each level goes forward once. Loops that store snapshots are an exception: these are kept
of the present iteration alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cytape.graph.control.body_checks import is_ragged
from cytape.graph.control.control_ops import CondOp, LoopOp
from cytape.graph.control.row_counts import row_count
from cytape.graph.run.interpreter import needed_nodes
from cytape.graph.tracing.body_tools import like
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import inline
from cytape.ops.adjoints.extent_checks import ensure_shape
from cytape.ops.calls.dispatch import Lowering
from cytape.ops.engine.op_kinds import general, nondifferentiable
from cytape.ops.engine.structural_op import StructuralOp
from cytape.tensor.recording.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["extracted", "read_of", "residuals", "stackable"]

_SAME, _FORWARD, _LATE, _BACKWARD = range(4)


def residuals(
    graph: FunctionGraph,
    moving: Iterable[Tensor],
    seeds: Iterable[Tensor],
    first_backward: int,
    results: Sequence[Tensor],
    given: Iterable[Tensor],
    can_be_kept: Callable[[Tensor], bool] = lambda _: True,
) -> list[Tensor]:
    """Find the values of the forward part that the backward part of a graph needs.

    Parameters
    ----------
    graph : FunctionGraph
        Of a body, then of its gradient.
    moving : iterable of Tensor
        The arguments of the body that differ between iterations.
    seeds : iterable of Tensor
        The arguments of the gradient.
    first_backward : int
        The first node after the body's.
    results : sequence of Tensor
        Of the gradient.
    given : iterable of Tensor
        The moving arguments that the backward part takes anyway.
    can_be_kept : callable, optional
        Called with a tensor; returns whether it can be a residual. Others are recomputed.
    """
    kinds = _kinds(graph, moving, seeds, first_backward, results)
    at_hand = {graph.symbol_of(x) for x in given}
    found: dict[int, None] = {}
    seen: set[int] = set()
    stack = [graph.symbol_of(x) for x in reversed(results)]
    while stack:
        symbol = stack.pop()
        if symbol in seen or symbol in at_hand:
            continue
        seen.add(symbol)
        node = graph.node_of(symbol)
        if kinds[node] == _FORWARD and not _is_free(graph, node) and can_be_kept(
                graph.tensor_at(symbol)):
            found[symbol] = None
        else:
            stack += reversed(list(graph.inputs_of(node)))
    return list(map(graph.tensor_at, found))


def _kinds(
    graph: FunctionGraph, moving: Iterable[Tensor], seeds: Iterable[Tensor], first_backward: int,
    results: Sequence[Tensor],
) -> dict[int, int]:
    """Classify nodes: forward, backward, or loop-invariant."""
    kinds = {graph.node_of(graph.symbol_of(x)): _FORWARD for x in moving}
    kinds.update({graph.node_of(graph.symbol_of(x)): _BACKWARD for x in seeds})
    for node in needed_nodes(graph, list(map(graph.symbol_of, results)), (), graph.stateful):
        if node in kinds:
            continue
        producers = [graph.node_of(symbol) for symbol in graph.inputs_of(node)]
        op = graph.ops[node]
        kind = max([kinds[producer] for producer in producers], default=_SAME)
        # Control inputs delay recomputation until gradients arrive.
        waits = any(kinds.get(other) == _BACKWARD for other in graph.control_inputs_of(node))
        if waits or op.stateful and node >= first_backward:
            kind = _BACKWARD
        elif isinstance(op, (LoopOp, CondOp)) and kind <= _LATE and op.differentiable:
            kind = _FORWARD
            _bring_forward(graph, kinds, producers)
        elif kind == _FORWARD and node >= first_backward:
            kind = _LATE
        kinds[node] = kind
    return kinds


def _bring_forward(graph: FunctionGraph, kinds: dict[int, int], nodes: list[int]) -> None:
    while nodes:
        node = nodes.pop()
        if kinds[node] == _LATE:
            kinds[node] = _FORWARD
            nodes += [graph.node_of(symbol) for symbol in graph.inputs_of(node)]


def _is_free(graph: FunctionGraph, node: int) -> bool:
    """Return whether a node is a view of an operand that is not larger than the view."""
    inputs, op = graph.inputs_of(node), graph.ops[node]
    if len(inputs) != 1 or not (
            isinstance(op, StructuralOp) or op.lowering in (Lowering.CONVERTED, Lowering.SHOWN)):
        return False
    operand, result = graph.spec_of(inputs[0]), graph.spec_of(graph.outputs_of(node)[0])
    return operand.known and result.known and operand.nbytes <= result.nbytes


def stackable(graph: FunctionGraph, tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """Return the tensors that are stacked for tensors of a body, in the graph being built.

    Slices of a stack may differ only in the number of rows. Other tensors are split into parts.

    Parameters
    ----------
    graph : FunctionGraph
        Of the body.
    tensors : sequence of Tensor

    Returns
    -------
    list of list of Tensor
        Of each: itself, or its elements and its shape, which tensors of one shape share.
    """
    parts: list[list[Tensor]] = []
    shapes: dict[int, Tensor] = {}  # by the extents that tensors share
    counts: dict = {}
    for x in tensors:
        spec = x.spec
        if spec.known:
            parts.append([x])
        elif is_ragged(spec) and None not in tuple(spec.shape)[1:]:
            n_rows = row_count(graph, graph.symbol_of(x), counts)
            first = n_rows if isinstance(n_rows, int) else None
            parts.append([ensure_shape(x, (first, *tuple(spec.shape)[1:]))])
        else:
            shape = shapes.setdefault(id(spec.extents), shape_op(x))
            parts.append([elements_op(x), shape])
    return parts


def _with_parts(x: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """Return a tensor assembled from the parts that were stacked for it."""
    return parts[0] if len(parts) == 1 else _put_together(x, *parts)


def _put_together(x: Tensor, elements: Tensor, shape: Tensor) -> Tensor:
    extents: Any = x.spec.shape
    return whole_op(elements, shape, extents=None if extents is None else tuple(extents))


shape_op = nondifferentiable(
    "Shape", lambda x: np.asarray(np.shape(x), np.int64),
    shape_rule=lambda x: symbolic_spec((None if x.shape is None else len(x.shape),), np.int64))
elements_op: Any = general(
    "Elements", lambda x: np.ravel(x),
    vjp=lambda op, g: _put_together(op.inputs[0], g, shape_op(op.inputs[0])),
    jvp=lambda op, tangent: elements_op(tangent),
    shape_rule=lambda x: symbolic_spec((None,), x.dtype))
whole_op: Any = general(
    "Whole", lambda elements, shape, *, extents: np.reshape(elements, shape),
    vjp=lambda op, g: (elements_op(g), None), saved_inputs=(1,), optional_tangents=(1,),
    jvp=lambda op, tangent, _: whole_op(tangent, op.inputs[1], **op.attrs),
    shape_rule=lambda elements, shape, *, extents: symbolic_spec(extents, elements.dtype))


def extracted(
    graph: FunctionGraph, arguments: Sequence[Tensor], outputs: Sequence[Tensor],
    keep: Sequence[int] = (), apart: Mapping[Tensor, Sequence[Tensor]] | None = None,
) -> ConcreteFunction:
    """Return a body that computes some tensors of a graph from others.

    Control inputs from the other part of the graph are dropped.

    Parameters
    ----------
    graph : FunctionGraph
    arguments, outputs : sequence of Tensor
    keep : sequence of int, optional
        Nodes that must also run, for their side effects.
    apart : dict of Tensor to sequence of Tensor, optional
        Tensors assembled from other arguments: see `stackable`.
    """
    symbols = list(map(graph.symbol_of, arguments))
    wanted = list(map(graph.symbol_of, outputs))
    wholes = {graph.symbol_of(x): (x, list(map(graph.symbol_of, parts)))
              for x, parts in (apart or {}).items()}
    nodes = needed_nodes(graph, wanted, {*symbols, *wholes}, keep, waits=False)
    part = FunctionGraph(graph.name, current_graph())
    with unrecorded(), building_into(part):
        inputs = like(part, graph, symbols)
        tensors = dict(zip(symbols, inputs, strict=True))
        for symbol, (x, parts) in wholes.items():
            if parts[0] in tensors:
                tensors[symbol] = _with_parts(x, [tensors[part] for part in parts])
        inline(graph, tensors, part, nodes)
        return ConcreteFunction(
            graph.name, part, list(map(part.symbol_of, inputs)),
            [tensors[symbol] for symbol in wanted])


def read_of(
    graph: FunctionGraph, results: Sequence[Tensor], arguments: Sequence[Tensor],
    fed: Iterable[Tensor] = (),
) -> list[int]:
    """List the positions of those arguments that are needed for some results.

    Parameters
    ----------
    graph : FunctionGraph
        Whose stateful nodes are needed, too.
    results, arguments : sequence of Tensor
    fed : iterable of Tensor, optional
        Further arguments.
    """
    symbols = list(map(graph.symbol_of, arguments))
    given = {*symbols, *map(graph.symbol_of, fed)}
    wanted = set(map(graph.symbol_of, results))
    for node in needed_nodes(graph, list(wanted), given, graph.stateful, waits=False):
        wanted.update(graph.inputs_of(node))
    return [i for i, symbol in enumerate(symbols) if symbol in wanted]
