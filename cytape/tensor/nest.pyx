"""Nested structures: lists, tuples, named tuples, dicts and composed objects, around leaves.

All other objects are leaves: tensors, arrays, numbers, strings, ``IndexedSlices``, ``None``. A dict
is flattened in the sorted order of its keys (by type first), so that dicts with the same keys match
in any order of insertion; packing keeps the order and the type of the given dict. `compose`
registers classes whose objects consist of parts, which are structures again. Objects of classes
registered by rules have leaves, too; `flatten` and `pack_sequence_as` can treat them as leaves.
"""

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except *  # other return values vary
    void Py_LeaveRecursiveCall()

import copy
from collections import namedtuple
from numbers import Number

__all__ = [
    "Composition",
    "Rules",
    "assert_same_structure",
    "compose",
    "composition_of",
    "flatten",
    "flatten_up_to",
    "map_structure",
    "pack_sequence_as",
    "paths",
    "register",
    "rules_of",
    "with_children",
]

# Rules of a class whose objects are structures: functions that return an object's leaves, their
# number, a new object with given leaves, and the rest of the object, hashable.
Rules = namedtuple("Rules", "leaves n_leaves with_leaves static")
cdef Py_ssize_t MOST_SHOWN = 100  # characters of a part of a structure in an error
cdef dict registered = {}
# The same for parts that are structures: functions of an object that return its parts, a similar
# object of other parts, and the names of the parts for messages.
Composition = namedtuple("Composition", "parts with_parts steps")
cdef dict composed = {}


def compose(cls, composition) -> None:
    """Register a class, not its subclasses, whose objects consist of parts."""
    composed[cls] = composition


cpdef composition_of(structure):
    """Return the composition of a composed object's class, None for other objects."""
    return composed.get(type(structure)) if composed else None


def register(cls, rules) -> None:
    """Register a class, not its subclasses, whose objects are structures."""
    registered[cls] = rules


def rules_of_class(cls):
    """Return the rules for objects of a class, None if it is not registered."""
    return registered.get(cls)


cpdef rules_of(structure):
    """Return the rules for an object of a registered class, None for other objects."""
    return registered.get(type(structure))


cpdef list flatten(structure, bint expand=True):
    """List the leaves of a structure; a leaf alone is a list of one.

    Objects of registered classes are leaves unless they are expanded.

    Examples
    --------
    >>> flatten({"w": [1, 2], "b": (3, None)})
    [3, None, 1, 2]
    >>> flatten(5)
    [5]
    """
    cdef list leaves
    if not is_nested(structure) and type(structure) not in registered:
        return [structure]
    leaves = []
    collect(structure, leaves, expand)
    return leaves


def flatten_up_to(shallow, structure, bint expand=True) -> list:
    """List the parts of a structure at the places of another structure's leaves.

    A None in the place of an object of a registered class stands for each of its leaves. Lists
    match tuples.

    Raises
    ------
    ValueError
        If the structures differ above these.

    Examples
    --------
    >>> flatten_up_to({"x": 0, "y": [1, 2]}, {"x": (2, None), "y": [(), (3,)]})
    [(2, None), (), (3,)]
    """
    cdef list parts = []
    collect_up_to(shallow, structure, parts, expand)
    return parts


def paths(structure, str name, bint expand=True) -> list:
    """List the names of leaves in a structure, such as "x[0]", for messages.

    Examples
    --------
    >>> paths({"x": 0, "y": [1, 2]}, "loop_vars")
    ["loop_vars['x']", "loop_vars['y'][0]", "loop_vars['y'][1]"]
    """
    cdef list found = []
    collect_paths(structure, name, found, expand)
    return found


cpdef pack_sequence_as(structure, flat_sequence, bint expand=True):
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
    cdef list leaves = flat_sequence if type(flat_sequence) is list else list(flat_sequence)
    if len(leaves) == 1 and not is_nested(structure) and not (
            expand and type(structure) in registered):
        return leaves[0]
    n_leaves = count(structure, expand)
    if len(leaves) != n_leaves:
        raise ValueError(f"got {len(leaves)} leaves for a structure of {n_leaves}: {structure!r}")
    return rebuild(structure, iter(leaves), expand)


def map_structure(function, first, *others):
    """Apply a function to the leaves of structures that match; the result is packed like the first.

    Examples
    --------
    >>> map_structure(lambda x, y: x + y, {"a": 1, "b": [2]}, {"b": [20], "a": 10})
    {'a': 11, 'b': [22]}
    """
    if not others and not is_nested(first) and type(first) not in registered:
        return function(first)
    for other in others:
        assert_same_structure(first, other)
    return rebuild(first, map(function, flatten(first), *map(flatten, others)), True)


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

    It has the type and the attributes of the other. Methods of subclasses, which might store other
    values (a Counter adds), are not called.

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
            packed = tuple.__new__(kind, children)  # its own __new__ may have other parameters
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


cdef inline bint is_nested(structure) except -1:
    return isinstance(structure, (list, tuple, dict)) or (
        len(composed) > 0 and type(structure) in composed)


cdef int collect(structure, list leaves, bint expand) except -1:
    if not is_nested(structure):
        rules = rules_of(structure) if expand else None
        if rules is None:
            leaves.append(structure)
        else:
            leaves.extend(rules.leaves(structure))
        return 0
    enter()
    try:
        if isinstance(structure, dict):
            for key in sorted_keys(structure):
                collect(structure[key], leaves, expand)
        else:
            for child in items_of(structure):
                collect(child, leaves, expand)
    finally:
        Py_LeaveRecursiveCall()
    return 0


