from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.function cimport PyFunction_GetClosure, PyFunction_GetCode, PyFunction_GetGlobals
from cpython.long cimport PyLong_FromVoidPtr
from cpython.ref cimport PyObject
from cpython.type cimport PyType_IsSubtype
from cytape.tensor.tensor cimport Tensor
from libc.string cimport strncmp
from numpy cimport ndarray

import functools
import random
from collections import deque
from itertools import islice
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)

import numpy as np

from cytape.ops.python.bound_names import codes
from cytape.tensor.variable import Variable

cdef enum:
    MOST_VALUES = 1000  # visited
    MOST_ITEMS = 64     # of a container
    MOST_CODES = 1000   # code objects with cached names

cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030C0000
    #define PyType_GetDict(type) Py_XNewRef((type)->tp_dict)
    #endif
    """
    ctypedef struct PyTypeObject:
        const char* tp_name
        Py_ssize_t tp_basicsize
        PyObject* tp_mro
    dict PyType_GetDict(PyTypeObject* kind)
    object PyObject_GenericGetDict(object x, void* context)
    PyObject* PyFunction_GetDefaults(object function)
    PyObject* PyFunction_GetKwDefaults(object function)

cdef Py_ssize_t HEADER = object.__basicsize__
cdef Py_ssize_t PYTHON_BYTES = random.Random.__base__.__basicsize__ - HEADER
cdef dict names_of_codes = {}  # by address, with the code: hashes of codes are slow
cdef object generator_type = np.random.Generator, legacy_type = np.random.RandomState
cdef object python_type = random.Random
cdef object module_type = ModuleType, function_type = FunctionType, method_type = MethodType
cdef object builtin_method_type = BuiltinMethodType, member_type = MemberDescriptorType
cdef object code_type = CodeType, partial_type = functools.partial, variable = Variable
cdef object nothing = type(None)
cdef tuple sequences = (list, tuple, set, frozenset, deque)
cdef object unset = object()

numpy_global = np.random.mtrand._rand
python_global = random._inst


cdef class Reachable:
    """Objects that a function can access when it is called with some arguments.

    Breadth-first search: globals and closures that the function names, items of containers,
    attributes, classes of objects, and the names of functions among these.

    Parameters
    ----------
    f : callable
    arguments : tuple

    Attributes
    ----------
    functions : list of (function, tuple)
        With the first of its arguments, as far as they are known; the nearest function first.
    generators : dict of int to Any
        The random generators, by id; NumPy's global one in any case.
    states : dict of int to tuple
        Their states when they were found, or when one was changed here.
    seen : set of int
        The ids of all that has been looked at.
    names : set of str
        Of attributes and globals, in these functions.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> reachable = Reachable(rng.normal)
    >>> rng in reachable.generators.values()
    True
    """

    def __init__(self, f, tuple arguments=()):
        self.functions = []
        self.generators = {id(numpy_global): numpy_global}
        self.known_names, self.new_names = {"__call__"}, []
        self.looked_up = {}
        self.seen = set()
        self.values = list(arguments)
        if type(f) is function_type:
            self.add(f, arguments)
        else:
            self.values.append(f)
        cdef Py_ssize_t i = 0, n_seen = 0
        while i < len(self.values) and n_seen < MOST_VALUES:
            value = self.values[i]
            i += 1
            if is_plain(type(value)):
                continue
            self.seen.add(PyLong_FromVoidPtr(<PyObject*>value))  # its id, which calls no function
            if len(self.seen) > n_seen:
                n_seen += 1
                self.look_at(value)
        self.values = None
        self.states = {place: state_of(x) for place, x in self.generators.items()}

    @property
    def names(self) -> set:
        return self.all_names()

    cdef set all_names(self):
        if self.new_names:
            self.known_names.update(*self.new_names)
            self.new_names = []
        return self.known_names

    cpdef list moved(self):
        """List the generators that have drawn since, by id."""
        return [place for place, x in self.generators.items()
                if state_of(x) != self.states[place]]

    cdef int look_at(self, value) except -1:
        """Note a generator or a function, and visit the objects that a value refers to."""
        kind = type(value)  # isinstance would call a proxy's code
        if kind is function_type:
            return self.add(value, ())
        if PyType_IsSubtype(kind, module_type):
            if value is random:
                self.generators[id(python_global)] = python_global
        elif is_generator(kind):
            self.generators[id(value)] = value
        elif kind is method_type:
            self.values.append(value.__self__)
            if type(value.__func__) is function_type:
                return self.add(value.__func__, (value.__self__,))
            self.values.append(value.__func__)
        elif kind is builtin_method_type:
            self.values.append(value.__self__)
        elif kind is partial_type:
            self.values += (value.func, *value.args, *value.keywords.values())
        elif kind is list:
            self.values += (<list>value)[:MOST_ITEMS]
        elif kind is tuple:
            self.values += (<tuple>value)[:MOST_ITEMS]
        elif PyType_IsSubtype(kind, dict):
            return self.add_items(value, dict.values(value), dict)
        else:
            for base in sequences:
                if PyType_IsSubtype(kind, base):
                    return self.add_items(value, base.__iter__(value), base)
            return self.look_at_object(value)
        return 0

    cdef int add_items(self, container, items, plain) except -1:
        self.values += islice(items, MOST_ITEMS)
        return 0 if type(container) is plain else self.look_at_object(container)

    cdef int look_at_object(self, value) except -1:
        """Visit an object's attributes, and the attributes of its classes with names in use."""
        kind = type(value)
        if PyType_IsSubtype(kind, type):
            return 0 if is_made_by_cytape(value) else self.look_at_classes(value, value)
        cdef bint ours = is_made_by_cytape(kind)
        for x in own_attributes(value):
            if not ours or callable(x) or is_generator(type(x)):
                self.values.append(x)
        return 0 if ours else self.look_at_classes(value, kind)

    cdef int look_at_classes(self, value, kind) except -1:
        cdef set known = self.looked_up.setdefault(id(kind), set()), names = self.all_names(), new
        cdef dict attributes
        while len(known) < len(names):  # methods may add further names
            new = names - known
            known |= new
            for cls in classes_of(kind):
                if cls is object or is_made_by_cytape(cls):
                    continue
                attributes = dict_of(cls)
                for name in new:
                    x = attributes.get(name, unset)
                    if x is unset or type(x) is member_type:
                        continue
                    if type(x) is property:
                        x = x.fget
                    elif type(x) is staticmethod or type(x) is classmethod:
                        x = x.__func__
                    if type(x) is function_type:
                        self.add(x, (value,))
                    else:
                        self.values.append(x)
            names = self.all_names()
        return 0

    cdef int add(self, function, tuple arguments) except -1:
        """Visit a function, its closure, and the globals and attributes that it names."""
        self.functions.append((function, arguments))
        cdef PyObject* defaults = PyFunction_GetDefaults(function)
        cdef PyObject* of_keywords = PyFunction_GetKwDefaults(function)
        cdef PyObject* closure = PyFunction_GetClosure(function)
        if defaults != NULL:
            self.values += <tuple>defaults
        if of_keywords != NULL:
            self.values += (<dict>of_keywords).values()
        if closure != NULL:
            for cell in <tuple>closure:
                try:
                    self.values.append(cell.cell_contents)
                except ValueError:  # an empty cell
                    continue
        cdef tuple names = names_in(function)
        cdef dict there, around = globals_of(function)
        if not names:
            return 0
        self.new_names.append(names)
        for name in names:
            value = around.get(name, unset)
            if value is unset:
                continue
            self.values.append(value)
            if PyType_IsSubtype(type(value), module_type) and value is not np:
                there = contents(value)
                for inner in names:
                    x = there.get(inner, unset)
                    if x is not unset:
                        self.values.append(x)
        return 0


