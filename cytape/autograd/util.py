"""Small helpers on tuples and graphs of nodes, and a deprecated check of gradients."""

import importlib
import operator
import warnings


def subvals(x, ivs):
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


def subval(x, i, v):
    """Return a tuple of the elements of `x` with the one at index `i` replaced by `v`."""
    return subvals(x, [(i, v)])


def func(f):
    """Return the function unchanged; Python 2 needed it for methods."""
    return f


def toposort(end_node, parents=operator.attrgetter("parents")):
    """Yield the ancestors of a node and itself, each of them before its parents.

    Examples
    --------
    >>> graph = {"sum": ["x", "square"], "square": ["x", "x"], "x": []}
    >>> list(toposort("sum", graph.get))
    ['sum', 'square', 'x']
    """
    n_children, open_nodes, ready = {}, [end_node], [end_node]
    while open_nodes:
        node = open_nodes.pop()
        if node not in n_children:
            open_nodes += parents(node)
        n_children[node] = n_children.get(node, 0) + 1
    while ready:
        node = ready.pop()
        yield node
        for parent in parents(node):
            n_children[parent] -= 1
            if not n_children[parent]:
                ready.append(parent)


def quick_grad_check(fun, arg0, extra_args=(), kwargs=None, **tolerances):
    """Check the gradient of a function in its first argument (deprecated).

    Use `test_util.check_grads`.
    """
    warnings.warn(
        "quick_grad_check is deprecated: use autograd.test_util.check_grads", stacklevel=2)
    checks = importlib.import_module("cytape.autograd.test_util")  # which imports this module
    checks.check_grads(
        lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)
