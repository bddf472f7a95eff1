"""Search of the bytecode for the line on which a function draws random numbers."""

from __future__ import annotations

import dis
import inspect
import random
from collections.abc import Callable
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from cytape.ops.python.bound_names import codes
from cytape.ops.python.draws import seed
from cytape.ops.python.reachable import contents, is_of_cytape, numpy_global

__all__ = ["place_of_draw"]

_UNSET = object()
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_SEEDING = ("seed", "set_state", "setstate")  # methods of generators
_READING = ("get_state", "getstate")


def place_of_draw(
    functions: list[tuple[FunctionType, tuple[Any, ...]]], generator: Any, seeded: bool = False
) -> tuple[str, int, Any, bool]:
    """Return the file and the line of a draw; the function's own, if the draw is not found.

    A seeding is searched for after draws: the state may show no other change.

    Parameters
    ----------
    functions : list of (function, tuple)
        Which may have drawn, with the first of their arguments as far as they are known.
    generator : Generator, RandomState or Random
    seeded : bool
        Whether it is known to have been seeded, by a line that may not be seen.

    Returns
    -------
    file : str
    line : int
    registry : dict
        Where Python keeps which warnings have been shown, so that each is shown once.
    seeds : bool
        Whether the generator was seeded, or its state set, and no draw can be seen.
    """
    functions = [item for item in functions if not is_of_cytape(item[0])]
    if not functions:
        return "<unknown>", 0, {}, seeded
    first, _ = functions[0]
    registry = first.__globals__.setdefault("__warningregistry__", {})
    for is_sought in (_draws, _seeds, _is_named, _may_draw):
        for function, arguments in functions:
            line = _line(function.__code__, _names(function, arguments), generator, is_sought)
            if line is not None:
                seeds = is_sought is _seeds or seeded and is_sought is not _draws
                return function.__code__.co_filename, line, registry, seeds
    return first.__code__.co_filename, first.__code__.co_firstlineno, registry, seeded


def _names(function: FunctionType, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Return the known values of the names in a function."""
    names = {**function.__globals__,
             **dict(zip(function.__code__.co_varnames, arguments, strict=False))}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # an empty cell
            continue
    return names


def _line(
    code: CodeType, names: dict[str, Any], generator: Any, is_sought: Callable
) -> int | None:
    """Return the first line that uses the searched value or attribute.

    An assigned attribute is passed as its name with "=" appended, together with its object.
    """
    for inner in codes(code):
        value: Any = _UNSET
        for instruction in dis.get_instructions(inner):
            attribute = None
            if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                attribute = instruction.argval
                value = _attribute(value, attribute)
            elif instruction.opname.startswith(("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_FAST")):
                value = names.get(instruction.argval, _UNSET) if isinstance(
                    instruction.argval, str) else _UNSET
            elif instruction.opname == "STORE_ATTR":
                attribute = f"{instruction.argval}="
            else:
                value = _UNSET
            if instruction.positions and is_sought(generator, value, attribute):
                return instruction.positions.lineno
    return None


def _draws(generator: Any, value: Any, _: str | None) -> bool:
    return _is_method(generator, value) and value.__name__ not in (*_SEEDING, *_READING)


def _seeds(generator: Any, value: Any, attribute: str | None) -> bool:
    if attribute == "state=":
        return isinstance(generator, np.random.Generator) and value is generator.bit_generator
    if value is np.random.seed or value is seed:
        return generator is numpy_global
    return _is_method(generator, value) and value.__name__ in _SEEDING


def _is_named(generator: Any, value: Any, _: str | None) -> bool:
    return value is generator


def _may_draw(generator: Any, _: Any, attribute: str | None) -> bool:
    """Return whether an unknown object's attribute has the name of one of the generator."""
    return attribute is not None and not attribute.startswith("_") and hasattr(
        type(generator), attribute)


def _is_method(generator: Any, value: Any) -> bool:
    return type(value) in (MethodType, BuiltinMethodType) and value.__self__ is generator


def _attribute(value: Any, name: str) -> Any:
    if issubclass(type(value), ModuleType):
        return contents(value).get(name, _UNSET)
    if issubclass(type(value), _GENERATORS):
        return getattr(value, name, _UNSET)
    return _UNSET if value is _UNSET else inspect.getattr_static(value, name, _UNSET)
