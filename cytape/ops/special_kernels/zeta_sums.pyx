cimport cython
from libc.math cimport NAN, exp, log

cdef extern from "<complex.h>" nogil:
    complex128 cexp(complex128)

ctypedef fused number:
    double
    complex128
ctypedef fused argument:
    float
    double
    complex64
    complex128

for _i in range(N_SUMMED + 1):
    logs[_i] = log(_i + 1)
coefficients[:] = [
    1 / 12., -1 / 720., 1 / 30240., -1 / 1209600., 1 / 47900160., -691 / 1307674368000.,
    1 / 74724249600., -3617 / 10670622842880000.]


cdef inline number exponential(number x) noexcept nogil:
    if number is complex128:
        return cexp(x)
    else:
        return exp(x)


cdef inline double power(double x, int k) noexcept nogil:
    cdef double result = 1
    for _ in range(k):
        result *= x
    return result


cdef inline number sum_of_powers(int k, number s, double q, number* tail,
                                 double* log_of_end) noexcept nogil:
    """Differentiate the first terms; the tail becomes (q + N_SUMMED)**-s."""
    cdef number[N_SUMMED + 1] powers
    cdef number total = 0
    cdef double log_of
    cdef int i
    if q == 1:  # powers of composite numbers are products
        powers[1] = exponential(-s * logs[1])
        powers[2] = exponential(-s * logs[2])
        powers[4] = exponential(-s * logs[4])
        powers[6] = exponential(-s * logs[6])
        powers[3] = powers[1] * powers[1]
        powers[5] = powers[1] * powers[2]
        powers[7] = powers[3] * powers[1]
        total = k == 0
        for i in range(1, N_SUMMED):
            total = total + power(-logs[i], k) * powers[i]
        tail[0], log_of_end[0] = powers[N_SUMMED], logs[N_SUMMED]
        return total
    for i in range(N_SUMMED):
        log_of = log(q + i)
        total = total + power(-log_of, k) * exponential(-s * log_of)
    log_of_end[0] = log(q + N_SUMMED)
    tail[0] = exponential(-s * log_of_end[0])
    return total


cdef inline number differentiate(int k, number s, double q) noexcept nogil:
    cdef number total, tail, factor, slope, inverse
    cdef number[MAX_ORDER + 1] series
    cdef double end = q + N_SUMMED, log_of_end, weight = 1
    cdef double one_over = 1 / end, square = one_over * one_over
    cdef int i, j
    if not 0 <= k <= MAX_ORDER:
        return NAN
    total = sum_of_powers(k, s, q, &tail, &log_of_end)
    if tail == 0:
        return total
    for i in range(k + 1):
        series[i] = 0
    for j in range(N_BERNOULLI - 1, -1, -1):  # times the factors s + 2j + 1 and s + 2j + 2
        factor = (s + (2 * j + 1)) * (s + (2 * j + 2)) * square
        slope = (2 * s + (4 * j + 3)) * square
        for i in range(k, -1, -1):
            series[i] = factor * series[i]
            if i > 0:
                series[i] = series[i] + slope * series[i - 1]
            if i > 1:
                series[i] = series[i] + square * series[i - 2]
        series[0] = series[0] + coefficients[j]
    inverse = 1 / (s - 1)
    factor = end * inverse
    for i in range(k, -1, -1):
        series[i] = s * series[i] * one_over
        if i > 0:
            series[i] = series[i] + series[i - 1] * one_over
    series[0] = series[0] + 0.5
    slope = 0
    for i in range(k + 1):  # of the product, by Leibniz's rule; weight is k! / (k - i)!
        slope = slope + weight * power(-log_of_end, k - i) * (series[i] + factor)
        factor = -factor * inverse
        weight *= k - i
    return total + tail * slope


cdef inline number zeta_slope(int k, number s, double q) noexcept nogil:
    return differentiate(1, s, q) if k == 1 else differentiate(k, s, q)  # unrolls the loops


@cython.ufunc
cdef argument zeta_derivative(argument k, argument s, argument q) noexcept nogil:
    """Return the k-th derivative in s; k and q are real."""
    if argument is float or argument is double:
        return <argument>zeta_slope(<int>k, <double>s, q)
    else:
        return <argument>zeta_slope(<int>k.real, <complex128>s, q.real)
