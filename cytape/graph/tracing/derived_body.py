"""DerivedBody: a body built again in a graph of its own, with its derivative built behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cytape.graph.tracing.body_tools import closed, inlined, like
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import symbolic_gradients, symbolic_tangents
from cytape.tensor.recording.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor

__all__ = ["DerivedBody"]


class DerivedBody:
    """A body and its derivative, while they are built.

    Parameters
    ----------
    body : ConcreteFunction
    suffix : str, optional
        Suffix of the graph's name, after the name of the body.

    Attributes
    ----------
    graph : FunctionGraph
    arguments, actual : list of Tensor
        Arguments added so far, and the values that calls pass for them, if these are known.
    inputs, outputs : list of Tensor
        Of the body, in the graph.
    first_of_derivative : int
        The first node after the body's.
    """

    def __init__(self, body: ConcreteFunction, suffix: str = "") -> None:
        self.body = body
        self.graph = FunctionGraph(body.name + suffix, current_graph())
        self.arguments: list[Tensor] = []
        self.actual: list[Tensor] = []

    def take(self, symbols: Iterable[int], actual: Iterable[Tensor] = ()) -> list[Tensor]:
        """Add arguments like some symbols of the body, for actual values."""
        self.actual += actual
        return self._added(like(self.graph, self.body.graph, symbols))

    def take_like(self, actual: Sequence[Tensor]) -> list[Tensor]:
        """Add arguments for actual values, of their specs."""
        self.actual += actual
        return self._added(self.graph.arguments([x.spec for x in actual]))

    def _added(self, arguments: list[Tensor]) -> list[Tensor]:
        self.arguments += arguments
        return arguments

    def build(self, inputs: list[Tensor]) -> None:
        """Build the body."""
        self.inputs = inputs
        with unrecorded(), building_into(self.graph):
            self.outputs = inlined(self.body, self.graph, inputs)
        self.first_of_derivative = self.graph.n_nodes

    def gradients(
        self, outputs: Iterable[Tensor], inputs: Iterable[Tensor], seeds: list[Tensor]
    ) -> list[Any]:
        """Build the gradients of outputs, which have the seeds, with respect to inputs."""
        with unrecorded(), building_into(self.graph):
            return symbolic_gradients(
                self.graph, self._symbols(outputs), self._symbols(inputs), seeds)

    def tangents(
        self, inputs: Iterable[Tensor], tangents: list[Tensor], outputs: Iterable[Tensor]
    ) -> list[Any]:
        """Build the tangents of outputs, given those of inputs."""
        with unrecorded(), building_into(self.graph):
            return symbolic_tangents(
                self.graph, self._symbols(inputs), tangents, self._symbols(outputs))

    def _symbols(self, tensors: Iterable[Tensor]) -> list[int]:
        return list(map(self.graph.symbol_of, tensors))

    def closed(self, results: Sequence[Tensor]) -> tuple[ConcreteFunction, list[Tensor]]:
        """Return a body that computes results, with the arguments it uses, and its inputs."""
        with unrecorded(), building_into(self.graph):
            body, passed, _ = closed(self.graph, (), self.arguments, self.actual, results)
        return body, passed
