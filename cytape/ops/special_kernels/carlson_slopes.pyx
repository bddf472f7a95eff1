cimport cython
from libc.math cimport INFINITY, NAN, atan, fabs, fmax, fmin, log, sqrt

cdef enum:
    MAX_STEPS = 40
    MAX_OPERANDS = 4
    N_TAYLOR = 6   # terms in the deviations from the mean
    N_SERIES = 11  # terms in e

cdef double NEAR = 0.002, SMALL = 0.03
cdef double[2][N_TAYLOR] weights  # a / (a + k), a = 3/2 for R_F, 5/2 for R_J
cdef double[N_TAYLOR] halves      # 1 / (2 k)
for _i in range(N_TAYLOR):
    weights[0][_i], weights[1][_i] = 1.5 / (1.5 + _i), 2.5 / (2.5 + _i)
    halves[_i] = 0.5 / max(_i, 1)
cdef double[N_SERIES] rc_terms
for _i in range(N_SERIES):
    rc_terms[_i] = (-1)**(_i + 1) / (4. * _i + 6)


cdef (double, double) rc_and_slope(double e, double one_plus) noexcept nogil:
    """Return elliprc(1, 1 + e) and its derivative in the first operand."""
    cdef double value, root, total = 0
    cdef int k
    if fabs(e) < SMALL:
        for k in range(N_SERIES - 1, -1, -1):
            total = total * e + rc_terms[k]
        return 1 + 2 * e * total, total
    root = sqrt(fabs(e))
    value = (atan(root) if e > 0 else log((1 + root) / sqrt(one_plus))) / root
    return value, (value - 1) / (2 * e)


cdef inline double sum_of_others(double* roots, int i) noexcept nogil:
    return roots[(i + 1) % 3] + roots[(i + 2) % 3]


cdef void add_terms(double* roots, double between, double p, double* slopes) noexcept nogil:
    """Add slopes of the term of R_J that a duplication leaves, 6 / d elliprc(1, 1 + e)."""
    cdef double root = roots[3], inverse = 1, e = 1, over = 0, one, value, in_first, in_d, in_second
    cdef int i
    for i in range(3):
        one = 1 / (root + roots[i])
        inverse *= one  # of d
        e *= (root - roots[i]) * one
        over += root * one
    value, in_first = rc_and_slope(e, 2 * root / (root + roots[0]) * (
        (p + between) / ((root + roots[1]) * (root + roots[2]))))
    in_d = 3 * (in_first - 0.5 * value) * inverse
    in_second = -3 * (in_first + 0.5 * value) * inverse
    for i in range(3):
        slopes[i] += roots[i] / (root + roots[i]) * in_d + (
            roots[i] * sum_of_others(roots, i) / (p + between) * in_second)
    slopes[3] += over * in_d + (3 * p + between) / (p + between) * in_second


cdef inline void differentiate(double value, double* given, int n, double* slopes) noexcept nogil:
    """Differentiate R_F of three or R_J of four operands.

    Until the last step the slopes are those in the logarithms of the operands.
    """
    cdef double[MAX_STEPS + 1][MAX_OPERANDS] x
    cdef double[MAX_STEPS][MAX_OPERANDS] roots
    cdef double[MAX_STEPS] between
    cdef double[MAX_OPERANDS] deviations, powers
    cdef double[N_TAYLOR] sums, terms  # sums of powers of the deviations, terms of their product
    cdef double mean, spread, total, power, inverse, weight = 1. / (3 if n == 3 else 5)
    cdef int i, j, k, step = 0
    for i in range(n):
        slopes[i] = 0 if value == 0 else NAN  # an operand is infinite
        x[0][i] = given[i]
    if value != value or value == 0:
        return
    while True:
        mean = weight * (x[step][0] + x[step][1] + x[step][2] + (2 * x[step][3] if n > 3 else 0))
        spread = 0
        for i in range(n):
            spread = max(spread, fabs(x[step][i] - mean))
        if spread < NEAR * mean:
            break
        if step == MAX_STEPS or not mean > 0:
            return
        for i in range(n):
            roots[step][i] = sqrt(x[step][i])
        between[step] = roots[step][0] * roots[step][1] + roots[step][2] * (
            roots[step][0] + roots[step][1])
        for i in range(n):
            x[step + 1][i] = 0.25 * (x[step][i] + between[step])
        step += 1
    for i in range(n):
        deviations[i] = powers[i] = 1 - x[step][i] / mean
    terms[0], terms[1] = 1, 0
    for k in range(2, N_TAYLOR):
        sums[k] = 0
        for i in range(n):
            powers[i] *= deviations[i]
            sums[k] += powers[i] * (2 if i == 3 else 1)
        terms[k] = 0
        for j in range(2, k + 1):
            terms[k] += halves[k] * sums[j] * terms[k - j]
    for i in range(n):
        power, total = 0, 0
        for k in range(N_TAYLOR):
            power = terms[k] + deviations[i] * power
            total += power * weights[n > 3][k]
        slopes[i] = -0.5 * weight * total * (1 - deviations[i]) / sqrt(mean)
        if n > 3:
            slopes[i] *= 3 / mean * (2 if i == 3 else 1)
    while step > 0:
        step -= 1
        total = 0
        for i in range(n):
            inverse = 1 / x[step + 1][i]
            total += between[step] * inverse * slopes[i]
            slopes[i] *= x[step][i] * inverse
        inverse = 0.5 / between[step]
        for i in range(n):
            if i < 3:
                slopes[i] += roots[step][i] * sum_of_others(roots[step], i) * inverse * total
            slopes[i] *= 0.25 if n == 3 else 0.0625
        if n > 3:
            add_terms(roots[step], between[step], x[step][3], slopes)
    for i in range(n):
        slopes[i] = slopes[i] / x[0][i] if x[0][i] != 0 else -INFINITY


