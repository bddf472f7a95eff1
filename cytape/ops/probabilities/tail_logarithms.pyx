cimport cython
from libc.math cimport INFINITY, M_PI, M_SQRT1_2, erfc, exp, fabs, log, log1p, sqrt

from cytape.ops.special_kernels.incomplete_integrals cimport (
    IN_A,
    IN_AA,
    IN_AB,
    IN_B,
    IN_BB,
    VALUE,
    beta_in_shape,
    beta_in_shapes,
    beta_tail,
    by_series,
    exchanged,
    gamma_in_shape,
    gamma_series,
    gamma_tail,
    has_gamma_series,
)
from cytape.ops.special_kernels.stirling cimport (
    density_of_beta,
    density_of_gamma,
    density_of_odds,
    log_less_digamma,
    log_of,
    log_power_of_beta,
    log_power_of_gamma,
    of_odds,
    power_of_beta,
    power_of_gamma,
    rest_of_odds,
)
from cytape.ops.special_kernels.t_integrals cimport t_density, t_in_shape, t_power

cdef double LEAST = -69
cdef double LEAST_P = 1e-30  # exp(LEAST), rounded
cdef double FAR = 1e150  # from here on t * t would overflow, and the tail is a power


cdef inline double log_of_middle(double p, double q) noexcept nogil:
    """Return the logarithm of a probability, given the complement."""
    return p if p != p else -INFINITY if p == 0 else log(p) if p < 0.5 else log1p(-q)


cdef inline double over(double density, double log_p) noexcept nogil:
    """Return the slope of the logarithm of a probability, infinite where that is 0."""
    return INFINITY if log_p == -INFINITY and density == density else density * exp(-log_p)


# ---- gamma


cdef double gamma_scaled(double a, double x, int order) noexcept nogil:
    """Return a derivative of the distribution function over x times the density, in its tail."""
    cdef double level = log_of((x - a) / a, x / a) + log_less_digamma(a)
    if x > a:
        return gamma_tail(a, x, 1, level, order, 1)
    if has_gamma_series(a, x, order):
        return gamma_series(a, x, 1, order)
    return gamma_tail(a, x, 1, level, order, -1)


cdef inline bint is_gamma_tail(double a, double x) noexcept nogil:
    return 0 < a < INFINITY and 0 < x < INFINITY and (x > 2 or x < a)


cdef double gamma_ratio(double a, double x, double log_p, int order) noexcept nogil:
    if log_p == log_p and log_p < LEAST and is_gamma_tail(a, x):
        return gamma_scaled(a, x, order) / fabs(gamma_scaled(a, x, 0))
    return gamma_in_shape(a, x, power_of_gamma(a, x), order) * exp(-log_p)


# ---- beta


cdef double beta_scaled(double a, double b, double x, double y, int which) noexcept nogil:
    """Return a derivative of the distribution function over x y times the density, in its tail."""
    cdef double[6] slopes
    if x * (a + b) > a:
        return -beta_scaled(b, a, y, x, exchanged(which))
    if by_series(a, b, x, 1, which >= IN_AA and which != VALUE, slopes):
        return slopes[which]
    return beta_tail(a, b, x, y, 1, which)


cdef inline bint is_beta_tail(double a, double b, double z) noexcept nogil:
    return 0 < a < INFINITY and 0 < b < INFINITY and 0 < z < INFINITY


cdef double beta_ratio(double a, double b, double z, double log_p, int which) noexcept nogil:
    cdef double x, y
    if log_p == log_p and log_p < LEAST and is_beta_tail(a, b, z):
        x, y = of_odds(z), rest_of_odds(z)
        return beta_scaled(a, b, x, y, which) / fabs(beta_scaled(a, b, x, y, VALUE))
    return beta_in_shape(a, b, z, which) * exp(-log_p)


cdef double beta_slopes(
        double a, double b, double x, double y, double log_p, double* slopes) noexcept nogil:
    """Write the derivatives in a and b, and x y times a density; return the log of its divisor."""
    cdef double power = 1
    cdef int which
    if log_p == log_p and log_p < LEAST and (
            0 < a < INFINITY and 0 < b < INFINITY and x > 0 and y > 0):
        log_p = log(fabs(beta_scaled(a, b, x, y, VALUE)))
        for which in range(2):
            slopes[which] = beta_scaled(a, b, x, y, which)
    else:
        power = power_of_beta(a, b, x, y)
        beta_in_shapes(a, b, x, y, power, 1 << IN_A | 1 << IN_B, slopes)
    for which in range(2):
        slopes[which] *= exp(-log_p)
    slopes[VALUE] = power
    return log_p


