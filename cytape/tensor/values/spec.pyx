cimport cython
cimport numpy as cnp
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport PyObject
from libc.string cimport memcmp
from numpy cimport ndarray, npy_intp

import math
from operator import index

import numpy as np

from cytape.core.vspace import is_trainable

cnp.import_array()

cdef enum:
    RECENT = 256   # a power of two
    MAX_NDIM = 64  # NumPy's

cdef dict interned = {}
cdef Py_ssize_t purge_above = 4096
cdef object bool_dtype = np.dtype(bool)
cdef dict trainable_dtypes = {}

# Recent specs of arrays, by a hash of type number and shape, which avoids building a tuple.
cdef list recent = [None] * RECENT


class UnknownShape(tuple):
    """A shape with unknown extents (None), and its owner.

    Tensors that share it have the same shape at run time.

    Attributes
    ----------
    tensor : callable or None
        Returns the symbolic tensor that has this shape; None while there is none.
    """

    tensor = None


@cython.final
@cython.no_gc
cdef class Spec:
    """Shape and dtype of a tensor, shared by all tensors that have them.

    Specs are interned: two tensors agree in shape and dtype if and only if their specs are the same
    object. `Spec.of` returns them.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    ndim : int
    size : int
        Number of elements.
    nbytes : int
    trainable : bool
        Whether the dtype is floating or complex, so that gradients flow.

    Examples
    --------
    >>> Spec.of((2, 3), "float32") is Spec.of((2, 3), "float32")
    True
    >>> Spec.of((2, 3), "float32").size
    6
    """

    def __init__(self, *_, **__):
        raise TypeError("specs are shared: ask for one with Spec.of(shape, dtype)")

    def __dealloc__(self):
        PyMem_Free(self.dims)

    @property
    def extents(self) -> tuple:
        """The shape; an (empty) UnknownShape for a tensor of unknown rank."""
        return self.shape if self.unknown is None else self.unknown

    @staticmethod
    def of(shape, dtype) -> Spec:
        """Return the spec of a shape and a dtype.

        Parameters
        ----------
        shape : tuple of int or None
            None for an unknown extent, or for a shape of unknown length, as in graphs and traced
            functions. Such specs are not shared.
        dtype : numpy.dtype or object that converts to one

        Returns
        -------
        Spec

        Raises
        ------
        ValueError
            If an extent is negative, or the dtype is not in native byte order.
        TypeError
            If an extent is no integer, or the dtype is of objects or records.

        Examples
        --------
        >>> Spec.of((2, 3), int).trainable
        False
        """
        if shape is None or None in (shape := tuple(shape)):
            return symbolic_spec(shape, dtype)
        return spec_of_array(np.broadcast_to(np.empty((), checked_dtype(dtype)), shape))

    def __reduce__(self):
        if not self.known:
            raise TypeError("the spec of a symbolic tensor cannot be pickled")
        return Spec.of, (self.shape, self.dtype)

    def __repr__(self):
        return f"Spec.of({self.shape}, {self.dtype.name!r})"


cdef object checked_dtype(dtype):
    dtype = np.dtype(dtype)
    if dtype.hasobject or dtype.names is not None:
        raise TypeError(f"a tensor holds numbers (or booleans, strings, dates), not {dtype} data")
    if not dtype.isnative:
        raise ValueError(f"a tensor's dtype is in native byte order, got {dtype}")
    return dtype


cdef Spec spec_of(tuple shape, dtype):
    cdef Spec spec = interned.get((shape, dtype))
    if spec is None:
        if len(interned) >= purge_above:
            purge()
        spec = new_spec(shape, dtype)
        interned[spec.shape, dtype] = spec
    return spec


