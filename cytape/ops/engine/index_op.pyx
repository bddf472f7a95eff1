cimport cython
cimport numpy as cnp
from cpython.ref cimport PyObject
from cytape.ops.kernels.gather cimport RAISE, are_places, rows_at
from cytape.ops.kernels.masks cimport chosen, is_mask
from cytape.ops.kernels.move_geometry cimport copy_strided, find_view
from cytape.ops.kernels.moves cimport COPIED_BYTES
from cytape.ops.kernels.scatter cimport sum_at
from cytape.ops.kernels.sums cimport add_loop_of, zeros
from cytape.ops.kernels.walk cimport MAX_AXES, Walk, begin, join, join_memory, plan, run
from cytape.tensor.values.spec cimport Spec, spec_of_dims
from cytape.tensor.recording.state cimport Counts, building, counts
from cytape.tensor.tensor cimport Tensor, another_handle, new_tensor
from cytape.tensor.values.value cimport (
    BYTES_OBJECT, array_of, is_exclusive, new_value, strided_value, strides_of, symbol_of)
from cytape.tensor.variable cimport Variable
from cytape.tensor.noted_views cimport LAST, note_region, note_view
from libc.stdint cimport int32_t, int64_t
from numpy cimport npy_intp

from cytape.ops.calls.dispatch cimport (
    Lowering, attrs_of, conform, dense_value, input_ref, is_followed, origin_of, owned,
    tensor_value)
from cytape.ops.calls.symbolic cimport SymbolicGraph, append1, graph_of, own_symbol, own_value

import operator
from itertools import pairwise

import numpy as np

from cytape.ops.kernels.gather import taken
from cytape.ops.shapes.index_shapes import filled_in
from cytape.tensor.tensor import made_whole
from cytape.tensor.values.plain_arrays import plain_array

cnp.import_array()

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except *  # other return values vary
    void Py_LeaveRecursiveCall()
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1
    int PySlice_Unpack(object slice, Py_ssize_t* start, Py_ssize_t* stop,
                       Py_ssize_t* step) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t* start, Py_ssize_t* stop,
                                     Py_ssize_t step) noexcept

cdef Counts* recorders = counts()


