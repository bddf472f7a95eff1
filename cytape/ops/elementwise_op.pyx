cimport cython
cimport numpy as cnp
from cpython.ref cimport PyObject
from cytape.core.trace cimport UNTRACED, trace_slot
from cytape.core.typedefs cimport NO_ID, NO_INDEX, id_t, index_t
from cytape.core.vspace cimport WANTED, OpType
from cytape.tensor.spec cimport Spec, boolean_spec, scalar_spec
from cytape.tensor.state cimport Counts, Recorder, counts, recording
from cytape.tensor.tensor cimport another_handle, as_ndarray, new_tensor
from cytape.tensor.value cimport array_of, new_value, value_of_array
from numpy cimport npy_intp

from .dispatch cimport (
    dense, documentation, give, is_followed, ndarray_of, opts_out, owned, owned_pointer,
    release_objects, restored, spec_of_ref, tensor_value, value_of)
from .kernels cimport N_TYPES, Loop, kernel_of
from .program cimport FIRST_INPUT, GRADIENT, OUTPUT, Program

import numpy as np

from cytape.errors import TapeStateError
from cytape.ops.dispatch import conform
from cytape.ops.program import trace

cnp.import_array()

cdef extern from "Python.h":
    PyObject* PyList_GET_ITEM(object list, Py_ssize_t i) noexcept  # borrowed
    Py_ssize_t PyList_GET_SIZE(object list) noexcept

cdef extern from *:
    """
    #include <fenv.h>
    #define CYTAPE_TROUBLE (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW)
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <xmmintrin.h>
    /* fetestexcept without the call: vector code sets the one word, feraiseexcept the other. */
    static inline int cytape_trouble(void) {
        unsigned short status;
        __asm__ __volatile__("fnstsw %0" : "=a"(status));
        return (status | _mm_getcsr()) & CYTAPE_TROUBLE;
    }
    #else
    #define cytape_trouble() fetestexcept(CYTAPE_TROUBLE)
    #endif
    """
    int CYTAPE_TROUBLE, FE_DIVBYZERO, FE_INVALID, FE_OVERFLOW
    int fetestexcept(int excepts) noexcept nogil
    bint cytape_trouble() noexcept nogil
    int feclearexcept(int excepts) noexcept nogil

cdef Counts* recorders = counts()
cdef Kernel add_kernel = kernel_of(np.add)


