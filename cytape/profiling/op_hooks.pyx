"""Hooks around the calls of ops and of their backward functions, while a thread is profiled.

a. `install` replaces the C functions that classes of ops are called by: `tp_call` of the type, and
   the entries of the table of C methods. Without a profile there is no check anywhere.
b. A hook measures a call, and appends an event to the `Log` of its thread, if it has one.
c. A class that is imported meanwhile copies the hooks into its tables, and keeps them. They find
   the functions of its base class and do nothing else without a profile.
d. The memory of results is followed by weak references to their values.
"""

from cpython.ref cimport PyObject
from cytape.core.vspace cimport BackwardCall, VSpace
from cytape.graph.passes.fused_op cimport FusedOp
from cytape.ops.calls.dispatch cimport Op
from cytape.tensor.operators cimport Operator
from cytape.tensor.recording.state cimport building
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value, is_symbolic
from numpy cimport ndarray

import os
import sys
import threading
import weakref
from time import perf_counter
from typing import Any, NamedTuple

import numpy

from cytape.core.tape import IDENTITY
from cytape.graph.run.plan import set_tracer
from cytape.ops.engine.tensor_vspace import tensor_vspace
# Classes of ops that are imported late, so that they have hooks, too.
import cytape.autodiff.custom.primitive_op
import cytape.graph.control.control_ops
import cytape.graph.nested.checkpoint_plan
import cytape.ops.updates.update_op

__all__ = ["Event", "Log", "begin", "end"]

cdef extern from *:
    """
    #define CYTAPE_GET_CALL(cls) (((PyTypeObject *)(cls))->tp_call)
    #define CYTAPE_SET_CALL(cls, f) (((PyTypeObject *)(cls))->tp_call = (ternaryfunc)(f))
    #define CYTAPE_HAS_VECTORCALL(cls) (((PyTypeObject *)(cls))->tp_vectorcall_offset > 0)
    #define CYTAPE_BY_VECTORCALL(cls, is_on) do { \\
        unsigned long *flags = &((PyTypeObject *)(cls))->tp_flags; \\
        if (is_on) *flags |= Py_TPFLAGS_HAVE_VECTORCALL; \\
        else *flags &= ~Py_TPFLAGS_HAVE_VECTORCALL; \\
        PyType_Modified((PyTypeObject *)(cls)); } while (0)
    #define CYTAPE_CALL1(op) ((op)->__pyx_vtab->call1)
    #define CYTAPE_CALL2(op) ((op)->__pyx_vtab->call2)
    #define CYTAPE_ASSIGN(op) ((op)->__pyx_vtab->assign)
    #define CYTAPE_SET_CALL1(op, f) (CYTAPE_CALL1(op) = (f))
    #define CYTAPE_SET_CALL2(op, f) (CYTAPE_CALL2(op) = (f))
    #define CYTAPE_SET_ASSIGN(op, f) (CYTAPE_ASSIGN(op) = (f))
    #define CYTAPE_BACKWARD(space) ((space)->__pyx_vtab->backward)
    #define CYTAPE_SET_BACKWARD(space, f) (CYTAPE_BACKWARD(space) = (f))
    """
    call_t CYTAPE_GET_CALL(object cls) noexcept
    void CYTAPE_SET_CALL(object cls, call_t f) noexcept
    bint CYTAPE_HAS_VECTORCALL(object cls) noexcept
    void CYTAPE_BY_VECTORCALL(object cls, bint is_on) noexcept
    call1_t CYTAPE_CALL1(Operator op) noexcept
    call2_t CYTAPE_CALL2(Operator op) noexcept
    assign_t CYTAPE_ASSIGN(Operator op) noexcept
    void CYTAPE_SET_CALL1(Operator op, call1_t f) noexcept
    void CYTAPE_SET_CALL2(Operator op, call2_t f) noexcept
    void CYTAPE_SET_ASSIGN(Operator op, assign_t f) noexcept
    backward_t CYTAPE_BACKWARD(VSpace space) noexcept
    void CYTAPE_SET_BACKWARD(VSpace space, backward_t f) noexcept

cdef extern from "Python.h":
    object PyVectorcall_Call(object function, object args, PyObject* arguments)

FORWARD, BACKWARD, PLAN, BUILD = "forward", "backward", "plan", "build"
LIBRARIES = tuple([os.path.dirname(path) + os.sep for path in (
    os.path.dirname(__file__), numpy.__file__)])

cdef dict originals = {}     # class of ops -> Originals
cdef dict instances = {}     # class of ops -> an op without contents, for its table
cdef dict logs = {}          # number of a thread -> Log
cdef dict is_library = {}    # code object -> whether it is this package's, NumPy's or SciPy's
cdef backward_t original_backward = NULL