@cython.final
cdef class IndexOp(GeneralOp):
    def __init__(self, *args, **rules):
        GeneralOp.__init__(self, *args, **rules)
        self.makes_views = True
        self.lowering = Lowering.READ_PART

    cdef object call2(self, x, index):
        cdef Value value, out
        cdef int64_t start, stop
        cdef Tensor tensor, origin
        cdef bint copies
        if recorders.symbolic:
            graph = graph_of(x, None)
            if graph is not None or holds_symbol(index):
                tensor = None if graph is None else self.build(graph, x, index)
                return conform.getitem(x, index) if tensor is None else tensor
        value = tensor_value(x)
        cdef Region region
        cdef Spec spec
        if value is None:
            return self(x, index=static(index))
        if not find_region(index, own_strides(value), value.spec, &region):
            copies = holds_place(index)
            if type(index) is not ndarray or copies or is_followed((x,)):
                index = static(index)
            if type(index) is ndarray:
                return self.picked(x, value, index)
            return made_whole(self(x, index=index)) if copies else self(x, index=index)
        spec = spec_of_dims(region.ndim, region.dims, value.spec.dtype)
        if spec.nbytes > BYTES_OBJECT:
            tensor = self(x, index=static(index))
            tensor.held.is_part = True
            return tensor
        out = selected(value, spec, &region)
        out.is_part = not is_number(index, spec)
        tensor = new_tensor(out)
        origin = origin_of(x) if out.is_part else None
        if origin is not None:
            if not value.contiguous:  # the index was resolved for C order
                find_region(index, NULL, value.spec, &region)
            find_ends(&region, value.spec, &start, &stop)
            note_region(tensor, origin, self, index, start, stop)
        if recorders.entered and spec.trainable:
            self.tell_index(value, out, index)
        return tensor

    cdef int tell_index(self, Value x, Value out, index) except -1:
        cdef PyObject* operand = <PyObject*>x
        return self.tell_few(&operand, 1, out, {"index": index})

    cdef int note_views(self, inputs, result, dict attrs) except -1:
        cdef Tensor origin = origin_of(inputs[0])
        cdef int64_t start, stop
        index = attrs["index"]
        if origin is not None and not is_number(index, (<Tensor>result).held.spec):
            if find_bytes(index, origin.held.spec, &start, &stop):
                return note_region(result, origin, self, index, start, stop)
            # After a write to an operand its handle would have another value.
            return note_view(result, origin, self, filled_in(index, [
                another_handle((<Tensor>x).held) if type(x) is Tensor else x
                for x in inputs[1:]]))
        return 0

    cdef Tensor picked(self, x, Value value, ndarray index):
        """Return the elements at one array of integers or booleans."""
        cdef Value out = None
        cdef npy_intp[MAX_AXES] dims
        cdef Spec spec = value.spec
        cdef int i, n = cnp.PyArray_NDIM(index), ndim = n + spec.ndim - 1
        if are_places(index) and value.contiguous and spec.ndim and ndim <= MAX_AXES:
            for i in range(ndim):
                dims[i] = cnp.PyArray_DIMS(index)[i] if i < n else spec.dims[i - n + 1]
            out = rows_at(
                spec_of_dims(ndim, dims, spec.dtype), value.data, 1, spec.dims[0], index, RAISE)
        elif is_mask(index):
            out = chosen(array_of(value), index)
        if out is None:
            return self(x, index=index)
        if recorders.entered and spec.trainable:
            self.tell_index(value, out, index)
        return new_tensor(out)

    cdef Tensor build(self, SymbolicGraph graph, x, index):
        """Add a call with integers and slices to a graph; None, with nothing done, for others."""
        cdef Value value = own_value(graph, x), out
        cdef int64_t start, stop
        cdef Region region
        cdef Tensor tensor
        cdef dict attrs
        if value is None or building() is not graph or not value.spec.known or (
                recorders.entered and graph.has_overrides) or (
                not find_region(index, NULL, value.spec, &region)):
            return None
        attrs = {"index": index}
        out = graph.value_at(append1(
            graph, self, attrs, symbol_of(value),
            spec_of_dims(region.ndim, region.dims, value.spec.dtype)))
        if recorders.entered and out.spec.trainable:
            self.tell_index(value, out, index)
        tensor = new_tensor(out)
        if not is_number(index, out.spec):
            find_ends(&region, value.spec, &start, &stop)
            note_region(tensor, x, self, index, start, stop)
        return tensor

    cdef bint backward_in_graph(self, BackwardCall* call, SymbolicGraph graph) except -1:
        cdef Spec spec = <Spec>input_ref(call, 0)
        cdef dict attrs = attrs_of(call)
        cdef Region region
        cdef int32_t gradient
        if not spec.known or not find_region(attrs["index"], NULL, spec, &region):
            return False
        gradient = own_symbol(graph, <object>call.output_gradients[0])
        if gradient < 0 or (<Spec>graph.symbols[gradient].spec).type_num != spec.type_num:
            return False
        call.input_gradients[0] = owned(graph.value_at(append1(
            graph, conform.index_add_op, {"index": attrs["index"], "shape": spec.shape},
            gradient, spec)))
        return True

    def call(self, x, index):
        """Return ``x[index]``."""
        return self.call2(x, index)

    cdef object infer(self, list inputs, dict attrs):
        cdef Spec spec
        cdef Region region
        if not inputs:
            return GeneralOp.infer(self, inputs, attrs)
        spec = (<Value>inputs[0]).spec
        if spec.known and find_region(attrs["index"], NULL, spec, &region):
            return spec_of_dims(region.ndim, region.dims, spec.dtype)
        return GeneralOp.infer(self, inputs, attrs)

    cdef Value tangent_by_loops(self, list inputs, list tangents, dict attrs, bint batched):
        cdef Value tangent = tangents[0]
        cdef Region region
        index = index_in_batch(attrs["index"]) if batched else attrs["index"]
        if index is None or not find_region(index, own_strides(tangent), tangent.spec, &region):
            return None
        return selected(tangent, spec_of_dims(region.ndim, region.dims, tangent.spec.dtype),
                        &region)

    cdef bint backward_of_picked(self, BackwardCall* call, Value gradient, Spec spec) except -1:
        cdef Value total = None
        index = attrs_of(call)["index"]
        if type(index) is ndarray:
            total = sum_at(spec.shape, index, array_of(gradient))
        if total is None or total.spec is not spec:
            return False
        call.input_gradients[0] = owned(total)
        return True

    cdef bint backward_by_loops(self, BackwardCall* call) except -1:
        cdef Value gradient = dense_value(<object>call.output_gradients[0]), total
        cdef Spec spec = <Spec>input_ref(call, 0)
        cdef Region region
        cdef Walk walk
        cdef npy_intp strides[MAX_AXES]
        cdef npy_intp own[MAX_AXES]
        cdef npy_intp offset = 0
        cdef void* arrived = call.arrived[0]
        if not find_region(attrs_of(call)["index"], NULL, spec, &region):
            return self.backward_of_picked(call, gradient, spec)
        if add_loop_of(spec) == NULL or gradient.spec.type_num != spec.type_num:
            return False
        if (arrived != NULL and is_exclusive(<PyObject*>arrived)
                and (<Value>arrived).spec is spec):
            total = <Value>arrived
        else:
            if gradient.spec.nbytes == spec.nbytes > COPIED_BYTES:  # of all elements
                strides_of(gradient, own)
                if find_view(spec, region.ndim, region.dims, region.strides, region.offset, own,
                             &offset, strides):
                    call.input_gradients[0] = owned(
                        strided_value(spec, gradient.data + offset, strides, gradient))
                    return True
            total = zeros(spec)
            call.input_gradients[0] = owned(total)
        if plan(&walk, gradient.spec):
            join_memory(&walk, total.data + region.offset, region.strides)
            join(&walk, gradient)
            join_memory(&walk, total.data + region.offset, region.strides)
            begin(&walk)
            run(add_loop_of(spec), &walk, gradient.spec.nbytes)
        return True


