from cpython.exc cimport PyErr_CheckSignals
from cytape.graph.run.emitters cimport emit_by
from cytape.graph.run.plan_code cimport Code
from cytape.graph.run.executable cimport Executable
from cytape.graph.run.plan cimport Plan
from cytape.ops.calls.dispatch cimport Lowering
from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.tensor.values.value cimport Value, array_of, copy_of_array, value_of_array
from libc.stdint cimport int32_t

from cytape.graph.nested.branch_plan cimport emit_branch
from cytape.graph.nested.loop_plan cimport emit_loop

import numpy as np

from cytape.core.schedules import FirstPass
from cytape.errors import GraphError
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes import optimise
from cytape.graph.passes.rewriting import without_dead_code
from cytape.graph.passes.simplify import with_known_specs
from cytape.tensor.values.spec import symbolic_spec

cdef enum:
    MOST_ALONE = 64   # plans of single calls, and inferred specs, per function

emit_by(Lowering.BRANCH, emit_branch)
emit_by(Lowering.LOOP, emit_loop)


cdef class CondOp(ValueOp):
    """Op that runs one of two functions, chosen by its first input.

    Attributes of a call: `branches`, two of ConcreteFunction, for true and for false; `positions`,
    for each the positions of its inputs among those of the op.
    """

    def __cinit__(self, *_, **__):
        self.lowering = Lowering.BRANCH

    cpdef list run_values(self, list values, dict attrs):
        cdef int which = 0 if is_true(values[0]) else 1
        cdef Executable branch = attrs["branches"][which].executable
        return branch.run_values([values[i] for i in attrs["positions"][which]])


cdef class LoopOp(ValueOp):
    """Op that runs a function on its own results, while a condition holds.

    The inputs are the greatest number of iterations, the start values of the loop variables, and
    stacks, of which each iteration takes the next slice; then loop-invariant inputs. The outputs
    are the number of iterations, the loop variables, and stacks of the body's other results.

    Attributes of a call: `body` and `condition`, each a ConcreteFunction (no condition: None);
    `n_variables` and `n_stacks`; `body_inputs` and `condition_inputs`, the positions of the other
    inputs of each; `reverse`, whether the slices are taken and stacked from the last to the first.

    `snapshots` are the limits on states and bytes to keep, and the bytes that an iteration saves
    for its gradient. It adds outputs: stacks of some values of each loop variable, and their index,
    see `core.schedules.FirstPass.index`.
    """

    def __cinit__(self, *_, **__):
        self.lowering = Lowering.LOOP

    cdef list run_node(self, Code code, int32_t node, list values):
        """Run a plan of the call alone, for the present shapes, if it calls no Python."""
        cdef tuple specs = tuple(specs_of(values))
        cdef Plan plan
        if self.stateful or not array_of(values[0]):  # no iteration: shapes may not fit
            return self.run_values(values, code.graph.attrs[node])
        if (node, specs) not in code.alone:
            if len(code.alone) == MOST_ALONE:
                code.alone.clear()
            code.alone[node, specs] = plan_of_call(code.graph, node, specs)
        plan = code.alone[node, specs]
        if plan is None:
            return self.run_values(values, code.graph.attrs[node])
        return plan.run_values(list(dict(zip(code.graph.inputs_of(node), values)).values()))

    cpdef list run_values(self, list values, dict attrs):
        cdef Executable body = attrs["body"].executable, condition = None
        cdef Py_ssize_t n = attrs["n_variables"], n_stacks = attrs["n_stacks"]
        cdef Py_ssize_t count = 0, limit = int(array_of(values[0]))
        cdef bint reverse = attrs["reverse"]
        cdef list variables = values[1:n + 1], results
        cdef list slices = slices_of([array_of(value) for value in values[n + 1:]], n_stacks,
                                     attrs["ragged_stacks"])
        cdef list same = [values[i] for i in attrs["body_inputs"]]
        cdef list same_for_condition = [values[i] for i in attrs["condition_inputs"]]
        cdef list kept = []
        snapshots = Snapshots(limit, [array_of(value) for value in variables], **attrs)
        if attrs["condition"] is not None:
            condition = attrs["condition"].executable
            condition.at_once = True
        body.at_once = True
        while count < limit:
            if condition is not None and not is_true(
                    condition.run_values(variables + same_for_condition)[0]):
                break
            if snapshots.has_slot_for(count):
                snapshots.store([array_of(value) for value in variables])
            place = limit - 1 - count if reverse else count
            results = body.run_values(
                variables + [value_of_array(part[place]) for part in slices] + same)
            variables = results[:n]
            kept.append([array_of(value) for value in results[n:]])
            count += 1
            PyErr_CheckSignals()
        if count == 0:
            variables = [copy_of_array(array_of(value)) for value in variables]
        if reverse:
            kept.reverse()
        specs = output_specs(attrs["body"], [] if count else [
            *specs_of(variables), *[part.spec() for part in slices], *specs_of(same)])[n:]
        return [value_of_array(np.asarray(count, np.int64)), *variables,
                *[value_of_array(array) for array in kept_arrays(
                    kept, specs, attrs["ragged_kept"]) + snapshots.arrays()]]


