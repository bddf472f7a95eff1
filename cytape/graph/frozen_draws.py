"""Random numbers that Python draws while a function is traced: each call would repeat them.

A draw changes its generator. Which generators a function may draw from is told by what can be
reached from it without running anything: NumPy's global one, those among the arguments and their
attributes, and those that it and the functions that it uses name. That some generator has changed
is told by its memory; the line is looked for in the bytecode then.
"""

from __future__ import annotations

import dis
import functools
import inspect
import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from ctypes import string_at
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from cytape.tensor.tensor import Tensor

__all__ = ["Draws"]

MOST_VALUES = 1000  # that are looked at
MOST_ITEMS = 64     # of a container
_HEADER = object.__basicsize__
_PYTHON_BYTES = random.Random.__base__.__basicsize__ - _HEADER  # type: ignore[union-attr]
_NO_CODE = (lambda: None).__code__
_PLAIN = {int, float, complex, bool, str, bytes, type(None), Tensor, np.ndarray}
_UNSET = object()
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_numpy_global: Any = np.random.mtrand._rand
_python_global: Any = random._inst


class Draws:
    """Notices what a function draws.

    Parameters
    ----------
    f : callable
    arguments : tuple
        What it is going to be called with.
    """

    def __init__(self, f: Callable, arguments: tuple[Any, ...]) -> None:
        self._functions: list[tuple[FunctionType, dict[str, Any]]] = []  # with names known besides
        self._generators = {id(_numpy_global): _numpy_global}
        seen: set[int] = set()
        if isinstance(f, FunctionType):
            values = [*arguments, *self._add(f, dict(zip(
                f.__code__.co_varnames, arguments, strict=False)))]
        else:
            values = [*arguments, f]
        while values and len(seen) < MOST_VALUES:
            value = values.pop()
            if type(value) not in _PLAIN and id(value) not in seen:
                seen.add(id(value))
                values += self._look_at(value)
        self._before = [(x, _state(x)) for x in self._generators.values()]

    def warn(self, name: str) -> None:
        """Warn if any generator has drawn since, at the line where that happened."""
        for generator, before in self._before:
            if _state(generator) != before:
                what = "np.random" if generator is _numpy_global else (
                    "Python's random" if generator is _python_global else
                    f"a {type(generator).__name__}")
                file, line = self._place(generator)
                warnings.warn_explicit(
                    f"{name} drew random numbers from {what} while it was traced; each call will "
                    "use these again. Draw with cytape.numpy.random, which draws anew in each "
                    "call, or draw outside and pass an array",
                    UserWarning, file, line, registry=_registry_of(self._functions))

    def _look_at(self, value: Any) -> Iterable[Any]:
        """Take note of a generator or a function; return what can be reached from a value."""
        if isinstance(value, _GENERATORS):
            self._generators[id(value)] = value
        elif value is random:
            self._generators[id(_python_global)] = _python_global
        elif isinstance(value, (list, tuple, dict)):
            if len(value) <= MOST_ITEMS:
                return value.values() if isinstance(value, dict) else value
        elif isinstance(value, FunctionType):
            return self._add(value, {})
        elif isinstance(value, MethodType):
            names = getattr(value.__func__, "__code__", _NO_CODE).co_varnames
            known = {names[0]: value.__self__} if names else {}
            if isinstance(value.__func__, FunctionType):
                return [value.__self__, *self._add(value.__func__, known)]
            return value.__func__, value.__self__
        elif isinstance(value, BuiltinMethodType):
            return (value.__self__,)
        elif isinstance(value, functools.partial):
            return value.func, *value.args, *value.keywords.values()
        elif not isinstance(value, (type, ModuleType)):
            call = vars(type(value)).get("__call__")
            if isinstance(call, FunctionType) and call.__code__.co_varnames:
                self._add(call, {call.__code__.co_varnames[0]: value})
            attributes = getattr(value, "__dict__", {}).values()
            return [x for x in list(attributes) if isinstance(x, _GENERATORS) or callable(x)]
        return ()

    def _add(self, function: FunctionType, known: dict[str, Any]) -> Iterable[Any]:
        self._functions.append((function, known))
        return _reachable(function)

    def _place(self, generator: Any) -> tuple[str, int]:
        """Return the file and the line of a draw, of the function where none can be seen."""
        for function, known in self._functions:
            if not _is_ours(function):
                line = _line(function.__code__, _names(function, known), generator)
                if line is not None:
                    return function.__code__.co_filename, line
        for function, _ in self._functions:
            if not _is_ours(function):
                return function.__code__.co_filename, function.__code__.co_firstlineno
        return "<unknown>", 0