class Event(NamedTuple):
    """A call that was measured.

    Attributes
    ----------
    kind : str
        "forward", "backward", "plan" (a step of a plan) or "build" (a node added to a graph).
    name : str
        The op type.
    file, line : str, int
        The line of the user's program; "", 0 if unknown.
    start, end : float
        Seconds, on the clock of `time.perf_counter`.
    nbytes : int
        Of the results.
    live_bytes : int
        Of a plan, while the step ran; else 0.
    """

    kind: Any
    name: Any
    file: Any
    line: Any
    start: Any
    end: Any
    nbytes: Any
    live_bytes: Any = 0


cdef class Log:
    """Events of one thread."""

    def __init__(self):
        self.events, self.memory = [], []
        self.event_of, self.held, self.alive = {}, {}, {}

    cdef int note_forward(self, Operator op, result, double start) except -1:
        """Append the call of an op that returned tensors."""
        cdef double end = perf_counter()
        cdef Py_ssize_t nbytes = 0
        cdef Spec spec
        kind = FORWARD
        results = result if isinstance(result, (tuple, list)) else (result,)
        for each in results:
            if not isinstance(each, Tensor):
                return 0
            spec = (<Tensor>each).held.spec
            if is_symbolic((<Tensor>each).held):
                kind = BUILD
            elif spec.known:
                nbytes += spec.nbytes
            self.event_of[(<Tensor>each).held.id] = len(self.events)
        file, line = caller()
        self.events.append(Event(
            kind, (<Op>op).op_type.name, file, line, start, end, nbytes))
        if kind is FORWARD:
            for each in results:
                self.note_memory((<Tensor>each).held, end)
        return 0

    cdef int note_memory(self, value, double when) except -1:
        """Follow the memory of a value until all noted values in this memory are freed."""
        holder = value
        owner = (<Value>value).owner
        while owner is not None:
            holder, owner = owner, owner.base if type(owner) is ndarray else (
                (<Value>owner).owner if type(owner) is Value else None)
        held = self.held.get(id(holder))
        if held is None:
            if (<Value>value).is_part:
                return 0  # of an argument
            nbytes = holder.nbytes if type(holder) is ndarray else (<Value>value).spec.nbytes
            held = self.held[id(holder)] = [0, nbytes]
            self.memory.append((when, nbytes))
        held[0] += 1
        reference = weakref.ref(value, self.forget)
        self.alive[id(reference)] = reference, id(holder)
        return 0

    def forget(self, reference):
        """Note that a value was freed."""
        if id(reference) not in self.alive:
            return
        _, holder = self.alive.pop(id(reference))
        held = self.held[holder]
        held[0] -= 1
        if not held[0]:
            del self.held[holder]
            self.memory.append((perf_counter(), -held[1]))

    def close(self):
        """Follow no more memory."""
        self.alive.clear()


class Tracer:
    """Trace of the plans that run in threads with a log."""

    def add(self, graph, int node, start, end, live_bytes):
        cdef Log log = logs.get(threading.get_ident())
        if log is None:
            return
        specs = [graph.spec_of(symbol) for symbol in graph.outputs_of(node)]
        file, line, _ = graph.location_of(node) or ("", 0, "")
        op = graph.ops[node]
        name = op.name
        if isinstance(op, FusedOp):
            name += f"({', '.join([step.name for step in (<FusedOp>op).step_ops])})"
        log.events.append(Event(
            PLAN, name, file, line, start, end,
            sum([spec.nbytes for spec in specs if spec.known]), live_bytes))

    def keep(self, results):
        """Follow the memory of a run's results, and return them."""
        cdef Log log = logs.get(threading.get_ident())
        if log is not None:
            for value in results:
                log.note_memory(value, perf_counter())
        return results


def caller() -> tuple:
    """Return file and line of the innermost function outside of this package and NumPy."""
    frame = sys._getframe(0)
    while frame is not None:
        code = frame.f_code
        found = is_library.get(code)
        if found is None:
            found = is_library[code] = code.co_filename.startswith(LIBRARIES)
        if not found:
            return code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0


# ---- the hooks

cdef Originals originals_of(cls):
    found = originals.get(cls)
    if found is None:  # a class imported since
        for base in cls.__mro__:
            if base in originals:
                found = originals[cls] = originals[base]
                break
    return found


cdef object hooked_call(object op, object args, PyObject* arguments):
    cdef Originals original = originals_of(type(op))
    cdef Log log = logs.get(threading.get_ident())
    cdef double start
    if log is None:
        return called(original, op, args, arguments)
    start = perf_counter()
    result = called(original, op, args, arguments)
    log.note_forward(op, result, start)
    return result


