"""Structures of tensors: registered classes, dataclasses, and the leaves of their objects."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from cytape.tensor import nest
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.tensor import Tensor

__all__ = [
    "leaves_of_arguments", "leaves_of_operand", "leaves_of_result", "pack_parts", "parts_of",
    "register_dataclasses", "register_structure"]


class _Rules(NamedTuple):
    flatten: Callable[[Any], Sequence[Any]]
    unflatten: Callable[[Any, Sequence[Any]], Any]


_registered: dict[type, _Rules] = {}


def register_structure(
    cls: type,
    flatten: Callable[[Any], Sequence[Any]] | None = None,
    unflatten: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type:
    """Register a class whose objects are structures, as lists and dicts are.

    Functions and their transforms (`grad`, `jvp`, `function`, `vmap`, ...), tapes and graphs accept
    and return such objects in place of their tensors.

    Parameters
    ----------
    cls : type
        Exactly this class, without its subclasses. A dataclass needs no functions: it consists of
        its fields, except those declared by ``dataclasses.field(metadata={"static": True})``. It is
        registered by itself where it is first differentiated as an argument, or given to a loop,
        or passed or returned with tensors in it. `function` tells other arguments apart by their
        attributes.
    flatten : callable, optional
        Called with an object; returns its components, each a tensor, a number or another structure.
    unflatten : callable, optional
        Called with an object and as many other components, gradients, say (None for one that has
        none); returns an object of them, otherwise equal to the given object.

    Returns
    -------
    type
        The class: this can be its decorator.

    Raises
    ------
    TypeError
        If `cls` is no class; if it is no dataclass and there is none or one of the functions.
    ValueError
        If the class is registered already.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> @cytape.register_structure
    ... @dataclass
    ... class Line:
    ...     slope: float
    ...     offset: float
    >>> cytape.grad(lambda line, x: (line.slope * x + line.offset) ** 2)(Line(2.0, 1.0), 3.0)
    Line(slope=np.float64(42.0), offset=np.float64(14.0))

    >>> class Rotation:
    ...     def __init__(self, angle):
    ...         self.angle = angle
    >>> _ = cytape.register_structure(
    ...     Rotation, lambda rotation: [rotation.angle], lambda like, parts: Rotation(*parts))
    >>> float(cytape.grad(lambda rotation: np.sin(rotation.angle))(Rotation(0.0)).angle)
    1.0
    """
    if not isinstance(cls, type):
        raise TypeError(f"only classes can be registered as structures, got {cls!r}")
    if cls in _registered:
        raise ValueError(f"{cls.__name__} is registered as a structure already")
    steps = None
    if flatten is None and unflatten is None and is_dataclass(cls):
        from dataclasses import fields  # slow to import

        names = [field.name for field in fields(cls) if not field.metadata.get("static", False)]
        flatten = _getter(names)
        unflatten = _setter(names)
        steps = _steps(names)
    elif flatten is None or unflatten is None:
        raise TypeError(
            f"{cls.__name__} is not a dataclass, whose fields would be the parts of the structure: "
            "pass flatten and unflatten")
    _registered[cls] = _Rules(flatten, unflatten)
    if nest.rules_of_class(cls) is None:
        nest.compose(cls, nest.Composition(flatten, unflatten, steps or (
            lambda structure: [f"[{i}]" for i in range(len(flatten(structure)))])))
    return cls


def _getter(names: list[str]) -> Callable[[Any], list]:
    return lambda structure: [getattr(structure, name) for name in names]


def _setter(names: list[str]) -> Callable[[Any, Sequence[Any]], Any]:
    def with_fields(like: Any, parts: Sequence[Any]) -> Any:
        packed = copy.copy(like)  # not by the constructor: __post_init__ may require arrays
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(packed, name, part)  # also of a frozen one
        return packed
    return with_fields


def _steps(names: list[str]) -> Callable[[Any], list[str]]:
    return lambda structure: [f".{name}" for name in names]


def register_dataclasses(leaves: Sequence[Any]) -> bool:
    """Register the dataclasses among the classes of some leaves; return whether there are any."""
    classes = {type(leaf) for leaf in leaves if is_dataclass(type(leaf))}
    for cls in classes - _registered.keys():
        register_structure(cls)
    return bool(classes)


def leaves_of_result(value: Any) -> list[Any]:
    """List the leaves of a function's result; dataclasses of tensors are structures, too."""
    return [value] if type(value) is Tensor else _leaves(
        value, lambda leaf: _holds(leaf, lambda part: isinstance(part, Tensor)))


