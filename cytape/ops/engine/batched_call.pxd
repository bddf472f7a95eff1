# BatchedCall: a call of an op in which some inputs have a batch axis, the first.

cdef class BatchedCall:
    cdef readonly object op
    cdef readonly dict attrs
    cdef readonly list inputs
    cdef readonly list mapped          # per input whether it has the batch axis
    cdef readonly object input_specs   # without that axis
    cdef readonly object output_specs  # without it
    cdef readonly object extent        # length of the batch axis; None if it is not known
    cdef object function               # the op, or for arrays its forward function
