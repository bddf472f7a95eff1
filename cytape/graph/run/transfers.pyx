cimport cython
cimport numpy as cnp
from cytape.core.interrupts cimport INTERRUPTED
from cytape.ops.kernels.gather cimport RAISE, are_inside, copy_rows
from cytape.ops.kernels.ufunc_loops cimport kernel_of
from cytape.ops.kernels.masks cimport choose_items, is_mask, is_moved, put_items
from cytape.ops.kernels.scatter cimport add_all, add_rows, find_places, is_whole, prepare
from cytape.ops.kernels.sums cimport add_loop_of
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from numpy cimport ndarray

from .instructions cimport CONTROL, Runner, loop_of
from .plan_layout cimport DEFERRED, NOWHERE, PLACED, SMALL_BYTES, Place, is_plain_float

import numpy as np

cnp.import_array()

cdef enum:
    MOST = 255   # largest count in a byte
    AT_ONCE = 256  # rows whose places are found before they are moved
    FEW = 8      # a strided array is copied for its part if it is at most this many times as large

cdef extern from "Python.h":
    void PyErr_Format(object kind, const char* text, ...) noexcept


# ---- places that operands hold

cdef bint read(Code code, int32_t node, index, int first, Refusal refuse) except -1:
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef TransferProgram program
    if not is_placed(code, x) or not code.spec(out).known or (
            code.layout.places[x].strides >= 0
            and code.spec(x).nbytes > max(FEW * code.spec(out).nbytes, <npy_intp>SMALL_BYTES)):
        return False
    symbols = places_of(code, node, index, first)
    program = program_of(code, symbols, index, code.spec(x), code.spec(out))
    if program is None:
        return False
    program.it.what, program.it.refuse = READ, refuse
    symbols = [code.contiguous(node, symbol) for symbol in (x, *symbols)]
    return emit(code, node, program, [*symbols, out], 2 * code.spec(out).nbytes)


cdef bint add(Code code, int32_t node, index, int first, Refusal refuse,
              bint is_exact) except -1:
    """Emit an addition of a part to zeros, or defer it, to add it to another array instead."""
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output, symbol
    cdef TransferProgram program
    if not is_placed(code, x) or not code.spec(out).known:
        return False
    symbols = places_of(code, node, index, first)
    program = program_of(code, symbols, index, code.spec(out), code.spec(x))
    if program is None or (  # added up in single precision
            program.it.job.count > 1 and code.spec(x).type_num == cnp.NPY_FLOAT16):
        return False
    for symbol in (x, *symbols):
        if code.layout.places[symbol].strides >= 0:
            return False
    program.it.what, program.it.refuse = ADD, refuse
    prepare(&program.it.job, code.spec(x), False)
    program.it.job.add = loop_of(kernel_of(np.add), code.spec(x).type_num, code.spec(x))
    if program.it.job.add == NULL:
        return False
    program.it.last = 1 + <int>len(symbols)
    code.subprograms.append(program)
    code.elements[out] = (program, [x, *symbols])
    defer(code, out, x, symbols)
    if is_exact and program.it.job.count > 1 and code.layout.places[out].kind == DEFERRED:
        code.settle(out)
    return True


cdef bint write(Code code, int32_t node, index, int first, Refusal refuse) except -1:
    cdef int32_t inputs = code.graph.nodes[node].inputs
    cdef int32_t x = code.graph.args[inputs], out = code.graph.nodes[node].first_output
    cdef int32_t part = code.graph.args[inputs + 1] if first == 2 else -1
    cdef TransferProgram program
    if not is_placed(code, x) or code.spec(x) is not code.spec(out) or (
            part >= 0 and not is_placed(code, part)):
        return False
    symbols = places_of(code, node, index, first)
    program = program_of(
        code, symbols, index, code.spec(x), None if part < 0 else code.spec(part))
    if program is None:
        return False
    program.it.what, program.it.refuse = CLEAR if part < 0 else WRITE, refuse
    symbols = [code.contiguous(node, symbol) for symbol in symbols]
    symbols.insert(0, out if part < 0 else code.contiguous(node, part))
    code.place_over(node, out, x)
    return emit(code, node, program, [*symbols, out],
                2 * program.it.job.blocks * program.it.job.count * program.it.job.row_bytes)


cdef bint defer(Code code, int32_t out, int32_t x, list operands) except -1:
    cdef Place* place = &code.layout.places[out]
    cdef int32_t symbol
    place.kind, place.source = DEFERRED, x
    place.root, place.claims = code.layout.places[x].root, 1
    for symbol in (x, *operands):
        code.layout.places[code.layout.places[symbol].root].claims += 1
    if place.uses != 1:
        code.settle(out)
    return True


