"""What tells the calls of a traced function apart: structure, specs of tensors, other values."""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Any

import numpy as np

from cytape.tensor import nest
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.spec import Spec, symbolic_spec
from cytape.tensor.tensor import Tensor, convert_to_tensor
from cytape.tensor.variable import Variable

__all__ = ["describe", "generalised", "is_array", "shapes_agree", "spec_of_part"]


class _Unhashable:
    """Stands for a value that can only be told apart by identity, and keeps it alive."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unhashable) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def is_array(leaf: Any) -> bool:
    """Tell whether an argument is traced as a tensor; all else is part of the program."""
    return isinstance(leaf, (Tensor, np.ndarray, np.generic, Spec)) and not (
        isinstance(leaf, Variable)
    )


def describe(x: Any, key: list[Hashable], tensors: list[Any]) -> None:
    """Append what tells an argument apart to a key, and the tensors in it to a list."""
    if type(x) is Tensor:
        spec = x.spec
        key.append(spec if spec.known else (Spec, spec.shape, spec.dtype))
        tensors.append(x)
    elif isinstance(x, (np.ndarray, np.generic)):
        tensor = convert_to_tensor(x)
        key.append(tensor.spec)
        tensors.append(tensor)
    elif isinstance(x, Spec):
        key.append(x if x.known else (Spec, x.shape, x.dtype))
        tensors.append(x)
    elif isinstance(x, IndexedSlices):
        key.append((IndexedSlices, x.dense_shape))
        describe(x.values, key, tensors)
        describe(x.indices, key, tensors)
    elif isinstance(x, dict):
        key.append((type(x), tuple(sorted(x))))
        for word in sorted(x):
            describe(x[word], key, tensors)
    elif isinstance(x, (list, tuple)):
        key.append((type(x), len(x)))
        for item in x:
            describe(item, key, tensors)
    else:
        key.append(_described_value(x))


def _described_value(x: Any) -> Hashable:
    if isinstance(x, Variable):
        return Variable, x.id
    if isinstance(x, (float, complex)):
        return type(x), repr(x)  # 0.0 == -0.0, and NaN is unlike itself
    if isinstance(x, (bool, int, str, bytes, type(None), type)):
        return type(x), x
    if isinstance(x, (set, bytearray)):
        return type(x), frozenset(x) if isinstance(x, set) else bytes(x)
    if type(x).__hash__ is None:
        return _Unhashable(x)
    try:
        return type(x), weakref.ref(x)
    except TypeError:
        return type(x), x


def spec_of_part(part: Any) -> Spec | None:
    """Return the spec that a part of a key stands for, None if it is no tensor's."""
    if isinstance(part, Spec):
        return part
    if isinstance(part, tuple) and part and part[0] is Spec:
        return symbolic_spec(part[1], part[2])
    return None


def generalised(key: tuple, other: tuple) -> tuple | None:
    """Return a key that covers two that differ in extents only, None if they differ in more."""
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
    """Tell whether a shape is one that another, with unknown extents, stands for."""
    if shape is None or wanted is None:
        return wanted is None
    return len(shape) == len(wanted) and all(
        extent == n or n is None for extent, n in zip(shape, wanted, strict=True)
    )


def difference(key: tuple, others: list[tuple]) -> str:
    """Say in which part a key differs from the one most like it."""
    def differing(other: tuple) -> list[int]:
        return [i for i, (a, b) in enumerate(zip(key, other, strict=False)) if a != b]

    alike = [other for other in others if len(other) == len(key)]
    if not alike:
        return "a new structure of its arguments"
    closest = min(alike, key=lambda other: len(differing(other)))
    i = differing(closest)[0]
    return f"{_shown(key[i])} where it was {_shown(closest[i])} before"


def _shown(part: Any) -> str:
    spec = spec_of_part(part)
    if spec is not None:
        return f"a {spec.dtype} tensor of shape {spec.shape}"
    return repr(part[1]) if isinstance(part, tuple) and len(part) == 2 else repr(part)


def structures_of_specs(structure: Any, key: tuple) -> Any:
    """Return arguments with specs, those of a key, in the place of tensors."""
    specs = iter([spec for spec in map(spec_of_part, key) if spec is not None])
    return nest.map_structure(lambda leaf: next(specs) if is_array(leaf) else leaf, structure)
