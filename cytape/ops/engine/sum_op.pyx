cimport cython
cimport numpy as cnp
from cpython.ref cimport PyObject
from cytape.core.vspace cimport BackwardCall
from cytape.ops.kernels.ufunc_loops cimport clear_trouble, trouble
from cytape.ops.kernels.sums cimport add_sum, zeros
from cytape.ops.kernels.walk cimport MAX_AXES
from cytape.tensor.values.spec cimport spec_of_dims
from cytape.tensor.recording.state cimport Counts, counts
from cytape.tensor.tensor cimport new_tensor
from cytape.tensor.values.value cimport is_exclusive, strided_value, strides_of
from libc.stdint cimport int32_t, uint64_t
from numpy cimport npy_intp

from cytape.ops.calls.dispatch cimport (
    Lowering, attrs_of, conform, dense_value, input_ref, owned, tensor_value)
from cytape.ops.calls.symbolic cimport SymbolicGraph, append1, graph_for, own_symbol

from cytape.ops.calls.operands import axis_in_batch

cnp.import_array()

cdef Counts* recorders = counts()


@cython.final
cdef class SumOp(GeneralOp):
    def __init__(self, str name, forward, vjp, bint is_mean, shape_rule=None):
        GeneralOp.__init__(self, name, forward, vjp, saved_inputs=(), linear=True,
                           shape_rule=shape_rule)
        self.is_mean = is_mean
        self.lowering = Lowering.MEAN if is_mean else Lowering.SUM

    def __call__(self, *inputs, **attrs):
        cdef Value x = None, out = None
        cdef PyObject* operand
        if len(inputs) == 1 and not (recorders.symbolic and graph_for(inputs) is not None):
            x = tensor_value(inputs[0])
        if x is not None and len(attrs) == 3 and attrs["dtype"] is None and (
                type(attrs["keepdims"]) is bool):
            out = self.reduced(x, attrs["axis"], attrs["keepdims"])
        if out is None:
            return GeneralOp.__call__(self, *inputs, **attrs)
        tensor = new_tensor(out)
        if recorders.entered and out.spec.trainable:
            operand = <PyObject*>x
            self.tell_few(&operand, 1, out, attrs)
        return tensor

    cdef object infer(self, list inputs, dict attrs):
        cdef Spec spec
        cdef npy_intp dims[MAX_AXES]
        cdef uint64_t axes
        cdef int i, ndim = 0
        if len(inputs) != 1:
            return GeneralOp.infer(self, inputs, attrs)
        spec = (<Value>inputs[0]).spec
        if (not spec.known or not spec.trainable or spec.ndim > MAX_AXES or len(attrs) != 3
                or attrs["dtype"] is not None or type(attrs["keepdims"]) is not bool
                or not axes_of(attrs["axis"], spec, &axes)):
            return GeneralOp.infer(self, inputs, attrs)
        keepdims = attrs["keepdims"]
        for i in range(spec.ndim):
            if keepdims or not axes >> i & 1:
                dims[ndim] = 1 if axes >> i & 1 else spec.dims[i]
                ndim += 1
        return spec_of_dims(ndim, dims, spec.dtype)

    cdef Value tangent_by_loops(self, list inputs, list tangents, dict attrs, bint batched):
        cdef Value tangent = tangents[0]
        axis = attrs["axis"]
        return self.reduced(tangent, axis_in_batch(axis, tangent.spec.ndim) if batched else axis,
                            attrs["keepdims"])

    cdef Value reduced(self, Value x, axis, bint keepdims):
        """Return the sum or mean; None if NumPy must compute it."""
        cdef npy_intp dims[MAX_AXES]
        cdef npy_intp kept_dims[MAX_AXES]
        cdef uint64_t axes
        cdef int i, n_kept = 0
        cdef Value out
        # NumPy chooses a better order of axes for data that is not in C order.
        if not x.contiguous or not axes_of(axis, x.spec, &axes) or (self.is_mean and (
                x.spec.size == 0 or not is_plain_float(x.spec))):
            return None
        for i in range(x.spec.ndim):
            dims[i] = 1 if axes >> i & 1 else x.spec.dims[i]
            if keepdims or not axes >> i & 1:
                kept_dims[n_kept] = dims[i]
                n_kept += 1
        out = zeros(spec_of_dims(x.spec.ndim, dims, x.spec.dtype))
        if not add_sum(out, x):
            return None
        if self.is_mean:
            divide(out, x.spec.size // out.spec.size)
        if trouble():
            clear_trouble()
            return None  # NumPy warns or raises by its settings
        out.spec = spec_of_dims(n_kept, kept_dims, x.spec.dtype)
        return out

    cdef bint backward_in_graph(self, BackwardCall* call, SymbolicGraph graph) except -1:
        cdef Spec spec = <Spec>input_ref(call, 0)
        cdef dict attrs = attrs_of(call)
        cdef int32_t gradient
        if self.is_mean or not spec.known or not is_plain_float(spec) or (
                attrs["axis"] is not None and attrs["keepdims"] is not True):
            return False
        gradient = own_symbol(graph, <object>call.output_gradients[0])
        if gradient < 0 or (<Spec>graph.symbols[gradient].spec).type_num != spec.type_num:
            return False
        if spec.ndim:
            gradient = append1(
                graph, conform.broadcast_to_op, {"shape": spec.shape}, gradient, spec)
        call.input_gradients[0] = owned(graph.value_at(gradient))
        return True

    cdef bint backward_by_loops(self, BackwardCall* call) except -1:
        cdef Value gradient = dense_value(<object>call.output_gradients[0]), repeated
        cdef Spec spec = <Spec>input_ref(call, 0)
        cdef dict attrs = attrs_of(call)
        cdef npy_intp strides[MAX_AXES]
        cdef npy_intp own_strides[MAX_AXES]
        cdef bint keepdims = bool(attrs["keepdims"])
        cdef uint64_t axes
        cdef int i, own = 0
        cdef void* arrived = call.arrived[0]
        if not axes_of(attrs["axis"], spec, &axes) or gradient.spec.type_num != spec.type_num:
            return False
        if self.is_mean:
            if spec.size == 0 or not is_plain_float(spec):
                return False
            gradient = copy_divided(gradient, spec.size // gradient.spec.size)
        strides_of(gradient, own_strides)
        for i in range(spec.ndim):
            strides[i] = 0 if axes >> i & 1 else own_strides[own]
            if keepdims or not axes >> i & 1:
                own += 1
        repeated = strided_value(spec, gradient.data, strides, gradient)
        if arrived == NULL or not is_exclusive(<PyObject*>arrived) or (
                (<Value>arrived).spec is not spec) or not add_sum(<Value>arrived, repeated):
            call.input_gradients[0] = owned(repeated)
        return True


cdef bint axes_of(axis, Spec spec, uint64_t* axes) except -1:
    """Find the axes to sum over, one bit each; return False for arguments that NumPy handles."""
    cdef uint64_t bit
    axes[0] = 0
    if axis is None:
        axes[0] -= 1  # all bits
        return True
    for part in axis if type(axis) is tuple else (axis,):
        if type(part) is not int or not -spec.ndim <= part < spec.ndim:
            return False
        bit = <uint64_t>1 << <int>(part if part >= 0 else part + spec.ndim)
        if axes[0] & bit:
            return False
        axes[0] |= bit
    return True


cdef bint is_plain_float(Spec spec) noexcept:
    return spec.type_num == cnp.NPY_DOUBLE or spec.type_num == cnp.NPY_FLOAT


cdef void divide(Value value, npy_intp count) noexcept:
    cdef npy_intp i
    for i in range(value.spec.size):
        if value.spec.type_num == cnp.NPY_DOUBLE:
            (<double*>value.data)[i] /= <double>count
        else:
            (<float*>value.data)[i] = <float>((<float*>value.data)[i] / <double>count)


cdef Value copy_divided(Value value, npy_intp count):
    cdef Value copy = zeros(value.spec)
    add_sum(copy, value)
    divide(copy, count)
    return copy
