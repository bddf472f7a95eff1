cimport cython
cimport numpy as cnp
from cytape.ops.engine.node_store cimport Node
from cytape.ops.kernels.gather cimport RAISE, are_inside, copy_rows
from cytape.ops.kernels.masks cimport choose_items, is_mask, is_moved, put_items
from cytape.ops.kernels.scatter cimport Scatter, add_all, find_places, prepare
from cytape.ops.kernels.sums cimport add_loop_of
from cytape.ops.kernels.walk cimport MAX_AXES
from cytape.tensor.spec cimport Spec
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.value cimport array_of
from libc.string cimport memset
from numpy cimport ndarray, npy_intp

from .instructions cimport CONTROL, Runner, Subprogram
from .layout cimport CONSTANT, NOWHERE, PLACED, SMALL_BYTES, is_plain_float, memory_of

import numpy as np

from cytape.ops.creation import constant_op

cnp.import_array()

cdef enum:
    MOST = 255  # that a byte counts

cdef enum Kind:
    TAKE
    ADD
    COUNT    # ... one item: its multiples, by how often each place is named
    CHOOSE   # by a mask
    PUT

cdef struct Picking:
    Kind kind
    Scatter job
    const unsigned char* marks   # counts, or the mask
    int most                     # the largest count
    npy_intp size                # ... of so many elements
    npy_intp itemsize


cdef bint pick(Code code, int32_t node, index) except -1:
    """Copy what an index names; of one item everywhere show that."""
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t x = code.graph.args[row.inputs], out = row.first_output
    cdef Spec spec = code.spec(x), result = code.spec(out)
    cdef npy_intp no_strides[MAX_AXES]
    cdef PickProgram program
    if not is_usual(code, x, out) or spec.type_num != result.type_num:
        return False
    program = program_of(index, spec, result)
    if program is None:
        return False
    if code.shows_item(x):
        memset(no_strides, 0, sizeof(no_strides))
        return code.view(out, x, 0, no_strides) == 0
    program.it.kind = TAKE if program.it.marks == NULL else CHOOSE
    return emit(code, node, program, code.contiguous(node, x), 2 * result.nbytes)


cdef bint add_picked(Code code, int32_t node, index) except -1:
    """Add to zeros at the places that an index names."""
    cdef Node* row = &code.graph.nodes[node]
    cdef int32_t x = code.graph.args[row.inputs], out = row.first_output
    cdef Spec spec = code.spec(x), result = code.spec(out)
    cdef PickProgram program
    cdef bint is_item
    if not is_usual(code, x, out) or spec.type_num != result.type_num or (
            add_loop_of(spec) == NULL or spec.type_num == cnp.NPY_FLOAT16):
        return False
    program = program_of(index, result, spec)
    if program is None:
        return False
    is_item = code.shows_item(x)
    if program.it.marks != NULL:
        program.it.kind = PUT
        program.it.job.step = not is_item
    elif is_item and is_plain_float(spec) and count_places(program, result.nbytes):
        program.it.kind = COUNT
        program.it.itemsize = spec.itemsize
        if program.it.job.row_size > 1:  # rows of one number are shown
            place_column(code, out, program.it.job.n_leading)
    else:
        program.it.kind = ADD
        is_item = is_item and program.it.job.row_size == 1
        prepare(&program.it.job, spec, is_item)
    return emit(code, node, program, x if is_item else code.contiguous(node, x),
                spec.nbytes + result.nbytes)


cdef bint gather(Code code, int32_t node, Op op) except -1:
    index = index_along(code, node)
    return index is not None and pick(code, node, index)


cdef bint scatter_add(Code code, int32_t node, Op op) except -1:
    index = index_along(code, node)
    return index is not None and add_picked(code, node, index)


