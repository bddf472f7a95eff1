"""Bindings of names: closures, globals and defaults of functions at a call, to repeat it later."""

cimport cython
from cytape.tensor.tensor cimport Tensor
from numpy cimport ndarray

import dis
import sys
from functools import partial
from itertools import islice
from types import CellType, CodeType, FunctionType, MethodType, ModuleType

from cytape.tensor.tensor import another

cdef enum:
    MOST_FUNCTIONS = 200   # examined per call
    MOST_CODES = 1000      # code objects with cached names
    MOST_COPIED = 1 << 16  # bytes of a writable array

# Whether functions of a package are searched for users' values, for packages that were met.
cdef dict searched = dict.fromkeys(["numpy", "scipy", "cytape", *sys.stdlib_module_names], False)
cdef dict names_of_codes = {}  # by address: hashes of codes are slow
cdef object function_type = FunctionType, method_type = MethodType, partial_type = partial

unbound = object()
cdef object nothing = unbound


cdef class Names:
    """Names by which a function reads values.

    Attributes
    ----------
    package : str
        The package that has the function.
    attributes : frozenset of str
        All globals and attributes that it names.
    written : set of str
        Names and attributes that it assigns to, or to whose elements it assigns.
    """

    cdef readonly object code
    cdef readonly str package
    cdef readonly frozenset attributes
    cdef readonly set written
    cdef tuple labels      # of the closure, then of globals
    cdef tuple cells       # names of the closure that the function never assigns to
    cdef tuple of_globals  # globals that it does not assign to

    def __init__(self, function):
        self.code = function.__code__
        self.package = first_part(function.__globals__.get("__name__"))
        self.of_globals, self.attributes = (), frozenset()
        inner = codes(self.code)
        instructions = [x for each in inner for x in dis.get_instructions(each)]
        stored = {x.argval for x in instructions if x.opname in ("STORE_DEREF", "STORE_GLOBAL")}
        if self.package != "cytape":
            self.of_globals = tuple({
                x.argval: None for x in instructions
                if x.opname in ("LOAD_GLOBAL", "LOAD_NAME") and x.argval not in stored})
            self.attributes = frozenset([name for each in inner for name in each.co_names])
        closure = self.code.co_freevars
        self.labels = closure + self.of_globals
        self.cells = tuple([name not in stored for name in closure])
        self.written = set().union(*map(written_by, inner))


cdef class Bindings:
    """Closures, globals and defaults of a function, and of the functions that these refer to.

    Tensors among them keep their values, even if the program writes to them.

    Parameters
    ----------
    f : callable
        Functions, methods and `functools.partial` are searched, other callables are not. Names that
        a function itself assigns to, as nonlocal or global, are not restored.
    copies : bool, optional
        Whether small arrays are restored, too, and functions of libraries searched.

    Attributes
    ----------
    found : dict of int to (callable, list)
        The functions by id, with the values that they read, in the order of `values_of`.

    Examples
    --------
    >>> def before():
    ...     k = 2.0
    ...     bindings = Bindings(lambda x: k * x)
    ...     k = 3.0
    ...     return bindings.function()
    >>> before()(1.0)
    2.0
    """

    def __init__(self, f, *, bint copies=True):
        self.f, self.copies, self.found = f, copies, {}
        cdef list pending = [f], values
        while pending and len(self.found) < MOST_FUNCTIONS:
            x = pending.pop()
            if is_function(x) and id(x) not in self.found and (
                    copies or x is f or is_own(package_of(x), f)):
                values = [kept(value, copies) for value in values_of(x)]
                self.found[id(x)] = x, values
                pending += values

    cpdef set changed(self):
        """Return the names that are bound to other values now, or to tensors with other values."""
        cdef set names = set()
        cdef Py_ssize_t i
        cdef list now, before
        for x, before in self.found.values():
            now = values_of(x)
            for i in range(len(before)):
                if not is_same(now[i], before[i]):
                    names.add(labels_of(x)[i])
        return names

    cpdef function(self, own=()):
        """Return the function with its old bindings: itself if no name was rebound.

        Names in `own` keep their present values.
        """
        cdef dict found = self.found
        if self.changed().issubset(own):
            return self.f
        if own:
            found = {
                key: (x, [AsItIs(now) if name in own else before for name, now, before
                          in zip(labels_of(x), values_of(x), values, strict=True)])
                for key, (x, values) in found.items()}
        return Rebuilt(found).of(self.f)


@cython.final
cdef class Kept:
    """A writable array and a copy of its data."""

    cdef object array, copy

    def __init__(self, array):
        self.array, self.copy = array, array.copy(order="K")


@cython.final
cdef class AsItIs:
    """A value that is not copied."""

    cdef object value

    def __init__(self, value):
        self.value = value


