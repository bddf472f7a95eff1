"""Objects that consist of tensors, and are differentiated with respect to these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from cytape.tensor import nest
from cytape.tensor.indexed_slices import IndexedSlices

__all__ = ["pack_parts", "parts_of", "register_structure"]


class _Rules(NamedTuple):
    flatten: Callable[[Any], Sequence[Any]]
    unflatten: Callable[[Any, Sequence[Any]], Any]


_registered: dict[type, _Rules] = {}


def register_structure(
    cls: type,
    flatten: Callable[[Any], Sequence[Any]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
) -> None:
    """Have `cytape.gradients` take objects of a class for the tensors that they consist of.

    Parameters
    ----------
    cls : type
        Its subclasses are not meant.
    flatten : callable
        Called with an object; returns its components, each a tensor or another such object.
    unflatten : callable
        Called with an object and as many other components, gradients, say (None for one that has
        none); returns an object of them.

    Raises
    ------
    TypeError
        If `cls` is no class.
    ValueError
        If the class is registered already.

    Examples
    --------
    >>> import cytape
    >>> class Rotation:
    ...     def __init__(self, angle):
    ...         self.angle = angle
    >>> cytape.register_structure(
    ...     Rotation, lambda rotation: [rotation.angle], lambda like, parts: Rotation(*parts))
    >>> graph = cytape.Graph()
    >>> rotation = Rotation(graph.placeholder("float64", ()))
    >>> [gradient] = cytape.gradients(2.0 * rotation.angle, rotation)
    >>> type(gradient).__name__, type(gradient.angle).__name__
    ('Rotation', 'Tensor')
    """
    if not isinstance(cls, type):
        raise TypeError(f"what is registered must be a class, got {cls!r}")
    if cls in _registered:
        raise ValueError(f"{cls.__name__} is registered as a structure already")
    _registered[cls] = _Rules(flatten, unflatten)


def is_structure(value: Any) -> bool:
    """Return whether an object consists of tensors, as far as differentiating goes."""
    return type(value) in _registered


def flatten_structure(value: Any) -> list[Any]:
    """List the components of a structure, of those that are structures theirs, and so on.

    Anything else is its own only component.
    """
    rules = _registered.get(type(value))
    if rules is None:
        return [value]
    return [leaf for part in rules.flatten(value) for leaf in flatten_structure(part)]


def pack_structure(like: Any, leaves: Iterator[Any]) -> Any:
    """Return a structure like a given one, of the components that come next.

    Where there are none but None, it is None.
    """
    rules = _registered.get(type(like))
    if rules is None:
        return next(leaves)
    parts = [pack_structure(part, leaves) for part in rules.flatten(like)]
    if all(part is None for part in parts):
        return None
    return rules.unflatten(like, parts)


def parts_of(structure: Any) -> list[Any]:
    """List the leaves of a nested structure, of a TensorArray the tensors that it reads from."""
    return [part for leaf in nest.flatten(structure, expand=False)
            for part in (flatten_structure(leaf) if nest.rules_of(leaf) is not None else [leaf])]


def pack_parts(structure: Any, parts: Sequence[Any]) -> Any:
    """Put others, gradients say, in the places of these; None for a TensorArray that has none."""
    remaining = iter(parts)
    return nest.pack_sequence_as(
        structure,
        [pack_structure(leaf, remaining) if nest.rules_of(leaf) is not None else next(remaining)
         for leaf in nest.flatten(structure, expand=False)],
        expand=False)


# With respect to slices of a tensor: that of their values, at the same places.
register_structure(
    IndexedSlices,
    lambda slices: [slices.values],
    lambda slices, parts: IndexedSlices(parts[0], slices.indices, slices.dense_shape),
)
