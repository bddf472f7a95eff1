# CustomOp: one call whose vjp is a Python closure.

from cytape.ops.calls.dispatch cimport Op

cdef class CustomOp(Op):
    # refs of an entry: output specs, input specs, the Backward that keeps the closure. The closures
    # are attributes of the call: "backward" and "jvp".
    cdef bint with_jvp
