cimport cython
from cytape.core.interrupts cimport INTERRUPTED
from cytape.tensor.values.spec cimport Spec
from libc.string cimport memcpy
from numpy cimport npy_intp

from .instructions cimport CONTROL, Runner, Subprogram
from .plan_layout cimport Stack

from cytape.errors import GraphError

cdef extern from "Python.h":
    void PyErr_Format(object kind, const char* text, ...) noexcept

cdef object graph_error = GraphError


cdef bint unstacked(Code code, int32_t node) except -1:
    """Emit a copy of a stack after a check of its number of rows."""
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(x), result = code.spec(out)
    cdef StackProgram program
    if tuple(spec.shape)[1:] != result.shape[1:]:
        return False
    program = StackProgram()
    program.n_rows, program.n_bytes = result.shape[0], result.nbytes
    code.place_output(out)
    code.subprograms.append(program)
    code.emit_operands(node, CONTROL, program, [x, out], 2 * result.nbytes)
    return True


@cython.final
cdef class StackProgram(Subprogram):
    cdef npy_intp n_rows, n_bytes

    cdef Runner new_runner(self):
        cdef StackRunner runner = StackRunner()
        runner.n_rows, runner.n_bytes = self.n_rows, self.n_bytes
        return runner


@cython.final
cdef class StackRunner(Runner):
    cdef npy_intp n_rows, n_bytes

    cdef int run(self, char** data) noexcept nogil:
        cdef Stack* stack = <Stack*>data[0]
        if stack.count != self.n_rows:
            return wrong_count(stack.count, self.n_rows)
        memcpy(data[1], stack.data, self.n_bytes)
        return 0


cdef int wrong_count(npy_intp found, npy_intp expected) noexcept with gil:
    PyErr_Format(
        graph_error, b"a loop wrote %zd rows, but %zd were expected", <Py_ssize_t>found,
        <Py_ssize_t>expected)
    return INTERRUPTED
