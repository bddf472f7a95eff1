from cytape.tensor.nest cimport composition_of, rules_of, with_children
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.tensor cimport Tensor
from numpy cimport ndarray

from weakref import ref

import numpy as np

from cytape.graph.tracing.signature import (
    ATTRIBUTES,
    OBJECT,
    by_identity,
    describe_attributes,
    describe_value,
    double_bits,
    is_array,
    require_hashable,
    spec_of_part,
)
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.variable import Variable

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except *  # other return values vary
    void Py_LeaveRecursiveCall()
    object PyWeakref_NewRef(object x, void* callback)

cdef object number = np.number, boolean = np.bool_, duration = np.timedelta64
cdef object nothing = type(None), variable = Variable, attributes = ATTRIBUTES
cdef set never_arrays = set()  # references to classes described by identity, also as arguments


cpdef tuple describe_arguments(tuple args, dict kwargs, bint in_order=True):
    """Return the key of a call, and the tensors and objects in it.

    Parameters
    ----------
    args : tuple
    kwargs : dict
    in_order : bool, optional
        Whether it matters in which order there are the keywords.

    Returns
    -------
    key : tuple
    tensors : list
        The tensors passed to a trace, in order.
    objects : list
        Objects that the key refers to by id: it is valid only as long as all of these live.
    plain : bool
        Whether there is neither a tensor nor a variable among the arguments; parts of opaque
        objects do not count.

    Examples
    --------
    >>> key, tensors, *_ = describe_arguments((np.ones(2), 3), {"scale": "big"})
    >>> key
    (Spec.of((2,), 'float64'), (<class 'int'>, 3), 'scale', (<class 'str'>, 'big'))
    >>> tensors
    [Tensor([1., 1.])]
    """
    cdef list key = [], tensors = [], objects = []
    cdef int found = 0
    for x in args:
        found |= describe(x, key, tensors, objects)
    for word in kwargs if in_order or not kwargs else sorted(kwargs):
        key.append(word)
        found |= describe(kwargs[word], key, tensors, objects)
    return tuple(key), tensors, objects, not found


cdef int describe(x, list key, list tensors, list objects) except -1:
    cdef Spec spec
    cdef int found = 0
    kind = type(x)
    if kind is Tensor:
        spec = (<Tensor>x).held.spec
        key.append(spec if spec.known else (Spec, spec.shape, spec.dtype))
        tensors.append(x)
        return 1
    elif isinstance(x, ndarray) or kind is boolean or (
            isinstance(x, number) and kind is not duration):
        x = convert_to_tensor(x)
        key.append((<Tensor>x).held.spec)
        tensors.append(x)
    elif kind is int or kind is bool or kind is str or kind is nothing:
        key.append((kind, x))
    elif kind is float:
        key.append((kind, double_bits(x)))
    elif kind is variable:
        key.append((kind, x.id))
        objects.append(x)
        return 1
    elif isinstance(x, (list, tuple, dict)):
        Py_EnterRecursiveCall(
            b" in the arguments of a traced function: they are nested too deeply or contain "
            b"themselves")
        try:
            if isinstance(x, dict):
                return describe_dict(x, key, tensors, objects)
            return describe_sequence(x, key, tensors, objects)
        finally:
            Py_LeaveRecursiveCall()
    elif PyWeakref_NewRef(require_hashable(kind), NULL) in never_arrays and (
            composition_of(x) is None):
        key.append((OBJECT, kind, id(x)))
        objects.append(x)
    elif kind is Spec:
        key.append(x if (<Spec>x).known else (Spec, x.shape, x.dtype))
        tensors.append(x)
    elif isinstance(x, IndexedSlices):
        key.append(IndexedSlices)
        describe_value(x.dense_shape, key, objects)
        describe(x.values, key, tensors, objects)
        describe(x.indices, key, tensors, objects)
        return 1
    elif (composition := composition_of(x)) is not None:
        parts = list(composition.parts(x))
        key.append((kind, len(parts)))
        Py_EnterRecursiveCall(b" in the arguments of a traced function")
        try:
            for part in parts:
                found |= describe(part, key, tensors, objects)
        finally:
            Py_LeaveRecursiveCall()
        describe_attributes(x, key, objects, parts)
        return found
    elif (rules := rules_of(x)) is not None:
        key.append((kind, rules.static(x)))
        for part in rules.leaves(x):
            found |= describe(part, key, tensors, objects)
        return found
    elif is_array(x):
        x = convert_to_tensor(x)
        key.append((<Tensor>x).held.spec)
        tensors.append(x)
    else:
        try:
            describe_value(x, key, objects)
        except RecursionError:
            raise RecursionError(
                f"an argument, {kind.__name__}, is nested too deeply or contains itself") from None
        if PyWeakref_NewRef(kind, NULL) in by_identity:
            never_arrays.add(ref(kind, never_arrays.discard))
    return 0


cdef int describe_sequence(x, list key, list tensors, list objects) except -1:
    kind = type(x)
    cdef int found = 0
    key.append((kind, len(x)))
    for item in x:
        found |= describe(item, key, tensors, objects)
    if kind is not list and kind is not tuple:
        describe_attributes(x, key, objects)
    return found


cdef int describe_dict(x, list key, list tensors, list objects) except -1:
    kind = type(x)
    cdef bint plain = True
    cdef int found = 0
    for word in x:
        if type(word) is not str:
            plain = False
            break
    key.append((kind, *x) if plain else (kind, len(x)))
    for word, item in x.items():
        if not plain:
            describe_value(word, key, objects)
        found |= describe(item, key, tensors, objects)
    if kind is not dict:
        describe_value(getattr(x, "default_factory", None), key, objects)
        describe_attributes(x, key, objects)
    return found


cpdef with_tensors(x, replace):
    """Return an argument with its tensors replaced, in order.

    Parameters
    ----------
    x : Any
    replace : callable
        Takes a tensor, an array or another value traced as one, or a `Spec`.

    Returns
    -------
    Any

    Examples
    --------
    >>> with_tensors({"x": np.ones(2), "n": 3}, lambda x: x.shape)
    {'x': (2,), 'n': 3}
    """
    kind = type(x)
    if kind is Tensor:
        return replace(x)
    if isinstance(x, (list, tuple, dict)):
        Py_EnterRecursiveCall(b" in the arguments of a traced function")
        try:
            items = x.values() if isinstance(x, dict) else x
            return with_children(x, [with_tensors(item, replace) for item in items])
        finally:
            Py_LeaveRecursiveCall()
    if isinstance(x, IndexedSlices):
        values, indices = with_tensors(x.values, replace), with_tensors(x.indices, replace)
        return IndexedSlices(values, indices, x.dense_shape)
    composition = composition_of(x)
    if composition is not None:
        Py_EnterRecursiveCall(b" in the arguments of a traced function")
        try:
            return composition.with_parts(
                x, [with_tensors(part, replace) for part in composition.parts(x)])
        finally:
            Py_LeaveRecursiveCall()
    rules = rules_of(x)
    if rules is not None:
        return rules.with_leaves(x, [with_tensors(leaf, replace) for leaf in rules.leaves(x)])
    return replace(x) if is_array(x) else x


cpdef bint has_attributes(tuple key) except -1:
    """Return whether a key contains objects that are described by their attributes."""
    for part in key:
        if type(part) is tuple and (<tuple>part)[0] is attributes:
            return True
    return False


def structures_of_specs(structure, tuple key not None):
    """Return arguments with the specs of a key in place of tensors."""
    specs = iter([spec for spec in map(spec_of_part, key) if spec is not None])
    return with_tensors(structure, lambda leaf: next(specs))
