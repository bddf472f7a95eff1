# UpdateOp: an array with a part replaced, `x[index] = value` as a function of x and value.
#
# A write gives the tensor a new value with a new id; earlier entries refer to the old id. If the
# old value and its memory have no other owner, the part is written in place and the new value takes
# over the memory, so the time does not depend on the size of the array. Derivatives work in place,
# too: the part of the array's gradient is cleared, the part of its tangent is overwritten.

from cytape.core.typedefs cimport id_t
from cytape.ops.engine.general_op cimport GeneralOp
from cytape.ops.kernels.moves cimport Region
from cytape.tensor.recording.state cimport Recorder
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value

cdef enum Kind:
    SET
    CLEAR    # set to zero: the gradient of the array
    TAKE     # x[index], but always a copy: the gradient of the part

cdef class UpdateOp(GeneralOp):
    cdef Kind kind
    # SET if it cannot be in place: called with a tensor, an index and a value.
    cdef public object general
    cdef bint write(self, Tensor tensor, index, value) except -1

cdef char* nothing() noexcept  # an element of any dtype that is zero
cdef bint is_watched(Recorder recorder, id_t id) except -1
cdef int note_change(id_t before, id_t after) except -1