cpdef tuple state_of(generator):
    """Return the memory that every draw changes; much faster than `get_state`."""
    kind = type(generator)
    if PyType_IsSubtype(kind, python_type):
        # Of the attributes in Python, only this one is part of the state.
        return memory_of(generator, PYTHON_BYTES), generator.__dict__.get("gauss_next")
    if PyType_IsSubtype(kind, generator_type):
        return (whole_memory_of(generator.bit_generator),)
    # The second number of a drawn pair is kept by the RandomState.
    return whole_memory_of(generator._bit_generator), whole_memory_of(generator)


cdef bytes memory_of(x, Py_ssize_t nbytes):
    return PyBytes_FromStringAndSize(<char*><PyObject*>x + HEADER, nbytes)


cdef bytes whole_memory_of(x):
    kind = type(x)
    return memory_of(x, (<PyTypeObject*>kind).tp_basicsize - HEADER)


cpdef dict contents(x):
    """Return a module's globals or an object's attributes without running its code.

    A lazy module is not loaded.
    """
    try:
        return PyObject_GenericGetDict(x, NULL)
    except AttributeError:
        return {}


cpdef bint is_of_cytape(function) except -1:
    """Return whether a function belongs to this package."""
    name = globals_of(function).get("__name__")
    return type(name) is str and (name == "cytape" or (<str>name).startswith("cytape."))


cdef inline dict globals_of(function):
    return <dict>PyFunction_GetGlobals(function)


cdef bint is_made_by_cytape(cls) except -1:
    if strncmp((<PyTypeObject*>cls).tp_name, "cytape.", 7) == 0:  # compiled: full name
        return True
    name = dict_of(cls).get("__module__")
    return type(name) is str and (<str>name).startswith("cytape.")


# Without running a metaclass's code:

cdef inline tuple classes_of(cls):
    """Return the base classes of a class, itself first."""
    return <tuple>(<PyTypeObject*>cls).tp_mro


cdef inline dict dict_of(cls):
    return PyType_GetDict(<PyTypeObject*>cls)


cdef inline bint is_generator(kind) except -1:
    return (PyType_IsSubtype(kind, generator_type) or PyType_IsSubtype(kind, legacy_type)
            or PyType_IsSubtype(kind, python_type))


cdef inline bint is_plain(kind) noexcept:
    """Return whether objects of a type refer to no generator."""
    return (kind is ndarray or kind is Tensor or kind is int or kind is str or kind is nothing
            or kind is float or kind is bool or kind is variable or kind is complex
            or kind is bytes or kind is code_type)


cdef tuple names_in(function):
    """Return the names in a function and in functions that it defines; none for cytape's own."""
    code = <object>PyFunction_GetCode(function)
    address = PyLong_FromVoidPtr(<PyObject*>code)
    cdef tuple known = names_of_codes.get(address)
    if known is None or known[0] is not code:
        if len(names_of_codes) >= MOST_CODES:
            names_of_codes.clear()
        names = () if is_of_cytape(function) else tuple(
            {name: None for inner in codes(code) for name in inner.co_names})
        names_of_codes[address] = known = code, names
    return known[1]


cdef list own_attributes(value):
    """Return the values of an object's attributes without running its code."""
    cdef list found = list(contents(value).values())
    cdef dict attributes
    for cls in classes_of(type(value)):
        attributes = dict_of(cls)
        if "__slots__" in attributes:
            for slot in list(attributes.values()):
                if type(slot) is member_type:
                    try:
                        found.append(slot.__get__(value))
                    except AttributeError:  # an empty slot
                        continue
    return found
