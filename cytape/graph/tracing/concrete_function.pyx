"""ConcreteFunction: one trace of a function, run, differentiated, and called in other graphs."""

import re
import weakref
from contextlib import nullcontext

from cytape.core.typedefs cimport id_t
from cytape.graph.run.executable cimport Executable
from cytape.tensor.nest cimport flatten
from cytape.tensor.recording.conversion_guards cimport ASKED, ASSIGNED
from cytape.tensor.recording.state cimport (
    Counts, accumulating, building, counts, followers_everywhere, possible_gradient_types,
    recording)
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport is_symbolic
from cytape.tensor.variable cimport note_departure

from cytape.errors import DetachedError, InvalidGradientError
from cytape.graph.model.graph_variables import AssignedFlow, assigned_variables
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.tracing.checkpointed_calls import CheckpointedCalls, closed
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.packed_results import as_array
from cytape.graph.tracing.replay import inline, kept_by
from cytape.graph.tracing.signature import shapes_agree
from cytape.graph.tracing.trace_derivatives import Derivatives, Ends
from cytape.ops.calls.symbolic import in_graph
from cytape.ops.calls.tangents import note_call
from cytape.ops.creation import identity_op, own_tensor
from cytape.ops.engine.custom_op import custom_call
from cytape.ops.python.checkpointed_call_op import checkpointed_call_op
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import (
    NO_GRADIENTS, building_into, possible_modes, stop_recording, unrecorded)
from cytape.tensor.tensor import another

cdef Counts* recorders = counts()


