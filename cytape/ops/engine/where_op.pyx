cimport cython
cimport numpy as cnp
from cpython.ref cimport PyObject
from cytape.ops.kernels.ufunc_loops cimport clear_trouble, trouble
from cytape.ops.kernels.where_loops cimport select_loop, selected
from cytape.ops.kernels.sums cimport sum_to
from cytape.tensor.values.spec cimport boolean_spec, broadcast_spec
from cytape.tensor.recording.state cimport Counts, counts
from cytape.tensor.tensor cimport new_tensor
from cytape.tensor.values.value cimport is_exclusive
from numpy cimport ndarray

from cytape.ops.calls.dispatch cimport (
    Lowering, dense_value, input_ref, is_followed, output_ref, owned, tensor_value, value_of,
    weak_scalar)
from cytape.ops.calls.symbolic cimport NO_ATTRS, graph_for
from cytape.ops.calls.tangents cimport aligned, spec_of_tangent

cnp.import_array()

cdef Counts* recorders = counts()


@cython.final
cdef class WhereOp(GeneralOp):
    def __cinit__(self, *_, **__):
        self.lowering = Lowering.SELECTED

    def __call__(self, *inputs, **attrs):
        if len(inputs) == 3 and not attrs and not (
                recorders.symbolic and graph_for(inputs) is not None):
            result = self.call3(inputs[0], inputs[1], inputs[2])
            if result is not None:
                return result
        return GeneralOp.__call__(self, *inputs, **attrs)

    cdef object call3(self, condition, x, y):
        """Select elements of two operands; None if NumPy must do it."""
        cdef Value c = tensor_value(condition), a = tensor_value(x), b = tensor_value(y), out
        cdef PyObject* inputs[3]
        cdef Spec spec
        if c is None and a is None and b is None:
            return None
        if c is None and type(condition) is ndarray and (
                cnp.PyArray_TYPE(condition) == cnp.NPY_BOOL):
            c = value_of(condition, False)
        if a is None:
            a = plain_operand(x, b)
        if b is None:
            b = plain_operand(y, a)
            if a is None and b is not None:
                a = plain_operand(x, b)
        if a is None or b is None or c is None:
            return None
        if trouble():  # a number too large for the dtype
            clear_trouble()
            return None
        spec = spec_of_result(c, a, b)
        if spec is None:
            return None
        out = selected(c, a, b, spec, None, True)
        if out is None:
            return None
        tensor = new_tensor(out)
        if recorders.entered and (type(condition) is not ndarray or is_followed((x, y))):
            if type(condition) is ndarray:
                c = value_of(condition, True)
            inputs[0], inputs[1], inputs[2] = <PyObject*>c, <PyObject*>a, <PyObject*>b
            self.tell_few(inputs, 3, out, NO_ATTRS)
        return tensor

    cdef Value tangent_by_loops(self, list inputs, list tangents, dict attrs, bint batched):
        cdef Spec spec = spec_of_result(inputs[0], inputs[1], inputs[2])
        cdef Value dx = tangents[1], dy = tangents[2]
        cdef int ndim
        if spec is None:
            return None
        if batched:
            ndim = spec.ndim
            spec = spec_of_tangent(spec, (dy if dx is None else dx).spec.dims[0])
            dx = None if dx is None else aligned(dx, ndim)
            dy = None if dy is None else aligned(dy, ndim)
        return selected(inputs[0], dx, dy, spec, None, False)

    cdef bint suits(self, BackwardCall* call) except -1:
        """Return whether the loop can compute the gradients of a call."""
        cdef Spec out = <Spec>output_ref(call, 0), spec
        cdef int i
        if (type(<object>input_ref(call, 0)) is not Value or select_loop(out.itemsize) == NULL
                or (<Value>input_ref(call, 0)).spec.type_num != cnp.NPY_BOOL):
            return False
        for i in range(1, 3):
            spec = <Spec>input_ref(call, i)
            if spec.type_num != out.type_num or spec is not out and (
                    spec.type_num == cnp.NPY_FLOAT16):  # halves are summed as floats
                return False
        return True

    cdef bint backward_by_loops(self, BackwardCall* call) except -1:
        cdef bint spare = is_exclusive(<PyObject*>call.output_gradients[0])
        cdef Value g = dense_value(<object>call.output_gradients[0])
        cdef Value condition
        cdef Spec spec
        cdef int i, last = 2 if call.needed[2] else 1
        if not self.suits(call) or g.spec is not <Spec>output_ref(call, 0):
            return False
        condition = <Value>input_ref(call, 0)
        for i in range(1, last + 1):
            spec = <Spec>input_ref(call, i)
            if not call.needed[i]:
                continue
            if spare and i == last and spec is g.spec:  # this is the last reader of the gradient
                part_taken(g, condition, spec, i == 1, g)
                call.input_gradients[i] = call.output_gradients[0]
                call.output_gradients[0] = NULL
            else:
                call.input_gradients[i] = owned(part_taken(g, condition, spec, i == 1, None))
        return True


cdef Value plain_operand(x, Value other):
    """Return the value of a plain float array, or of a number beside one; None: NumPy decides."""
    if type(x) is ndarray:
        return value_of(x, False) if is_float(cnp.PyArray_TYPE(x)) else None
    return None if other is None else weak_scalar(x, other.spec)


cdef bint is_float(int type_num) noexcept:
    return cnp.PyTypeNum_ISFLOAT(type_num) or cnp.PyTypeNum_ISCOMPLEX(type_num)


cdef Spec spec_of_result(Value condition, Value a, Value b):
    """Select elements; None for dtypes and shapes that NumPy must handle."""
    cdef Spec spec = a.spec
    if (spec.type_num != b.spec.type_num or not spec.trainable
            or condition.spec.type_num != cnp.NPY_BOOL):
        return None
    if spec is not b.spec and b.spec.ndim:
        spec = b.spec if spec.ndim == 0 else broadcast_spec(spec, b.spec)
    if spec is None or condition.spec.ndim == 0 or condition.spec is boolean_spec(spec):
        return spec
    return broadcast_spec(spec, condition.spec)


cdef Value part_taken(Value g, Value condition, Spec spec, bint first, Value into):
    """Return the gradient of the first or second operand: selected, and summed to its spec."""
    cdef Value terms = selected(condition, g if first else None, None if first else g, g.spec,
                                into, False)
    return terms if spec is g.spec else sum_to(terms, spec)
