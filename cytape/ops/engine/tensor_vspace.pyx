cimport cython
cimport numpy as cnp
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF, PyObject
from cytape.core.typedefs cimport id_t
from cytape.core.vspace cimport BackwardCall
from cytape.ops.kernels.sums cimport add_sum, plus
from cytape.tensor.operators cimport operators
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.recording.state cimport Recorder, accumulating, building, recording
from cytape.tensor.tensor cimport Tensor, another_handle, new_tensor
from cytape.tensor.values.value cimport (
    Value, is_exclusive, is_symbolic, new_value, symbol_of, value_of_array)
from cytape.tensor.variable cimport Variable
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from numpy cimport npy_intp

from cytape.ops.calls.dispatch cimport Op, conform, dense
from cytape.ops.calls.symbolic cimport SymbolicGraph, number

from .elementwise_op cimport ElementwiseOp
from .partials_op cimport PartialsOp

import numpy as np

from cytape.ops.calls.late import upper
from cytape.tensor.recording.state import building_into

cnp.import_array()

cdef enum:
    FEW = 16  # pointers that fit on the stack


cdef inline void* new_reference(object gradient) noexcept:
    Py_INCREF(gradient)
    return <void*><PyObject*>gradient


cdef class TensorVSpace(VSpace):
    """Gradients that are tensors or indexed slices; infos are specs.

    If the backward pass is not recorded, a gradient is a bare Value.
    """

    cdef int64_t size(self, void* gradient) except -1:
        cdef int64_t size = 0
        if type(<object>gradient) is Value:
            size = (<Value>gradient).spec.size
        elif type(<object>gradient) is Tensor:
            size = (<Tensor>gradient).held.spec.size
        else:
            size = (<object>gradient).values.size or 0
        return size if size >= 0 else 0  # unknown for some symbolic values

    cdef void* add(self, void** gradients, Py_ssize_t count) except NULL:
        cdef Py_ssize_t i
        cdef list terms = [<object>gradients[i] for i in range(count)]
        for i in range(count):
            Py_DECREF(<object>gradients[i])
        return new_reference(sum_of(terms))

    cdef void* accumulate(self, void* total, void* term) except? NULL:
        cdef Value left, right, result
        cdef PyObject* terms[2]
        cdef int32_t symbols[2]
        cdef int32_t sum
        cdef bint followed = accumulating() is not None
        graph = building()
        if graph is not None:
            if followed or recording() is not None or not is_own(graph, <object>total) or (
                    not is_own(graph, <object>term) or is_half(<Value>total)):
                return NULL
            symbols[0] = <int32_t>symbol_of(<Value>total)
            symbols[1] = <int32_t>symbol_of(<Value>term)
            try:
                sum = (<ElementwiseOp>operators.add).append_call(graph, symbols, 2)
            except BaseException:
                Py_DECREF(<object>term)
                raise
            if sum < 0:
                return NULL
            Py_DECREF(<object>total)
            Py_DECREF(<object>term)
            return new_reference((<SymbolicGraph>graph).value_at(sum))
        if followed:  # not in place: tangents belong to values
            if recording() is not None:
                return NULL
        elif type(<object>total) is Value and type(<object>term) is Value:
            if (<Value>total).spec is not (<Value>term).spec or is_half(<Value>total):
                return NULL
            if is_exclusive(<PyObject*>total) and add_sum(<Value>total, <Value>term):
                Py_DECREF(<object>term)
                return total
            if is_exclusive(<PyObject*>term) and add_sum(<Value>term, <Value>total):
                Py_DECREF(<object>total)
                return term
        elif recording() is not None:
            return NULL
        left, right = plain_value(<object>total), plain_value(<object>term)
        try:
            result = None if left is None or right is None or is_half(left) else (
                plus(left, right))
            if followed and result is not None:
                terms[0], terms[1] = <PyObject*>left, <PyObject*>right
                (<PartialsOp>operators.add).follow(result, terms, 2)
        except BaseException:
            Py_DECREF(<object>term)
            raise
        if result is None:
            return NULL
        Py_DECREF(<object>total)
        Py_DECREF(<object>term)
        return new_reference(result)

    cdef void* ones(self, void* info) except NULL:
        return new_reference(filled(<Spec>info, 1))

    cdef void* zeros(self, void* info) except NULL:
        return new_reference(filled(<Spec>info, 0))

    cdef int backward(self, BackwardCall* call) except -1:
        if call.kind.owner == NULL:  # a read of a variable passes the gradient on
            call.input_gradients[0] = call.output_gradients[0]
            call.output_gradients[0] = NULL
            return 0
        return (<Op>call.kind.owner).backward(call)

    cdef id_t id_of(self, void* gradient) except -1:
        if type(<object>gradient) is Value:
            return (<Value>gradient).id
        return (<Tensor>gradient).held.id

    cdef void* as_target(self, void* gradient) except NULL:
        if type(<object>gradient) is Value or type(<object>gradient) is Tensor:
            return gradient
        try:
            return new_reference(dense(<object>gradient))
        finally:
            Py_DECREF(<object>gradient)

    cdef void* info_of(self, void* gradient) except NULL:
        if type(<object>gradient) is Value:
            return new_reference((<Value>gradient).spec)
        return new_reference((<Tensor>gradient).held.spec)

    cdef int retain(self, void* gradient) except -1:
        Py_INCREF(<object>gradient)
        return 0

    cdef void release(self, void* gradient) noexcept:
        Py_DECREF(<object>gradient)


