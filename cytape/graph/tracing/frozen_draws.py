"""Random numbers that Python draws while a function is traced: each call would repeat them.

A draw changes its generator. Which generators a function may draw from is told by what can be
reached from it without running anything: NumPy's global one, those among the arguments, in their
attributes and containers, and those that it and the functions and methods that it uses name. That
some generator has changed is told by its memory; the line is looked for in the bytecode then.
"""

from __future__ import annotations

import dis
import functools
import inspect
import random
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from ctypes import string_at
from itertools import islice
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable

__all__ = ["Draws", "call_traced", "state_of"]

MOST_VALUES = 1000  # that are looked at
MOST_ITEMS = 64     # of a container
MOST_CODES = 1000   # whose names are remembered
_HEADER = object.__basicsize__
_PYTHON_BYTES = random.Random.__base__.__basicsize__ - _HEADER  # type: ignore[union-attr]
_NO_CODE = (lambda: None).__code__
_names_of_codes: dict[int, tuple[CodeType, tuple[str, ...]]] = {}  # by id: their hashes are slow
_PLAIN = {int, float, complex, bool, str, bytes, type(None), Tensor, np.ndarray, Variable}
_SEQUENCES: tuple[type, ...] = (list, tuple, set, frozenset, deque)
_UNSET = object()
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_numpy_global: Any = np.random.mtrand._rand
_python_global: Any = random._inst


def call_traced(graph: Any, f: Callable, args: Iterable[Any] = (), kwargs: Any = None) -> Any:
    """Call a function whose trace becomes a graph; warn of what it draws.

    Not if variables were made, from drawn numbers perhaps: then it is traced once more.
    """
    args, kwargs = tuple(args), kwargs or {}
    with Draws(f, (*args, *kwargs.values())) as draws:
        results = f(*args, **kwargs)
    around = graph
    while around is not None and not getattr(around, "n_variables_made", 0):
        around = getattr(around, "outer_graph", None)
    if around is None:
        draws.warn(graph.name)
    return results


class _Tracing(threading.local):
    """What is being traced in a thread, from the outermost to the innermost."""

    def __init__(self) -> None:
        self.draws: list[Draws] = []


_tracing = _Tracing()


