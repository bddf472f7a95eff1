"""Views made of operations and tensors, names, or scopes."""

from __future__ import annotations

from typing import Any

from cytape.graph.editor.selected_ops import get_name_scope_ops, select_ops_and_ts
from cytape.graph.editor.subgraph_view import SubGraphView
from cytape.graph.model.graph import Graph

__all__ = ["make_view", "make_view_from_scope", "sgv", "sgv_scope"]


def make_view(*args: Any, graph: Graph | None = None) -> SubGraphView:
    """Return a view of operations and tensors that are given, or whose names match.

    Parameters
    ----------
    *args
        As for `select_ops_and_ts`; or a view, which is returned.
    graph : Graph, optional
        Where names are looked for, and to which all of it has to belong.

    Raises
    ------
    ValueError, TypeError
        As for `select_ops`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.graph import editor
    >>> y = abs(cytape.Graph().placeholder("float64", name="x"))
    >>> editor.sgv(y.op).inputs[0].name
    'x:0'
    """
    if len(args) == 1 and isinstance(args[0], SubGraphView):
        view = args[0]
    else:
        view = SubGraphView(*select_ops_and_ts(*args, graph=graph))
    if graph is not None and view.graph not in (graph, None):
        raise ValueError("the view belongs to another graph than the given one")
    return view


def make_view_from_scope(scope: str, graph: Graph) -> SubGraphView:
    """Return a view of the operations in a scope.

    Parameters
    ----------
    scope : str
        With or without a slash at the end.
    graph : Graph

    Examples
    --------
    >>> import cytape
    >>> from cytape.graph import editor
    >>> y = abs(cytape.Graph().placeholder("float64", name="inputs/x"))
    >>> editor.sgv_scope("inputs", y.graph).ops
    (<Operation 'inputs/x' (Placeholder)>,)
    """
    return SubGraphView(get_name_scope_ops(graph, scope))


sgv = make_view
sgv_scope = make_view_from_scope
