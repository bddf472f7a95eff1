cimport cython
cimport numpy as cnp
from cpython.ref cimport PyObject
from cytape.core.interrupts cimport effort_so_far
from cytape.core.vspace cimport BackwardCall
from cytape.ops.kernels.ufunc_loops cimport WORTH_THE_GIL, Loop
from cytape.ops.kernels.dot_products cimport add_outer_loop, product_loop
from cytape.ops.kernels.sums cimport add_sum
from cytape.tensor.operators cimport functions
from cytape.tensor.values.spec cimport spec_of_dims
from cytape.tensor.recording.state cimport Counts, TangentRecorder, counts
from cytape.tensor.tensor cimport Tensor, new_tensor
from cytape.tensor.values.value cimport (
    BYTES_OBJECT, array_of, copy_of_array, is_exclusive, is_one, new_value, shown_again)
from libc.stdint cimport int32_t, int64_t
from numpy cimport ndarray

from cytape.ops.calls.dispatch cimport (
    Lowering, conform, dense_value, input_ref, is_followed, opts_out, output_ref, owned,
    tensor_value, value_of)
from cytape.ops.calls.symbolic cimport (
    NO_ATTRS, SymbolicGraph, append1, append2, graph_for, own_symbol)
from cytape.ops.calls.tangents cimport tangent_value

cnp.import_array()

cdef extern from "<fenv.h>" nogil:
    int FE_DIVBYZERO, FE_INVALID, FE_OVERFLOW
    int feclearexcept(int excepts)
    int fetestexcept(int excepts)

cdef Counts* recorders = counts()
cdef int64_t* effort = effort_so_far()


cdef bint is_sparse(x) except -1:
    """Return whether an operand is a sparse matrix of SciPy."""
    return type(x) is not ndarray and not isinstance(x, Tensor) and (
        type(x).__module__.startswith("scipy.sparse"))


