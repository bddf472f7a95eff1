"""Rerouting: consumers of tensors, and of views, that read other tensors after an edit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cytape.graph.editor.listed_arguments import graph_of, make_list_of_op, make_list_of_t, nodes_of
from cytape.graph.editor.subgraph_view import SubGraphView
from cytape.graph.editor.view_makers import make_view
from cytape.graph.model.graph_edits import says_as_much

__all__ = [
    "reroute_inputs",
    "reroute_ios",
    "reroute_outputs",
    "reroute_ts",
    "swap_inputs",
    "swap_ios",
    "swap_outputs",
    "swap_ts",
]

# node -> position of an input -> new symbol
Changes = dict[int, dict[int, int]]


def reroute_ts(
    ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None
) -> int:
    """Replace tensors by others, for their consumers.

    Parameters
    ----------
    ts0 : Tensor or iterable of Tensor
        The replacements.
    ts1 : Tensor or iterable of Tensor
        The replaced tensors, one for each of `ts0`.
    can_modify : Operation or iterable of Operation, optional
        The operations to change; by default all consumers of `ts1`.
    cannot_modify : Operation or iterable of Operation, optional
        Operations that are not changed.

    Returns
    -------
    int
        How many inputs of operations have been changed.

    Raises
    ------
    ValueError
        If there are not as many of `ts0` as of `ts1`, dtypes differ, shapes do not fit, or an
        operation would have to run before itself. Nothing is changed then.
    TypeError
        If an object is not a tensor or not an operation.

    Notes
    -----
    The shape of a replacement must be at least as specific as that of the replaced tensor.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x, y = graph.constant(2.0), graph.constant(3.0)
    >>> z = x * x
    >>> reroute_ts(y, x)
    2
    >>> cytape.Session(graph).run(z)
    np.float64(9.0)
    """
    return _reroute_ts(ts0, ts1, False, can_modify, cannot_modify)


def swap_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Exchange tensors with others, for the consumers of both.

    Parameters
    ----------
    ts0, ts1 : Tensor or iterable of Tensor
        As many of one as of the other.
    can_modify, cannot_modify
        As for `reroute_ts`, which has the same result and the same errors.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x, y = graph.constant(2.0), graph.constant(3.0)
    >>> z = x / y
    >>> swap_ts(x, y)
    2
    >>> cytape.Session(graph).run(z)
    np.float64(1.5)
    """
    return _reroute_ts(ts0, ts1, True, can_modify, cannot_modify)


def _reroute_ts(ts0: Any, ts1: Any, swap: bool, can_modify: Any, cannot_modify: Any) -> int:
    ts0, ts1 = make_list_of_t(ts0), make_list_of_t(ts1)
    graph = graph_of([*ts0, *ts1])
    if graph is None:
        return 0
    allowed = None if can_modify is None else nodes_of(make_list_of_op(can_modify))
    excluded = () if cannot_modify is None else nodes_of(make_list_of_op(cannot_modify))
    changes = rerouted(
        graph, replaced_symbols(graph, list(map(graph.symbol_of, ts0)),
                                list(map(graph.symbol_of, ts1)), swap), allowed, excluded)
    graph.rewire(changes, {})
    return sum(map(len, changes.values()))


def replaced_symbols(
    graph: Any, symbols0: list[int], symbols1: list[int], swap: bool
) -> dict[int, int]:
    """Return the new symbol for each replaced one; raise if a replacement is impossible.

    `symbols1` are read now, `symbols0` in place of them; to swap, the other way round, too.
    """
    if len(symbols0) != len(symbols1):
        raise ValueError(
            f"expected as many replacements as tensors to replace, got {len(symbols0)} and "
            f"{len(symbols1)}")
    new: dict[int, int] = {}
    pairs = list(zip(symbols0, symbols1, strict=True))
    if swap:
        pairs += [(symbol1, symbol0) for symbol0, symbol1 in pairs]
    for symbol0, symbol1 in pairs:
        if not says_as_much(graph.spec_of(symbol0), graph.spec_of(symbol1)):
            raise ValueError(
                f"{graph.describe(symbol0)} cannot be read in place of {graph.describe(symbol1)}: "
                "dtype and shape must be the same, and known extents must stay known")
        if new.setdefault(symbol1, symbol0) != symbol0:
            raise ValueError(
                f"{graph.describe(symbol1)} cannot be replaced by two tensors at once")
    return {symbol1: symbol0 for symbol1, symbol0 in new.items() if symbol1 != symbol0}


