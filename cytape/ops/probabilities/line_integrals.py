"""Logarithms of integrals over a line, of integrands exp(h) with one maximum, by quadrature.

`breaks_op` finds points where h is certain amounts below its maximum, as constants. Between
neighbours Gauss and Legendre's rule is exact to rounding errors, and its sum of ops has the
derivatives of the integral. `line_integral` is over the whole line, `tail_integral` from a point
in the direction in which h falls. The integrands are in `_INTEGRANDS`, by name.
"""

import math

import numpy as np

from cytape.ops.calls.operands import is_tensor
from cytape.ops.elementwise import (
    arctan,
    cos,
    cosh,
    exp,
    expm1,
    hypot,
    log,
    log1p,
    maximum,
    minimum,
    sin,
    sqrt,
    tan,
    where,
)
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.ops.probabilities.log_probabilities import log_mass, log_of_hazard, log_rest
from cytape.ops.special import erf, expit, k1e, kve, log_expit, log_ndtr, logsumexp, xlogy
from cytape.ops.special.incomplete_functions import gamma_density

_DROPS = (1.0, 5.0, 15.0, 43.0)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_FARTHEST = 700.0  # of the maximum from 0


def _on_grid(h, points, given):
    return np.nan_to_num(h(points, *[x[..., None] for x in given]), nan=-np.inf)


def _maximum(h, given, least=-_FARTHEST, width=2 * _FARTHEST):
    """Return a point next to the maximum."""
    low = np.full(np.broadcast_shapes(*map(np.shape, given)), least)
    for n in (64, *18 * [8]):
        best = np.argmax(_on_grid(h, low[..., None] + width * np.arange(n + 1) / n, given), -1)
        low, width = low + width * np.clip(best - 1, 0, n - 2) / n, 2 * width / n
    return low + 0.5 * width


def _distances(h, start, sign, given):
    """Return distances from a point where h has fallen by the amounts, to a tenth."""
    top, found = h(start, *given)[..., None], [0 * start]
    start, sign = start[..., None], np.asarray(sign)[..., None]
    for drop in _DROPS:
        low, width = 0 * found[0] - 44, 64.0  # of the binary logarithm
        for _ in range(3):
            steps = low[..., None] + width * np.arange(1, 9) / 8
            has_fallen = _on_grid(h, start + sign * 2**steps, given) <= top - drop
            has_fallen[..., -1] = True
            low, width = low + width * np.argmax(has_fallen, -1) / 8, width / 8
        found.append(2**(low + width))
    return np.stack(found, -1)


def _breaks(*given, name, is_tail):
    """Return points between which the integrand is smooth; of a tail, distances from its start."""
    h = _OUTLINES.get(name) or _INTEGRANDS[name]
    given = np.broadcast_arrays(*[np.asarray(x, float) for x in given])

    def beyond(s, start, sign, *given):
        return h(start + sign * np.maximum(s, 0), *given)

    def beyond_power(u, *given):
        return beyond(2**u, *given)

    with np.errstate(all="ignore"):
        integrand = beyond if is_tail else h
        start = 2**_maximum(beyond_power, given, -44.0, 64.0) if is_tail else _maximum(h, given)
        left, right = [_distances(integrand, start, sign, given) for sign in (-1, 1)]
        if is_tail:
            left = np.minimum(left, start[..., None])
        if name in _STEPS:  # further points around a step
            steps = _STEPS[name](*given) - start[..., None]
            left, right = [
                np.sort(np.concatenate([found, np.clip(sign * steps, 0, found[..., -1:])], -1), -1)
                for sign, found in ((-1, left), (1, right))]
        breaks = start[..., None] + np.concatenate([-left[..., :0:-1], right], -1)
        return np.where(np.isnan(sum(given))[..., None], 0, breaks)


breaks_op = nondifferentiable("ScipyLineBreaks", _breaks)


def _apart(x):
    return np.expand_dims(x, (-2, -1))


def _quadrature(breaks):
    """Return nodes, along two last axes, and logarithms of their weights."""
    half = np.expand_dims(0.5 * (breaks[..., 1:] - breaks[..., :-1]), -1)
    weights = np.maximum(half * _WEIGHTS, 1e-300)  # not 0 between equal points
    return np.expand_dims(breaks[..., :-1], -1) + half * (1 + _NODES), log(weights)


