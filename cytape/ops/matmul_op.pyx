cimport cython
cimport numpy as cnp
from cytape.core.trace cimport trace_knows
from cytape.core.typedefs cimport id_t
from cytape.tensor.spec cimport spec_of
from cytape.tensor.state cimport Counts, Recorder, counts, recording
from cytape.tensor.tensor cimport new_tensor
from cytape.tensor.value cimport new_value
from numpy cimport ndarray

from .dispatch cimport dense_value, is_followed, opts_out, owned, tensor_value, value_of
from .kernels cimport WORTH_THE_GIL, Kernel, Loop, kernel_of

import numpy as np

cnp.import_array()

cdef extern from "<fenv.h>" nogil:
    int FE_DIVBYZERO, FE_INVALID, FE_OVERFLOW
    int feclearexcept(int excepts)
    int fetestexcept(int excepts)

cdef Counts* recorders = counts()
cdef Kernel matmul_kernel = kernel_of(np.matmul)


@cython.final
cdef class MatMulOp(GeneralOp):
    def __call__(self, *inputs, **attrs):
        if len(inputs) == 2 and not attrs:
            product = self.call2(inputs[0], inputs[1])
            if product is not NotImplemented:
                return product
        return GeneralOp.__call__(self, *inputs, **attrs)

    cdef object call2(self, x, y):
        cdef Value a = tensor_value(x), b = tensor_value(y), out = None
        if a is None and b is None:
            return NotImplemented if opts_out(x) or opts_out(y) else self.forward(x, y)
        if a is None and type(x) is ndarray:
            a = value_of(x, False)
        elif b is None and type(y) is ndarray:
            b = value_of(y, False)
        if a is not None and b is not None:
            out = self.product(a, b)
        if out is None:
            return NotImplemented if opts_out(x) or opts_out(y) else GeneralOp.__call__(self, x, y)
        tensor = new_tensor(out)
        if recorders.entered and is_followed((x, y)):
            self.record_product(a if type(x) is not ndarray else value_of(x, True),
                                b if type(y) is not ndarray else value_of(y, True), out)
        return tensor

    cdef int record_product(self, Value a, Value b, Value out) except -1:
        """What `GeneralOp.record` does, faster, for a product without attributes."""
        cdef Recorder recorder
        cdef id_t ids[3]
        cdef void* refs[5]
        ids[0], ids[1], ids[2] = a.id, b.id, out.id
        for recorder in recording():
            if trace_knows(recorder, a.id) or trace_knows(recorder, b.id):
                refs[0], refs[1], refs[2] = owned(out.spec), owned(a), owned(b)
                refs[3], refs[4] = owned(None), owned({})
                try:
                    recorder.record_op(&self.op_type.kind, ids, 2, ids + 2, 1, refs, 5)
                except BaseException:
                    self.op_type.kind.release(refs, 5, recorder.keeper)
                    raise
        return 0

    cdef Value product(self, Value a, Value b):
        """The product of two matrices or vectors, None where NumPy has to see to it."""
        cdef Matrix left, right
        cdef Value out
        if (a.spec.type_num != b.spec.type_num or not as_matrix(a, a.spec.ndim == 1, &left)
                or not as_matrix(b, False, &right) or left.columns != right.rows):
            return None
        out = new_value(spec_of(a.spec.shape[:a.spec.ndim - 1] + b.spec.shape[1:], a.spec.dtype))
        feclearexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW)
        multiply(a.spec.type_num, &left, &right, out)
        if fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW):
            return None  # NumPy will say what was wrong, as it is set up to
        return out

    cdef bint in_c(self, BackwardCall* call) noexcept:
        cdef Matrix matrix
        return (as_matrix(<Value>call.refs[1], False, &matrix)
                and as_matrix(<Value>call.refs[2], False, &matrix)
                and (<Value>call.refs[1]).spec.type_num == (<Value>call.refs[2]).spec.type_num)

    cdef int backward(self, BackwardCall* call) except -1:
        if recording() is None and self.backward_by_loop(call):
            return 0
        return GeneralOp.backward(self, call)

    cdef bint backward_by_loop(self, BackwardCall* call) except -1:
        cdef Value g = dense_value(<object>call.output_gradients[0])
        cdef Spec out_spec = <Spec>call.refs[0]
        cdef Value a = <Value>call.refs[1], b = <Value>call.refs[2], out
        cdef Matrix left, right, upstream
        if (g.spec is not out_spec or a.spec.type_num != g.spec.type_num
                or b.spec.type_num != g.spec.type_num or not g.contiguous
                or not as_matrix(a, a.spec.ndim == 1, &left) or not as_matrix(b, False, &right)):
            return False
        upstream.data = g.data
        upstream.rows, upstream.columns = left.rows, right.columns
        upstream.column_stride = g.spec.itemsize
        upstream.row_stride = upstream.columns * g.spec.itemsize
        if call.needed[0]:
            transpose(&right)
            out = new_value(a.spec)
            multiply(g.spec.type_num, &upstream, &right, out)
            call.input_gradients[0] = owned(out)
        if call.needed[1]:
            transpose(&left)
            out = new_value(b.spec)
            multiply(g.spec.type_num, &left, &upstream, out)
            call.input_gradients[1] = owned(out)
        return True


