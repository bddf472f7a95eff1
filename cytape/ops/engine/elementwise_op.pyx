cimport cython
cimport numpy as cnp
from cpython.ref cimport Py_INCREF, PyObject
from cytape.core.vspace cimport BackwardCall
from cytape.ops.kernels.ufunc_loops cimport (
    WORTH_THE_GIL, Loop, kernel_of, loop_of, suits_loops, trouble, warn)
from cytape.ops.kernels.partial_tracer cimport MAX_INPUTS
from cytape.ops.kernels.walk cimport Walk, begin, join, plan, run
from cytape.tensor.operators cimport functions
from cytape.tensor.values.spec cimport boolean_spec, broadcast_spec, spec_like
from cytape.tensor.recording.state cimport Counts, building, counts, recording
from cytape.tensor.tensor cimport as_ndarray, new_tensor
from cytape.tensor.values.value cimport array_of, new_value, symbol_of, value_of_array
from libc.stdint cimport int32_t
from numpy cimport ndarray, npy_intp

from cytape.ops.calls.dispatch cimport (
    conform, documentation, is_followed, ndarray_of, opts_out, tensor_value, value_of,
    with_lists_joined, weak_scalar)
from cytape.ops.calls.symbolic cimport (
    NO_ATTRS, SymbolicGraph, build, graph_for, graph_of, number, own_value)

from .program_nodes cimport append_gradients, op_by_ufunc
from .tape_entry cimport items_of, record

import numpy as np

from cytape.ops.calls.operands import dtypes_of_operands, without_layout
from cytape.ops.kernels.partial_tracer import call_of_op

from .batch_axis import aligned


cnp.import_array()

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t flags) noexcept
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL

    ctypedef struct PyTypeObject:
        Py_ssize_t tp_vectorcall_offset
        unsigned long tp_flags

cdef Counts* recorders = counts()