# ---- Student's t


cdef inline bint is_t_tail(double df, double t) noexcept nogil:
    return df > 0 and 1 < fabs(t) < INFINITY


cdef inline double within(double df, double t) noexcept nogil:
    """Return a point of the same tail whose square does not overflow."""
    return t if fabs(t) < FAR else FAR if t > 0 else -FAR


cdef inline double beyond(double df, double t) noexcept nogil:
    """Return log(abs(t) / FAR), or 0 for smaller t."""
    return log(fabs(t) / FAR) if fabs(t) > FAR else 0


cdef inline double finite(double df) noexcept nogil:
    """Return df, or a number so large that the distribution is normal."""
    return df if df < FAR else FAR


cdef double t_ratio(double df, double t, double log_p, int order) noexcept nogil:
    cdef double value, first, far
    if not (log_p == log_p and log_p < LEAST and is_t_tail(df, t)):
        return t_in_shape(df, t, t_power(df, t), order) * exp(-log_p)
    far = beyond(df, t)
    df, t = finite(df), within(df, t)
    value = fabs(t_in_shape(df, t, 1, 0))
    first = t_in_shape(df, t, 1, 1) / value
    if order == 1:
        return first - far if t < 0 else first + far
    return t_in_shape(df, t, 1, 2) / value + far * (far * (1 if t < 0 else -1) - 2 * first)


# ---- normal probability of an interval


cdef double mills(double x) noexcept nogil:
    """Return the normal probability above x over the density there, far out by a series."""
    cdef double q = 1 / (x * x), series = 1
    cdef int k
    if x < -37:
        return INFINITY
    if x < 12:
        return sqrt(0.5 * M_PI) * exp(0.5 * x * x) * erfc(M_SQRT1_2 * x)
    for k in range(29, 0, -2):
        series = 1 - k * q * series
    return series / x


cdef inline bint is_narrow(double a, double width) noexcept nogil:
    return width * (1 + fabs(a)) < 1e-3


cdef inline double decay(double a, double b) noexcept nogil:
    """Return the density at b over that at a."""
    return 0 if b - a == INFINITY else exp(-0.5 * (b - a) * (a + b))


cdef double scaled_mass(double a, double b, double width) noexcept nogil:
    """Return the probability of a < x < b over the density at a, the end nearer to 0."""
    cdef double middle = a + 0.5 * width
    if is_narrow(a, width):
        return width * exp(-0.5 * width * (a + 0.25 * width)) * (
            1 + width * width * (middle * middle - 1) / 24)
    return mills(a) - decay(a, b) * mills(b)


cdef inline double reflected(double a, double b, double width) noexcept nogil:
    """Return -b, for narrow intervals by the width."""
    return -a - width if is_narrow(a, width) else -b


ctypedef fused real:
    float
    double


@cython.ufunc
cdef real log_gamma(real a, real x, real p, real q) noexcept nogil:
    if p == p and p < LEAST_P and is_gamma_tail(a, x):
        return <real>(log_power_of_gamma(a, x) + log(fabs(gamma_scaled(a, x, 0))))
    return <real>log_of_middle(p, q)


@cython.ufunc
cdef real gamma_a(real a, real x, real log_p) noexcept nogil:
    return <real>gamma_ratio(a, x, log_p, 1)


@cython.ufunc
cdef real gamma_aa(real a, real x, real log_p) noexcept nogil:
    return <real>gamma_ratio(a, x, log_p, 2)


@cython.ufunc
cdef real gamma_x(real a, real x, real log_p) noexcept nogil:
    if log_p == log_p and log_p < LEAST and is_gamma_tail(a, x):
        return <real>(1 / (x * fabs(gamma_scaled(a, x, 0))))
    return <real>over(density_of_gamma(a, x, power_of_gamma(a, x)), log_p)


@cython.ufunc
cdef real log_beta(real a, real b, real z, real p, real q) noexcept nogil:
    cdef double x, y
    if p == p and p < LEAST_P and is_beta_tail(a, b, z):
        x, y = of_odds(z), rest_of_odds(z)
        return <real>(log_power_of_beta(a, b, x, y) + log(fabs(beta_scaled(a, b, x, y, VALUE))))
    return <real>log_of_middle(p, q)


@cython.ufunc
cdef real beta_a(real a, real b, real z, real log_p) noexcept nogil:
    return <real>beta_ratio(a, b, z, log_p, IN_A)


