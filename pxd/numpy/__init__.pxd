# The part of NumPy's C API that the package uses. Add declarations from NumPy's own file.
#
# A package that cimports cytape's modules reads NumPy's file, which declares the same.

from cpython.object cimport PyObject

cdef extern from "numpy/arrayobject.h":
    ctypedef signed long npy_intp  # as in NumPy's file: the C compiler knows the size
    ctypedef unsigned char npy_bool

    enum NPY_TYPES:
        NPY_BOOL
        NPY_INT
        NPY_LONG
        NPY_LONGLONG
        NPY_ULONGLONG
        NPY_FLOAT
        NPY_DOUBLE
        NPY_LONGDOUBLE
        NPY_CFLOAT
        NPY_CDOUBLE
        NPY_CLONGDOUBLE
        NPY_OBJECT
        NPY_INT64
        NPY_FLOAT16
        NPY_INTP

    ctypedef enum NPY_ORDER:
        NPY_CORDER
        NPY_KEEPORDER

    enum:
        NPY_ARRAY_OWNDATA
        NPY_ARRAY_WRITEABLE
        NPY_ARRAY_CARRAY_RO
        NPY_ARRAY_UPDATE_ALL

    cdef enum:
        NPY_MAXDIMS

    ctypedef struct PyArray_Descr:
        pass

    ctypedef class numpy.dtype [object PyArray_Descr, check_size ignore]:
        cdef char kind
        cdef int type_num

    ctypedef class numpy.ndarray [object PyArrayObject, check_size ignore]:
        @property
        cdef inline dtype descr(self):
            return <dtype>PyArray_DESCR(self)

        @property
        cdef inline int ndim(self) noexcept nogil:
            return PyArray_NDIM(self)

        @property
        cdef inline npy_intp* shape(self) noexcept nogil:
            return PyArray_DIMS(self)

        @property
        cdef inline npy_intp* strides(self) noexcept nogil:
            return PyArray_STRIDES(self)

        @property
        cdef inline npy_intp size(self) noexcept nogil:
            return PyArray_SIZE(self)

    int import_array "_import_array"() except -1

    bint PyArray_CHKFLAGS(ndarray m, int flags) nogil
    bint PyArray_ISWRITEABLE(ndarray m) nogil
    bint PyArray_ISALIGNED(ndarray m) nogil
    bint PyArray_ISFLOAT(ndarray) nogil
    bint PyArray_ISNUMBER(ndarray) nogil
    bint PyArray_ISCOMPLEX(ndarray) nogil
    bint PyArray_ISNOTSWAPPED(ndarray) nogil
    bint PyArray_ISCARRAY(ndarray) nogil
    bint PyArray_ISCARRAY_RO(ndarray) nogil
    bint PyArray_ISBEHAVED_RO(ndarray) nogil
    bint PyArray_SAMESHAPE(ndarray, ndarray) nogil
    bint PyArray_CheckAnyScalar(object)

    int PyArray_NDIM(ndarray) nogil
    void* PyArray_DATA(ndarray) nogil
    char* PyArray_BYTES(ndarray) nogil
    npy_intp* PyArray_DIMS(ndarray) nogil
    npy_intp* PyArray_STRIDES(ndarray) nogil
    npy_intp PyArray_SIZE(ndarray) nogil
    npy_intp PyArray_NBYTES(ndarray) nogil
    npy_intp PyArray_ITEMSIZE(ndarray) nogil
    int PyArray_TYPE(ndarray arr) nogil
    PyArray_Descr* PyArray_DESCR(ndarray) nogil  # a borrowed reference
    PyObject* PyArray_BASE(ndarray) nogil  # a borrowed reference
    int PyArray_FLAGS(ndarray) nogil
    void PyArray_CLEARFLAGS(ndarray, int flags) nogil
    void PyArray_ENABLEFLAGS(ndarray, int flags) nogil
    void PyArray_UpdateFlags(ndarray, int)

    bint PyTypeNum_ISUNSIGNED(int) nogil
    bint PyTypeNum_ISINTEGER(int) nogil
    bint PyTypeNum_ISFLOAT(int) nogil
    bint PyTypeNum_ISCOMPLEX(int) nogil

    object PyArray_EMPTY(int nd, npy_intp* dims, int type, int fortran)
    object PyArray_NewCopy(ndarray, NPY_ORDER)
    dtype PyArray_DescrFromType(int)

cdef extern from "numpy/ufuncobject.h":
    ctypedef void (*PyUFuncGenericFunction)(char**, npy_intp*, npy_intp*, void*)

    ctypedef class numpy.ufunc [object PyUFuncObject, check_size ignore]:
        cdef int nin
        cdef int nout
        cdef int nargs
        cdef PyUFuncGenericFunction* functions
        cdef void** data
        cdef int ntypes
        cdef char* types

    cdef enum:
        PyUFunc_None

    object PyUFunc_FromFuncAndData(PyUFuncGenericFunction*, void**, char*, int, int, int, int,
                                   char*, char*, int)
    object PyUFunc_FromFuncAndDataAndSignature(PyUFuncGenericFunction*, void**, char*, int, int,
                                               int, int, char*, char*, int, char*)
    int import_ufunc "_import_umath"() except -1

cdef extern from "numpy/arrayobject.h":
    int _import_array() except -1  # Cython calls it in modules that do not call import_array
