# A library of its own on the C side of cytape.core: gradients and saved values are C structs, no
# Python object is made per op. test_foreign_tensors.py compiles it against the installed .pxd files.

from cytape.core.tape cimport Tape
from cytape.core.typedefs cimport id_t
from cytape.core.vspace cimport BackwardCall, OpKind, OpType, VSpace
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

cdef struct Scalar:
    double value
    int holders

cdef int scalars_alive = 0
cdef int saved_alive = 0


cdef Scalar* new_scalar(double value) except NULL:
    global scalars_alive
    cdef Scalar* scalar = <Scalar*>malloc(sizeof(Scalar))
    if scalar == NULL:
        raise MemoryError
    scalar.value = value
    scalar.holders = 1
    scalars_alive += 1
    return scalar


cdef void drop(void* gradient) noexcept:
    global scalars_alive
    cdef Scalar* scalar = <Scalar*>gradient
    scalar.holders -= 1
    if scalar.holders == 0:
        free(scalar)
        scalars_alive -= 1


cdef void release_saved(void** refs, int32_t n_refs, object keeper) noexcept:
    global saved_alive
    free(refs[n_refs - 1])
    saved_alive -= 1


cdef class Scalars(VSpace):
    cdef public double fails_at  # an output gradient that the backward function does not take

    cdef int64_t size(self, void* gradient) except -1:
        return 1

    cdef void* add(self, void** gradients, Py_ssize_t count) except NULL:
        cdef double total = 0
        cdef Py_ssize_t i
        for i in range(count):
            total += (<Scalar*>gradients[i]).value
            drop(gradients[i])
        return new_scalar(total)

    cdef void* ones(self, void* info) except NULL:
        return new_scalar(1)

    cdef void* zeros(self, void* info) except NULL:
        return new_scalar(0)

    cdef int backward(self, BackwardCall* call) except -1:
        cdef double* partials = <double*>call.refs[call.n_refs - 1]
        cdef double dy = (<Scalar*>call.output_gradients[0]).value
        if dy == self.fails_at:
            raise ArithmeticError(f"no gradient for {dy}")
        for i in range(call.n_inputs):
            if call.needed[i]:
                call.input_gradients[i] = new_scalar(dy * partials[i])
        drop(call.output_gradients[0])
        call.output_gradients[0] = NULL
        return 0

    cdef int retain(self, void* gradient) except -1:
        (<Scalar*>gradient).holders += 1
        return 0

    cdef void release(self, void* gradient) noexcept:
        drop(gradient)


cdef OpType binary = OpType("Binary")
binary.kind.release = release_saved


def record(Tape tape, id_t output, id_t x, id_t y, double dx, double dy):
    """Record an op with the partial derivatives dx and dy."""
    global saved_alive
    cdef id_t inputs[2]
    cdef void* refs[2]
    cdef double* partials = <double*>malloc(2 * sizeof(double))
    inputs[0], inputs[1] = x, y
    partials[0], partials[1] = dx, dy
    refs[0] = NULL  # the output's info: these ones and zeros need none
    refs[1] = partials
    tape.record_op(&binary.kind, inputs, 2, &output, 1, refs, 2)
    saved_alive += 1


def gradient(Tape tape, Scalars space, id_t target, id_t source):
    """Return the gradient of one target for one source, or None."""
    cdef void* seed = NULL
    cdef void* info = NULL
    cdef void* result = NULL
    tape.gradient(space, &target, 1, &seed, &info, &source, 1, True, False, &result)
    if result == NULL:
        return None
    value = (<Scalar*>result).value
    drop(result)
    return value


def alive():
    """Return how many gradients and how many saved values exist."""
    return scalars_alive, saved_alive