class Rebuilt:
    """Copies of functions that refer to each other and to old bindings."""

    def __init__(self, found):
        self.found = found
        self.copies = {}
        self.globals = {}

    def of(self, x):
        """Return the copy of a function or tensor; other objects unchanged."""
        if type(x) is AsItIs:
            return (<AsItIs>x).value
        if type(x) is Kept:
            if is_same((<Kept>x).array, x):
                return (<Kept>x).array
            return self.copies.setdefault(id((<Kept>x).array), (<Kept>x).copy.copy(order="K"))
        if id(x) not in self.found:
            return kept(x, False)
        if id(x) not in self.copies:
            values = iter(self.found[id(x)][1])
            if type(x) is function_type:
                self.copy_function(x, values)
            elif type(x) is method_type:
                self.copies[id(x)] = MethodType(self.of(next(values)), x.__self__)
            else:
                function, *arguments = map(self.of, values)
                n_args = len(x.args)
                self.copies[id(x)] = partial(
                    function, *arguments[:n_args],
                    **dict(zip(x.keywords, arguments[n_args:], strict=True)))
        return self.copies[id(x)]

    def copy_function(self, x, values):
        found = list(values)
        cells = tuple([
            cell if value is nothing else CellType()
            for cell, value in zip(x.__closure__ or (), found, strict=False)])
        values = iter(found)
        known = self.globals.get(id(x.__globals__))
        if known is None:
            known = self.globals[id(x.__globals__)] = dict(x.__globals__)
        copy = self.copies[id(x)] = FunctionType(
            x.__code__, known, x.__name__, None, cells if x.__closure__ else None)
        copy.__dict__.update(x.__dict__)
        copy.__qualname__ = x.__qualname__
        for cell in cells:
            value = next(values)
            if value is not nothing:
                cell.cell_contents = self.of(value)
        if x.__defaults__ is not None:
            copy.__defaults__ = tuple(map(self.of, islice(values, len(x.__defaults__))))
        if x.__kwdefaults__ is not None:
            copy.__kwdefaults__ = {word: self.of(next(values)) for word in x.__kwdefaults__}
        for name, value in zip(names_of(x).of_globals, values, strict=True):
            if value is not nothing:
                known[name] = self.of(value)


cpdef list values_of(x):
    """Return the values that a function, method or partial reads: closure, defaults, globals."""
    if type(x) is method_type:
        return [x.__func__]
    if type(x) is partial_type:
        return [x.func, *x.args, *x.keywords.values()]
    cdef Names names = names_of(x)
    cdef list values = []
    cdef dict scope = x.__globals__
    if names.cells:
        for reads, cell in zip(names.cells, x.__closure__):
            values.append(content_of(cell) if reads else nothing)
    if x.__defaults__:
        values += x.__defaults__
    if x.__kwdefaults__:
        values += x.__kwdefaults__.values()
    for name in names.of_globals:
        values.append(scope.get(name, nothing))
    return values


def labels_of(x) -> tuple:
    """Return the names of the `values_of` a function, method or partial."""
    if type(x) is not function_type:
        return ("",) * len(values_of(x))
    labels, code = names_of(x).labels, x.__code__
    if x.__defaults__ or x.__kwdefaults__:
        n, last = len(code.co_freevars), code.co_argcount
        first = last - len(x.__defaults__ or ())
        return *labels[:n], *code.co_varnames[first:last], *(x.__kwdefaults__ or ()), *labels[n:]
    return labels


def codes(code) -> list:
    """List the code objects of a function and of the functions that it defines."""
    found = [code]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += codes(constant)
    return found


cpdef function_of(f):
    """Return the function that a method, partial or callable object calls, None if unknown."""
    while type(f) is not function_type:
        if type(f) is method_type:
            f = f.__func__
        elif isinstance(f, partial_type):
            f = f.func
        else:
            f = getattr(type(f), "__call__", None)
            return f if type(f) is function_type else None
    return f


cpdef str package_of(x):
    """Return the name of the package of a callable, class or module."""
    if isinstance(x, ModuleType):
        return first_part(x.__name__)
    function = function_of(x)
    if function is not None:
        return names_of(function).package
    return first_part(getattr(x, "__module__", None))


cpdef bint is_own(str package, f):
    """Return whether functions of a package may read users' values.

    These are the package of `f`, a callable or its package's name, and packages not installed.
    """
    known = searched.get(package)
    if known is None:
        module = sys.modules.get(package)
        path = getattr(module, "__file__", None) or str(getattr(module, "__path__", ""))
        known = searched[package] = "site-packages" not in path and "dist-packages" not in path
    return known or package == (f if type(f) is str else package_of(f))


cdef str first_part(module):
    return (<str>module).partition(".")[0] if type(module) is str else ""


cpdef Names names_of(function):
    """Return the names by which a function reads values."""
    code = function.__code__
    cdef Names known = names_of_codes.get(id(code))
    if known is None or known.code is not code:
        if len(names_of_codes) >= MOST_CODES:
            names_of_codes.clear()
        known = names_of_codes[id(code)] = Names(function)
    return known


def written_by(code):
    """Return the names whose elements code assigns to, and the attributes that it assigns to."""
    instructions = [(x, (x.positions or ())[:3:2]) for x in dis.get_instructions(code)]
    # The target expression begins where its assignment does.
    targets = {at for x, at in instructions if x.opname == "STORE_SUBSCR"}
    return {x.argval for x, at in instructions if x.opname == "STORE_ATTR" or (
        at in targets and x.opname in ("LOAD_DEREF", "LOAD_GLOBAL", "LOAD_ATTR"))}


cdef inline bint is_function(x) noexcept:
    kind = type(x)
    return kind is function_type or kind is method_type or kind is partial_type


cdef content_of(cell):
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return nothing


cdef kept(x, bint copies):
    if type(x) is Tensor:
        return another(x)
    if copies and type(x) is ndarray and x.flags.writeable and x.nbytes <= MOST_COPIED:
        return Kept(x)
    return x


cdef bint is_same(now, before) except -1:
    if now is before:
        return True
    if type(before) is Kept:
        return now is (<Kept>before).array and now.tobytes() == (<Kept>before).copy.tobytes()
    return type(now) is Tensor and type(before) is Tensor and now.id == before.id