@cython.ufunc
cdef real beta_b(real a, real b, real z, real log_p) noexcept nogil:
    return <real>beta_ratio(a, b, z, log_p, IN_B)


@cython.ufunc
cdef real beta_aa(real a, real b, real z, real log_p) noexcept nogil:
    return <real>beta_ratio(a, b, z, log_p, IN_AA)


@cython.ufunc
cdef real beta_ab(real a, real b, real z, real log_p) noexcept nogil:
    return <real>beta_ratio(a, b, z, log_p, IN_AB)


@cython.ufunc
cdef real beta_bb(real a, real b, real z, real log_p) noexcept nogil:
    return <real>beta_ratio(a, b, z, log_p, IN_BB)


@cython.ufunc
cdef real beta_z(real a, real b, real z, real log_p) noexcept nogil:
    cdef double x = of_odds(z), y = rest_of_odds(z)
    if log_p == log_p and log_p < LEAST and is_beta_tail(a, b, z):
        return <real>(1 / (z * fabs(beta_scaled(a, b, x, y, VALUE))))
    return <real>over(density_of_odds(a, b, z, power_of_beta(a, b, x, y)), log_p)


@cython.ufunc
cdef real beta_x(real a, real b, real x, real log_p) noexcept nogil:
    cdef double y = 1 - <double>x
    if log_p == log_p and log_p < LEAST and 0 < x < 1 and is_beta_tail(a, b, x):
        return <real>(1 / (x * y * fabs(beta_scaled(a, b, x, y, VALUE))))
    return <real>over(density_of_beta(a, b, x, power_of_beta(a, b, x, y)), log_p)


@cython.ufunc
cdef (real, real, real) log_odds_slopes(real a, real b, real z, real log_p) noexcept nogil:
    """Return the derivatives in a, b and the odds z."""
    cdef double[6] slopes
    log_p = beta_slopes(a, b, of_odds(z), rest_of_odds(z), log_p, slopes)
    return <real>slopes[IN_A], <real>slopes[IN_B], <real>over(
        density_of_odds(a, b, z, slopes[VALUE]), log_p)


@cython.ufunc
cdef (real, real, real) log_beta_slopes(real a, real b, real x, real log_p) noexcept nogil:
    """Return the derivatives in a, b and x."""
    cdef double[6] slopes
    log_p = beta_slopes(a, b, x, 1 - <double>x, log_p, slopes)
    return <real>slopes[IN_A], <real>slopes[IN_B], <real>over(
        density_of_beta(a, b, x, slopes[VALUE]), log_p)


@cython.ufunc
cdef real log_t(real df, real t, real p, real q) noexcept nogil:
    cdef double n, s, square
    if p == p and p < LEAST_P and is_t_tail(df, t):
        n, s = finite(df), within(df, t)
        square = s * s
        return <real>(
            log_power_of_beta(0.5 * n, 0.5, n / (n + square), square / (n + square))
            + log(fabs(t_in_shape(n, s, 1, 0))) - n * beyond(df, t))
    return <real>log_of_middle(p, q)


@cython.ufunc
cdef real t_df(real df, real t, real log_p) noexcept nogil:
    return <real>t_ratio(df, t, log_p, 1)


@cython.ufunc
cdef real t_dfdf(real df, real t, real log_p) noexcept nogil:
    return <real>t_ratio(df, t, log_p, 2)


@cython.ufunc
cdef real t_t(real df, real t, real log_p) noexcept nogil:
    if log_p == log_p and log_p < LEAST and is_t_tail(df, t):
        return <real>(1 / (fabs(t) * fabs(t_in_shape(finite(df), within(df, t), 1, 0))))
    return <real>(t_density(df, t, t_power(df, t)) * exp(-<double>log_p))


@cython.ufunc
cdef real log_mass(real a, real b, real width) noexcept nogil:
    cdef double near = a, far = b
    if b < -a:
        near, far = reflected(a, b, width), -a
    if near < 0 and not is_narrow(near, width):
        return <real>log1p(-0.5 * (erfc(-M_SQRT1_2 * near) + erfc(M_SQRT1_2 * far)))
    return <real>(log(scaled_mass(near, far, width)) - 0.5 * near * near - 0.5 * log(2 * M_PI))


@cython.ufunc
cdef real mass_slope(real a, real b, real width) noexcept nogil:
    """Return the density at a over the probability."""
    cdef double near
    if b >= -a:
        return <real>(1 / scaled_mass(a, b, width))
    near = reflected(a, b, width)
    return <real>(decay(near, -a) / scaled_mass(near, -a, width))
