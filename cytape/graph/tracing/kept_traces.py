"""Traces of computations with a user's function, kept while its globals and closure are the same.

SciPy's functions call a user's function that is not declared a `function`, so its globals and
closure may change between calls. Each call compares them by value, and a function that reads
anything that cannot be compared is called without a trace.
"""

import dis
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from cytape.errors import CytapeError
from cytape.graph.tracing.functions import Function
from cytape.ops.python.bound_names import codes, names_of, package_of, unbound, values_of
from cytape.tensor.recording.state import current_graph

CALLS_BEFORE = 2  # tracing takes as long as several calls
MOST_KEPT = 64
MOST_BYTES = 1 << 12  # of arrays that are compared
PACKAGES = {"numpy", "scipy", "cytape", "math", "cmath", "builtins", "operator"}
# Functions whose results change, or that have side effects.
IMPURE = {"random", "print", "open", "input", "globals", "locals", "vars", "eval", "exec"}
# Methods that change the list, dict, set or array that they are called of.
CHANGING = {
    "add", "append", "clear", "discard", "extend", "fill", "insert", "pop", "popitem", "put",
    "remove", "resize", "reverse", "setdefault", "sort", "update"}
OF_TRACING = (
    CytapeError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError,
    AssertionError, NotImplementedError, RecursionError, MemoryError)
DISPATCHED = type(np.sum)

_kept: OrderedDict = OrderedDict()
_pure: dict = {}  # by address of codes, with these: hashes of codes are slow


class Unknown(ValueError):
    """The function reads an object that cannot be compared."""


class Changed(Exception):
    """Values that the function reads are not those of the identity any more."""


def require_of_tracing(error: Exception) -> None:
    """Raise an error again unless symbolic tensors or a batch axis may be its reason.

    The function branches by values, say. Errors of its own come again without the trace; one of a
    signal handler, such as a time limit, does not.
    """
    reason: BaseException | None = error
    while reason is not None and not isinstance(reason, OF_TRACING):
        reason = reason.__cause__ or reason.__context__
    if reason is None:
        raise error


class Kept:
    """Computations of one identity, which are traced from the third call on."""

    def __init__(self, codes: list) -> None:
        self._codes, self._count = codes, 0  # addresses of codes stay theirs
        self._traced: Any = None
        self._takes_symbols = True
        self._caller = threading.local()

    def __call__(self, plain: Callable, reads: "Identity", *args: Any) -> Any:
        """Run the trace; without one, or if it fails, the computation itself."""
        self._count += 1
        if self._count > CALLS_BEFORE and self._takes_symbols:
            # An earlier closure may have changed since its call.
            self._caller.plain, self._caller.reads = plain, reads
            try:
                if self._traced is None:
                    self._traced = Function(
                        self._call_plain, reduce_retracing=True, max_traces=8)
                return self._traced(*args)
            except Changed:
                pass
            except Exception as error:
                require_of_tracing(error)
                self._takes_symbols, self._traced = False, None
            finally:
                del self._caller.plain, self._caller.reads
        return plain(*args)

    def _call_plain(self, *args: Any) -> Any:
        result = self._caller.plain(*args)
        if current_graph().stateful:
            # An eager program, such as a solver, which derivatives in the graph would run again.
            raise Unknown
        # Another thread, or the function by a way that was not seen, may have written to them.
        if not self._caller.reads.is_current():
            raise Changed
        return result


class Identity:
    """Hashable key of all values that calls of functions read, and the codes that it names."""

    def __init__(self, reads: tuple) -> None:
        known: dict = {}
        self._reads, self.key = reads, tuple([_identity(x, known) for x in reads])
        self.codes = list(known.values())

    def is_current(self) -> bool:
        """Return whether all values are the same as before."""
        now = identity_of(*self._reads)
        return now is not None and now.key == self.key


def identity_of(*reads: Any) -> Identity | None:
    """Return the identity of functions and structures of numbers and arrays, None if unknown."""
    try:
        return Identity(reads)
    except (Unknown, RecursionError):  # a list may contain itself
        return None