@cython.final
cdef class ElementwiseOp(Op):
    def __init__(self, str name, forward, tuple partials):
        self.op_type = OpType(name)
        self.op_type.kind.release = release_objects
        self.op_type.kind.owner = <void*>self
        self.forward = forward
        self.partials = partials
        self.n_inputs = len(partials)
        if self.n_inputs > MAX_INPUTS:
            raise ValueError(f"an elementwise op has at most {MAX_INPUTS} inputs")
        for i, partial in enumerate(partials):
            self.has_partial[i] = partial is not None
        if isinstance(forward, np.ufunc):
            self.kernel = kernel_of(forward)

    @property
    def __doc__(self) -> str:
        return documentation(self)

    def __call__(self, *inputs, **arguments):
        if not arguments and len(inputs) == self.n_inputs < 3:
            return self.call1(inputs[0]) if self.n_inputs == 1 else self.call2(inputs[0], inputs[1])
        for x in inputs:
            if isinstance(x, Tensor):
                break
        else:
            return self.forward(*inputs, **arguments)
        if len(inputs) != self.n_inputs:
            raise TypeError(
                f"{self.op_type.name} takes {self.n_inputs} arguments, got {len(inputs)}")
        dtype = arguments.pop("dtype", None)
        for argument, value in arguments.items():
            if value is not None and not (argument == "where" and value is True):
                raise TypeError(
                    f"{self.op_type.name} of a tensor does not take the argument {argument!r}: "
                    "tensors are immutable; use cytape.numpy.where to select")
        if dtype is not None:
            inputs = [conform["cast"](x, dtype) for x in inputs]
        return self.by_numpy(*inputs)

    cdef object call1(self, x):
        cdef Value a = tensor_value(x), out
        cdef Loop* loop
        cdef char* data[2]
        cdef npy_intp strides[2]
        if a is None:
            return self.forward(x)
        if self.kernel is not None and a.contiguous and a.spec.type_num < N_TYPES:
            loop = &self.kernel.loops[a.spec.type_num]
            if loop.function != NULL:
                out = result_value(a.spec, loop, a.spec.type_num)
                if out is not None:
                    data[0] = a.data
                    data[1] = out.data
                    strides[0] = a.spec.itemsize
                    strides[1] = out.spec.itemsize
                    loop.function(data, &a.spec.size, strides, loop.data)
                    if cytape_trouble():
                        warn(self.forward, (ndarray_of(x),))
                    return self.finish(out, a, None)
        return self.by_numpy(x)

    cdef object call2(self, x, y):
        cdef Value a = tensor_value(x), b = tensor_value(y), out = None
        cdef Loop* loop
        cdef Spec spec
        cdef char* data[3]
        cdef npy_intp strides[3]
        if a is None:
            if b is None:
                return self.forward(x, y)
            a = weak_scalar(x, b.spec)
        elif b is None:
            b = weak_scalar(y, a.spec)
        if a is None or b is None:
            return self.by_numpy(x, y)
        spec = a.spec if b.spec.ndim == 0 else b.spec
        if (self.kernel is not None and a.contiguous and b.contiguous
                and a.spec.type_num == b.spec.type_num < N_TYPES
                and (a.spec is b.spec or a.spec.ndim == 0 or b.spec.ndim == 0)):
            loop = &self.kernel.loops[spec.type_num]
            if loop.function != NULL:
                out = result_value(spec, loop, spec.type_num)
        if out is None:
            return self.by_numpy(x, y)
        data[0] = a.data
        data[1] = b.data
        data[2] = out.data
        strides[0] = spec.itemsize if a.spec is spec else 0
        strides[1] = spec.itemsize if b.spec is spec else 0
        strides[2] = out.spec.itemsize
        loop.function(data, &spec.size, strides, loop.data)
        if cytape_trouble():
            warn(self.forward, (ndarray_of(x), ndarray_of(y)))
        return self.finish(out, a, b)

    cdef object finish(self, Value out, Value a, Value b):
        cdef Tensor tensor = new_tensor(out)
        cdef PyObject* inputs[2]
        if recorders.entered and out.spec.trainable:
            inputs[0] = <PyObject*>a
            inputs[1] = <PyObject*>b
            self.record(out, inputs, 1 if b is None else 2)
        return tensor

    def by_numpy(self, *operands):
        """Call the forward function on ndarrays, for all cases that the kernels do not cover."""
        cdef PyObject* inputs[MAX_INPUTS]
        cdef Value out
        cdef int i, n = len(operands)
        for x in operands:
            if opts_out(x):
                return NotImplemented
        out = value_of_array(as_ndarray(self.forward(*[ndarray_of(x) for x in operands])))
        tensor = new_tensor(out)
        if (recorders.entered and out.spec.trainable and n == self.n_inputs
                and is_followed(operands)):
            values = [
                value_of(np.asarray(x, dtype=out.spec.dtype)
                         if type(x) in (int, float, complex) else x, True)
                for x in operands
            ]
            for i in range(n):
                inputs[i] = <PyObject*>values[i]
            self.record(out, inputs, n)
        return tensor

    cdef int trace_partials(self) except -1:
        cdef Program program
        cdef int i
        programs = []
        for i, partial in enumerate(self.partials):
            program = None if partial is None else trace(partial, self.n_inputs)
            programs.append(program)
            if partial is None:
                self.saves[i] = 0
            else:
                self.saves[i] = (1 << (1 + self.n_inputs)) - 1 if program is None else program.reads
        self.programs = tuple(programs)
        return 0

    cdef int record(self, Value out, PyObject** inputs, int n) except -1:
        # Pointers are cast in place, not assigned: that spares the reference counts.
        cdef list active = recording()
        cdef PyObject* recorder
        cdef id_t ids[MAX_INPUTS]
        cdef index_t slots[MAX_INPUTS]
        cdef index_t slot
        cdef void** refs
        cdef unsigned int saves
        cdef bint wanted
        cdef int i, k
        if active is None:
            return 0
        if self.programs is None:
            self.trace_partials()
        for k in range(PyList_GET_SIZE(active)):
            recorder = PyList_GET_ITEM(active, k)
            saves = 0
            wanted = False
            for i in range(n):
                ids[i] = (<Value>inputs[i]).id
                slots[i] = slot = trace_slot(<Recorder>recorder, ids[i])
                if (slot != NO_INDEX and (<Recorder>recorder).slots[slot].op != UNTRACED
                        and self.has_partial[i] and (<Value>inputs[i]).spec.trainable):
                    saves |= self.saves[i]
                    wanted = True
            if not wanted:
                continue
            for i in range(n):
                if slots[i] == NO_INDEX and ids[i] != NO_ID:
                    slot = trace_slot(<Recorder>recorder, ids[i])  # it may be the input before, too
                    slots[i] = ((<Recorder>recorder).new_slot(ids[i], UNTRACED) if slot == NO_INDEX
                                else slot)
            slot = (<Recorder>recorder).new_slot(out.id, UNTRACED)
            refs = (<Recorder>recorder).append(
                &self.op_type.kind, slots, n, &slot, 1, 1 + n + (saves & 1))
            refs[0] = owned_pointer(<PyObject*>out.spec)
            for i in range(n):
                refs[1 + i] = owned_pointer(inputs[i] if saves >> (1 + i) & 1
                                            else <PyObject*>(<Value>inputs[i]).spec)
            if saves & 1:
                refs[1 + n] = owned_pointer(<PyObject*>out)
        return 0

    cdef int backward(self, BackwardCall* call) except -1:
        cdef Tensor gradient = dense(<object>call.output_gradients[0])
        if self.programs is None:
            self.trace_partials()
        if recording() is None and self.programs_apply(call, gradient.held):
            return self.backward_by_programs(call, gradient)
        return self.backward_by_partials(call, gradient, recording() is None)

    cdef bint wants(self, BackwardCall* call, int i) except -1:
        """Whether input i's gradient is to be computed.

        What it reads was not saved if no recorder followed the input when the op ran. Its gradient
        is None then, unless the input is followed by now, and the gradient waited for.
        """
        cdef int j
        cdef bint saved
        if not call.needed[i] or not self.has_partial[i]:
            return False
        saved = not self.saves[i] & 1 or call.n_refs > 1 + call.n_inputs
        for j in range(call.n_inputs):
            if self.saves[i] >> (1 + j) & 1 and type(<object>call.refs[1 + j]) is not Value:
                saved = False
        if not saved and call.needed[i] == WANTED:
            raise TapeStateError(
                f"a source was watched only after op {self.op_type.name!r} had used it, which "
                "therefore did not save what its gradient needs; watch it before it is used")
        return saved

    cdef bint programs_apply(self, BackwardCall* call, Value gradient) except -1:
        cdef Spec out = <Spec>call.refs[0], spec
        cdef Program program
        cdef Value value
        cdef int i, j
        if not gradient.contiguous or gradient.spec is not out:
            return False
        for i in range(call.n_inputs):
            if not self.wants(call, i):
                continue
            program = self.programs[i]
            spec = spec_of_ref(<object>call.refs[1 + i])
            if (program is None or not program.runs_on(out.type_num)
                    or spec.type_num != out.type_num or (spec is not out and spec.size != 1)):
                return False
            for j in range(1, call.n_refs):
                # Register OUTPUT is the last ref, the inputs follow the output's spec.
                if program.reads >> (0 if j > call.n_inputs else j) & 1:
                    value = <Value>call.refs[j]
                    if not value.contiguous or value.spec.type_num != out.type_num or (
                            value.spec is not out and value.spec.size != 1):
                        return False
        return True

    cdef int backward_by_programs(self, BackwardCall* call, Tensor gradient) except -1:
        cdef Spec out = <Spec>call.refs[0], spec
        cdef Program program
        cdef Value value, result
        cdef char* data[FIRST_INPUT + MAX_INPUTS]
        cdef npy_intp strides[FIRST_INPUT + MAX_INPUTS]
        cdef int i, register
        data[GRADIENT] = gradient.held.data
        strides[GRADIENT] = out.itemsize
        for i in range(1, call.n_refs):
            register = OUTPUT if i > call.n_inputs else FIRST_INPUT + i - 1
            if type(<object>call.refs[i]) is Value:
                value = <Value>call.refs[i]
                data[register] = value.data
                strides[register] = 0 if value.spec.size == 1 else out.itemsize
        for i in range(call.n_inputs):
            if not self.wants(call, i):
                continue
            program = <Program>self.programs[i]
            spec = spec_of_ref(<object>call.refs[1 + i])
            if program.is_one:
                if spec is out:
                    call.input_gradients[i] = owned(gradient)
                    continue
                result = gradient.held
            else:
                result = new_value(out)
                program.run(out.type_num, out.size, data, strides, result.data)
            if spec is not out:
                result = total(result, spec)
            call.input_gradients[i] = owned(new_tensor(result))
        return 0

    cdef int backward_by_partials(self, BackwardCall* call, gradient, bint plain) except -1:
        """The same on whole arrays: recorded where somebody records, and right for every dtype."""
        cdef int i
        cdef Spec spec
        output = None
        if call.n_refs > 1 + call.n_inputs:
            output = restored(<object>call.refs[1 + call.n_inputs], plain)
        inputs = [restored(<object>call.refs[1 + i], plain) for i in range(call.n_inputs)]
        if plain:
            gradient = array_of((<Tensor>gradient).held)
        for i in range(call.n_inputs):
            if self.wants(call, i):
                spec = spec_of_ref(<object>call.refs[1 + i])
                product = times(gradient, conjugate(self.partials[i](output, *inputs)))
                give(self, call, i, conform["sum_to"](product, spec))
        return 0

    def jvp_of(self, inputs, tangents):
        """Return the output's tangent for tangents (None: zero) of the inputs."""
        inputs = [another_handle(value_of(x, True)) for x in inputs]
        output = self(*inputs)
        total_tangent = None
        for partial, tangent in zip(self.partials, tangents):
            if tangent is not None and partial is not None:
                slope = partial(output, *inputs)
                term = times(tangent, slope)
                total_tangent = term if total_tangent is None else total_tangent + term
        if total_tangent is None:
            return None
        return conform["cast"](conform["broadcast_to"](total_tangent, output.shape), output.dtype)


