"""FunctionGraph: the body of a traced function, with its captured tensors and variables."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from numpy.typing import DTypeLike

from cytape.errors import GraphError, SymbolicTensorError
from cytape.graph.model.graph import Graph, placeholder_op
from cytape.graph.model.graph_variables import (
    ASSIGNMENTS,
    assigned_variables,
    note_assignments,
    read_variable_op,
)
from cytape.graph.run.interpreter import needed_nodes, run
from cytape.ops.calls.symbolic import SymbolicGraph
from cytape.tensor.tensor import Tensor, another
from cytape.tensor.values.spec import Spec
from cytape.tensor.values.user_warnings import user_line
from cytape.tensor.variable import Variable


class FunctionGraph(Graph):
    """A graph that captures tensors and variables of its surroundings.

    Attributes
    ----------
    name : str
        The function's.
    captures : list of (Tensor or Variable, int)
        Captured tensors, and the symbol of the placeholder of each.
    assigned : dict of int to Variable
        The variables that the body changes, by id.
    starts : list of (Tensor, int)
        In the body of a loop, the start value of each loop variable, and the variable's symbol.
    may_make_variables : callable
        Whether variables may be made now.
    n_variables_made : int
    runs_once : bool
        Whether it is for a single, immediate call: draws in it are made as without a graph.
    called_again : bool
        Whether later calls pass present values of captured tensors, as those of `cytape.function`.
    of_member : bool
        Whether it stands for any member of a batch, as that of `cytape.vmap`.
    graphs_asked : list of Graph
        Those whose variables the body uses by name.
    left : dict of int to Tensor or None
        Outer tensors whose values are constants here, by id: handles of those that left by
        `numpy()` and similar calls, None for those that were converted.
    changes_by_code : dict or None
        In the body of a loop, the variables that loops within it change, by the code of their
        bodies, as far as that is known.
    """

    n_variables_made = 0
    runs_once = called_again = False
    of_member = False
    changes_by_code: dict[Any, dict[int, Variable]] | None = None
    may_make_variables: Callable[[], bool] = staticmethod(lambda: True)

    def __init__(self, name: str, outer_graph: SymbolicGraph | None) -> None:
        super().__init__()
        self.name = name
        # Weakly, since the graph of a complete trace may live longer.
        self._outer_graph = _nothing if outer_graph is None else weakref.ref(outer_graph)
        self.captures: list[tuple[Tensor, int]] = []
        self._captured: dict[int, int] = {}
        self.graphs_asked: list[Any] = []
        self.left: dict[int, Tensor | None] = {}
        self.assigned: dict[int, Variable] = {}
        self.starts: list[tuple[Tensor, int]] = []
        # Per attempt: variables created in it, variables assigned before, values taken before.
        self._attempts: list[tuple[list[Variable], dict[int, Variable], dict]] = []

    @property
    def outer_graph(self) -> SymbolicGraph | None:
        """The graph that was being built when this one was begun, while it exists."""
        return self._outer_graph()

    def under_overrides(self) -> FunctionGraph:
        """Build ops of this body under the gradient functions that the graph around it has now."""
        around = self.outer_graph
        if around is not None and around.has_overrides:
            overrides = around.contexts[around.present_context].overrides
            self.enter_context(self.context_with(overrides=overrides))
        return self

    def argument(self, shape: tuple | None, dtype: DTypeLike) -> Tensor:
        """Add a placeholder for a tensor that calls pass."""
        return self.build(placeholder_op, shape=shape, dtype=dtype)

    def arguments(self, specs: Iterable[Spec]) -> list[Tensor]:
        """Add placeholders of some specs."""
        return [self.argument(None if spec.shape is None else tuple(spec.shape), spec.dtype)
                for spec in specs]

    def about_to_change(self, op: Any) -> None:
        """Raise for an op on a tensor of a trace that is complete."""
        what = "an op" if op is placeholder_op else f"op {op.name!r}"
        raise RuntimeError(
            f"{what} was called {user_line()} with a tensor that belongs to a trace of "
            f"{self.name}, which is complete: the function let it out, say into a list or an "
            "attribute. Return it instead, or keep it in a Variable")

    def seen_from_outside(self) -> str:
        """Return the end of a message about tensors of this graph: their origin, and advice."""
        return (
            f"{self.name}, the body of a branch, a loop or a function, and is used outside of it: "
            "return it from there, from a loop as a loop variable"
        )

    def note_extents(self, error: TypeError) -> None:
        """Add advice to an error of NumPy or Python about an unknown extent used as a number."""
        if isinstance(error, SymbolicTensorError) or not any([
                word in str(error) for word in ("NoneType", "<Tensor '")]):
            return
        if any([op is placeholder_op and not self.spec_of(self.outputs_of(node)[0]).known
                for node, op in enumerate(self.ops)]):
            error.add_note(
                f"while {self.name} was traced with extents that are known only when it runs: they "
                "are None in x.shape, and cytape.numpy.size(x, axis) is a tensor. For an array of "
                "as many elements pass all of x.shape to a function of cytape.numpy, as in "
                "ones(x.shape), diag(ones(x.shape)) or random.normal(size=x.shape)")

    def capture(self, tensor: Tensor) -> Tensor:
        """Return the placeholder for a tensor from outside, or for a variable's value.

        Saved constants of eager calls have no ids, and get a placeholder for each use.
        """
        if tensor.graph is self:
            return tensor
        symbol = self._captured.get(tensor.id) if tensor.id >= 0 else None
        if symbol is None:
            if isinstance(tensor.graph, FunctionGraph) and not self.is_within(tensor.graph):
                raise ValueError(f"{tensor!r} belongs to {tensor.graph.seen_from_outside()}")
            symbol = self._captured[tensor.id] = self.symbol_of(self.stand_in_for(tensor))
        return self.tensor_at(symbol)

    def is_within(self, graph: SymbolicGraph) -> bool:
        """Return whether a graph is around this one."""
        around = self.outer_graph
        while around is not None and around is not graph:
            around = getattr(around, "outer_graph", None)
        return around is graph

    def stand_in_for(self, tensor: Tensor) -> Tensor:
        """Add a placeholder for an outer tensor; calls pass its value."""
        placeholder = self.argument(tensor.shape, tensor.dtype)
        if type(tensor) is Tensor and (
                self.runs_once or tensor.graph is not None and not self.called_again
                or tensor.id > self.first_id):
            around = self.outer_graph
            if isinstance(around, FunctionGraph) and tensor.graph not in (None, around):
                around.capture(tensor)  # the outer graph decides whether later calls see changes
            # Another handle of the same id, which later writes by the function do not change.
            tensor = another(tensor)
        self.captures.append((tensor, self.symbol_of(placeholder)))
        return placeholder

    def release_captures(self) -> None:
        """Drop the outer graph and the captured tensors."""
        self._outer_graph = _nothing
        self.captures = []
        self.starts = []
        self.graphs_asked = []

    def truncate(self, n_nodes: int) -> None:
        """Drop the nodes from this one on, and their captures."""
        super().truncate(n_nodes)
        self.captures = [pair for pair in self.captures if pair[1] < self.n_symbols]
        self._captured = {x: symbol for x, symbol in self._captured.items()
                          if symbol < self.n_symbols}

    def variable_made(self, variable: Variable) -> None:
        """Note a variable that was created; raise if the function must not create any."""
        if self._attempts:
            self._attempts[-1][0].append(variable)
            return
        if self.finalized or not self.may_make_variables():
            raise GraphError(
                f"{self.name} made a variable, {variable.name!r}, but not for the first time: each "
                "trace would have one of its own. Make variables once and keep them, as in `if "
                "self.v is None: self.v = cytape.Variable(...)`, or make them outside of it"
            )
        self.n_variables_made += 1
        if isinstance(self.outer_graph, FunctionGraph):
            self.outer_graph.variable_made(variable)

    def value_left(self, tensor: Tensor, asked: bool) -> None:
        """Note a tensor from outside whose value becomes a constant here."""
        self.values_left({tensor.id: another(tensor) if asked else None})

    def values_left(self, left: dict[int, Tensor | None]) -> None:
        """Note several such tensors, given like `left`."""
        if not self.contexts[self.present_context].recorded:
            return
        for id, asked in left.items():
            if id <= self.first_id and (asked is None or id not in self.left):
                self.left[id] = asked
        if self.outer_graph is not None:
            self.outer_graph.values_left(left)

    def begin_attempt(self) -> None:
        """Begin an attempt: variables created from here on count only if it succeeds."""
        self._attempts.append(([], dict(self.assigned), dict(self.left)))

    def end_attempt(self, succeeded: bool) -> None:
        """End an attempt: note its variables, or drop them if it failed."""
        made, assigned, left = self._attempts.pop()
        if not succeeded:
            self.assigned, self.left = assigned, left
            return
        for variable in made:
            self.variable_made(variable)

    def initial_value(self, tensor: Tensor) -> Any:
        """Return the value of a tensor that does not depend on arguments, otherwise the tensor."""
        symbol = self.symbol_of(tensor)
        captured = {symbol: x for x, symbol in self.captures}
        needed = needed_nodes(self, [symbol], captured)
        for node in needed:
            op = self.ops[node]
            if op is placeholder_op or (op.stateful and "stream" not in self.attrs[node]):
                return tensor
        used = {symbol, *[symbol for node in needed for symbol in self.inputs_of(node)]}
        values = {}
        for symbol, x in captured.items():
            if symbol in used:
                value = x if x.graph is None else x.graph.initial_value(x)
                if isinstance(value, Tensor) and value.graph is not None:
                    return tensor
                values[symbol] = value.numpy() if isinstance(value, Tensor) else value
        return run(self, [self.symbol_of(tensor)], values)[0]

    def get_variable(self, name: str, *args: Any, **kwargs: Any) -> Variable:
        """Return the variable of a name from the graph in which the function is called."""
        if not isinstance(self.outer_graph, Graph):
            raise RuntimeError(
                f"{self.name} asks for variable {name!r} of a graph, but is not called while a "
                "graph is being built: make a cytape.Variable instead, and keep it"
            )
        self.graphs_asked.append(self.outer_graph)
        return self.outer_graph.get_variable(name, *args, **kwargs)

    def variable_handle(self, variable: Variable) -> Tensor:
        """Return the placeholder for a variable."""
        return self.capture(variable)

    def variable_value(self, variable: Variable) -> Tensor:
        """Return the value of a variable at the call, or the one assigned since."""
        if variable.id not in self.assigned:
            return self.capture(variable)
        return self.build(read_variable_op, self.capture(variable), variable=variable)

    def assign(self, variable: Variable, value: Any, method: str) -> Variable:
        """Add an op that calls a method of a variable in each call of the function; return it."""
        self.build(ASSIGNMENTS[method], value, variable=variable)
        return variable

    def note_effects(self, op: Any, attrs: dict[str, Any]) -> None:
        """Note the variables that a new node assigns to."""
        variables = assigned_variables(op, attrs)
        for variable in variables:
            self.assigned[variable.id] = variable
        if variables:
            note_assignments(self)


def _nothing() -> None:
    return None
