# Spec: shape and dtype of a tensor, one shared object per distinct pair. Specs are equal if and
# only if they are the same object, and properties derived from them are computed once and stored.

from numpy cimport ndarray, npy_intp

cdef class Spec:
    cdef readonly object shape     # a tuple; UnknownShape or None if it is unknown
    cdef readonly object dtype     # a numpy.dtype in native byte order
    cdef readonly npy_intp size    # elements
    cdef readonly Py_ssize_t nbytes
    cdef readonly int ndim
    cdef readonly bint trainable   # floating or complex: gradients flow through it
    cdef int type_num              # NumPy's number of the dtype
    cdef int itemsize
    cdef npy_intp* dims            # the shape, for C
    cdef Spec scalar               # 0-d, of the same dtype
    cdef Spec boolean              # the same shape, of dtype bool
    cdef readonly bint known       # all extents are known; else `unknown` has the shape's owner
    cdef object unknown            # an UnknownShape, which specs of one shape share, or None

cdef Spec spec_of(tuple shape, dtype)
cdef Spec spec_of_array(ndarray array)
cpdef Spec symbolic_spec(shape, dtype)    # of unknown extents (None) or rank (shape None)
cpdef Spec spec_like(Spec spec, dtype)    # of the same shape
cdef Spec spec_of_dims(int ndim, npy_intp* dims, dtype)  # a native dtype of numbers
cdef Spec broadcast_spec(Spec a, Spec b)  # of a's dtype; None if their shapes do not fit
cdef Spec scalar_spec(Spec spec)
cdef Spec boolean_spec(Spec spec)