cdef object times(gradient, partial):
    """Multiply by a partial derivative; a boolean one selects, for 0 * inf is NaN."""
    if partial is 1:
        return gradient
    if getattr(partial, "dtype", None) == bool:
        return conform["where"](partial, gradient, 0)
    return gradient * partial


cdef object conjugate(partial):
    dtype = getattr(partial, "dtype", None)
    return partial.conj() if dtype is not None and dtype.kind == "c" else partial


cdef Value result_value(Spec spec, Loop* loop, int type_num):
    """Room for the result of a loop; None where that is not certain to be what NumPy does."""
    if not spec.trainable:
        return None  # integer loops may raise
    if loop.out_type == type_num:
        return new_value(spec)
    return new_value(boolean_spec(spec)) if loop.out_type == cnp.NPY_BOOL else None


cdef int warn(forward, tuple operands) except -1:
    """Have NumPy report, as it is set up to, the division by zero or overflow that a kernel met."""
    cdef bint only_underflow = not fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW)
    feclearexcept(CYTAPE_TROUBLE)
    if not only_underflow or np.geterr()["under"] != "ignore":
        forward(*operands)
        feclearexcept(CYTAPE_TROUBLE)
    return 0


cdef Value total(Value value, Spec spec):
    """The sum of all elements, as a value of one element. NumPy's add loop sums pairwise."""
    cdef Value result = new_value(spec)
    cdef Loop* loop = &add_kernel.loops[spec.type_num]
    cdef char* data[3]
    cdef npy_intp strides[3]
    if spec.type_num == cnp.NPY_DOUBLE:
        (<double*>result.data)[0] = 0.0
    else:
        (<float*>result.data)[0] = 0.0
    data[0] = data[2] = result.data
    data[1] = value.data
    strides[0] = strides[2] = 0
    strides[1] = spec.itemsize
    loop.function(data, &value.spec.size, strides, loop.data)
    return result


cdef Value weak_scalar(x, Spec like):
    """A Python number as a 0-d value of a float dtype; None if it is not that simple."""
    cdef Value value
    cdef double number
    if like.type_num != cnp.NPY_DOUBLE and like.type_num != cnp.NPY_FLOAT:
        return None
    if type(x) is float:
        number = <double>x
    elif type(x) is int:
        number = x
    else:
        return None
    value = new_value(scalar_spec(like))
    value.id = NO_ID
    if like.type_num == cnp.NPY_DOUBLE:
        (<double*>value.data)[0] = number
    else:
        (<float*>value.data)[0] = <float>number
    return value
