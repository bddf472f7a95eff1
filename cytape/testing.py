"""Checks of gradients against numerical derivatives, for cytape's own ops and for users' functions.

Numerical derivatives are taken in double precision, whatever the precision of the arguments, by
central differences over five points: their error is about 1e-10 of a smooth function of size one.
The inner product of complex arrays that is used throughout is the real part of `conj(a) * b`; in it
the gradient convention of cytape is that of an adjoint.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cytape.autodiff.forward_functional import jvp
from cytape.autodiff.functional import vjp
from cytape.autodiff.gradient_tape import GradientTape
from cytape.errors import UnconnectedGradientWarning
from cytape.tensor import nest
from cytape.tensor.names_elsewhere import advising
from cytape.tensor.structures import leaves_of_operand
from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable

__all__ = ["check_grads", "numerical_grad", "numerical_jvp"]

# Tolerances of derivatives, relative and absolute, by item size of the argument's real dtype.
_TOLERANCES = {2: (3e-2, 3e-2), 4: (1e-4, 1e-4), 8: (1e-6, 1e-7)}
_ADVICE = (
    "Differences are wrong near a kink, such as that of abs: keep twice `step` away.\n"
    "A derivative lacks a part if the function returns a result that it stored before.")


def __dir__() -> list[str]:
    return __all__


@advising
def check_grads(
    f: Callable,
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("forward", "reverse"),
    rtol: float | None = None,
    atol: float | None = None,
    step: float = 1e-3,
) -> None:
    """Compare the derivatives of a function with numerical ones, in a random direction.

    Each floating point array among the arguments is varied on its own; other arguments, integers
    included, are held fixed.

    Parameters
    ----------
    f : callable
        Takes and returns arrays or structures of them.
    args : sequence of array_like or structure of array_like
        Where to check: arrays, or dicts, lists, dataclasses and whatever else the transforms take.
        A list of numbers is one array, unlike in `grad`. Keep twice `step` away from kinks.
    order : int
        Up to which order of derivatives to check: at the second, each mode over each mode.
    modes : sequence of {"forward", "reverse"}
        Which modes of differentiation to check.
    rtol, atol : float, optional
        Tolerances, by default according to the dtype of the argument. They apply to the inner
        product of a random direction and the derivative; `rtol` is relative to its largest terms.
    step : float
        Step of the central differences.

    Raises
    ------
    AssertionError
        If a derivative is wrong, or a gradient's shape or dtype is not its argument's.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> from cytape.testing import check_grads
    >>> check_grads(lambda x, y: np.tanh(x) @ y, [np.ones((2, 3)), np.ones(3)])
    >>> check_grads(lambda p, x: p["w"] @ x + p["b"], [{"w": np.eye(3), "b": 1.0}, np.ones(3)])
    >>> @cytape.custom_gradient
    ... def wrong(x):
    ...     return np.sin(x), lambda g: g * np.sin(x)
    >>> check_grads(wrong, [0.5])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    AssertionError: forward mode, argument 0: ...
    """
    unknown = set(modes) - {"forward", "reverse"}
    if unknown:
        raise ValueError(f"modes must be among 'forward' and 'reverse', got {sorted(unknown)}")
    if not isinstance(args, Sequence):
        raise TypeError(
            f"args must be a list of the arguments of f, got {type(args).__name__}: write "
            "check_grads(f, [x])")
    args = [arg if (array := _array_of_numbers(arg)) is None else array for arg in args]
    leaves, places = list(map(_leaf, leaves_of_operand(args))), nest.paths(args, "args")
    positions = [i for i, leaf in enumerate(leaves)
                 if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc"]
    if not positions:
        raise ValueError(
            "none of the arguments is of a floating point or complex dtype: write 1.0, not 1")
    for i in positions:
        relative, absolute = _TOLERANCES[min(8, np.finfo(leaves[i].dtype).dtype.itemsize)]
        check = _Check(
            relative if rtol is None else rtol, absolute if atol is None else atol, step, modes,
            places[i].removeprefix("args[").replace("]", "", 1),
        )
        with warnings.catch_warnings():
            # The check itself compares zero derivatives.
            warnings.simplefilter("ignore", UnconnectedGradientWarning)
            check.run(_of_leaf(f, args, leaves, i), leaves[i], order, [])


def _array_of_numbers(x: Any) -> np.ndarray | None:
    """Return a number, or lists of numbers of equal lengths, as an array; None for others."""
    try:
        array = np.asarray(x) if _is_list_of_numbers(x) else None
    except ValueError:  # lists of different lengths
        return None
    return array


def _is_list_of_numbers(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return all(map(_is_list_of_numbers, x))
    return isinstance(x, (int, float, complex, np.number))


def _leaf(x: Any) -> Any:
    """Return numbers as an array, other objects unchanged."""
    array = np.asarray(_to_array(x))
    return array if array.dtype.kind in "biufc" else x


def _of_leaf(f, args, leaves, position):
    """Return a function of one leaf of the arguments."""
    return lambda x: f(*nest.pack_sequence_as(
        args, [*leaves[:position], x, *leaves[position + 1 :]]))


@dataclass
class _Check:
    """Common data of the checks of one argument."""

    rtol: float
    atol: float
    step: float
    modes: Sequence[str]
    argument: str

    def run(self, f, x, order, inner_modes):
        """Check `f`, a derivative by `inner_modes`, up to an order."""
        derivatives, failures = {}, []
        for mode in self.modes if order else ():
            derivative = self._forward if mode == "forward" else self._reverse
            label = " over ".join([mode, *inner_modes]) + f" mode, argument {self.argument}"
            # Different directions per order, or errors of a Hessian could cancel; and not the seed
            # 0, which may have been used to draw x.
            rng = np.random.default_rng([7919, len(inner_modes)])
            try:
                derivatives[mode] = derivative(f, x, label, *_random_directions(rng, f, x))
            except AssertionError as failure:  # the rule of one mode may be derived from the other
                failures.append(str(failure))
        if failures:
            advice = [_ADVICE] * any(["differences" in failure for failure in failures])
            raise AssertionError("\n".join(failures + advice))
        for mode, found in derivatives.items():
            self.run(found, x, order - 1, [mode, *inner_modes])

    def _forward(self, f, x, label, direction, cotangents):
        """Check the JVP of `f` at `x`; return the function that computes it."""
        value, tangents = jvp(f, (x,), (direction,))
        for y, tangent in zip(nest.flatten(value), nest.flatten(tangents), strict=True):
            _require_like(f"{label}: the tangent", tangent, "the value", y)
        self._compare(f, x, direction, cotangents, _products(cotangents, tangents), label)
        return lambda x: jvp(f, (x,), (direction,))[1]

    def _reverse(self, f, x, label, direction, cotangents):
        """Check the gradient of `f` at `x`; return the function that computes it."""
        (gradient,) = vjp(f, x)[1](cotangents)
        _require_like(f"{label}: the gradient", gradient, "the argument", x)
        self._compare(f, x, direction, cotangents, _products(gradient, direction), label)
        with GradientTape():  # so that ops with backward passes in C call their transposes
            (recorded,) = vjp(f, x)[1](cotangents)
        allowed = self.atol + self.rtol * np.max(np.abs(_to_array(gradient)), initial=0)
        if not np.allclose(_to_array(recorded), _to_array(gradient), 0, allowed, equal_nan=True):
            raise AssertionError(
                f"{label}: where the gradient is recorded, for a higher order, it is {recorded}, "
                f"elsewhere {gradient}"
            )
        return lambda x: vjp(f, x)[1](cotangents)[0]

    def _compare(self, f, x, direction, cotangents, actual, label):
        """Compare terms of a derivative in one direction with numerical ones."""
        expected = _products(cotangents, numerical_jvp(f, [x], [direction], self.step))
        scale = max(map(abs, expected + actual), default=0.0)
        allowed = self.atol + self.rtol * scale
        error = abs(sum(expected) - sum(actual))
        if not error <= allowed:
            raise AssertionError(
                f"{label}: the derivative in a random direction is {sum(actual):.10g}, "
                f"by central differences {sum(expected):.10g} "
                f"(off by {error:.2g}, allowed are {allowed:.2g})"
            )


def _random_directions(rng, f, x):
    """Return a random direction for `x`, and weights for the outputs of `f`."""
    weights = nest.map_structure(lambda y: _random_like(rng, np.asarray(_to_array(y))), f(x))
    return _random_like(rng, x), weights


def _require_like(name, derivative, what, x):
    if derivative.shape != x.shape or derivative.dtype != x.dtype:
        raise AssertionError(
            f"{name} is {derivative.dtype}{derivative.shape}, {what} {x.dtype}{x.shape}"
        )


def _products(a, b):
    """List the terms of the inner product of two structures of arrays."""
    return sum(map(_inner_terms, nest.flatten(a), nest.flatten(b)), [])


def numerical_jvp(
    f: Callable, args: Sequence[Any], tangents: Sequence[Any], step: float = 1e-3
) -> Any:
    """Differentiate a function numerically, in one direction.

    Parameters
    ----------
    f : callable
        Takes arrays and returns an array or a structure of them.
    args : sequence of array_like
        Where to differentiate.
    tangents : sequence of array_like or None
        The direction, one part for each argument; None for an argument that does not move.
    step : float
        By how much of the direction to move.

    Returns
    -------
    ndarray or structure of ndarray
        Like the function's value.

    Examples
    --------
    >>> from cytape.testing import numerical_jvp
    >>> round(float(numerical_jvp(lambda x, y: x * y, [2.0, 3.0], [1.0, 10.0])), 6)
    23.0
    """

    def moved(n):
        value = f(
            *[
                x if t is None else _in_double_precision(x) + n * step * _in_double_precision(t)
                for x, t in zip(args, tangents, strict=True)
            ]
        )
        # Copies: the function may fill one buffer in each call.
        return nest.map_structure(lambda x: np.array(_in_double_precision(x)), value)

    return nest.map_structure(
        lambda ahead2, ahead, behind, behind2: (
            (8 * (ahead - behind) - (ahead2 - behind2)) / (12 * step)
        ),
        moved(2), moved(1), moved(-1), moved(-2),
    )  # fmt: skip


def numerical_grad(f: Callable, x: Any, step: float = 1e-3) -> np.ndarray:
    """Differentiate a real scalar function numerically, with respect to every element of an array.

    Parameters
    ----------
    f : callable
        Takes an array and returns a real number.
    x : array_like
        Where to differentiate.
    step : float
        Step of the central differences.

    Returns
    -------
    ndarray
        Of the shape of `x`. Where `x` is complex, the derivative along the real axis plus 1j times
        that along the imaginary one.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape.testing import numerical_grad
    >>> numerical_grad(lambda x: (x**2).sum(), np.array([1.0, -2.0])).round(6)
    array([ 2., -4.])
    """
    x = _in_double_precision(x)
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        for unit in (1, 1j) if x.dtype.kind == "c" else (1,):
            direction = np.zeros_like(x)
            direction[index] = unit
            gradient[index] += unit * numerical_jvp(f, [x], [direction], step)
    return gradient


def _to_array(x):
    return x.numpy() if isinstance(x, (Tensor, Variable)) else x


def _in_double_precision(x):
    x = np.asarray(_to_array(x))
    if x.dtype.kind not in "fc":
        return x
    return x.astype(np.result_type(x.dtype, np.float64), copy=False)


def _random_like(rng, x):
    values = rng.normal(size=x.shape)
    if x.dtype.kind == "c":
        values = values + 1j * rng.normal(size=x.shape)
    return np.asarray(values, x.dtype)


def _inner_terms(a, b):
    """List the terms of the inner product of two arrays."""
    return np.real(np.conj(_in_double_precision(a)) * b).ravel().tolist()
