"""Small helpers on tuples and graphs of nodes, and a deprecated check of gradients."""

import importlib
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["func", "quick_grad_check", "subval", "subvals", "toposort"]


def subvals(x: Iterable, ivs: Iterable[tuple[int, Any]]) -> tuple:
    """Return a tuple of the elements of `x` with some replaced, given as pairs of index and value.

    Examples
    --------
    >>> subvals((1, 2, 3), [(0, 10), (2, 30)])
    (10, 2, 30)
    """
    values = list(x)
    for i, value in ivs:
        values[i] = value
    return tuple(values)


def subval(x: Iterable, i: int, v: Any) -> tuple:
    """Return a tuple of the elements of `x` with the one at index `i` replaced by `v`."""
    return subvals(x, [(i, v)])


def func(f: Callable) -> Callable:
    """Return the function unchanged; Python 2 needed it for methods."""
    return f


def toposort(
    end_node: Any, parents: Callable[[Any], Iterable] = operator.attrgetter("parents")
) -> Iterator[Any]:
    """Yield the ancestors of a node and itself, each of them before its parents.

    Examples
    --------
    >>> graph = {"sum": ["x", "square"], "square": ["x", "x"], "x": []}
    >>> list(toposort("sum", graph.get))
    ['sum', 'square', 'x']
    """
    n_children: dict[Any, int] = {}
    open_nodes = [end_node]
    while open_nodes:
        node = open_nodes.pop()
        if node not in n_children:
            open_nodes += parents(node)
        n_children[node] = n_children.get(node, 0) + 1
    ready = [end_node]
    while ready:
        node = ready.pop()
        yield node
        for parent in parents(node):
            n_children[parent] -= 1
            if not n_children[parent]:
                ready.append(parent)


def quick_grad_check(
    fun: Callable, arg0: Any, extra_args: tuple = (), kwargs: dict | None = None, **tolerances: Any
) -> None:
    """Check the gradient of a function in its first argument (deprecated).

    Use `test_util.check_grads`.
    """
    warnings.warn(
        "quick_grad_check is deprecated: use autograd.test_util.check_grads", stacklevel=2)
    checks = importlib.import_module("cytape.autograd.test_util")  # which imports this module
    checks.check_grads(
        lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)
