cimport numpy as cnp
from libc.stdlib cimport llabs
from libc.string cimport memcpy, memset
from numpy cimport ndarray

from .ufunc_loops cimport copy_loop
from .walk cimport Walk, begin, join_memory, plan, run


cdef int copy_strided(Spec shape, char* source, const npy_intp* read_strides, char* target,
                      const npy_intp* write_strides) except -1:
    cdef Walk walk
    if is_contiguous(shape, read_strides) and is_contiguous(shape, write_strides):
        memcpy(target, source, shape.nbytes)
    elif plan(&walk, shape):
        join_memory(&walk, source, read_strides)
        join_memory(&walk, target, write_strides)
        begin(&walk)
        run(copy_loop(shape.itemsize), &walk, shape.nbytes)
    return 0


cdef bint is_contiguous(Spec shape, const npy_intp* strides) noexcept:
    cdef npy_intp stride = shape.itemsize
    cdef int axis
    for axis in range(shape.ndim - 1, -1, -1):
        if strides[axis] != stride and shape.dims[axis] != 1:
            return False
        stride *= shape.dims[axis]
    return True


cdef void sort_axes(Move* move) noexcept:
    """Order the axes of a move by strides of the target, the smallest last, unless it sums."""
    cdef int axis, place
    for axis in range(move.ndim):
        if move.dims[axis] > 1 and move.write_strides[axis] == 0:
            return
    for axis in range(1, move.ndim):
        place = axis
        while place > 0 and llabs(move.write_strides[place - 1]) < llabs(move.write_strides[place]):
            place -= 1
            swap(move.dims + place)
            swap(move.read_strides + place)
            swap(move.write_strides + place)


cdef inline void swap(npy_intp* pair) noexcept:
    pair[0], pair[1] = pair[1], pair[0]


cdef npy_intp repeats_of(Move* move, Spec spec) noexcept:
    """Return the number of writes to each element of a target; 0 if elements differ in it."""
    cdef npy_intp dims[MAX_AXES]
    cdef npy_intp strides[MAX_AXES]
    cdef npy_intp of_view[MAX_AXES]
    cdef npy_intp offset = 0, n = 1
    cdef int axis, ndim = 0
    for axis in range(move.ndim):
        if move.write_strides[axis] == 0:
            n *= move.dims[axis]
            continue
        dims[ndim], strides[ndim] = move.dims[axis], move.write_strides[axis]
        ndim += 1
    return n if find_view(
        spec, ndim, dims, strides, move.write_offset, strides, &offset, of_view) else 0


cdef bint find_view(Spec target, int ndim, const npy_intp* dims, const npy_intp* write_strides,
                    npy_intp write_offset, const npy_intp* read_strides, npy_intp* read_offset,
                    npy_intp* strides) noexcept:
    cdef Region read  # axes sorted by write strides, made positive
    cdef npy_intp apart[MAX_AXES]
    cdef npy_intp extent, stride
    cdef int axis, place
    read.ndim = 0
    for axis in range(ndim):
        extent, stride = dims[axis], write_strides[axis]
        if extent == 1:
            continue
        place = read.ndim
        while place > 0 and apart[place - 1] < llabs(stride):
            apart[place] = apart[place - 1]
            read.dims[place] = read.dims[place - 1]
            read.strides[place] = read.strides[place - 1]
            place -= 1
        apart[place], read.dims[place] = llabs(stride), extent
        read.strides[place] = read_strides[axis]
        if stride < 0:
            write_offset += (extent - 1) * stride
            read_offset[0] += (extent - 1) * read_strides[axis]
            read.strides[place] *= -1
        read.ndim += 1
    stride = target.itemsize
    for axis in range(read.ndim - 1, -1, -1):
        if apart[axis] != stride:
            return False
        stride *= read.dims[axis]
    if write_offset or stride != target.nbytes:
        return False
    extent, place = 1, read.ndim  # remaining extent of merged axes, and the first of these
    for axis in range(target.ndim - 1, -1, -1):
        strides[axis] = target.itemsize
        if target.dims[axis] == 1:
            continue
        if extent == 1:
            place -= 1
            extent, stride = read.dims[place], read.strides[place]
            while place > 0 and read.strides[place - 1] == extent * stride:
                place -= 1
                extent *= read.dims[place]
        if extent % target.dims[axis]:
            return False
        strides[axis] = stride
        stride *= target.dims[axis]
        extent //= target.dims[axis]
    return True


cdef bint is_whole(Move* move, Spec spec) noexcept:
    """Return whether a move writes all of a target in C order."""
    cdef npy_intp stride = spec.itemsize
    cdef int axis
    if move.ndim != spec.ndim or move.write_offset:
        return False
    for axis in range(spec.ndim - 1, -1, -1):
        if move.dims[axis] != spec.dims[axis] or (
                move.dims[axis] > 1 and move.write_strides[axis] != stride):
            return False
        stride *= spec.dims[axis]
    return True


cdef int count(Move* move, ndarray counts, npy_intp itemsize) except -1:
    """Count the writes of a move to each element; 2 stands for more than one."""
    cdef npy_intp position[MAX_AXES]
    cdef unsigned char* at = <unsigned char*>cnp.PyArray_DATA(counts)
    cdef npy_intp place = move.write_offset // itemsize
    cdef npy_intp i, length = move.dims[move.ndim - 1] if move.ndim else 1
    cdef npy_intp step = move.write_strides[move.ndim - 1] // itemsize if move.ndim else 0
    cdef int axis
    memset(position, 0, sizeof(position))
    while True:
        if step == 1:
            for i in range(length):
                at[place + i] += at[place + i] < 2
        else:
            for i in range(length):
                at[place + i * step] += at[place + i * step] < 2
        axis = move.ndim - 2
        while axis >= 0:
            position[axis] += 1
            place += move.write_strides[axis] // itemsize
            if position[axis] < move.dims[axis]:
                break
            place -= position[axis] * (move.write_strides[axis] // itemsize)
            position[axis] = 0
            axis -= 1
        if axis < 0:
            return 0
