cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from cytape.tensor.values.spec cimport spec_of_dims
from cytape.tensor.values.value cimport array_of, new_value, strided_value
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcmp, memcpy, memset

from .walk cimport MAX_AXES

cnp.import_array()

cdef int64_t* effort = effort_so_far()
cdef dict MODES = {"raise": RAISE, "wrap": WRAP, "clip": CLIP}


def taken(params, indices, int axis, str mode not None):
    """Take slices along an axis, as `numpy.take`.

    Parameters
    ----------
    params, indices : ndarray
    axis : int
        Not negative.
    mode : str

    Returns
    -------
    ndarray or None
        None if NumPy must do it: for arrays other than C-ordered numbers and integer positions,
        for indices out of bounds, and for scalars. If `params` is uniform, by strides of zero, the
        result is, too.
    """
    cdef ndarray x
    cdef Value found
    cdef Spec spec
    cdef npy_intp[MAX_AXES] dims
    cdef npy_intp[MAX_AXES] no_strides
    cdef npy_intp blocks = 1
    cdef int i, n_places
    cdef bint is_uniform
    if type(params) is not ndarray or not are_places(indices) or mode not in MODES:
        return None
    x = params
    n_places = cnp.PyArray_NDIM(indices)
    is_uniform = repeats_one_item(x)
    if x.dtype.kind not in "biufc" or not x.dtype.isnative or not (
            is_uniform or cnp.PyArray_ISCARRAY_RO(x)) or (
            not 0 <= axis < x.ndim or not 0 < x.ndim + n_places - 1 <= MAX_AXES):
        return None
    for i in range(axis):
        dims[i] = x.shape[i]
        blocks *= dims[i]
    for i in range(n_places):
        dims[axis + i] = cnp.PyArray_DIMS(indices)[i]
    for i in range(axis + 1, x.ndim):
        dims[n_places + i - 1] = x.shape[i]
    spec = spec_of_dims(x.ndim + n_places - 1, dims, x.dtype)
    if is_uniform:
        memset(no_strides, 0, sizeof(no_strides))
        return array_of(strided_value(spec, cnp.PyArray_BYTES(x), no_strides, x)) if are_inside(
            <const npy_intp*>cnp.PyArray_DATA(indices), cnp.PyArray_SIZE(indices), x.shape[axis],
            MODES[mode]) else None
    found = rows_at(spec, cnp.PyArray_BYTES(x), blocks, x.shape[axis], indices, MODES[mode])
    return None if found is None else array_of(found)


def are_alike(ndarray lines not None) -> bool:
    """Return whether each line along the last axis repeats one number, so that order is irrelevant.

    Parameters
    ----------
    lines : ndarray
    """
    cdef int last = cnp.PyArray_NDIM(lines) - 1
    cdef npy_intp itemsize = cnp.PyArray_ITEMSIZE(lines), line_bytes, start
    cdef const char* data = cnp.PyArray_BYTES(lines)
    if last < 0 or cnp.PyArray_STRIDES(lines)[last] == 0:
        return last >= 0
    if cnp.PyArray_SIZE(lines) == 0 or not cnp.PyArray_ISCARRAY_RO(lines):
        return False
    line_bytes = cnp.PyArray_DIMS(lines)[last] * itemsize
    for start in range(0, cnp.PyArray_NBYTES(lines), line_bytes):
        # Every item equals the one before it, bit by bit.
        if memcmp(data + start, data + start + itemsize, line_bytes - itemsize) != 0:
            return False
    return True


def slopes_at(x not None, ndarray xp not None, ndarray fp not None):
    """Return the slopes of the line through points, at each x; outside of them it is 0.

    Parameters
    ----------
    x : ndarray
    xp, fp : ndarray
        Of one axis and one length, of which `xp` is sorted.

    Returns
    -------
    ndarray or None
        None for arrays other than contiguous ones of double precision, which NumPy handles.
    """
    return at_pieces(x, xp, fp, True)


def of_pieces(values not None, x not None, ndarray xp not None):
    """Return the number of the piece between two points that each x lies on, 0 outside of them.

    Parameters
    ----------
    values : ndarray
        One per point in `xp`, for the piece to its right. The last one is not read.
    x : ndarray
    xp : ndarray
        Of one axis and sorted.

    Returns
    -------
    ndarray or None
        As `slopes_at` does.
    """
    return at_pieces(x, xp, values, False)


cdef object at_pieces(x, ndarray xp, ndarray values, bint are_points):
    """Return numbers of pieces, or of points, for the slopes between them, at each x."""
    cdef ndarray array, found
    cdef npy_intp i, n, n_points = cnp.PyArray_SIZE(xp)
    cdef const double* place
    cdef const double* points = <const double*>cnp.PyArray_DATA(xp)
    cdef const double* value = <const double*>cnp.PyArray_DATA(values)
    cdef double* out
    if type(x) is not ndarray or not (are_doubles(x) and are_doubles(xp) and are_doubles(values)):
        return None
    array = x
    found = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(array), cnp.PyArray_DIMS(array), cnp.NPY_DOUBLE, 0)
    n, place = cnp.PyArray_SIZE(array), <const double*>cnp.PyArray_DATA(array)
    out = <double*>cnp.PyArray_DATA(found)
    effort[0] += cnp.PyArray_NBYTES(found)
    with nogil:
        if are_points:
            for i in range(n):
                out[i] = slope_of(piece_at(place[i], points, n_points), points, value)
        else:
            for i in range(n):
                out[i] = value_of_piece(piece_at(place[i], points, n_points), value)
    return found


