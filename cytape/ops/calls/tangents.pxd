# Forward mode: tangents of op calls, where the op has no faster way.
#
# A tangent is a bare Value, or a Tensor if its computation is recorded (its handle keeps that
# record alive). With `use_batch` it has a leading axis of directions.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.recording.state cimport TangentRecorder
from cytape.tensor.values.value cimport Value
from numpy cimport npy_intp

from .dispatch cimport Op

cdef int follow(Op op, list inputs, list outputs, dict attrs) except -1  # by every accumulator
cdef int follow_for(TangentRecorder accumulator, Op op, list inputs, list outputs,
                    dict attrs) except -1
# The accumulator that is all there is on this thread's stack, if it takes plain tangents; or None.
cdef TangentRecorder sole_accumulator()
cdef Value tangent_value(TangentRecorder accumulator, Value value)  # None: it has no tangent
cdef Spec spec_of_tangent(Spec spec, npy_intp n_directions)
cdef Value aligned(Value tangent, int ndim)  # batched, of a primal that is broadcast to ndim axes
cdef bint all_none(list tangents) except -1

# A gradient or tangent times a partial derivative, and the tangents of a symbolic output in a batch
# of unknown extents or number.
cdef object times(gradient, partial)
cdef object conjugate(partial)
cdef object unknown_batch(tuple partials, output, list inputs, Value out, list tangents)
