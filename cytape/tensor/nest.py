"""Nested structures: lists, tuples, named tuples and dicts, to any depth, around leaves.

Whatever is none of these is a leaf: a tensor, an array, a number, a string, an ``IndexedSlices``,
``None``. A dict is flattened in the sorted order of its keys, so that two dicts with the same keys
match in whatever order they were filled; packing keeps the order and the type of the dict given.
Keys of several types are sorted by type first.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from numbers import Number
from typing import Any

__all__ = ["assert_same_structure", "flatten", "map_structure", "pack_sequence_as", "with_children"]

_NESTED = (list, tuple, dict)


def flatten(structure: Any) -> list:
    """List the leaves of a structure; a leaf alone is a list of one.

    Examples
    --------
    >>> flatten({"w": [1, 2], "b": (3, None)})
    [3, None, 1, 2]
    >>> flatten(5)
    [5]
    """
    if not isinstance(structure, _NESTED):
        return [structure]
    if _is_flat(structure):
        return list(structure)
    leaves: list = []
    try:
        _collect(structure, leaves)
    except RecursionError:
        raise _too_deep() from None
    return leaves


def pack_sequence_as(structure: Any, flat_sequence: list) -> Any:
    """Put leaves, in the order of `flatten`, into a new structure like the given one.

    Raises
    ------
    ValueError
        If the number of leaves differs.

    Examples
    --------
    >>> pack_sequence_as({"w": [1, 2], "b": (3, None)}, ["b0", "b1", "w0", "w1"])
    {'w': ['w0', 'w1'], 'b': ('b0', 'b1')}
    """
    if len(flat_sequence) == 1 and not isinstance(structure, _NESTED):
        return flat_sequence[0]
    if _is_flat(structure) and len(structure) == len(flat_sequence):
        return type(structure)(flat_sequence)
    n_leaves = len(flatten(structure))
    if len(flat_sequence) != n_leaves:
        raise ValueError(
            f"got {len(flat_sequence)} leaves for a structure of {n_leaves}: {structure!r}"
        )
    return _rebuild(structure, iter(flat_sequence))


def map_structure(function: Callable, *structures: Any) -> Any:
    """Apply a function to the leaves of structures that match; the result is packed like the first.

    Examples
    --------
    >>> map_structure(lambda x, y: x + y, {"a": 1, "b": [2]}, {"b": [20], "a": 10})
    {'a': 11, 'b': [22]}
    """
    first, *others = structures
    for other in others:
        assert_same_structure(first, other)
    if not others and _is_flat(first):
        return type(first)(map(function, first))
    return _rebuild(first, map(function, *map(flatten, structures)))


def assert_same_structure(first: Any, second: Any) -> None:
    """Raise unless two structures differ in their leaves only.

    Lists, tuples and dicts each match their own kind (subclasses included, whatever the order of
    the keys); a named tuple matches its own type only.

    Raises
    ------
    ValueError
        If the structures differ; the message shows the parts that do.

    Examples
    --------
    >>> assert_same_structure([1, {"a": 2}], [3, {"a": None}])
    >>> assert_same_structure([1, 2], (1, 2))
    Traceback (most recent call last):
        ...
    ValueError: structures differ: a list, [1, 2], where the other has a tuple, (1, 2)
    """
    try:
        _assert_same(first, second)
    except RecursionError:
        raise _too_deep() from None


def with_children(container: Any, children: list) -> Any:
    """Return a list, tuple or dict like another one, with other children in the same order.

    It has the type and the attributes of the other. No method of a subclass is asked to put the
    children in, which could do so in its own way: a Counter adds.

    Examples
    --------
    >>> from collections import Counter
    >>> with_children(Counter(a=3), [5]), with_children((1, 2), [3, 4])
    (Counter({'a': 5}), (3, 4))
    """
    kind = type(container)
    if kind is list:
        return children
    if kind is tuple:
        return tuple(children)
    if isinstance(container, tuple):
        try:
            packed: Any = tuple.__new__(kind, children)  # theirs may take what it likes
        except TypeError:  # a type written in C, say time.struct_time
            return kind(children)
        if hasattr(container, "__dict__"):
            packed.__dict__.update(container.__dict__)
        return packed
    if kind is dict:
        return dict(zip(container, children, strict=True))
    packed = copy.copy(container)  # keeps attributes and, say, a default factory
    if isinstance(container, list):
        list.__setitem__(packed, slice(None), children)
    else:
        for key, child in zip(container, children, strict=True):
            dict.__setitem__(packed, key, child)
    return packed


def _assert_same(first: Any, second: Any) -> None:
    kind, other_kind = _kind(first), _kind(second)
    if kind is not other_kind:
        raise ValueError(
            f"structures differ: {_describe(kind, first)}, where the other has "
            f"{_describe(other_kind, second)}"
        )
    if kind is None:
        return
    if kind is dict and first.keys() != second.keys():
        raise ValueError(f"structures differ: keys {list(first)} and {list(second)}")
    if len(first) != len(second):
        raise ValueError(
            f"structures differ in length, {len(first)} and {len(second)}: {first!r} and {second!r}"
        )
    for child, other_child in zip(_children(first), _children(second), strict=True):
        _assert_same(child, other_child)


def _is_flat(structure: Any) -> bool:
    """Tell the common case, which the general way would take several times as long for."""
    if type(structure) is not list and type(structure) is not tuple:
        return False
    for child in structure:  # noqa: SIM110  (a generator would take twice the time)
        if isinstance(child, _NESTED):
            return False
    return True


def _kind(structure: Any) -> type | None:
    """Find the type that a matching structure must share; None for a leaf."""
    if isinstance(structure, tuple):
        return type(structure) if hasattr(structure, "_fields") else tuple
    if isinstance(structure, list):
        return list
    return dict if isinstance(structure, dict) else None


def _describe(kind: type | None, structure: Any) -> str:
    return f"the leaf {structure!r}" if kind is None else f"a {kind.__name__}, {structure!r}"


def _sorted_keys(structure: dict) -> list:
    try:
        return sorted(structure)
    except TypeError:
        pass
    try:  # numbers, which may be equal whatever their types are, and then type by type
        return sorted(structure, key=lambda key: (
            "" if isinstance(key, Number) else type(key).__qualname__, _none_as_zero(key)))
    except TypeError as error:
        raise TypeError(
            "the keys of a dict in a structure must be sortable, those of each type among "
            f"themselves, got {list(structure)}"
        ) from error


def _none_as_zero(key: Any) -> Any:
    return 0 if key is None else key


def _children(structure: Any) -> Any:
    if isinstance(structure, dict):
        return [structure[key] for key in _sorted_keys(structure)]
    return structure


def _collect(structure: Any, leaves: list) -> None:
    if isinstance(structure, _NESTED):
        for child in _children(structure):
            _collect(child, leaves)
    else:
        leaves.append(structure)


def _rebuild(structure: Any, leaves: Iterator) -> Any:
    kind = _kind(structure)
    if kind is None:
        return next(leaves)
    if kind is dict:
        children = {key: _rebuild(structure[key], leaves) for key in _sorted_keys(structure)}
        return with_children(structure, [children[key] for key in structure])
    return with_children(structure, [_rebuild(child, leaves) for child in structure])


def _too_deep() -> RecursionError:
    return RecursionError(
        "a structure is nested too deeply or contains itself: its leaves cannot be listed")
