cimport cython
from libc.math cimport INFINITY, NAN, exp, expm1, fabs, floor, hypot, lgamma, log, log1p, sqrt

from cytape.ops.special_kernels.stirling cimport power_of_gamma, stirling

cdef double LEAST = 1e-17  # of the sum
cdef double LOG_PI = 1.14472988584940017414


cdef (double, double) densities(double x, double df, double nc) noexcept nogil:
    cdef double a = 0.5 * df, y = 0.5 * x, mean = 0.5 * nc, product = y * mean
    cdef double at_zero, j, k, largest, term, total, raised
    if not (a > 0 and mean >= 0):
        return NAN, NAN
    if x == 0:
        at_zero = INFINITY if a < 1 else a == 1
        return 0.5 * exp(-mean) * at_zero, 0
    j = floor(0.5 * (1 - a + sqrt((1 - a) * (1 - a) + 4 * product)))
    if j >= 1:
        largest = power_of_gamma(j, mean) / j
    else:
        j, largest = 0, exp(-mean)
    largest *= 0.5 * power_of_gamma(a + j, y) / y
    term, k = largest, j
    total = raised = 0 * largest  # NaN ends the loops
    while term > LEAST * total:
        total += term
        raised += term * y / (a + k)
        k += 1
        term *= product / (k * (a + k - 1))
    term, k = largest, j
    while k > 0 and term > LEAST * total:
        term *= k * (a + k - 1) / product
        k -= 1
        total += term
        raised += term * y / (a + k)
    return total, raised


# ---- mean of exp(y s), where s has the chi distribution with n degrees of freedom


cdef double chi_mean(double n) noexcept nogil:
    if n < 20:
        return 1.41421356237309504880 * exp(lgamma(0.5 * n + 0.5) - lgamma(0.5 * n))
    return sqrt(n) * exp(
        stirling(0.5 * n + 0.5) - stirling(0.5 * n) - 0.5 + 0.5 * n * log1p(1 / n))


cdef double moment_series(double n, double y) noexcept nogil:
    cdef double even = 1, odd = y * chi_mean(n), total = 0, k = 0, square = y * y
    while even + fabs(odd) > LEAST * total:
        total += even + odd
        even *= square * (n + k) / ((k + 1) * (k + 2))
        odd *= square * (n + k + 1) / ((k + 2) * (k + 3))
        k += 2
    return log(total)


cdef double log_integrand(double n, double c, double u) noexcept nogil:
    """Return the logarithm of s**n exp(-s**2 / 2 + y s), with s = sqrt(n) exp(u)."""
    return n * (u - 0.5 * expm1(2 * u)) + c * exp(u)


cdef double moment_integral(double n, double y) noexcept nogil:
    """Integrate over log(s) by the trapezoidal rule, whose error is exponentially small.

    For small n, where the integrand falls slowly on the left, it is substituted so that it falls
    double exponentially.
    """
    cdef double c = y * sqrt(n), root = hypot(c, 2 * n), peak, top, step, width, total, term, u, e
    cdef int sign, k
    cdef bint is_slow = n < 20
    peak = (c + root) / (2 * n) if c > 0 else 2 * n / (root - c)
    width = 1 / sqrt(n * (1 + peak * peak))
    step = min(0.08, 0.25 * width) if is_slow else 0.6 * width
    peak = log(peak)
    top = log_integrand(n, c, peak)
    total = 2 if is_slow else 1
    for sign in range(-1, 2, 2):
        k, term = 0, 1
        while term > LEAST * total:
            k += 1
            u, e = sign * k * step, 0
            if is_slow:
                e = exp(-u)
                u += 1 - e
            term = (1 + e) * exp(log_integrand(n, c, peak + u) - top)
            total += term
    return top + log(total * step) + 0.5 * (log(n) - LOG_PI) - stirling(0.5 * n)


ctypedef fused real:
    float
    double


@cython.ufunc
cdef (real, real) noncentral_densities(real x, real df, real nc) noexcept nogil:
    """Return the densities with df and df + 2 degrees of freedom."""
    cdef double density, raised
    density, raised = densities(x, df, nc)
    return <real>density, <real>raised


@cython.ufunc
cdef real log_chi_moment(real n, real y) noexcept nogil:
    """Return the logarithm of the mean of exp(y s) for a chi variable s."""
    if not (0 < n < INFINITY and -INFINITY < y < INFINITY):
        return NAN
    if y == 0:
        return 0
    if -1 < y * (1 + sqrt(n)) < 30:  # where terms of both signs do not cancel
        return <real>moment_series(n, y)
    return <real>moment_integral(n, y)