def get_item(x, *values, index):
    """Return ``x[index]``; large results are in memory that is kept for reuse."""
    cdef Value found = None
    index = filled_in(index, values)
    if type(index) is ndarray and type(x) is ndarray:
        if is_mask(index):
            found = chosen(x, index)
        elif x.nbytes > BYTES_OBJECT:
            array = taken(x, index, 0, "raise")
            return x[index] if array is None else array
    return x[index] if found is None else array_of(found)


cpdef bint is_symbol(part) except -1:
    """Return whether x is a symbolic tensor."""
    if isinstance(part, Variable):
        return building() is not None
    return isinstance(part, Tensor) and part.graph is not None


cpdef bint holds_symbol(index) except -1:
    """Return whether an index contains a symbolic tensor."""
    if isinstance(index, (tuple, list)):
        Py_EnterRecursiveCall(b" in an index: it is nested too deeply or contains itself")
        try:
            for part in index:
                if holds_symbol(part):
                    return True
        finally:
            Py_LeaveRecursiveCall()
        return False
    if isinstance(index, slice):
        return is_symbol(index.start) or is_symbol(index.stop) or is_symbol(index.step)
    return is_symbol(index)


cpdef bint holds_place(index) except -1:
    """Return whether a 0-d array is part of an index: NumPy makes a copy then, not a view."""
    if type(index) is tuple:
        for part in <tuple>index:
            if type(part) is ndarray and cnp.PyArray_NDIM(part) == 0:
                return True
        return False
    return type(index) is ndarray and cnp.PyArray_NDIM(index) == 0


def static(index):
    """Return an index as a value that the caller cannot change: the backward pass reads it."""
    if type(index) is tuple:
        return tuple([static_part(part) for part in index])
    return static_part(index)


cdef object static_part(part):
    if isinstance(part, slice):
        bounds = (part.start, part.stop, part.step)
        return slice(*[None if bound is None else operator.index(bound) for bound in bounds])
    if part is None or part is Ellipsis or np.isscalar(part):
        return part
    array = part.numpy() if isinstance(part, Tensor) else np.array(plain_array(part))
    if array.ndim == 0 and array.dtype.kind in "iu":
        return int(array)
    if array.size == 0 and isinstance(part, (list, tuple)):
        return array.astype(np.intp)
    return array


def index_in_batch(index):
    """Return the index that applies this one to each member of a batch; None if there is none.

    Advanced indices separated by a slice put their axes first in the result.
    """
    cdef tuple parts = index if type(index) is tuple else (index,)
    advanced = [i for i, part in enumerate(parts)
                if not (part is None or part is Ellipsis or isinstance(part, slice))]
    apart = any([j - i > 1 for i, j in pairwise(advanced)])
    if apart and not all([type(parts[i]) is int for i in advanced]):
        return None
    return (slice(None),) + parts


