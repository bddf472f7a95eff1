cimport cython
from libc.math cimport INFINITY, M_PI, NAN, cos, erfc, exp, fabs, rint, sin, sqrt

cdef enum:
    MOST_TERMS = 60  # for kappa = 20
    N_POWERS = 20

cdef double TURN = 2 * M_PI, LARGE = 20
cdef double[N_POWERS] ratio  # coefficients of I_1 / I_0 in 1 / kappa, by its Riccati equation

ratio[0] = 1
for _n in range(1, N_POWERS):
    ratio[_n] = -0.5 * (
        sum(ratio[_i] * ratio[_n - _i] for _i in range(1, _n)) + (2 - _n) * ratio[_n - 1])


cdef double by_series(double x, double kappa, int order, double* density) noexcept nogil:
    """Return the sum, and write the density."""
    cdef double[MOST_TERMS + 4] r, slope
    cdef double total = 0, c = cos(x), s = sin(x), re = 1, im = 0, term, first, scale, u
    cdef int p, n = <int>(9 + 7 * sqrt(kappa))
    u = 2 / max(kappa, 1e-30)
    r[n + 3], r[n + 2] = 0, 1e-300
    scale = 0
    for p in range(n + 2, 0, -1):  # multiples of Bessel functions, by their recurrence
        scale += r[p]
        r[p - 1] = r[p + 1] + u * p * r[p]
    density[0] = exp(kappa * (c - 1)) * (1 + 2 * scale / r[0]) / TURN
    scale = 1 / r[0]
    for p in range(n + 3):
        r[p] *= scale
    first = 0.5 * (1 + r[2]) - r[1] * r[1]
    slope[0] = 0
    if order > 0:
        for p in range(1, n + 2):
            slope[p] = 0.5 * (r[p - 1] + r[p + 1]) - r[p] * r[1]
    for p in range(1, n + 1):
        re, im = re * c - im * s, re * s + im * c
        if order == 0:
            term = r[p]
        elif order == 1:
            term = slope[p]
        else:
            term = 0.5 * (slope[p - 1] + slope[p + 1]) - slope[p] * r[1] - r[p] * first
        total += term * im / p
    return total / M_PI if order > 0 else 0.5 + x / TURN + total / M_PI


cdef double upper(double x, double kappa, int order, double* density) noexcept nogil:
    """Return the probability above x >= 0, or a derivative, and write the density."""
    cdef double s = 2 * sqrt(kappa) * sin(0.5 * x), square = s * s, w = 0.25 * square / kappa
    cdef double rest = max(1 - w, 0.1)
    cdef double decay = exp(-0.5 * square), moment = sqrt(0.5 * M_PI) * erfc(s / sqrt(2.0))
    cdef double power = s * decay, c = 1, u = 1 / kappa, level = 0, slope = 0, bend = 0
    cdef double total = 0, by_j = 0, by_jj = 0, first, second, edge
    cdef int j
    for j in range(N_POWERS):
        total += c * moment
        by_j += j * c * moment
        by_jj += j * j * c * moment
        moment = power + (2 * j + 1) * moment
        power *= square
        c *= (2 * j + 1) / (2.0 * (j + 1)) * 0.25 * u
    u = 1
    for j in range(2, N_POWERS):  # logarithm of the factor, and derivatives
        u /= kappa
        level += ratio[j] * u / (j - 1)
        slope -= ratio[j] * u / kappa
        bend += j * ratio[j] * u / (kappa * kappa)
    if order > 0:
        # by which the lower end of the integral moves; bounded next to pi, where it would cancel
        edge = decay * s / (2 * kappa * sqrt(rest))
        first = -by_j / kappa - edge
        second = ((by_jj / kappa + 0.5 * edge * w / rest) + by_j / kappa) / kappa + edge * (
            2 * w + 0.5 / kappa)
        if order == 1:
            total = slope * total + first
        else:
            total = (bend + slope * slope) * total + 2 * slope * first + second
    level = exp(level) / sqrt(TURN)
    density[0] = decay * level * sqrt(kappa)
    return total * level


cdef double distribution(double x, double kappa, int order, double* density) noexcept nogil:
    cdef double turns, value
    if kappa != kappa or kappa < 0 or x != x or fabs(x) == INFINITY:
        density[0] = NAN
        return NAN
    turns = rint(x / TURN)
    x -= turns * TURN
    if kappa < LARGE:
        value = by_series(x, kappa, order, density)
    else:
        value = upper(fabs(x), kappa, order, density)
        if x == 0 and order > 0:
            value = 0
        elif x > 0:
            value = 1 - value if order == 0 else -value
    return value if order > 0 else turns + min(max(value, 0), 1)


ctypedef fused real:
    float
    double


@cython.ufunc
cdef real vonmises(real x, real kappa) noexcept nogil:
    cdef double density
    return <real>distribution(x, kappa, 0, &density)


@cython.ufunc
cdef (real, real) vonmises_slopes(real x, real kappa) noexcept nogil:
    """Return the derivatives in x and in kappa."""
    cdef double density, slope
    slope = distribution(x, kappa, 1, &density)
    return <real>density, <real>slope


@cython.ufunc
cdef real vonmises_in_kappa(real x, real kappa) noexcept nogil:
    cdef double density
    return <real>distribution(x, kappa, 1, &density)


@cython.ufunc
cdef real vonmises_in_kappas(real x, real kappa) noexcept nogil:
    cdef double density
    return <real>distribution(x, kappa, 2, &density)
