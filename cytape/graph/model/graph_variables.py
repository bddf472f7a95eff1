"""Variables in graphs: ops that read and assign them when a graph runs.

A variable is the same object, with a value, inside and outside of graphs. A graph has one
VariableHandle for each, which stands for the variable itself, and a ReadVariable of it where its
value is read. Reads and assignments run in the order in which they were built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from cytape.graph.model.body_flow import Flow, Run, has_derivative
from cytape.graph.model.collections import Collections
from cytape.graph.model.contexts import BuiltUnderContexts
from cytape.ops.engine.op_kinds import general, nondifferentiable, passing
from cytape.ops.python.checkpointed_call_op import checkpointed_call_op
from cytape.tensor.recording.state import anybody_records, building_into
from cytape.tensor.tensor import Tensor, data_of
from cytape.tensor.tensor_methods import install_methods
from cytape.tensor.values.cached_property import cached_property
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.variable import Variable, note_assignment

variable_handle_op = nondifferentiable(
    "VariableHandle", lambda variable: data_of(variable),
    shape_rule=lambda variable: variable.spec)
# A read of a variable with a known value, returned by an assignment or by the first run of a call.
known_read_op = passing(
    "KnownRead", lambda handle, value: value, shows=1, shape_rule=lambda handle, value: value)
read_variable_op = general(
    "ReadVariable", lambda handle, variable: data_of(variable),
    vjp=lambda op, g: g, jvp=lambda op, t: t, saved_inputs=(), batched=lambda op, t: t,
    shape_rule=lambda handle, variable: variable.spec, stateful=True, lowering="VARIABLE_READ",
    passes_gradients=True,
    repeated=lambda inputs, outputs, attrs: [known_read_op(*inputs, *outputs)])


def _check_assignable(value, variable, method):
    if not np.can_cast(value.dtype, variable.dtype, "same_kind"):
        raise TypeError(
            f"variable {variable.name!r} is {variable.dtype}, cannot {method} a value of dtype "
            f"{value.dtype}; convert it with astype"
        )
    shape = variable.shape
    if value.shape is None:
        return
    fits = len(value.shape) == len(shape) if method == "assign" else len(value.shape) <= len(shape)
    for extent, own in zip(reversed(value.shape), reversed(shape), strict=False):
        fits &= extent in (None, own) or (extent == 1 and method != "assign")
    if not fits:
        raise ValueError(
            f"variable {variable.name!r} has shape {shape}, cannot {method} a value of shape "
            f"{tuple(value.shape)}"
        )


def _assignment(name, method):
    def shape_rule(value, variable):
        _check_assignable(value, variable, method)
        return variable.spec

    return nondifferentiable(
        name, lambda value, variable: data_of(getattr(variable, method)(value)),
        shape_rule=shape_rule, stateful=True)


ASSIGNMENTS = {
    method: _assignment(name, method)
    for method, name in {
        "assign": "AssignVariable",
        "assign_add": "AssignAddVariable",
        "assign_sub": "AssignSubVariable",
    }.items()
}


def assigned_variables(op: Any, attrs: dict[str, Any]) -> tuple[Variable, ...]:
    """Return the variables that a call of a stateful op changes, itself or in a function."""
    return (attrs["variable"],) if op in ASSIGNMENTS.values() else attrs.get("assigned", ())


class AssignedFlow(Flow):
    """Dependences of the values that variables are assigned on values of a graph."""

    def runs(self, graph: Any, node: int) -> list[Run]:
        """List the bodies that a node runs; for a repeated call, its trace."""
        if graph.ops[node] is checkpointed_call_op:
            trace = graph.attrs[node]["trace"]
            return [Run(trace, range(len(trace.input_symbols)))]
        return super().runs(graph, node)

    def inputs_needed(self, graph: Any, node: int, needed: Iterable[int]) -> Iterable[int]:
        """Return the inputs of a node on which the given outputs or its assignments depend."""
        op = graph.ops[node]
        if not graph.contexts[graph.context_of(node)].recorded:
            return ()
        if op in ASSIGNMENTS.values():
            return graph.inputs_of(node)
        if not has_derivative(op):
            return ()
        return super().inputs_needed(graph, node, needed)


def note_assignments(graph: Any) -> None:
    """Notify recorders of the tensors that the value assigned by the last node depends on."""
    if anybody_records():
        for symbol in AssignedFlow().inputs_needed(graph, graph.n_nodes - 1, ()):
            note_assignment(graph.tensor_at(symbol))


def _assigned_variable(graph: Any, tensor: Tensor) -> Variable | None:
    """Return the variable of a tensor that an assignment in a graph returned, or None."""
    if not isinstance(graph, Variables):
        return None
    node = graph.node_of(graph.symbol_of(tensor))
    if graph.ops[node] is not known_read_op:
        return None
    _, result = graph.inputs_of(node)
    return graph.attrs[graph.node_of(result)].get("variable")


def _assignment_after_another(method: str) -> property:
    """Return a method of tensors that assignments return, for chained assignments."""
    def of_tensor(tensor: Tensor) -> Callable[[Any], Tensor]:
        graph = tensor.graph
        variable = _assigned_variable(graph, tensor)
        if variable is None:
            raise AttributeError(
                f"a tensor has no {method!r}: variables have, and what an assignment to one "
                "returns in a graph. For a part of one write variable[index] = value")

        def assigned(value: Any) -> Tensor:
            with building_into(graph), graph.control_dependencies([tensor]):
                return getattr(variable, method)(value)

        return assigned

    return property(of_tensor)


install_methods({method: _assignment_after_another(method) for method in ASSIGNMENTS})


class Variables(BuiltUnderContexts, Collections):
    """A graph with variables."""

    @cached_property
    def _handles(self) -> dict[int, int]:  # id of a variable -> symbol of its handle
        return {}

    # Id of a variable -> nodes that a read waits for -> symbol of that read, since it was assigned.
    @cached_property
    def _reads(self) -> dict[int, dict[tuple[int, ...], int]]:
        return {}

    @cached_property
    def _by_name(self) -> dict[str, Variable]:
        return {}

    def get_variable(
        self, name: str, shape: Any = None, dtype: DTypeLike | None = None,
        initializer: Any = None, trainable: bool = True,
    ) -> Variable:
        """Return the variable of a name, a new one if the graph has none.

        Parameters
        ----------
        name : str
            Whatever the scope.
        shape : tuple of int, optional
            Of a new one; an existing one must have it.
        dtype : dtype, optional
            Of a new one, by default the initial value's; an existing one must have it.
        initializer : array_like or callable, optional
            The initial value, or a function of the shape and the dtype that returns it; by default
            zeros. A scalar fills the shape.
        trainable : bool, optional
            As `cytape.Variable` takes it.

        Returns
        -------
        Variable
            Also kept in the graph's collection "variables" and, if it is trainable,
            "trainable_variables".

        Raises
        ------
        ValueError
            If the variable has another shape or dtype, or neither shape nor initial value are
            given for a new one.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> v = graph.get_variable("v", shape=(2,))
        >>> v, graph.get_variable("v") is v
        (Variable([0., 0.]), True)
        """
        shape = None if shape is None else np.broadcast_shapes(shape)
        known = self._by_name.get(name)
        if known is None:
            known = self._new_variable(name, shape, dtype, initializer, trainable)
            self._by_name[name] = known
            self.add_to_collections(["variables"] + ["trainable_variables"] * trainable, known)
            return known
        for what, wanted, own in (
            ("shape", shape, known.shape),
            ("dtype", None if dtype is None else np.dtype(dtype), known.dtype),
        ):
            if wanted is not None and wanted != own:
                raise ValueError(f"variable {name!r} has {what} {own}, asked for {wanted}")
        return known

    def _new_variable(self, name, shape, dtype, initializer, trainable):
        if initializer is None:
            if shape is None:
                raise ValueError(
                    f"the graph has no variable {name!r}: give a shape or an initializer for it"
                )
            initializer = 0.0
        with building_into(None):
            if callable(initializer):
                initializer = initializer(shape, dtype)
            if isinstance(initializer, Tensor):
                initializer = initializer.numpy()
            value = plain_array(initializer, dtype)
            if shape is not None and value.ndim == 0:
                value = np.full(shape, value)
            if shape is not None and value.shape != shape:
                raise ValueError(
                    f"variable {name!r} must have shape {shape}, but its initial value has shape "
                    f"{value.shape}"
                )
            return Variable(value, trainable, name)

    def restore_variable(self, variable: Variable) -> None:
        """Register a variable by name, without adding it to collections.

        Raises
        ------
        ValueError
            If there is one of that name.
        """
        if self._by_name.setdefault(variable.name, variable) is not variable:
            raise ValueError(f"two variables are called {variable.name!r}")

    def restore_handle(self, variable: Variable, symbol: int) -> None:
        """Register the handle of a variable.

        Raises
        ------
        ValueError
            If another one does.
        """
        if self._handles.setdefault(variable.id, symbol) != symbol:
            raise ValueError(f"variable {variable.name!r} has two handles")

    @property
    def named_variables(self) -> list[Variable]:
        """The variables of `get_variable`, in order of creation."""
        return list(self._by_name.values())

    @property
    def variables(self) -> list[Variable]:
        """The variables that occur in the graph, in order of first occurrence."""
        return [
            self.attrs[self.node_of(symbol)]["variable"] for symbol in self._handles.values()
        ]

    def known_handle(self, variable: Variable) -> int | None:
        """Return the symbol of a variable's handle, None if the graph does not have it."""
        return self._handles.get(variable.id)

    def variable_handle(self, variable: Variable) -> Tensor:
        """Return the handle of a variable, independent of its value."""
        symbol = self._handles.get(variable.id)
        if symbol is not None:
            return self.tensor_at(symbol)
        before = self.enter_context(0)  # independent of the context of its first use
        try:
            handle = self.build(variable_handle_op, variable=variable)
        finally:
            self.enter_context(before)
        self._handles[variable.id] = self.symbol_of(handle)
        self._names.suggest(self.as_node(handle), variable.name)
        return handle

    def variable_value(self, variable: Variable) -> Tensor:
        """Return a tensor of a variable's value.

        Returns
        -------
        Tensor
            The same as before, as long as the variable is not assigned to in this graph, and no
            other control inputs are asked for.
        """
        reads = self._reads.setdefault(variable.id, {})
        controls = self.contexts[self.present_context].controls
        symbol = reads.get(controls)
        if symbol is not None:
            return self.tensor_at(symbol)
        value = self.build(read_variable_op, self.variable_handle(variable), variable=variable)
        reads[controls] = self.symbol_of(value)
        return value

    def assign(self, variable: Variable, value: Any, method: str) -> Tensor:
        """Add an op that calls a method of a variable when the graph runs.

        Parameters
        ----------
        variable : Variable
        value : Tensor or array_like
        method : {"assign", "assign_add", "assign_sub"}

        Returns
        -------
        Tensor
            The new value, connected to the variable. The tensor or its operation must be fetched:
            a graph runs no assignment on its own.

        Raises
        ------
        ValueError
            If the shapes do not fit.
        TypeError
            If the value is of another kind (say, fractions for an integer variable).
        """
        result = self.build(ASSIGNMENTS[method], value, variable=variable)
        return self.build(known_read_op, self.variable_handle(variable), result)

    def note_effects(self, op: Any, attrs: dict[str, Any]) -> None:
        """Drop cached reads of the variables that a new node assigns to."""
        variables = assigned_variables(op, attrs)
        for variable in variables:
            self._reads.pop(variable.id, None)
        if variables:
            note_assignments(self)