ctypedef fused real:
    float
    double


@cython.ufunc
cdef (real, real, real) elliprf_slopes(real value, real x, real y, real z) noexcept nogil:
    cdef double[4] operands = [x, y, z, 0], slopes  # of MAX_OPERANDS Cython checks the length
    differentiate(value, operands, 3, slopes)
    return <real>slopes[0], <real>slopes[1], <real>slopes[2]


@cython.ufunc
cdef (real, real, real) elliprd_slopes(real value, real x, real y, real z) noexcept nogil:
    cdef double[4] operands = [x, y, z, z], slopes
    differentiate(value, operands, 4, slopes)
    return <real>slopes[0], <real>slopes[1], <real>(slopes[2] + slopes[3])


@cython.ufunc
cdef (real, real, real, real) elliprj_slopes(
        real value, real x, real y, real z, real p) noexcept nogil:
    """Return the slopes, by differences of elliprd for large p and the principal value, p < 0."""
    cdef double[4] operands = [x, y, z, p], slopes
    cdef double total = 1.5 * value
    cdef int i
    if 0 <= p <= 100 * max(x, y, z):
        differentiate(value, operands, 4, slopes)
    else:
        differentiate(value, operands, 3, slopes)
        for i in range(3):
            slopes[i] = (0.5 * value + 3 * slopes[i]) / (p - operands[i])
            if operands[i] != 0:
                total += operands[i] * slopes[i]
        slopes[3] = -total / p
    return <real>slopes[0], <real>slopes[1], <real>slopes[2], <real>slopes[3]


@cython.ufunc
cdef (real, real) agm_slopes(real a, real b) noexcept nogil:
    """Return derivatives by the sum for K - E of complete integrals, of positive terms.

    It is K times the sum of 2**(n - 1) c[n]**2, where c[n + 1] is half the difference of the means
    of step n (DLMF 19.8.6).
    """
    cdef double larger = fmax(fabs(a), fabs(b)), ratio = fmin(fabs(a), fabs(b)) / larger
    cdef double mean = 0.5 * (1 + ratio), root = sqrt(ratio), c = 0.5 * (1 - ratio)
    cdef double term = 0.5 * c / (1 + ratio), total = 0.5 + term, weight = 1, inverse
    cdef double[2] slopes
    cdef int is_second = fabs(a) < larger  # an index, as branches at random would be slow
    if not 0 < larger < INFINITY or a != a or b != b or a < 0 < b or b < 0 < a:
        return <real>NAN, <real>NAN
    if ratio == 0:
        slopes[:] = [0, INFINITY]
    else:
        while weight * term > 1e-8:  # the next term is less than its square
            inverse = 2 / (mean + root)
            mean, root = 0.5 * (mean + root), sqrt(mean * root)
            c *= 0.25 * c * inverse
            term *= 0.25 * c * inverse
            weight *= 2
            total += weight * term
        mean = 0.5 * (mean + root)
        slopes[:] = [mean * total, mean * (1 - total) / ratio]
    return <real>slopes[is_second], <real>slopes[1 - is_second]
