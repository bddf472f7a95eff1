"""What functions find by name when they are called, for calls that repeat them later."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from cytape.ops.shared.reachable import codes, is_of_cytape
from cytape.tensor.tensor import Tensor, another
from cytape.tensor.variable import Variable

__all__ = ["Bindings"]

MOST_FUNCTIONS = 200  # that are looked at
MOST_CODES = 1000     # whose names are remembered
MOST_COPIED = 1 << 16  # bytes of an array that may be written to

_names: dict[tuple[CodeType, bool], tuple[frozenset[str], tuple[str, ...]]] = {}
_unbound = object()


class Bindings:
    """The closures, globals and defaults of a function, and of those that it finds there.

    Tensors and small arrays among them are as they were then, also if they are written to.

    Parameters
    ----------
    f : callable
        Functions, methods and `functools.partial` are looked at; in others nothing is found. What a
        function assigns to itself, as nonlocal or global, is its own affair: it stays as it is.
    replays : bool, optional
        Whether calls repeat a call that was made already, so their writes to tensors and arrays
        must not be seen again. Else a name whose elements the function assigns to also stays as it
        is, so that its writes are seen.

    Examples
    --------
    >>> def before():
    ...     k = 2.0
    ...     bindings = Bindings(lambda x: k * x)
    ...     k = 3.0
    ...     return bindings.function()
    >>> before()(1.0)
    2.0
    """

    def __init__(self, f: Callable, *, replays: bool = True) -> None:
        self._f, self._replays = f, replays
        self._found: dict[int, tuple[Any, list]] = {}
        pending = [f]
        while pending and len(self._found) < MOST_FUNCTIONS:
            x = pending.pop()
            if id(x) in self._found or not isinstance(x, (FunctionType, MethodType, partial)):
                continue
            values = list(map(_own, _values_of(x, replays)))
            self._found[id(x)] = x, values
            pending += values

    def function(self) -> Callable:
        """Return the function with what it found then: itself where nothing was bound anew."""
        if all(_is_same(now, before) for x, values in self._found.values()
               for now, before in zip(_values_of(x, self._replays), values, strict=True)):
            return self._f
        return _Rebuilt(self._found, self._replays).of(self._f)


class _Kept(NamedTuple):
    """An array that may be written to, and what it held."""

    array: np.ndarray
    copy: np.ndarray


class _Rebuilt:
    """Copies of functions that find each other, and what was bound before."""

    def __init__(self, found: dict[int, tuple[Any, list]], replays: bool) -> None:
        self.found, self.replays = found, replays
        self.copies: dict[int, Any] = {}
        self.globals: dict[int, dict] = {}

    def of(self, x: Any) -> Any:
        """Return the copy of a function or tensor; anything else as it is."""
        if type(x) is _Kept:
            if _is_same(x.array, x):
                return x.array
            return self.copies.setdefault(id(x.array), x.copy.copy(order="K"))
        if id(x) not in self.found:
            return _own(x)
        if id(x) not in self.copies:
            values = iter(self.found[id(x)][1])
            if isinstance(x, FunctionType):
                self.copy_function(x, values)
            elif isinstance(x, MethodType):
                self.copies[id(x)] = MethodType(self.of(next(values)), x.__self__)
            else:
                function, *arguments = map(self.of, values)
                n_args = len(x.args)
                self.copies[id(x)] = partial(
                    function, *arguments[:n_args],
                    **dict(zip(x.keywords, arguments[n_args:], strict=True)))
        return self.copies[id(x)]

    def copy_function(self, x: FunctionType, values: Iterator[Any]) -> None:
        found = list(values)
        cells = tuple(
            cell if value is _unbound else CellType()
            for cell, value in zip(x.__closure__ or (), found, strict=False))
        values = iter(found)
        known = self.globals.get(id(x.__globals__))
        if known is None:
            known = self.globals[id(x.__globals__)] = dict(x.__globals__)
        copy = self.copies[id(x)] = FunctionType(
            x.__code__, known, x.__name__, None, cells if x.__closure__ else None)
        copy.__dict__.update(x.__dict__)
        copy.__qualname__ = x.__qualname__
        for cell in cells:
            value = next(values)
            if value is not _unbound:
                cell.cell_contents = self.of(value)
        if x.__defaults__ is not None:
            copy.__defaults__ = tuple(map(self.of, islice(values, len(x.__defaults__))))
        if x.__kwdefaults__ is not None:
            copy.__kwdefaults__ = {word: self.of(next(values)) for word in x.__kwdefaults__}
        for name, value in zip(_names_of(x, self.replays)[1], values, strict=True):
            if value is not _unbound:
                known[name] = self.of(value)


def _values_of(x: Any, replays: bool) -> list:
    if isinstance(x, MethodType):
        return [x.__func__]
    if isinstance(x, partial):
        return [x.func, *x.args, *x.keywords.values()]
    cells, names = _names_of(x, replays)
    return [
        *(_content_of(cell) if name in cells else _unbound
          for name, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True)),
        *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values(),
        *(x.__globals__.get(name, _unbound) for name in names)]


def _content_of(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is in it yet
        return _unbound


def _names_of(
    function: FunctionType, replays: bool
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names that a function does not assign to: in its closure, and of globals.

    Assignments to elements count unless it replays.
    """
    code = function.__code__
    known = _names.get((code, replays))
    if known is None:
        if len(_names) >= MOST_CODES:
            _names.clear()
        inner = codes(code)
        stored = {x.argval for each in inner for x in dis.get_instructions(each)
                  if x.opname in ("STORE_DEREF", "STORE_GLOBAL")}
        if not replays:
            stored.update(*map(_written, inner))
        names = () if is_of_cytape(function) else {
            name: None for each in inner for name in each.co_names if name not in stored}
        known = _names[code, replays] = frozenset(code.co_freevars) - stored, tuple(names)
    return known


def _written(code: CodeType) -> set[str]:
    """Return the names whose elements code assigns to: where such a target begins in the source."""
    instructions = [(x, (x.positions or ())[:3:2]) for x in dis.get_instructions(code)]
    targets = {at for x, at in instructions if x.opname == "STORE_SUBSCR"}
    return {x.argval for x, at in instructions
            if at in targets and x.opname in ("LOAD_DEREF", "LOAD_GLOBAL")}


def _own(x: Any) -> Any:
    if type(x) is np.ndarray and x.flags.writeable and x.nbytes <= MOST_COPIED:
        return _Kept(x, x.copy(order="K"))
    return another(x) if isinstance(x, Tensor) and not isinstance(x, Variable) else x


def _is_same(now: Any, before: Any) -> bool:
    if type(before) is _Kept:
        return now is before.array and now.tobytes() == before.copy.tobytes()
    return now is before or type(now) is Tensor and type(before) is Tensor and now.id == before.id