cdef bint is_placed(Code code, int32_t symbol) except -1:
    return code.layout.places[symbol].kind == PLACED and code.spec(symbol).known


cdef list places_of(Code code, int32_t node, index, int first):
    """Return the inputs that hold places, None if one cannot be read without Python."""
    cdef int32_t inputs = code.graph.nodes[node].inputs
    parts = index if isinstance(index, tuple) else (index,)
    n = 1 + max([int(part[1:]) for part in parts if isinstance(part, str)], default=-1)
    symbols = [code.graph.args[inputs + first + <int>i] for i in range(n)]
    for symbol in symbols:
        if not is_placed(code, symbol) or code.spec(symbol).type_num != cnp.NPY_INT64:
            return None
    return symbols


cdef TransferProgram program_of(Code code, list symbols, index, Spec array, Spec part):
    """Return rows of an array at places given by symbols and numbers; None for other indices.

    The symbols are scalars or have one shape, and the indexed axes are adjacent.
    """
    cdef TransferProgram program = TransferProgram()
    cdef Transfer* it = &program.it
    cdef IndexedAxis* at
    cdef tuple parts = index if isinstance(index, tuple) else (index,), shape = ()
    cdef Spec spec
    cdef npy_intp extent = 1
    cdef int i, axis
    it.lead, i = 0, <int>len(parts)
    if i > array.ndim or array.size == 0 or symbols is None:
        return None
    while i and is_whole(parts[i - 1]):
        i -= 1
    while it.lead < i and is_whole(parts[it.lead]):
        it.lead += 1
    it.n_indexed = i - it.lead
    if it.n_indexed == 0:
        return None
    it.job.count = 1
    for i in range(it.n_indexed - 1, -1, -1):
        axis, number = it.lead + i, parts[it.lead + i]
        at = &it.axes[i]
        at.extent, at.stride = array.dims[axis], extent
        extent *= array.dims[axis]
        if type(number) is int:
            at.number = number
        elif type(number) is str:
            at.operand = 1 + int(number[1:])
            spec = code.spec(symbols[at.operand - 1])
            if spec.ndim:
                if shape and shape != spec.shape:
                    return None
                shape, at.step, it.job.count = spec.shape, 1, spec.size
        else:
            return None
    if part is not None and (part.type_num != array.type_num or part.shape != (
            *array.shape[:it.lead], *shape, *array.shape[it.lead + it.n_indexed:])):
        return None
    it.job.blocks = it.job.row_size = 1
    for axis in range(array.ndim):
        if axis < it.lead:
            it.job.blocks *= array.dims[axis]
        elif axis >= it.lead + it.n_indexed:
            it.job.row_size *= array.dims[axis]
    it.job.extent, it.job.row_bytes = extent, it.job.row_size * array.itemsize
    return program


cdef bint emit(Code code, int32_t node, TransferProgram program, list symbols,
               npy_intp work) except -1:
    cdef int32_t out = code.graph.nodes[node].first_output
    if code.layout.places[out].kind == NOWHERE:
        code.place_output(out)
    program.it.last = <int>len(symbols) - 1
    code.subprograms.append(program)
    code.emit_operands(node, CONTROL, program, symbols, work)
    code.release_temporaries()
    return True


# ---- places that the plan knows

cdef bint take(Code code, int32_t node, index) except -1:
    """Emit a copy of the part that an index selects; of a uniform operand, a uniform one."""
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef npy_intp no_strides[MAX_AXES]
    cdef TransferProgram program = known_program(code, x, out, index, code.spec(x), code.spec(out))
    if program is None:
        return False
    if code.shows_item(x):
        memset(no_strides, 0, sizeof(no_strides))
        return code.view(out, x, 0, no_strides) == 0
    program.it.what = TAKE if program.it.marks == NULL else CHOOSE
    return emit(
        code, node, program, [code.contiguous(node, x), out], 2 * code.spec(out).nbytes)


