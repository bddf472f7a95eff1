cimport cython
from cytape.core.interrupts cimport INTERRUPTED
from cytape.graph.run.emitters cimport emit_by
from cytape.graph.run.plan_code cimport Code
from cytape.graph.run.instructions cimport CONTROL, Runner, Subprogram
from cytape.graph.run.transfers cimport add, is_placed, read, write
from cytape.ops.calls.dispatch cimport Lowering, Op
from cytape.ops.calls.node_store cimport Node
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int32_t, int64_t
from numpy cimport NPY_BOOL, NPY_INT64, npy_intp

cdef extern from "Python.h":
    void PyErr_Format(object kind, const char* text, ...) noexcept

cdef const char* range_text = (
    b"TensorArray: index %zd is out of range for size %zd (one with dynamic_size=True grows when "
    b"it is written to)")
cdef const char* written_text = (
    b"TensorArray: index %zd is written a second time; write elsewhere, or to the array as it was "
    b"before")

cdef enum:
    WRITTEN = -1  # in place of a size: the place has already been written


def out_of_range(index, size):
    """Return the error of an index that an array does not have."""
    return IndexError(range_text.replace(b"%zd", b"%d").decode() % (index, size))


def written_before(index):
    """Return the error of a second write."""
    return ValueError(written_text.replace(b"%zd", b"%d").decode() % index)


# ---- checks of places

@cython.final
cdef class CheckProgram(Subprogram):
    cdef npy_intp n_places, n_rows   # that are marked; -1: places are compared with an operand

    cdef Runner new_runner(self):
        cdef CheckRunner runner = CheckRunner()
        runner.n_places, runner.n_rows = self.n_places, self.n_rows
        return runner


@cython.final
cdef class CheckRunner(Runner):
    cdef npy_intp n_places, n_rows

    cdef int run(self, char** data) noexcept nogil:
        if self.n_rows < 0:
            return checked(self.n_places, <int64_t*>data[0], (<int64_t*>data[1])[0],
                           <int64_t*>data[2])
        return marked(self.n_places, self.n_rows, <int64_t*>data[0], data[1])


cdef int marked(npy_intp n, npy_intp n_rows, const int64_t* places, char* written) noexcept nogil:
    cdef npy_intp i
    for i in range(n):
        if not 0 <= places[i] < n_rows:
            return refused(places[i], 0, n_rows)
        if written[places[i]]:
            return refused(places[i], 0, WRITTEN)
        written[places[i]] = True
    return 0


cdef int checked(npy_intp n, const int64_t* places, int64_t size, int64_t* result) noexcept nogil:
    cdef npy_intp i
    for i in range(n):
        if not 0 <= places[i] < size:
            return refused(places[i], 0, size)
        result[i] = places[i]
    return 0


cdef int refused(npy_intp place, int axis, npy_intp size) noexcept with gil:
    if size == WRITTEN:
        PyErr_Format(ValueError, written_text, place)
    else:
        PyErr_Format(IndexError, range_text, place, size)
    return INTERRUPTED


# ---- writing instructions

cdef tuple index_of(Code code, int32_t node):
    return (slice(None),) * code.graph.attrs[node]["axis"] + ("@0",)


cdef bint emit_take(Code code, int32_t node, Op op) except -1:
    return read(code, node, index_of(code, node), 1, refused)


cdef bint emit_place(Code code, int32_t node, Op op) except -1:
    # Not exact: an iteration's time must not depend on the number of rows.
    return add(code, node, index_of(code, node), 1, refused, False)


cdef bint emit_write(Code code, int32_t node, Op op) except -1:
    return write(code, node, index_of(code, node), 2, refused)


cdef bint emit_clear(Code code, int32_t node, Op op) except -1:
    return write(code, node, index_of(code, node), 1, refused)


cdef bint emit_mark(Code code, int32_t node, Op op) except -1:
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t x = code.graph.args[row.inputs], index = code.graph.args[row.inputs + 1]
    cdef int32_t out = row.first_output
    cdef Spec written = code.spec(out)
    if not (is_placed(code, x) and is_placed(code, index)) or written is not code.spec(x) or (
            written.type_num != NPY_BOOL or written.ndim != 1
            or code.spec(index).type_num != NPY_INT64):
        return False
    index = code.contiguous(node, index)
    code.place_over(node, out, x)
    return emit(code, node, written.size, [index, out])


cdef bint emit_check(Code code, int32_t node, Op op) except -1:
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t index = code.graph.args[row.inputs], size = code.graph.args[row.inputs + 1]
    cdef int32_t out = row.first_output
    if not (is_placed(code, index) and is_placed(code, size)) or (
            code.spec(index).type_num != NPY_INT64 or code.spec(size).type_num != NPY_INT64
            or code.spec(size).size != 1 or code.spec(index) is not code.spec(out)):
        return False
    symbols = [code.contiguous(node, index), code.contiguous(node, size), out]
    code.place_output(out)
    return emit(code, node, -1, symbols)


cdef bint emit(Code code, int32_t node, npy_intp n_rows, list symbols) except -1:
    cdef CheckProgram program = CheckProgram()
    program.n_places, program.n_rows = code.spec(symbols[0]).size, n_rows
    code.subprograms.append(program)
    code.emit_operands(node, CONTROL, program, symbols, code.spec(symbols[0]).nbytes)
    code.release_temporaries()
    return True


emit_by(Lowering.ROWS_READ, emit_take)
emit_by(Lowering.ROWS_ADDED, emit_place)
emit_by(Lowering.ROWS_WRITTEN, emit_write)
emit_by(Lowering.ROWS_CLEARED, emit_clear)
emit_by(Lowering.ROWS_MARKED, emit_mark)
emit_by(Lowering.ROWS_CHECKED, emit_check)
