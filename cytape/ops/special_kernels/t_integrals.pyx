import numpy as np

cimport cython
from libc.math cimport INFINITY, NAN, exp, expm1, fabs, log, log1p

from cytape.ops.special_kernels.incomplete_integrals cimport (
    IN_A,
    IN_AA,
    IN_B,
    LESS_IN_A,
    LESS_IN_B,
    VALUE,
    beta_in_shapes,
    beta_level,
    beta_tail,
)
from cytape.ops.special_kernels.stirling cimport (
    N_BERNOULLI,
    density_of_odds,
    digamma_rise,
    digamma_terms,
    excess,
    of_odds,
    power_of_beta,
    rest_of_odds,
    stirling,
)

cdef enum:
    N_NODES = 24
    N_NEWTON = 8

cdef double EXTENT = 39  # the integrand falls to exp(-39) of its largest value
cdef double ROOT_2_PI = 2.50662827463100050242
cdef double[N_NODES] nodes, node_weights

for _i, (_node, _weight) in enumerate(zip(*np.polynomial.legendre.leggauss(N_NODES))):
    nodes[_i], node_weights[_i] = 0.5 + 0.5 * _node, 0.5 * _weight


cdef inline double digamma_half(double df, bint is_slope) noexcept nogil:
    """Return psi((df + 1) / 2) - psi(df / 2) - 1 / df for df >= 30, or the derivative."""
    cdef double square = 1 / (df * df), power = 1, total = 0
    cdef int k
    for k in range(1, N_BERNOULLI + 1):
        power *= 4
        total += (power - 1) * digamma_terms[k - 1] * (-2 * k / df if is_slope else 1) * square
        square /= df * df
    return 2 * total


cdef inline double t_score(
        double df, double r, double one_less, double level, int order) noexcept nogil:
    """Return the derivative of the density over the density; r is t**2 / (df + t**2)."""
    cdef double score = 0.5 * (level + r / df - excess(-r, one_less))
    if order == 0:
        return 1
    if order == 1:
        return score
    return score * score + 0.5 * (
        digamma_half(df, True) - r * (2 - r) / (df * df) + r * r / df)


cdef double t_tail(double df, double t, double power, int order) noexcept nogil:
    """Integrate the derivative of the density from t > 0 to infinity, for df >= 30."""
    cdef double level = digamma_half(df, False), r = t * t / (df + t * t)
    cdef double one_less = df / (df + t * t), end, u, m, fall, total = 0, half = 0.5 * (df + 1)
    cdef int i, _i
    # near the centre: the integral from 0, negative
    if order > 0 and t_score(df, r, one_less, level, 1) > 0:
        for i in range(N_NODES):
            u = t * nodes[i]
            m = u * u / df
            total -= node_weights[i] * exp(half * (log1p(t * t / df) - log1p(m))) * t_score(
                df, m / (1 + m), 1 / (1 + m), level, order)
        return total * power
    end = 1
    for _i in range(N_NEWTON):  # in the logarithm of t
        m = r * expm1(2 * end)
        fall = half * log1p(m) - end
        end -= (fall - EXTENT) / (2 * half * (r + m) / (1 + m) - 1)
    for i in range(N_NODES):
        u = end * nodes[i]
        m = r * expm1(2 * u)
        fall = half * log1p(m) - u
        total += node_weights[i] * exp(-fall) * t_score(
            df, (r + m) / (1 + m), one_less / (1 + m), level, order)
    return total * end * power


cdef double t_in_shape(double df, double t, double power, int order) noexcept nogil:
    """Differentiate in df; `power` is that of the beta function, abs(t) times the density."""
    cdef double x, y, a = 0.5 * df, square = t * t, result
    cdef double[6] slopes
    if df != df or t != t or df <= 0:
        return NAN
    if square == 0 or square == INFINITY or df == INFINITY:
        return 0
    x, y = df / (df + square), square / (df + square)
    if df >= 30:
        result = t_tail(df, fabs(t), power, order)
    elif order < 2:
        beta_in_shapes(a, 0.5, x, y, power, 1 << IN_A, slopes)
        result = 0.5 * slopes[VALUE] if order == 0 else 0.25 * slopes[IN_A] + 0.5 * power / df
    else:
        beta_in_shapes(a, 0.5, x, y, power, 1 << IN_AA, slopes)
        result = 0.125 * slopes[IN_AA] + 0.5 * power / df * (
            beta_level(a, 0.5, x, y) + 0.5 * y - (0.5 * x + 1) / df)
    return result if t < 0 else -result


cdef double t_power(double df, double t) noexcept nogil:
    """Return abs(t) times the density."""
    cdef double square = t * t
    if square == INFINITY or df == INFINITY:
        return 0
    return power_of_beta(0.5 * df, 0.5, df / (df + square), square / (df + square))