cdef Plan plan_of_call(SymbolicGraph graph, int32_t node, tuple specs):
    cdef dict operands = dict(zip(graph.inputs_of(node), specs))
    call = Subgraph(graph, tuple(operands), tuple(graph.outputs_of(node)))
    # Its control inputs have already run.
    cdef Plan plan = Plan(optimise(without_dead_code(call, waits=False), list(operands.values())))
    return None if plan.n_calls else plan


cdef list specs_of(list values):
    return [(<Value>value).spec for value in values]


cdef bint is_true(Value predicate) except -1:
    return bool(array_of(predicate))


def slices_of(arrays, n_stacks, ragged):
    """Return the slices of stacks, by place.

    Parameters
    ----------
    arrays : list of ndarray
        The stacks, then the lengths of those that are ragged.
    n_stacks : int
    ragged : tuple of int
        Which stacks are made of slices of several lengths, one after the other.

    Returns
    -------
    list
        Per stack an object that returns a slice by its place.
    """
    slices = [Slices(stack) for stack in arrays[:n_stacks]]
    for i, lengths in zip(ragged, arrays[n_stacks:]):
        slices[i].ends = np.cumsum(lengths)
    return slices


class Slices:
    """Return the slices of a stack; `ends` are their ends if they differ in length."""

    def __init__(self, stack):
        self.stack = stack
        self.ends = None

    def __getitem__(self, place):
        if self.ends is None:
            return self.stack[place, ...]
        return self.stack[self.ends[place - 1] if place else 0:self.ends[place]]

    def spec(self):
        """Return the spec of a slice."""
        shape = self.stack.shape[1:] if self.ends is None else (None, *self.stack.shape[1:])
        return symbolic_spec(shape, self.stack.dtype)


class Snapshots:
    """States of a loop that are stored for its gradient.

    Parameters
    ----------
    limit : int
    start : list of ndarray
        The first state.
    condition, snapshots : object
        Attributes of a call of `LoopOp`.
    """

    def __init__(self, limit, start, *, condition, snapshots=None, **_):
        self.start, self.first_pass, self.states = start, None, {}
        if snapshots is not None:
            states, nbytes, residual_bytes = snapshots
            self.first_pass = FirstPass(
                limit if condition is None else None, states, nbytes,
                sum([x.nbytes for x in start]), residual_bytes)

    def has_slot_for(self, step):
        """Return whether to store the state of the next step."""
        self.slot = -1 if self.first_pass is None else self.first_pass.slot_for(step)
        return self.slot >= 0

    def store(self, state):
        """Store a state, a list of arrays."""
        self.states[self.slot] = state

    def arrays(self):
        """Return stacks of each loop variable, and the numbers of their states.

        States with other shapes than the first one are omitted.
        """
        if self.first_pass is None:
            return []
        shapes = [x.shape for x in self.start]
        block, *stored = self.first_pass.index()
        found = [(step, self.states[slot]) for step, slot in zip(stored[::2], stored[1::2])]
        found = [(step, state) for step, state in found if [x.shape for x in state] == shapes]
        stacks = [np.array([state[i] for _, state in found], x.dtype).reshape(
                      len(found), *x.shape) for i, x in enumerate(self.start)]
        index = [block]
        for row, (step, _) in enumerate(found):
            index += [step, row]
        return [*stacks, np.array(index, np.int64)]