cdef bint is_own(graph, x) noexcept:
    """Return whether a gradient is a symbolic value of a graph."""
    return type(x) is Value and is_symbolic(<Value>x) and (<Value>x).owner is graph


cdef object filled(Spec spec, int content):
    cdef Recorder recorder
    cdef Value value
    cdef npy_intp i
    graph = building()
    if graph is not None:
        tensor = new_tensor((<SymbolicGraph>graph).value_at(number(graph, content, spec)))
        if spec.shape == ():
            for recorder in recording() or ():
                if recorder.transposes:  # it watches the seed, not the graph's one constant
                    return upper("identity_op")(tensor)
        return conform.broadcast_to(tensor, spec.shape if spec.known else spec.unknown)
    if spec.type_num == cnp.NPY_DOUBLE:
        value = new_value(spec)
        for i in range(spec.size):
            (<double*>value.data)[i] = content
    elif spec.type_num == cnp.NPY_FLOAT:
        value = new_value(spec)
        for i in range(spec.size):
            (<float*>value.data)[i] = content
    else:
        value = value_of_array(np.full(spec.shape, content, spec.dtype))
    return value if recording() is None else new_tensor(value)


cdef Value plain_value(gradient):
    """Return the value of a dense gradient, None for a sparse one."""
    if type(gradient) is Tensor:
        return (<Tensor>gradient).held
    return gradient if type(gradient) is Value else None


cdef bint is_half(Value gradient) noexcept:
    """Return whether gradients are summed at the end, in float32, and rounded once."""
    return gradient.spec.type_num == cnp.NPY_FLOAT16


cdef object sum_of(list terms):
    """Return the sum of two or more gradients that could not be added on arrival."""
    terms = [another_handle(term) if type(term) is Value else term for term in terms]
    for term in terms:
        if type(term) is not Tensor or len(terms) > 2 and is_half((<Tensor>term).held):
            return upper("aggregate_indexed_slices")(terms)
    total = terms[0]
    for i in range(1, len(terms)):
        total = total + terms[i]
    return total


tensor_vspace = TensorVSpace()


@cython.final
cdef class CountingVSpace(TensorVSpace):
    """A `TensorVSpace` that calls a function after each backward call."""

    cdef int backward(self, BackwardCall* call) except -1:
        (<VSpace>tensor_vspace).backward(call)
        self.report()
        return 0


