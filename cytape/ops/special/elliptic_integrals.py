"""Elliptic integrals of Legendre and Carlson, Jacobi's elliptic functions (DLMF 19 and 22).

Derivatives of incomplete integrals in the parameter are integrals of Carlson, whose terms do not
cancel: ``ellipkinc`` is the sine times ``elliprf(cos**2, 1 - m sin**2, 1)``.
"""

import math

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.elementary_functions import inside, polynomial
from cytape.ops.special.several_outputs import several, with_slopes
from cytape.ops.special_kernels.carlson_slopes import (
    agm_slopes,
    elliprd_slopes,
    elliprf_slopes,
    elliprj_slopes,
)

__all__ = [
    "agm", "ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc", "ellipkm1", "elliprc",
    "elliprd", "elliprf", "elliprg", "elliprj"]

# ---- integrals of Carlson --------------------------------------------------------------------


_TIMES = np.exp(0.5 * np.arange(-120, 34))


def _slope_by_quadrature(x, y, z, p):
    """Differentiate elliprj in x, by the trapezoidal rule in the logarithm of the variable t.

    The integral of -3/4 (t + x)**(-3/2) ((t + y) (t + z))**(-1/2) / (t + p).
    """
    scale = np.abs(x) + np.abs(y) + np.abs(z) + np.abs(p)
    x, y, z, p = [np.expand_dims(u / scale, -1) + _TIMES for u in (x, y, z, p)]
    total = np.sum(_TIMES / (np.sqrt(x * y * z) * x * p), -1)
    return -0.375 * total / (np.sqrt(scale) * scale * scale)


def _slope(difference, x, y, z, p):
    """Return a quotient of a difference by p - x, by quadrature where x is near p."""
    is_near = np.abs(p - x) < 0.005 * np.abs(p + x)
    found = difference / np.where(is_near, 1, p - x)
    if isinstance(is_near, (np.ndarray, np.bool_)):
        if np.any(is_near):
            is_near = np.broadcast_to(is_near, np.shape(found))
            found = np.array(found)
            found[is_near] = _slope_by_quadrature(*[
                np.broadcast_to(operand, found.shape)[is_near] for operand in (x, y, z, p)])
        return found
    return np.where(is_near, _slope_by_quadrature(
        *[np.where(is_near, operand, 1) for operand in (x, y, z, p)]), found)


def _times(x, slope):
    """Return x times a derivative in x, 0 for x = 0, where it is infinite."""
    is_0 = x == 0
    return x * np.where(is_0, 1, slope)


def _by_kernel(kernel, formulas):
    """Return a function that differentiates real arrays by a kernel, others by formulas."""
    def slopes(r, *operands):
        if isinstance(r, (np.ndarray, np.generic)) and r.dtype.kind == "f":
            return kernel(r, *operands)
        return formulas(r, *operands)
    return slopes


def _rd_formulas(r, x, y, z):
    """Differentiate elliprd, in z by homogeneity of degree -3/2."""
    in_x = _slope(0.5 * (r - elliprd(y, z, x)), x, y, z, z)
    in_y = _slope(0.5 * (r - elliprd(x, z, y)), y, x, z, z)
    return in_x, in_y, -(1.5 * r + _times(x, in_x) + _times(y, in_y)) / z


_rf_slopes = _by_kernel(
    elliprf_slopes,
    lambda r, x, y, z: (-elliprd(y, z, x) / 6, -elliprd(x, z, y) / 6, -elliprd(x, y, z) / 6))


def _rg_slopes(r, x, y, z):
    f = elliprf(x, y, z)
    return [f / 4 + 0.5 * _times(operand, slope) for operand, slope in zip(
        (x, y, z), _rf_slopes(f, x, y, z), strict=True)]


elliprd = with_slopes(
    "ScipyElliprd", special.elliprd, _by_kernel(elliprd_slopes, _rd_formulas))
elliprf = with_slopes("ScipyElliprf", special.elliprf, _rf_slopes)
elliprg = with_slopes("ScipyElliprg", special.elliprg, _rg_slopes)

_RC = [(n + 1) * math.prod(range(1, 2 * n + 2, 2)) / (
    2**(n + 1) * math.factorial(n + 1) * (2 * n + 3)) for n in range(16)]


def _rc_in_first(r, x, y):
    """Differentiate elliprc in x, by a series in 1 - x / y where the closed form cancels."""
    u = 1 - x / y
    is_near = np.abs(u) < 0.1
    near = polynomial(np.where(is_near, u, 0), _RC) / np.where(is_near, y, 1)**1.5
    return np.where(
        is_near, -near, 0.5 * (r - 1 / np.sqrt(x)) / np.where(is_near, 1, y - x))


elliprc = elementwise(
    "ScipyElliprc", special.elliprc, _rc_in_first,
    lambda r, x, y: -(0.5 * r + _times(x, _rc_in_first(r, x, y))) / y)


