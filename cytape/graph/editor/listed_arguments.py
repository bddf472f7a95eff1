"""Arguments of the editor's functions: operations, tensors and replacements, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cytape.graph.model.graph import Graph
from cytape.graph.model.graph_variables import variable_handle_op
from cytape.graph.model.operation import Operation
from cytape.tensor.references import TensorReference
from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable

__all__ = ["make_list_of_op", "make_list_of_t"]


def make_list_of_op(
    ops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False
) -> list[Operation]:
    """Return operations as a list.

    Parameters
    ----------
    ops : Graph, Operation, or iterable of Operation
        A graph stands for all its operations.
    check_graph : bool, optional
        Whether all must belong to one graph.
    allow_graph : bool, optional
        Whether it may be a graph.
    ignore_ts : bool, optional
        Whether tensors among them are left out, instead of being an error.

    Raises
    ------
    TypeError
        If something is no operation.
    ValueError
        If they belong to several graphs.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.placeholder("float64", name="x")
    >>> make_list_of_op(graph), make_list_of_op(x.op)
    ([<Operation 'x' (Placeholder)>], [<Operation 'x' (Placeholder)>])
    """
    if isinstance(ops, Graph):
        if not allow_graph:
            raise TypeError(f"expected operations, got a graph, {ops!r}")
        return ops.get_operations()
    found = _listed(ops, Operation, Tensor if ignore_ts else None)
    if check_graph:
        graph_of(found)
    return found


def make_list_of_t(
    ts: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False
) -> list[Tensor]:
    """Return tensors as a list.

    Parameters
    ----------
    ts : Graph, Tensor, or iterable of Tensor
        A graph stands for all its tensors.
    check_graph, allow_graph
        As for `make_list_of_op`.
    ignore_ops : bool, optional
        Whether operations among them are left out, instead of being an error.

    Raises
    ------
    TypeError, ValueError
        As for `make_list_of_op`: if something is no tensor of a graph, or they have several.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> _ = graph.placeholder("float64", name="x")
    >>> make_list_of_t(graph)
    [<Tensor 'x:0' (float64, unknown shape)>]
    """
    if isinstance(ts, Graph):
        if not allow_graph:
            raise TypeError(f"expected tensors, got a graph, {ts!r}")
        return [ts.tensor_at(symbol) for symbol in symbols_of_graph(ts)]
    found = _listed(ts, Tensor, Operation if ignore_ops else None)
    for t in found:
        if t.graph is None:
            raise TypeError(f"expected tensors of a graph, got {t!r}, which has a value")
    if check_graph:
        graph_of(found)
    return found


def symbols_of_graph(graph: Any) -> list[int]:
    """Return the symbols of a graph, in the order in which they are computed."""
    return [symbol for node in range(graph.n_nodes) for symbol in graph.outputs_of(node)]


def _listed(items: Any, kind: type, ignored: type | None) -> list[Any]:
    if isinstance(items, TensorReference):
        items = items.deref()
    if isinstance(items, (Operation, Tensor)):
        items = [items]
    if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
        raise TypeError(f"expected {kind.__name__} objects, got {items!r}")
    found = []
    for item in items:
        if isinstance(item, TensorReference):
            item = item.deref()
        if isinstance(item, kind):
            found.append(item)
        elif ignored is None or not isinstance(item, ignored):
            raise TypeError(f"expected {kind.__name__} objects, got {item!r} among them")
    return found


def graph_of(items: Iterable[Any]) -> Any:
    """Return the graph of operations and tensors, None without any; raise if there are several."""
    graph = None
    for item in items:
        if graph is None:
            graph = item.graph
        elif item.graph is not graph:
            raise ValueError(f"{item!r} belongs to another graph than those before it")
    return graph


def nodes_of(ops: Iterable[Operation]) -> list[int]:
    """Return the nodes of operations."""
    return [op.node for op in ops]


def symbols_of(ts: Iterable[Tensor]) -> list[int]:
    """Return the symbols of tensors of a graph."""
    return [t.graph.symbol_of(t) for t in ts]


def replacements(graph: Any, replacement_ts: Any) -> dict[int, Tensor]:
    """Return the replacements of tensors of a graph, by symbol.

    Parameters
    ----------
    graph : Graph
    replacement_ts : mapping of Tensor to Tensor
        Keys may be references (`Tensor.ref`), too.

    Raises
    ------
    TypeError
        If it is something else, or the dtypes differ.
    ValueError
        If a key belongs to another graph, or stands for a variable.
    """
    if not isinstance(replacement_ts, Mapping):
        raise TypeError(
            f"replacement_ts must be a mapping from tensors to tensors, got {replacement_ts!r}")
    found = {}
    for key, new in replacement_ts.items():
        old = key.deref() if isinstance(key, TensorReference) else key
        if isinstance(old, Variable):
            raise TypeError(
                f"{old!r} is not a tensor of a graph: to replace the value of a variable w, give "
                "the tensor that reads it, graph.variable_value(w)")
        [old] = make_list_of_t(old)
        if graph.ops[graph.as_node(old)] is variable_handle_op:
            raise ValueError(
                f"{old.name!r} is the handle of a variable and cannot be replaced: replace the "
                "tensor that reads the variable, graph.variable_value(w)")
        if isinstance(new, Tensor) and new.graph is None:
            raise TypeError(
                f"the replacement of {old.name!r} must be a tensor of the graph, got {new!r}, "
                "which has a value: give graph.constant(value), or graph.variable_value(w) for a "
                "variable")
        if not isinstance(new, Tensor):
            raise TypeError(f"the replacement of {old.name!r} must be a tensor, got {new!r}")
        if new.dtype != old.dtype:
            raise TypeError(
                f"{old!r} cannot be replaced by a tensor of dtype {new.dtype}, got {new!r}")
        found[graph.symbol_of(old)] = new
    return found