def compute_gradients(Recorder recorder not None, list targets, list sources, list seeds=None,
                      bint keep=False) -> list:
    """Differentiate the sum of the targets on a recorder.

    Parameters
    ----------
    recorder : Recorder
    targets, sources : list of Tensor
        Tensors that cannot have gradients (integers, strings) are ignored.
    seeds : list of Tensor, IndexedSlices or None, optional
        The gradient of each target; None (also as an entry) stands for ones.
    keep : bool, optional
        Whether a recorder that is not persistent can be used again.

    Returns
    -------
    list of Tensor, IndexedSlices or None
        None where a source is unconnected.

    Examples
    --------
    >>> import cytape
    >>> from cytape.tensor.recording.state import Recorder
    >>> x = cytape.constant(3.0)
    >>> recorder = Recorder()
    >>> recorder.watch(x.id)
    >>> recorder.push()
    >>> y = x * x
    >>> recorder.pop()
    >>> compute_gradients(recorder, [y, x], [x], [None, cytape.constant(10.0)])
    [Tensor(16.)]
    """
    return gradients_of(recorder, targets, sources, seeds, keep, None)


cdef list gradients_of(Recorder recorder, list targets, list sources, list seeds, bint keep,
                       report):
    cdef Py_ssize_t n = len(targets), m = len(sources), n_targets = 0, n_sources = 0, i, j
    cdef Tensor handle
    for handle in targets:
        if is_symbolic(handle.held) and building() is None:
            with building_into(handle.held.owner):
                return gradients_of(recorder, targets, sources, seeds, keep, report)
    cdef SymbolicGraph graph = building()
    cdef VSpace vspace = tensor_vspace
    cdef id_t* ids
    cdef void** infos
    cdef void** results
    cdef void* few[FEW]
    cdef void** row = few
    if 3 * n + 2 * m <= FEW:
        memset(few, 0, sizeof(few))
    else:
        row = <void**>calloc(3 * n + 2 * m, sizeof(void*))
        if row == NULL:
            raise MemoryError()
    infos = row + n
    results = infos + n
    ids = <id_t*>(results + m)
    if graph is not None:
        place = graph.begin_backward()
    try:
        for handle in sources:
            if handle.held.spec.trainable:
                ids[n + n_sources] = id_of(handle)
                n_sources += 1
        for i in range(n):
            handle = targets[i]
            if not handle.held.spec.trainable:
                continue
            ids[n_targets] = id_of(handle)
            infos[n_targets] = <void*>handle.held.spec
            if seeds is not None and seeds[i] is not None:
                row[n_targets] = new_reference(seeds[i])
            n_targets += 1
        if report is not None:
            vspace = CountingVSpace()
            (<CountingVSpace>vspace).report = report
        recorder.gradient(vspace, ids, n_targets, row, infos, ids + n, n_sources, True, keep,
                          results)
        gradients = []
        j = 0
        for handle in sources:
            gradient = None
            if handle.held.spec.trainable:
                gradient = taken(&results[j])
                j += 1
            gradients.append(gradient)
        return gradients
    finally:
        if graph is not None:
            graph.end_backward(place)
        for i in range(n):
            Py_XDECREF(<PyObject*>row[i])  # a seed that the tape did not take
        for i in range(m):
            Py_XDECREF(<PyObject*>results[i])
        if row != few:
            free(row)


cdef id_t id_of(Tensor handle) noexcept:
    return (<Variable>handle).variable_id if type(handle) is Variable else handle.held.id


cdef object taken(void** gradient):
    """Return a gradient as the user gets it; takes over its reference."""
    if gradient[0] == NULL:
        return None
    result = <object>gradient[0]
    Py_DECREF(result)
    gradient[0] = NULL
    if type(result) is Tensor:  # a seed, or shared by sources: the user may change it
        return another_handle((<Tensor>result).held)
    return another_handle(result) if type(result) is Value else result
