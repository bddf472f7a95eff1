# An array without other readers is updated in place: a row is written, cleared or added to in time
# that does not depend on the number of rows.

cimport cython
from cytape.core.interrupts cimport INTERRUPTED
from cytape.graph.run.code cimport Code
from cytape.graph.run.instructions cimport CONTROL, Runner, Subprogram, loop_of
from cytape.graph.run.layout cimport DEFERRED, NOWHERE, PLACED, Place
from cytape.ops.engine.dispatch cimport Op
from cytape.ops.engine.node_store cimport Node
from cytape.ops.kernels.loops cimport Loop, kernel_of
from cytape.ops.kernels.walk cimport MAX_AXES
from cytape.tensor.spec cimport Spec
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset
from numpy cimport NPY_BOOL, NPY_INT64, npy_intp

import numpy as np

cdef extern from "Python.h":
    void PyErr_Format(object kind, const char* text, ...) noexcept

cdef const char* range_text = (
    b"TensorArray: index %zd is out of range for size %zd (one with dynamic_size=True grows when "
    b"it is written to)")
cdef const char* written_text = (
    b"TensorArray: index %zd is written a second time; write elsewhere, or to the array as it was "
    b"before")

ctypedef bint (*Emitter)(Code code, int32_t node, Op op) except -1

cdef enum Kind:
    TAKE    # rows, from the array
    ADD     # rows, to the array
    WRITE
    CLEAR
    MARK    # places that are written, each once
    CHECK   # that places are in an array of a size

cdef enum:
    WRITTEN = -1  # instead of a size: the place is written already

cdef struct Rows:
    Kind kind
    npy_intp n_outer, n_rows, n_places   # an array has n_outer times n_rows rows
    npy_intp block                       # bytes of a row
    npy_intp n_elements, itemsize        # ... of each
    const Loop* adding


def out_of_range(index, size):
    """Return the error of an index that an array does not have."""
    return IndexError(range_text.replace(b"%zd", b"%d").decode() % (index, size))


def written_before(index):
    """Return the error of a second write."""
    return ValueError(written_text.replace(b"%zd", b"%d").decode() % index)


@cython.final
cdef class RowProgram(Subprogram):
    cdef Rows rows

    cdef Runner new_runner(self):
        cdef RowRunner runner = RowRunner()
        runner.rows = self.rows
        return runner


@cython.final
cdef class RowRunner(Runner):
    cdef Rows rows

    cdef int run(self, char** data) noexcept nogil:
        cdef Rows* rows = &self.rows
        if rows.kind == CHECK:
            return checked(rows.n_places, <int64_t*>data[0], (<int64_t*>data[1])[0],
                           <int64_t*>data[2])
        if rows.kind == MARK:
            return marked(rows, <int64_t*>data[0], data[1])
        if rows.kind == CLEAR:
            return moved(rows, data[1], <int64_t*>data[0], data[1])
        if rows.kind == TAKE:
            return moved(rows, data[2], <int64_t*>data[1], data[0])
        return moved(rows, data[0], <int64_t*>data[1], data[2])


cdef int moved(Rows* rows, char* values, const int64_t* places, char* array) noexcept nogil:
    """Move rows between an array and the values of some of them."""
    cdef npy_intp _, i, place
    cdef npy_intp strides[3]
    cdef char* operands[3]
    cdef char* row
    strides[0] = strides[1] = strides[2] = rows.itemsize
    for _ in range(rows.n_outer):
        for i in range(rows.n_places):
            place = places[i]
            if place < -rows.n_rows or place >= rows.n_rows:
                return refused(place, rows.n_rows)
            row = array + (place + rows.n_rows if place < 0 else place) * rows.block
            if rows.kind == TAKE:
                memcpy(values, row, rows.block)
            elif rows.kind == WRITE:
                memcpy(row, values, rows.block)
            elif rows.kind == CLEAR:
                memset(row, 0, rows.block)
            else:
                operands[0] = operands[2] = row
                operands[1] = values
                rows.adding.function(operands, &rows.n_elements, strides, rows.adding.data)
            values += rows.block
        array += rows.n_rows * rows.block
    return 0


