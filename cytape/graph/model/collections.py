"""Collections: lists of objects that a graph stores under names."""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from typing import Any, NamedTuple

from cytape.tensor.tensor import Tensor
from cytape.tensor.values.cached_property import cached_property


class _Position(NamedTuple):
    """Reference to a tensor of the graph that does not keep the graph alive."""

    symbol: int


class Collection(MutableSequence[Any]):
    """A list that a graph stores, with the interface of a list.

    Parameters
    ----------
    graph : Graph

    Examples
    --------
    >>> import cytape
    >>> losses = cytape.Graph().get_collection_ref("losses")
    >>> losses.append("the first")
    >>> losses, len(losses)
    (Collection(['the first']), 1)
    """

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._kept: list[Any] = []

    def _keep(self, item: Any) -> Any:
        graph = item.graph if isinstance(item, Tensor) else None
        if graph is not None and graph is self._graph:
            return _Position(graph.symbol_of(item))
        return item

    def _restore(self, kept: Any) -> Any:
        return self._graph.tensor_at(kept.symbol) if isinstance(kept, _Position) else kept

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._restore(kept) for kept in self._kept[index]]
        return self._restore(self._kept[index])

    def __setitem__(self, index: Any, item: Any) -> None:
        if isinstance(index, slice):
            self._kept[index] = [self._keep(each) for each in item]
        else:
            self._kept[index] = self._keep(item)

    def __delitem__(self, index: Any) -> None:
        del self._kept[index]

    def insert(self, index: int, value: Any) -> None:
        """Put an item before the one at a position.

        Parameters
        ----------
        index : int
        value : object
        """
        self._kept.insert(index, self._keep(value))

    def __repr__(self) -> str:
        return f"Collection({list(self)!r})"


class Collections:
    """Methods of a graph that store objects under names."""

    @cached_property
    def _lists(self) -> dict[Any, Collection]:
        return {}

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Append an object to the list that the graph stores under a name.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> graph.add_to_collection("losses", "the first")
        >>> graph.get_collection("losses")
        ['the first']
        """
        self.get_collection_ref(name).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Append an object to several lists, once to each.

        Parameters
        ----------
        names : hashable or iterable of hashable
        value : object

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> graph.add_to_collections(["losses", "all"], 1.0)
        >>> graph.get_all_collection_keys()
        ['losses', 'all']
        """
        several = isinstance(names, Iterable) and not isinstance(names, str)
        for name in dict.fromkeys(names if several else [names]):
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """Return a copy of the list that the graph stores under a name, empty if there is none.

        Parameters
        ----------
        name : hashable
        scope : str, optional
            Return only objects whose name begins with this prefix.

        Examples
        --------
        >>> import cytape
        >>> cytape.Graph().get_collection("losses")
        []
        """
        kept = list(self._lists.get(name, ()))
        if scope is None:
            return kept
        return [item for item in kept if str(getattr(item, "name", "")).startswith(scope)]

    def get_collection_ref(self, name: Any) -> Collection:
        """Return the list itself that the graph stores under a name, not a copy.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> graph.get_collection_ref("losses").append(1.0)
        >>> graph.get_collection("losses")
        [1.0]
        """
        found = self._lists.get(name)
        if found is None:
            found = self._lists[name] = Collection(self)
        return found

    def get_all_collection_keys(self) -> list[Any]:
        """Return the names of the graph's collections.

        Examples
        --------
        >>> import cytape
        >>> cytape.Graph().get_all_collection_keys()
        []
        """
        return [name for name, kept in self._lists.items() if len(kept)]

    def clear_collection(self, name: Any) -> None:
        """Delete the list that the graph stores under a name.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> graph.add_to_collection("losses", 1.0)
        >>> graph.clear_collection("losses")
        >>> graph.get_collection("losses")
        []
        """
        self._lists.pop(name, None)
