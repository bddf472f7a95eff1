cimport cython
from libc.math cimport INFINITY, NAN, exp, floor, sqrt

from cytape.ops.special_kernels.stirling cimport power_of_gamma

cdef double LEAST = 1e-17  # of the sum


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


ctypedef fused real:
    float
    double


@cython.ufunc
cdef (real, real) noncentral_densities(real x, real df, real nc) noexcept nogil:
    """Return the densities with df and df + 2 degrees of freedom."""
    cdef double density, raised
    density, raised = densities(x, df, nc)
    return <real>density, <real>raised
