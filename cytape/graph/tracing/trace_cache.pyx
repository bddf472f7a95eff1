"""The traces of a function by key, with limits on their number and size."""

cimport cython

from functools import partial
from operator import itemgetter
from typing import NamedTuple
from weakref import ref

__all__ = ["CacheInfo", "Traces"]

cdef enum:
    MOST_ALIASES = 64  # keys of one trace, for different extents


class CacheInfo(NamedTuple):
    """Size of a traced function's cache; `Function.cache_info` returns it.

    Attributes
    ----------
    traces : int
    plans : int
        Compiled plans of traces and their derivatives, one for every combination of shapes.
    nbytes : int
        Of constants, instructions and the memory that plans work in.
    max_traces, max_bytes : int or None
        Limits, beyond which the least recently used traces are dropped. None: no limit.
    """

    traces: int
    plans: int
    nbytes: int
    max_traces: int | None
    max_bytes: int | None


@cython.final
cdef class Entry:
    def __cinit__(self, tuple key, list references):
        self.keys = [key]
        self.references = references


cdef class Traces:
    """Traces by key, with limits.

    A trace is dropped when an object is deleted that its key identifies by id, or when there are
    too many.

    Parameters
    ----------
    max_traces, max_bytes : int or None
        How much is kept; None: all.

    Attributes
    ----------
    by_key : dict of tuple to ConcreteFunction
        Several keys may have the same trace.
    """

    def __init__(self, max_traces, max_bytes):
        self.by_key = {}
        self.entries = {}
        self.reference = ref(self)
        self.max_traces = max_traces
        self.max_bytes = max_bytes

    def __len__(self) -> int:
        return len(self.entries)

    cdef int add(self, tuple key, ConcreteFunction trace, list objects) except -1:
        """Store a trace for as long as the objects live, replacing the one of the same key."""
        cdef list references = []
        there = ref(trace)
        self.remove(key)
        if objects:
            forget_it = partial(forget, self.reference, there)
            references = [reference_to(x, forget_it) for x in objects]
        self.entries[trace] = Entry(key, references)
        self.by_key[key] = trace
        if self.max_traces is not None:
            while len(self.entries) > self.max_traces:
                self.discard(self.oldest(trace))
        if self.max_bytes is not None:
            trace.report_plans(partial(make_room, self.reference, there))
        return 0

    cdef int add_alias(self, tuple key, ConcreteFunction trace, list objects) except -1:
        """Add a key for a trace, while the objects live that only this key refers to."""
        cdef Entry entry = self.entries.get(trace)
        if entry is None:  # it was dropped in the meantime
            return 0
        self.remove(key)
        entry.keys.append(key)
        forget_it = partial(forget_key, self.reference, key)
        entry.references += [reference_to(x, forget_it) for x in objects]
        self.by_key[key] = trace
        if len(entry.keys) > MOST_ALIASES:
            self.by_key.pop(entry.keys.pop(1), None)  # the first is the one that it was traced for
        return 0

    cdef int discard(self, ConcreteFunction trace) except -1:
        """Drop a trace."""
        cdef Entry entry = self.entries.pop(trace, None)
        if entry is not None:
            for key in entry.keys:
                self.by_key.pop(key, None)
        return 0

    def clear(self) -> None:
        """Drop all traces."""
        self.by_key.clear()
        self.entries.clear()

    def info(self) -> CacheInfo:
        """Return the number and size of traces and plans."""
        cdef ConcreteFunction trace
        cdef list traces = list(self.entries)
        return CacheInfo(
            len(traces), sum([trace.n_plans for trace in traces]),
            sum([trace.nbytes for trace in traces]), self.max_traces, self.max_bytes)

    cdef int remove(self, tuple key) except -1:
        cdef ConcreteFunction trace = self.by_key.pop(key, None)
        cdef Entry entry = None if trace is None else self.entries.get(trace)
        if entry is not None:
            entry.keys = [other for other in entry.keys if other != key]
            if not entry.keys:
                self.discard(trace)
        return 0

    cdef int make_room(self, ConcreteFunction used) except -1:
        """Drop the least recently used traces if the size exceeds the limit, after a new plan.

        Other traces are dropped first; then plans of this trace, except the last one of each part.
        """
        cdef Entry entry = self.entries.get(used)
        if entry is None:
            return 0
        entry.nbytes = used.size()  # other traces update theirs
        while (excess := self.excess()) > 0 and len(self.entries) > 1:
            self.discard(self.oldest(used))
        if excess > 0:
            plans = [(*plan, executable) for executable in used.executables()
                     for plan in executable.plans_to_spare()]
            for _, nbytes, specs, executable in sorted(plans, key=itemgetter(0)):
                if excess <= 0:
                    break
                executable.drop(specs)
                excess -= nbytes
        return 0

    cdef object excess(self):
        cdef Entry entry
        cdef Py_ssize_t nbytes = 0
        for entry in list(self.entries.values()):
            nbytes += entry.nbytes
        return nbytes - self.max_bytes

    cdef ConcreteFunction oldest(self, ConcreteFunction newest):
        cdef ConcreteFunction trace, found = newest
        for trace in list(self.entries):
            if trace is not newest and (found is newest or trace.last_use < found.last_use):
                found = trace
        return found


cdef object reference_to(x, forget_it):
    """Return a weak reference to an object, or the object, so that its id stays valid."""
    try:
        return ref(x, forget_it)
    except TypeError:
        return x


def forget(traces, trace, _) -> None:
    """Drop a trace when one of its objects is deleted."""
    cdef Traces of_function = traces()
    cdef ConcreteFunction dead = trace()
    if of_function is not None and dead is not None:
        of_function.discard(dead)


def forget_key(traces, key, _) -> None:
    """Drop one key of a trace when one of its objects is deleted."""
    cdef Traces of_function = traces()
    if of_function is not None:
        of_function.remove(key)


def make_room(traces, trace) -> None:
    """Make room for a new plan of a trace."""
    cdef Traces of_function = traces()
    cdef ConcreteFunction used = trace()
    if of_function is not None and used is not None:
        of_function.make_room(used)
