"""Spherical Bessel functions (DLMF 10.47) and spherical harmonics (DLMF 14.30)."""

from typing import Any

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops import joining
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.shape_parameters import no_partial, no_partials, real_order, whole_numbers

__all__ = ["sph_harm_y", "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn"]


def _spherical(letter, below, above):
    """Declare a function and its derivative, that of orders n - 1 and n + 1 (DLMF 10.51.2)."""
    function = getattr(special, f"spherical_{letter}n")
    refusal = no_partial(f"spherical_{letter}n", "n")

    def recur(_, n, z):
        n = np.trunc(real_order(n))
        lower = slope(np.maximum(n - 1, 0), z)
        return (below * n * lower + above * (n + 1) * slope(n + 1, z)) / (2 * n + 1)

    name = f"ScipySpherical{letter.upper()}n"
    slope = elementwise(
        f"{name}Slope", lambda n, z: function(whole_numbers(n), z, derivative=True), refusal, recur)
    value = elementwise(
        name, lambda n, z: function(whole_numbers(n), z), refusal,
        lambda _, n, z: slope(real_order(n), z))
    return value, slope


_JN, _YN, _IN, _KN = (_spherical(*signs) for signs in (
    ("j", 1, -1), ("y", 1, -1), ("i", 1, 1), ("k", -1, -1)))


def spherical_jn(n, z, derivative=False) -> Any:
    """Return the spherical Bessel function of the first kind, as `scipy.special.spherical_jn`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import spherical_jn
    >>> cytape.grad(lambda z: spherical_jn(2, z))(1.5) == spherical_jn(2, 1.5, derivative=True)
    np.True_
    """
    return _JN[bool(derivative)](n, z)


def spherical_yn(n, z, derivative=False) -> Any:
    """Return the spherical Bessel function of the second kind, as `scipy.special.spherical_yn`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import spherical_yn
    >>> cytape.grad(lambda z: spherical_yn(2, z))(1.5) == spherical_yn(2, 1.5, derivative=True)
    np.True_
    """
    return _YN[bool(derivative)](n, z)


def spherical_in(n, z, derivative=False) -> Any:
    """Return the modified spherical Bessel function, as `scipy.special.spherical_in`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import spherical_in
    >>> cytape.grad(lambda z: spherical_in(2, z))(1.5) == spherical_in(2, 1.5, derivative=True)
    np.True_
    """
    return _IN[bool(derivative)](n, z)


def spherical_kn(n, z, derivative=False) -> Any:
    """Return the modified spherical function of the second kind, as `scipy.special.spherical_kn`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import spherical_kn
    >>> cytape.grad(lambda z: spherical_kn(2, z))(1.5) == spherical_kn(2, 1.5, derivative=True)
    np.True_
    """
    return _KN[bool(derivative)](n, z)


def _in_theta(function, n, m, theta):
    """Differentiate Legendre functions in the polar angle, by the orders m - 1 and m + 1."""
    n, m = 1.0 * real_order(n), 1.0 * real_order(m)  # small integers would overflow
    theta = real_order(theta)
    # Functions of |m| > n are 0, and so are their derivatives.
    above = np.sqrt(np.maximum((n - m) * (n + m + 1), 0))
    below = np.sqrt(np.maximum((n + m) * (n - m + 1), 0))
    return 0.5 * (above * function(n, m + 1, theta) - below * function(n, m - 1, theta))


def _legendre_in_theta(n, m, theta):
    return _in_theta(_legendre, n, m, theta)


def _turn(m, phi):
    return np.exp(1j * (real_order(m) * real_order(phi)))


_legendre = elementwise(
    "ScipySphLegendreP",
    lambda n, m, theta: special.sph_legendre_p(
        whole_numbers(n), whole_numbers(m), real_order(theta))[0],
    *no_partials("sph_legendre_p", "n", "m"), lambda y, *given: _legendre_in_theta(*given))
_harmonic = elementwise(
    "ScipySphHarmY",
    lambda n, m, theta, phi: special.sph_harm_y(
        whole_numbers(n), whole_numbers(m), real_order(theta), real_order(phi)),
    *no_partials("sph_harm_y", "n", "m"),
    lambda y, n, m, theta, phi: _turn(m, phi) * _legendre_in_theta(n, m, theta),
    lambda y, n, m, theta, phi: 1j * m * y)


def sph_harm_y(n, m, theta, phi, *, diff_n=0) -> Any:
    """Return spherical harmonics, as `scipy.special.sph_harm_y`, differentiable in the angles.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import sph_harm_y
    >>> y, gradient = sph_harm_y(2, 1, cytape.constant(0.5), 0.3, diff_n=1)
    >>> gradient.shape
    (2,)
    """
    theta, phi = together(joined(theta), joined(phi))
    if not (is_tensor(theta) or is_tensor(phi)):
        return special.sph_harm_y(n, m, theta, phi, diff_n=diff_n)
    n, m = (np.asarray(x) if isinstance(x, (list, tuple)) else x for x in (n, m))
    y = _harmonic(n, m, theta, phi)
    if diff_n == 0:
        return y
    if diff_n not in (1, 2):
        raise ValueError(
            f"diff_n is currently only implemented for orders 0, 1, and 2, received: {diff_n}.")
    turn = _turn(m, phi)
    in_theta, in_phi = turn * _legendre_in_theta(n, m, theta), 1j * m * y
    gradient = joining.stack([in_theta, in_phi], -1)
    if diff_n == 1:
        return y, gradient
    mixed = 1j * m * in_theta
    twice = turn * _in_theta(_legendre_in_theta, n, m, theta)
    return y, gradient, joining.stack([
        joining.stack([twice, mixed], -1), joining.stack([mixed, 1j * m * in_phi], -1)], -1)