def _state(generator: Any) -> tuple:
    """Return what changes with every draw: the object's memory, much faster than to ask for it."""
    if isinstance(generator, random.Random):
        # What Python adds to the type of the C module is no state but for this.
        return string_at(id(generator) + _HEADER, _PYTHON_BYTES), generator.__dict__.get(
            "gauss_next")
    if isinstance(generator, np.random.Generator):
        source = generator.bit_generator
        return (string_at(id(source) + _HEADER, type(source).__basicsize__ - _HEADER),)
    source = generator._bit_generator  # what is drawn in pairs is kept by the RandomState
    return (string_at(id(source) + _HEADER, type(source).__basicsize__ - _HEADER),
            string_at(id(generator) + _HEADER, type(generator).__basicsize__ - _HEADER))


def _is_ours(function: FunctionType) -> bool:
    return str(function.__globals__.get("__name__")).partition(".")[0] == "cytape"


def _names(function: FunctionType, known: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the names that a function has from outside, as far as they are known."""
    names = dict(known)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # nothing is in it yet
            continue
    return names if _is_ours(function) else {**function.__globals__, **names}


def _codes(code: CodeType) -> Iterator[CodeType]:
    """List a function's code and that of the functions that it makes."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _reachable(function: FunctionType) -> Iterator[Any]:
    """List what a function names: globals, what they have of these names, and its closure."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
    yield from function.__defaults__ or ()
    if _is_ours(function):
        return
    for code in _codes(function.__code__):
        modules = []
        for name in code.co_names:
            value = function.__globals__.get(name, _UNSET)
            if isinstance(value, ModuleType):
                modules.append(value)
            if value is not _UNSET:
                yield value
        for module in modules:
            if module is not np:
                yield from [vars(module)[name] for name in code.co_names if name in vars(module)]


def _line(code: CodeType, names: dict[str, Any], generator: Any) -> int | None:
    """Return the line on which a method of a generator, or the generator itself, is named."""
    second_best = None
    for inner in _codes(code):
        value: Any = _UNSET
        for instruction in dis.get_instructions(inner):
            if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                value = _attribute(value, instruction.argval)
            elif instruction.opname.startswith(("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_FAST")):
                value = names.get(instruction.argval, _UNSET) if isinstance(
                    instruction.argval, str) else _UNSET
            else:
                value = _UNSET
            line = instruction.positions.lineno if instruction.positions else None
            if isinstance(value, (MethodType, BuiltinMethodType)) and (
                    value.__self__ is generator):
                return line
            if value is generator:
                second_best = second_best or line
    return second_best


def _attribute(value: Any, name: str) -> Any:
    if isinstance(value, (ModuleType, *_GENERATORS)):
        return getattr(value, name, _UNSET)
    return _UNSET if value is _UNSET else inspect.getattr_static(value, name, _UNSET)


def _registry_of(seen: list[tuple[FunctionType, dict[str, Any]]]) -> dict:
    """Return where Python keeps which warnings have been shown, so that each is shown once."""
    for function, _ in seen:
        if not _is_ours(function):
            return function.__globals__.setdefault("__warningregistry__", {})
    return {}
