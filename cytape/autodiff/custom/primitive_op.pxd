# PrimitiveOp: an op of a function of plain arrays, with users' rules in autograd's form.

from cpython.ref cimport PyObject
from cytape.core.vspace cimport BackwardCall
from cytape.ops.calls.dispatch cimport Op
from libc.stdint cimport uint64_t

cdef class PrimitiveCall:
    cdef readonly tuple args    # the result, then the arguments, plain
    cdef readonly dict kwargs
    cdef uint64_t tensors       # positions of the arguments that were tensors, a bit each
    cdef bint opaque            # it may refer to the tape: the garbage collector must know
    cdef uint64_t tracked       # positions of the arguments that tapes tracked
    cdef readonly object vjps   # made at the call for these: functions by argument, or one of all

    cdef tuple numbers(self, uint64_t mask)
    cdef tuple seen(self, list inputs, output, bint plain)

cdef class PrimitiveOp(Op):
    # The tail of an entry: the op, which is kept alive; the call; and NULL, or None if the call is
    # opaque: then the tape's keeper owns it.
    cdef public set box_types   # classes of boxes that are no tensors
    cdef readonly object fun
    cdef readonly object vjps   # rule for any arguments together, or None
    cdef public object jvps     # rule of forward mode, or None
    cdef list makers            # of vjps: rules by the number of the argument; None: no such list
    cdef uint64_t ruled         # arguments with a rule, a bit each

    cdef int record(self, PyObject** inputs, int n, PyObject* output, PrimitiveCall call,
                    bint is_new) except -1
    cdef int backward_in_general(self, BackwardCall* call, PrimitiveCall recorded,
                                 bint plain) except -1
    cdef object made(self, PrimitiveCall call, uint64_t tracked)
    cdef int take(self, BackwardCall* call, int i, found) except -1