cdef int marked(Rows* rows, const int64_t* places, char* written) noexcept nogil:
    cdef npy_intp i
    for i in range(rows.n_places):
        if not 0 <= places[i] < rows.n_rows:
            return refused(places[i], rows.n_rows)
        if written[places[i]]:
            return refused(places[i], WRITTEN)
        written[places[i]] = True
    return 0


cdef int checked(npy_intp n, const int64_t* places, int64_t size, int64_t* result) noexcept nogil:
    cdef npy_intp i
    for i in range(n):
        if not 0 <= places[i] < size:
            return refused(places[i], size)
        result[i] = places[i]
    return 0


cdef int refused(npy_intp place, npy_intp size) noexcept with gil:
    if size == WRITTEN:
        PyErr_Format(ValueError, written_text, place)
    else:
        PyErr_Format(IndexError, range_text, place, size)
    return INTERRUPTED


# ---- writing instructions

cdef RowProgram program_of(Kind kind, Spec array, Spec values, Spec index, int axis):
    """The program between an array and the values of some rows (None: no values), or None."""
    cdef RowProgram program = RowProgram()
    cdef Rows* rows = &program.rows
    cdef int i
    if not 0 <= axis < array.ndim or values is not None and (
            values.dtype != array.dtype
            or values.shape != (*array.shape[:axis], *index.shape, *array.shape[axis + 1:])):
        return None
    rows.kind, rows.n_outer, rows.n_places = kind, 1, index.size
    rows.n_rows, rows.n_elements, rows.itemsize = array.dims[axis], 1, array.itemsize
    for i in range(axis):
        rows.n_outer *= array.dims[i]
    for i in range(axis + 1, array.ndim):
        rows.n_elements *= array.dims[i]
    rows.block = rows.n_elements * rows.itemsize
    rows.adding = NULL
    return program


cdef bint suits(Code code, int32_t node, int n) except -1:
    """Whether the first operands, an index as the last of them, and the result are in memory."""
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t symbol
    for symbol in range(row.first_output, row.first_output + row.n_outputs):
        if code.layout.places[symbol].kind != NOWHERE or not code.spec(symbol).known:
            return False
    for i in range(n):
        symbol = code.graph.args[row.inputs + i]
        if code.layout.places[symbol].kind != PLACED or not code.spec(symbol).known:
            return False
    return code.spec(symbol).type_num == NPY_INT64


cdef int32_t operand(Code code, int32_t node, int i) except -1:
    return code.contiguous(node, code.graph.args[code.graph.nodes[node].inputs + i])


cdef int emit(Code code, int32_t node, RowProgram program, list symbols) except -1:
    cdef Rows* rows = &program.rows
    code.subprograms.append(program)
    code.emit_operands(node, CONTROL, program, symbols,
                       3 * rows.n_outer * rows.n_places * rows.block)
    return code.release_temporaries()


cdef bint emit_take(Code code, int32_t node, Op op) except -1:
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t out = row.first_output
    cdef RowProgram program
    if not suits(code, node, 2):
        return False
    program = program_of(TAKE, code.spec(code.graph.args[row.inputs]), code.spec(out),
                         code.spec(code.graph.args[row.inputs + 1]), code.graph.attrs[node]["axis"])
    if program is None:
        return False
    symbols = [operand(code, node, 0), operand(code, node, 1), out]
    code.place_output(out)
    return emit(code, node, program, symbols) == 0


cdef bint emit_place(Code code, int32_t node, Op op) except -1:
    """Zeros with rows added to them, which may be added to another array instead."""
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t rows = code.graph.args[row.inputs], index = code.graph.args[row.inputs + 1]
    cdef int32_t out = row.first_output, symbol
    cdef Place* place = &code.layout.places[out]
    cdef RowProgram program
    cdef Spec spec = code.spec(rows)
    if not suits(code, node, 2) or code.layout.places[rows].strides >= 0 or (
            code.layout.places[index].strides >= 0):
        return False
    program = program_of(
        ADD, code.spec(out), spec, code.spec(index), code.graph.attrs[node]["axis"])
    if program is None:
        return False
    program.rows.adding = loop_of(kernel_of(np.add), spec.type_num, spec)
    if program.rows.adding == NULL:
        return False
    code.subprograms.append(program)
    code.elements[out] = (program, [rows, index])
    place.kind, place.source = DEFERRED, rows
    place.root, place.claims = code.layout.places[rows].root, 1
    for symbol in (rows, index):
        code.layout.places[code.layout.places[symbol].root].claims += 1
    if place.uses != 1:
        code.settle(out)
    return True