class Draws:
    """Notices what a function draws that is traced; a context to call it in.

    Parameters
    ----------
    f : callable
    arguments : tuple
        What it is going to be called with.
    """

    def __init__(self, f: Callable, arguments: tuple[Any, ...] = ()) -> None:
        self._functions: list[tuple[FunctionType, dict[str, Any]]] = []  # with names known besides
        self._generators = {id(_numpy_global): _numpy_global}
        self._reached: set[int] = set()
        # Of attributes and globals in what has been looked at, and those looked up in a class.
        self._names = {"__call__"}
        self._known: dict[int, set[str]] = {}
        seen: set[int] = set()
        if type(f) is FunctionType:
            values = deque([*arguments, *self._add(f, dict(zip(
                f.__code__.co_varnames, arguments, strict=False)))])
        else:
            values = deque([*arguments, f])
        while values and len(seen) < MOST_VALUES:
            value = values.popleft()  # the nearest first
            if type(value) not in _PLAIN and id(value) not in seen:
                seen.add(id(value))
                values += self._look_at(value)
        self._modules = {id(value) for value in (np, np.random, random) if id(value) in seen}
        self._before = {place: state_of(x) for place, x in self._generators.items()}

    def __enter__(self) -> Draws:
        _tracing.draws.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _tracing.draws.remove(self)

    def warn(self, name: str) -> None:
        """Warn if any generator has drawn since, at the line where that happened."""
        for place, generator in self._generators.items():
            before, now = self._before[place], state_of(generator)
            if now != before:
                for around in _tracing.draws:  # which would say it once more
                    if around._before.get(place) == before:
                        around._before[place] = now
                what = "np.random" if generator is _numpy_global else (
                    "Python's random" if generator is _python_global else
                    f"a {type(generator).__name__}")
                file, line = self._place(generator)
                warnings.warn_explicit(
                    f"{name} drew random numbers from {what} while it was traced; each call will "
                    "use these again. Draw with cytape.numpy.random, which draws anew in each "
                    "call, or draw outside and pass an array",
                    UserWarning, file, line, registry=_registry_of(self._functions))

    def generators(self) -> list[Any]:
        """List the generators that the function may draw from; those of modules in any case."""
        return [x for place, x in self._generators.items() if place != id(_python_global)] + [
            _python_global]

    def names(self, generator: Any) -> bool:
        """Tell whether the function was seen to have a way to one of these."""
        if generator not in (_numpy_global, _python_global) or id(generator) in self._reached:
            return True
        imported = {name for function, _ in self._functions if not _is_ours(function)
                    for name in _imported_in(function.__code__)}
        if generator is _python_global:
            return id(random) in self._modules or "random" in imported
        return id(np.random) in self._modules or "numpy.random" in imported or (
            "random" in self._names and (id(np) in self._modules or "numpy" in imported))

    def _look_at(self, value: Any) -> Iterable[Any]:
        """Take note of a generator or a function; return what can be reached from a value."""
        kind = type(value)  # isinstance would ask a proxy what it is
        if issubclass(kind, _GENERATORS):
            self._generators[id(value)] = value
            self._reached.add(id(value))
            return ()
        if issubclass(kind, ModuleType):
            if value is random:
                self._generators[id(_python_global)] = _python_global
            return ()
        if kind is FunctionType:
            return self._add(value, {})
        if kind is MethodType:
            names = getattr(value.__func__, "__code__", _NO_CODE).co_varnames
            known = {names[0]: value.__self__} if names else {}
            if isinstance(value.__func__, FunctionType):
                return [value.__self__, *self._add(value.__func__, known)]
            return value.__func__, value.__self__
        if kind is BuiltinMethodType:
            return (value.__self__,)
        if kind is functools.partial:
            return value.func, *value.args, *value.keywords.values()
        if issubclass(kind, dict):
            items = list(islice(dict.values(value), MOST_ITEMS))
            return items if kind is dict else items + self._reached_from(value)
        for base in _SEQUENCES:
            if issubclass(kind, base):
                items = list(islice(base.__iter__(value), MOST_ITEMS))  # type: ignore[attr-defined]
                return items if kind is base else items + self._reached_from(value)
        return self._reached_from(value)

    def _reached_from(self, value: Any) -> list[Any]:
        """List an object's attributes, and what its classes have of the names that are used."""
        kind = type(value)
        is_class = issubclass(kind, type)
        if is_class and _is_of_cytape(value):
            return []
        classes = type.__dict__["__mro__"].__get__(value if is_class else kind)
        found = [] if is_class else list(_own_attributes(value))
        if _is_of_cytape(kind):
            return [x for x in found if callable(x) or issubclass(type(x), _GENERATORS)]
        known = self._known.setdefault(id(value if is_class else kind), set())
        while len(known) < len(self._names):  # methods that are found may name others
            new = self._names - known
            known |= new
            for cls in classes:
                attributes = vars(cls)
                if cls is object or _is_of_cytape(cls):
                    continue
                for name in new & attributes.keys():
                    x = attributes[name]
                    if type(x) is MemberDescriptorType:
                        continue
                    if type(x) is property:
                        x = x.fget
                    elif type(x) in (staticmethod, classmethod):
                        x = x.__func__
                    if type(x) is FunctionType and x.__code__.co_varnames:
                        found += self._add(x, {x.__code__.co_varnames[0]: value})
                    else:
                        found.append(x)
        return found

    def _add(self, function: FunctionType, known: dict[str, Any]) -> Iterable[Any]:
        self._functions.append((function, known))
        if not _is_ours(function):
            self._names.update(_names_in(function.__code__))
        return _reachable(function)

    def _place(self, generator: Any) -> tuple[str, int]:
        """Return the file and the line of a draw, of the function where none can be seen."""
        for line_of in (_line, _likely_line):
            for function, known in self._functions:
                if not _is_ours(function):
                    line = line_of(function.__code__, _names(function, known), generator)
                    if line is not None:
                        return function.__code__.co_filename, line
        for function, _ in self._functions:
            if not _is_ours(function):
                return function.__code__.co_filename, function.__code__.co_firstlineno
        return "<unknown>", 0


