cimport cython
from libc.math cimport INFINITY, M_PI, NAN, exp, lgamma, log, log1p, rint, sin, sqrt, tan
from libc.stdint cimport int64_t

cdef extern from "<complex.h>" nogil:
    complex128 csin(complex128)

cdef enum:
    N_ODD = 15

cdef double ROOT_2_PI = 2.50662827463100050242, LOG_ROOT_2_PI = 0.91893853320467274178
digamma_terms[:] = [
    1 / 12., -1 / 120., 1 / 252., -1 / 240., 1 / 132., -691 / 32760., 1 / 12., -3617 / 8160.]
cdef double[N_BERNOULLI] trigamma_terms  # B(2k)
for _i in range(N_BERNOULLI):
    trigamma_terms[_i] = (2 * _i + 2) * digamma_terms[_i]
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
        return lgamma(a) - (a - 0.5) * log(a) + a - LOG_ROOT_2_PI
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


cdef number trigamma(number a) noexcept nogil:
    """Return polygamma(1, a), left of 0 by reflection (DLMF 5.15.6)."""
    cdef number shift = 0, inverse, square, total = 0
    cdef int k
    if a != a:
        return a
    if real_part(a) <= 0:
        square = M_PI / sine_of_turns(a)
        return square * square - trigamma(1 - a)
    while real_part(a) < 8:
        square = a * (a + 1)  # of two terms, with one division
        shift = shift + (1 + 2 * square) / (square * square)
        a = a + 2
    inverse = 1 / a
    square = inverse * inverse
    for k in range(N_BERNOULLI - 1, -1, -1):
        total = total * square + trigamma_terms[k]
    return shift + (1 + 0.5 * inverse + total * square) * inverse


cdef inline double real_part(number a) noexcept nogil:
    if number is complex128:
        return a.real
    else:
        return a


cdef inline number sine_of_turns(number a) noexcept nogil:
    """Return sin(pi a) or its negative, without a rounding error of multiples of pi."""
    if number is complex128:
        return csin(M_PI * (a - rint(a.real)))
    else:
        return sin(M_PI * (a - rint(a)))


cdef double digamma_rise(double a, double b, bint less_log=True) noexcept nogil:
    """Return psi(a + b) - psi(a) - log(1 + b / a) for b > -1/2, precise for small b, too.

    Without `less_log` the logarithm is not subtracted.
    """
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
    if shift != 0 or not less_log:
        value += shift + log1p(b / a)
    return value - log1p(b / start) if shift != 0 and less_log else value


cdef double digamma(double a) noexcept nogil:
    """Return psi(a), with an absolute error of the rounding."""
    if a <= 0:
        return digamma(1 - a) - M_PI / tan(M_PI * (a - rint(a)))
    return log(a) - log_less_digamma(a)


cdef double power_of_gamma(double a, double x) noexcept nogil:
    """Return x**a exp(-x) / gamma(a), which is x times the density; NaN outside."""
    if a != a or x != x or not (0 < a < INFINITY and 0 < x < INFINITY):
        return NAN
    if a < 10 and x < 10:
        return exp(a * log(x) - x - lgamma(a))
    return sqrt(a) / ROOT_2_PI * exp(-stirling(a) - a * excess((x - a) / a, x / a))


cdef double log_power_of_gamma(double a, double x) noexcept nogil:
    """Return the logarithm for positive finite numbers."""
    return 0.5 * log(a) - LOG_ROOT_2_PI - stirling(a) - a * excess((x - a) / a, x / a)


cdef double power_of_beta(double a, double b, double x, double y) noexcept nogil:
    """Return x**a y**b / beta(a, b), which is x y times the density; NaN outside."""
    cdef double d = x * b - y * a
    if d != d or not (0 < a < INFINITY and 0 < b < INFINITY and x >= 0 and y >= 0):
        return NAN
    if x == 0 or y == 0:
        return 0
    if a < 10 and b < 10:
        return exp(a * log(x) + b * log(y) + lgamma(a + b) - lgamma(a) - lgamma(b))
    return sqrt(b / (a + b)) * sqrt(a) / ROOT_2_PI * exp(
        stirling(a + b) - stirling(a) - stirling(b)
        - a * excess(d / a, x * (a + b) / a) - b * excess(-d / b, y * (a + b) / b))


