"""Parts of cache keys for values other than tensors, and comparison of keys.

A key distinguishes everything that a Python function could distinguish in its arguments: types, the
order of a dict's items, the bits of floats. ``==`` does not: 1 == True, 0.0 == -0.0, {1} == {1.0}.
"""

from __future__ import annotations

import struct
import threading
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from functools import cached_property, partial
from types import (
    BuiltinMethodType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
)
from typing import Any
from weakref import ref

import numpy as np

from cytape.tensor.values.spec import Spec, symbolic_spec
from cytape.tensor.variable import Variable

__all__ = [
    "OBJECT",
    "by_identity",
    "describe_attributes",
    "describe_value",
    "difference",
    "differs_in_caches",
    "double_bits",
    "generalised",
    "is_array",
    "is_object",
    "shapes_agree",
    "spec_of_part",
]


class _Mark:
    """First item of a part: a class of its own, so it is unequal to all values of users."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


OBJECT, ATTRIBUTES, CACHED = _Mark("object"), _Mark("attributes"), _Mark("cached")
_within = threading.local()  # objects whose cached properties are being described
_ATOMS = frozenset({int, bool, str, bytes, type(None), type(...), type(NotImplemented)})
_UNSET = object()
# Modules of the standard library whose objects are immutable and equal to their pickled copies.
_VALUES = frozenset({"datetime", "decimal", "fractions", "ipaddress", "pathlib", "uuid"})
by_identity: set[ref[type]] = set()  # classes whose objects are compared by identity
# Scalar types that tensors do not support: text, dates, records.
_NOT_NUMBERS = (np.flexible, np.datetime64, np.timedelta64, np.object_)
double_bits, _two_doubles = struct.Struct("=d").pack, struct.Struct("=dd").pack


def is_array(leaf: Any) -> bool:
    """Return whether an argument is traced as a tensor; other arguments are static.

    Objects with NumPy's array protocol, such as those of pandas, are traced as tensors.
    """
    kind = type(leaf)
    return kind is Spec or hasattr(kind, "__array__") and kind is not Variable and not (
        issubclass(kind, _NOT_NUMBERS))


def require_hashable(kind: type) -> type:
    """Return a class that can be part of a key."""
    try:
        hash(kind)
    except Exception as error:
        raise TypeError(
            f"an argument of a traced function is of the class {kind.__name__}, which cannot be "
            "hashed: traces are found by the classes of their arguments. Give its metaclass "
            f"{type(kind).__name__} a __hash__, say type.__hash__"
        ) from error
    return kind


# ---- static values

_CONTENTS: dict[type, Callable[[Any], Sequence[Any]]] = {
    list: list,
    tuple: list,
    set: list,  # in iteration order
    frozenset: list,
    dict: lambda x: [part for item in x.items() for part in item],
    defaultdict: lambda x: [x.default_factory, *[part for item in x.items() for part in item]],
    MappingProxyType: lambda x: [part for item in x.items() for part in item],
    deque: lambda x: [x.maxlen, *x],
    slice: lambda x: [x.start, x.stop, x.step],
    range: lambda x: [x.start, x.stop, x.step],
    bytearray: lambda x: [bytes(x)],
    memoryview: lambda x: [x.format, x.shape, x.strides, x.readonly, x.tobytes()],
    array: lambda x: [x.typecode, x.tobytes()],
    MethodType: lambda x: [x.__func__, x.__self__],
    partial: lambda x: [x.func, x.args, x.keywords, vars(x)],
    np.generic: lambda x: [x.dtype, x.tobytes()],
    # Subclasses of these, which may have attributes:
    int: lambda x: [int.__index__(x)],
    float: lambda x: [float.__float__(x)],
    complex: lambda x: [complex(x.real, x.imag)],
    str: lambda x: [str.__str__(x)],
    bytes: lambda x: [memoryview(x).tobytes()],
}


def describe_value(x: Any, key: list[Hashable], objects: list[Any]) -> None:
    """Append the parts of a static value; tensors and arrays in it by identity.

    Objects that the key refers to by their ids are appended to another list.
    """
    kind = require_hashable(type(x))
    if ref(kind) in by_identity:
        key.append((OBJECT, kind, id(x)))
        objects.append(x)
    elif kind in _ATOMS:
        key.append((kind, x))
    elif kind is float:
        key.append((kind, double_bits(x)))
    elif kind is complex:
        key.append((kind, _two_doubles(x.real, x.imag)))
    elif isinstance(x, Variable):
        key.append((Variable, x.id))
        objects.append(x)
    elif isinstance(x, np.dtype):
        key.append((np.dtype, x, x.char, x.isalignedstruct))
        describe_value(x.metadata and dict(x.metadata), key, objects)
    elif kind.__module__ in _VALUES:
        key.append((kind,))
        describe_value(x.__reduce_ex__(4), key, objects)
    elif hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__attrs_attrs__"):
        _describe_fields(x, key, objects)
    else:
        _describe_contents(x, key, objects)


def _describe_contents(x: Any, key: list[Hashable], objects: list[Any]) -> None:
    kind = type(x)
    if not isinstance(x, (Enum, type)):
        for base in kind.__mro__:
            contents = _CONTENTS.get(base)
            if contents is not None:
                parts = contents(x)
                key.append((kind, len(parts)))
                for part in parts:
                    describe_value(part, key, objects)
                if kind is not base and base is not np.generic:
                    describe_attributes(x, key, objects)
                return
        if isinstance(x, (BuiltinMethodType, MethodWrapperType)):  # new objects at each access
            key.append((kind, x.__name__))
            x = x.__self__
        else:
            by_identity.add(ref(kind, by_identity.discard))
    key.append((OBJECT, type(x), id(x)))
    objects.append(x)


def _describe_fields(x: Any, key: list[Hashable], objects: list[Any]) -> None:
    """Append the parts of a dataclass: its attributes, and the object if they can change.

    A function may store variables in such an object, so equal objects have different keys.
    """
    kind = type(x)
    is_value = kind.__hash__ is not None and kind.__hash__ is not object.__hash__
    mark: tuple = (kind,) if is_value else (OBJECT, kind, id(x))
    is_within_itself = not is_value and mark in key
    key.append(mark)
    if not is_value:
        objects.append(x)
    if not is_within_itself:
        describe_attributes(x, key, objects)


def describe_attributes(
    x: Any, key: list[Hashable], objects: list[Any], parts: Sequence[Any] = ()
) -> None:
    """Append the names of an object's own attributes, and their values.

    For attributes that are among `parts`, described before, append their positions.
    """
    kind = require_hashable(type(x))
    attributes: dict[str, Any] = {}
    cached: dict[str, Any] = {}
    for name, value in getattr(x, "__dict__", {}).items():
        is_cached = isinstance(getattr(kind, name, None), cached_property)
        (cached if is_cached else attributes)[name] = value
    for cls in kind.__mro__:
        declared = cls.__dict__.get("__attrs_attrs__")
        slots = cls.__dict__.get("__slots__", ())
        if declared is not None:  # other slots are caches
            names = [attribute.name for attribute in declared]
            cached.update(_in_slots(x, cls, [slot for slot in slots if slot not in names]))
            slots = names
        for name in (slots,) if isinstance(slots, str) else slots:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{cls.__name__.lstrip('_')}{name}"
            value = getattr(x, name, _UNSET)
            if value is not _UNSET and name not in ("__dict__", "__weakref__"):
                attributes[name] = value
    key.append((ATTRIBUTES, *attributes))
    for value in attributes.values():
        place = next((i for i, part in enumerate(parts) if part is value), None)
        if place is None:
            describe_value(value, key, objects)
        else:
            key.append(place)
    if cached:
        _describe_cached(x, cached, key, objects)


def _in_slots(x: Any, cls: type, names: Sequence[str]) -> dict[str, Any]:
    """Return the values of filled slots, without computing those of empty ones."""
    found = {}
    for name in names:
        slot = cls.__dict__.get(name)
        if isinstance(slot, MemberDescriptorType) and not name.startswith("_attrs_"):
            try:
                found[name] = slot.__get__(x)
            except AttributeError:
                continue
    return found


def _describe_cached(
    x: Any, cached: dict[str, Any], key: list[Hashable], objects: list[Any]
) -> None:
    """Append the values of cached properties, which may be outdated by the other attributes.

    Each is one part of the key, so that `differs_in_caches` can skip it. A reference back to the
    object is described as such.
    """
    within = _within.__dict__.setdefault("objects", set())
    if id(x) in within:
        return
    within.add(id(x))
    try:
        for name, value in cached.items():
            parts: list[Hashable] = []
            describe_value(value, parts, objects)
            key.append((CACHED, name, tuple(parts)))
    finally:
        within.discard(id(x))


def differs_in_caches(key: tuple, later: tuple) -> bool:
    """Return whether a later key differs only by properties that have been cached since."""
    i = 0
    for part in later:
        if i < len(key) and part == key[i]:
            i += 1
        elif not (isinstance(part, tuple) and part and part[0] is CACHED):
            return False
    return i == len(key) < len(later)


# ---- keys compared


def is_object(part: Hashable) -> bool:
    """Return whether a part of a key identifies an object by its id."""
    return isinstance(part, tuple) and len(part) == 3 and part[0] is OBJECT


def spec_of_part(part: Any) -> Spec | None:
    """Return the spec of a part of a key, None if it is not that of a tensor."""
    if isinstance(part, Spec):
        return part
    if isinstance(part, tuple) and part and part[0] is Spec:
        return symbolic_spec(part[1], part[2])
    return None


def generalised(key: tuple, other: tuple) -> tuple | None:
    """Return a key that covers two keys that differ only in extents; None for other keys."""
    if len(key) != len(other):
        return None
    parts = []
    for mine, theirs in zip(key, other, strict=True):
        if mine == theirs:
            parts.append(mine)
            continue
        a, b = spec_of_part(mine), spec_of_part(theirs)
        if a is None or b is None or a.dtype != b.dtype or None in (a.shape, b.shape):
            return None
        if a.ndim != b.ndim:
            return None
        shape = tuple(m if m == n else None for m, n in zip(a.shape, b.shape, strict=True))
        parts.append((Spec, shape, a.dtype))
    return tuple(parts)


def shapes_agree(shape: tuple | None, wanted: tuple | None) -> bool:
    """Return whether a shape matches one with unknown extents."""
    if shape is None or wanted is None:
        return wanted is None
    return len(shape) == len(wanted) and all(
        extent == n or n is None for extent, n in zip(shape, wanted, strict=True)
    )


def difference(key: tuple, others: list[tuple]) -> str:
    """Describe the part in which a key differs from the most similar one."""
    def differing(other: tuple) -> list[int]:
        return [i for i, (a, b) in enumerate(zip(key, other, strict=False)) if a != b]

    alike = [other for other in others if len(other) == len(key)]
    for kind, found in (("variable", _is_variable), ("object", is_object)):
        if not others and any(map(found, key)):
            return f"another {kind} than it was called with before, the others being gone"
    if not alike:
        return "a new structure of its arguments"
    closest = min(alike, key=lambda other: len(differing(other)))
    for i in differing(closest):
        if _is_variable(key[i]) and _is_variable(closest[i]):
            return "another variable than it was called with before: use one, and assign to it"
        return f"{_shown(key[i])} where it was {_shown(closest[i])} before"
    return "the graph it is called in, out of which what its trace captured cannot be reached"


def _is_variable(part: Any) -> bool:
    return isinstance(part, tuple) and len(part) == 2 and part[0] is Variable


def _shown(part: Any) -> str:
    if _is_variable(part):
        return "a variable"
    spec = spec_of_part(part)
    if spec is not None:
        return f"a {spec.dtype} tensor of shape {spec.shape}"
    if is_object(part):
        return f"a {part[1].__name__} object"
    if isinstance(part, tuple) and len(part) == 2 and part[0] in (float, complex):
        numbers = struct.unpack(f"={len(part[1]) // 8}d", part[1])
        return repr(part[0](*numbers))
    return repr(part[1]) if isinstance(part, tuple) and len(part) == 2 else repr(part)
