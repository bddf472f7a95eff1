"""What stands for the tensors of a trace where it has been built once more in another graph.

The gradient function of a call with a gradient of its own may use any tensors of the trace that it
was called in. In another graph it is called with substitutes for these.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from cytape.ops.symbolic import SymbolicGraph
from cytape.tensor.tensor import Tensor

__all__ = ["Substitution", "substitute"]


class _Active(threading.local):
    def __init__(self) -> None:
        self.substitutions: list[Substitution] = []


_active = _Active()


class Substitution:
    """The tensors of one graph that stand for those of another.

    It does not keep the graph alive, whose nodes refer to it.

    Parameters
    ----------
    source, graph : SymbolicGraph
        Whose tensors are substituted, and where the substitutes are.
    symbols : dict of int to Tensor
        The substitutes that there are already, by the source's symbols.
    """

    def __init__(
        self, source: SymbolicGraph, graph: SymbolicGraph, symbols: dict[int, Tensor]
    ) -> None:
        self.source = source
        self._graph = weakref.ref(graph)
        self._places: dict[int, int | Tensor] = {}
        self.add(symbols.keys(), symbols.values())

    def add(self, symbols: Iterable[int], tensors: Iterable[Tensor]) -> None:
        """Take note of more of them."""
        graph: Any = self._graph()
        for symbol, tensor in zip(symbols, tensors, strict=True):
            own = tensor.graph is graph
            self._places[symbol] = graph.symbol_of(tensor) if own else tensor

    def find(self, tensor: Tensor) -> Tensor:
        """Return what stands for a tensor, itself if nothing does."""
        if tensor.graph is not self.source:
            return tensor
        place = self._places.get(self.source.symbol_of(tensor), tensor)
        graph: Any = self._graph()
        return graph.tensor_at(place) if isinstance(place, int) else place

    def wrapped(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes of a call with rules that use the substitutes."""
        rules = ("backward", "jvp")
        return {key: self._wrap(x) if key in rules and x else x for key, x in attrs.items()}

    def _wrap(self, rule: Callable) -> Callable:
        def substituted(*args: Any) -> Any:
            _active.substitutions.append(self)
            try:
                return rule(*args)
            finally:
                _active.substitutions.pop()

        return substituted


def substitute(tensor: Tensor) -> Tensor:
    """Return what stands for a tensor at present, itself if nothing does."""
    for substitution in reversed(_active.substitutions):
        tensor = substitution.find(tensor)
    return tensor