cdef double log_power_of_beta(double a, double b, double x, double y) noexcept nogil:
    """Return the logarithm for positive finite numbers."""
    cdef double d = x * b - y * a
    return (0.5 * log(b / (a + b)) + 0.5 * log(a) - LOG_ROOT_2_PI
            + stirling(a + b) - stirling(a) - stirling(b)
            - a * excess(d / a, x * (a + b) / a) - b * excess(-d / b, y * (a + b) / b))


cdef inline double at_edge(double power, double value) noexcept nogil:
    """Return value * 0**power; of negative integers 0, which are poles of the gamma function."""
    if power == 0:
        return value
    return 0 if power > 0 or power == <int64_t>power else INFINITY if power > -1 else NAN


cdef double density_of_gamma(double a, double x, double power) noexcept nogil:
    if a != a or x != x:
        return NAN
    if x == 0:
        return at_edge(a - 1, 1)
    if a <= 0 or x < 0:
        return NAN
    if x == INFINITY or a == INFINITY:
        return 0 if x != a else NAN
    return power / x


cdef double density_of_beta(double a, double b, double x, double power) noexcept nogil:
    if a != a or b != b or x != x:
        return NAN
    if x == 0 or x == 1:
        return at_edge(a - 1, b) if x == 0 else at_edge(b - 1, a)
    if a <= 0 or b <= 0 or x < 0 or x > 1:
        return NAN
    return power / (x * (1 - x))


cdef double density_of_odds(double a, double b, double z, double power) noexcept nogil:
    if a != a or b != b or z != z:
        return NAN
    if z == 0:
        return at_edge(a - 1, b)
    if a <= 0 or b <= 0 or z < 0:
        return NAN
    if z == INFINITY:
        return 0
    return power / z


cdef double of_odds(double z) noexcept nogil:
    """Return z / (1 + z), of negative odds NaN."""
    return NAN if z != z or z < 0 else 1 if z > 1e300 else z / (1 + z)


cdef double rest_of_odds(double z) noexcept nogil:
    """Return 1 / (1 + z), of negative odds NaN."""
    return NAN if z != z or z < 0 else 1 / (1 + z)


ctypedef fused argument:
    float
    double
    complex64
    complex128


@cython.ufunc
cdef argument polygamma_1(argument x) noexcept nogil:
    """Return polygamma(1, x)."""
    if argument is float or argument is double:
        return <argument>trigamma(<double>x)
    else:
        return <argument>trigamma(<complex128>x)


ctypedef fused real:
    float
    double


@cython.ufunc
cdef real psi_step(real a, real b) noexcept nogil:
    """Return psi(a + b) - psi(a), by terms that do not cancel where the difference is small."""
    cdef double start = a, end = start + b
    if end != end:
        return <real>end
    if start > 0 and end > 0:
        if b > 0:
            return <real>digamma_rise(start, b, False)
        return <real>-digamma_rise(end, -b, False)
    return <real>(digamma(end) - digamma(start))


@cython.ufunc
cdef real gamma_density(real a, real x) noexcept nogil:
    return <real>density_of_gamma(a, x, power_of_gamma(a, x))


@cython.ufunc
cdef real beta_density(real a, real b, real x) noexcept nogil:
    return <real>density_of_beta(a, b, x, power_of_beta(a, b, x, 1 - <double>x))


@cython.ufunc
cdef real odds_density(real a, real b, real z) noexcept nogil:
    return <real>density_of_odds(a, b, z, power_of_beta(a, b, of_odds(z), rest_of_odds(z)))
