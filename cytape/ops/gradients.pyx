cimport cython
cimport numpy as cnp
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from cytape.core.typedefs cimport id_t
from cytape.core.vspace cimport BackwardCall
from cytape.tensor.spec cimport Spec
from cytape.tensor.state cimport recording
from cytape.tensor.tensor cimport Tensor, new_tensor
from cytape.tensor.value cimport Value, new_value, value_of_array
from libc.stdint cimport int64_t
from numpy cimport npy_intp

from .dispatch cimport Op
from .kernels cimport N_TYPES, Kernel, Loop, kernel_of

import numpy as np

cnp.import_array()

cdef Kernel add_kernel = kernel_of(np.add)
cdef object aggregate_indexed_slices = None


def install_aggregate(function):
    """Tell the VSpace how gradients are summed if any of them is sparse."""
    global aggregate_indexed_slices
    aggregate_indexed_slices = function


cdef inline void* new_reference(object gradient) noexcept:
    Py_INCREF(gradient)
    return <void*><PyObject*>gradient


@cython.final
cdef class TensorVSpace(VSpace):
    """Gradients that are tensors or indexed slices; infos are specs."""

    cdef int64_t size(self, void* gradient) except -1:
        if type(<object>gradient) is Tensor:
            return (<Tensor>gradient).held.spec.size
        return (<object>gradient).values.size

    cdef void* add(self, void** gradients, Py_ssize_t count) except NULL:
        cdef Py_ssize_t i
        cdef list terms = [<object>gradients[i] for i in range(count)]
        for i in range(count):
            Py_DECREF(<object>gradients[i])
        return new_reference(sum_of(terms))

    cdef void* ones(self, void* info) except NULL:
        return new_reference(filled(<Spec>info, 1))

    cdef void* zeros(self, void* info) except NULL:
        return new_reference(filled(<Spec>info, 0))

    cdef int backward(self, BackwardCall* call) except -1:
        if call.kind.owner == NULL:  # a variable was read: the gradient is the variable's as it is
            call.input_gradients[0] = call.output_gradients[0]
            call.output_gradients[0] = NULL
            return 0
        return (<Op>call.kind.owner).backward(call)

    cdef id_t id_of(self, void* gradient) except -1:
        return (<object>gradient).id

    cdef void* info_of(self, void* gradient) except NULL:
        return new_reference((<object>gradient).spec)

    cdef void retain(self, void* gradient) noexcept:
        Py_INCREF(<object>gradient)

    cdef void release(self, void* gradient) noexcept:
        Py_DECREF(<object>gradient)


cdef Tensor filled(Spec spec, int content):
    cdef Value value
    cdef npy_intp i
    if spec.type_num == cnp.NPY_DOUBLE:
        value = new_value(spec)
        for i in range(spec.size):
            (<double*>value.data)[i] = content
    else:
        value = value_of_array(np.full(spec.shape, content, spec.dtype))
    return new_tensor(value)


cdef object sum_of(list terms):
    """The sum of at least two gradients."""
    cdef Tensor first, term
    cdef Value result
    cdef Spec spec
    cdef Loop* loop
    cdef char* data[3]
    cdef npy_intp strides[3]
    cdef int i
    for gradient in terms:
        if type(gradient) is not Tensor:
            return aggregate_indexed_slices(terms)
    first = terms[0]
    spec = first.held.spec
    loop = &add_kernel.loops[spec.type_num] if spec.type_num < N_TYPES else NULL
    if recording() is None and loop != NULL and loop.function != NULL:
        for term in terms:
            if term.held.spec is not spec or not term.held.contiguous:
                break
        else:
            result = new_value(spec)
            strides[0] = strides[1] = strides[2] = spec.itemsize
            data[0] = first.held.data
            data[2] = result.data
            for i in range(1, len(terms)):
                data[1] = (<Tensor>terms[i]).held.data
                loop.function(data, &spec.size, strides, loop.data)
                data[0] = result.data
            return new_tensor(result)
    total = terms[0] + terms[1]
    for i in range(2, len(terms)):
        total = total + terms[i]
    return total


tensor_vspace = TensorVSpace()
