cimport cython
cimport numpy as cnp
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport PyObject
from libc.string cimport memcmp
from numpy cimport ndarray, npy_intp

import math

import numpy as np

from cytape.core.vspace import is_trainable

cnp.import_array()

cdef enum:
    RECENT = 256   # a power of two
    MAX_NDIM = 64  # NumPy's

cdef dict interned = {}
cdef Py_ssize_t purge_above = 4096
cdef object bool_dtype = np.dtype(bool)

# Specs lately asked for by array, by a hash of type number and shape: spares building a tuple.
cdef list recent = [None] * RECENT


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

    def __init__(self):
        raise TypeError("specs are shared: ask for one with Spec.of(shape, dtype)")

    def __dealloc__(self):
        PyMem_Free(self.dims)

    @staticmethod
    def of(shape, dtype) -> Spec:
        """Return the spec of a shape and a dtype.

        Parameters
        ----------
        shape : tuple of int
        dtype : numpy.dtype or what converts to one

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
        return spec_of_array(np.broadcast_to(np.empty((), checked_dtype(dtype)), tuple(shape)))

    def __reduce__(self):
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
        interned[shape, dtype] = spec
    return spec


cdef Spec new_spec(tuple shape, dtype):
    cdef Spec spec = Spec.__new__(Spec)
    spec.shape = shape
    spec.dtype = dtype
    spec.type_num = dtype.num
    spec.itemsize = dtype.itemsize
    spec.trainable = is_trainable(dtype)
    spec.ndim = len(shape)
    spec.dims = <npy_intp*>PyMem_Malloc(max(spec.ndim, 1) * sizeof(npy_intp))
    if spec.dims == NULL:
        raise MemoryError()
    spec.size = 1
    for axis in range(spec.ndim):
        spec.dims[axis] = shape[axis]
        spec.size *= spec.dims[axis]
    spec.nbytes = spec.size * spec.itemsize
    if spec.nbytes != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of shape {shape} is too big: its bytes cannot be counted")
    return spec


cdef void purge() noexcept:
    """Forget specs that only the cache refers to, so that ever new shapes do not pile up."""
    global purge_above
    for i in range(RECENT):
        recent[i] = None
    for key, spec in list(interned.items()):
        if (<PyObject*>spec).ob_refcnt == 3:  # the dict's, the list's and the loop's
            del interned[key]
    purge_above = max(purge_above, 2 * len(interned))


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


cdef Spec scalar_spec(Spec spec):
    if spec.ndim == 0:
        return spec
    if spec.scalar is None:
        spec.scalar = spec_of((), spec.dtype)
    return spec.scalar


cdef Spec boolean_spec(Spec spec):
    if spec.type_num == cnp.NPY_BOOL:
        return spec
    if spec.boolean is None:
        spec.boolean = spec_of(spec.shape, bool_dtype)
    return spec.boolean
