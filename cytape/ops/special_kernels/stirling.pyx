from libc.math cimport exp, lgamma, log, log1p, sqrt

cdef enum:
    N_ODD = 15

cdef double ROOT_2_PI = 2.50662827463100050242
digamma_terms[:] = [
    1 / 12., -1 / 120., 1 / 252., -1 / 240., 1 / 132., -691 / 32760., 1 / 12., -3617 / 8160.]
cdef double[N_ODD] odd  # 1 / k, k = 3, 5, ...
for _i in range(N_ODD):
    odd[_i] = 1 / (2 * _i + 3)


cdef double excess(double z, double one_plus) noexcept nogil:
    """Return z - log(1 + z), without cancellation."""
    cdef double ratio, square, total = 0
    cdef int k
    if not -0.5 < z < 0.5:
        return z - log(one_plus)
    ratio = z / (2 + z)  # log(1 + z) = 2 artanh(ratio)
    square = ratio * ratio
    for k in range(N_ODD - 1, -1, -1):
        total = total * square + odd[k]
    return z * ratio - 2 * ratio * square * total


cdef double log_of(double z, double one_plus) noexcept nogil:
    return log1p(z) if -0.5 < z < 0.5 else log(one_plus)


cdef double stirling(double a) noexcept nogil:
    """Return log(gamma(a)) - ((a - 1/2) log(a) - a + log(2 pi) / 2)."""
    cdef double square, total = 0
    cdef int k
    if a < 10:
        return lgamma(a) - (a - 0.5) * log(a) + a - 0.91893853320467274178
    square = 1 / (a * a)
    for k in range(N_BERNOULLI - 1, -1, -1):
        total = total * square + digamma_terms[k] / (2 * k + 1)
    return total / a


cdef double log_less_digamma(double a) noexcept nogil:
    """Return log(a) - psi(a)."""
    cdef double start = a, shift = 0, square, total = 0
    cdef int k
    while a < 10:
        shift += 1 / a
        a += 1
    square = 1 / (a * a)
    for k in range(N_BERNOULLI - 1, -1, -1):
        total = total * square + digamma_terms[k]
    total = total * square + 0.5 / a
    return total if shift == 0 else total + shift - log(a / start)


cdef double trigamma(double a) noexcept nogil:
    cdef double shift = 0, square, total = 0
    cdef int k
    while a < 10:
        shift += 1 / (a * a)
        a += 1
    square = 1 / (a * a)
    for k in range(N_BERNOULLI - 1, -1, -1):
        total = total * square + (2 * k + 2) * digamma_terms[k]
    return shift + 1 / a + 0.5 * square + total * square / a


cdef double digamma_rise(double a, double b) noexcept nogil:
    """Return psi(a + b) - psi(a) - log(1 + b / a), precise for small b, too."""
    cdef double start = a, shift = 0, p, q, value = 0, slope = 0
    cdef int k
    while a < 10:
        shift += b / (a * (a + b))
        a += 1
    p, q = 1 / (a * a), 1 / ((a + b) * (a + b))
    for k in range(N_BERNOULLI - 1, -1, -1):  # divided difference of the polynomial at p and q
        slope = slope * q + value
        value = value * p + digamma_terms[k]
    slope = slope * q + value
    value = 0.5 * b / (a * (a + b)) + slope * b * (2 * a + b) * p * q
    return value if shift == 0 else value + shift + log1p(b / a) - log1p(b / start)


cdef double power_of_gamma(double a, double x) noexcept nogil:
    """Return x**a exp(-x) / gamma(a), which is x times the density."""
    return sqrt(a) / ROOT_2_PI * exp(-stirling(a) - a * excess((x - a) / a, x / a))


cdef double power_of_beta(double a, double b, double x, double y) noexcept nogil:
    """Return x**a y**b / beta(a, b), which is x y times the density."""
    cdef double d = x * b - y * a
    return sqrt(b / (a + b)) * sqrt(a) / ROOT_2_PI * exp(
        stirling(a + b) - stirling(a) - stirling(b)
        - a * excess(d / a, x * (a + b) / a) - b * excess(-d / b, y * (a + b) / b))