def _rj_formulas(r, x, y, z, p):
    """Differentiate elliprj, in p by homogeneity of degree -3/2."""
    total, slopes = 1.5 * r, []
    for one, two, three in ((x, y, z), (y, x, z), (z, x, y)):
        slopes.append(_slope(0.5 * (r - elliprd(two, three, one)), one, two, three, p))
        total = total + _times(one, slopes[-1])
    return *slopes, -total / p


elliprj = with_slopes(
    "ScipyElliprj", special.elliprj, _by_kernel(elliprj_slopes, _rj_formulas))

# ---- integrals of Legendre -------------------------------------------------------------------

_COEFFICIENTS = [(math.comb(2 * k, k) / 4**k)**2 for k in range(8)]
_K = [math.pi / 2 * k * a for k, a in enumerate(_COEFFICIENTS)][1:]
_E = [-math.pi / 2 * k / (2 * k - 1) * a for k, a in enumerate(_COEFFICIENTS)][1:]


def _near_or_away(m, series, away):
    """Return a polynomial for m near 0, where the closed form, a quotient by m, cancels."""
    is_near = np.abs(m) < 0.01
    return np.where(
        is_near, polynomial(np.where(is_near, m, 0), series), away / np.where(is_near, 1, m))


def _k_in_parameter(k, m):
    return _near_or_away(m, _K, 0.5 * (ellipe(m) / (1 - m) - k))


def _e_in_parameter(e, m):
    return _near_or_away(m, _E, 0.5 * (e - ellipk(m)))


ellipk = elementwise("ScipyEllipk", special.ellipk, _k_in_parameter)
ellipkm1 = elementwise(
    "ScipyEllipkm1", special.ellipkm1,
    lambda k, p: -_near_or_away(1 - p, _K, 0.5 * (ellipe(1 - p) / p - k)))
ellipe = elementwise("ScipyEllipe", special.ellipe, _e_in_parameter)


def _squares(phi, m):
    """Return sin(phi) within half a turn, its cube and 1 - m sin(phi)**2; the half turns."""
    turns = np.rint(phi / math.pi)
    sine = np.sin(phi) * np.cos(math.pi * turns)
    cosine = np.cos(phi)
    return turns, sine * sine * sine, cosine * cosine, cosine * cosine + (1 - m) * sine * sine


def _f_in_parameter(phi, m):
    turns, cube, cosine, delta = _squares(phi, m)
    m = np.where(turns == 0, 0, m)
    return cube * elliprd(cosine, 1, delta) / 6 + 2 * turns * _k_in_parameter(ellipk(m), m)


def _e_in_its_parameter(phi, m):
    turns, cube, cosine, delta = _squares(phi, m)
    m = np.where(turns == 0, 0, m)
    return 2 * turns * _e_in_parameter(ellipe(m), m) - cube * elliprd(cosine, delta, 1) / 6


ellipkinc = elementwise(
    "ScipyEllipkinc", special.ellipkinc,
    lambda y, phi, m: inside(m <= 1, 1 / np.sqrt(_squares(phi, m)[3])),
    lambda y, phi, m: inside(m <= 1, _f_in_parameter(phi, m)))
ellipeinc = elementwise(
    "ScipyEllipeinc", special.ellipeinc,
    lambda y, phi, m: inside(m <= 1, np.sqrt(_squares(phi, m)[3])),
    lambda y, phi, m: inside(m <= 1, _e_in_its_parameter(phi, m)))


def _jacobi_in_parameter(y, u, m):
    sn, cn, dn, ph = y
    slope = -dn * _f_in_parameter(ph, m)
    return cn * slope, -sn * slope, -sn * (0.5 * sn + m * cn * slope) / dn, slope


ellipj = several(
    "ScipyEllipj", special.ellipj,
    lambda y, u, m: (y[1] * y[2], -y[0] * y[2], -m * y[0] * y[1], y[2]), _jacobi_in_parameter)

# ---- the mean --------------------------------------------------------------------------------


def _mean_in_larger(y, larger, smaller):
    m = (1 - smaller / larger) * (1 + smaller / larger)
    y = np.where(smaller == 0, larger, y)
    k = math.pi / 2 * larger / y
    slope = -4 / math.pi * np.square(y / larger) * _near_or_away(m, _E, 0.5 * (ellipe(m) - k))
    return np.where(smaller == 0, 0 * larger / larger, slope)


def _mean_slopes(y, a, b):
    """Differentiate in the larger operand; in the smaller one by homogeneity of degree 1."""
    a, b, y = np.abs(a), np.abs(b), np.abs(y)
    is_larger = a >= b  # not by the maximum, whose derivative at equal operands is a mean
    larger, smaller = np.where(is_larger, a, b), np.where(is_larger, b, a)
    in_larger = _mean_in_larger(y, larger, smaller)
    in_smaller = (y + larger * np.where(smaller == 0, 1, -in_larger)) / smaller
    return np.where(is_larger, in_larger, in_smaller), np.where(is_larger, in_smaller, in_larger)


agm = with_slopes("ScipyAgm", special.agm, _by_kernel(
    lambda y, a, b: agm_slopes(a, b), _mean_slopes))
