"""ConcreteFunction: one trace of a function, run, differentiated, and called in other graphs."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from cytape.errors import InvalidGradientError
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.model.variables import assigned_variables
from cytape.graph.run.executable import Executable
from cytape.graph.tracing.derivatives import Derivatives
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import inline, kept_by
from cytape.graph.tracing.signature import shapes_agree
from cytape.ops.creation import identity_op
from cytape.ops.engine.custom_op import custom_call
from cytape.ops.engine.symbolic import in_graph
from cytape.tensor import nest
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.spec import UnknownShape
from cytape.tensor.state import (
    NO_GRADIENTS,
    building_into,
    current_graph,
    possible_gradient_types,
    possible_modes,
    unrecorded,
)
from cytape.tensor.tensor import Tensor, data_of
from cytape.tensor.variable import Variable

__all__ = ["ConcreteFunction"]


class ConcreteFunction:
    """A function of tensors of certain specs, traced: a graph with its ends.

    `function` makes them, one per signature. Called with one tensor (or array) per argument.

    Attributes
    ----------
    name : str
    graph : FunctionGraph
        The body; nothing can be added to it.
    captured_inputs : list of Tensor or Variable
        What the body uses from outside.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> trace = cytape.function(lambda x: x * x).get_concrete_function(np.array(1.0))
    >>> [op.type for op in trace.graph.get_operations()]
    ['Placeholder', 'Multiply']
    >>> trace(3.0)
    Tensor(9.)
    """

    def __init__(
        self,
        name: str,
        graph: FunctionGraph,
        arguments: Sequence[int],
        outputs: Any,
        grad_func: Callable | None = None,
        python_grad_func: Callable | None = None,
        variables: Sequence[Variable] = (),
    ) -> None:
        self.name = name
        self.graph = graph
        self._results = _Results(graph, outputs)
        self._n_arguments = len(arguments)
        # Variables that are arguments come between tensors and what was captured; whoever calls
        # has them, so that the trace need not keep them alive.
        passed = _taken_out(graph, variables) if variables else []
        self.variable_places = tuple([place for place, _ in passed])
        self._variables = [weakref.ref(variables[place]) for place in self.variable_places]
        self.captured_inputs = [tensor for tensor, _ in graph.captures]
        self._captured_graphs = [
            *[x.graph for x in self.captured_inputs if x.graph is not None], *graph.graphs_asked]
        self.input_symbols = (
            *arguments, *[symbol for _, symbol in passed],
            *[symbol for _, symbol in graph.captures])
        self.output_symbols: tuple[int, ...] = self._results.symbols
        self._grad_func = grad_func
        self._python_grad_func = python_grad_func
        self._executable: Executable | None = None
        self._derivatives: dict[tuple, Derivatives] = {}
        self._report: Callable[[], None] | None = None
        self.last_use = 0  # whoever keeps several says
        self.uses_tensors = True  # of a user's, from outside; whoever has it traced may know better
        # The body of a loop that returns the same, and less: one call can stand for both.
        self.history_of: ConcreteFunction | None = None
        self._n_constant_bytes, self._bodies = kept_by(graph, ConcreteFunction)
        graph.finalize()

    def __repr__(self) -> str:
        specs = ", ".join(
            f"{spec.dtype}{list(spec.shape) if spec.shape is not None else ''}"
            for spec in map(self.graph.spec_of, self.input_symbols[: self._n_arguments])
        )
        return f"<ConcreteFunction {self.name}({specs})>"

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders: those of the arguments, then those of what was captured."""
        return list(map(self.graph.tensor_at, self.input_symbols))

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors in what the function returns."""
        return list(map(self.graph.tensor_at, self.output_symbols))

    @property
    def is_closed(self) -> bool:
        """Whether there is no more to it than a graph with its ends, as in bodies of loops."""
        outputs: Any = self.structured_outputs
        return (
            type(outputs) is list and all(type(x) is Tensor for x in outputs)
            and not (self.captured_inputs or self.variable_places)
            and self._grad_func is None and self._python_grad_func is None)

    @property
    def structured_outputs(self) -> Any:
        """What the function returns, in terms of the tensors of its graph."""
        return self.packed(self.outputs)

    def packed(self, results: list) -> Any:
        """Return what the function returns, with other tensors for those of its graph."""
        return self._results.pack(results)

    def __call__(self, *tensors: Any) -> Any:
        """Call the trace with one tensor, or array, per argument."""
        if len(tensors) != self._n_arguments:
            raise TypeError(
                f"{self.name} was traced with {self._n_arguments} tensors, got {len(tensors)}"
            )
        checked = []
        for tensor, symbol in zip(tensors, self.input_symbols, strict=False):
            spec = self.graph.spec_of(symbol)
            tensor = convert_to_tensor(tensor)
            if tensor.dtype != spec.dtype or not shapes_agree(tensor.shape, spec.shape):
                raise TypeError(
                    f"{self.name} was traced for a tensor of dtype {spec.dtype} and shape "
                    f"{spec.shape}, got {tensor.dtype} and {tensor.shape}"
                )
            checked.append(tensor)
        variables = [variable() for variable in self._variables]
        if any(variable is None for variable in variables):
            raise RuntimeError(f"a variable that {self.name} was traced with is gone")
        return self.call(checked + variables)

    def release_captures(self) -> None:
        """Forget where captured tensors are from: whoever runs the trace passes them.

        A graph whose nodes run traces must not be referred to by these: tensors cannot be collected
        as parts of a cycle.
        """
        self._n_arguments = len(self.input_symbols)
        self.captured_inputs, self._captured_graphs = [], []
        self.graph.release_captures()

    def fits_here(self) -> bool:
        """Tell whether what was captured can be reached from the graph being built, if any is."""
        around = []
        graph = current_graph() if self._captured_graphs else None
        while graph is not None:
            around.append(graph)
            graph = getattr(graph, "outer_graph", None)
        return all(any(x is y for y in around) for x in self._captured_graphs)

    def call(self, tensors: list) -> Any:
        """Call the trace with tensors of the right specs, and the variables that it is to get."""
        return self.call_with(tensors + self.captured_inputs)

    def call_plainly(self, tensors: list) -> Any:
        """Do the same where no tensor was passed; if none is used either, return arrays."""
        if self.uses_tensors or current_graph() is not None:
            return self.call(tensors)
        return self._results.pack(self.run(tensors + self.captured_inputs), _as_array)

    def call_with(self, inputs: list) -> Any:
        """Call the trace with tensors for all its placeholders, those of captures among them."""
        graph = current_graph()
        if graph is None:
            graph = next((x.graph for x in inputs if x.graph is not None), None)
        if graph is not None:
            results = self._inlined(graph, inputs)
        elif self._grad_func is not None or self._python_grad_func is not None:
            results = self._with_own_gradient(self.run(inputs), inputs)
        else:
            order = possible_gradient_types(inputs)
            results = self.run(inputs) if order == NO_GRADIENTS else (
                self._derivatives_of(order).call(inputs))
        return self._results.pack(results)

    @property
    def executable(self) -> Executable:
        """What computes the outputs from all inputs."""
        if self._executable is None:
            self._executable = Executable(Subgraph(
                self.graph, self.input_symbols, self.output_symbols, tuple(self.graph.stateful)))
            self._executable.report = self._report
        return self._executable

    @property
    def n_plans(self) -> int:
        """The number of plans of this trace, its derivatives, and the bodies that it runs."""
        return sum(part.n_plans for part in self._parts())

    @property
    def nbytes(self) -> int:
        """The size of these: constants, instructions and the memory that plans work in."""
        n_bytes = self._n_constant_bytes
        for part in self._parts():
            n_bytes += part.nbytes
        return n_bytes

    def executables(self) -> list[Executable]:
        """List all that have these plans."""
        executables = [] if self._executable is None else [self._executable]
        for part in self._traces():
            executables += part.executables()
        return executables

    def report_plans(self, report: Callable[[], None] | None) -> None:
        """Have a function called after each plan that is made, for whatever part of this."""
        self._report = report
        if self._executable is not None:
            self._executable.report = report
        for part in self._traces():
            part.report_plans(report)

    def _traces(self) -> list[Any]:
        return [*self._derivatives.values(), *self._bodies]

    def _parts(self) -> list[Any]:
        parts = self._traces()
        if self._executable is not None:
            parts.append(self._executable)
        return parts

    def run(self, inputs: list) -> list:
        """Compute the outputs, whoever records."""
        return self.executable.run(inputs)

    def _derivatives_of(self, order: int) -> Derivatives:
        modes = possible_modes()
        if (order, modes) not in self._derivatives:
            derivatives = Derivatives(self, ConcreteFunction, order, *modes)
            derivatives.report_plans(self._report)
            self._derivatives[order, modes] = derivatives
        return self._derivatives[order, modes]

    def _inlined(self, graph: Any, inputs: list) -> list:
        """Build the body in another graph."""
        own_gradient = self._grad_func is not None or self._python_grad_func is not None
        assigning: list[int] = []

        def changed(op: Any, attrs: dict, node: int) -> None:
            graph.changed(op, attrs)
            if assigned_variables(op, attrs):
                assigning.append(node)

        with building_into(graph), graph.name_scope(as_name(self.name)):
            inputs = list(map(convert_to_tensor, inputs))  # variables are read here, as by a call
            symbols = dict(zip(self.input_symbols, inputs, strict=True))
            with unrecorded() if own_gradient else nullcontext():
                inline(self.graph, symbols, graph, changed)
            results = [in_graph(graph, symbols[symbol]) for symbol in self.output_symbols]
            if assigning and not isinstance(graph, FunctionGraph):  # which runs all that assigns
                with graph.control_dependencies(list(map(graph.operation_at, assigning))):
                    results = list(map(identity_op, results))
            return self._with_own_gradient(results, inputs) if own_gradient else results

    def _with_own_gradient(self, results: list, inputs: list) -> list:
        arguments = inputs[: self._n_arguments]

        def backward(*gradients: Tensor) -> list:
            if self._grad_func is not None:
                returned = nest.flatten(self._grad_func(*arguments, *gradients))
            elif self._python_grad_func is not None:
                call = GradientCall(self.name, tuple(arguments), tuple(results))
                returned = nest.flatten(self._python_grad_func(call, *gradients))
            if len(returned) != len(arguments):
                raise InvalidGradientError(
                    f"the gradient function of {self.name} must return {len(arguments)} gradients "
                    f"(None where there is none), got {len(returned)}"
                )
            return returned + [None] * (len(inputs) - len(arguments))

        return custom_call(self.name, results, inputs, backward)


def _taken_out(graph: FunctionGraph, variables: Sequence[Variable]) -> list[tuple[int, int]]:
    """Have a graph forget that it captured some variables; return their places and symbols."""
    places = {variable.id: place for place, variable in enumerate(variables)}
    captures = graph.captures
    graph.captures = [(x, symbol) for x, symbol in captures if x.id not in places]
    return [(places[x.id], symbol) for x, symbol in captures if x.id in places]


def as_name(name: str) -> str:
    """Make a function's name one that scopes can have."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "", name).lstrip("_-") or "function"


