"""Comparisons of derivatives with mpmath's: the record of a function, and points by chance.

A tolerance above 1e-10 has a reason: SciPy's own values have that error, or the derivative is a
difference that cancels at some of the points.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Related:
    """Function of which a derivative of an order is the derivative of an output."""

    function: Callable
    order: int


def with_derivative(function):
    """Return the reference of an output whose derivative is a known function."""
    return Related(function, 0)


def slope(function):
    """Return the reference of an output that is the derivative of a function."""
    return Related(function, 2)


def with_slope(function):
    """Return the references of a function and of its derivative, two outputs."""
    return [function, slope(function)]


@dataclass(frozen=True)
class Check:
    """Reference of one function, a list of them for several outputs (None: not checked)."""

    reference: Callable | list
    samples: tuple | Callable  # per argument, or of all, a function of a generator and a number
    places: tuple  # arguments with a derivative
    tolerance: float = 1e-10
    reason: str = ""
    keywords: dict = field(default_factory=dict)  # of the function
    call: Callable | None = None  # of the arguments, if not the function of the record's name


def check(reference, *samples, places=None, joint=False, tolerance=1e-10, reason="", call=None,
          **keywords):
    """Return a record; the one sample of `joint` points draws a list of all arguments."""
    assert (tolerance == 1e-10) == (reason == "")
    places = tuple(range(len(samples))) if places is None else places
    return Check(reference, samples[0] if joint else samples, places, tolerance, reason, keywords,
                 call)


# ---- points ----------------------------------------------------------------------------------


def spread(low, high, near=(), nearest=1e-7):
    """Draw positive numbers of any size, a quarter of them near given points."""
    def draw(rng, n):
        x = np.exp(rng.uniform(np.log(low), np.log(high), n))
        return approach(rng, x, near, nearest)
    return draw


def signed(low, high, near=(), nearest=1e-7):
    def draw(rng, n):
        return approach(rng, spread(low, high)(rng, n) * rng.choice([-1, 1], n), near, nearest)
    return draw


def flat(low, high, near=(), nearest=1e-7):
    return lambda rng, n: approach(rng, rng.uniform(low, high, n), near, nearest)


def either(first, second):
    return lambda rng, n: np.where(rng.random(n) < 0.5, first(rng, n), second(rng, n))


def whole(low, high):
    return lambda rng, n: rng.integers(low, high + 1, n).astype(float)


def disc(low, high):
    """Draw complex numbers of any size and direction."""
    return lambda rng, n: spread(low, high)(rng, n) * np.exp(1j * rng.uniform(-3.1, 3.1, n))


def approach(rng, x, points, nearest=1e-7):
    """Move a quarter of the numbers near some points, poles say.

    Errors near zeros of oscillating functions are relative to the amplitude, as is the effect of
    the rounding of an argument: the nearest point is farther away there.
    """
    if len(points):
        distance = rng.choice([-1, 1], len(x)) * 10.0**rng.uniform(np.log10(nearest), -1, len(x))
        x = np.where(rng.random(len(x)) < 0.25, rng.choice(points, len(x)) + distance, x)
    return x
