cimport numpy as cnp
from cytape.core.interrupts cimport NO_MEMORY, effort_so_far
from cytape.tensor.values.spec cimport spec_of_dims
from cytape.tensor.values.value cimport array_of, new_value, strided_value, strides_of
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from .gather cimport are_places, repeats_one_item
from .masks cimport is_mask, put_back
from .sums cimport add_loop_of
from .walk cimport MAX_AXES

import numpy as np

cnp.import_array()

cdef enum:
    FEW = 8         # numbers of a row that are added without a ufunc's loop
    LONG_ROW = 256  # bytes above which the first addition to a row is a copy
    LARGE = 1 << 18  # bytes of a total that exceeds the L2 cache, while its counts fit
    MOST = 255                # largest count in a byte

cdef int64_t* effort = effort_so_far()

ctypedef fused number:
    double
    float


def added(tuple shape not None, index, terms):
    """Add terms into zeros, at the places of an index with arrays of integers, or of a mask.

    Terms for the same place are added in their order, as by `numpy.add.at`.

    Parameters
    ----------
    shape : tuple of int
    index : tuple or ndarray
    terms : ndarray

    Returns
    -------
    ndarray or None
        None if NumPy must do it: for other kinds of indices, places out of bounds, and terms other
        than floats and complex numbers of at least single precision. If the terms are uniform, by
        strides of zero, so are the rows.
    """
    cdef Value total = sum_at(shape, index, terms) if type(terms) is ndarray else None
    return None if total is None else array_of(total)


cdef Value sum_at(tuple shape, index, ndarray terms):
    cdef int ndim = <int>len(shape), n_own = ndim, i
    cdef npy_intp[MAX_AXES] dims
    cdef ndarray places
    cdef Scatter job
    cdef Value total
    cdef Spec spec
    cdef int found
    cdef bint is_uniform
    if is_mask(index):
        return put_back(terms, index)
    if not is_summed(terms):
        return None
    places = find_places(shape, index, &job)
    if places is None or (
            job.row_size == 0 or terms.size != job.blocks * job.count * job.row_size):
        return None
    is_uniform = repeats_one_item(terms) and cnp.PyArray_ISBEHAVED_RO(terms)
    if is_uniform:  # uniform rows, by strides of zero
        job.row_size = 1
        n_own = job.n_leading
    if not is_uniform and not cnp.PyArray_ISCARRAY_RO(terms):
        terms = np.ascontiguousarray(terms, terms.dtype.newbyteorder("="))
    for i in range(ndim):
        dims[i] = shape[i]
    spec = spec_of_dims(n_own, dims, terms.dtype)
    total = new_value(spec)
    prepare(&job, spec, is_uniform)
    job.total, job.terms = total.data, cnp.PyArray_BYTES(terms)
    effort[0] += spec.nbytes
    with nogil:
        found = add_all(&job)
    if found == NO_MEMORY:
        raise MemoryError()
    if not found:
        return None
    return total if n_own == ndim else in_rows(total, ndim, dims)


cdef ndarray find_places(tuple shape, index, Scatter* job):
    cdef tuple parts = index if type(index) is tuple else (index,)
    cdef int lead = 0, n_arrays = 0, i, ndim = <int>len(shape)
    while lead < len(parts) and is_whole(parts[lead]):
        lead += 1
    while lead + n_arrays < len(parts) and is_integers(parts[lead + n_arrays]):
        n_arrays += 1
    if n_arrays == 0 or len(parts) > ndim or ndim > MAX_AXES:
        return None
    for i in range(lead + n_arrays, len(parts)):
        if not is_whole(parts[i]):
            return None
    job.blocks = job.extent = job.row_size = 1
    job.n_leading = lead + n_arrays
    for i in range(ndim):
        if i < lead:
            job.blocks *= shape[i]
        elif i < lead + n_arrays:
            job.extent *= shape[i]
        else:
            job.row_size *= shape[i]
    places = (parts[lead] if n_arrays == 1 else
              places_of(parts[lead:lead + n_arrays], shape[lead:lead + n_arrays]))
    if places is None:
        return None
    if not are_places(places):
        places = np.ascontiguousarray(places, np.intp)
    job.count = places.size
    job.places = <const npy_intp*>cnp.PyArray_DATA(places)
    return places


cdef void prepare(Scatter* job, Spec spec, bint is_uniform) noexcept:
    job.row_bytes = job.row_size * spec.itemsize
    job.step = 0 if is_uniform else job.row_bytes
    job.add, job.type_num = add_loop_of(spec), spec.type_num


cdef int add_all(Scatter* job) noexcept nogil:
    cdef npy_intp nbytes = job.blocks * job.extent * job.row_bytes
    cdef unsigned char* marks = NULL
    cdef bint inside = False
    cdef bint is_counted = job.step == 0 and nbytes >= LARGE and (
        job.type_num == cnp.NPY_DOUBLE or job.type_num == cnp.NPY_FLOAT)
    if job.row_bytes >= LONG_ROW or is_counted:
        marks = <unsigned char*>calloc(max(job.extent, 1), 1)
        if marks == NULL:
            return NO_MEMORY
    if job.row_bytes >= LONG_ROW:
        inside = add_long_rows(job, marks)
    elif not is_counted or not (
            add_counted[double](job, marks, <double>0, &inside)
            if job.type_num == cnp.NPY_DOUBLE else
            add_counted[float](job, marks, <float>0, &inside)):
        memset(job.total, 0, nbytes)
        inside = add_terms(job)
    free(marks)
    return inside


