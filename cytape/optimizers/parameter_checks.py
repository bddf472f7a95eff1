"""Checks of parameters and constants of optimizers."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from cytape.tensor import nest
from cytape.tensor.structures import leaves_of_operand
from cytape.tensor.variable import Variable

_FLOATS = ("float16", "float32", "float64")
_ADVICE = "Pass cytape.Variable objects, or arrays of NumPy, which are changed in place"


def named_parameters(parameters: Any) -> tuple[list[str], list[Any]]:
    """Return names and the leaves of parameters, which are checked."""
    leaves = leaves_of_operand(parameters)
    names = nest.paths(parameters, "", expand=False)
    if len(names) != len(leaves):  # objects of registered classes
        names = [f"[{i}]" for i in range(len(leaves))]
    if not leaves:
        raise ValueError("there are no parameters to update")
    for name, leaf in zip(names, leaves, strict=True):
        require_parameter(name, leaf)
    if len({id(leaf) for leaf in leaves}) < len(leaves):
        twice = [name for name, leaf in zip(names, leaves, strict=True)
                 if sum(leaf is other for other in leaves) > 1]
        raise ValueError(f"parameters {', '.join(twice)} are the same object: pass it once")
    return names, leaves


def require_number(name: str, value: Any) -> None:
    """Raise for a setting that is no real number."""
    if isinstance(value, (str, bytes)) or np.ndim(value) or not np.isrealobj(value) or (
            callable(value) or value is None):
        raise TypeError(f"{name} must be a number, got {value!r}")


def as_count(name: str, value: Any) -> int:
    """Return a number of steps that was saved, or raise for one below 0."""
    count = operator.index(np.asarray(value)[()])
    if count < 0:
        raise ValueError(f"the state has {count} {name}")
    return count


def checked(name: str, value: float, low: float, high: float) -> float:
    """Return a constant of a rule if it is at least `low` and below `high`."""
    require_number(name, value)
    if not low <= value < high:
        limit = "" if high == math.inf else f" and below {high:g}"
        raise ValueError(f"{name} must be at least {low:g}{limit}, got {value}")
    return float(value)


def require_parameter(name: str, leaf: Any) -> None:
    """Raise for an object that optimizers cannot change in place."""
    if not isinstance(leaf, Variable) and type(leaf) is not np.ndarray:
        raise TypeError(f"{called(name)} is a {type(leaf).__name__}, which cannot be changed. "
                        f"{_ADVICE}")
    if leaf.dtype.name not in _FLOATS or not leaf.dtype.isnative:
        advice = ": pass the real and the imaginary part" if leaf.dtype.kind == "c" else ""
        raise TypeError(f"{called(name)} has dtype {leaf.dtype}; optimizers take "
                        f"{', '.join(_FLOATS)}{advice}")
    if isinstance(leaf, np.ndarray) and not leaf.flags.writeable:
        raise ValueError(f"{called(name)} is a read-only array. {_ADVICE}")


def require_variables(names: list[str], leaves: list[Any]) -> None:
    """Raise for parameters of a graph that are arrays."""
    for name, leaf in zip(names, leaves, strict=True):
        if not isinstance(leaf, Variable):
            raise TypeError(
                f"{called(name)} is an array, which a graph keeps as a constant: in functions and "
                "graphs parameters must be cytape.Variable objects. Or call update outside")


def called(name: str) -> str:
    """Return how errors call a parameter."""
    return f"parameter {name}" if name else "the parameter"