@cython.final
cdef class ElementwiseOp(PartialsOp):
    def __cinit__(self):
        self.vectorcall = call_vector

    def __init__(self, str name, forward, tuple partials):
        PartialsOp.__init__(self, name, forward, partials)
        self.batch = aligned
        if isinstance(forward, np.ufunc):
            self.kernel = kernel_of(forward)
            op_by_ufunc.setdefault(forward, self)

    @property
    def __doc__(self) -> str:
        return documentation(self)

    def __call__(self, *inputs, **arguments):
        return self.call_any(inputs, arguments)

    cdef object call_any(self, tuple inputs, dict arguments):
        joined = with_lists_joined(inputs)
        if joined is not None:
            return self.call_any(joined, arguments)
        for x in (*inputs, *arguments.values()):
            if isinstance(x, Tensor):
                break
        else:
            return call_of_op(self.forward(*inputs, **arguments), self.partials, inputs)
        if len(inputs) == self.n_inputs + 1 and "out" not in arguments:
            arguments = {"out": inputs[self.n_inputs], **arguments}
            inputs = inputs[:self.n_inputs]
        if len(inputs) != self.n_inputs:
            raise TypeError(
                f"{self.op_type.name} takes {self.n_inputs} arguments, got {len(inputs)}")
        if arguments.get("out") is not None:
            functions["import_updates"]()
            return functions["into"](self, inputs, arguments)
        if arguments.get("order") in ("F", "A"):
            order = arguments["order"]
            rest = {name: value for name, value in arguments.items() if name != "order"}
            return functions["in_order"](self.call_any(inputs, rest), order, inputs)
        arguments = without_layout(arguments)
        dtype, casting = arguments.pop("dtype", None), arguments.pop("casting", "same_kind")
        for argument, value in arguments.items():
            if value is not None:
                raise TypeError(
                    f"{self.op_type.name} of a tensor does not take the argument {argument!r}: "
                    "select with cytape.numpy.where, or give a tensor as out=")
        if dtype is not None or casting != "same_kind":
            dtypes = [dtype] * len(inputs)
            if isinstance(self.forward, np.ufunc):
                dtypes = dtypes_of_operands(self.forward, inputs, dtype, casting)
            inputs = tuple([conform.cast(x, d) for x, d in zip(inputs, dtypes)])
        if recorders.symbolic:
            graph = graph_for(inputs)
            if graph is not None:
                return build(graph, self, inputs, {})
        tensor = self.call3(inputs) if self.n_inputs == 3 and self.kernel is not None else None
        return self.by_numpy(*inputs) if tensor is None else tensor

    cdef object call1(self, x):
        cdef Value a, out
        cdef Loop* loop
        cdef PyObject* inputs[1]
        cdef char* data[2]
        cdef npy_intp strides[2]
        if recorders.symbolic:
            graph = graph_of(x, None)
            if graph is not None:
                return self.build_call(graph, x, None, 1)
        a = tensor_value(x)
        if a is None:
            return self.call_any((x,), {})
        inputs[0] = <PyObject*>a
        if self.kernel is not None and a.contiguous and a.spec.nbytes < WORTH_THE_GIL:
            loop = loop_of(self.kernel, a.spec)
            if loop != NULL:
                out = new_value(result_spec(a.spec, loop))
                data[0] = a.data
                data[1] = out.data
                strides[0] = a.spec.itemsize
                strides[1] = out.spec.itemsize
                loop.function(data, &a.spec.size, strides, loop.data)
                if trouble():
                    warn(self.forward, (ndarray_of(x),))
                return self.finish1(out, inputs)
        tensor = self.by_walk(inputs, 1)
        return self.by_numpy(x) if tensor is None else tensor

    cdef object call2(self, x, y):
        cdef Value a, b, out
        cdef Loop* loop
        cdef Spec spec
        cdef PyObject* inputs[2]
        cdef char* data[3]
        cdef npy_intp strides[3]
        if recorders.symbolic:
            graph = graph_of(x, y)
            if graph is not None:
                return self.build_call(graph, x, y, 2)
        a = tensor_value(x)
        b = tensor_value(y)
        if a is None:
            if b is None:
                return self.call_any((x, y), {})
            a = self.plain_operand(x, b.spec, 0)
        elif b is None:
            b = self.plain_operand(y, a.spec, 1)
        if a is None or b is None:
            return self.by_numpy(x, y)
        inputs[0] = <PyObject*>a
        inputs[1] = <PyObject*>b
        spec = a.spec if b.spec.ndim == 0 else b.spec
        if (self.kernel is not None and spec.nbytes < WORTH_THE_GIL
                and a.contiguous and b.contiguous and a.spec.type_num == b.spec.type_num
                and (a.spec is b.spec or a.spec.ndim == 0 or b.spec.ndim == 0)):
            loop = loop_of(self.kernel, spec)
            if loop != NULL:
                out = new_value(result_spec(spec, loop))
                data[0] = a.data
                data[1] = b.data
                data[2] = out.data
                strides[0] = spec.itemsize if a.spec is spec else 0
                strides[1] = spec.itemsize if b.spec is spec else 0
                strides[2] = out.spec.itemsize
                loop.function(data, &spec.size, strides, loop.data)
                if trouble():
                    warn(self.forward, (ndarray_of(x), ndarray_of(y)))
                return self.finish2(out, inputs)
        tensor = self.by_walk(inputs, 2)
        return self.by_numpy(x, y) if tensor is None else tensor

    cdef object call3(self, tuple operands):
        """Call with three tensors of one dtype, or numbers among them; None: NumPy must decide."""
        cdef PyObject* inputs[MAX_INPUTS]
        cdef list values = [tensor_value(x) for x in operands]
        cdef Spec spec = None
        cdef Value value
        cdef int i
        for value in values:
            if value is not None:
                spec = value.spec
        for i, x in enumerate(operands):
            if values[i] is None:
                values[i] = weak_scalar(x, spec)
            if values[i] is None:
                return None
            inputs[i] = <PyObject*>values[i]
        return self.by_walk(inputs, 3)

    cdef Value plain_operand(self, x, Spec other, int position):
        """Return the value of a non-tensor operand beside a tensor; None if NumPy must decide.

        It may share the operand's data, unless a derivative will read it.
        """
        if type(x) is not ndarray:
            return weak_scalar(x, other)
        if self.kernel is None or cnp.PyArray_TYPE(x) != other.type_num:
            return None
        if self.programs is None:
            self.trace_partials()
        return value_of(x, recorders.entered and self.saves[1 - position].inputs >> position & 1)

    cdef object by_walk(self, PyObject** inputs, int n):
        """Compute with broadcast, strided or large operands; None if there is no loop for them."""
        cdef Spec spec = (<Value>inputs[0]).spec
        cdef Loop* loop
        cdef Walk walk
        cdef Value out
        cdef int i
        for i in range(1, n):
            if (<Value>inputs[i]).spec.type_num != spec.type_num:
                return None
            spec = broadcast_spec(spec, (<Value>inputs[i]).spec)
            if spec is None:
                return None
        loop = NULL if self.kernel is None else loop_of(self.kernel, spec)
        if loop == NULL or not plan(&walk, spec):
            return None
        for i in range(n):
            join(&walk, <Value>inputs[i])
        out = new_value(result_spec(spec, loop))
        join(&walk, out)
        begin(&walk)
        for i in range(n):
            if not suits_loops(walk.steps[i], spec):
                return None
        run(loop, &walk, spec.nbytes)
        if trouble():
            warn(self.forward, tuple([array_of(<Value>inputs[i]) for i in range(n)]))
        if n == 2:
            return self.finish2(out, inputs)
        return told(self, out, inputs, n)

    cdef object finish1(self, Value out, PyObject** inputs):
        return told(self, out, inputs, 1)

    cdef object finish2(self, Value out, PyObject** inputs):
        return told(self, out, inputs, 2)

    def by_numpy(self, *operands):
        """Call the forward function on ndarrays, for all cases that the kernels do not cover."""
        cdef PyObject* inputs[MAX_INPUTS]
        cdef Value out
        cdef int i, n = len(operands)
        for x in operands:
            if opts_out(x):
                return NotImplemented
        joined = with_lists_joined(operands)
        if joined is not None:
            return self(*joined)
        arrays = [ndarray_of(x) for x in operands]
        out = value_of_array(as_ndarray(self.forward(*arrays)))
        if self.kernel is None:
            require_elementwise(self, arrays, out)
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
            record_call(self, out, inputs, n)
            self.follow(out, inputs, n)
        return tensor

    cdef object build_call(self, SymbolicGraph graph, x, y, int n):
        """Add a call with one operand or two to a graph."""
        cdef PyObject* inputs[2]
        cdef int32_t symbols[2]
        cdef Value a = None, b = None, out
        cdef int32_t symbol = -1
        if building() is graph and not (recorders.entered and graph.has_overrides):
            a = own_value(graph, x)
            b = own_value(graph, y)
            if a is not None:
                symbols[0] = symbol_of(a)
                if n == 1:
                    symbol = self.append_call(graph, symbols, 1)
                elif b is not None or type(y) is float or type(y) is int:
                    symbols[1] = symbol_of(b) if b is not None else number(graph, y, a.spec)
                    symbol = self.append_call(graph, symbols, 2)
            elif b is not None and (type(x) is float or type(x) is int):
                symbols[0] = number(graph, x, b.spec)
                symbols[1] = symbol_of(b)
                symbol = self.append_call(graph, symbols, 2)
        if symbol < 0:
            if n == 1:
                return build(graph, self, (x,), NO_ATTRS)
            return NotImplemented if opts_out(x) or opts_out(y) else (
                build(graph, self, (x, y), NO_ATTRS))
        out = graph.value_at(symbol)
        if not recorders.entered:
            return new_tensor(out)
        if a is None:
            a = graph.value_at(symbols[0])
        if b is None and n == 2:
            b = graph.value_at(symbols[1])
        inputs[0] = <PyObject*>a
        inputs[1] = <PyObject*>b
        return told(self, out, inputs, n)

    cdef int32_t append_call(self, SymbolicGraph graph, const int32_t* symbols, int n) except -2:
        """Add a node for float operands of one dtype; -1, with nothing done, for all others."""
        cdef Spec spec = <Spec>graph.symbols[symbols[0]].spec, other
        cdef Loop* loop
        cdef int i
        if self.kernel is None or not spec.known:
            return -1
        for i in range(1, n):
            other = <Spec>graph.symbols[symbols[i]].spec
            if other is spec:
                continue
            if other.type_num != spec.type_num or not other.known:
                return -1
            if spec.ndim == 0:
                spec = other
            elif other.ndim:
                spec = broadcast_spec(spec, other)
                if spec is None:
                    return -1
        loop = loop_of(self.kernel, spec)
        if loop == NULL:
            return -1
        graph.append(self, NO_ATTRS, symbols, n, 1)
        return graph.append_symbol(result_spec(spec, loop))

    cdef bint backward_in_graph(self, BackwardCall* call, SymbolicGraph graph) except -1:
        return append_gradients(self, call, graph)

    cdef object infer(self, list inputs, dict attrs):
        cdef Spec spec, broadcast
        cdef Value value
        cdef Loop* loop
        cdef int type_num
        cdef bint same = True
        if len(inputs) != len(self.partials) or attrs:
            raise TypeError(f"{self.op_type.name} takes {len(self.partials)} inputs and no "
                            f"attributes, got {len(inputs)} and {attrs}")
        spec = (<Value>inputs[0]).spec
        type_num = spec.type_num
        for value in inputs[1:]:
            same &= value.spec.type_num == type_num
            broadcast = broadcast_spec(spec, value.spec)
            if broadcast is None:
                shapes = " and ".join([str((<Value>value).spec.shape) for value in inputs])
                raise ValueError(f"{self.op_type.name} of tensors of shapes {shapes}: they cannot "
                                 "be broadcast to each other")
            spec = broadcast
        loop = loop_of(self.kernel, spec) if same and self.kernel is not None else NULL
        if loop != NULL:
            return result_spec(spec, loop)
        return spec_like(spec, self.result_dtype(inputs))

    cdef object result_dtype(self, list inputs):
        """Return the dtype of NumPy's result for operands of these dtypes."""
        cdef Value value
        dtypes = tuple([value.spec.dtype for value in inputs])
        if self.result_dtypes is None:
            self.result_dtypes = {}
        found = self.result_dtypes.get(dtypes)
        if found is None:
            with np.errstate(all="ignore"):
                found = np.asarray(self.forward(*[np.ones((), dtype) for dtype in dtypes])).dtype
            self.result_dtypes[dtypes] = found
        return found

    cdef object tail_of(self, dict attrs):
        if self.programs is None:
            self.trace_partials()

    cdef int record_call(self, list inputs, list outputs, dict attrs) except -1:
        return record_call(self, outputs[0], items_of(inputs), <int>len(inputs))


