"""Selection of operations and tensors by name, regular expression or predicate."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from cytape.graph.editor.listed_arguments import make_list_of_op, make_list_of_t, symbols_of
from cytape.graph.model.graph import Graph
from cytape.graph.model.operation import Operation
from cytape.tensor.tensor import Tensor

__all__ = [
    "filter_ops",
    "filter_ops_from_regex",
    "filter_ts",
    "filter_ts_from_regex",
    "get_name_scope_ops",
    "select_ops",
    "select_ops_and_ts",
    "select_ts",
]

# Prefixes of regular expressions that match only operations or only tensors.
FOR_OPS, FOR_TENSORS = "(?#ops)", "(?#ts)"


def filter_ops(ops: Any, positive_filter: bool | Callable[[Operation], bool]) -> list[Operation]:
    """Return the operations for which a function returns true.

    Parameters
    ----------
    ops : Graph, Operation or iterable of Operation
    positive_filter : callable, or True
        True: all of them.

    Examples
    --------
    >>> import cytape
    >>> y = abs(cytape.Graph().placeholder("float64", name="x"))
    >>> filter_ops(y.graph, lambda op: op.type == "Absolute")
    [<Operation 'Absolute' (Absolute)>]
    """
    return _filtered(make_list_of_op(ops), positive_filter)


def filter_ops_from_regex(ops: Any, regex: str | re.Pattern[str]) -> list[Operation]:
    """Return the operations among some whose names match.

    Parameters
    ----------
    ops : Graph, Operation or iterable of Operation
    regex : str or Pattern

    Examples
    --------
    >>> import cytape
    >>> y = abs(cytape.Graph().placeholder("float64", name="x"))
    >>> filter_ops_from_regex(y.graph, "^A")
    [<Operation 'Absolute' (Absolute)>]
    """
    pattern = _pattern(regex)
    return filter_ops(ops, lambda op: pattern.search(op.name) is not None)


def filter_ts(ops: Any, positive_filter: bool | Callable[[Tensor], bool]) -> list[Tensor]:
    """Return the inputs and outputs of operations for which a function returns true.

    Parameters
    ----------
    ops, positive_filter
        As for `filter_ops`.

    Returns
    -------
    list of Tensor
        Each once, inputs first.

    Examples
    --------
    >>> import cytape
    >>> y = abs(cytape.Graph().placeholder("float64", name="x"))
    >>> [t.name for t in filter_ts(y.op, True)]
    ['x:0', 'Absolute:0']
    """
    ops = make_list_of_op(ops)
    found: dict[int, None] = {}
    for symbols in ("inputs_of", "outputs_of"):
        for op in ops:
            found.update((symbol, None) for symbol in getattr(op.graph, symbols)(op.node))
    return _filtered([ops[0].graph.tensor_at(symbol) for symbol in found], positive_filter)


def filter_ts_from_regex(ops: Any, regex: str | re.Pattern[str]) -> list[Tensor]:
    """Return the inputs and outputs of some operations whose names match.

    Parameters are those of `filter_ops_from_regex`; names of tensors are as ``"op:0"``.

    Examples
    --------
    >>> import cytape
    >>> y = abs(cytape.Graph().placeholder("float64", name="x"))
    >>> [t.name for t in filter_ts_from_regex(y.graph, "^A")]
    ['Absolute:0']
    """
    pattern = _pattern(regex)
    return filter_ts(ops, lambda t: pattern.search(t.name) is not None)


def get_name_scope_ops(ops: Any, scope: str) -> list[Operation]:
    """Return the operations among some that are in a scope.

    Parameters
    ----------
    ops : Graph, Operation or iterable of Operation
    scope : str
        With or without a slash at the end.

    Examples
    --------
    >>> import cytape
    >>> y = abs(cytape.Graph().placeholder("float64", name="inputs/x"))
    >>> get_name_scope_ops(y.graph, "inputs")
    [<Operation 'inputs/x' (Placeholder)>]
    """
    if not isinstance(scope, str):
        raise TypeError(f"a scope is a string, got {scope!r}")
    scope = re.escape(scope.removesuffix("/"))
    return filter_ops_from_regex(ops, f"^{scope}(/.*)?$" if scope else "")


def select_ops(
    *args: Any, graph: Graph | None = None,
    positive_filter: Callable[[Operation], bool] | None = None, restrict_ops_regex: bool = False,
) -> list[Operation]:
    """Return operations that are given, or whose names match.

    Parameters
    ----------
    *args : Operation, Graph, iterable of these and of tensors, or str or Pattern
        Tensors are passed over, and so are regular expressions that begin with ``(?#ts)``.
    graph : Graph, optional
        Where names are looked for.
    positive_filter : callable, optional
        Leaves out operations for which it returns false.
    restrict_ops_regex : bool, optional
        Whether regular expressions count only if they begin with ``(?#ops)``.

    Returns
    -------
    list of Operation
        Each once.

    Raises
    ------
    ValueError
        If there is a regular expression, and no graph; or an operation of another graph.
    TypeError
        If something else is given.

    Examples
    --------
    >>> import cytape
    >>> y = abs(cytape.Graph().placeholder("float64", name="x"))
    >>> select_ops("^A", y.op.inputs[0].op, graph=y.graph)
    [<Operation 'Absolute' (Absolute)>, <Operation 'x' (Placeholder)>]
    """
    found: dict[Operation, None] = {}
    for arg in args:
        if isinstance(arg, (str, re.Pattern)):
            pattern = _regex(arg, graph, FOR_OPS if restrict_ops_regex else "", FOR_TENSORS)
            ops = [] if pattern is None else filter_ops_from_regex(graph, pattern)
        else:
            ops = make_list_of_op(arg, ignore_ts=True)
        for op in ops:
            if positive_filter is None or positive_filter(op):
                found[op] = None
    return make_list_of_op([*found])


def select_ts(
    *args: Any, graph: Graph | None = None, positive_filter: Callable[[Tensor], bool] | None = None,
    restrict_ts_regex: bool = False,
) -> list[Tensor]:
    """Return tensors that are given, or whose names match.

    Parameters
    ----------
    *args : Tensor, Graph, iterable of these and of operations, or str or Pattern
        Operations are passed over, and so are regular expressions that begin with ``(?#ops)``.
    graph, positive_filter, restrict_ts_regex
        As for `select_ops`, of tensors; expressions for them begin with ``(?#ts)``.

    Returns
    -------
    list of Tensor
        Each once.

    Examples
    --------
    >>> import cytape
    >>> y = abs(cytape.Graph().placeholder("float64", name="x"))
    >>> [t.name for t in select_ts(".*:0", graph=y.graph)]
    ['x:0', 'Absolute:0']
    """
    found: list[Tensor] = []
    for arg in args:
        if isinstance(arg, (str, re.Pattern)):
            pattern = _regex(arg, graph, FOR_TENSORS if restrict_ts_regex else "", FOR_OPS)
            ts = [] if pattern is None else filter_ts_from_regex(graph, pattern)
        else:
            ts = make_list_of_t(arg, ignore_ops=True)
        found += [t for t in ts if positive_filter is None or positive_filter(t)]
    found = make_list_of_t(found)
    return list(dict(zip(symbols_of(found), found, strict=True)).values())


def select_ops_and_ts(
    *args: Any, graph: Graph | None = None, positive_filter: Callable[[Any], bool] | None = None
) -> tuple[list[Operation], list[Tensor]]:
    """Return operations and tensors that are given, or whose names match.

    Parameters
    ----------
    *args : Operation, Tensor, Graph, iterable of these, or str or Pattern
        Regular expressions describe operations, unless they begin with ``(?#ts)``.
    graph, positive_filter
        As for `select_ops`.

    Returns
    -------
    ops : list of Operation
    ts : list of Tensor

    Examples
    --------
    >>> import cytape
    >>> y = abs(cytape.Graph().placeholder("float64", name="x"))
    >>> ops, ts = select_ops_and_ts("^A", "(?#ts)^x", graph=y.graph)
    >>> [op.name for op in ops], [t.name for t in ts]
    (['Absolute'], ['x:0'])
    """
    return (
        select_ops(*args, graph=graph, positive_filter=positive_filter),
        select_ts(*args, graph=graph, positive_filter=positive_filter, restrict_ts_regex=True))


def _filtered(items: list[Any], positive_filter: Any) -> list[Any]:
    if positive_filter is True:
        return items
    if items and not callable(positive_filter):
        raise TypeError(f"positive_filter must be a function, or True, got {positive_filter!r}")
    return list(filter(positive_filter, items))


def _pattern(regex: str | re.Pattern[str]) -> re.Pattern[str]:
    if not isinstance(regex, (str, re.Pattern)):
        raise TypeError(f"expected a regular expression, got {regex!r}")
    return re.compile(regex)


def _regex(
    regex: str | re.Pattern[str], graph: Any, wanted: str, others: str
) -> re.Pattern[str] | None:
    """Return a pattern, None if it lacks a required prefix or has the prefix of another kind."""
    pattern = _pattern(regex)
    if pattern.pattern.startswith(others) or not pattern.pattern.startswith(wanted):
        return None
    if not isinstance(graph, Graph):
        raise ValueError(
            f"a search for {pattern.pattern!r} needs a graph: pass graph=, got {graph!r}"
        )
    return pattern