cdef class ConcreteFunction:
    """A function of tensors of certain specs, traced: a graph with inputs and outputs.

    `function` makes them, one per signature. Called with one tensor (or array) per argument.

    Attributes
    ----------
    name : str
    graph : FunctionGraph
        The body; nothing can be added to it.
    captured_inputs : list of Tensor or Variable
        The captured tensors and variables.

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

    def __cinit__(
        self, name, graph, arguments, outputs, grad_func=None, python_grad_func=None, variables=(),
        checkpoints=None,
    ):
        self.name = name
        self.graph = graph
        self.results = Results(graph, outputs)
        self.n_arguments = len(arguments)
        # Variables that are arguments come between tensors and captures. The caller owns them; the
        # trace has weak references.
        passed = taken_out(graph, variables) if variables else []
        self.variable_places = tuple([place for place, _ in passed])
        self.variables = [weakref.ref(variables[place]) for place in self.variable_places]
        self.captured_inputs = [tensor for tensor, _ in graph.captures]
        self.captured_graphs = [
            *[x.graph for x in self.captured_inputs if x.graph is not None], *graph.graphs_asked]
        self.left = graph.left or None
        self.input_symbols = (
            *arguments, *[symbol for _, symbol in passed],
            *[symbol for _, symbol in graph.captures])
        self.assigns = bool(graph.assigned)
        self.output_symbols = self.results.symbols
        self.grad_func = grad_func
        self.python_grad_func = python_grad_func
        self.checkpoints = checkpoints
        self.derivatives = {}
        self.derived = {}
        self.calls_by_kept = {}
        self.uses_tensors = True
        self.n_constant_bytes, self.bodies = kept_by(graph, ConcreteFunction)
        graph.finalize()

    def __repr__(self) -> str:
        specs = ", ".join(
            f"{spec.dtype}{list(spec.shape) if spec.shape is not None else ''}"
            for spec in map(self.graph.spec_of, self.input_symbols[: self.n_arguments])
        )
        return f"<ConcreteFunction {self.name}({specs})>"

    @property
    def inputs(self) -> list:
        """The placeholders: those of the arguments, then those of captured tensors."""
        return list(map(self.graph.tensor_at, self.input_symbols))

    @property
    def outputs(self) -> list:
        """The tensors in the function's result."""
        return list(map(self.graph.tensor_at, self.output_symbols))

    @property
    def history_of(self):
        """The body of a loop or branch whose results are a prefix of this one's, or None.

        One call can replace calls of both. This body may be one of the derivatives stored there.
        """
        return None if self.body_of_loop is None else self.body_of_loop()

    @history_of.setter
    def history_of(self, body):
        self.body_of_loop = None if body is None else weakref.ref(body)

    @property
    def is_closed(self) -> bool:
        """Whether it is only a graph with inputs and outputs, as bodies of loops are."""
        outputs = self.structured_outputs
        return (
            type(outputs) is list and all(type(x) is Tensor for x in outputs)
            and not (self.captured_inputs or self.variable_places)
            and self.grad_func is None and self.python_grad_func is None)

    @property
    def structured_outputs(self):
        """The function's result, with the tensors of its graph."""
        return self.packed(self.outputs)

    def packed(self, list results not None):
        """Return the function's result, with other tensors in place of its graph's."""
        return self.results.pack(results)

    def __call__(self, *tensors):
        """Call the trace with one tensor, or array, per argument."""
        if len(tensors) != self.n_arguments:
            raise TypeError(
                f"{self.name} was traced with {self.n_arguments} tensors, got {len(tensors)}"
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
        if self.was_converted():
            raise DetachedError(
                f"{self.name} was traced when nothing recorded a tensor that it converts to an "
                "array or a number: its gradient would be lost. Call the traced function itself, "
                "which says where; or compute with cytape.numpy")
        variables = [variable() for variable in self.variables]
        if any(variable is None for variable in variables):
            raise RuntimeError(f"a variable that {self.name} was traced with is gone")
        return self.call(checked + variables)

    def release_captures(self) -> None:
        """Drop the captured tensors; the caller of the trace passes them.

        Traces run by nodes of a graph must not refer to its tensors, since such cycles cannot be
        collected.
        """
        self.n_arguments = len(self.input_symbols)
        self.captured_inputs, self.captured_graphs, self.left = [], [], None
        self.graph.release_captures()

    cpdef bint fits_here(self) except -1:
        """Return whether this trace can serve a call in the present graph.

        Captured tensors must be reachable from the graph being built, if any, and no constant of
        the trace may be recorded.
        """
        for captured in self.captured_graphs:
            graph = building()
            while graph is not captured:
                if graph is None:
                    return False
                graph = getattr(graph, "outer_graph", None)
        return self.left is None or not self.was_converted()

    cdef bint was_converted(self) except -1:
        """Return whether a tensor that the trace converted unrecorded is recorded now."""
        cdef id_t id
        if self.left is not None and recorders.entered:
            for id, asked in self.left.items():
                if asked is None and followers_everywhere(id, id, False):
                    return True
        return False

    cdef int note_departures(self, list inputs) except -1:
        """Notify recorders and the graph being built of values that the trace takes out."""
        graph = building()
        if self.left is not None:
            for tensor in self.left.values():
                if tensor is not None:
                    note_departure(tensor, ASKED)
            if graph is not None:
                graph.values_left(self.left)
        if self.assigns and recorders.entered:
            if self.assigning is None:
                led_by = AssignedFlow().needed(self.graph, frozenset())
                self.assigning = tuple([
                    place for place, symbol in enumerate(self.input_symbols) if symbol in led_by])
            for place in self.assigning:
                note_departure(inputs[place], ASSIGNED)
        return 0

    cpdef call(self, list tensors):
        """Call the trace with tensors of the right specs, and the variables among the arguments."""
        return self.call_with(tensors + self.captured_inputs)

    cpdef call_plainly(self, list tensors):
        """Call the trace if no tensor was passed; return arrays if it captures none either."""
        if self.uses_tensors or building() is not None:
            return self.call(tensors)
        if self.left is not None:
            self.note_departures(tensors)
        return self.results.pack(self.run(tensors + self.captured_inputs), as_array)

    cpdef call_with(self, list inputs):
        """Call the trace with tensors for all its placeholders, including captures."""
        cdef list results
        cdef Tensor tensor
        if self.left is not None or self.assigns:
            self.note_departures(inputs)
        graph = building()
        for tensor in inputs if graph is None else ():
            if is_symbolic(tensor.held):
                graph = tensor.held.owner
                break
        if graph is not None:
            results = self.inlined(graph, inputs)
        elif self.grad_func is not None or self.python_grad_func is not None:
            results = self.with_own_gradient(self.run(inputs), inputs)
        elif recording() is None and accumulating() is None:
            results = self.run(inputs)
        else:
            inputs = list(map(convert_to_tensor, inputs))  # recorders may follow a variable's value
            order = possible_gradient_types(inputs)
            if order == NO_GRADIENTS:
                results = self.run(inputs)
                if accumulating() is not None:
                    note_call(inputs, results)
            else:
                results = self.derivatives_of(order).call(inputs)
        return self.results.pack(results)

    @property
    def executable(self) -> Executable:
        """The executable that computes the outputs from all inputs."""
        return self.to_execute()

    cdef Executable to_execute(self):
        if self.own_executable is None:
            self.own_executable = Executable(Subgraph(
                self.graph, self.input_symbols, self.output_symbols, tuple(self.graph.stateful)))
            self.own_executable.report = self.report
        return self.own_executable

    @property
    def n_plans(self) -> int:
        """The number of plans of this trace, its derivatives, and the bodies that it runs."""
        return sum([executable.n_plans for executable in self.executables()])

    @property
    def nbytes(self) -> int:
        """The size in bytes of all these: nodes, constants, instructions, memory of plans."""
        return self.size()

    cdef Py_ssize_t size(self) except -1:
        cdef Py_ssize_t n_bytes = 0
        cdef Executable executable
        for part in self.parts():
            n_bytes += part.n_constant_bytes
            executable = part.own_executable
            if executable is not None:
                n_bytes += executable.size()
        return n_bytes

    def executables(self) -> list:
        """List the executables that have these plans."""
        return [part.own_executable for part in self.parts() if part.own_executable is not None]

    cpdef report_plans(self, report):
        """Register a function that is called after each new plan of any part of this trace."""
        for part in self.parts():
            part.report = report
            if part.own_executable is not None:
                part.own_executable.report = report

    cdef list parts(self):
        """Return this trace, its derivatives and the bodies that they run, each once."""
        cdef list found = [self]
        cdef set known
        if self.derivatives or self.bodies:
            known = {self}
            for part in found:  # grows
                for other in part.traces():
                    if other not in known:
                        known.add(other)
                        found.append(other)
        return found

    def traces(self):
        """List the derivatives of this trace and the bodies in its nodes."""
        return [*self.derivatives.values(), *self.bodies]

    cpdef list run(self, list inputs):
        """Compute the outputs, unrecorded."""
        return self.to_execute().run(inputs)

    cdef derivatives_of(self, order):
        modes = possible_modes()
        if (order, modes) not in self.derivatives:
            self.derivatives[order, modes] = Derivatives(
                self, ConcreteFunction, order, *modes, self.checkpoints)
            self.report_plans(self.report)
        return self.derivatives[order, modes]

    cdef list inlined(self, graph, list inputs):
        """Build the body in another graph."""
        own_gradient = self.grad_func is not None or self.python_grad_func is not None
        checkpointed = self.checkpoints is not None
        n_before = graph.n_nodes
        with building_into(graph), graph.name_scope(as_name(self.name)):
            inputs = list(map(convert_to_tensor, inputs))  # reads variables, as a call does
            symbols = dict(zip(self.input_symbols, inputs, strict=True))
            with unrecorded() if own_gradient else (
                    stop_recording() if checkpointed else nullcontext()):
                inline(self.graph, symbols, graph)
            results = [in_graph(graph, symbols[symbol]) for symbol in self.output_symbols]
            if self.graph.assigned and not isinstance(graph, FunctionGraph):  # runs all nodes
                assigning = [graph.operation_at(node) for node in graph.stateful if node >= n_before
                             and assigned_variables(graph.ops[node], graph.attrs[node])]
                with graph.control_dependencies(assigning):
                    results = list(map(identity_op, results))
            if checkpointed and results:
                if self.closed is None:
                    self.close()
                body, symbols_kept, attrs = self.closed
                kept = [in_graph(graph, symbols[symbol]) for symbol in symbols_kept]
                return list(checkpointed_call_op(
                    *inputs, *results, *kept, trace=body, n_kept=len(kept), **attrs))[:len(results)]
            return self.with_own_gradient(results, inputs) if own_gradient else results

    cdef int close(self) except -1:
        """Make the body of calls in graphs that keep checkpoints."""
        self.closed = closed(self.ends(), self.checkpoints, ConcreteFunction)
        return 0

    def calls(self, n_kept):
        """Return the derivatives of calls that keep the last `n_kept` outputs.

        Parameters
        ----------
        n_kept : int

        Returns
        -------
        CheckpointedCalls
        """
        if n_kept not in self.calls_by_kept:
            self.calls_by_kept[n_kept] = CheckpointedCalls(self.ends(), n_kept, ConcreteFunction)
        return self.calls_by_kept[n_kept]

    cdef ends(self):
        return Ends(self.name, self.graph, self.input_symbols, self.output_symbols)

    cdef list with_own_gradient(self, list results, list inputs):
        arguments = [another(x) if type(x) is Tensor else x for x in inputs[: self.n_arguments]]

        def backward(*gradients):
            given, computed, gradients = [
                tuple(map(own, tensors)) for tensors in (arguments, results, gradients)]
            if self.grad_func is not None:
                returned = flatten(self.grad_func(*given, *gradients))
            elif self.python_grad_func is not None:
                call = GradientCall(self.name, given, computed)
                returned = flatten(self.python_grad_func(call, *gradients))
            if len(returned) != len(arguments):
                raise InvalidGradientError(
                    f"the gradient function of {self.name} must return {len(arguments)} gradients "
                    f"(None where there is none), got {len(returned)}"
                )
            return returned + [None] * (len(inputs) - len(arguments))

        return custom_call(self.name, results, inputs, backward)


def own(x):
    """Return an argument of a gradient function that the function may change in place."""
    if type(x) is not Tensor:
        return x
    if not is_symbolic((<Tensor>x).held):
        return own_tensor(x)
    from cytape.ops.updates.in_place import own_in_graph  # here: it is needed late

    return own_in_graph(x)


cdef list taken_out(graph, variables):
    """Remove some captured variables from a graph; return their places and symbols."""
    places = {variable.id: place for place, variable in enumerate(variables)}
    captures = graph.captures
    graph.captures = [(x, symbol) for x, symbol in captures if x.id not in places]
    return [(places[x.id], symbol) for x, symbol in captures if x.id in places]


cdef str as_name(str name):
    """Return a function's name as a valid name of a scope."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "", name).lstrip("_-") or "function"


class GradientCall:
    """One call of a function, as its Python gradient function sees it.

    Attributes
    ----------
    name, type : str
        The function's name.
    inputs, outputs : tuple of Tensor
    """

    def __init__(self, name, inputs, outputs):
        self.name = self.type = name
        self.inputs = inputs
        self.outputs = outputs