cdef object called(Originals original, object op, object args, PyObject* arguments):
    if CYTAPE_HAS_VECTORCALL(type(op)):
        return PyVectorcall_Call(op, args, arguments)
    return original.call(op, args, arguments)


cdef object hooked_call1(Operator op, object x):
    cdef Originals original = originals_of(type(op))
    cdef Log log = logs.get(threading.get_ident())
    cdef double start
    if log is None:
        return original.call1(op, x)
    start = perf_counter()
    result = original.call1(op, x)
    log.note_forward(op, result, start)
    return result


cdef object hooked_call2(Operator op, object x, object y):
    cdef Originals original = originals_of(type(op))
    cdef Log log = logs.get(threading.get_ident())
    cdef double start
    if log is None:
        return original.call2(op, x, y)
    start = perf_counter()
    result = original.call2(op, x, y)
    log.note_forward(op, result, start)
    return result


cdef int hooked_assign(Operator op, object x, object index, object value) except -1:
    cdef Originals original = originals_of(type(op))
    cdef Log log = logs.get(threading.get_ident())
    cdef double start = perf_counter()
    original.assign(op, x, index, value)
    if log is not None:
        log.note_forward(op, x, start)
    return 0


cdef int hooked_backward(VSpace space, BackwardCall* call) except -1:
    cdef Log log = logs.get(threading.get_ident())
    cdef double start, end
    cdef Py_ssize_t nbytes = 0
    cdef int i
    if log is None:
        return original_backward(space, call)
    name = IDENTITY if call.kind.owner == NULL else (<Op>call.kind.owner).op_type.name
    place = log.event_of.get(call.output_id)
    start = perf_counter()
    original_backward(space, call)
    end = perf_counter()
    for i in range(call.n_inputs):
        if call.input_gradients[i] != NULL:
            gradient = <object>call.input_gradients[i]
            if type(gradient) is Tensor:
                gradient = (<Tensor>gradient).held
            if type(gradient) is Value and not is_symbolic(<Value>gradient):
                nbytes += (<Value>gradient).spec.nbytes
                log.note_memory(gradient, end)
    file, line = ("", 0) if place is None else log.events[place][2:4]
    kind = BACKWARD if building() is None else BUILD
    log.events.append(Event(kind, name, file, line, start, end, nbytes))
    return 0


# ---- installing them

cdef int find_originals() except -1:
    """Note the functions of all classes of ops, once."""
    global original_backward
    cdef Originals original
    cdef Operator op
    if original_backward == NULL:
        original_backward = CYTAPE_BACKWARD(<VSpace>tensor_vspace)
    classes = [Op]
    for cls in classes:  # grows
        classes += cls.__subclasses__()
        if cls in originals:
            continue
        op = instances[cls] = cls.__new__(cls)
        if CYTAPE_CALL1(op) == <call1_t>hooked_call1:
            del instances[cls]
            continue  # imported meanwhile
        original = originals[cls] = Originals()
        original.call = CYTAPE_GET_CALL(cls)
        original.call1 = CYTAPE_CALL1(op)
        original.call2 = CYTAPE_CALL2(op)
        original.assign = CYTAPE_ASSIGN(op)
    return 0


cdef int install(bint is_on) except -1:
    cdef Originals original
    cdef Operator op
    for cls, op in instances.items():
        original = originals[cls]
        if original.call != NULL:
            CYTAPE_SET_CALL(cls, <call_t>hooked_call if is_on else original.call)
        if CYTAPE_HAS_VECTORCALL(cls):
            CYTAPE_BY_VECTORCALL(cls, not is_on)
        CYTAPE_SET_CALL1(op, <call1_t>hooked_call1 if is_on else original.call1)
        CYTAPE_SET_CALL2(op, <call2_t>hooked_call2 if is_on else original.call2)
        CYTAPE_SET_ASSIGN(op, <assign_t>hooked_assign if is_on else original.assign)
    CYTAPE_SET_BACKWARD(
        <VSpace>tensor_vspace, <backward_t>hooked_backward if is_on else original_backward)
    set_tracer(Tracer() if is_on else None)
    return 0


def begin() -> Log:
    """Return the log of this thread for one more profile; the first one installs the hooks."""
    cdef Log log = logs.get(threading.get_ident())
    if log is None:
        if not logs:
            find_originals()
            install(True)
        log = logs[threading.get_ident()] = Log()
    log.n_profiles += 1
    return log


def end(Log log not None):
    """End a profile; the last one of a log ends it, and the last log removes the hooks."""
    log.n_profiles -= 1
    if log.n_profiles:
        return
    for thread, other in list(logs.items()):
        if other is log:
            del logs[thread]
    log.close()
    if not logs:
        install(False)