def leaves_of_arguments(value: Any, kinds: tuple[type, ...] = (Tensor,)) -> list[Any]:
    """List the leaves of a function's arguments.

    Dataclasses with fields of some types are structures, too; not with subclasses of these types,
    since a dataclass of variables may be the object that the function is a method of.
    """
    return _leaves(value, lambda leaf: _holds(leaf, lambda part: type(part) in kinds))


def leaves_of_operand(value: Any) -> list[Any]:
    """List the leaves of a value that must consist of tensors: all dataclasses are structures."""
    return _leaves(value, lambda leaf: True)


def _leaves(value: Any, is_structure: Callable[[Any], bool]) -> list[Any]:
    leaves = nest.flatten(value)
    if not any(map(is_dataclass, set(map(type, leaves)))):  # failing look-ups are slow
        return leaves
    late = [leaf for leaf in leaves if is_dataclass(type(leaf)) and is_structure(leaf)
            and not _holds_itself(leaf)]
    return _leaves(value, is_structure) if late and register_dataclasses(late) else leaves


def _holds(leaf: Any, counts: Callable[[Any], bool], within: tuple = ()) -> bool:
    if not is_dataclass(type(leaf)) or any(leaf is outer for outer in within):
        return False
    parts = nest.flatten([getattr(leaf, name, None) for name in leaf.__dataclass_fields__])
    within = (*within, leaf)
    return any(counts(part) or _holds(part, counts, within) for part in parts)


def _holds_itself(leaf: Any) -> bool:
    return _holds(leaf, lambda part: part is leaf)


def is_dataclass(cls: type) -> bool:
    """Return whether a class is a dataclass."""
    return hasattr(cls, "__dataclass_fields__")


def is_structure(value: Any) -> bool:
    """Return whether an object is a structure of tensors, for differentiation."""
    return type(value) in _registered


def flatten_structure(value: Any) -> list[Any]:
    """List the components of a structure, recursively.

    Other objects are their own only component.
    """
    rules = _registered.get(type(value))
    if rules is None:
        return [value]
    return [leaf for part in nest.flatten(list(rules.flatten(value)), expand=False)
            for leaf in flatten_structure(part)]


def pack_structure(like: Any, leaves: Iterator[Any]) -> Any:
    """Return a structure like a given one, with the next components of an iterator.

    It is None if all of its components are.
    """
    rules = _registered.get(type(like))
    if rules is None:
        return next(leaves)
    parts = [_packed(part, leaves) for part in rules.flatten(like)]
    if all(leaf is None for leaf in nest.flatten(parts, expand=False)):
        return None
    return rules.unflatten(like, parts)


def _packed(part: Any, leaves: Iterator[Any]) -> Any:
    if is_structure(part):
        return pack_structure(part, leaves)
    flat = nest.flatten(part, expand=False)
    return nest.pack_sequence_as(
        part, [pack_structure(leaf, leaves) for leaf in flat], expand=False)


def parts_of(structure: Any) -> list[Any]:
    """List the leaves of a structure; for a TensorArray, the tensors that it reads from."""
    leaves_of_operand(structure)
    return [part for leaf in nest.flatten(structure, expand=False)
            for part in (flatten_structure(leaf) if nest.rules_of(leaf) is not None else [leaf])]


def pack_parts(structure: Any, parts: Sequence[Any]) -> Any:
    """Replace the leaves of a structure, say by gradients; None for a TensorArray without any."""
    remaining = iter(parts)
    return nest.pack_sequence_as(
        structure,
        [pack_structure(leaf, remaining) if nest.rules_of(leaf) is not None else next(remaining)
         for leaf in nest.flatten(structure, expand=False)],
        expand=False)


# The gradient in slices of a tensor: slices of the gradient in their values. They are leaves in
# arguments of functions.
_registered[IndexedSlices] = _Rules(
    lambda slices: [slices.values],
    lambda slices, parts: IndexedSlices(parts[0], slices.indices, slices.dense_shape))
