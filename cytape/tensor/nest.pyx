"""Nested structures: lists, tuples, named tuples and dicts, to any depth, around leaves.

Whatever is none of these is a leaf: a tensor, an array, a number, a string, an ``IndexedSlices``,
``None``. A dict is flattened in the sorted order of its keys, so that two dicts with the same keys
match in whatever order they were filled; packing keeps the order and the type of the dict given.
Keys of several types are sorted by type first.
"""

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except *  # what else it returns varies
    void Py_LeaveRecursiveCall()

import copy
from numbers import Number

__all__ = ["assert_same_structure", "flatten", "map_structure", "pack_sequence_as", "with_children"]


cpdef list flatten(structure):
    """List the leaves of a structure; a leaf alone is a list of one.

    Examples
    --------
    >>> flatten({"w": [1, 2], "b": (3, None)})
    [3, None, 1, 2]
    >>> flatten(5)
    [5]
    """
    cdef list leaves = []
    collect(structure, leaves)
    return leaves


cpdef pack_sequence_as(structure, flat_sequence):
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
    cdef list leaves = list(flat_sequence)
    if len(leaves) == 1 and not is_nested(structure):
        return leaves[0]
    n_leaves = len(flatten(structure))
    if len(leaves) != n_leaves:
        raise ValueError(f"got {len(leaves)} leaves for a structure of {n_leaves}: {structure!r}")
    return rebuild(structure, iter(leaves))


def map_structure(function, first, *others):
    """Apply a function to the leaves of structures that match; the result is packed like the first.

    Examples
    --------
    >>> map_structure(lambda x, y: x + y, {"a": 1, "b": [2]}, {"b": [20], "a": 10})
    {'a': 11, 'b': [22]}
    """
    if not others and not is_nested(first):
        return function(first)
    for other in others:
        assert_same_structure(first, other)
    return rebuild(first, map(function, flatten(first), *map(flatten, others)))


def assert_same_structure(first, second) -> None:
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
        assert_same(first, second)
    except RecursionError:  # perhaps of a comparison of keys
        raise RecursionError(
            "one of two structures is nested too deeply or contains itself") from None


cpdef with_children(container, list children):
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
            packed = tuple.__new__(kind, children)  # theirs may take what it likes
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


cdef inline bint is_nested(structure) noexcept:
    return isinstance(structure, (list, tuple, dict))


cdef int collect(structure, list leaves) except -1:
    if not is_nested(structure):
        leaves.append(structure)
        return 0
    enter()
    try:
        if isinstance(structure, dict):
            for key in sorted_keys(structure):
                collect(structure[key], leaves)
        else:
            for child in structure:
                collect(child, leaves)
    finally:
        Py_LeaveRecursiveCall()
    return 0


cdef rebuild(structure, leaves):
    cdef dict by_key
    if not is_nested(structure):
        return next(leaves)
    enter()
    try:
        if isinstance(structure, dict):
            by_key = {key: rebuild(structure[key], leaves) for key in sorted_keys(structure)}
            return with_children(structure, [by_key[key] for key in structure])
        return with_children(structure, [rebuild(child, leaves) for child in structure])
    finally:
        Py_LeaveRecursiveCall()


cdef int assert_same(first, second) except -1:
    cdef list children, others
    cdef Py_ssize_t i
    if not is_nested(first) and not is_nested(second):
        return 0
    kind, other_kind = kind_of(first), kind_of(second)
    if kind is not other_kind:
        raise ValueError(
            f"structures differ: {describe(kind, first)}, where the other has "
            f"{describe(other_kind, second)}"
        )
    if kind is dict and first.keys() != second.keys():
        raise ValueError(f"structures differ: keys {list(first)} and {list(second)}")
    if len(first) != len(second):
        raise ValueError(
            f"structures differ in length, {len(first)} and {len(second)}: {first!r} and {second!r}"
        )
    enter()
    try:
        children, others = children_of(first), children_of(second)
        for i in range(min(len(children), len(others))):
            assert_same(children[i], others[i])
    finally:
        Py_LeaveRecursiveCall()
    return 0


cdef inline int enter() except -1:
    Py_EnterRecursiveCall(b" in a structure: it is nested too deeply or contains itself")
    return 0


cdef kind_of(structure):
    """Find the type that a matching structure must share; None for a leaf."""
    if isinstance(structure, tuple):
        return type(structure) if hasattr(structure, "_fields") else tuple
    if isinstance(structure, list):
        return list
    return dict if isinstance(structure, dict) else None


cdef str describe(kind, structure):
    return f"the leaf {structure!r}" if kind is None else f"a {kind.__name__}, {structure!r}"


cdef list sorted_keys(structure):
    try:
        return sorted(structure)
    except TypeError:
        pass
    try:  # numbers, which may be equal whatever their types are, and then type by type
        return sorted(structure, key=order_of)
    except TypeError as error:
        raise TypeError(
            "the keys of a dict in a structure must be sortable, those of each type among "
            f"themselves, got {list(structure)}"
        ) from error


def order_of(key):
    """Return what keys of several types are sorted by."""
    return "" if isinstance(key, Number) else type(key).__qualname__, 0 if key is None else key


cdef list children_of(structure):
    if isinstance(structure, dict):
        return [structure[key] for key in sorted_keys(structure)]
    return list(structure)