cdef inline npy_intp* own_strides(Value value) noexcept:
    return NULL if value.contiguous else cnp.PyArray_STRIDES(<ndarray>value.owner)


cdef bint find_region(index, const npy_intp* own_strides, Spec spec, Region* region) except -1:
    """Find the region that an index selects from memory of a shape (strides NULL: in C order).

    Return False for an index of another kind or out of bounds: NumPy handles these, or raises.
    """
    cdef npy_intp strides[MAX_AXES]
    cdef npy_intp stride = spec.itemsize, position
    cdef Py_ssize_t start, stop, step
    cdef int axis, i, n_parts, overflow, n_axes = 0  # axes of the remaining parts
    cdef tuple parts = index if type(index) is tuple else (index,)
    for part in parts:
        if type(part) is int or is_plain_slice(part):
            n_axes += 1
        elif part is not None and part is not Ellipsis:
            return False
    if n_axes > spec.ndim:
        return False
    for axis in range(spec.ndim - 1, -1, -1):
        strides[axis] = stride if own_strides == NULL else own_strides[axis]
        stride *= spec.dims[axis]
    region.ndim = region.offset = axis = 0
    n_parts = len(parts)
    for i in range(n_parts + 1):
        part = parts[i] if i < n_parts else Ellipsis
        if type(part) is int:
            position = PyLong_AsLongLongAndOverflow(part, &overflow)
            if position < 0:
                position += spec.dims[axis]
            if overflow or not 0 <= position < spec.dims[axis]:
                return False
            region.offset += position * strides[axis]
            axis += 1
            n_axes -= 1
            continue
        if part is Ellipsis:
            if i < n_parts and Ellipsis in parts[i + 1:]:
                return False
            while axis < spec.ndim - n_axes:
                if region.ndim == MAX_AXES:
                    return False
                region.dims[region.ndim] = spec.dims[axis]
                region.strides[region.ndim] = strides[axis]
                region.ndim += 1
                axis += 1
            continue
        if region.ndim == MAX_AXES:
            return False
        if part is None:
            region.dims[region.ndim] = 1
            region.strides[region.ndim] = 0
        else:
            PySlice_Unpack(part, &start, &stop, &step)
            region.dims[region.ndim] = PySlice_AdjustIndices(spec.dims[axis], &start, &stop, step)
            region.strides[region.ndim] = strides[axis] * step
            region.offset += start * strides[axis]
            axis += 1
            n_axes -= 1
        region.ndim += 1
    return True


cdef bint is_number(index, Spec spec) except -1:
    """Return whether an index selects one element, which NumPy copies; with `...` it is a view."""
    if spec.ndim:
        return False
    if type(index) is not tuple:
        return index is not Ellipsis
    for part in <tuple>index:
        if part is Ellipsis:
            return False
    return True


cdef bint find_bytes(index, Spec spec, int64_t* start, int64_t* stop) except -1:
    cdef Region region
    if spec.known and find_region(index, NULL, spec, &region):
        find_ends(&region, spec, start, stop)
        return True
    start[0], stop[0] = 0, LAST
    return False


cdef void find_ends(Region* region, Spec spec, int64_t* start, int64_t* stop) noexcept:
    """Find the range of bytes that a region lies in."""
    cdef npy_intp extent
    cdef int axis
    start[0], stop[0] = region.offset, region.offset + spec.itemsize
    for axis in range(region.ndim):
        extent = (region.dims[axis] - 1) * region.strides[axis]
        if extent > 0:
            stop[0] += extent
        else:
            start[0] += extent


cdef bint is_plain_slice(part) except -1:
    """Return whether a part of an index is a slice of integers."""
    return type(part) is slice and (
        is_bound(part.start) and is_bound(part.stop) and is_bound(part.step))


cdef inline bint is_bound(x) noexcept:
    return x is None or type(x) is int


cdef Value selected(Value value, Spec spec, Region* region):
    cdef Value out = new_value(spec)
    cdef npy_intp strides[MAX_AXES]
    strides_of(out, strides)
    copy_strided(spec, value.data + region.offset, region.strides, out.data, strides)
    return out
