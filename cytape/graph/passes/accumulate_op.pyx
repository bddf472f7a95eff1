cimport cython
cimport numpy as cnp
from cytape.core.interrupts cimport INTERRUPTED, raise_failure, spend_without_gil
from cytape.core.vspace cimport OpType
from cytape.ops.engine.index_op cimport find_region
from cytape.ops.kernels.loops cimport WORTH_THE_GIL, Loop, trouble, warn
from cytape.ops.kernels.sums cimport add_loop_of
from cytape.ops.kernels.walk cimport MAX_AXES, Walk, begin, join_memory
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from numpy cimport ndarray

import numpy as np

cnp.import_array()

cdef enum:
    HEAD = 5   # of a row: all but its axes


@cython.final
cdef class AccumulateOp(Op):
    """A sum of terms, each added to the part of the result where it is not zero.

    It is what adding whole arrays gives, from left to right, but for the signs of zeros.

    Parameters
    ----------
    spec : Spec
        Of the sum; floating or complex.
    operand_specs : sequence of Spec
        Of the same dtype.
    indices : sequence
        Per operand the part of the sum that it is added to: integers, slices, None and Ellipsis, in
        a tuple if there are many; or None for all of it.

    Raises
    ------
    ValueError
        If an operand does not fit where it is to be added.

    Examples
    --------
    >>> from cytape.tensor.spec import Spec
    >>> pair, triple = Spec.of((2,), float), Spec.of((3,), float)
    >>> op = AccumulateOp(triple, [pair, pair], [slice(0, 2), slice(1, 3)])
    >>> op.forward(np.array([1.0, 2.0]), np.array([10.0, 20.0]))
    array([ 1., 12., 20.])
    """

    def __init__(self, Spec spec not None, operand_specs, indices):
        cdef Region region
        cdef Walk walk
        cdef Spec operand
        cdef npy_intp own_strides[MAX_AXES]
        cdef npy_intp* row
        cdef int i, axis, n_operands
        cdef int32_t room = 0
        self.op_type = OpType("Accumulate")
        self.op_type.kind.owner = <void*>self
        self.spec = spec
        self.loop = add_loop_of(spec)
        self.operand_specs = tuple(operand_specs)
        self.indices = tuple(indices)
        n_operands = self.n_operands = len(self.operand_specs)
        self.rows = <npy_intp*>calloc(n_operands * (HEAD + 3 * MAX_AXES) + 1, sizeof(npy_intp))
        self.row_starts = <int32_t*>calloc(n_operands + 1, sizeof(int32_t))
        if self.rows == NULL or self.row_starts == NULL:
            raise MemoryError()
        for i in range(n_operands):
            operand = self.operand_specs[i]
            index = self.indices[i]
            if not is_part(index, operand, spec, &region):
                raise ValueError(f"a term of shape {operand.shape} cannot be added to {index} of "
                                 f"what has shape {spec.shape}")
            strides_along(operand, &region, own_strides)
            self.row_starts[i] = room
            row = self.rows + room
            row[0] = region.offset
            walk.n_axes = region.ndim
            walk.n_operands = 0
            for axis in range(region.ndim):
                walk.extents[axis] = region.dims[axis]
            join_memory(&walk, NULL, region.strides)
            join_memory(&walk, NULL, own_strides)
            begin(&walk)
            row[1] = walk.length if operand.size else 0
            row[2], row[3] = walk.steps[0], walk.steps[1]
            row[4] = walk.n_axes
            for axis in range(walk.n_axes):
                row[HEAD + 3 * axis] = walk.extents[axis]
                row[HEAD + 3 * axis + 1] = walk.strides[0][axis]
                row[HEAD + 3 * axis + 2] = walk.strides[1][axis]
            room += HEAD + 3 * walk.n_axes
        self.first_is_all = n_operands and self.indices[0] is None and (
            (<Spec>self.operand_specs[0]).size == spec.size)

    def __dealloc__(self):
        free(self.rows)
        free(self.row_starts)

    @property
    def __doc__(self) -> str:
        return f"Sum of {len(self.indices)} terms, each added to where it belongs."

    cdef object infer(self, list inputs, dict attrs):
        return self.spec

    def forward(self, *arrays):
        """Compute the sum from arrays of the operands' specs."""
        cdef ndarray total = np.empty(self.spec.shape, self.spec.dtype)
        cdef list operands = [np.ascontiguousarray(x) for x in arrays]
        cdef char** data
        cdef int i, failed
        if len(operands) != len(self.operand_specs):
            raise TypeError(f"expected {len(self.operand_specs)} operands, got {len(operands)}")
        for i, (x, spec) in enumerate(zip(operands, self.operand_specs)):
            if x.size != spec.size or x.dtype != spec.dtype:
                raise ValueError(f"operand {i} should be {spec!r}")
        data = <char**>malloc((len(operands) + 1) * sizeof(char*))
        if data == NULL:
            raise MemoryError()
        for i, x in enumerate(operands):
            data[i] = <char*>cnp.PyArray_DATA(<ndarray>x)
        if self.spec.nbytes < WORTH_THE_GIL:
            failed = self.run(data, <char*>cnp.PyArray_DATA(total))
        else:
            with nogil:
                failed = self.run(data, <char*>cnp.PyArray_DATA(total))
        free(data)
        if failed:
            raise_failure(failed)
        if trouble():
            warn(self.report, arrays)
        return total

    def report(self, *arrays):
        """Add with NumPy, so that it warns as it is set up to; return the sum."""
        total = np.zeros(self.spec.shape, self.spec.dtype)
        for x, index in zip(arrays, self.indices):
            total[... if index is None else index] += x
        return total

    cdef int run(self, char** operands, char* result) noexcept nogil:
        cdef int64_t effort = 0
        cdef int i, first = 0
        if self.first_is_all:
            if result != operands[0]:
                memcpy(result, operands[0], self.spec.nbytes)
            first = 1
        else:
            memset(result, 0, self.spec.nbytes)
        for i in range(first, self.n_operands):
            add_term(self.rows + self.row_starts[i], self.loop, result, operands[i])
            if spend_without_gil(&effort, self.spec.nbytes) < 0:
                return INTERRUPTED
        return 0


