"""Session: runs of a graph, with fetches and feeds."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from cytape.errors import GraphError
from cytape.graph.model.default_graph import get_default_graph
from cytape.graph.model.failures import where_built
from cytape.graph.model.graph import Graph, placeholder_op
from cytape.graph.model.operation import Operation
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run.executable import Executable
from cytape.graph.run.interpreter import needed_nodes
from cytape.graph.sessions.feeding import checked_feeds
from cytape.graph.sessions.run_trace import RunTrace
from cytape.tensor import nest
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import constant
from cytape.tensor.recording.state import building_into, unrecorded
from cytape.tensor.references import TensorReference
from cytape.tensor.structures import register_dataclasses
from cytape.tensor.tensor import Tensor, data_of
from cytape.tensor.values.spec import UnknownShape
from cytape.tensor.variable import Variable

__all__ = ["Session"]

MOST_EXECUTABLES = 64  # for combinations of fetches and feeds


class Session:
    """An object that runs a graph or parts of it.

    Parameters
    ----------
    graph : Graph, optional
        By default the one that is being built.

    Raises
    ------
    RuntimeError
        If there is none.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.placeholder("float64", shape=(None,), name="x")
    >>> y = np.sum(x * x)
    >>> with cytape.Session(graph) as session:
    ...     session.run({"y": y, "x": x}, {x: [1.0, 2.0]})
    {'y': np.float64(5.0), 'x': array([1., 2.])}
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self._graph = get_default_graph() if graph is None else graph
        self._closed = False
        self._version: Any = None
        self._executables: dict[Any, Executable] = {}

    @property
    def graph(self) -> Graph:
        """The graph that this session runs."""
        return self._graph

    def run(self, fetches: Any, feed_dict: Any = None, options: RunTrace | None = None) -> Any:
        """Compute the fetches, and only the ops that they depend on.

        Parameters
        ----------
        fetches : Tensor, Operation, Variable, IndexedSlices or str, or a structure of these
            Tensors to compute and operations to run. Structures are nested lists, tuples, named
            tuples and dicts; strings are names of tensors (``"x:0"``) or operations (``"x"``). For
            an eager tensor, such as the zero gradient of an unused source, its value is returned.
        feed_dict : mapping or list of pairs, optional
            Values of placeholders, and of other tensors instead of the results of their operations.
            Keys are tensors, their names (``"x:0"``) or references (`Tensor.ref`).
        options : RunTrace, optional
            Records the time and the memory of each step; the run is slower.

        Returns
        -------
        structure
            As `fetches`: arrays (NumPy scalars for 0-d tensors) for tensors, None for operations,
            and for variables their values at the end of the run.

        Raises
        ------
        GraphError
            If a placeholder is needed that has not been fed.
        ValueError, TypeError
            If a fed value does not fit its tensor, or a tensor belongs to another graph.
        KeyError
            If a name is unknown.
        RuntimeError
            If the session is closed.
        Exception
            Any error of an operation, with a note that names the operation.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> x = graph.placeholder("float64", name="x")
        >>> y = 2 * x
        >>> session = cytape.Session(graph)
        >>> session.run([y, x * y], {x: 3.0})
        [np.float64(6.0), np.float64(18.0)]
        >>> session.run(x * y, {y: 1.0, "x:0": 5.0})
        np.float64(5.0)
        """
        if self._closed:
            raise RuntimeError("this session is closed")
        wanted = _Wanted(self._graph)
        try:
            structure = nest.map_structure(wanted.add, fetches)
        except TypeError:
            if register_dataclasses(nest.flatten(fetches)):
                return self.run(fetches, feed_dict, options)
            raise
        feeds = checked_feeds(self._graph, feed_dict)
        executable = self._executable(wanted, tuple(feeds))
        with building_into(None), unrecorded():
            results = executable.run(list(feeds.values()), options)
        arrays = [_own(result.numpy()) for result in results]
        return nest.map_structure(lambda result: result(arrays), structure)

    def _executable(self, wanted: _Wanted, feeds: tuple[int, ...]) -> Executable:
        """Return the executable for fetches and feeds; cached until the graph changes."""
        graph = self._graph
        if graph.version != self._version:
            self._executables.clear()
            self._version = graph.version
        nodes = tuple(node for node in wanted.nodes if not _is_fed(graph, node, feeds))
        key = (tuple(wanted.symbols), nodes, feeds)
        found = self._executables.pop(key, None)
        if found is None:
            _check_placeholders(graph, wanted, feeds)
            found = Executable(Subgraph(graph, feeds, key[0], nodes))
            if len(self._executables) >= MOST_EXECUTABLES:
                del self._executables[next(iter(self._executables))]
        self._executables[key] = found  # most recently used last
        return found

    def close(self) -> None:
        """Close the session: it cannot run any more.

        Examples
        --------
        >>> import cytape
        >>> session = cytape.Session(cytape.Graph())
        >>> session.close()
        """
        self._closed = True
        self._executables.clear()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Wanted:
    """The nodes and symbols to run for a structure of fetches.

    Attributes
    ----------
    symbols : list of int
    nodes : dict of int
        Nodes that also run, for their side effects; an ordered set.
    """

    def __init__(self, graph: Graph) -> None:
        self.symbols: list[int] = []
        self.nodes: dict[int, None] = {}
        self._graph = graph
        self._places: dict[int, int] = {}  # symbol -> its place in `symbols`

    def add(self, fetch: Any) -> Callable[[list[Any]], Any]:
        """Add a fetch; return the function from the arrays of `symbols` to its result."""
        if isinstance(fetch, TensorReference):
            fetch = fetch.deref()
        if isinstance(fetch, Variable):
            return lambda arrays: fetch.numpy().copy()[()]
        if isinstance(fetch, IndexedSlices):
            shape = fetch.dense_shape
            values, indices = self.add(fetch.values), self.add(fetch.indices)
            # The shape, that of a tensor, is known only at run time.
            like = (
                self.add(shape.tensor())
                if isinstance(shape, UnknownShape) and shape.tensor is not None else None)
            return lambda arrays: IndexedSlices(
                constant(values(arrays)), constant(indices(arrays)),
                shape if like is None else np.shape(like(arrays)))
        if type(fetch) is Tensor and fetch.graph is None:
            value = data_of(fetch)
            return lambda arrays: _own(value)
        element = self._graph.as_graph_element(fetch)
        if isinstance(element, Operation):
            self.nodes[element.node] = None
            return lambda arrays: None
        symbol = self._graph.symbol_of(element)
        place = self._places.setdefault(symbol, len(self.symbols))
        if place == len(self.symbols):
            self.symbols.append(symbol)
        return lambda arrays: arrays[place]


def _is_fed(graph: Graph, node: int, feeds: tuple[int, ...]) -> bool:
    outputs = graph.outputs_of(node)
    return len(outputs) > 0 and all(symbol in feeds for symbol in outputs)


def _check_placeholders(graph: Graph, wanted: _Wanted, feeds: tuple[int, ...]) -> None:
    for node in needed_nodes(graph, wanted.symbols, feeds, list(wanted.nodes)):
        if graph.ops[node] is placeholder_op:
            [symbol] = graph.outputs_of(node)
            where = where_built(graph.location_of(node))
            raise GraphError(
                f"placeholder {graph.describe(symbol)}{where} has no value: feed one, as in "
                f"session.run(fetches, feed_dict={{{graph.tensor_name_of(symbol)!r}: value}})"
            )


def _own(array: np.ndarray) -> Any:
    """Return a result that the caller owns and may write to."""
    return array.copy() if array.ndim else array[()]