cdef bint as_matrix(Value value, bint vector_is_row, Matrix* matrix) noexcept:
    """Describe a value as a matrix; False if it is none that the loop takes."""
    cdef Spec spec = value.spec
    cdef npy_intp* strides = NULL
    cdef bint is_vector = spec.ndim == 1
    if (not 1 <= spec.ndim <= 2 or spec.size == 0
            or (spec.type_num != cnp.NPY_DOUBLE and spec.type_num != cnp.NPY_FLOAT)):
        return False
    matrix.data = value.data
    matrix.rows = spec.dims[0] if not (is_vector and vector_is_row) else 1
    matrix.columns = spec.dims[spec.ndim - 1] if not is_vector or vector_is_row else 1
    matrix.column_stride = spec.itemsize
    matrix.row_stride = matrix.columns * spec.itemsize
    if not value.contiguous:
        if not cnp.PyArray_ISALIGNED(<ndarray>value.owner):
            return False
        strides = cnp.PyArray_STRIDES(<ndarray>value.owner)
        matrix.column_stride = strides[spec.ndim - 1]
        matrix.row_stride = strides[0]
    return True


cdef void transpose(Matrix* matrix) noexcept nogil:
    matrix.rows, matrix.columns = matrix.columns, matrix.rows
    matrix.row_stride, matrix.column_stride = matrix.column_stride, matrix.row_stride


cdef void multiply(int type_num, Matrix* a, Matrix* b, Value out) noexcept:
    cdef Loop* loop = &matmul_kernel.loops[type_num]
    cdef char* data[3]
    cdef npy_intp dimensions[4]
    cdef npy_intp strides[9]  # of the outer loop, then of the operands, row by column
    data[0] = a.data
    data[1] = b.data
    data[2] = out.data
    dimensions[0] = 1
    dimensions[1] = a.rows
    dimensions[2] = a.columns
    dimensions[3] = b.columns
    strides[0] = strides[1] = strides[2] = 0
    strides[3] = a.row_stride
    strides[4] = a.column_stride
    strides[5] = b.row_stride
    strides[6] = b.column_stride
    strides[7] = b.columns * out.spec.itemsize
    strides[8] = out.spec.itemsize
    if out.spec.nbytes + (a.rows + b.columns) * a.columns * out.spec.itemsize < WORTH_THE_GIL:
        loop.function(data, dimensions, strides, loop.data)
    else:
        with nogil:
            loop.function(data, dimensions, strides, loop.data)