cdef double t_density(double df, double t, double power) noexcept nogil:
    if df != df or t != t or df <= 0:
        return NAN
    if df == INFINITY:
        return exp(-0.5 * t * t) / ROOT_2_PI
    if t * t == INFINITY:
        return 0
    if fabs(t) < 1e-150:
        return exp(stirling(0.5 * df + 0.5) - stirling(0.5 * df) + 0.5 * df * log1p(1 / df)
                   - 0.5) / ROOT_2_PI
    return power / fabs(t)


cdef double score_of_density(double df, double t) noexcept nogil:
    cdef double x, y, square = t * t, level
    if df != df or t != t or df <= 0:
        return NAN
    if fabs(t) == INFINITY or df == INFINITY:
        return 0
    if df >= 30:
        level = digamma_half(df, False)
    else:
        level = digamma_rise(0.5 * df, 0.5, False) - 1 / df
    if square == INFINITY:
        return 0.5 * (level + 1 / df + 1 + log(df)) - log(fabs(t))
    x, y = df / (df + square), square / (df + square)
    return t_score(df, y, x, level, 1)


cdef double t_density_in_shape(double df, double t) noexcept nogil:
    cdef double a = 0.5 * df, square = t * t, score = score_of_density(df, t)
    return score if not score else score / ROOT_2_PI * exp(
        stirling(a + 0.5) - stirling(a) + a * log1p(1 / df) - 0.5 - (a + 0.5) * log1p(square / df))


# ---- F distribution, of odds n f / d with the shapes n / 2 and d / 2


cdef double less_series(double a, double b, double x, double power) noexcept nogil:
    """Return the derivative in b minus power / b, for b > 50 and b x < 2, of order 1 / b**2."""
    cdef double term = 1, value = 1, rest = 0, steps = 0, k = 0
    while fabs(term) > 1e-18:
        k += 1
        term *= (k - b) * x / k
        steps += k / (b - k)
        value += term * a / (a + k)
        rest += term * (steps / (a + k) - k / (b - k))
    return power * exp(-b * log1p(-x)) * (
        (digamma_rise(b, a) - excess(a / b, 1 + a / b)) * value / a + rest / b)


cdef (double, double) beta_less(
        double a, double b, double x, double y, double power) noexcept nogil:
    """Return the derivative in a plus power / a and that in b minus power / b; they may cancel."""
    cdef double[6] slopes
    if a > 10 and 0 < b < INFINITY or b > 10 and 0 < a < INFINITY:
        if 0 < x < 1 and 0 < y and not (b * x <= 2 if x <= y else a * y <= 2):
            if b * x < a * y:
                return (beta_tail(a, b, x, y, power, LESS_IN_A),
                        beta_tail(a, b, x, y, power, LESS_IN_B))
            return (-beta_tail(b, a, y, x, power, LESS_IN_B),
                    -beta_tail(b, a, y, x, power, LESS_IN_A))
    beta_in_shapes(a, b, x, y, power, 1 << IN_A | 1 << IN_B, slopes)
    if power > 0:
        slopes[IN_A] += power / a
        slopes[IN_B] -= power / b
        if b > 50 and x <= y and x > 0:
            slopes[IN_B] = less_series(a, b, x, power)
        elif a > 50 and y < x and y > 0:
            slopes[IN_A] = -less_series(b, a, y, power)
    return slopes[IN_A], slopes[IN_B]


ctypedef fused real:
    float
    double


@cython.ufunc
cdef real stdtr_df(real df, real t) noexcept nogil:
    return <real>t_in_shape(df, t, t_power(df, t), 1)


@cython.ufunc
cdef (real, real) stdtr_slopes(real df, real t) noexcept nogil:
    """Return the derivatives in df and in t."""
    cdef double power = t_power(df, t)
    return <real>t_in_shape(df, t, power, 1), <real>t_density(df, t, power)


@cython.ufunc
cdef real t_score_df(real df, real t) noexcept nogil:
    """Return the derivative of the log density in df; 0 at infinity."""
    return <real>score_of_density(df, t)


@cython.ufunc
cdef real t_density_in_df(real df, real t) noexcept nogil:
    return <real>t_density_in_shape(df, t)


@cython.ufunc
cdef real stdtr_dfdf(real df, real t) noexcept nogil:
    return <real>t_in_shape(df, t, t_power(df, t), 2)


@cython.ufunc
cdef real betainc_less_b(real a, real b, real z) noexcept nogil:
    """Return the derivative in b less that of the logarithm of z over b."""
    cdef double x = of_odds(z), y = rest_of_odds(z)
    return <real>beta_less(a, b, x, y, power_of_beta(a, b, x, y))[1]


@cython.ufunc
cdef (real, real, real) f_slopes(real n, real d, real f) noexcept nogil:
    """Return the derivatives of the F distribution in its degrees of freedom and in f."""
    cdef double a = 0.5 * <double>n, b = 0.5 * <double>d, z = n / <double>d * f
    cdef double x = of_odds(z), y = rest_of_odds(z), power = power_of_beta(a, b, x, y)
    cdef double in_a, in_b
    in_a, in_b = beta_less(a, b, x, y, power)
    return <real>(0.5 * in_a), <real>(0.5 * in_b), <real>(
        n / <double>d * density_of_odds(a, b, z, power))
