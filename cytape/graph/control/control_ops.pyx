from cpython.exc cimport PyErr_CheckSignals
from cytape.graph.run.executable cimport Executable
from cytape.tensor.value cimport Value, array_of, copy_of_array, value_of_array

from .branch_program cimport emit_branch
from .loop_program cimport emit_loop

import numpy as np

from cytape.errors import GraphError


cdef class CondOp(ValueOp):
    """Runs one of two functions, as its first input says.

    Attributes of a call: `branches`, two of ConcreteFunction, for true and for false; `positions`,
    for each the positions of its inputs among those of the op.
    """

    def __cinit__(self, *_, **__):
        self.emitter = <void*>emit_branch

    cpdef list run_values(self, list values, dict attrs):
        cdef int which = 0 if is_true(values[0]) else 1
        cdef Executable branch = attrs["branches"][which].executable
        return branch.run_values([values[i] for i in attrs["positions"][which]])


cdef class LoopOp(ValueOp):
    """Runs a function on its own results, as often as another function says.

    The inputs are the greatest number of iterations, the start values of the loop variables, and
    stacks, of which each iteration takes the next slice; then what is the same in all of them. The
    outputs are how many iterations there were, the loop variables, and stacks of what else the
    body returned.

    Attributes of a call: `body` and `condition`, each a ConcreteFunction (no condition: None);
    `n_variables` and `n_stacks`; `body_inputs` and `condition_inputs`, the positions of what each
    takes besides; `reverse`, whether the slices are taken and stacked from the last to the first.
    """

    def __cinit__(self, *_, **__):
        self.emitter = <void*>emit_loop

    cpdef list run_values(self, list values, dict attrs):
        cdef Executable body = attrs["body"].executable, condition = None
        cdef Py_ssize_t n = attrs["n_variables"], n_stacks = attrs["n_stacks"]
        cdef Py_ssize_t count = 0, limit = int(array_of(values[0]))
        cdef bint reverse = attrs["reverse"]
        cdef list variables = values[1:n + 1], results
        cdef list stacks = [array_of(stack) for stack in values[n + 1:n + 1 + n_stacks]]
        cdef list same = [values[i] for i in attrs["body_inputs"]]
        cdef list same_for_condition = [values[i] for i in attrs["condition_inputs"]]
        cdef list kept = []
        if attrs["condition"] is not None:
            condition = attrs["condition"].executable
        while count < limit:
            if condition is not None and not is_true(
                    condition.run_values(variables + same_for_condition)[0]):
                break
            place = limit - 1 - count if reverse else count
            results = body.run_values(
                variables + [value_of_array(stack[place, ...]) for stack in stacks] + same)
            variables = results[:n]
            kept.append(results[n:])
            count += 1
            PyErr_CheckSignals()
        if count == 0:
            variables = [copy_of_array(array_of(value)) for value in variables]
        if reverse:
            kept.reverse()
        specs = [body.subgraph.graph.spec_of(symbol) for symbol in body.subgraph.fetches[n:]]
        return [value_of_array(np.asarray(count, np.int64)), *variables, *[
            value_of_array(stacked([array_of(row[i]) for row in kept], spec))
            for i, spec in enumerate(specs)]]


cdef bint is_true(Value predicate) except -1:
    return bool(array_of(predicate))


def stacked(list arrays, spec):
    """Return arrays of a spec as one, with a leading axis."""
    if not arrays:
        return np.zeros((0, *[extent or 0 for extent in spec.shape or ()]), spec.dtype)
    if len({array.shape for array in arrays}) > 1:
        raise GraphError(
            "what the iterations of a loop leave for its gradient must have one shape, got "
            f"{sorted({array.shape for array in arrays})}")
    return np.stack(arrays)