def state_of(generator: Any) -> tuple:
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
    name = function.__globals__.get("__name__")
    return name == "cytape" or str(name).startswith("cytape.")


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


def _names_in(code: CodeType) -> tuple[str, ...]:
    """List the globals and attributes that a function and those that it makes name."""
    known = _names_of_codes.get(id(code))
    if known is None or known[0] is not code:
        if len(_names_of_codes) >= MOST_CODES:
            _names_of_codes.clear()
        names = tuple({name: None for inner in _codes(code) for name in inner.co_names})
        _names_of_codes[id(code)] = known = code, names
    return known[1]


def _imported_in(code: CodeType) -> Iterator[str]:
    """List the modules that a function and those that it makes import themselves."""
    for inner in _codes(code):
        for instruction in dis.get_instructions(inner):
            if instruction.opname == "IMPORT_NAME":
                yield instruction.argval


def _reachable(function: FunctionType) -> list[Any]:
    """List what a function names: globals, what they have of these names, and its closure."""
    found = list(function.__defaults__ or ())
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # nothing is in it yet
            continue
    if _is_ours(function):
        return found
    names, globals_ = _names_in(function.__code__), function.__globals__
    for name in names:
        if name in globals_:
            value = globals_[name]
            found.append(value)
            if issubclass(type(value), ModuleType) and value is not np:
                there = _contents(value)
                found += [there[name] for name in names if name in there]
    return found


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
            if type(value) in (MethodType, BuiltinMethodType) and value.__self__ is generator:
                return line
            if value is generator:
                second_best = second_best or line
    return second_best


def _likely_line(code: CodeType, names: dict[str, Any], generator: Any) -> int | None:
    """Return the line on which something unknown is asked for what the generator has."""
    for inner in _codes(code):
        for instruction in dis.get_instructions(inner):
            if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and instruction.positions and (
                    not instruction.argval.startswith("_")
                    and hasattr(type(generator), instruction.argval)):
                return instruction.positions.lineno
    return None


def _own_attributes(value: Any) -> list[Any]:
    """List the values of an object's attributes, without asking it."""
    try:
        found = list(object.__getattribute__(value, "__dict__").values())
    except AttributeError:
        found = []
    for slot in _slots(type(value)):
        try:
            found.append(slot.__get__(value))
        except AttributeError:  # nothing is in it yet
            continue
    return [x for x in found if type(x) not in _PLAIN]


def _slots(kind: type) -> list[MemberDescriptorType]:
    return [
        slot for cls in type.__dict__["__mro__"].__get__(kind) if "__slots__" in vars(cls)
        for slot in list(vars(cls).values()) if type(slot) is MemberDescriptorType]


def _is_of_cytape(cls: type) -> bool:
    return str(vars(cls).get("__module__")).startswith("cytape.")


def _contents(module: ModuleType) -> dict[str, Any]:
    return object.__getattribute__(module, "__dict__")  # a lazy one is not loaded


def _attribute(value: Any, name: str) -> Any:
    if issubclass(type(value), ModuleType):
        return _contents(value).get(name, _UNSET)
    if issubclass(type(value), _GENERATORS):
        return getattr(value, name, _UNSET)
    return _UNSET if value is _UNSET else inspect.getattr_static(value, name, _UNSET)


def _registry_of(seen: list[tuple[FunctionType, dict[str, Any]]]) -> dict:
    """Return where Python keeps which warnings have been shown, so that each is shown once."""
    for function, _ in seen:
        if not _is_ours(function):
            return function.__globals__.setdefault("__warningregistry__", {})
    return {}