cdef void add_term(const npy_intp* row, Loop* loop, char* total, char* term) noexcept nogil:
    cdef char* data[3]
    cdef npy_intp strides[3]
    cdef npy_intp position[MAX_AXES]
    cdef npy_intp length = row[1]
    cdef int axis, n_axes = <int>row[4]
    cdef const npy_intp* axes = row + HEAD
    if length == 0:
        return
    total += row[0]
    strides[0] = strides[2] = row[2]
    strides[1] = row[3]
    for axis in range(n_axes):
        position[axis] = 0
    while True:
        data[0] = data[2] = total
        data[1] = term
        loop.function(data, &length, strides, loop.data)
        axis = n_axes - 1
        while axis >= 0:
            position[axis] += 1
            total += axes[3 * axis + 1]
            term += axes[3 * axis + 2]
            if position[axis] < axes[3 * axis]:
                break
            total -= axes[3 * axis] * axes[3 * axis + 1]
            term -= axes[3 * axis] * axes[3 * axis + 2]
            position[axis] = 0
            axis -= 1
        if axis < 0:
            return


cdef bint is_part(index, Spec operand, Spec total, Region* region) except -1:
    """Whether a term can be added to a part of a sum, and where that lies."""
    cdef int axis, lead
    if not operand.known or not total.known or operand.type_num != total.type_num or (
            add_loop_of(total) == NULL):
        return False
    if not find_region(Ellipsis if index is None else index, NULL, total, region):
        return False
    lead = region.ndim - operand.ndim
    if lead < 0:
        return False
    for axis in range(operand.ndim):
        if operand.dims[axis] != 1 and operand.dims[axis] != region.dims[lead + axis]:
            return False
    return True


cdef void strides_along(Spec operand, Region* region, npy_intp* strides) noexcept:
    """Of a contiguous operand along the axes of the region that it is broadcast to."""
    cdef npy_intp stride = operand.itemsize
    cdef int axis, lead = region.ndim - operand.ndim
    for axis in range(lead):
        strides[axis] = 0
    for axis in range(operand.ndim - 1, -1, -1):
        strides[lead + axis] = 0 if operand.dims[axis] == 1 else stride
        stride *= operand.dims[axis]