def line_integral(integrand, *given):
    """Return the logarithm of the integral of exp(integrand(v, *given)) over all v."""
    nodes, log_weights = _quadrature(
        breaks_op(*given, name=integrand.__name__, is_tail=False))
    return logsumexp(log_weights + integrand(nodes, *map(_apart, given)), axis=(-2, -1))


def tail_integral(integrand, start, *given):
    """Return whether h rises at `start`, and the logarithm of the integral on its lower side."""
    is_left = integrand(start + 1e-3, *given) > integrand(start - 1e-3, *given)
    sign = where(is_left, -1.0, 1.0)
    nodes, log_weights = _quadrature(
        breaks_op(start, sign, *given, name=integrand.__name__, is_tail=True))
    points = _apart(start) + _apart(sign) * nodes
    return is_left, logsumexp(log_weights + integrand(points, *map(_apart, given)), axis=(-2, -1))


# ---- noncentral t: (N(nc, 1) of a normal variable) / s, in v = log(s) of a scaled chi variable s


def noncentral_t_density(v, df, nc, t):
    """Return the integrand of the density at t, without a factor."""
    x = t * exp(v) - nc
    return df * (v - 0.5 * expm1(2 * v)) + v - 0.5 * x * x - 0.5 * math.log(2 * math.pi)


def noncentral_t_below(v, df, nc, t):
    """Return the integrand of the probability below t, without a factor."""
    return df * (v - 0.5 * expm1(2 * v)) + log_ndtr(t * exp(v) - nc)


def over_chi(integrand, df, *given):
    """Return the logarithm of the integral over the distribution of v."""
    half = 0.5 * df
    return log(df * gamma_density(half, half)) + line_integral(integrand, df, *given)


def _steps_below(df, nc, t):
    """Return points around the step, and around the bend of the density of v at 0."""
    step = np.log(np.maximum(1, np.abs(nc)) / np.abs(t))[..., None] + np.array([-4, -2, 0, 1.0])
    return np.concatenate([step, np.broadcast_to([-12, -5, -2, 1.0], step.shape)], -1)


# ---- modified Bessel functions of the second kind, and distributions with such densities


def scaled_bessel(v, p, b):
    """Return the integrand of 2 exp(b) K(p, b)."""
    return p * v - b * (cosh(v) - 1)


def log_kve(p, x):
    """Return log(kve(p, x)), for a tensor as order by the integral, which has derivatives in it."""
    if is_tensor(p):
        return line_integral(scaled_bessel, p, x) - math.log(2)
    is_far = x > 1e30  # where SciPy's is NaN
    return 0.5 * log(0.5 * math.pi / where(is_far, x, 1.0)) + where(
        is_far, 0.0, log(kve(p, where(is_far, 1.0, x))) - 0.5 * math.log(0.5 * math.pi))


def hyperbolic_log_density(z, p, a, b):
    """Return the logarithm of the density of `genhyperbolic`."""
    root, scale = hypot(1, z), sqrt((a - b) * (a + b))
    return (p * log(scale / a) - 0.5 * math.log(2 * math.pi) - log_kve(p, scale) + scale + b * z
            - a * root + log_kve(p - 0.5, a * root) + (p - 0.5) * log(root) + 0.5 * log(a))


def normal_inverse_log_density(z, a, b):
    """Return the logarithm of the density of `norminvgauss`."""
    root = hypot(1, z)
    return (log(a / math.pi) + log(k1e(a * root)) + b * z - a * root + sqrt((a - b) * (a + b))
            - log(root))


def hyperbolic_below(v, p, a, b, x):
    """Return the integrand of the probability below x, over the logarithm of the variance."""
    root = exp(0.5 * v)
    return (p * v - 0.5 * (exp(-v) + (a - b) * (a + b) * exp(v))
            + log_ndtr(x / root - b * root))


def _hyperbolic_steps(p, a, b, x):
    return 2 * np.log(np.abs(x))[..., None] + np.array([-4, -1.5, 1.5, 4])


