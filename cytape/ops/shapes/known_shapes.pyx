from cytape.ops.kernels.walk cimport MAX_AXES
from cytape.tensor.values.spec cimport Spec, spec_like, spec_of_dims, symbolic_spec
from numpy cimport npy_intp

from cytape.ops.shapes import joining_shapes, shape_rules


def reshape(Spec x not None, Spec like=None, *, shape=..., order="C", **options):
    """Infer the spec of a reshape; `reshape_op` explains its operands."""
    if like is not None:
        return spec_like(like, x.dtype) if shape is ... else symbolic_spec(shape, x.dtype)
    cdef npy_intp dims[MAX_AXES]
    cdef npy_intp size = 1
    cdef int ndim = dims_of(shape, dims), axis, free = -1
    if ndim < 0 or not x.known:
        return shape_rules.reshape(x, shape)
    for axis in range(ndim):
        if dims[axis] >= 0:
            size *= dims[axis]
        elif dims[axis] == -1 and free < 0:
            free = axis
        else:
            return shape_rules.reshape(x, shape)
    if free >= 0 and size > 0 and x.size % size == 0:
        dims[free] = x.size // size
    elif free >= 0 or size != x.size:
        return shape_rules.reshape(x, shape)
    return spec_of_dims(ndim, dims, x.dtype)


def transpose(Spec x not None, axes):
    """Infer the spec of a transpose."""
    cdef npy_intp dims[MAX_AXES]
    cdef npy_intp order[MAX_AXES]
    cdef unsigned long long taken = 0
    cdef int axis, ndim = x.ndim
    if not x.known or ndim > MAX_AXES:
        return shape_rules.transpose(x, axes)
    if axes is None:
        for axis in range(ndim):
            dims[axis] = x.dims[ndim - 1 - axis]
        return spec_of_dims(ndim, dims, x.dtype)
    if dims_of(axes, order) != ndim or type(axes) is int:
        return shape_rules.transpose(x, axes)
    for axis in range(ndim):
        if order[axis] < 0:
            order[axis] += ndim
        if not 0 <= order[axis] < ndim or taken >> order[axis] & 1:
            return shape_rules.transpose(x, axes)
        taken |= <unsigned long long>1 << order[axis]
        dims[axis] = x.dims[order[axis]]
    return spec_of_dims(ndim, dims, x.dtype)


def broadcast_to(Spec x not None, Spec like=None, *, shape=None):
    """Infer the spec of a broadcast to a shape, or to that of another input."""
    if like is not None:
        return spec_like(like, x.dtype)
    cdef npy_intp dims[MAX_AXES]
    cdef int ndim = dims_of(shape, dims), axis, lead = ndim - x.ndim
    if ndim < 0 or not x.known or lead < 0:
        return shape_rules.broadcast_to(x, shape)
    for axis in range(ndim):
        if dims[axis] < 0 or (
                axis >= lead and x.dims[axis - lead] != 1 and x.dims[axis - lead] != dims[axis]):
            return shape_rules.broadcast_to(x, shape)
    return spec_of_dims(ndim, dims, x.dtype)


def expand_dims(Spec x not None, axis):
    """Infer the spec of `expand_dims`."""
    cdef npy_intp dims[MAX_AXES]
    cdef int i, place, ndim = x.ndim + 1
    if not x.known or type(axis) is not int or ndim > MAX_AXES or not -ndim <= axis < ndim:
        return shape_rules.expand_dims(x, axis)
    place = axis if axis >= 0 else axis + ndim
    for i in range(ndim):
        dims[i] = x.dims[i] if i < place else 1 if i == place else x.dims[i - 1]
    return spec_of_dims(ndim, dims, x.dtype)


def concatenate(Spec first not None, *others, axis=0, dtype=None, **options):
    """Infer the spec of a concatenation along an axis."""
    cdef npy_intp dims[MAX_AXES]
    cdef Spec spec
    cdef int i, place
    if type(axis) is not int or dtype is not None or not first.known or first.ndim > MAX_AXES or (
            not -first.ndim <= axis < first.ndim):
        return joining_shapes.concatenate(first, *others, axis=axis, dtype=dtype)
    place = axis if axis >= 0 else axis + first.ndim
    for i in range(first.ndim):
        dims[i] = first.dims[i]
    for spec in others:
        if not spec.known or spec.ndim != first.ndim or spec.dtype is not first.dtype:
            return joining_shapes.concatenate(first, *others, axis=axis, dtype=dtype)
        for i in range(first.ndim):
            if i == place:
                dims[i] += spec.dims[i]
            elif dims[i] != spec.dims[i]:
                return joining_shapes.concatenate(first, *others, axis=axis, dtype=dtype)
    return spec_of_dims(first.ndim, dims, first.dtype)


cdef int dims_of(shape, npy_intp* dims) except? -1:
    """Store an integer or a tuple of integers; -1 for other types, or if they are too many."""
    cdef int i
    if type(shape) is int:
        dims[0] = shape
        return 1
    if type(shape) is not tuple or len(<tuple>shape) > MAX_AXES:
        return -1
    for i in range(len(<tuple>shape)):
        if type((<tuple>shape)[i]) is not int:
            return -1
        dims[i] = (<tuple>shape)[i]
    return len(<tuple>shape)
