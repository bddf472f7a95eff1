"""Namespace of the array API standard: ``tensor.__array_namespace__()``.

The names are those of `cytape.numpy`. Functions that create arrays always make tensors here: code
of the standard computes with one type of arrays. `sort` and `argsort` take ``descending``.
"""

import importlib as _importlib
import sys as _sys
from collections.abc import Callable as _Callable
from functools import wraps as _wraps
from typing import Any as _Any

import cytape.numpy as _numpy
from cytape.tensor.making import convert_to_tensor as _convert_to_tensor
from cytape.tensor.making import from_dlpack as from_dlpack


def _tensors(name: str) -> _Callable[..., _Any]:
    function = getattr(_numpy, name)

    @_wraps(function)
    def make(*args: _Any, **options: _Any) -> _Any:
        return _convert_to_tensor(function(*args, **options))

    return make


arange, empty, eye, full, linspace, nextafter, ones, zeros = map(_tensors, (
    "arange", "empty", "eye", "full", "linspace", "nextafter", "ones", "zeros"))


def asarray(obj: _Any, /, **options: _Any) -> _Any:
    """Return a tensor, with the options of `numpy.asarray`."""
    return _numpy.asarray(_convert_to_tensor(obj), **options)


def sort(x: _Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> _Any:
    """Return a sorted copy, as `numpy.sort`; the largest elements first if ``descending``."""
    result = _numpy.sort(x, axis=axis, stable=stable)
    return _numpy.flip(result, axis=axis) if descending else result


def argsort(x: _Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> _Any:
    """Return the indices of `sort`; equal elements keep their order."""
    if not descending:
        return _numpy.argsort(x, axis=axis, stable=stable)
    result = _numpy.argsort(_numpy.flip(x, axis=axis), axis=axis, stable=stable)
    return _numpy.flip(_numpy.size(x, axis) - 1 - result, axis=axis)


def __getattr__(name: str) -> _Any:
    if name == "special" and "scipy" in _sys.modules:  # functions of scipy.special look here
        return _importlib.import_module("cytape.ops.special")
    return getattr(_numpy, name)


def __dir__() -> list[str]:
    return dir(_numpy)