cdef bint sum_up(Code code, int32_t node, index) except -1:
    cdef int32_t x = code.graph.args[code.graph.nodes[node].inputs]
    cdef int32_t out = code.graph.nodes[node].first_output
    cdef Spec spec = code.spec(x), result = code.spec(out)
    cdef TransferProgram program
    cdef bint is_item
    if add_loop_of(spec) == NULL or spec.type_num == cnp.NPY_FLOAT16:
        return False
    program = known_program(code, x, out, index, result, spec)
    if program is None:
        return False
    is_item = code.shows_item(x)
    if program.it.marks != NULL:
        program.it.what = PUT
        program.it.job.step = not is_item
    elif is_item and is_plain_float(spec) and count_places(program, result.nbytes):
        program.it.what = COUNT
        if program.it.job.row_size > 1:  # uniform rows, by strides of zero
            place_column(code, out, program.it.job.n_leading)
    else:
        program.it.what = SUM
        is_item = is_item and program.it.job.row_size == 1
        prepare(&program.it.job, spec, is_item)
    return emit(code, node, program, [x if is_item else code.contiguous(node, x), out],
                spec.nbytes + result.nbytes)


cdef TransferProgram known_program(Code code, int32_t x, int32_t out, index, Spec array, Spec part):
    """Return items at known places or under a mask; None for other indices, or out of bounds."""
    cdef TransferProgram program = TransferProgram()
    cdef Scatter* job = &program.it.job
    cdef ndarray places
    if not is_placed(code, x) or code.layout.places[out].kind != NOWHERE or not (
            code.spec(out).known and code.spec(out).size) or array.type_num != part.type_num:
        return None
    program.it.itemsize = array.itemsize
    if is_mask(index):
        if (<object>index).shape != array.shape or not is_moved(array.dtype) or (
                np.count_nonzero(index) != part.size):
            return None
        program.kept = index
        program.it.marks = <const unsigned char*>cnp.PyArray_DATA(<ndarray>index)
        program.it.n_items = array.size
        job.count = part.size
        return program
    places = find_places(array.shape, index, job)
    if places is None or job.blocks * job.count * job.row_size != part.size or (
            not are_inside(job.places, job.count, job.extent, RAISE)):
        return None
    program.kept = places
    job.row_bytes = job.row_size * array.itemsize
    return program


cdef bint count_places(TransferProgram program, npy_intp nbytes) except -1:
    """Count the occurrences of each place; return False if counting does not pay."""
    cdef Scatter* job = &program.it.job
    cdef ndarray counts
    if nbytes <= SMALL_BYTES or 4 * job.count < job.extent:
        return False
    places = np.asarray(program.kept).reshape(-1)
    found = np.bincount(np.where(places < 0, places + job.extent, places), minlength=job.extent)
    program.it.most = min(found.max(), MOST + 1)
    if program.it.most > MOST:
        return False
    counts = program.kept = found.astype(np.uint8)
    program.it.marks = <const unsigned char*>cnp.PyArray_DATA(counts)
    return True


cdef int place_column(Code code, int32_t out, int n_axes) except -1:
    """Take memory for one element per row, which the row repeats."""
    cdef Spec spec = code.spec(out)
    cdef npy_intp strides[MAX_AXES]
    cdef npy_intp stride = spec.itemsize
    cdef int axis
    memset(strides, 0, sizeof(strides))
    for axis in range(n_axes - 1, -1, -1):
        strides[axis] = stride
        stride *= spec.dims[axis]
    code.layout.take(out, stride)
    code.layout.places[out].strides = code.push(strides, spec.ndim)
    return 0


# ---- runs

@cython.final
cdef class TransferProgram(Subprogram):
    cdef Runner new_runner(self):
        cdef TransferRunner runner = (
            KnownTransferRunner() if self.it.what > CLEAR else TransferRunner())
        runner.it, runner.kept = self.it, self.kept
        return runner


cdef class TransferRunner(Runner):
    cdef Transfer it
    cdef object kept

    cdef int run(self, char** data) noexcept nogil:
        cdef Transfer* it = &self.it
        cdef char* array = data[it.last]
        cdef char* part = data[0]
        if it.what == READ:
            array, part = part, array
        if it.job.count == 1 and it.job.blocks == 1:
            return move_row(it, data, array, part)
        return move_rows(it, data, array, part)


@cython.final
cdef class KnownTransferRunner(TransferRunner):
    cdef int run(self, char** data) noexcept nogil:
        return move_known(&self.it, data[0], data[1])


cdef inline int move_row(Transfer* it, char** data, char* array, char* part) noexcept nogil:
    cdef npy_intp row
    cdef int found = find(it, data, 0, 1, &row)
    if found == 0 and it.what == READ:  # without a kernel's call, for loops over elements
        memcpy(part, array + row * it.job.row_bytes, it.job.row_bytes)
    elif found == 0:
        move(it, array, part, &row, 1)
    return found


