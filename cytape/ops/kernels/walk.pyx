cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.stdint cimport int64_t
from numpy cimport ndarray

from .ufunc_loops cimport WORTH_THE_GIL

cnp.import_array()

cdef int64_t* effort = effort_so_far()


cdef bint plan(Walk* walk, Spec shape) noexcept:
    """Prepare to walk over a shape; False if it has no elements."""
    cdef int axis
    walk.n_axes = shape.ndim
    walk.n_operands = 0
    if shape.size == 0:
        return False
    for axis in range(shape.ndim):
        walk.extents[axis] = shape.dims[axis]
    return True


cdef bint broadcast_strides(Spec spec, const npy_intp* own, int ndim, const npy_intp* dims,
                            npy_intp* strides) noexcept:
    cdef npy_intp stride = spec.itemsize
    cdef int axis, lead = ndim - spec.ndim
    if lead < 0:
        return False
    for axis in range(ndim - 1, -1, -1):
        strides[axis] = 0
        if axis >= lead and spec.dims[axis - lead] != 1:
            if spec.dims[axis - lead] != dims[axis]:
                return False
            strides[axis] = stride if own == NULL else own[axis - lead]
            stride *= dims[axis]
    return True


cdef bint join(Walk* walk, Value value) noexcept:
    """Add an operand; False if it cannot be broadcast to the shape."""
    return join_array(walk, value.data, value.spec, NULL if value.contiguous else
                      cnp.PyArray_STRIDES(<ndarray>value.owner))


cdef bint join_array(Walk* walk, char* data, Spec spec, const npy_intp* own) noexcept:
    """Add an operand by its spec and strides, as `broadcast_strides` takes them."""
    walk.data[walk.n_operands] = data
    walk.n_operands += 1
    return broadcast_strides(
        spec, own, walk.n_axes, walk.extents, walk.strides[walk.n_operands - 1])


cdef void join_memory(Walk* walk, char* data, const npy_intp* strides) noexcept:
    """Add an operand that has the shape, by its strides."""
    cdef int axis
    for axis in range(walk.n_axes):
        walk.strides[walk.n_operands][axis] = strides[axis]
    walk.data[walk.n_operands] = data
    walk.n_operands += 1


cdef void order_axes(Walk* walk, int operand) noexcept:
    """Go through the memory of an operand from end to end, unless it repeats elements."""
    cdef npy_intp* by = walk.strides[operand]
    cdef int axis, place, i
    for axis in range(walk.n_axes):
        if by[axis] == 0:
            return
    for axis in range(1, walk.n_axes):
        for place in range(axis, 0, -1):
            if length(by[place - 1]) >= length(by[place]):
                break
            swap(&walk.extents[place - 1])
            for i in range(walk.n_operands):
                swap(&walk.strides[i][place - 1])


cdef inline npy_intp length(npy_intp stride) noexcept:
    return -stride if stride < 0 else stride


cdef inline void swap(npy_intp* pair) noexcept:
    pair[0], pair[1] = pair[1], pair[0]


cdef int merge_axes(int n_axes, npy_intp* extents, int n_operands, npy_intp* strides,
                    int pitch) noexcept:
    cdef int axis, operand, n_kept = 0
    cdef bint alike
    for axis in range(n_axes):
        if extents[axis] == 1:
            continue
        alike = n_kept > 0
        for operand in range(n_operands):
            if alike and strides[operand * pitch + n_kept - 1] != (
                    strides[operand * pitch + axis] * extents[axis]):
                alike = False
        if alike:
            extents[n_kept - 1] *= extents[axis]
        else:
            extents[n_kept] = extents[axis]
            n_kept += 1
        for operand in range(n_operands):
            strides[operand * pitch + n_kept - 1] = strides[operand * pitch + axis]
    return n_kept


cdef void begin(Walk* walk) noexcept:
    """Merge axes; the last remaining one becomes the run."""
    cdef int axis, operand
    cdef int n_kept = merge_axes(
        walk.n_axes, walk.extents, walk.n_operands, walk.strides[0], MAX_AXES)
    walk.n_axes = max(n_kept - 1, 0)
    walk.length = walk.extents[walk.n_axes] if n_kept else 1
    for operand in range(walk.n_operands):
        walk.steps[operand] = walk.strides[operand][walk.n_axes] if n_kept else 0
    for axis in range(walk.n_axes):
        walk.position[axis] = 0


cdef void run(Loop* loop, Walk* walk, Py_ssize_t nbytes) noexcept:
    """Call a loop on every run; nbytes of data decide whether the GIL is released."""
    if nbytes < WORTH_THE_GIL:
        run_all(loop, walk)
    else:
        effort[0] += nbytes
        with nogil:
            run_all(loop, walk)


cdef void run_all(Loop* loop, Walk* walk) noexcept nogil:
    loop.function(walk.data, &walk.length, walk.steps, loop.data)
    while walk.n_axes and proceed(walk):
        loop.function(walk.data, &walk.length, walk.steps, loop.data)


cdef bint proceed(Walk* walk) noexcept nogil:
    """Go to the next run; False after the last."""
    cdef int axis, operand
    for axis in range(walk.n_axes - 1, -1, -1):
        walk.position[axis] += 1
        if walk.position[axis] < walk.extents[axis]:
            for operand in range(walk.n_operands):
                walk.data[operand] += walk.strides[operand][axis]
            return True
        walk.position[axis] = 0
        for operand in range(walk.n_operands):
            walk.data[operand] -= (walk.extents[axis] - 1) * walk.strides[operand][axis]
    return False
