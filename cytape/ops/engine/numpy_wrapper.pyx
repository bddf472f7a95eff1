"""The decorator `numpy_function`: a function of NumPy gets a version for tensors.

A `NumpyFunction` calls the version if one of the deciding parameters is a tensor or a list with a
tensor, and NumPy's function otherwise. It also writes the result to `out`.
"""

cimport cython
from cpython.ref cimport PyObject
from cytape.tensor.recording.thread_stack cimport building
from cytape.tensor.tensor cimport Tensor

from types import MethodType

from cytape.ops.calls.operands import is_tensor, with_out


cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t flags) noexcept
    PyObject* PyObject_Vectorcall(object function, PyObject* const* arguments, size_t flags,
                                  PyObject* names) except NULL
    PyObject* Py_NewRef(object x) noexcept
    object PyVectorcall_Call(object function, object args, object arguments)
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    unsigned long Py_TPFLAGS_METHOD_DESCRIPTOR

    ctypedef struct PyTypeObject:
        Py_ssize_t tp_vectorcall_offset
        unsigned long tp_flags

cdef enum:
    NUMPYS, OURS, WRITES, DROPS_ADDED


def numpy_function(theirs, *deciding, added=()):
    """Declare the version for tensors of a function of NumPy, with NumPy's parameters.

    Parameters
    ----------
    theirs : function
    *deciding : str
        Names of the parameters that call the version if they hold a tensor. The first one if no
        name is given.
    added : iterable of str, optional
        For a function that draws random numbers: parameters that NumPy's function does not have.
        They call the version unless they have their default, and so does a graph that is built.
    """
    return lambda ours: NumpyFunction(theirs, ours, deciding, added)


@cython.final
cdef class NumpyFunction:
    def __cinit__(self):
        self.vectorcall = call_vector

    def __init__(self, theirs, ours, tuple deciding, added):
        code = ours.__code__
        n = code.co_argcount
        has_rest, has_others = code.co_flags & 4 != 0, code.co_flags & 8 != 0
        end = n + code.co_kwonlyargcount
        self.theirs, self.ours = theirs, ours
        self.n_positional, self.n_required = n, n - len(ours.__defaults__ or ())
        names = code.co_varnames[:end + has_rest + has_others]
        self.number_of = {name: i for i, name in enumerate(names)}
        self.out = self.number_of.get("out", -1)
        self.rest = end if has_rest else -1
        self.others = end + has_rest if has_others else -1
        for name in deciding or (() if added else names[:1]):
            self.deciding |= <unsigned long>1 << <int>self.number_of[name]
        if added:
            defaults = dict(zip(names[self.n_required:n], ours.__defaults__), **ours.__kwdefaults__)
            self.added = {self.number_of[name]: defaults[name] for name in added}
        vars(self).update(
            __module__=ours.__module__, __name__=ours.__name__, __doc__=ours.__doc__,
            __qualname__=ours.__qualname__, __wrapped__=ours)

    def __call__(self, *args, **arguments):
        return PyVectorcall_Call(self, args, arguments)

    def __get__(self, tensor, cls):
        return self if tensor is None else MethodType(self, tensor)

    def __repr__(self):
        return repr(self.ours)

    def __reduce__(self):
        return self.__qualname__

    cdef int choice(self, PyObject* const* arguments, Py_ssize_t n, tuple keywords) except -1:
        """Return which function to call; the version also raises for arguments that do not fit."""
        cdef Py_ssize_t i, number, n_filled = n
        cdef Py_ssize_t n_keywords = 0 if keywords is None else len(keywords)
        cdef int found = NUMPYS
        cdef bint writes = False, drops = False
        for i in range(n + n_keywords):
            if i < n:
                number = i if i < self.n_positional else self.rest
            else:
                name = keywords[i - n]
                place = self.number_of.get(name)
                number = self.others if place is None else <Py_ssize_t>place
                if number < n and number < self.n_positional:
                    return OURS  # an argument with two values
                n_filled += number < self.n_required
            if number < 0:
                return OURS  # no parameter takes it
            x = <object>arguments[i]
            if number == self.out:
                writes = x is not None
            elif self.added is not None and number in self.added:
                if x is not self.added[number]:
                    return OURS
                drops = True
            elif found == NUMPYS and self.deciding >> number & 1 and (
                    isinstance(x, Tensor) or isinstance(x, (list, tuple)) and is_tensor(x)):
                found = OURS
        if n_filled < self.n_required or self.added is not None and building() is not None:
            return OURS
        return WRITES if writes else DROPS_ADDED if drops and found == NUMPYS else found


cdef PyObject* call_vector(PyObject* function, PyObject* const* arguments, size_t flags,
                           PyObject* names) except NULL:
    cdef NumpyFunction self = <NumpyFunction>function
    cdef Py_ssize_t i, n = PyVectorcall_NARGS(flags)
    keywords = None if names == NULL else <tuple><object>names
    cdef int choice = self.choice(arguments, n, keywords)
    if choice == OURS:
        return PyObject_Vectorcall(self.ours, arguments, flags, names)
    if choice == NUMPYS:
        return PyObject_Vectorcall(self.theirs, arguments, flags, names)
    args = [<object>arguments[i] for i in range(n)]
    options = {keyword: <object>arguments[n + i] for i, keyword in enumerate(keywords or ())}
    if choice == DROPS_ADDED:
        options.update(zip(self.number_of, args))
        return Py_NewRef(self.theirs(**{
            name: x for name, x in options.items() if self.number_of[name] not in self.added}))
    if self.out < self.n_positional:
        options.update(zip(list(self.number_of)[self.out:self.n_positional], args[self.out:]))
        del args[self.out:]
    return Py_NewRef(with_out(self.theirs, options.pop("out"), *args, **options))


cdef void enable_vectorcall(NumpyFunction function) noexcept:
    cdef PyTypeObject* cls = <PyTypeObject*>NumpyFunction
    cls.tp_vectorcall_offset = <char*>&function.vectorcall - <char*><void*>function
    cls.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR


enable_vectorcall(NumpyFunction.__new__(NumpyFunction))  # Cython has no syntax for it
