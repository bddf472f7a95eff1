# UpdateOp: an array with values in a part of it, `x[index] = value` as a function of x and value.
#
# A write gives the tensor another value, with an id of its own. Entries of the value before refer
# to the old id. If that value and its memory have no other owner, the part is written in place, and
# the memory becomes the new value's: the time does not depend on the size of the array. Nor does
# that of the derivatives: the gradient of the array loses the part, in place, and its tangent gets
# the tangent of the part.

from cytape.core.typedefs cimport id_t
from cytape.ops.engine.general_op cimport GeneralOp
from cytape.ops.kernels.moves cimport Region
from cytape.tensor.recording.state cimport Recorder
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value

cdef enum Kind:
    SET
    CLEAR    # to zero: what the gradient of the array is
    TAKE     # x[index], but always a copy: what the gradient of the part is

cdef class UpdateOp(GeneralOp):
    cdef Kind kind
    # SET, for what is not written in place: called with a tensor, an index and a value.
    cdef public object general
    cdef bint write(self, Tensor tensor, index, value) except -1

cdef char* nothing() noexcept  # an element of any dtype that is zero
cdef bint is_watched(Recorder recorder, id_t id) except -1
cdef int note_change(id_t before, id_t after) except -1
