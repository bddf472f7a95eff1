cimport cython
cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyTypeObject, destructor
from cpython.ref cimport Py_INCREF, PyObject
from libc.string cimport memcpy

from cytape.core.interrupts cimport effort_so_far
from libc.stdint cimport int64_t

from .buffer cimport Buffer, new_buffer
from .released_ids cimport Counts, counts, value_died
from .spec cimport spec_of_array

from cytape.errors import SymbolicTensorError
from cytape.tensor.values.user_warnings import user_line

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    int PyArray_SetBaseObject(ndarray array, object base) except -1  # steals the base
    ndarray PyArray_NewFromDescr(type subtype, cnp.dtype descr, int ndim, cnp.npy_intp* dims,
                                 cnp.npy_intp* strides, void* data, int flags, object base)

cdef id_t last_id = 0
cdef Counts* recorders = counts()
cdef int64_t* effort = effort_so_far()


cdef id_t new_id() noexcept:
    global last_id
    last_id += 1
    return last_id


cpdef id_t newest_id() noexcept:
    """Return the id of the newest value; ids of later values are larger."""
    return last_id


@cython.final
@cython.no_gc
@cython.freelist(512)
cdef class Value:
    pass


cdef destructor dealloc = (<PyTypeObject*>Value).tp_dealloc


cdef void announce_and_dealloc(PyObject* value) noexcept:
    if (<Value>value).data == NULL:
        recorders.symbolic -= (<Value>value).owner is not None  # None if construction failed
    elif recorders.accumulators.count:
        value_died((<Value>value).id)
    dealloc(value)


# Faster than __dealloc__, which saves the exception state for every value.
(<PyTypeObject*>Value).tp_dealloc = announce_and_dealloc


cdef void own_array(Value value, ndarray array) noexcept:
    value.owner = array
    value.data = cnp.PyArray_BYTES(array)


cdef Value blank(Spec spec):
    cdef Value value = Value.__new__(Value)
    value.spec = spec
    value.id = new_id()
    return value


cdef Value new_value(Spec spec):
    cdef Value value = blank(spec)
    cdef Buffer buffer
    value.contiguous = True
    if spec.nbytes <= INLINE_BYTES:
        value.data = <char*>value.inline_data
    elif spec.nbytes <= BYTES_OBJECT:
        value.owner = PyBytes_FromStringAndSize(NULL, spec.nbytes)
        value.data = PyBytes_AS_STRING(value.owner)
    else:
        effort[0] += spec.nbytes
        buffer = new_buffer(spec.nbytes)
        value.data = buffer.data
        value.owner = buffer
    return value


cdef Value symbolic_value(Spec spec, id_t id, graph, int64_t symbol):
    cdef Value value = Value.__new__(Value)
    value.spec = spec
    value.id = id
    value.data = NULL
    value.owner = graph
    value.inline_data[0] = symbol
    recorders.symbolic += 1
    return value


cdef Value value_of_array(ndarray array):
    cdef Value value = blank(spec_of_array(array))
    if not cnp.PyArray_ISALIGNED(array):  # typed loops read all values
        array = cnp.PyArray_NewCopy(array, cnp.NPY_CORDER)
    value.contiguous = cnp.PyArray_ISCARRAY_RO(array)
    if value.contiguous and value.spec.nbytes <= INLINE_BYTES:
        value.data = <char*>value.inline_data
        memcpy(value.data, cnp.PyArray_BYTES(array), value.spec.nbytes)
    else:
        effort[0] += value.spec.nbytes
        own_array(value, array)
    return value


cdef Value copy_of_array(ndarray array):
    cdef Value value
    if cnp.PyArray_NBYTES(array) > BYTES_OBJECT or not cnp.PyArray_ISCARRAY_RO(array):
        return value_of_array(cnp.PyArray_NewCopy(array, cnp.NPY_CORDER))
    value = new_value(spec_of_array(array))
    memcpy(value.data, cnp.PyArray_BYTES(array), value.spec.nbytes)
    return value