@cython.final
cdef class MatMulOp(MultilinearOp):
    def __cinit__(self, *_, **__):
        self.lowering = Lowering.PRODUCT

    def __call__(self, *inputs, **attrs):
        if len(inputs) == 2 and not attrs:
            product = self.call2(inputs[0], inputs[1])
            if product is not NotImplemented:
                return product
        return MultilinearOp.__call__(self, *inputs, **attrs)

    cdef object call2(self, x, y):
        cdef Value a, b, out = None
        cdef PyObject* inputs[2]
        cdef bint is_plain
        if recorders.symbolic and graph_for((x, y)) is not None:
            return self.other_product(x, y)
        a = tensor_value(x)
        b = tensor_value(y)
        if a is None and b is None:
            return self.other_product(x, y)
        if a is None and type(x) is ndarray:
            a = value_of(x, False)
        elif b is None and type(y) is ndarray:
            b = value_of(y, False)
        if a is not None and b is not None:
            out = self.product(a, b, False, False)
        if out is None:
            return self.other_product(x, y)
        tensor = new_tensor(out)
        is_plain = type(x) is ndarray or type(y) is ndarray
        if recorders.entered and (not is_plain or is_followed((x, y))):
            if type(x) is ndarray:
                a = value_of(x, True)
            if type(y) is ndarray:
                b = value_of(y, True)
            inputs[0], inputs[1] = <PyObject*>a, <PyObject*>b
            self.tell_few(inputs, 2, out, NO_ATTRS)
        return tensor

    cdef object other_product(self, x, y):
        """Return the product of operands that are not all tensors or plain arrays."""
        if opts_out(x) or opts_out(y):
            return NotImplemented
        if is_sparse(x) or is_sparse(y):
            return functions["sparse_product"](x, y)
        return MultilinearOp.__call__(self, x, y)

    cdef object infer(self, list inputs, dict attrs):
        cdef Spec a, b
        cdef npy_intp dims[2]
        cdef int ndim = 0
        if len(inputs) != 2:
            return MultilinearOp.infer(self, inputs, attrs)
        a, b = (<Value>inputs[0]).spec, (<Value>inputs[1]).spec
        if (attrs or not a.known or not b.known or a.dtype is not b.dtype
                or not 1 <= a.ndim <= 2 or not 1 <= b.ndim <= 2
                or a.dims[a.ndim - 1] != b.dims[0]):
            return MultilinearOp.infer(self, inputs, attrs)
        if a.ndim == 2:
            dims[ndim] = a.dims[0]
            ndim += 1
        if b.ndim == 2:
            dims[ndim] = b.dims[1]
            ndim += 1
        return spec_of_dims(ndim, dims, a.dtype)

    cdef Value tangent_by_loops(self, list inputs, list tangents, dict attrs, bint batched):
        cdef Value left = None, right = None
        if tangents[0] is not None:
            left = self.product(tangents[0], inputs[1], batched, False)
            if left is None:
                return None
        if tangents[1] is not None:
            right = self.product(inputs[0], tangents[1], False, batched)
            if right is None:
                return None
        return total(left, right)

    cdef Value product(self, Value a, Value b, bint many_a, bint many_b):
        """Return the product of two matrices or vectors, None if NumPy must compute it.

        many_a, many_b: whether that operand is a stack of matrices; one of them may be.
        """
        cdef Matrix left, right
        cdef Value out
        cdef npy_intp dims[5]  # of the matrices, or stacks
        cdef int i, ndim = 0
        if (a.spec.type_num != b.spec.type_num
                or not as_matrix(a, a.spec.ndim == 1 + many_a, &left, many_a)
                or not as_matrix(b, False, &right, many_b) or left.columns != right.rows):
            return None
        if many_b:
            dims[0] = b.spec.dims[0]
            ndim = 1
        for i in range(a.spec.ndim - 1):
            dims[ndim] = a.spec.dims[i]
            ndim += 1
        for i in range(1 + many_b, b.spec.ndim):
            dims[ndim] = b.spec.dims[i]
            ndim += 1
        out = new_value(spec_of_dims(ndim, dims, a.spec.dtype))
        feclearexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW)
        multiply(&left, &right, out, False)
        if fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW):
            return None  # NumPy warns or raises by its settings
        return out

    cdef bint backward_in_graph(self, BackwardCall* call, SymbolicGraph graph) except -1:
        cdef Value a = <Value>input_ref(call, 0), b = <Value>input_ref(call, 1)
        cdef dict attrs
        cdef int32_t gradient, left, right
        if (a.spec.ndim != 2 or b.spec.ndim != 2 and (b.spec.ndim != 1 or call.needed[0])
                or not a.spec.known or not b.spec.known
                or a.spec.type_num != b.spec.type_num
                or (a.spec.type_num != cnp.NPY_DOUBLE and a.spec.type_num != cnp.NPY_FLOAT)):
            return False
        gradient = own_symbol(graph, <object>call.output_gradients[0])
        left, right = own_symbol(graph, a), own_symbol(graph, b)
        if gradient < 0:
            return False
        attrs = {"axes": None}
        if call.needed[0]:
            right = append1(graph, conform.transpose_op, attrs, right, transposed(b.spec))
            call.input_gradients[0] = owned(
                graph.value_at(append2(graph, self, gradient, right, a.spec)))
        if call.needed[1]:
            left = append1(graph, conform.transpose_op, attrs, left, transposed(a.spec))
            call.input_gradients[1] = owned(
                graph.value_at(append2(graph, self, left, gradient, b.spec)))
        return True

    cdef bint backward_by_loops(self, BackwardCall* call) except -1:
        cdef Value g = dense_value(<object>call.output_gradients[0])
        cdef Value a = <Value>input_ref(call, 0), b = <Value>input_ref(call, 1), gradient, arrived
        cdef int i, first, position
        if not g.contiguous:
            g = copy_of_array(array_of(g))  # BLAS cannot read strides of zero
        if not fits(g, <Spec>output_ref(call, 0), a, b):
            return False
        # The outer product comes last: it evicts the other product's operands from the cache.
        first = 1 if b.spec.ndim == 1 else 0
        for position in range(2):
            i = first ^ position
            if not call.needed[i]:
                continue
            arrived = own_total(call, i, b if i else a)
            if arrived is None and is_factor(a, b, g):
                gradient = shown_again(a if i else b)
            elif i == 0:
                gradient = left_gradient(g, a, b, arrived)
            else:
                gradient = right_gradient(g, a, b, arrived)
            if gradient is not None:
                call.input_gradients[i] = owned(gradient)
        return True

    cdef bint backward_with_tangents(self, BackwardCall* call,
                                     TangentRecorder accumulator) except -1:
        cdef Value g = dense_value(<object>call.output_gradients[0])
        cdef Spec out = <Spec>output_ref(call, 0)
        cdef Value a = <Value>input_ref(call, 0), b = <Value>input_ref(call, 1)
        cdef Value of_g = tangent_value(accumulator, g)
        cdef Value of_a = tangent_value(accumulator, a), of_b = tangent_value(accumulator, b)
        cdef Value gradient, tangent
        if not (fits(g, out, a, b) and (of_g is None or fits(of_g, out, a, b))
                and (of_a is None or fits(g, out, of_a, b))
                and (of_b is None or fits(g, out, a, of_b))):
            return False
        if call.needed[0]:
            gradient = left_gradient(g, a, b)
            call.input_gradients[0] = owned(gradient)
            tangent = total(None if of_g is None else left_gradient(of_g, a, b),
                            None if of_b is None else left_gradient(g, a, of_b))
            if tangent is not None:
                accumulator.store(gradient.id, owned(tangent))
        if call.needed[1]:
            gradient = right_gradient(g, a, b)
            call.input_gradients[1] = owned(gradient)
            tangent = total(None if of_g is None else right_gradient(of_g, a, b),
                            None if of_a is None else right_gradient(g, of_a, b))
            if tangent is not None:
                accumulator.store(gradient.id, owned(tangent))
        return True