def hyperbolic_log_probability(p, a, b, x):
    """Return the logarithm of the probability of `genhyperbolic` below x."""
    square = (a - b) * (a + b)
    root = sqrt(square)
    return line_integral(hyperbolic_below, p, a, b, x) - (
        math.log(2) + log_kve(p, root) - root - 0.5 * p * log(square))


def inverse_gaussian_tail(v, p, b):
    """Return the logarithm of the density of log of a variable of `geninvgauss`."""
    return scaled_bessel(v, p, b) - math.log(2) - log_kve(p, b)


def skewnorm_log_density(z, a):
    """Return the logarithm of the skew normal density."""
    return 0.5 * (math.log(2 / math.pi) - z * z) + log_ndtr(a * z)


# ---- studentized range: range of k normal variables over s, by two integrals


def range_density(v, w, k):
    """Return the integrand of the density of the range at w, over the least variable."""
    return (_log_normal(v) + _log_normal(v + w) + (k - 2) * log_mass(v, v + w, w)
            + log(k * (k - 1)))


def range_below(v, w, k):
    """Return the integrand of the probability of a range below w."""
    return _log_normal(v) + (k - 1) * log_mass(v, v + w, w) + log(k)


def range_above(v, w, k):
    """Return the integrand of the probability of a range above w."""
    above = log_ndtr(-v)
    none = (k - 1) * log_rest(minimum(log_ndtr(-v - w) - above, -1e-30))
    return _log_normal(v) + (k - 1) * above + log_rest(none) + log(k)


def _log_normal(v):
    return -0.5 * v * v - 0.5 * math.log(2 * math.pi)


def _outline(v, df, power, q):
    return df * (v - 0.5 * expm1(2 * v)) + xlogy(power, erf(0.5 * q * exp(v)))


def studentized_density(v, df, k, q):
    """Return the integrand of the density, without a factor."""
    return (df * (v - 0.5 * expm1(2 * v)) + v
            + line_integral(range_density, *np.broadcast_arrays(q * exp(v), k)))


def studentized_below(v, df, k, q):
    """Return the integrand of the probability below q, without a factor."""
    return df * (v - 0.5 * expm1(2 * v)) + line_integral(
        range_below, *np.broadcast_arrays(q * exp(v), k))


def studentized_above(v, df, k, q):
    """Return the integrand of the probability above q, without a factor."""
    return df * (v - 0.5 * expm1(2 * v)) + line_integral(
        range_above, *np.broadcast_arrays(q * exp(v), k))


# ---- Wallenius' noncentral hypergeometric distribution, and the Gauss hypergeometric one


def wallenius(v, first, second, odds, rest):
    """Return the integrand for counts of two kinds of balls, in the logarithm of time."""
    time = exp(v)
    return v - rest * time + _log_taken(first, odds * time) + _log_taken(second, time)


def _log_taken(count, time):
    is_none = count == 0
    return where(is_none, 0.0, where(is_none, 1.0, count) * log(-expm1(-time)))


def gauss_hypergeometric(v, a, b, c, z):
    """Return the integrand of the norm of `gausshyper`, and of its tails, in the logit."""
    return a * log_expit(v) + b * log_expit(-v) - c * log1p(z * expit(v))


# ---- stable distributions by Zolotarev's integral over an angle, an expit of v (Nolan, 1997)


def stable_log_hazard(v, x, alpha, beta):
    """Return the logarithm of the exponent g of the integrand, and that of the angle's slope."""
    at_one = alpha == 1
    other = where(at_one, 1.5, alpha)
    shares = [expit(maximum(side, -690.0)) for side in (v, -v)]  # not subnormal
    shift = arctan(beta * tan(0.5 * math.pi * other)) / other
    width = 0.5 * math.pi + shift
    rise, rest = [width * share for share in shares]  # from the ends of the angle
    left, right = [  # without rounding where a tail is light
        where(is_light, 0.0, maximum(math.pi - x, 0.0)) for x, is_light in (
            (width, (other < 1) & (beta == 1)), (other * width, (other > 1) & (beta == -1)))]
    log_cos, log_sin, log_middle = [log(sin(where(v < 0, *sides))) for sides in (
        (left + rise, rest), (other * rise, right + other * rest),
        (left + (1 - other) * rise, right + (other - 1) * rest))]
    power = other / (other - 1)
    usual = (power * (log(where(at_one, 1.0, x)) + log_cos - log_sin) + log_middle - log_cos
             + log(cos(other * shift)) / (other - 1))
    rise, rest = [math.pi * share for share in shares]
    ratio = where(at_one, beta, 1.0)
    slope = 0.5 * math.pi * (1 - ratio) + ratio * rise
    log_slope = log(where(at_one, math.pi, width)) + log_expit(v) + log_expit(-v)
    return where(at_one, (
        log(2 / math.pi * slope / sin(where(v < 0, rise, rest))) - 0.5 * math.pi * x / ratio
        - slope * cos(rise) / (sin(where(v < 0, rise, rest)) * ratio)), usual), log_slope


