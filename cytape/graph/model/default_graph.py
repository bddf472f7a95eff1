"""Functions that act on the graph being built; some have no effect outside of graphs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from numpy.typing import DTypeLike

from cytape.graph.model.graph import Graph
from cytape.graph.model.operation import Operation
from cytape.tensor.recording.state import current_graph
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.user_warnings import warn
from cytape.tensor.variable import Variable

__all__ = [
    "colocate_with",
    "control_dependencies",
    "device",
    "get_default_graph",
    "get_variable",
    "group",
    "name_scope",
    "no_op",
    "placeholder",
]


def get_default_graph() -> Graph:
    """Return the graph that this thread builds.

    Raises
    ------
    RuntimeError
        If it builds none.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> with graph.as_default():
    ...     get_default_graph() is graph
    True
    """
    graph = current_graph()
    if graph is None:
        raise RuntimeError(
            "no graph is being built: build one inside `with graph.as_default():`, where graph is "
            "a cytape.Graph()"
        )
    return graph


def placeholder(
    dtype: DTypeLike, shape: Iterable[int | None] | None = None, name: str | None = None
) -> Tensor:
    """Add a tensor whose value is given when the graph runs to the graph that is being built.

    As `Graph.placeholder` of the graph that `get_default_graph` returns.

    Examples
    --------
    >>> import cytape
    >>> with cytape.Graph().as_default():
    ...     cytape.placeholder("float64", (None, 3), name="x")
    <Tensor 'x:0' (float64, shape (None, 3))>
    """
    return get_default_graph().placeholder(dtype, shape, name)


def get_variable(
    name: str, shape: Any = None, dtype: DTypeLike | None = None, initializer: Any = None,
    trainable: bool = True,
) -> Variable:
    """Return the variable of a name in the graph that is being built.

    As `Graph.get_variable` of the graph that `get_default_graph` returns.

    Examples
    --------
    >>> import cytape
    >>> with cytape.Graph().as_default():
    ...     get_variable("v", initializer=[1.0, 2.0])
    Variable([1., 2.])
    """
    return get_default_graph().get_variable(name, shape, dtype, initializer, trainable)


def name_scope(name: str | None) -> AbstractContextManager[str]:
    """Build ops whose names begin with a name, as `Graph.name_scope`. Outside of graphs, no effect.

    Examples
    --------
    >>> import cytape
    >>> with cytape.Graph().as_default(), name_scope("layer"):
    ...     cytape.placeholder("float64", name="x").name
    'layer/x:0'
    """
    graph = current_graph()
    return nullcontext(name or "") if graph is None else graph.name_scope(name)


def control_dependencies(control_inputs: Any) -> AbstractContextManager[None]:
    """Build ops that run after others, as `Graph.control_dependencies`.

    Outside of graphs, where ops run immediately, it has no effect.

    Examples
    --------
    >>> import cytape
    >>> with cytape.Graph().as_default(), control_dependencies([no_op(name="first")]):
    ...     no_op().control_inputs
    (<Operation 'first' (NoOp)>,)
    """
    graph = current_graph()
    return nullcontext() if graph is None else graph.control_dependencies(control_inputs)


def device(label: str | None) -> AbstractContextManager[None]:
    """Build ops with a device label, as `Graph.device`. Outside of graphs, no effect.

    Examples
    --------
    >>> import cytape
    >>> with cytape.Graph().as_default(), device("cpu:1"):
    ...     cytape.placeholder("float64").device
    'cpu:1'
    """
    graph = current_graph()
    if graph is None and re.search("gpu|cuda|tpu", str(label).lower()):
        warn(f"operations run on the CPU: the device {label!r} has no effect")
    return nullcontext() if graph is None else graph.device(label)


def colocate_with(op: Operation | Tensor) -> AbstractContextManager[None]:
    """Build ops with the device label of another op. Outside of graphs, no effect.

    Examples
    --------
    >>> import cytape
    >>> with cytape.Graph().as_default():
    ...     with device("cpu:1"):
    ...         x = cytape.placeholder("float64")
    ...     with colocate_with(x):
    ...         no_op().device
    'cpu:1'
    """
    graph = current_graph()
    return nullcontext() if graph is None else graph.colocate_with(op)


def no_op(name: str | None = None) -> Operation:
    """Add an operation that does nothing to the graph that is being built.

    As `Graph.no_op` of the graph that `get_default_graph` returns.

    Examples
    --------
    >>> import cytape
    >>> with cytape.Graph().as_default():
    ...     no_op()
    <Operation 'NoOp' (NoOp)>
    """
    return get_default_graph().no_op(name)


def group(*inputs: Any, name: str | None = None) -> Operation:
    """Add an operation that runs after all of some others.

    As `Graph.group` of the graph that `get_default_graph` returns.

    Examples
    --------
    >>> import cytape
    >>> with cytape.Graph().as_default():
    ...     group(no_op(name="a"), no_op(name="b"), name="both").control_inputs
    (<Operation 'a' (NoOp)>, <Operation 'b' (NoOp)>)
    """
    return get_default_graph().group(*inputs, name=name)