cdef Value total(Value x, Value y):
    """Return the sum of two new values of one spec, either of which may be None."""
    if x is None or y is None:
        return y if x is None else x
    add_sum(x, y)
    return x


cdef bint fits(Value g, Spec out, Value a, Value b) noexcept:
    """Return whether the gradients of a product can be computed here."""
    cdef Matrix matrix
    return (g.spec is out and a.spec.type_num == out.type_num and b.spec.type_num == out.type_num
            and g.contiguous and as_matrix(a, False, &matrix) and as_matrix(b, False, &matrix))


cdef Value own_total(BackwardCall* call, int i, Value operand):
    """Return the gradient that arrived for an operand if the tape owns its memory, or None."""
    cdef void* arrived = call.arrived[i]
    if arrived == NULL or input_ref(call, 0) == input_ref(call, 1):  # one tensor: summed first
        return None
    if not is_exclusive(<PyObject*>arrived) or (<Value>arrived).spec is not operand.spec:
        return None
    return <Value>arrived


cdef Value left_gradient(Value g, Value a, Value b, Value total=None):
    """Return the gradient of the left operand; None if it was added to the one that arrived."""
    cdef Matrix left, right, upstream
    describe(g, a, b, &left, &right, &upstream)
    transpose(&right)
    return product_or_sum(&upstream, &right, a.spec, total)


cdef Value right_gradient(Value g, Value a, Value b, Value total=None):
    """Return the gradient of the right operand, as `left`."""
    cdef Matrix left, right, upstream
    describe(g, a, b, &left, &right, &upstream)
    transpose(&left)
    return product_or_sum(&left, &upstream, b.spec, total)


cdef bint is_factor(Value a, Value b, Value g) noexcept:
    """Return whether the gradient of a vector is the other one, large enough to avoid a copy."""
    return a.spec is b.spec and a.spec.ndim == 1 and a.spec.nbytes > BYTES_OBJECT and is_one(g)


cdef Value product_or_sum(Matrix* a, Matrix* b, Spec spec, Value total):
    cdef Value out
    if total is not None and a.columns == 1:
        multiply(a, b, total, True)
        return None
    out = new_value(spec)
    multiply(a, b, out, False)
    return out


