# RecordedCall: a call of a function on a new tape, for transforms in reverse mode.

from cytape.tensor.recording.state cimport Recorder

cdef class RecordedCall:
    cdef readonly object value     # result of the function
    cdef readonly object aux       # auxiliary data that it returned
    cdef readonly bint arrays_out  # whether the caller gets arrays
    cdef object fun
    cdef object argnums
    cdef bint quiet                # about arguments that the result does not depend on
    cdef readonly object selected  # the chosen arguments, unchanged
    cdef readonly list sources     # the tensors for their leaves
    cdef readonly Recorder recorder

    cpdef note_kept(self, aux=*)
    cdef int report(self, list connected) except -1
    cdef tuple arguments_that_left(self, list argument_of, list places)
    cdef list connected(self, list targets, list sources)
