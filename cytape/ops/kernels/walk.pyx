cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.stdint cimport int64_t
from numpy cimport ndarray

from .loops cimport WORTH_THE_GIL

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


cdef bint join(Walk* walk, Value value) noexcept:
    """Add an operand; False if it cannot be broadcast to the shape."""
    cdef npy_intp* strides = walk.strides[walk.n_operands]
    cdef npy_intp* own_strides = NULL
    cdef npy_intp stride = value.spec.itemsize
    cdef int axis, lead = walk.n_axes - value.spec.ndim
    if lead < 0:
        return False
    if not value.contiguous:
        own_strides = cnp.PyArray_STRIDES(<ndarray>value.owner)
    for axis in range(walk.n_axes - 1, -1, -1):
        strides[axis] = 0
        if axis >= lead and value.spec.dims[axis - lead] != 1:
            if value.spec.dims[axis - lead] != walk.extents[axis]:
                return False
            strides[axis] = stride if own_strides == NULL else own_strides[axis - lead]
            stride *= walk.extents[axis]
    walk.data[walk.n_operands] = value.data
    walk.n_operands += 1
    return True


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


cdef void begin(Walk* walk) noexcept:
    """Make one axis of those that can be one; the last becomes the run."""
    cdef int axis, operand, n_kept = 0
    cdef bint alike
    # From the innermost axis outwards; kept axes are stored innermost first, then turned round.
    cdef npy_intp extents[MAX_AXES]
    cdef npy_intp strides[MAX_OPERANDS][MAX_AXES]
    for axis in range(walk.n_axes - 1, -1, -1):
        if walk.extents[axis] == 1:
            continue
        alike = n_kept > 0
        for operand in range(walk.n_operands):
            if alike and walk.strides[operand][axis] != (
                    strides[operand][n_kept - 1] * extents[n_kept - 1]):
                alike = False
        if alike:
            extents[n_kept - 1] *= walk.extents[axis]
            continue
        extents[n_kept] = walk.extents[axis]
        for operand in range(walk.n_operands):
            strides[operand][n_kept] = walk.strides[operand][axis]
        n_kept += 1
    walk.length = 1 if n_kept == 0 else extents[0]
    for operand in range(walk.n_operands):
        walk.steps[operand] = 0 if n_kept == 0 else strides[operand][0]
    walk.n_axes = max(n_kept - 1, 0)
    for axis in range(walk.n_axes):
        walk.extents[axis] = extents[n_kept - 1 - axis]
        walk.position[axis] = 0
        for operand in range(walk.n_operands):
            walk.strides[operand][axis] = strides[operand][n_kept - 1 - axis]


cdef void run(Loop* loop, Walk* walk, Py_ssize_t nbytes) noexcept:
    """Call a loop on every run; nbytes tells whether other threads may go on meanwhile."""
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
