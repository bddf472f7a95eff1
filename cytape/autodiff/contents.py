"""Snapshots of the objects that users' rules read, to detect later writes.

`reached` follows names that functions read, containers and attributes, without running users' code.
`Contents` compares arrays by elements or hashes, tensors and variables by their values, and
other objects by the identity of their parts.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from types import (
    BuiltinMethodType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from cytape.ops.python.bound_names import (
    is_own,
    labels_of,
    names_of,
    package_of,
    unbound,
    values_of,
)
from cytape.tensor.tensor import Tensor, value_id

__all__ = ["MOST_PARTS", "Contents", "reached", "sample_of"]

HARMLESS = bool, bytes, int, str, type(None), type(...), np.dtype, slice, range
# Types of objects that are compared as parts of others. Of these only a method, as that of a dict,
# has a part.
PLAIN = frozenset([*HARMLESS, float, complex, object, type(len), type(np.sum), np.ufunc])
MAPPINGS = dict, MappingProxyType
CONTAINERS = list, tuple, *MAPPINGS, deque, set
BUFFERS = bytearray, array
# Names by which a function may read any attribute; methods that operators call.
DYNAMIC = {"getattr", "vars", "__dict__"}
IMPLICIT = {
    "__call__", "__getitem__", "__getattr__", "__iter__", "__len__", "__bool__", "__float__",
    "__array__", "__enter__", *vars(NDArrayOperatorsMixin)}.difference(dir(object))
MOST_PARTS = 1000  # of a container
MOST_KEPT = 1000  # objects of a rule
MOST_COMPARED = 1 << 16  # bytes of an array


class Contents:
    """Snapshot of the arrays, tensors, containers and objects that a rule reads.

    Parameters
    ----------
    rule : callable
    found : dict of int to (callable, list)
        Functions of the rule, with the objects that they reach by name (see `Bindings`).
    tensors : bool, optional
        Whether values of tensors and variables count.

    Examples
    --------
    >>> from cytape.ops.python.bound_names import Bindings
    >>> def names_written_to():
    ...     w = np.ones(3)
    ...     rule = lambda x: w * x
    ...     contents = Contents(rule, Bindings(rule, copies=False).found)
    ...     w[0] = 5.0
    ...     return list(contents.changed())
    >>> names_written_to()
    ['w']
    """

    __slots__ = ("_arrays", "_others", "_scope")

    def __init__(
        self, rule: Any, found: dict[int, tuple[Any, list]], tensors: bool = True,
    ) -> None:
        self._arrays: list[tuple[str, np.ndarray, bytes | int]] = []
        self._others: list[tuple[str, Any, Mapping]] = []
        left = [] if found else [("", rule)]
        package = package_of(rule)
        for x, values in found.values():
            if type(x) is MethodType:
                left.append(("", x.__self__))
            elif type(x) is FunctionType and x.__dict__:
                self._others.append(("", x, dict(x.__dict__)))
            for i, value in enumerate(values):
                kind = type(value)
                if kind is np.ndarray:
                    self._arrays.append((labels_of(x)[i], value, sample_of(value)))
                elif not _is_plain(value) and id(value) not in found and not (
                        kind is ModuleType and not is_own(package_of(value), package)):
                    left.append((labels_of(x)[i], value))
        self._scope: Any = None
        if left or self._others:
            self._scope = Scope(rule)
            self._scope.names.update(*(
                names_of(x).attributes for x, _ in found.values() if type(x) is FunctionType))
            for name, x in reached(left, self._scope).values():
                if isinstance(x, np.ndarray):
                    self._arrays.append((name, x, sample_of(x)))
                elif (tensors or not isinstance(x, Tensor)) and (
                        content := _content_of(x, self._scope)):
                    self._others.append((name, x, content))

    def are_empty(self) -> bool:
        """Return whether no writable object was found."""
        return not (self._arrays or self._others)

    def changed(self) -> Iterator[str]:
        """Yield the names of arrays, tensors, attributes and containers that were written to."""
        for name, x, sample in self._arrays:
            if sample_of(x) != sample:
                yield name
        for name, x, before in self._others:
            now = _content_of(x, self._scope)
            if isinstance(x, list | deque | set) and len(x) != len(before) and (
                    len(before) < MOST_PARTS):
                yield name
            for part, value in before.items():
                if not _is_same(now.get(part, unbound), value):
                    yield part if part and not isinstance(x, CONTAINERS) else name


class Scope:
    """Limits of a walk through objects.

    The walk enters functions and modules that are not a library's, and attributes that its
    functions name.

    Attributes
    ----------
    package : str
    names : set of str
    every : bool
        Whether all attributes count, and functions of one package only. Else functions that are
        found add to the names.
    """

    __slots__ = ("every", "names", "package")

    def __init__(self, f: Any, every: bool = False) -> None:
        self.package, self.every = package_of(f), every
        self.names = set(IMPLICIT)


def reached(roots: Iterable[tuple[str, Any]], scope: Scope) -> dict[int, tuple[str, Any]]:
    """Return the objects that functions, containers and objects refer to, by id.

    Parameters
    ----------
    roots : iterable of (str, object)
        Where to begin, each with a name.
    scope : Scope

    Returns
    -------
    dict of int to (str, object)
        Each has the name of the attribute that it was found by, or of its container.
    """
    found: dict[int, tuple[str, Any]] = {}
    left, n_names = list(roots), 0
    while left and (scope.every or len(found) < MOST_KEPT):
        name, x = left.pop()
        if id(x) not in found and not isinstance(x, HARMLESS):
            found[id(x)] = name, x
            left += _parts(name, x, scope)
        if not left and len(scope.names) > n_names:
            n_names = len(scope.names)  # earlier objects may have attributes that it names
            left = [pair for name, x in found.values() for pair in _parts(name, x, scope)]
    return found


def _parts(name: str, x: Any, scope: Scope) -> list[tuple[str, Any]]:
    if isinstance(x, np.ndarray | Tensor):
        return []
    parts = _content_of(x, scope).items()
    return [(name if isinstance(x, CONTAINERS) else part, value) for part, value in parts]


def _content_of(x: Any, scope: Scope) -> Mapping[Any, Any]:
    """Return the parts of an object, by name or place, for comparison with a later state."""
    if isinstance(x, Tensor):
        return {"": value_id(x)}
    if isinstance(x, set):
        return dict.fromkeys(islice(x, MOST_PARTS))
    if isinstance(x, BUFFERS):
        return {"": sample_of(np.asarray(memoryview(x).cast("B")))}
    if isinstance(x, CONTAINERS):
        return dict(islice(x.items() if isinstance(x, MAPPINGS) else enumerate(x), MOST_PARTS))
    if isinstance(x, FunctionType):
        if names_of(x).package != scope.package and (
                scope.every or not is_own(names_of(x).package, scope.package)):
            return {}
        scope.names |= names_of(x).attributes
        return {**x.__dict__, **dict(zip(labels_of(x), values_of(x), strict=True))}
    if isinstance(x, partial):
        return {"func": x.func, "args": x.args, "keywords": x.keywords}
    if isinstance(x, MethodType):
        return {"__func__": x.__func__, "__self__": x.__self__}
    if isinstance(x, BuiltinMethodType | MethodWrapperType):
        return {"__self__": x.__self__}
    if isinstance(x, ModuleType | type) and (
            scope.every or not is_own(package_of(x), scope.package)):
        return {}
    if type(x).__module__.startswith("cytape."):
        return {"__wrapped__": getattr(x, "__wrapped__", None)}
    if scope.every:
        return _dict_of(x)
    return {} if _is_plain(x) else _attributes(x, scope.names)


def _is_plain(x: Any) -> bool:
    """Return whether an object has no parts."""
    return isinstance(x, np.generic) or type(x) in PLAIN and (
        type(getattr(x, "__self__", None)) in (ModuleType, type(None)))


def _attributes(x: Any, names: set[str]) -> dict[str, Any]:
    """Return the attributes of an object, class or module that have one of the names."""
    own = _dict_of(x)
    names = own.keys() | names if DYNAMIC.intersection(names) else names
    classes = [vars(cls) for cls in type(x).__mro__[:-1]]
    found = {}
    for name in names & set(own).union(*classes):
        value = own.get(name, unbound)
        if value is unbound:
            value = next((cls[name] for cls in classes if name in cls), unbound)
            if type(value) is MemberDescriptorType:
                value = getattr(x, name, unbound)
            elif isinstance(value, property):
                value = value.fget
            elif isinstance(value, staticmethod | classmethod):
                value = value.__func__
        if value is not unbound:
            found[name] = value
    return found


def _dict_of(x: Any) -> Mapping[str, Any]:
    """Return the attributes of an object, without those of its class."""
    if isinstance(x, ModuleType | type):
        return vars(x)
    for cls in type(x).__mro__:
        attributes: Any = vars(cls).get("__dict__")
        if type(attributes) in (GetSetDescriptorType, MemberDescriptorType):
            return attributes.__get__(x)
    return {}


def sample_of(array: np.ndarray) -> bytes | int:
    """Return the elements of an array, as bytes, or, of a large one, a hash of them."""
    array = array.view(np.ndarray)  # numpy.ma.masked has no bytes of its own
    if array.nbytes <= MOST_COMPARED or array.dtype.hasobject:
        return array.tobytes("A")
    content = array.ravel("K").view(np.uint8)  # in pieces: a copy of one stays in the cache
    return hash(tuple([hash(content[i : i + MOST_COMPARED].tobytes())
                       for i in range(0, content.size, MOST_COMPARED)]))


def _is_same(now: Any, before: Any) -> bool:
    return now is before or type(now) is type(before) and (
        type(now) in PLAIN or isinstance(now, np.generic)) and bool(now == before)