class GradientCall:
    """One call of a function, as its Python gradient function sees it.

    Attributes
    ----------
    name, type : str
        The function's name.
    inputs, outputs : tuple of Tensor
    """

    def __init__(self, name: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        self.name = self.type = name
        self.inputs = inputs
        self.outputs = outputs


_TENSORS = (Tensor, np.ndarray, np.generic, float, complex, int)


class _Results:
    """What a traced function returned: a structure with tensors in some places."""

    def __init__(self, graph: FunctionGraph, structure: Any) -> None:
        leaves = nest.flatten(structure)
        tensors: list[Any] = []
        self._places: list[int] = []  # of leaves that are tensors, up to three each
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, _TENSORS) and not isinstance(leaf, bool):
                tensors.append(leaf)
                leaves[place] = None
            elif isinstance(leaf, IndexedSlices):
                slices = leaves[place] = _Slices(leaf)
                tensors += slices.tensors
            else:
                continue
            self._places.append(place)
        self.symbols = tuple([
            graph.symbol_of(in_graph(graph, convert_to_tensor(tensor))) for tensor in tensors])
        self._leaves = leaves
        self._single = len(leaves) == 1 and not isinstance(structure, (list, tuple, dict))
        self._structure = None if self._single else (
            nest.pack_sequence_as(structure, [None] * len(leaves)))

    def pack(self, results: list, converted: Callable = lambda tensor: tensor) -> Any:
        if self._single and len(results) == 1:
            return converted(results[0])
        leaves, remaining = list(self._leaves), iter(results)
        for place in self._places:
            leaf = leaves[place]
            leaves[place] = (
                leaf.pack(remaining) if isinstance(leaf, _Slices) else converted(next(remaining)))
        return leaves[0] if self._single else nest.pack_sequence_as(self._structure, leaves)


def _as_array(tensor: Tensor) -> Any:
    """Return a tensor as an array that is the caller's, a scalar as a number."""
    array = np.array(data_of(tensor))
    return array if array.ndim else array[()]


class _Slices:
    """Where in a structure there are indexed slices."""

    def __init__(self, slices: IndexedSlices) -> None:
        self.tensors = [slices.values, slices.indices]
        self._dense_shape = shape = slices.dense_shape
        self._has_like = False  # then only a run knows the shape: that of a tensor
        if isinstance(shape, UnknownShape) and shape.tensor is not None:
            self._has_like = True
            self._dense_shape = None
            self.tensors.append(shape.tensor())

    def pack(self, results: Iterator[Any]) -> IndexedSlices:
        values, indices = next(results), next(results)
        shape = next(results).spec.extents if self._has_like else self._dense_shape
        return IndexedSlices(values, indices, shape)