cdef object index_along(Code code, int32_t node):
    """What the second input is along an axis, if it is known; else None."""
    cdef int32_t places = code.graph.args[code.graph.nodes[node].inputs + 1]
    cdef int32_t source = code.graph.symbols[places].node
    cdef dict attrs = code.graph.attrs[node]
    if attrs["mode"] != "raise" or code.graph.ops[source] is not constant_op or (
            memory_of(code.layout.places[places].address) != CONSTANT):
        return None
    array = array_of((<Tensor?>code.graph.attrs[source]["value"]).held)
    return (slice(None),) * attrs["axis"] + (array,)


cdef bint is_usual(Code code, int32_t x, int32_t out) except -1:
    return (code.layout.places[x].kind == PLACED and code.layout.places[out].kind == NOWHERE
            and code.spec(x).known and code.spec(out).known and code.spec(out).size > 0)


cdef PickProgram program_of(index, Spec spec, Spec part):
    """What goes to the places that an index names; None if it is of another kind, or goes wrong."""
    cdef PickProgram program = PickProgram()
    cdef Scatter* job = &program.it.job
    cdef ndarray places
    if is_mask(index):
        if (<object>index).shape != spec.shape or not is_moved(spec.dtype) or (
                np.count_nonzero(index) != part.size):
            return None
        program.kept = index
        program.it.marks = <const unsigned char*>cnp.PyArray_DATA(<ndarray>index)
        program.it.size, program.it.itemsize = spec.size, spec.itemsize
        job.count = part.size
        return program
    places = find_places(spec.shape, index, job)
    if places is None or job.blocks * job.count * job.row_size != part.size or (
            not are_inside(job.places, job.count, job.extent, RAISE)):
        return None
    program.kept = places
    job.row_bytes = job.row_size * spec.itemsize
    return program


cdef bint count_places(PickProgram program, npy_intp nbytes) except -1:
    """Count how often each place is named; False if that does not pay."""
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
    """Take memory for the first elements of rows, each of which a row shows everywhere."""
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


cdef bint emit(Code code, int32_t node, PickProgram program, int32_t x, npy_intp work) except -1:
    cdef int32_t out = code.graph.nodes[node].first_output
    if code.layout.places[out].kind == NOWHERE:
        code.place_output(out)
    code.subprograms.append(program)
    code.emit_operands(node, CONTROL, program, [x, out], work)
    code.release_temporaries()
    return True


@cython.final
cdef class PickProgram(Subprogram):
    cdef Picking it
    cdef object kept  # what it points into

    cdef Runner new_runner(self):
        cdef PickRunner runner = PickRunner()
        runner.it, runner.kept = self.it, self.kept
        return runner


@cython.final
cdef class PickRunner(Runner):
    cdef Picking it
    cdef object kept

    cdef int run(self, char** data) noexcept nogil:
        cdef Scatter job = self.it.job
        cdef npy_intp _
        cdef int found
        job.terms, job.total = data[0], data[1]
        if self.it.kind == TAKE:
            for _ in range(job.blocks):
                copy_rows(job.total, job.terms, job.places, job.count, job.extent, job.row_bytes,
                          RAISE)
                job.total += job.count * job.row_bytes
                job.terms += job.extent * job.row_bytes
        elif self.it.kind == CHOOSE:
            choose_items(job.total, job.terms, self.it.itemsize, <const cnp.npy_bool*>self.it.marks,
                         self.it.size, job.count)
        elif self.it.kind == PUT:
            put_items(job.total, job.terms, self.it.itemsize, <int>job.step,
                      <const cnp.npy_bool*>self.it.marks, self.it.size, job.count)
        elif self.it.kind == COUNT:
            if self.it.itemsize == sizeof(double):
                write_multiples[double](&self.it, &job, <double>0)
            else:
                write_multiples[float](&self.it, &job, <float>0)
        else:
            found = add_all(&job)
            return found if found < 0 else 0
        return 0


ctypedef fused number:
    double
    float


cdef void write_multiples(const Picking* it, Scatter* job, number zero) noexcept nogil:
    """So many times the one term for each place, as they come from adding one by one."""
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
