cimport cython
from libc.math cimport INFINITY, M_SQRT2, NAN, fabs, sqrt

cdef enum:
    N_ROWS = 100000  # on either side
    N_CORRECTIONS = 100

cdef double NEGLIGIBLE = 1e-19
cdef double TINY = 1e-30


cdef inline double coupling(Matrix* a, double degree) noexcept nogil:
    """Return the squared coefficient of x P(degree - 1) in terms of normalised P(degree)."""
    return (degree * degree - a.square) / (4 * degree * degree - 1)


cdef inline double base_entry(Matrix* a, long k) noexcept nogil:
    cdef double number = a.first + 2 * k
    return number * (number + 1) if a.is_spheroidal else number * number


cdef inline double part_entry(Matrix* a, long k) noexcept nogil:
    cdef double number = a.first + 2 * k
    if a.is_spheroidal:
        return coupling(a, number) + coupling(a, number + 1)
    return a.corner if k == 0 else 0


cdef inline double part_beside(Matrix* a, long k) noexcept nogil:
    """Return part[k, k + 1], positive or 0."""
    cdef double number = a.first + 2 * k
    if k < 0:
        return 0
    if a.is_spheroidal:
        return sqrt(coupling(a, number + 1) * coupling(a, number + 2))
    return a.edge if k == 0 else 1


cdef long end_of_rows(Matrix* a, double value, long k, int step, long* last) noexcept nogil:
    """Return the row from k on beyond which v is negligible, and the last row where v may grow."""
    cdef double size = 1, beside, room, p = fabs(a.p)
    cdef int _i
    last[0] = k
    for _i in range(N_ROWS):
        if size < NEGLIGIBLE or (step < 0 and k == 0):
            return k
        beside = p * part_beside(a, k if step > 0 else k - 1)
        k += step
        room = fabs(base_entry(a, k) + a.p * part_entry(a, k) - value) - p * part_beside(
            a, k if step > 0 else k - 1)
        if room > beside:
            size *= beside / room
        else:
            size, last[0] = 1, k
    return -1


cdef inline double eliminate(
        Matrix* a, double value, double slope, Sweep* s, int step, int order) noexcept nogil:
    """Pass row s.k; return v[k] / v[k + step]."""
    cdef double entry = part_entry(a, s.k)
    cdef double beside = part_beside(a, s.k if step > 0 else s.k - 1), off = a.p * beside
    cdef double pivot = base_entry(a, s.k) + a.p * entry - value - s.taken, ratio, ratio_in_p
    cdef double norm = s.norm + 1, part = s.part + entry
    if fabs(pivot) < TINY:
        pivot = TINY
    ratio = -off / pivot
    s.taken = -ratio * off
    s.norm = ratio * ratio * norm
    s.part = ratio * (2 * beside + ratio * part)
    if order > 1:
        ratio_in_p = -(beside + ratio * (entry - slope - s.taken_in_p)) / pivot
        s.taken_in_p = -ratio_in_p * off - ratio * beside
        s.norm_in_p = ratio * (2 * ratio_in_p * norm + ratio * s.norm_in_p)
        s.part_in_p = 2 * ratio_in_p * (beside + ratio * part) + ratio * ratio * s.part_in_p
    s.negatives += pivot < 0
    s.k += step
    return ratio


cdef double in_p(Matrix* a, long row, double value, double low, double high, int order,
                 double* slope) noexcept nogil:
    """Return a derivative of the eigenvalue of this number, and the first one in `slope`.

    The eigenvalue is between low and high, and near value if that is right.
    """
    cdef double height, norm, pivot, residual
    cdef long start, last, end, negatives
    cdef Sweep s, best
    cdef int _i, order_now = 1
    if low == -INFINITY or high == INFINITY:
        return NAN
    value = min(max(value, low), high)
    for _i in range(N_CORRECTIONS):
        start = end_of_rows(a, value, row, -1, &last)
        end = end_of_rows(a, value, row, 1, &last)
        if start < 0 or end < 0:
            return NAN
        s = Sweep(start, start, 0, 0, 0, 0, 0, 0)
        best, height = s, 1
        while s.k < last:
            height *= fabs(eliminate(a, value, slope[0], &s, 1, order_now))
            if height <= 1:
                best, height = s, 1
        s = Sweep(end, 0, 0, 0, 0, 0, 0, 0)
        while s.k > best.k:
            eliminate(a, value, slope[0], &s, -1, order_now)
        pivot = base_entry(a, s.k) + a.p * part_entry(a, s.k)
        residual = pivot - value - best.taken - s.taken
        norm = 1 + best.norm + s.norm
        negatives = best.negatives + s.negatives
        if negatives == row and fabs(residual) <= norm * (
                1e-12 + 1e-15 * (fabs(value) + fabs(pivot) + 2 * fabs(a.p))):
            if order_now > 1:
                return (best.part_in_p + s.part_in_p
                        - slope[0] * (best.norm_in_p + s.norm_in_p)) / norm
            slope[0] = (part_entry(a, s.k) + best.part + s.part) / norm
            if order == 1:
                return slope[0]
            order_now = 2
            continue
        if negatives + (residual < 0) > row:
            high = value
        else:
            low = value
        value += residual / norm
        if negatives != row or not low <= value <= high:
            value = 0.5 * (low + high)
    return NAN


cdef double mathieu(double value, double m, double q, double sign, int order) noexcept nogil:
    cdef double low, slope = 0
    cdef bint is_odd
    cdef long n
    cdef Matrix a
    if value != value or m != m or q != q or not 0 <= m < 1e9:
        return NAN
    n = <long>m
    is_odd = n % 2
    a = Matrix(
        False, 1 if is_odd else 0 if sign > 0 else 2, 0, sign if is_odd else 0,
        M_SQRT2 if sign > 0 and not is_odd else 1, q)
    n = (n - <long>a.first) // 2
    low = base_entry(&a, n)
    return in_p(&a, n, value, low - 2 * fabs(q), low + 2 * fabs(q), order, &slope)


cdef double spheroidal(
        double value, double m, double n, double c, double sign, int order) noexcept nogil:
    cdef double low, slope = 0, second
    cdef Matrix a
    cdef long row
    if value != value or m != m or n != n or c != c or c < 0 or not 0 <= m <= n < 1e9:
        return NAN
    row = (<long>n - <long>m) // 2
    a = Matrix(True, n - 2 * row, m * m, 0, 0, sign * c * c)
    low = base_entry(&a, row)
    second = in_p(&a, row, value, low + min(a.p, 0.), low + max(a.p, 0.), order, &slope)
    return 2 * sign * (c * slope if order == 1 else slope + 2 * a.p * second)


ctypedef fused real:
    float
    double


@cython.ufunc
cdef real mathieu_in_q(real value, real m, real q, real sign, real order) noexcept nogil:
    return <real>mathieu(value, m, q, sign, <int>order)


@cython.ufunc
cdef real spheroidal_in_c(
        real value, real m, real n, real c, real sign, real order) noexcept nogil:
    return <real>spheroidal(value, m, n, c, sign, <int>order)
