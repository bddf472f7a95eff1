"""Objects that a function could access before values were taken from their tensors."""

from __future__ import annotations

import dis
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from cytape.autodiff.contents import MOST_PARTS, Scope, reached, sample_of
from cytape.tensor.recording.state import is_recorded
from cytape.tensor.tensor import Tensor

__all__ = ["Known"]


class Known:
    """Present state of the objects that functions, structures and objects refer to.

    Parameters
    ----------
    f : callable
        Where to begin. Constants in its code count, too.
    *others
        Where to look besides.
    """

    def __init__(self, f: Callable, *others: Any) -> None:
        self._scope = Scope(f, every=True)
        self._objects = self._all(f, *others)
        codes = [x.__code__ for x in self._objects if isinstance(x, FunctionType)]
        self._owners = {id(_owner(x)) for x in self._objects}.union(
            id(x) for code in codes for x in code.co_consts)
        self._written_to = any(map(_writes, codes))
        # Writable arrays, by the owner of their memory, with their contents.
        self._contents: dict[int, tuple[np.ndarray, bytes | int]] = {}
        for x in self._objects:
            if isinstance(x, np.ndarray) and _holds_values(x):
                owner = _owner(x)
                array = owner if isinstance(owner, np.ndarray) else x
                if array.flags.writeable:
                    self._contents[id(owner)] = array, sample_of(array)

    def _all(self, *roots: Any) -> list:
        return [x for _, x in reached([("", root) for root in roots], self._scope).values()]

    def is_new_in(self, *roots: Any) -> bool:
        """Return whether objects refer to arrays or numbers that are new or were written to."""
        return any(map(self._is_new, self._all(*roots)))

    def _is_new(self, x: Any) -> bool:
        owner = id(_owner(x))
        if owner in self._contents:
            array, content = self._contents[owner]
            return self._written_to or content != sample_of(array)
        return owner not in self._owners and _holds_values(x)


# Functions and methods of NumPy; a call whose result is unused writes to an array.
WRITING = {*dir(np)} - {*dir(list), *dir(dict)} | {*dir(np.ndarray), *dir(np.ufunc)}


@lru_cache(maxsize=1024)
def _writes(code: CodeType) -> bool:
    """Return whether code assigns to parts of objects, passes `out=`, or calls NumPy for effect.

    Then earlier values of a buffer may have been overwritten.
    """
    instructions = list(dis.get_instructions(code))
    called: dict = {}  # names at the beginning of an expression, the last one of each
    for x, following in zip(instructions, instructions[1:], strict=False):
        begin = (x.positions or ())[:3:2]
        if x.opname == "STORE_SUBSCR" or (
                x.opname.startswith("CALL") and following.opname == "POP_TOP"
                and called.get(begin) in WRITING):
            return True
        if x.opname.startswith("LOAD_") and isinstance(x.argval, str):
            called[begin] = x.argval
    return any(
        isinstance(x, tuple) and "out" in x or isinstance(x, CodeType) and _writes(x)
        for x in code.co_consts)


def _owner(x: Any) -> Any:
    """Return the owner of an array's memory; other objects unchanged."""
    return x if not isinstance(x, np.ndarray) or x.base is None else x.base


def _holds_values(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.spec.trainable and not is_recorded(x.id)
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype.kind in "fcO"
    if isinstance(x, list | tuple | dict):
        return len(x) > MOST_PARTS
    return not callable(x) and not hasattr(x, "__dict__")