def rerouted(
    graph: Any, new: dict[int, int], allowed: Iterable[int] | None, excluded: Iterable[int] = ()
) -> Changes:
    """Return the changes that make nodes read other symbols: `new` ones, by the old ones.

    Of the nodes that are `allowed`, by default all that read one, less those `excluded`.
    """
    if allowed is None:
        allowed = {node for symbol in new for node in graph.consumer_nodes(symbol)}
    changes: Changes = {}
    for node in set(allowed).difference(excluded):
        changed = {position: new[symbol] for position, symbol in enumerate(graph.inputs_of(node))
                   if symbol in new}
        if changed:
            changes[node] = changed
    return changes


# ---- views


def reroute_inputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Replace the inputs of the second of two views by those of the first.

    Parameters
    ----------
    sgv0, sgv1
        Arguments of `make_view`, with as many inputs.

    Returns
    -------
    SubGraphView, SubGraphView
        Both, with the inputs that they now have; views that are passed are changed, too.

    Raises
    ------
    ValueError
        If the inputs do not fit, or an operation would have to run before itself.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x, y = graph.constant(2.0), graph.constant(3.0)
    >>> z = y * y
    >>> _ = reroute_inputs(abs(x).op, z.op)
    >>> cytape.Session(graph).run(z)
    np.float64(4.0)
    """
    return _reroute_views(sgv0, sgv1, inputs=True, outputs=False, swap=False)


def swap_inputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Exchange the inputs of two views; otherwise as `reroute_inputs`."""
    return _reroute_views(sgv0, sgv1, inputs=True, outputs=False, swap=True)


def reroute_outputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Replace the outputs of the second of two views, for their consumers, by those of the first.

    Parameters
    ----------
    sgv0, sgv1
        As for `reroute_inputs`; with as many outputs. Their own operations are not changed.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x, y = graph.constant(2.0), graph.constant(3.0)
    >>> z = abs(y)
    >>> _ = reroute_outputs(x.op, y.op)
    >>> cytape.Session(graph).run(z)
    np.float64(2.0)
    """
    return _reroute_views(sgv0, sgv1, inputs=False, outputs=True, swap=False)


def swap_outputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Exchange the outputs of two views, for their consumers; otherwise as `reroute_outputs`."""
    return _reroute_views(sgv0, sgv1, inputs=False, outputs=True, swap=True)


def reroute_ios(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Reroute inputs and outputs in one edit: `reroute_inputs` and `reroute_outputs`."""
    return _reroute_views(sgv0, sgv1, inputs=True, outputs=True, swap=False)


def swap_ios(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Exchange two views in one edit: `swap_inputs` and `swap_outputs`."""
    return _reroute_views(sgv0, sgv1, inputs=True, outputs=True, swap=True)


def _reroute_views(
    sgv0: Any, sgv1: Any, inputs: bool, outputs: bool, swap: bool
) -> tuple[SubGraphView, SubGraphView]:
    view0, view1 = views_of_one_graph(sgv0, sgv1)
    graph = view0.graph if view0 else view1.graph
    changes: Changes = {}
    new: dict[int, int] = {}
    if outputs:
        new_outputs = replaced_symbols(graph, view0.output_symbols, view1.output_symbols, swap)
        changes = rerouted(graph, new_outputs, None, [*view0.nodes, *view1.nodes])
    if inputs:
        new = replaced_symbols(graph, view0.input_symbols, view1.input_symbols, swap)
        merge(changes, inputs_rerouted(view0, view1, new))
    if graph is not None:
        graph.rewire(changes, {})
    follow_inputs(view0, view1, new)
    return view0, view1


def views_of_one_graph(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Return two views, or raise if they are views of two graphs."""
    view0, view1 = make_view(sgv0), make_view(sgv1)
    if view0 and view1 and view0.graph is not view1.graph:
        raise ValueError("the two views are of two graphs")
    return view0, view1


def inputs_rerouted(view0: SubGraphView, view1: SubGraphView, new: dict[int, int]) -> Changes:
    """Return the changes that make two views read other symbols."""
    allowed = [*view0.nodes, *view1.nodes]
    for view in view0, view1:
        for t in view.passthroughs:  # their consumers are rerouted, too
            allowed += view.graph.consumer_nodes(view.graph.symbol_of(t))
    return rerouted(view0.graph if view0 else view1.graph, new, allowed)


def follow_inputs(view0: SubGraphView, view1: SubGraphView, new: dict[int, int]) -> None:
    """Update the inputs of two views."""
    for view in view0, view1:
        view.assign_from(view.with_inputs_replaced(new))


def merge(changes: Changes, more: Changes) -> None:
    """Add changes to others."""
    for node, inputs in more.items():
        changes.setdefault(node, {}).update(inputs)
