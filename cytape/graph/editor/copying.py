"""Copies of parts of graphs, with other inputs or without."""

from __future__ import annotations

from typing import Any

from cytape.graph.editor.connections import ControlOutputs
from cytape.graph.editor.listed_arguments import graph_of, make_list_of_t, replacements, symbols_of
from cytape.graph.editor.subgraph_view import SubGraphView
from cytape.graph.editor.transformer import (
    Transformer,
    TransformerInfo,
    copy_op_handler,
    keep_t_if_possible_handler,
)
from cytape.graph.editor.view_makers import make_view
from cytape.graph.editor.walks import get_backward_walk_ops, get_forward_walk_ops
from cytape.graph.model.graph import Graph
from cytape.graph.model.operation import Operation
from cytape.tensor import nest
from cytape.tensor.tensor import Tensor

__all__ = ["copy", "copy_with_input_replacements", "graph_replace"]


def copy(
    sgv: Any, dst_graph: Graph | None = None, dst_scope: str = "", src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:
    """Copy a part of a graph, with placeholders as inputs.

    Variables are not copied: their handles, which are inputs if their readers are copied, are kept.

    Parameters
    ----------
    sgv
        An argument of `make_view`.
    dst_graph : Graph, optional
        The graph of the copies; by default the same graph.
    dst_scope : str, optional
        Prefix of the names of the copies.
    src_scope : str, optional
        Prefix of the old names, which is removed.
    reuse_dst_scope : bool, optional
        Whether the scope may exist already.

    Returns
    -------
    SubGraphView
        The copies.
    TransformerInfo
        What has become of which operation and tensor.

    Raises
    ------
    ValueError
        If a name does not begin with `src_scope`.
    TypeError
        If `dst_graph` is no graph.

    Examples
    --------
    >>> import cytape
    >>> graph, other = cytape.Graph(), cytape.Graph()
    >>> x = graph.placeholder("float64", (), name="x")
    >>> y = abs(x * x)
    >>> view, info = copy(graph, other)
    >>> cytape.Session(other).run(info.transformed(y), {"x:0": -3.0})
    np.float64(9.0)
    """
    view = make_view(sgv)
    return Transformer()(
        view, view.graph if dst_graph is None else dst_graph, dst_scope, src_scope,
        reuse_dst_scope)


def copy_with_input_replacements(
    sgv: Any, replacement_ts: Any, dst_graph: Graph | None = None, dst_scope: str = "",
    src_scope: str = "", reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:
    """Copy a part of a graph, with other tensors as inputs.

    Parameters
    ----------
    sgv
        An argument of `make_view`.
    replacement_ts : mapping of Tensor to Tensor
        Replacements of inputs of the view. Other inputs are kept in the same graph, and become
        placeholders in another one.
    dst_graph, dst_scope, src_scope, reuse_dst_scope
        As for `copy`, which also says what is returned.

    Raises
    ------
    ValueError, TypeError
        As for `copy`; also if a key is no input of the view, or a replacement has another dtype.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.placeholder("float64", (), name="x")
    >>> y = abs(x * x)
    >>> view, _ = copy_with_input_replacements([y.op.inputs[0].op, y.op], {x: y})
    >>> cytape.Session(graph).run([y, view.outputs[0]], {x: -3.0})
    [np.float64(9.0), np.float64(81.0)]
    """
    view = make_view(sgv)
    replaced = replacements(view.graph, replacement_ts) if view else {}
    for symbol in replaced:
        if symbol not in view.input_symbols:
            raise ValueError(
                f"{view.graph.tensor_name_of(symbol)!r} is not an input of the view, so it cannot "
                f"be replaced; the inputs are {_names(list(view.inputs))}")
    return _reading(replaced)(
        view, view.graph if dst_graph is None else dst_graph, dst_scope, src_scope,
        reuse_dst_scope)


def _reading(replaced: dict[int, Tensor]) -> Transformer:
    """Return a transformer that replaces tensors which operations read."""

    def outside(info: TransformerInfo, t: Tensor) -> Tensor:
        new = replaced.get(info.graph.symbol_of(t))
        return keep_t_if_possible_handler(info, t) if new is None else new

    def inside(info: TransformerInfo, op: Operation, new_inputs: list[Tensor]) -> Any:
        op_, outputs = copy_op_handler(info, op, new_inputs)
        symbols = info.graph.outputs_of(op.node)
        return op_, [replaced.get(x, new) for x, new in zip(symbols, outputs, strict=True)]

    transformer = Transformer()
    transformer.transform_external_input_handler = outside
    transformer.transform_op_handler = inside
    return transformer


def graph_replace(
    target_ts: Any, replacement_ts: Any, dst_scope: str = "", src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> Any:
    """Return copies of tensors as if others were replaced; the graph keeps the originals.

    Parameters
    ----------
    target_ts : Tensor, or a structure of tensors
        At least one depends on a replaced tensor, else a ValueError is raised.
    replacement_ts : mapping of Tensor to Tensor
        Tensors of the graph, with their replacements. For a variable ``w`` pass its read,
        ``graph.variable_value(w)``; for a value, ``graph.constant(value)``.
    dst_scope, src_scope, reuse_dst_scope
        As `copy` takes them.

    Returns
    -------
    Tensor or structure of Tensor
        As `target_ts`; tensors that do not depend on replaced ones are returned unchanged.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x, z = graph.placeholder("float64", ()), graph.placeholder("float64", ())
    >>> y = abs(x * x)
    >>> new = graph_replace({"y": y}, {x: z})
    >>> cytape.Session(graph).run(new, {z: 5.0})
    {'y': np.float64(25.0)}
    """
    targets = make_list_of_t(nest.flatten(target_ts))
    graph = graph_of(targets)
    replaced = replacements(graph, replacement_ts) if targets else {}
    old = [graph.tensor_at(symbol) for symbol in replaced]
    control_ios = ControlOutputs(graph) if targets and graph.has_control_inputs else None
    forward = get_forward_walk_ops(old, control_outputs=control_ios)
    backward = set(get_backward_walk_ops(
        [t for t in targets if graph.symbol_of(t) not in replaced], stop_at_ts=old,
        control_inputs=control_ios is not None))
    ops = [op for op in forward if op in backward and not (
        op.outputs and replaced.keys() >= set(graph.outputs_of(op.node)))]
    if not ops and replaced.keys().isdisjoint(symbols_of(targets)):
        raise ValueError(
            f"none of the targets, {_names(targets)}, depends on the replaced tensors, "
            f"{_names(old)}")
    new = dict(replaced)
    if ops:
        _, info = _reading(replaced)(
            SubGraphView(ops), graph, dst_scope, src_scope, reuse_dst_scope)
        for t in targets:
            new.setdefault(graph.symbol_of(t), info.transformed(t, lambda missing: missing))
    return nest.map_structure(lambda t: new.get(graph.symbol_of(t), t), target_ts)


def _names(ts: list[Tensor]) -> str:
    return ", ".join(t.name for t in ts) or "none"