cdef ndarray array_of(Value value):
    # Its base is the value, not the owner, so that it cannot be made writeable.
    cdef ndarray array, owner
    cdef cnp.npy_intp* strides = NULL
    cdef int flags = cnp.NPY_ARRAY_CARRAY_RO
    if value.data == NULL:
        raise SymbolicTensorError(no_value(value, "", "Compute with functions of cytape.numpy.\n"))
    if not value.contiguous:
        owner = value.owner
        strides = cnp.PyArray_STRIDES(owner)
        flags = cnp.PyArray_FLAGS(owner) & ~(cnp.NPY_ARRAY_WRITEABLE | cnp.NPY_ARRAY_OWNDATA)
    Py_INCREF(value.spec.dtype)
    array = PyArray_NewFromDescr(ndarray, <cnp.dtype>value.spec.dtype, value.spec.ndim,
                                 value.spec.dims, strides, value.data, flags, None)
    Py_INCREF(value)
    PyArray_SetBaseObject(array, value)
    return array


cdef bint is_exclusive(PyObject* x) noexcept:
    cdef PyObject* owner
    if x.ob_refcnt != 1 or x.ob_type != <PyTypeObject*>Value or (
            not (<Value>x).contiguous):  # symbolic values are not contiguous, either
        return False
    owner = <PyObject*>(<Value>x).owner
    if owner == <PyObject*>None:
        return True
    # An ndarray with a base, or a base itself, may share memory.
    return owner.ob_refcnt == 1 and (
        type(<object>owner) is not ndarray or cnp.PyArray_CHKFLAGS(
            <ndarray>owner, cnp.NPY_ARRAY_OWNDATA | cnp.NPY_ARRAY_WRITEABLE))


cdef str no_value(Value value, str asker, str instead):
    return (f"{value.owner.describe(symbol_of(value))} is symbolic, and was asked for its value"
            f"{asker and ' by '}{asker} {user_line()}: it has one only when its graph runs "
            f"(cytape.function, vmap and others build one).\n{instead}To see its value return it "
            "from the function that is traced (of a Graph: fetch it with Session.run)")


cdef bint is_uniform(Value value) noexcept:
    cdef int axis
    if value.contiguous:
        return False
    for axis in range(value.spec.ndim):
        if value.spec.dims[axis] > 1 and cnp.PyArray_STRIDES(<ndarray>value.owner)[axis]:
            return False
    return True


cdef bint is_one(Value value) noexcept:
    if value.spec.size == 0 or value.spec.size > 1 and not is_uniform(value):
        return False
    if value.spec.type_num == cnp.NPY_DOUBLE:
        return (<double*>value.data)[0] == 1
    return value.spec.type_num == cnp.NPY_FLOAT and (<float*>value.data)[0] == 1


cdef void strides_of(Value value, npy_intp* strides) noexcept:
    cdef npy_intp stride = value.spec.itemsize
    cdef int axis
    for axis in range(value.spec.ndim - 1, -1, -1):
        if value.contiguous:
            strides[axis] = stride
            stride *= value.spec.dims[axis]
        else:
            strides[axis] = cnp.PyArray_STRIDES(<ndarray>value.owner)[axis]


cdef Value strided_value(Spec spec, char* data, npy_intp* strides, object owner):
    """Return a value that is a part of another one's data, or repeats it by strides of zero."""
    cdef ndarray array
    cdef Value value
    while type(owner) is Value and (<Value>owner).owner is not None:  # views of views form no chain
        owner = (<Value>owner).owner
    if in_c_order(spec, strides):
        value = blank(spec)
        value.contiguous = True
        if spec.nbytes <= INLINE_BYTES:
            value.data = <char*>value.inline_data
            memcpy(value.data, data, spec.nbytes)
        else:
            value.data = data
            value.owner = owner
        return value
    Py_INCREF(spec.dtype)
    array = PyArray_NewFromDescr(ndarray, <cnp.dtype>spec.dtype, spec.ndim, spec.dims, strides,
                                 data, 0, None)
    cnp.PyArray_UpdateFlags(array, cnp.NPY_ARRAY_UPDATE_ALL)
    Py_INCREF(owner)
    PyArray_SetBaseObject(array, owner)
    return value_of_array(array)


cdef Value shown_again(Value value):
    cdef cnp.npy_intp strides[cnp.NPY_MAXDIMS]
    strides_of(value, strides)
    return strided_value(value.spec, value.data, strides, value)


cdef bint in_c_order(Spec spec, const npy_intp* strides) noexcept:
    cdef npy_intp stride = spec.itemsize
    cdef int axis
    for axis in range(spec.ndim - 1, -1, -1):
        if spec.dims[axis] != 1 and strides[axis] != stride:
            return spec.size == 0
        stride *= spec.dims[axis]
    return True
