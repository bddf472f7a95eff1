"""Places of tensors: a level (0: the graph being built, then graphs around it) and a symbol."""

from __future__ import annotations

from typing import Any

from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable

# Number of the graph (0: the one being built, then those around it), and symbol in it.
Place = tuple[int, int]


class Places:
    """A graph and those around it, from which it captures tensors.

    Parameters
    ----------
    graph : Graph

    Attributes
    ----------
    graphs : list of Graph
        The given one, then those around it: the levels of a `Place`.
    """

    def __init__(self, graph: Any) -> None:
        self.graphs: list[Any] = [graph]
        while (around := getattr(self.graphs[-1], "outer_graph", None)) is not None:
            self.graphs.append(around)
        self._captures: list[dict[int, Place]] = [{} for _ in self.graphs]
        self._n_captures = [0] * len(self.graphs)
        self._variables: list[dict[int, int]] = [{} for _ in self.graphs]
        self._n_looked_through = [0] * len(self.graphs)

    def captures_of(self, level: int) -> dict[int, Place]:
        """Return the origins of a graph's captured tensors, by their symbols in the graph."""
        captures = captured_by(self.graphs[level])
        if len(captures) != self._n_captures[level]:
            self._captures[level] = {
                symbol: place
                for outer, symbol in captures
                if (place := self._origin(level, outer)) is not None
            }
            self._n_captures[level] = len(captures)
        return self._captures[level]

    def starts_of(self, level: int) -> dict[int, Place]:
        """Return the places of start values, by the symbols of loop variables in the body."""
        return {
            symbol: place
            for outer, symbol in getattr(self.graphs[level], "starts", ())
            if (place := self._origin(level, outer)) is not None
        }

    def _origin(self, level: int, outer: Tensor) -> Place | None:
        """Find the capture of a tensor of a graph around that of a level."""
        if isinstance(outer, Variable):
            place = self._known_place(outer)
            return place if place is not None and place[0] > level else None
        for around in range(level + 1, len(self.graphs)):
            if outer.graph is self.graphs[around]:
                return around, self.graphs[around].symbol_of(outer)
        return None

    def _known_place(self, variable: Variable) -> Place | None:
        """Find the handle of a variable in the outermost graph that has one."""
        for level in reversed(range(len(self.graphs))):
            graph = self.graphs[level]
            symbol = self._captured_variables(level).get(id(variable))
            if symbol is None:
                symbol = graph.known_handle(variable)
            if symbol is not None:
                return level, symbol
        return None

    def _captured_variables(self, level: int) -> dict[int, int]:
        """Return the handles of variables in a graph, by the ids of the variables."""
        captures = captured_by(self.graphs[level])
        if len(captures) != self._n_looked_through[level]:
            self._variables[level] = {
                id(outer): symbol for outer, symbol in captures if isinstance(outer, Variable)}
            self._n_looked_through[level] = len(captures)
        return self._variables[level]

    def place_of(self, argument: str, tensor: Tensor) -> Place:
        """Return the place of a tensor, or raise if the graphs do not have it.

        Parameters
        ----------
        argument : str
            What to call it in messages.
        tensor : Tensor
        """
        for level, graph in enumerate(self.graphs):
            if tensor.graph is graph:
                return level, graph.symbol_of(tensor)
            if tensor.graph is None:
                for outer, symbol in captured_by(graph):
                    if outer.id == tensor.id:
                        return level, symbol
        if tensor.graph is None:
            raise RuntimeError(
                f"{argument} must be tensors of the graph, but {tensor!r} has a value already: "
                "gradients of tensors with values are for cytape.GradientTape and its method "
                "gradient"
            )
        raise ValueError(
            f"{argument} must belong to the graph being built, or one around it, but {tensor!r} "
            "does not"
        )

    def place_of_variable(self, variable: Variable) -> Place:
        """Return the place of a variable's handle."""
        place = self._known_place(variable)
        if place is None:
            return 0, self.graphs[0].symbol_of(self.graphs[0].variable_handle(variable))
        return place


def captured_by(graph: Any) -> list[tuple[Tensor, int]]:
    """List the captured tensors and variables of a graph, with their symbols in it."""
    return getattr(graph, "captures", [])