cdef inline int record_call(ElementwiseOp op, Value out, PyObject** inputs, int n) except -1:
    cdef PyObject* output = <PyObject*>out
    cdef PyObject* tail = <PyObject*>op  # may be its only owner
    if op.programs is None and recording() is not None:
        op.trace_partials()
    return record(op, inputs, NULL, n, &output, 1, &tail, op.kernel is None, True)


cdef int require_elementwise(ElementwiseOp op, list arrays, Value out) except -1:
    """Check that a function that is not a ufunc acts elementwise, as its derivatives do."""
    shape = out.spec.shape
    shapes = [x.shape if isinstance(x, np.ndarray) else np.shape(x) for x in arrays]
    if shape in shapes and not [x for x in shapes if x and x != shape]:
        return 0  # broadcast_shapes would take longer than the op
    try:
        if shape == np.broadcast_shapes(*shapes):
            return 0
    except ValueError:
        pass
    raise ValueError(
        f"op {op.op_type.name!r} is declared elementwise, but its forward function made shape "
        f"{shape} of inputs of shapes {', '.join(map(str, shapes))}: declare it as general")


cdef inline Tensor told(ElementwiseOp op, Value out, PyObject** inputs, int n):
    """Record a call and return its output. A constant n lets the compiler unroll the loops."""
    cdef Tensor tensor = new_tensor(out)
    if recorders.entered and out.spec.trainable:
        record_call(op, out, inputs, n)
        if recorders.accumulators.count:
            op.follow(out, inputs, n)
    return tensor