cdef bint emit_write(Code code, int32_t node, Op op) except -1:
    cdef Node* row = &code.graph.nodes[node]
    cdef RowProgram program
    if not suits(code, node, 3):
        return False
    program = program_of(
        WRITE, code.spec(row.first_output), code.spec(code.graph.args[row.inputs + 1]),
        code.spec(code.graph.args[row.inputs + 2]), code.graph.attrs[node]["axis"])
    if program is None:
        return False
    return over(code, node, program, [operand(code, node, 1), operand(code, node, 2)])


cdef bint emit_clear(Code code, int32_t node, Op op) except -1:
    cdef Node* row = &code.graph.nodes[node]
    if not suits(code, node, 2):
        return False
    program = program_of(
        CLEAR, code.spec(row.first_output), None, code.spec(code.graph.args[row.inputs + 1]),
        code.graph.attrs[node]["axis"])
    if program is None:
        return False
    return over(code, node, program, [operand(code, node, 1)])


cdef bint emit_mark(Code code, int32_t node, Op op) except -1:
    cdef Node* row = &code.graph.nodes[node]
    cdef Spec written = code.spec(row.first_output)
    if not suits(code, node, 2) or written.type_num != NPY_BOOL or written.ndim != 1:
        return False
    program = program_of(MARK, written, None, code.spec(code.graph.args[row.inputs + 1]), 0)
    return over(code, node, program, [operand(code, node, 1)])


cdef bint over(Code code, int32_t node, RowProgram program, list symbols) except -1:
    """Change the first operand of a node, or a copy of it if it is still to be read."""
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    if code.spec(x) is not code.spec(out):
        code.release_temporaries()
        return False
    if not code.take_over(out, x, 1):
        code.place_output(out)
        code.emit_copy(node, &code.layout.places[x], code.spec(x), code.layout.places[out].address)
    return emit(code, node, program, [*symbols, out]) == 0


cdef bint emit_check(Code code, int32_t node, Op op) except -1:
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t index = code.graph.args[row.inputs], size = code.graph.args[row.inputs + 1]
    cdef int32_t out = row.first_output
    if (not suits(code, node, 2) or code.spec(index).type_num != NPY_INT64
            or code.spec(size).size != 1 or code.spec(index) is not code.spec(out)):
        return False
    cdef RowProgram program = RowProgram()
    program.rows.kind, program.rows.n_places = CHECK, code.spec(index).size
    symbols = [operand(code, node, 0), operand(code, node, 1), out]
    code.place_output(out)
    return emit(code, node, program, symbols) == 0


cdef bint emit_confirm(Code code, int32_t node, Op op) except -1:
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef npy_intp strides[MAX_AXES]
    if (code.layout.places[x].kind != PLACED or not code.spec(x).known
            or code.layout.places[out].kind != NOWHERE):
        return False
    code.strides_of(x, strides)
    return code.view(out, x, 0, strides) == 0


cdef Emitter emitter_of(str kind) except *:
    if kind == "take":
        return emit_take
    if kind == "place":
        return emit_place
    if kind == "write":
        return emit_write
    if kind == "clear":
        return emit_clear
    if kind == "mark":
        return emit_mark
    if kind == "check":
        return emit_check
    if kind == "confirm":
        return emit_confirm
    raise ValueError(f"no kind of op: {kind!r}")


def run_in_plans(Op op not None, str kind not None):
    """Have plans run an op without Python.

    Parameters
    ----------
    op : Op
        With the operands of one of those in `array_ops`.
    kind : {"take", "place", "write", "clear", "mark", "check", "confirm"}
    """
    op.emitter = <void*>emitter_of(kind)
    op.adds_part = kind == "place"