def kept(plain: Callable, reads: Identity | None, shapes: Sequence[tuple]) -> Callable:
    """Return a computation with arrays, which may be traced.

    Parameters
    ----------
    plain : callable
        A function or a partial. It takes arrays and structures of them, and depends on its code and
        on `reads` besides.
    reads : Identity or None
    shapes : sequence of tuple of int
        Shapes of the arrays that users' functions get: they may depend on these. A trace has
        unknown extents along other axes after a second size.
    """
    if reads is None:
        return plain
    function = plain.func if isinstance(plain, partial) else plain
    code = function.__code__
    key = id(code), reads.key, tuple(shapes)
    found = _kept.pop(key, None) or Kept([code, *reads.codes])
    _kept[key] = found  # the last one in the order of use, whatever other threads do
    if len(_kept) > MOST_KEPT:
        _kept.popitem(last=False)
    return partial(found, plain, reads)


def _identity(x: Any, known: dict) -> Any:
    """Return a hashable object that differs if calls of functions that read x may differ.

    `known` collects the codes of functions, by the functions' addresses.
    """
    kind = type(x)
    if kind is float:
        return x.hex()  # 0.0 == -0.0
    if x is None or x is unbound or kind in (int, bool, str):
        return kind, x
    if kind is FunctionType:
        return _identity_of_function(x, known)
    if isinstance(x, np.generic):
        return x.dtype, x.tobytes()
    if kind is np.ndarray:
        if x.dtype.kind in "biufc" and x.nbytes <= MOST_BYTES:
            return x.dtype, x.shape, x.tobytes()
    elif kind in (tuple, list):
        return kind, tuple([_identity(item, known) for item in x])
    elif kind is dict:
        return kind, tuple([(_identity(k, known), _identity(v, known)) for k, v in x.items()])
    elif kind is partial:
        return partial, _identity([x.func, x.args, x.keywords], known)
    elif kind is ModuleType or kind is type:
        name = x.__name__ if kind is ModuleType else x.__module__
        if _package(name) in PACKAGES and "random" not in name:
            return x
    elif kind is BuiltinFunctionType:
        if isinstance(x.__self__, ModuleType) and _package(x.__self__.__name__) in PACKAGES:
            return x
    elif kind is np.ufunc:
        # Those of numpy.frompyfunc call a Python function.
        if getattr(np, x.__name__, None) is x or any("O" not in types for types in x.types):
            return x
    elif kind is DISPATCHED or kind.__module__.startswith("cytape.ops.") and not _draws(x):
        return x  # of NumPy; ops
    raise Unknown


def _package(module: str) -> str:
    return module.partition(".")[0]


def _draws(x: Any) -> bool:
    """Return whether a function of a package draws random numbers."""
    module = getattr(x, "__module__", "")
    return "random" in module or "sampling" in module


def _identity_of_function(x: FunctionType, known: dict) -> Any:
    if x.__closure__ is None and package_of(x) in PACKAGES and not _draws(x):
        return x
    if id(x) in known:  # others have the same code
        return [*known].index(id(x))
    if x.__dict__ or not _is_pure(x):
        raise Unknown
    known[id(x)] = x.__code__
    return id(x.__code__), tuple([_identity(value, known) for value in values_of(x)])


def _is_pure(function: FunctionType) -> bool:
    """Return whether a function assigns to local variables only, and calls nothing impure."""
    code = function.__code__
    found = _pure.get(id(code))
    if found is None:
        inner = codes(code)
        steps = [(step.opname, step.argval) for each in inner
                 for step in dis.get_instructions(each)]
        is_pure = not names_of(function).written and not any(
            name in ("STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME")
            or name == "STORE_DEREF" and value in code.co_freevars for name, value in steps
        ) and not any(
            name in ("LOAD_GLOBAL", "LOAD_DEREF") and method in CHANGING
            and type(function.__globals__.get(owner)) is not ModuleType
            for (name, owner), (_, method) in pairwise(steps) if isinstance(method, str)
        ) and not any(IMPURE.intersection(each.co_names) for each in inner)
        if len(_pure) >= 1000:
            _pure.clear()
        found = _pure[id(code)] = is_pure, code
    return found[0]