def stable_density(v, x, alpha, beta):
    """Return the integrand of the density at x > 0, without a factor."""
    log_g, log_slope = stable_log_hazard(v, x, alpha, beta)
    log_g = minimum(log_g, 300.0)
    return log_g - exp(log_g) + log_slope


def stable_above(v, x, alpha, beta):
    """Return the integrand of the probability above x > 0, times pi."""
    log_g, log_slope = stable_log_hazard(v, x, alpha, beta)
    is_light = alpha > 1
    light, heavy = where(is_light, log_g, 0.0), where(is_light, 0.0, log_g)
    return where(is_light, -exp(minimum(light, 300.0)), log_of_hazard(heavy)) + log_slope


def stable_below(v, x, alpha, beta):
    """Return the integrand of the probability below x for alpha <= 1 and beta = 1, times pi."""
    log_g, log_slope = stable_log_hazard(v, x, alpha, beta)
    return log_slope - exp(minimum(log_g, 300.0))


def stable_far_density(v, x, beta):
    """Return the integrand of the density at x > 100 for alpha = 1, times pi, by a rotated path."""
    t = exp(minimum(v, 0.0))  # beyond, the sine changes its sign
    return where(v > 0, -np.inf, (
        v + log(sin((1 + beta) * t)) - x * t - 2 / math.pi * beta * t * v))


def stable_far_tail(v, x, beta):
    """Return the integrand of the probability above x > 100 for alpha = 1, times pi."""
    return stable_far_density(v, x, beta) - v


def _stable_steps(*given):
    """Return points around that where the exponent is 1, by its slope there."""
    def log_hazard(v, *given):
        return stable_log_hazard(v, *given)[0]

    one = _maximum(lambda *z: -np.abs(log_hazard(*z)), given)
    slope = np.abs(log_hazard(one + 1e-5, *given) - log_hazard(one - 1e-5, *given)) / 2e-5
    steps = one[..., None] + np.array([-36, -12, -4, 0, 4, 12, 36.0]) / slope[..., None]
    steps = np.nan_to_num(steps)
    fixed = np.broadcast_to([-6, -2, 2, 6.0], (*one.shape, 4))
    return np.concatenate([steps, fixed], -1)


_INTEGRANDS = {f.__name__: f for f in (
    gauss_hypergeometric, hyperbolic_below, inverse_gaussian_tail, noncentral_t_below,
    noncentral_t_density, range_above, range_below, range_density,
    scaled_bessel, skewnorm_log_density, stable_above, stable_below, stable_density,
    stable_far_density, stable_far_tail, studentized_above, studentized_below,
    studentized_density, wallenius)}
_OUTLINES = {  # of integrands that are integrals
    "studentized_density": lambda v, df, k, q: _outline(v, df, k - 1, q) - 0.25 * (q * exp(v))**2,
    "studentized_below": lambda v, df, k, q: _outline(v, df, k - 1, q),
    "studentized_above": lambda v, df, k, q: _outline(v, df, 0, q) + minimum(
        log_ndtr(-math.sqrt(0.5) * q * exp(v)) + 2 * log(k), 0)}
_STEPS = {
    "hyperbolic_below": _hyperbolic_steps,
    "noncentral_t_below": _steps_below, "stable_above": _stable_steps,
    "stable_below": _stable_steps, "stable_density": _stable_steps}
