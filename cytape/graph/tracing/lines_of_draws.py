"""The line on which a function draws random numbers, looked for in its bytecode."""

from __future__ import annotations

import dis
import inspect
import random
from collections.abc import Iterator
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from cytape.ops.shared.reachable import codes, contents, is_of_cytape

__all__ = ["imported_in", "place_of_draw"]

_UNSET = object()
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


def place_of_draw(
    functions: list[tuple[FunctionType, tuple[Any, ...]]], generator: Any
) -> tuple[str, int, Any]:
    """Return the file and the line of a draw, of the function where none can be seen.

    Parameters
    ----------
    functions : list of (function, tuple)
        Which may have drawn, with the first of their arguments as far as they are known.
    generator : Generator, RandomState or Random

    Returns
    -------
    file : str
    line : int
    registry : dict
        Where Python keeps which warnings have been shown, so that each is shown once.
    """
    functions = [item for item in functions if not is_of_cytape(item[0])]
    if not functions:
        return "<unknown>", 0, {}
    first, _ = functions[0]
    registry = first.__globals__.setdefault("__warningregistry__", {})
    for line_of in (_line, _likely_line):
        for function, arguments in functions:
            line = line_of(function.__code__, _names(function, arguments), generator)
            if line is not None:
                return function.__code__.co_filename, line, registry
    return first.__code__.co_filename, first.__code__.co_firstlineno, registry


def imported_in(code: CodeType) -> Iterator[str]:
    """List the modules that a function and those that it makes import themselves."""
    for inner in codes(code):
        for instruction in dis.get_instructions(inner):
            if instruction.opname == "IMPORT_NAME":
                yield instruction.argval


def _names(function: FunctionType, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Return the values of the names that a function has, as far as they are known."""
    names = {**function.__globals__,
             **dict(zip(function.__code__.co_varnames, arguments, strict=False))}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # nothing is in it yet
            continue
    return names


def _line(code: CodeType, names: dict[str, Any], generator: Any) -> int | None:
    """Return the line on which a method of a generator, or the generator itself, is named."""
    second_best = None
    for inner in codes(code):
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
    for inner in codes(code):
        for instruction in dis.get_instructions(inner):
            if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and instruction.positions and (
                    not instruction.argval.startswith("_")
                    and hasattr(type(generator), instruction.argval)):
                return instruction.positions.lineno
    return None


def _attribute(value: Any, name: str) -> Any:
    if issubclass(type(value), ModuleType):
        return contents(value).get(name, _UNSET)
    if issubclass(type(value), _GENERATORS):
        return getattr(value, name, _UNSET)
    return _UNSET if value is _UNSET else inspect.getattr_static(value, name, _UNSET)