cdef Spec new_spec(tuple shape, dtype):
    cdef Spec spec = Spec.__new__(Spec)
    # As Python integers, whose arithmetic does not wrap.
    spec.shape = tuple([index(extent) for extent in shape])
    spec.dtype = dtype
    spec.type_num = dtype.num
    spec.itemsize = dtype.itemsize
    spec.trainable = is_trainable(dtype)
    spec.known = True
    spec.ndim = counted_axes(shape)
    spec.dims = <npy_intp*>PyMem_Malloc(max(spec.ndim, 1) * sizeof(npy_intp))
    if spec.dims == NULL:
        raise MemoryError()
    spec.size = 1
    for axis in range(spec.ndim):
        spec.dims[axis] = shape[axis]
        if spec.dims[axis] < 0:
            raise ValueError(f"extents are not negative, got shape {shape}")
        spec.size *= spec.dims[axis]
    spec.nbytes = spec.size * spec.itemsize
    if spec.nbytes != math.prod(spec.shape) * dtype.itemsize:
        raise ValueError(f"an array of shape {shape} is too big: its bytes cannot be counted")
    return spec


cdef int counted_axes(shape) except -1:
    if len(shape) > MAX_NDIM:  # no array can have more
        raise ValueError(f"an array has {MAX_NDIM} axes at most, got {len(shape)}")
    return len(shape)


cpdef Spec symbolic_spec(shape, dtype):
    cdef Spec spec
    if shape is not None and None not in shape:
        shape = tuple(shape)
        spec = interned.get((shape, dtype))
        return spec_of(shape, checked_dtype(dtype)) if spec is None else spec
    dtype = checked_dtype(dtype)
    spec = Spec.__new__(Spec)
    spec.unknown = UnknownShape(() if shape is None else [
        None if extent is None else index(extent) for extent in shape])
    spec.shape = None if shape is None else spec.unknown
    spec.dtype = dtype
    spec.type_num = dtype.num
    spec.itemsize = dtype.itemsize
    spec.trainable = has_gradients(dtype)
    spec.ndim = spec.size = spec.nbytes = -1
    if shape is not None:
        spec.ndim = counted_axes(shape)
        spec.dims = <npy_intp*>PyMem_Malloc(spec.ndim * sizeof(npy_intp))
        if spec.dims == NULL:
            raise MemoryError()
        for axis in range(spec.ndim):
            spec.dims[axis] = -1 if shape[axis] is None else shape[axis]
            if spec.dims[axis] < 0 and shape[axis] is not None:
                raise ValueError(f"extents are not negative, got shape {shape}")
    return spec


cdef bint has_gradients(dtype) except -1:
    """Return `is_trainable`, cached per dtype, since NumPy computes names of dtypes in Python."""
    cdef object known = trainable_dtypes.get(dtype)
    if known is None:
        known = trainable_dtypes[dtype] = is_trainable(dtype)
    return known


cpdef Spec spec_like(Spec spec, dtype):
    cdef Spec like
    if spec is None:
        raise TypeError("expected a spec, got None")
    if dtype is spec.dtype:
        return spec
    if spec.known:
        return spec_of(spec.shape, checked_dtype(dtype))
    like = symbolic_spec(spec.shape, dtype)
    if like.dtype is spec.dtype:
        return spec
    like.unknown = spec.unknown
    like.shape = spec.shape
    return like


cdef int purge() except -1:
    """Drop specs that only the cache refers to, so that it does not grow with every new shape."""
    global purge_above
    for i in range(RECENT):
        recent[i] = None
    for key, spec in list(interned.items()):
        if (<PyObject*>spec).ob_refcnt == 3:  # the dict's, the list's and the loop's
            del interned[key]
    purge_above = max(purge_above, 2 * len(interned))
    return 0


cdef Spec spec_of_array(ndarray array):
    cdef object dtype = array.descr
    cdef Spec spec = recent_spec(cnp.PyArray_NDIM(array), cnp.PyArray_DIMS(array), dtype)
    if spec is None:
        spec = spec_of((<object>array).shape, checked_dtype(dtype))
        remember(spec)
    return spec