cdef Py_ssize_t count(structure, bint expand) except -1:
    """Return the number of leaves, without creating them."""
    cdef Py_ssize_t n = 0
    if not is_nested(structure):
        rules = rules_of(structure) if expand else None
        return 1 if rules is None else rules.n_leaves(structure)
    enter()
    try:
        if isinstance(structure, dict):
            for key in structure:
                n += count(structure[key], expand)
        else:
            for child in items_of(structure):
                n += count(child, expand)
    finally:
        Py_LeaveRecursiveCall()
    return n


cdef int collect_up_to(shallow, structure, list parts, bint expand) except -1:
    rules = rules_of(shallow) if expand else None
    if rules is not None and structure is None:
        parts.extend([None] * rules.n_leaves(shallow))
        return 0
    if rules is None and not is_nested(shallow):
        parts.append(structure)
        return 0
    in_order = isinstance(shallow, (list, tuple)) and isinstance(structure, (list, tuple))
    if not in_order or len(shallow) != len(structure):
        assert_alike(shallow, structure)
    enter()
    try:
        for child, part in zip(children_of(shallow), children_of(structure), strict=True):
            collect_up_to(child, part, parts, expand)
    finally:
        Py_LeaveRecursiveCall()
    return 0


cdef int collect_paths(structure, str name, list found, bint expand) except -1:
    if not is_nested(structure):
        found.extend([name] * count(structure, expand))
        return 0
    if isinstance(structure, dict):
        steps = [f"[{key!r}]" for key in sorted_keys(structure)]
    elif isinstance(structure, tuple) and hasattr(structure, "_fields"):
        steps = [f".{field}" for field in structure._fields]
    elif isinstance(structure, (list, tuple)):
        steps = [f"[{i}]" for i in range(len(structure))]
    else:
        steps = composition_of(structure).steps(structure)
    enter()
    try:
        for step, child in zip(steps, children_of(structure), strict=True):
            collect_paths(child, name + step, found, expand)
    finally:
        Py_LeaveRecursiveCall()
    return 0


cdef rebuild(structure, leaves, bint expand):
    cdef dict by_key
    if not is_nested(structure):
        rules = rules_of(structure) if expand else None
        return next(leaves) if rules is None else rules.with_leaves(
            structure, [next(leaves) for _ in range(rules.n_leaves(structure))])
    enter()
    try:
        if isinstance(structure, dict):
            by_key = {key: rebuild(structure[key], leaves, expand)
                      for key in sorted_keys(structure)}
            return with_children(structure, [by_key[key] for key in structure])
        children = [rebuild(child, leaves, expand) for child in items_of(structure)]
        composition = composition_of(structure)
        return with_children(structure, children) if composition is None else (
            composition.with_parts(structure, children))
    finally:
        Py_LeaveRecursiveCall()


cdef int assert_same(first, second) except -1:
    cdef list children, others
    cdef Py_ssize_t i
    if not assert_alike(first, second):
        return 0
    enter()
    try:
        children, others = children_of(first), children_of(second)
        for i in range(min(len(children), len(others))):
            assert_same(children[i], others[i])
    finally:
        Py_LeaveRecursiveCall()
    return 0


cdef int assert_alike(first, second) except -1:
    """Raise if two structures differ in kind; return whether they have children to compare."""
    if not is_nested(first) and not is_nested(second) and not registered:
        return 0
    kind, other_kind = kind_of(first), kind_of(second)
    if kind is not other_kind:
        raise ValueError(
            f"structures differ: {describe(kind, first)}, where the other has "
            f"{describe(other_kind, second)}"
        )
    if not is_nested(first):
        return 0
    if kind is dict and first.keys() != second.keys():
        raise ValueError(f"structures differ: keys {list(first)} and {list(second)}")
    n_first, n_second = len(items_of(first)), len(items_of(second))
    if n_first != n_second:
        raise ValueError(
            f"structures differ in length, {n_first} and {n_second}: {first!r} and {second!r}")
    return 1


cdef inline int enter() except -1:
    Py_EnterRecursiveCall(b" in a structure: it is nested too deeply or contains itself")
    return 0


cdef kind_of(structure):
    """Find the type that a matching structure must share; None for a leaf."""
    if isinstance(structure, tuple):
        return type(structure) if hasattr(structure, "_fields") else tuple
    if isinstance(structure, list):
        return list
    if isinstance(structure, dict):
        return dict
    return type(structure) if (
        type(structure) in registered or composition_of(structure) is not None) else None


cdef str describe(kind, structure):
    text = " ".join(repr(structure).split())
    text = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
    return f"the leaf {text}" if kind is None else f"a {kind.__name__}, {text}"


cdef list sorted_keys(structure):
    try:
        return sorted(structure)
    except TypeError:
        pass
    try:  # numbers of different types may be equal; then by type
        return sorted(structure, key=order_of)
    except TypeError as error:
        raise TypeError(
            "the keys of a dict in a structure must be sortable, those of each type among "
            f"themselves, got {list(structure)}"
        ) from error


def order_of(key):
    """Return the sort key of a dict key among keys of several types."""
    return "" if isinstance(key, Number) else type(key).__qualname__, 0 if key is None else key


cdef list children_of(structure):
    if isinstance(structure, dict):
        return [structure[key] for key in sorted_keys(structure)]
    return list(items_of(structure))


cdef inline items_of(structure):
    """Return the items of a list, tuple or dict, or the parts of a composed object."""
    composition = composition_of(structure)
    return structure if composition is None else composition.parts(structure)