cdef bint is_summed(ndarray terms) noexcept:
    """Return whether terms are floats or complex numbers, other than half precision."""
    cdef int type_num = cnp.PyArray_TYPE(terms)
    return type_num != cnp.NPY_FLOAT16 and (
        cnp.PyTypeNum_ISFLOAT(type_num) or cnp.PyTypeNum_ISCOMPLEX(type_num))


cdef Value in_rows(Value column, int ndim, npy_intp* dims):
    """Return the numbers of an array repeated along more axes."""
    cdef npy_intp[MAX_AXES] strides
    strides_of(column, strides)
    memset(&strides[column.spec.ndim], 0, (ndim - column.spec.ndim) * sizeof(npy_intp))
    return strided_value(
        spec_of_dims(ndim, dims, column.spec.dtype), column.data, strides, column)


cdef bint is_integers(part):
    """Return whether a part is an array of integers, other than uint64, which may exceed intp."""
    cdef int type_num
    if type(part) is not ndarray:
        return False
    type_num = cnp.PyArray_TYPE(part)
    return cnp.PyTypeNum_ISINTEGER(type_num) and not (
        cnp.PyTypeNum_ISUNSIGNED(type_num) and cnp.PyArray_ITEMSIZE(part) == sizeof(npy_intp))


cdef bint is_whole(part):
    return isinstance(part, slice) and part.start is None and part.stop is None and (
        part.step is None or part.step == 1)


cdef object places_of(tuple arrays, tuple extents):
    """Return flat positions for arrays of integers, None if one is out of bounds."""
    places = None
    for array, n in zip(arrays, extents):
        if array.size and not (-n <= array.min() and array.max() < n):
            return None
        array = array.astype(np.intp, copy=False)
        array = np.where(array < 0, array + n, array)
        places = array if places is None else places * n + array
    return places


cdef inline npy_intp place_of(const Scatter* job, npy_intp place) noexcept nogil:
    """Return a place counted from the beginning; -1 if it is out of bounds."""
    if place < 0:
        place += job.extent
    return place if 0 <= place < job.extent else -1


cdef bint add_terms(const Scatter* job) noexcept nogil:
    """Add all terms; return False if a place is out of bounds."""
    cdef npy_intp _
    cdef char* total = job.total
    cdef char* terms = job.terms
    for _ in range(job.blocks):
        if not add_rows(job, total, terms, job.places, job.count):
            return False
        total += job.extent * job.row_bytes
        terms += job.count * job.step
    return True


cdef bint add_rows(const Scatter* job, char* total, char* terms, const npy_intp* places,
                   npy_intp count) noexcept nogil:
    cdef npy_intp i, place
    if job.row_size <= FEW and job.type_num == cnp.NPY_DOUBLE:
        return add_short_rows(job, <double*>total, terms, places, count)
    if job.row_size <= FEW and job.type_num == cnp.NPY_FLOAT:
        return add_short_rows(job, <float*>total, terms, places, count)
    for i in range(count):
        place = place_of(job, places[i])
        if place < 0:
            return False
        add_row(job, total + place * job.row_bytes, terms + i * job.step, False)
    return True


cdef bint add_short_rows(const Scatter* job, number* total, char* terms, const npy_intp* places,
                         npy_intp count) noexcept nogil:
    cdef npy_intp i, j, place, row_size = job.row_size, step = job.step
    cdef number* row
    cdef number* term
    for i in range(count):
        place = place_of(job, places[i])
        if place < 0:
            return False
        row, term = total + place * row_size, <number*>(terms + i * step)
        row[0] += term[0]
        j = 1
        while j < row_size:
            row[j] += term[j]
            j += 1
    return True


cdef bint add_counted(Scatter* job, unsigned char* counts, number zero,
                      bint* inside) noexcept nogil:
    """Add a uniform term by counting places; return False if a count is too large."""
    cdef npy_intp _, i, place
    cdef number[MOST + 1] sums
    cdef number* total = <number*>job.total
    inside[0] = True
    sums[0] = zero
    for i in range(MOST):
        sums[i + 1] = sums[i] + (<number*>job.terms)[0]
    for _ in range(job.blocks):
        memset(counts, 0, job.extent)
        for i in range(job.count):
            place = place_of(job, job.places[i])
            if place < 0:
                inside[0] = False
                return True
            if counts[place] == MOST:
                return False
            counts[place] += 1
        for i in range(job.extent):
            total[i] = sums[counts[i]]
        total += job.extent
    return True


cdef bint add_long_rows(Scatter* job, unsigned char* written) noexcept nogil:
    """Add all terms without clearing the rows that are written first."""
    cdef npy_intp _, i, place
    cdef char* total = job.total
    cdef char* terms = job.terms
    for _ in range(job.blocks):
        memset(written, 0, job.extent)
        for i in range(job.count):
            place = place_of(job, job.places[i])
            if place < 0:
                return False
            add_row(job, total + place * job.row_bytes, terms + i * job.row_bytes,
                    not written[place])
            written[place] = True
        for i in range(job.extent):
            if not written[i]:
                memset(total + i * job.row_bytes, 0, job.row_bytes)
        total += job.extent * job.row_bytes
        terms += job.count * job.row_bytes
    return True


cdef void add_row(const Scatter* job, char* row, char* terms, bint is_first) noexcept nogil:
    """Add to a row, the first time to zeros, so that -0.0 becomes 0.0."""
    cdef long double zeros[2]
    cdef char* data[3]
    cdef npy_intp strides[3]
    memset(zeros, 0, sizeof(zeros))  # padding bytes too
    data[0], data[1], data[2] = row, terms, row
    strides[0] = strides[1] = strides[2] = job.row_bytes // job.row_size
    if is_first:
        data[0], strides[0] = <char*>zeros, 0
    job.add.function(data, &job.row_size, strides, job.add.data)