cdef Spec spec_of_dims(int ndim, npy_intp* dims, dtype):
    cdef Spec spec = recent_spec(ndim, dims, dtype)
    if spec is None:
        spec = spec_of(tuple([dims[axis] for axis in range(ndim)]), dtype)
        remember(spec)
    return spec


cdef unsigned int bucket_of(int ndim, npy_intp* dims, int type_num) noexcept:
    cdef unsigned long long bucket = type_num * 31 + ndim
    cdef int axis
    for axis in range(ndim):
        bucket = bucket * 1000003 + dims[axis]
    return (bucket ^ (bucket >> 8)) & (RECENT - 1)


cdef Spec recent_spec(int ndim, npy_intp* dims, dtype):
    cdef Spec spec = recent[bucket_of(ndim, dims, (<cnp.dtype>dtype).type_num)]
    if (spec is not None and spec.dtype is dtype and spec.ndim == ndim
            and memcmp(spec.dims, dims, ndim * sizeof(npy_intp)) == 0):
        return spec
    return None


cdef int remember(Spec spec) except -1:
    recent[bucket_of(spec.ndim, spec.dims, spec.type_num)] = spec
    return 0


cdef Spec broadcast_spec(Spec a, Spec b):
    cdef npy_intp dims[MAX_NDIM]
    cdef int axis, lead
    if not (a.known and b.known):
        return broadcast_unknown(a, b)
    if a.ndim < b.ndim:
        a, b, dtype = b, a, a.dtype
    else:
        dtype = a.dtype
    lead = a.ndim - b.ndim
    for axis in range(a.ndim):
        dims[axis] = a.dims[axis]
        if axis >= lead and b.dims[axis - lead] != 1:
            if dims[axis] != 1 and dims[axis] != b.dims[axis - lead]:
                return None
            dims[axis] = b.dims[axis - lead]
    return spec_of_dims(a.ndim, dims, dtype)


cdef Spec broadcast_unknown(Spec a, Spec b):
    cdef int axis, lead
    dtype = a.dtype
    if a.unknown is b.unknown or b.ndim == 0:
        return a
    if a.ndim == 0:
        return spec_like(b, dtype)
    if a.shape is None or b.shape is None:
        return symbolic_spec(None, dtype)
    if a.ndim < b.ndim:
        a, b = b, a
    if is_wider(a, b):
        return spec_like(a, dtype)
    if is_wider(b, a):
        return spec_like(b, dtype)
    lead = a.ndim - b.ndim
    shape = list(a.shape)
    for axis in range(lead, a.ndim):
        other = b.shape[axis - lead]
        if other == 1 or shape[axis] == other:
            continue
        if shape[axis] == 1 or shape[axis] is None:
            shape[axis] = other
        elif other is not None:
            return None
    return symbolic_spec(tuple(shape), dtype)


cdef bint is_wider(Spec a, Spec b) noexcept:
    """Return whether b certainly broadcasts to the shape of a, for any unknown extents."""
    cdef int axis, lead = a.ndim - b.ndim
    cdef npy_intp extent, other
    for axis in range(max(lead, 0), a.ndim):
        extent, other = a.dims[axis], b.dims[axis - lead]
        if other != 1 and (extent != other or extent < 0) and (
                extent < 0 or extent == 1 or other >= 0):
            return False
    return lead >= 0


cdef Spec scalar_spec(Spec spec):
    if spec.ndim == 0:
        return spec
    if spec.scalar is None:
        spec.scalar = spec_of((), spec.dtype)
    return spec.scalar


cdef Spec boolean_spec(Spec spec):
    if spec.type_num == cnp.NPY_BOOL:
        return spec
    if not spec.known:
        return spec_like(spec, bool_dtype)
    if spec.boolean is None:
        spec.boolean = spec_of(spec.shape, bool_dtype)
    return spec.boolean
