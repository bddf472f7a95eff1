"""Quotients of gamma functions, and counts that they extend to real numbers (DLMF 5.2 and 26.3)."""

import math
from typing import Any

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.comparisons import floor, rint
from cytape.ops.elementwise import power, sinc, where
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.digamma_functions import psi, psi_step
from cytape.ops.special.elementary_functions import inside
from cytape.ops.special.gamma_functions import gamma, rgamma, rgamma_partial
from cytape.ops.special.several_outputs import with_slopes

__all__ = [
    "binom", "comb", "diric", "factorial", "factorial2", "lambertw", "loggamma", "perm", "poch"]

loggamma = elementwise(
    "ScipyLoggamma", special.loggamma, lambda y, x: inside(y == y, psi(x)))
poch = elementwise(
    "ScipyPoch", special.poch,
    lambda y, z, m: y * psi_step(z, m), lambda y, z, m: y * psi(z + m))


def _is_pole(x):
    return (x <= 0) & (x == np.floor(x))


def _binom_in_n(y, n, k):
    """Differentiate binom; at its zeros by the reciprocal of gamma, to all orders."""
    rest = n - k + 1
    is_zero = _is_pole(rest)
    n_zero, k_zero, zero = [np.where(is_zero, x, 1) for x in (n, k, rest)]
    return np.where(
        is_zero, gamma(n_zero + 1) * rgamma(k_zero + 1) * (
            psi(n_zero + 1) * rgamma(zero) + rgamma_partial(rgamma(zero), zero)),
        y * psi_step(np.where(is_zero, 1, rest), np.where(is_zero, 1, k)))


def _binom_in_k(y, n, k):
    rest = n - k + 1
    is_zero = _is_pole(rest) | _is_pole(k + 1)
    n_zero, low, zero = [np.where(is_zero, x, 1) for x in (n, k + 1, rest)]
    return np.where(
        is_zero, gamma(n_zero + 1) * (
            rgamma(zero) * rgamma_partial(rgamma(low), low)
            - rgamma(low) * rgamma_partial(rgamma(zero), zero)),
        y * psi_step(np.where(is_zero, 1, k + 1), np.where(is_zero, 1, n - 2 * k)))


def _binom_slopes(y, n, k):
    rest = n - k + 1
    if isinstance(y, (np.ndarray, np.generic)) and np.all((rest > 0) & (k > -1)):  # no poles
        return y * psi_step(rest, k), y * psi_step(k + 1, n - 2 * k)
    return _binom_in_n(y, n, k), _binom_in_k(y, n, k)


binom = with_slopes("ScipyBinom", special.binom, _binom_slopes)

_lambertw = elementwise(
    "ScipyLambertw", lambda z, k, tol: special.lambertw(z, np.real(k), np.real(tol)),
    lambda w, *_: np.exp(-w) / (1 + w), None, None)


def lambertw(z, k=0, tol=1e-8) -> Any:
    """Return a branch of Lambert's function, complex, as `scipy.special.lambertw`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.special import lambertw
    >>> cytape.grad(lambda z: np.real(lambertw(z)))(0.0)
    np.float64(1.0)
    """
    return _lambertw(z, k, tol)


def _of_counts(function, N, k):
    """Return a function of counts, 0 where there are none; its arguments are replaced there."""
    exist = (k <= N) & (N >= 0) & (k >= 0)
    return where(exist, function(where(exist, N, 1), where(exist, k, 1)), 0)


def comb(N, k, *, exact=False, repetition=False) -> Any:
    """Return the number of combinations, as `scipy.special.comb`.

    Tensors are taken with ``exact=False``; the derivative is that of `binom`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import comb
    >>> cytape.grad(comb)(4.0, 1).round(12)
    np.float64(1.0)
    """
    N, k = joined(N), joined(k)
    if exact or not (is_tensor(N) or is_tensor(k)):
        return special.comb(N, k, exact=exact, repetition=repetition)
    if repetition:
        return comb(N + k - 1, k)
    return _of_counts(binom, N, k)


def perm(N, k, exact=False) -> Any:
    """Return the number of partial permutations, as `scipy.special.perm`.

    Tensors are taken with ``exact=False``; the derivative is that of `poch`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import perm
    >>> cytape.grad(perm)(4.0, 1).round(12)
    np.float64(1.0)
    """
    N, k = joined(N), joined(k)
    if exact or not (is_tensor(N) or is_tensor(k)):
        return special.perm(N, k, exact=exact)
    return _of_counts(lambda N, k: poch(N - k + 1, k), N, k)


def factorial(n, exact=False, extend="zero") -> Any:
    """Return the factorial, as `scipy.special.factorial`.

    Tensors are taken with ``exact=False``; the derivative is that of ``gamma(n + 1)``.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import factorial
    >>> cytape.grad(factorial)(1.0).round(12)
    np.float64(0.422784335098)
    """
    n = joined(n)
    if exact or extend != "zero" or not is_tensor(n):
        return special.factorial(n, exact=exact, extend=extend)
    return where(n < 0, 0, gamma(where(n < 0, 0, n) + 1))


def factorial2(n, exact=False, extend="zero") -> Any:
    """Return the double factorial, as `scipy.special.factorial2`.

    Tensors are taken with ``exact=False`` and ``extend="complex"``.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import factorial2
    >>> cytape.grad(lambda n: factorial2(n, extend="complex"))(2.0).round(12)
    np.float64(0.890384527257)
    """
    n = joined(n)
    if not is_tensor(n):
        return special.factorial2(n, exact=exact, extend=extend)
    if exact or extend != "complex":
        raise ValueError(
            "scipy.special.factorial2 takes tensors with exact=False and extend='complex' only, "
            f"got exact={exact!r} and extend={extend!r}")
    return power(2.0, n / 2) * gamma(n / 2 + 1) * math.sqrt(2 / math.pi)


def diric(x, n) -> Any:
    """Return the periodic sinc function, as `scipy.special.diric`; n has no derivative.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import diric
    >>> cytape.grad(diric)(3.141592653589793, 2).round(12)
    np.float64(-0.5)
    """
    x, n = joined(x), joined(n)
    if not (is_tensor(x) or is_tensor(n)):
        return special.diric(x, n)
    whole, x = floor(n), x / (2 * math.pi)
    turns = rint(x)  # the rest is at most a half, where no sinc vanishes
    sign = 1 - 2 * (turns * (whole - 1) % 2)
    value = sign * sinc(whole * (x - turns)) / sinc(x - turns)
    return where((n > 0) & (whole == n), value, np.nan)