cdef int move_rows(Transfer* it, char** data, char* array, char* part) noexcept nogil:
    cdef npy_intp[AT_ONCE] rows
    cdef npy_intp first = 0, count
    cdef int found
    if it.n_indexed == 1 and it.axes.operand and it.what <= ADD and move_blocks(
            it, array, part, <const npy_intp*>data[it.axes.operand], it.job.count):
        return 0
    while first < it.job.count:
        count = min(<npy_intp>AT_ONCE, it.job.count - first)
        found = find(it, data, first, count, rows)
        if found:
            return found
        move_blocks(it, array, part + first * it.job.row_bytes, rows, count)
        first += count
    return 0


cdef inline int find(Transfer* it, char** data, npy_intp first, npy_intp count,
                     npy_intp* rows) noexcept nogil:
    """Find the positions of some rows in a block; return an error if one is out of bounds."""
    cdef IndexedAxis* axis = it.axes
    cdef IndexedAxis* end = axis + it.n_indexed
    cdef const int64_t* places
    cdef npy_intp i, place, step, extent, stride
    while axis != end:
        step, extent, stride = axis.step, axis.extent, axis.stride
        places = (<const int64_t*>&axis.number if axis.operand == 0 else
                  <const int64_t*>data[axis.operand] + first * step)
        for i in range(count):
            place = places[i * step]
            if place < 0:
                place += extent
            if <size_t>place >= <size_t>extent:
                return it.refuse(place - extent if place < 0 else place,
                                 it.lead + <int>(axis - it.axes), extent)
            rows[i] = place * stride + (0 if axis == it.axes else rows[i])
        axis += 1
    return 0


cdef bint move_blocks(Transfer* it, char* array, char* part, const npy_intp* rows,
                      npy_intp count) noexcept nogil:
    """Move rows of each block; return False if places of READ or ADD are out of bounds."""
    cdef npy_intp _
    if it.what == READ:
        return copy_rows(part, it.job.count * it.job.row_bytes, array, it.job.blocks, rows, count,
                         it.job.extent, it.job.row_bytes, RAISE)
    for _ in range(it.job.blocks):
        if not move(it, array, part, rows, count):
            return False
        array += it.job.extent * it.job.row_bytes
        part += it.job.count * it.job.row_bytes
    return True


cdef inline bint move(Transfer* it, char* array, char* part, const npy_intp* rows,
                      npy_intp count) noexcept nogil:
    cdef npy_intp i, row_bytes = it.job.row_bytes
    if it.what == ADD:
        return add_rows(&it.job, array, part, rows, count)
    for i in range(count):
        if it.what == WRITE:
            memcpy(array + rows[i] * row_bytes, part + i * row_bytes, row_bytes)
        else:
            memset(array + rows[i] * row_bytes, 0, row_bytes)
    return True


cdef int out_of_bounds(npy_intp place, int axis, npy_intp extent) noexcept with gil:
    """Raise NumPy's error."""
    PyErr_Format(IndexError, b"index %zd is out of bounds for axis %d with size %zd",
                 place, axis, extent)
    return INTERRUPTED


cdef int move_known(const Transfer* it, char* source, char* target) noexcept nogil:
    cdef Scatter job = it.job
    job.terms, job.total = source, target
    if it.what == TAKE:
        copy_rows(target, job.count * job.row_bytes, source, job.blocks, job.places, job.count,
                  job.extent, job.row_bytes, RAISE)
    elif it.what == CHOOSE:
        choose_items(target, source, it.itemsize, <const cnp.npy_bool*>it.marks, it.n_items,
                     job.count)
    elif it.what == PUT:
        put_items(target, source, it.itemsize, <int>job.step, <const cnp.npy_bool*>it.marks,
                  it.n_items, job.count)
    elif it.what == SUM:
        return min(add_all(&job), 0)
    elif it.itemsize == sizeof(double):
        write_multiples[double](it, &job, <double>0)
    else:
        write_multiples[float](it, &job, <float>0)
    return 0


ctypedef fused number:
    double
    float


cdef void write_multiples(const Transfer* it, Scatter* job, number zero) noexcept nogil:
    """Write multiples of one term by the counts of places, rounded like repeated addition."""
    cdef npy_intp i, _
    cdef number[MOST + 1] sums
    cdef number* total = <number*>job.total
    sums[0] = zero
    for i in range(it.most):
        sums[i + 1] = sums[i] + (<number*>job.terms)[0]
    for _ in range(job.blocks):
        for i in range(job.extent):
            total[i] = sums[it.marks[i]]
        total += job.extent