def output_specs(body, specs):
    """Return the specs of a body's results.

    Parameters
    ----------
    body : ConcreteFunction
    specs : sequence of Spec
        Of its inputs, which may say more than the body was traced with.

    Returns
    -------
    list of Spec
    """
    cdef Executable executable
    cdef tuple key
    graph, symbols = body.graph, body.output_symbols
    if not any([not graph.spec_of(symbol).known and spec.known
                for symbol, spec in zip(body.input_symbols, specs)]):
        return [graph.spec_of(symbol) for symbol in symbols]
    if not all([spec.known for spec in specs]):  # extents of results may be those of operands
        return inferred_specs(body, specs)
    # Cached, since inner bodies are inferred again for each level around them.
    executable, key = body.executable, tuple(specs)
    if executable.inferred is None:
        executable.inferred = {}
    elif key in executable.inferred:
        return executable.inferred[key]
    elif len(executable.inferred) == MOST_ALONE:
        executable.inferred.clear()
    executable.inferred[key] = inferred_specs(body, specs)
    return executable.inferred[key]


cdef list inferred_specs(body, specs):
    cdef object graph = body.graph, symbols = body.output_symbols
    try:
        subgraph = with_known_specs(
            Subgraph(graph, tuple(body.input_symbols), tuple(symbols)), specs)
    except Exception:  # shapes may be inconsistent in a body that does not run
        pass
    else:
        graph, symbols = subgraph.graph, subgraph.fetches
    return [graph.spec_of(symbol) for symbol in symbols]


def kept_arrays(rows, specs, ragged):
    """Return stacks of results of iterations, then the lengths of the slices of ragged ones.

    Parameters
    ----------
    rows : list of list of ndarray
        Per iteration.
    specs : list of Spec
    ragged : tuple of int

    Returns
    -------
    list of ndarray
    """
    stacks, lengths = [], []
    for i, spec in enumerate(specs):
        arrays = [row[i] for row in rows]
        if i not in ragged:
            stacks.append(stacked(arrays, spec))
            continue
        # Slices without rows may have other extents: unknown ones are 0 in a branch not taken.
        filled = [array for array in arrays if len(array)] or arrays[:1]
        empty = np.zeros([0, *[extent or 0 for extent in spec.shape[1:]]], spec.dtype)
        stacks.append(np.concatenate(filled) if filled else empty)
        lengths.append(np.array([len(array) for array in arrays], np.int64))
    return stacks + lengths


def stacked(list arrays, spec):
    """Return arrays of a spec as one, with a leading axis."""
    if not arrays:
        return np.zeros((0, *[extent or 0 for extent in spec.shape or ()]), spec.dtype)
    if len({array.shape for array in arrays}) > 1:
        raise GraphError(
            "results and residuals of the iterations of a loop (or the members of vmap) must have "
            f"one shape to be stacked, got {sorted({array.shape for array in arrays})}: arrays "
            "whose shape depends on values must be reduced within the function, such as the states "
            "of solve_ivp without t_eval to y[:, -1], and x[x > 0] to a sum; or select by "
            "cytape.numpy.where")
    return np.stack(arrays)