cdef inline npy_intp piece_at(double x, const double* xp, npy_intp n) noexcept nogil:
    """Return the piece that x lies on; its left end belongs to it, the last point too; or -1."""
    cdef npy_intp stop = 0, left = n, half  # search range of the first point beyond x
    while left > 0:  # without a branch, which would be mispredicted every other time
        half = (left + 1) >> 1
        stop += 0 if xp[stop + half - 1] > x else half
        left -= half
    if stop == n:
        return -1 if n < 2 or x > xp[n - 1] else n - 2
    return stop - 1


cdef inline double slope_of(npy_intp piece, const double* xp, const double* fp) noexcept nogil:
    cdef double length
    if piece < 0:
        return 0
    length = xp[piece + 1] - xp[piece]
    return 0 if length == 0 else (fp[piece + 1] - fp[piece]) / length


cdef inline double value_of_piece(npy_intp piece, const double* values) noexcept nogil:
    return 0 if piece < 0 else values[piece]


cdef bint are_doubles(ndarray array) noexcept:
    return cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE and cnp.PyArray_ISCARRAY_RO(array)


cdef Value rows_at(Spec spec, const char* data, npy_intp blocks, npy_intp extent, ndarray places,
                   Mode mode):
    cdef const npy_intp* place = <const npy_intp*>cnp.PyArray_DATA(places)
    cdef npy_intp count = cnp.PyArray_SIZE(places), row_bytes
    cdef Value out = new_value(spec)
    cdef bint inside
    if spec.size == 0:
        return out if count == 0 or extent > 0 and are_inside(place, count, extent, mode) else None
    row_bytes = spec.nbytes // (blocks * count)
    effort[0] += spec.nbytes
    with nogil:
        inside = copy_rows(out.data, count * row_bytes, data, blocks, place, count, extent,
                           row_bytes, mode)
    return out if inside else None


cdef bint copy_rows(char* out, npy_intp step, const char* data, npy_intp blocks,
                    const npy_intp* places, npy_intp count, npy_intp extent, npy_intp row_bytes,
                    Mode mode) noexcept nogil:
    cdef npy_intp _
    # To look at the places first pays if they are read several times.
    cdef bint plain = blocks > 1 and row_bytes in (4, 8) and are_positions(places, count, extent)
    for _ in range(blocks):
        if not plain:
            if not copy_block(out, data, places, count, extent, row_bytes, mode):
                return False
        elif row_bytes == 8:
            pick(<int64_t*>out, <const int64_t*>data, places, count)
        else:
            pick(<int32_t*>out, <const int32_t*>data, places, count)
        out += step
        data += extent * row_bytes
    return True


ctypedef fused item:
    int32_t
    int64_t


cdef inline void pick(item* out, const item* data, const npy_intp* places,
                      npy_intp count) noexcept nogil:
    cdef npy_intp i
    for i in range(count):
        out[i] = data[places[i]]


cdef bint copy_block(char* out, const char* data, const npy_intp* places, npy_intp count,
                     npy_intp extent, npy_intp row_bytes, Mode mode) noexcept nogil:
    cdef npy_intp i, place
    if mode == RAISE and row_bytes == 8:  # as for most
        for i in range(count):
            place = places[i]
            place += extent if place < 0 else 0
            if <size_t>place >= <size_t>extent:
                return False
            (<int64_t*>out)[i] = (<const int64_t*>data)[place]
        return True
    for i in range(count):
        place = place_within(places[i], extent, mode)
        if place < 0:
            return False
        if row_bytes == 4:
            (<int32_t*>out)[i] = (<const int32_t*>data)[place]
        else:
            memcpy(out + i * row_bytes, data + place * row_bytes, row_bytes)
    return True


cdef bint are_positions(const npy_intp* places, npy_intp count, npy_intp extent) noexcept nogil:
    """Return whether all places are counted from the beginning and within bounds."""
    cdef npy_intp i
    cdef size_t signs = 0  # sign bit: a place is not
    for i in range(count):
        signs |= <size_t>places[i] | (<size_t>extent - 1 - <size_t>places[i])
    return <npy_intp>signs >= 0


cdef bint are_inside(const npy_intp* places, npy_intp count, npy_intp extent,
                     Mode mode) noexcept nogil:
    cdef npy_intp i
    cdef size_t signs = 0  # sign bit: a place is out of bounds
    if mode != RAISE:
        return True
    for i in range(count):  # without a branch, so that it is vectorized
        signs |= (<size_t>places[i] + <size_t>extent) | (<size_t>extent - 1 - <size_t>places[i])
    return <npy_intp>signs >= 0


cdef inline npy_intp place_within(npy_intp place, npy_intp extent, Mode mode) noexcept nogil:
    """Return a place counted from the beginning; -1 if it is out of bounds."""
    if mode == CLIP:
        return min(max(place, 0), extent - 1)
    if place < 0:
        place += extent
    if 0 <= place < extent:
        return place
    return -1 if mode == RAISE or extent == 0 else (place % extent + extent) % extent


cdef bint are_places(part):
    return type(part) is ndarray and cnp.PyArray_TYPE(part) == cnp.NPY_INTP and (
        cnp.PyArray_ISCARRAY_RO(part))


cdef bint repeats_one_item(ndarray array) noexcept:
    cdef int i
    for i in range(cnp.PyArray_NDIM(array)):
        if cnp.PyArray_STRIDES(array)[i] != 0 and cnp.PyArray_DIMS(array)[i] != 1:
            return False
    return cnp.PyArray_SIZE(array) > 0