cdef void describe(Value g, Value a, Value b, Matrix* left, Matrix* right,
                   Matrix* upstream) noexcept:
    as_matrix(a, a.spec.ndim == 1, left)
    as_matrix(b, False, right)
    upstream.data = g.data
    upstream.count, upstream.stride = 1, 0
    upstream.rows, upstream.columns = left.rows, right.columns
    upstream.column_stride = g.spec.itemsize
    upstream.row_stride = upstream.columns * g.spec.itemsize


cdef Spec transposed(Spec matrix):
    cdef npy_intp dims[2]
    dims[0], dims[1] = matrix.dims[1], matrix.dims[0]
    return spec_of_dims(2, dims, matrix.dtype)


cdef bint as_matrix(Value value, bint vector_is_row, Matrix* matrix, bint many=False) noexcept:
    """Describe a value as a matrix, or as a stack of them along its first axis.

    Return False if the loop does not take it."""
    cdef Spec spec = value.spec
    cdef npy_intp* strides = NULL
    cdef bint is_vector = spec.ndim - many == 1
    if (not 1 <= spec.ndim - many <= 2 or spec.size == 0
            or (spec.type_num != cnp.NPY_DOUBLE and spec.type_num != cnp.NPY_FLOAT)):
        return False
    matrix.data = value.data
    matrix.count = spec.dims[0] if many else 1
    matrix.rows = spec.dims[many] if not (is_vector and vector_is_row) else 1
    matrix.columns = spec.dims[spec.ndim - 1] if not is_vector or vector_is_row else 1
    matrix.column_stride = spec.itemsize
    matrix.row_stride = matrix.columns * spec.itemsize
    matrix.stride = matrix.rows * matrix.row_stride if many else 0
    if not value.contiguous:
        if not cnp.PyArray_ISALIGNED(<ndarray>value.owner):
            return False
        strides = cnp.PyArray_STRIDES(<ndarray>value.owner)
        matrix.column_stride = strides[spec.ndim - 1]
        matrix.row_stride = strides[many]
        matrix.stride = strides[0] if many else 0
    return True


cdef void transpose(Matrix* matrix) noexcept nogil:
    matrix.rows, matrix.columns = matrix.columns, matrix.rows
    matrix.row_stride, matrix.column_stride = matrix.column_stride, matrix.row_stride


cdef void multiply(Matrix* a, Matrix* b, Value out, bint add) noexcept:
    """Write a product to memory; an outer product can be added to it instead."""
    cdef Loop* loop = product_loop(out.spec.type_num, a.columns)
    cdef char* data[3]
    cdef npy_intp dimensions[4]
    cdef npy_intp nbytes
    cdef npy_intp strides[9]  # of the outer loop, then of the operands, row by column
    if add:
        loop = add_outer_loop(out.spec.type_num)
    data[0] = a.data
    data[1] = b.data
    data[2] = out.data
    if a.count > 1 and a.stride == a.rows * a.row_stride:
        a.rows *= a.count  # one product, of the matrices stacked in one
        a.count = 1
    dimensions[0] = a.count * b.count
    dimensions[1] = a.rows
    dimensions[2] = a.columns
    dimensions[3] = b.columns
    effort[0] += dimensions[0] * dimensions[1] * dimensions[2] * dimensions[3]
    strides[0] = a.stride
    strides[1] = b.stride
    strides[2] = a.rows * b.columns * out.spec.itemsize
    strides[3] = a.row_stride
    strides[4] = a.column_stride
    strides[5] = b.row_stride
    strides[6] = b.column_stride
    strides[7] = b.columns * out.spec.itemsize
    strides[8] = out.spec.itemsize
    nbytes = (a.count * a.rows + b.count * b.columns) * a.columns * out.spec.itemsize
    if out.spec.nbytes + nbytes < WORTH_THE_GIL:
        loop.function(data, dimensions, strides, loop.data)
    else:
        with nogil:
            loop.function(data, dimensions, strides, loop.data)
