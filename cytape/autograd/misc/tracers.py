"""Traces of functions: graphs of their calls, which run again without the functions."""

from functools import partial

from cytape.autograd.tracer import Node, trace
from cytape.autograd.util import subvals, toposort
from cytape.autograd.wrap_util import wraps


class ConstGraphNode(Node):
    """A call that can be repeated with other values of its traced arguments."""

    __slots__ = ["parents", "partial_fun"]

    def __init__(self, value, fun, args, kwargs, parent_argnums, parents):
        def partial_fun(partial_args):
            return fun(*subvals(args, zip(parent_argnums, partial_args, strict=True)), **kwargs)

        args = subvals(args, [(argnum, None) for argnum in parent_argnums])  # frees the values
        self.parents = parents
        self.partial_fun = partial_fun

    def initialize_root(self):
        """Set the parents of an argument's node, which has none."""
        self.parents = ()


def const_graph_unary(fun):
    """Make a function of one argument run once, and repeat its calls of primitives afterwards."""
    graph = []
    to_trace = [fun]  # freed after its only call

    def maybe_cached_fun(x):
        if graph:
            values = {graph[0]: x}
            for node in graph[1:]:
                values[node] = node.partial_fun([values[parent] for parent in node.parents])
            return values[graph[-1]]
        value, end = trace(ConstGraphNode.new_root(), to_trace.pop(), x)
        if end is None:
            raise Exception("Output is independent of input")
        graph.extend(reversed(list(toposort(end))))
        return value

    return maybe_cached_fun


def const_graph(fun, *args, **kwargs):
    """Make a function run once, and repeat its calls of primitives afterwards.

    Parameters
    ----------
    fun : callable
        Its control flow must not depend on its arguments.
    *args, **kwargs
        Arguments to fix.

    See Also
    --------
    cytape.function : Traces that are optimized, and kept for each kind of arguments.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> def f(x, y):
    ...     print("runs")
    ...     return np.sin(x) * y
    >>> g = const_graph(f)
    >>> float(g(0.0, 2.0))
    runs
    0.0
    >>> float(g(np.pi / 2, 2.0))
    2.0
    """
    remaining = partial(fun, *args, **kwargs)
    cached = const_graph_unary(lambda args: remaining(*args))
    return wraps(fun)(lambda *args: cached(args))


class FullGraphNode(Node):
    """A call, with its value and all arguments."""

    __slots__ = ["recipe", "value"]

    def __init__(self, value, fun, args, kwargs, parent_argnums, parents):
        self.value = value
        self.recipe = (fun, args, kwargs, list(zip(parent_argnums, parents, strict=True)))

    def initialize_root(self):
        """Set the value and the recipe of an argument's node."""
        self.value = None
        self.recipe = (lambda x: x, (), {}, [])


def full_graph(fun, *args, **kwargs):
    """Return the last node of a function's trace, whose recipe refers to the nodes before it.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> float(full_graph(np.sin, 0.0).value)
    0.0
    """
    return trace(FullGraphNode.new_root(), lambda args: fun(*args, **kwargs), args)[1]
