# Tangents of op calls, for all ops that do not compute theirs in C.
#
# A tangent is a Value, or a Tensor if its computation is recorded, since the handle keeps the
# record alive. With `use_batch` it has a leading axis of directions.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.recording.state cimport TangentRecorder
from cytape.tensor.values.value cimport Value
from numpy cimport npy_intp

from .dispatch cimport Op

cdef int follow(Op op, list inputs, list outputs, dict attrs) except -1  # by every accumulator
cdef int follow_for(TangentRecorder accumulator, Op op, list inputs, list outputs,
                    dict attrs) except -1
# The only recorder on this thread's stack, if it is an accumulator of plain tangents; or None.
cdef TangentRecorder sole_accumulator()
cdef Value tangent_value(TangentRecorder accumulator, Value value)  # None: it has no tangent
cdef Spec spec_of_tangent(Spec spec, npy_intp n_directions)
cdef Value aligned(Value tangent, int ndim)  # of a primal that is broadcast to ndim axes
cdef bint all_none(list tangents) except -1
