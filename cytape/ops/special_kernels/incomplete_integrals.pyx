import numpy as np

cimport cython
from libc.math cimport INFINITY, NAN, exp, expm1, fabs, log, log1p, sqrt

from cytape.ops.special_kernels.stirling cimport (
    density_of_beta,
    density_of_gamma,
    density_of_odds,
    digamma_rise,
    log_less_digamma,
    log_of,
    of_odds,
    power_of_beta,
    power_of_gamma,
    rest_of_odds,
    trigamma,
)

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #define CYTAPE_FOR_CPU __attribute__((target_clones("avx2", "default")))
    #pragma GCC push_options
    #pragma GCC optimize("no-trapping-math")
    #define CYTAPE_POP_OPTIONS _Pragma("GCC pop_options")
    #else
    #define CYTAPE_POP_OPTIONS
    #define CYTAPE_FOR_CPU
    #endif
    #define CYTAPE_NODES 20

    static double cytape_nodes[CYTAPE_NODES], cytape_weights[CYTAPE_NODES];

    /* Polynomials of degree 11 and 9, by Estrin's scheme, which waits less than Horner's. */
    #define CYTAPE_TWO(x, a, b) (1. / (a) + (x) * (1. / (b)))
    #define CYTAPE_FOUR(x, xx, a, b, c, d) (CYTAPE_TWO(x, a, b) + (xx) * CYTAPE_TWO(x, c, d))
    /* (exp(x) - 1 - x) / x**2 for abs(x) < 1/2 */
    static inline double cytape_rest_of(double x) {
        const double xx = x * x, xxxx = xx * xx;
        return CYTAPE_FOUR(x, xx, 2, 6, 24, 120) + xxxx * (
            CYTAPE_FOUR(x, xx, 720, 5040, 40320, 362880)
            + xxxx * CYTAPE_FOUR(x, xx, 3628800, 39916800, 479001600, 6227020800));
    }
    /* (artanh(z) - z) / z**3 for x = z**2 < 0.03 */
    static inline double cytape_artanh_of(double x) {
        const double xx = x * x, xxxx = xx * xx;
        return CYTAPE_FOUR(x, xx, 3, 5, 7, 9) + xxxx * (
            CYTAPE_FOUR(x, xx, 11, 13, 15, 17) + xxxx * CYTAPE_TWO(x, 19, 21));
    }

    typedef union { double number; int64_t bits; } cytape_word;

    /* exp(x) for -700 < x < 700, without a branch. */
    static inline double cytape_exp(double x) {
        const double shift = 6755399441055744.0;  /* 1.5 * 2**52: the last bits are an integer */
        cytape_word whole, scale;
        double n, r;
        whole.number = x * 1.4426950408889634074 + shift;
        n = whole.number - shift;
        r = x - n * 6.93147180369123816490e-01 - n * 1.90821492927058770002e-10;
        scale.bits = (whole.bits + 1023) << 52;
        return (1 + r * (1 + r * cytape_rest_of(r))) * scale.number;
    }

    /* log(x) of positive x, without a branch. */
    static inline double cytape_log(double x) {
        cytape_word whole, part, power;
        double ratio, square;
        whole.number = x;
        /* divide by a power of 2, to between sqrt(1/2) and sqrt(2) */
        whole.bits -= INT64_C(0x3fe6a09e667f3bcd);
        power.bits = (int64_t)(((uint64_t)whole.bits + (UINT64_C(1023) << 52)) >> 52)
            | INT64_C(0x4330000000000000);
        part.bits = (whole.bits & INT64_C(0x000fffffffffffff)) + INT64_C(0x3fe6a09e667f3bcd);
        ratio = (part.number - 1) / (part.number + 1);
        square = ratio * ratio;
        return (power.number - (4503599627370496.0 + 1023)) * 0.69314718055994530942
            + 2 * ratio * (1 + square * cytape_artanh_of(square));
    }

    /* exp(v) - 1 - v; e is exp(v). */
    static inline double cytape_rest(double v, double e) {
        return v > -0.5 && v < 0.5 ? cytape_rest_of(v) * v * v : e - 1 - v;
    }

    /* z - log(1 + z) for abs(z) < 0.35, without cancellation. */
    static inline double cytape_excess(double z) {
        const double ratio = z / (2 + z), square = ratio * ratio;  /* log1p(z) = 2 artanh(ratio) */
        return z * ratio - 2 * ratio * square * cytape_artanh_of(square);
    }

    static inline double cytape_sum(const double *terms) {
        double sums[4] = {0, 0, 0, 0};
        int i, j;
        for (i = 0; i < CYTAPE_NODES; i += 4) {
            for (j = 0; j < 4; j++) {
                sums[j] += terms[i + j];
            }
        }
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

    CYTAPE_FOR_CPU static double cytape_gamma_nodes(
            double a, double x, double level, double curvature, double start, double width,
            int order) {
        double terms[CYTAPE_NODES];
        const double second = order == 2, first = order == 1, value = order == 0;
        int i;
        for (i = 0; i < CYTAPE_NODES; i++) {
            const double v = start + width * cytape_nodes[i], score = level + v;
            const double fall = (x - a) * v + x * cytape_rest(v, cytape_exp(v));
            terms[i] = cytape_weights[i] * cytape_exp(fall < 700 ? -fall : -700)
                * (value + first * score + second * (score * score - curvature));
        }
        return width * cytape_sum(terms);
    }

    /* `is_less`, a constant: the score of `LESS_IN_A` or `LESS_IN_B` instead of weighted scores */
    static inline double cytape_beta_sum(
            double a, double b, double x, double y, double level_a, double level_b,
            double start, double width, const double *weights, const int is_less) {
        double terms[CYTAPE_NODES];
        const double n = a + b, fall_rate = y * a - x * b;
        const double c_a = weights[0], c_b = weights[1], c_aa = weights[2], c_ab = weights[3],
            c_bb = weights[4], c_0 = weights[5], c_x = weights[6], c_y = weights[7],
            rise = weights[8];
        const int is_left = x < 0.5;
        const double factor = is_left ? x : y, sign = is_left ? -1 : 1, rate = is_left ? a : -b;
        /* x and y at a node are these, times exp(sign u) or 1, over 1 + m */
        const double rising = is_left ? c_x * x : c_y * y, fixed = is_left ? c_y * y : c_x * x;
        int i;
        for (i = 0; i < CYTAPE_NODES; i++) {
            const double u = start + width * cytape_nodes[i], e = cytape_exp(sign * u);
            const double rest = cytape_rest(sign * u, e);
            const double m = factor * (u < 0.5 ? rest + sign * u : e - 1);
            const double excess = cytape_excess(u < 0.5 ? m : 0);
            const double logarithm = u < 0.5 ? m - excess : cytape_log(1 + m);
            const double fall = u < 0.5 ? fall_rate * u + n * (factor * rest - excess)
                                        : rate * u + n * logarithm;
            const double s_a = level_a - logarithm - (is_left ? u : 0);
            const double s_b = level_b - logarithm + (is_left ? 0 : u);
            double score;
            if (is_less) {  /* near the mode c_a s_a + c_b s_b is rise + log(1 + d) */
                const double d = -c_0 - (rising * e + fixed) / (1 + m);
                const int is_near = d > -0.35 && d < 0.35;
                const double near = rise - cytape_excess(is_near ? d : 0);
                score = is_near ? near : c_a * s_a + c_b * s_b - d;
            } else {
                score = c_0 + s_a * (c_a + c_aa * s_a + c_ab * s_b) + s_b * (c_b + c_bb * s_b);
            }
            terms[i] = cytape_weights[i] * cytape_exp(fall < 700 ? -fall : -700) * score;
        }
        return width * cytape_sum(terms);
    }
    CYTAPE_FOR_CPU static double cytape_beta_nodes(
            double a, double b, double x, double y, double level_a, double level_b,
            double start, double width, const double *weights) {
        return cytape_beta_sum(a, b, x, y, level_a, level_b, start, width, weights, 0);
    }
    CYTAPE_FOR_CPU static double cytape_less_nodes(
            double a, double b, double x, double y, double level_a, double level_b,
            double start, double width, const double *weights) {
        return cytape_beta_sum(a, b, x, y, level_a, level_b, start, width, weights, 1);
    }
    CYTAPE_POP_OPTIONS
    """
    const int N_NODES "CYTAPE_NODES"
    double* nodes "cytape_nodes"
    double* node_weights "cytape_weights"
    double gamma_nodes "cytape_gamma_nodes"(
        double, double, double, double, double, double, int) noexcept nogil
    double beta_nodes "cytape_beta_nodes"(
        double, double, double, double, double, double, double, double,
        const double*) noexcept nogil
    double less_nodes "cytape_less_nodes"(
        double, double, double, double, double, double, double, double,
        const double*) noexcept nogil

cdef enum:
    N_NEWTON = 3

cdef double EXTENT = 35  # the integrand falls to exp(-35) of its largest value
cdef double WIDE = 3  # intervals of at least this extent are split

for _i, (_node, _weight) in enumerate(zip(*np.polynomial.legendre.leggauss(N_NODES))):
    nodes[_i], node_weights[_i] = 0.5 + 0.5 * _node, 0.5 * _weight


# ---- gamma


cdef bint has_gamma_series(double a, double x, int order) noexcept nogil:
    """Return whether the series has few terms, and its sum does not cancel."""
    return x < 2 or order < 2 and x < 30 and x < a + 1.5 * sqrt(a)


cdef double gamma_series(double a, double x, double power, int order) noexcept nogil:
    cdef double level = log(x) - log(a + 1) + log_less_digamma(a + 1)
    cdef double term = 1, first = 0, second = 0, k = 0, over
    cdef double value = 1, slope = 0, curve = 0
    while term > 1e-17 * value:
        k += 1
        over = 1 / (a + k)
        term *= x * over
        first += over
        second += over * over
        value += term
        slope -= term * first
        curve += term * (first * first + second)
    if order == 0:
        slope = value
    elif order == 1:
        slope += level * value
    else:
        slope = (level * level - trigamma(a + 1)) * value + 2 * level * slope + curve
    return power / a * slope


cdef double gamma_tail(
        double a, double x, double power, double level, int order, int sign) noexcept nogil:
    """Integrate from x to infinity (sign 1) or to 0 (sign -1), in log(t / x)."""
    cdef double rise = sign * (x - a), end, v, curvature, first, total
    cdef int _i
    if power == 0:
        return 0
    end = 2 * EXTENT / (rise + sqrt(rise * rise + 2 * x * EXTENT))
    for _i in range(N_NEWTON):
        v = x * expm1(sign * end)
        end -= (v - sign * a * end - EXTENT) / (sign * (v + x - a))
    curvature = trigamma(a) if order == 2 else 0
    first = sign * (end if end < WIDE else 0.3 * end)
    total = gamma_nodes(a, x, level, curvature, 0, first, order)
    if end >= WIDE:
        total += gamma_nodes(a, x, level, curvature, first, sign * end - first, order)
    return -total * power


cdef double gamma_in_shape(double a, double x, double power, int order) noexcept nogil:
    cdef double level
    if a != a or x != x or a <= 0 or x < 0:
        return NAN
    if x == 0 or x == INFINITY or a == INFINITY:
        return 0 if x != a else NAN
    if has_gamma_series(a, x, order):
        return gamma_series(a, x, power, order)
    level = log_of((x - a) / a, x / a) + log_less_digamma(a)
    return gamma_tail(a, x, power, level, order, 1 if level > 0 else -1)


# ---- beta


cdef double beta_level(double a, double b, double x, double y) noexcept nogil:
    """Return log(x) + psi(a + b) - psi(a)."""
    return log_of((x * b - y * a) / a, x * (a + b) / a) + digamma_rise(a, b)


cdef bint by_series(
        double a, double b, double x, double power, bint second, double* slopes) noexcept nogil:
    """Sum a series, if it has few terms and the sum does not cancel. Return whether it has."""
    cdef bint is_small = x <= 0.5 and b * x <= 2
    if second and is_small:
        beta_series(a, b, x, power, slopes)
    elif not second and (is_small or x < 0.7 and b * x < 100 and (a + b) * x < a + 1.5 * sqrt(a)):
        rising_series(a, b, x, power, slopes)
    else:
        return False
    return True


cdef double level_of_series(double a, double b, double x) noexcept nogil:
    """Return log(x) + psi(a + b) - psi(a + 1)."""
    if b > 0.5:
        return log(x) + log1p((b - 1) / (a + 1)) + digamma_rise(a + 1, b - 1)
    return log(x) + log1p(b / (a + 1)) + digamma_rise(a + 1, b) - 1 / (a + b)


cdef void rising_series(
        double a, double b, double x, double power, double* slopes) noexcept nogil:
    """Sum the series of positive terms (DLMF 8.17.8) and their derivatives in a and b."""
    cdef double in_a = level_of_series(a, b, x), in_b = log1p(-x) + digamma_rise(b, a, False)
    cdef double term = 1, value = 1, s_a = 0, s_b = 0, h_a = 0, h_b = 0, p, q, over
    p, q = a + b, a + 1
    while term > 1e-17 * value:
        over = 1 / (p * q)
        term *= x * p * p * over
        h_a += (q - p) * over
        h_b += q * over
        p, q = p + 1, q + 1
        value += term
        s_a += term * h_a
        s_b += term * h_b
    power /= a
    slopes[VALUE] = power * value
    slopes[IN_A], slopes[IN_B] = power * (in_a * value + s_a), power * (in_b * value + s_b)


cdef void beta_series(
        double a, double b, double x, double power, double* slopes) noexcept nogil:
    """Sum second derivatives of the series in x (DLMF 8.17.7), which needs small x and b x."""
    cdef double in_a = level_of_series(a, b, x), in_b = digamma_rise(b, a, False)
    cdef double term = 1, term_b = 0, term_bb = 0, k = 0, ratio, over
    cdef double value = 1, s_a = 0, s_b = 0, s_aa = 0, s_ab = 0, s_bb = 0, both
    while fabs(term) + fabs(term_b) + fabs(term_bb) > 1e-18 and k < 1000:
        k += 1
        ratio = x / k
        term_bb = (term_bb * (k - b) - 2 * term_b) * ratio
        term_b = (term_b * (k - b) - term) * ratio
        term *= (k - b) * ratio
        over = 1 / (a + k)
        # a / (a + k) and its derivatives in a: k / (a + k)**2, -2 k / (a + k)**3
        value += term * a * over
        s_b += term_b * a * over
        s_bb += term_bb * a * over
        s_a += term * over * over * k
        s_ab += term_b * over * over * k
        s_aa -= 2 * term * over * over * over * k
    power *= exp(-b * log1p(-x)) / a
    both = trigamma(a + b)
    slopes[IN_AA] = power * (
        (in_a * in_a + both - trigamma(a + 1)) * value + 2 * in_a * s_a + s_aa)
    slopes[IN_AB] = power * ((in_a * in_b + both) * value + in_a * s_b + in_b * s_a + s_ab)
    slopes[IN_BB] = power * ((in_b * in_b + both - trigamma(b)) * value + 2 * in_b * s_b + s_bb)


cdef double beta_tail(
        double a, double b, double x, double y, double power, int which) noexcept nogil:
    """Integrate from 0 to x, in u = logit(x) - logit(t)."""
    cdef double fall_rate = y * a - x * b, n = a + b, end, m, fall, rate
    cdef double in_a, in_b, first, total, score
    cdef double[9] weights
    cdef int _i
    if power == 0:
        return 0
    end = 2 * EXTENT / (fall_rate + sqrt(fall_rate * fall_rate + 2 * n * x * y * EXTENT))
    for _i in range(N_NEWTON):
        if x < 0.5:
            m = x * expm1(-end)
            fall = a * end + n * log1p(m)
            rate = a - n * (x + m) / (1 + m)
        else:
            m = y * expm1(end)
            fall = n * log1p(m) - b * end
            rate = a - n * x / (1 + m)
        if rate <= 0:
            end *= 2
        else:
            end -= (fall - EXTENT) / rate
    for i in range(9):
        weights[i] = 0
    if which == LESS_IN_A:
        weights[IN_A], weights[5], weights[7], weights[8] = 1, -b / a, n / a, digamma_rise(a, b)
    elif which == LESS_IN_B:
        weights[IN_B], weights[5], weights[6], weights[8] = 1, -a / b, n / b, digamma_rise(b, a)
    else:
        weights[which] = 1
    if IN_AA <= which < VALUE:
        weights[5] = trigamma(n)
        weights[5] -= 0 if which == IN_AB else trigamma(a if which == IN_AA else b)
    in_a, in_b = beta_level(a, b, x, y), beta_level(b, a, y, x)
    first = end if end < WIDE else 0.3 * end
    if which >= LESS_IN_A:
        total = less_nodes(a, b, x, y, in_a, in_b, 0, first, weights)
        score = in_a * weights[IN_A] + in_b * weights[IN_B] + weights[5]
        score += weights[6] * x + weights[7] * y
        if first == end and fabs(total) < 0.02 * score * end:  # near a zero between the tails
            first = 0.3 * end
            total = less_nodes(a, b, x, y, in_a, in_b, 0, first, weights)
        if first < end:
            total += less_nodes(a, b, x, y, in_a, in_b, first, end - first, weights)
        return total * power
    total = beta_nodes(a, b, x, y, in_a, in_b, 0, first, weights)
    if end >= WIDE:
        total += beta_nodes(a, b, x, y, in_a, in_b, first, end - first, weights)
    return total * power


cdef int exchanged(int which) noexcept nogil:
    """Return the derivative when a and b are exchanged."""
    return IN_B if which == IN_A else IN_A if which == IN_B else (
        IN_BB if which == IN_AA else IN_AA if which == IN_BB else which)


cdef void beta_in_shapes(
        double a, double b, double x, double y, double power, unsigned int wanted,
        double* slopes) noexcept nogil:
    """Compute wanted derivatives of one order, one bit each, and maybe others; y is 1 - x."""
    cdef double[6] of_complement
    cdef int which
    for which in range(5):
        slopes[which] = NAN
    if a != a or b != b or x != x or a <= 0 or b <= 0 or x < 0 or x > 1:
        return
    if x == 0 or y == 0 or a == INFINITY or b == INFINITY:
        for which in range(5):
            slopes[which] = 0
    elif by_series(a, b, x, power, wanted >= 1 << IN_AA, slopes):
        return
    elif by_series(b, a, y, power, wanted >= 1 << IN_AA, of_complement):
        for which in range(5):
            slopes[which] = -of_complement[exchanged(which)]
    else:
        for which in range(5):
            if not wanted >> which & 1:
                continue
            if (beta_level(b, a, y, x) > 0) if which in (IN_B, IN_BB) else (
                    beta_level(a, b, x, y) < 0):
                slopes[which] = beta_tail(a, b, x, y, power, which)
            else:
                slopes[which] = -beta_tail(b, a, y, x, power, exchanged(which))


cdef double beta_in_shape(double a, double b, double z, int which) noexcept nogil:
    cdef double[6] slopes
    cdef double x = of_odds(z), y = rest_of_odds(z)
    beta_in_shapes(a, b, x, y, power_of_beta(a, b, x, y), 1 << which, slopes)
    return slopes[which]


ctypedef fused real:
    float
    double


@cython.ufunc
cdef real gammainc_a(real a, real x) noexcept nogil:
    return <real>gamma_in_shape(a, x, power_of_gamma(a, x), 1)


@cython.ufunc
cdef (real, real) gammainc_slopes(real a, real x) noexcept nogil:
    """Return the derivatives in a and in x."""
    cdef double power = power_of_gamma(a, x)
    return <real>gamma_in_shape(a, x, power, 1), <real>density_of_gamma(a, x, power)


@cython.ufunc
cdef real gammainc_aa(real a, real x) noexcept nogil:
    return <real>gamma_in_shape(a, x, power_of_gamma(a, x), 2)


@cython.ufunc
cdef real betainc_a(real a, real b, real z) noexcept nogil:
    return <real>beta_in_shape(a, b, z, IN_A)


@cython.ufunc
cdef real betainc_b(real a, real b, real z) noexcept nogil:
    return <real>beta_in_shape(a, b, z, IN_B)


@cython.ufunc
cdef (real, real, real) betainc_slopes(real a, real b, real x) noexcept nogil:
    """Return the derivatives in a, b and x."""
    cdef double[6] slopes
    if x == INFINITY or x == -INFINITY:  # 1 - x would be one, too
        x = NAN
    cdef double y = 1 - <double>x, power = power_of_beta(a, b, x, y)
    beta_in_shapes(a, b, x, y, power, 1 << IN_A | 1 << IN_B, slopes)
    return <real>slopes[IN_A], <real>slopes[IN_B], <real>(
        NAN if slopes[IN_A] != slopes[IN_A] else density_of_beta(a, b, x, power))


@cython.ufunc
cdef (real, real, real) odds_slopes(real a, real b, real z) noexcept nogil:
    """Return the derivatives in a, b and z."""
    cdef double[6] slopes
    cdef double x = of_odds(z), y = rest_of_odds(z), power = power_of_beta(a, b, x, y)
    beta_in_shapes(a, b, x, y, power, 1 << IN_A | 1 << IN_B, slopes)
    return <real>slopes[IN_A], <real>slopes[IN_B], <real>density_of_odds(a, b, z, power)


@cython.ufunc
cdef real betainc_aa(real a, real b, real z) noexcept nogil:
    return <real>beta_in_shape(a, b, z, IN_AA)


@cython.ufunc
cdef real betainc_ab(real a, real b, real z) noexcept nogil:
    return <real>beta_in_shape(a, b, z, IN_AB)


@cython.ufunc
cdef real betainc_bb(real a, real b, real z) noexcept nogil:
    return <real>beta_in_shape(a, b, z, IN_BB)
