"""Digamma, polygamma and zeta functions (DLMF 5.2, 5.15 and 25)."""

import math
from typing import Any

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
import cytape.ops.special_kernels.stirling as stirling
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.shape_parameters import no_partial
from cytape.ops.special_kernels.zeta_sums import zeta_derivative

__all__ = ["digamma", "polygamma", "psi", "zeta", "zetac"]


def _polygamma(n, x):
    """Return the n-th derivative of `digamma`, as SciPy, which computes psi for all n."""
    if np.any(np.equal(n, 0)):
        y = special.polygamma(n, x)
    else:
        order = np.asarray(n) + 1
        y = (-1.0)**order * special.gamma(1.0 * order) * special.zeta(order, x)
    return np.asarray(y, np.result_type(n, x, 0.0))  # SciPy's is float64


def _precise_psi(x):
    """Return psi, left of 0 by reflection (DLMF 5.5.4), for more digits near poles than SciPy's."""
    y = special.psi(x)
    if np.iscomplexobj(x) or not np.any(x < 0):
        return y
    remainder = x - np.rint(x)
    is_left = (x < 0) & (remainder != 0)
    return np.where(is_left, special.psi(1 - x) - math.pi / np.tan(
        math.pi * np.where(is_left, remainder, 0.5)), y)


_trigamma_op = elementwise("ScipyTrigamma", stirling.polygamma_1, lambda y, x: polygamma(2, x))
precise_psi = elementwise("ScipyPrecisePsi", _precise_psi, lambda y, x: _trigamma_op(x))
psi = digamma = elementwise("ScipyPsi", special.psi, lambda y, x: _trigamma_op(x))
polygamma = elementwise(
    "ScipyPolygamma", _polygamma, no_partial("polygamma", "n"),
    lambda y, n, x: polygamma(n + 1, x))
psi_step = elementwise(
    "ScipyPsiStep", stirling.psi_step, lambda y, a, b: polygamma(1, a + b) - polygamma(1, a),
    lambda y, a, b: _trigamma_op(a + b))

# ---- zeta functions --------------------------------------------------------------------------


_zeta_derivative = elementwise(
    "ScipyZetaDerivative", zeta_derivative, None,
    lambda y, k, s, q: _zeta_derivative(k + 1, s, q),
    lambda y, k, s, q: -k * _zeta_derivative(k - 1, s + 1, q) - s * _zeta_derivative(k, s + 1, q))


def _riemann_slope(s):
    """Differentiate Riemann's zeta function, by its functional equation left of -1.

    See DLMF 25.4.1. The pole of zeta at 1 would cancel in it near 0.
    """
    is_left = s < -1
    if not is_tensor(is_left) and not np.any(is_left):
        return _zeta_derivative(1, s, 1)
    t = np.where(is_left, 1 - s, s)
    slope = _zeta_derivative(1, t, 1)
    one = np.where(is_left, t, 2)
    angle = 0.5 * math.pi * np.where(is_left, s, 0)
    sine, cosine = np.sin(angle), np.cos(angle)
    reflected = 2 * np.exp(special.gammaln(one) - math.log(2 * math.pi) * one) * (
        _riemann(one) * (0.5 * math.pi * cosine + sine * (math.log(2 * math.pi) - psi(one)))
        - sine * slope)
    return np.where(is_left, reflected, slope)


_riemann = elementwise(
    "ScipyRiemannZeta", lambda x: special.zeta(x), lambda y, x: _riemann_slope(x))
zetac = elementwise("ScipyZetac", special.zetac, lambda y, x: _riemann_slope(x))


def _in_domain(x):
    """Return x, or NaN where it is below 1, as is SciPy's value; a product, for all orders."""
    return x * np.where(x < 1, np.nan, np.ones_like(x))


_hurwitz = elementwise(
    "ScipyHurwitzZeta", lambda x, q: special.zeta(x, q),
    lambda y, x, q: _zeta_derivative(1, _in_domain(x), q),
    lambda y, x, q: -x * _hurwitz(_in_domain(x) + 1, q))


def zeta(x, q=None) -> Any:
    """Return the zeta function of Riemann, or of Hurwitz, as `scipy.special.zeta`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import zeta
    >>> cytape.grad(zeta)(2.0).round(12)
    np.float64(-0.937548254316)
    """
    x, q = joined(x), joined(q)
    if not (is_tensor(x) or is_tensor(q)):
        return special.zeta(x, q)
    return _riemann(x) if q is None else _hurwitz(x, q)
