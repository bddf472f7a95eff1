cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from cytape.tensor.values.spec cimport spec_of_dims
from cytape.tensor.values.value cimport new_value
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from .gather cimport repeats_one_item

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    cnp.npy_intp PyArray_CountNonzero(ndarray array) except -1

cdef int64_t* effort = effort_so_far()

ctypedef fused item_t:
    int32_t
    int64_t


cdef bint is_mask(index):
    return type(index) is ndarray and cnp.PyArray_TYPE(index) == cnp.NPY_BOOL and (
        cnp.PyArray_ISCARRAY_RO(index))


cdef Value chosen(ndarray x, ndarray mask):
    cdef cnp.npy_intp count, size = cnp.PyArray_SIZE(mask)
    cdef const cnp.npy_bool* is_chosen = <const cnp.npy_bool*>cnp.PyArray_DATA(mask)
    cdef const char* items = cnp.PyArray_BYTES(x)
    cdef Value out
    if (<object>x).shape != (<object>mask).shape or not is_moved(x.dtype) or (
            not cnp.PyArray_ISCARRAY_RO(x)):
        return None
    count = PyArray_CountNonzero(mask)
    out = new_value(spec_of_dims(1, &count, x.dtype))
    effort[0] += cnp.PyArray_NBYTES(x)
    with nogil:
        choose_items(out.data, items, out.spec.itemsize, is_chosen, size, count)
    return out


cdef void choose_items(char* out, const char* items, cnp.npy_intp itemsize,
                       const cnp.npy_bool* is_chosen, cnp.npy_intp size,
                       cnp.npy_intp count) noexcept nogil:
    if itemsize == sizeof(int64_t):
        choose(<int64_t*>out, <const int64_t*>items, is_chosen, size, count)
    else:
        choose(<int32_t*>out, <const int32_t*>items, is_chosen, size, count)


cdef Value put_back(ndarray terms, ndarray mask):
    cdef cnp.npy_intp count = cnp.PyArray_SIZE(terms), size = cnp.PyArray_SIZE(mask)
    cdef const cnp.npy_bool* is_chosen = <const cnp.npy_bool*>cnp.PyArray_DATA(mask)
    cdef const char* items = cnp.PyArray_BYTES(terms)
    cdef int step = 0 if repeats_one_item(terms) else 1
    cdef Value out
    if cnp.PyArray_NDIM(terms) != 1 or not is_moved(terms.dtype) or (
            step and not cnp.PyArray_ISCARRAY_RO(terms)) or PyArray_CountNonzero(mask) != count:
        return None
    out = new_value(spec_of_dims(cnp.PyArray_NDIM(mask), cnp.PyArray_DIMS(mask), terms.dtype))
    effort[0] += out.spec.nbytes
    with nogil:
        put_items(out.data, items, out.spec.itemsize, step, is_chosen, size, count)
    return out


cdef void put_items(char* out, const char* items, cnp.npy_intp itemsize, int step,
                    const cnp.npy_bool* is_chosen, cnp.npy_intp size,
                    cnp.npy_intp count) noexcept nogil:
    if count == 0:
        memset(out, 0, size * itemsize)
    elif itemsize == sizeof(int64_t):
        put(<int64_t*>out, <const int64_t*>items, step, is_chosen, size, count)
    else:
        put(<int32_t*>out, <const int32_t*>items, step, is_chosen, size, count)


cdef bint is_moved(dtype):
    return (dtype.itemsize in (sizeof(int32_t), sizeof(int64_t))
            and dtype.kind in "fciu" and dtype.isnative)


cdef void choose(item_t* out, const item_t* items, const cnp.npy_bool* is_chosen,
                 cnp.npy_intp size, cnp.npy_intp count) noexcept nogil:
    cdef cnp.npy_intp i = 0, j = 0
    while j < count and i < size:  # fewer are chosen if another thread clears a mask meanwhile
        out[j] = items[i]
        j += is_chosen[i] != 0  # bytes viewed as booleans may differ from 0 and 1
        i += 1


cdef void put(item_t* out, const item_t* items, int step, const cnp.npy_bool* is_chosen,
              cnp.npy_intp size, cnp.npy_intp count) noexcept nogil:
    cdef cnp.npy_intp i, j = 0
    for i in range(size):
        # Never read past the last item.
        out[i] = items[step * min(j, count - 1)] & -<item_t>(is_chosen[i] != 0)
        j += is_chosen[i] != 0
