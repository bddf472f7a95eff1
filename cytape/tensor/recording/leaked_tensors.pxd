# Leaks: tensors, other than its results, that are alive after the differentiated call that recorded
# them. A later call does not know them, so they are constants there. Its tape watches those that it
# meets, to find out whether its result depends on them.

from cpython.ref cimport PyObject
from cytape.core.typedefs cimport id_t

from .recorders cimport Recorder, TangentRecorder

cdef enum:  # kinds of watched tensors
    SOURCES = 1
    LEAKS = 2

cdef int begin_call(Recorder tape) except -1    # a differentiated call is recorded on the tape
cdef set ids_with_handles(  # of outputs of its ops other than its result, None without any
    Recorder tape, id_t result)
cdef set ids_with_tangents(TangentRecorder accumulator)
cdef int note_leaks(set ids) except -1
# Watch a tensor if it leaked before the call that the tape records; return whether it did. Or
# watch such inputs of an op; ids as in `tape_entry.pxd`.
cdef bint watch_leak(Recorder tape, id_t id) except -1
cdef int watch_leaks(Recorder tape, PyObject** inputs, const id_t* ids, int n) except -1
cdef int forget_leak(id_t id) except -1         # the tensor is written to: it is state
cdef int origins(  # the kinds of those that some tensors depend on
    Recorder tape, list ids) except -1