cdef PyObject* call_vector(PyObject* op, PyObject* const* arguments, size_t flags,
                           PyObject* names) except NULL:
    """Vectorcall of an op: one or two arguments need no tuple and no dict."""
    cdef ElementwiseOp self = <ElementwiseOp>op
    cdef Py_ssize_t i, n = PyVectorcall_NARGS(flags)
    if names == NULL and n == self.n_inputs and n == 1:
        result = self.call1(<object>arguments[0])
    elif names == NULL and n == self.n_inputs and n == 2:
        result = self.call2(<object>arguments[0], <object>arguments[1])
    else:
        keywords = () if names == NULL else <tuple><object>names
        result = self.call_any(
            tuple([<object>arguments[i] for i in range(n)]),
            {keyword: <object>arguments[n + i] for i, keyword in enumerate(keywords)})
    Py_INCREF(result)
    return <PyObject*>result


cdef void enable_vectorcall(ElementwiseOp op) noexcept:
    cdef PyTypeObject* cls = <PyTypeObject*>ElementwiseOp
    cls.tp_vectorcall_offset = <char*>&op.vectorcall - <char*><void*>op
    cls.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL


enable_vectorcall(ElementwiseOp.__new__(ElementwiseOp))  # Cython has no syntax for it


cdef inline Spec result_spec(Spec spec, Loop* loop):
    return spec if loop.out_type == spec.type_num else boolean_spec(spec)
