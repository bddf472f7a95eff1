cimport cython
cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport Py_INCREF, PyObject
from cytape.core.interrupts cimport raise_failure
from cytape.core.typedefs cimport NO_ID, index_t
from cytape.graph.passes.accumulate_op cimport AccumulateOp
from cytape.graph.passes.fused_op cimport FusedOp
from cytape.ops.calls.dispatch cimport Lowering, Op
from cytape.ops.calls.node_store cimport Node
from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.ops.kernels.ufunc_loops cimport Loop, clear_trouble, trouble
from cytape.ops.kernels.walk cimport MAX_AXES
from cytape.tensor.values.buffer cimport call_with_arrays, new_buffer
from cytape.tensor.recording.conversion_guards cimport seen
from cytape.tensor.values.spec cimport Spec, spec_of
from cytape.tensor.tensor cimport Tensor, as_ndarray
from cytape.tensor.values.value cimport (
    array_of, copy_of_array, new_value, strided_value, value_of_array)
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from .instructions cimport (
    CONTROL, FUSED, N_OPERANDS, OPERANDS, Runner, Subprogram, found_trouble, matters, numbered,
    run_looped, run_span)
from .plan_code cimport Span
from .plan_layout cimport (
    CONSTANT, EXTERNAL, LARGE, SMALL, STACKED, STACKS, UNKNOWN, Place, clear_stacks,
    external_number, memory_of, offset_of, poison)
from .value_op cimport ValueOp, check_fed, fits

import time

import numpy as np

from cytape.errors import GraphError
from cytape.graph.model.failures import note_operation
from cytape.graph.run.plan_warnings import say
from cytape.ops.elementwise import add

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    int PyArray_SetBaseObject(ndarray array, object base) except -1  # steals the base
    ndarray PyArray_NewFromDescr(type subtype, cnp.dtype descr, int ndim, npy_intp* dims,
                                 npy_intp* strides, void* data, int flags, object base)

cdef object ufunc = np.ufunc

cdef enum:
    LINE = 64  # bytes


@cython.final
cdef class Frame:
    def __cinit__(self, Code code):
        self.code = code
        self.objects = [None] * code.n_externals
        self.arena = new_buffer(
            code.layout.large_bytes + code.layout.small_bytes + LINE)
        self.runners, self.n_stacks = [], code.layout.n_stacks
        self.link()

    def __dealloc__(self):
        if self.stacks != NULL:
            clear_stacks(self.stacks, self.n_stacks)
        free(self.stacks)
        free(self.instructions)
        free(self.patches)
        free(self.first_patch)

    cdef int link(self) except -1:
        """Set the addresses of instructions in this frame; list those that each run sets."""
        cdef Code code = self.code
        cdef uint64_t address
        cdef int32_t i, k, total = 0, number
        self.instructions = <Instruction*>malloc((code.n_code + 1) * sizeof(Instruction))
        self.first_patch = <int32_t*>calloc(code.n_externals + 2, sizeof(int32_t))
        self.stacks = <Stack*>calloc(code.layout.n_stacks + 1, sizeof(Stack))
        if self.instructions == NULL or self.first_patch == NULL or self.stacks == NULL:
            raise MemoryError()
        memcpy(self.instructions, code.code, code.n_code * sizeof(Instruction))
        for i in range(code.n_code):
            if code.code[i].kind == CONTROL:
                runner = (<Subprogram><PyObject*>code.code[i].loop).new_runner()
                self.runners.append(runner)
                self.instructions[i].loop = <const Loop*><PyObject*>runner
            for k in range(N_OPERANDS):
                address = <uint64_t>self.instructions[i].data[k]
                if memory_of(address) == CONSTANT:
                    continue
                if memory_of(address) == EXTERNAL:
                    self.first_patch[external_number(address) + 2] += 1
                    total += 1
                else:
                    self.instructions[i].data[k] = self.resolved(address)
        self.patches = <Patch*>malloc((total + 1) * sizeof(Patch))
        if self.patches == NULL:
            raise MemoryError()
        if total == 0:
            return 0
        for k in range(code.n_externals):
            self.first_patch[k + 2] += self.first_patch[k + 1]
        for i in range(code.n_code):
            for k in range(N_OPERANDS):
                address = <uint64_t>code.code[i].data[k]
                if memory_of(address) == EXTERNAL:
                    number = external_number(address)
                    total = self.first_patch[number + 1]
                    self.first_patch[number + 1] += 1
                    self.patches[total].instruction = i
                    self.patches[total].operand = k
                    self.patches[total].offset = offset_of(address)
        return 0

    cdef char* resolved(self, uint64_t address) except NULL:
        cdef int memory = memory_of(address)
        if memory == CONSTANT:
            return <char*>address
        if memory == LARGE:
            return self.arena.data + offset_of(address)
        if memory == STACKS:
            return <char*>self.stacks + offset_of(address)
        if memory == SMALL:
            return self.arena.data + self.code.layout.large_bytes + offset_of(address)
        return (<Value>self.objects[external_number(address)]).data + offset_of(address)

    cdef int set_external(self, Py_ssize_t number, Value value) except -1:
        """Set the address of external memory."""
        cdef Patch* patch
        cdef int32_t i
        self.objects[number] = value
        for i in range(self.first_patch[number], self.first_patch[number + 1]):
            patch = &self.patches[i]
            self.instructions[patch.instruction].data[patch.operand] = value.data + patch.offset
        return 0

    cdef list execute(self, list values, trace):
        cdef bint careful = not self.code.repeatable or trace is not None
        try:
            if trouble():
                clear_trouble()
            self.begin(values)
            try:
                self.run_all(careful, trace)
            except (IndexError, ValueError):
                if careful:
                    raise
                self.begin(values)
                self.run_all(True, None)  # finds the op that raised the flags
            if not careful and trouble():
                if matters(found_trouble(), np.geterr()):
                    clear_trouble()
                    self.begin(values)
                    self.run_all(True, None)
                else:
                    clear_trouble()
            return self.results() if trace is None else trace.keep(self.results())
        finally:
            clear_stacks(self.stacks, self.n_stacks)
            for i in range(len(self.objects)):
                self.objects[i] = None

    cdef int fill_memory(self) except -1:
        """Fill memory with `poison`, so that tests notice reads of unwritten memory."""
        cdef Buffer buffer
        cdef list parts = [self.arena]
        for runner in self.runners:
            parts += (<Runner>runner).memory()
        for part in parts:
            if type(part) is Frame:
                (<Frame>part).fill_memory()
            else:
                buffer = part
                memset(buffer.data, poison, buffer.nbytes)
        return 0

    cdef int begin(self, list values) except -1:
        """Set the fed values, and allocate the fetched ones."""
        cdef Code code = self.code
        cdef Place* place
        cdef Spec spec
        cdef Value value
        cdef int32_t symbol
        cdef Py_ssize_t k, n_feeds = len(code.feeds)
        check_fed(code.graph, code.feeds, values)
        if poison >= 0:
            self.fill_memory()
        for k in range(n_feeds):
            symbol = code.feeds[k]
            value = values[k]
            spec = <Spec>code.graph.symbols[symbol].spec
            if not value.contiguous:
                value = copy_of_array(array_of(value))
            place = &code.layout.places[symbol]
            if memory_of(place.address) == EXTERNAL:
                self.set_external(k, value)
            else:
                memcpy(self.resolved(place.address), value.data, spec.nbytes)
        for k, symbol in enumerate(code.fetches, n_feeds):
            if k not in code.late:
                value = new_value(<Spec>code.graph.symbols[symbol].spec)
                if poison >= 0:
                    memset(value.data, poison, value.spec.nbytes)
                self.set_external(k, value)
        return 0

    cdef int run_all(self, bint careful, trace) except -1:
        cdef Code code = self.code
        cdef Span* span
        cdef index_t i
        cdef int failed = 0
        self.errors = None
        for runner in self.runners:
            (<Runner>runner).careful = careful
        for i in range(code.n_spans):
            span = &code.spans[i]
            if span.is_call:
                for number in code.releases.get(span.start, ()):
                    self.objects[number] = None
                start = 0.0 if trace is None else time.perf_counter()
                self.call(code.code[span.start].node)
                if trace is not None:
                    trace.add(code.graph, code.code[span.start].node, start, time.perf_counter(),
                              code.lives[span.start])
                if careful and trouble():
                    clear_trouble()
            elif careful:
                self.step(span.start, span.end, trace)
            elif span.release:
                with nogil:
                    failed = run_span(self.instructions, span.start, span.end, code.pool)
            else:
                failed = run_span(self.instructions, span.start, span.end, code.pool)
            if failed:
                raise_failure(failed)
            PyErr_CheckSignals()
        return 0

    cdef int step(self, int32_t start, int32_t end, trace) except -1:
        """Run instructions one by one, with a check of floating point flags after each."""
        cdef Code code = self.code
        cdef int32_t i
        cdef int failed
        cdef int* flags
        cdef bytearray met  # flags of each step of a fused op, whose operands may be overwritten
        for i in range(start, end):
            if code.code[i].kind == OPERANDS:
                continue
            met = None
            if trace is not None:
                begun = time.perf_counter()
            if code.code[i].kind == FUSED:
                met = bytearray(
                    sizeof(int) * (<FusedOp><PyObject*>code.code[i].loop).n_steps)
                flags = <int*><char*>met
                with nogil:
                    failed = run_looped(&self.instructions[i], flags)
            elif code.code[i].work > 1 << 16:
                with nogil:
                    failed = run_span(self.instructions, i, i + 1, code.pool)
            else:
                failed = run_span(self.instructions, i, i + 1, code.pool)
            if failed:
                try:
                    raise_failure(failed)
                except (MemoryError, IndexError, ValueError) as error:
                    if isinstance(code.graph.ops[code.code[i].node], ValueOp):
                        self.run_op(code.code[i].node)  # raises a better message
                    note_operation(error, code.graph, code.code[i].node)
                    raise
            if trace is not None:
                trace.add(code.graph, code.code[i].node, begun, time.perf_counter(),
                          code.lives[i])
            if trouble():
                self.report(code.code[i].node, met)
            PyErr_CheckSignals()
        return 0

    cdef int call(self, int32_t node) except -1:
        cdef Code code = self.code
        cdef Node* row = &code.graph.nodes[node]
        cdef object op = code.graph.ops[node]
        cdef int32_t n_outputs = row.n_outputs, first_output = row.first_output
        cdef int32_t i
        try:
            if (<Op>op).lowering == Lowering.VARIABLE_READ:
                return self.read(node)
            results = (<ValueOp>op).run_node(code, node, self.values_for(node)) if isinstance(
                op, ValueOp) else self.run_op(node)
            if len(results) != n_outputs:
                raise GraphError(f"{n_outputs} outputs were expected, {len(results)} computed")
            for i in range(n_outputs):
                if first_output + i not in code.fed:
                    self.store(first_output + i, results[i])
        except Exception as error:
            note_operation(error, code.graph, node)
            raise
        return 0

    cdef object run_op(self, int32_t node):
        cdef SymbolicGraph graph = self.code.graph
        cdef Node* row = &graph.nodes[node]
        cdef Op op = graph.ops[node]
        cdef bint copy
        if isinstance(op, ValueOp):
            return (<ValueOp>op).run_values(self.values_for(node), graph.attrs[node])
        forward = (<object>op).forward  # a method for some ops
        copy = op.stateful or not is_trusted(forward)
        operands = tuple([self.argument(graph.args[i], copy)
                          for i in range(row.inputs, row.inputs + row.n_inputs)])
        results = call_with_arrays(forward, operands, graph.attrs[node])
        return results if isinstance(results, (tuple, list)) else (results,)

    cdef list values_for(self, int32_t node):
        return [self.value_argument(symbol) for symbol in self.code.graph.inputs_of(node)]

    cdef int read(self, int32_t node) except -1:
        cdef Node* row = &self.code.graph.nodes[node]
        cdef Tensor variable = self.code.graph.attrs[node]["variable"]
        if row.first_output not in self.code.fed:
            self.store(row.first_output, seen(variable, variable.held))
        return 0

    cdef ndarray stacked(self, int32_t symbol):
        """Return a copy of the rows of a stack."""
        cdef Stack* stack = <Stack*>self.resolved(self.code.layout.places[symbol].address)
        spec = <Spec>self.code.graph.symbols[symbol].spec
        cdef ndarray array = np.empty((stack.count, *list(spec.shape)[1:]), spec.dtype)
        memcpy(cnp.PyArray_DATA(array), stack.data, array.nbytes)
        array.setflags(write=False)
        return array

    cdef Value repeated(self, int32_t symbol):
        """Return a copy of the stored elements of a value with strides of zero."""
        cdef Place* places = self.code.layout.places
        cdef Place place = places[symbol], root = places[place.root]
        cdef Spec spec = <Spec>self.code.graph.symbols[symbol].spec
        if self.code.shows_item(symbol):
            root.address, root.nbytes = place.address, spec.itemsize
        memory = new_value(spec_of((root.nbytes,), np.dtype(np.uint8)))
        memcpy(memory.data, self.resolved(root.address), root.nbytes)
        return strided_value(spec, memory.data + <npy_intp>(place.address - root.address),
                             self.code.pool + place.strides, memory)

    cdef Value shown(self, int32_t symbol, Value fed):
        """Return a part of a fed value: a view, or a copy if the value is a user's array."""
        cdef npy_intp strides[MAX_AXES]
        if fed.id == NO_ID:
            return copy_of_array(self.argument(symbol, False))
        self.code.strides_of(symbol, strides)
        return strided_value(
            <Spec>self.code.graph.symbols[symbol].spec,
            self.resolved(self.code.layout.places[symbol].address), strides, fed)

    cdef ndarray argument(self, int32_t symbol, bint copy):
        """Return an operand of an op's forward function."""
        cdef Place* place = &self.code.layout.places[symbol]
        cdef Spec spec = <Spec>self.code.graph.symbols[symbol].spec
        cdef int memory = memory_of(place.address)
        cdef Value value
        cdef npy_intp* strides = NULL
        cdef ndarray array
        if place.kind == STACKED:
            return self.stacked(symbol)
        if memory == EXTERNAL:
            value = self.objects[external_number(place.address)]
            if place.kind == UNKNOWN or value.spec is spec and offset_of(place.address) == 0 and (
                    place.strides < 0):
                array = array_of(value)
                return array.copy() if copy else array
            base = value
        else:
            base = self.code.constants if memory == CONSTANT else self.arena
        if place.strides >= 0:
            strides = self.code.pool + place.strides
        Py_INCREF(spec.dtype)
        array = PyArray_NewFromDescr(ndarray, <cnp.dtype>spec.dtype, spec.ndim, spec.dims, strides,
                                     self.resolved(place.address), 0, None)
        cnp.PyArray_UpdateFlags(array, cnp.NPY_ARRAY_UPDATE_ALL)
        Py_INCREF(base)
        PyArray_SetBaseObject(array, base)
        if not copy:
            return array
        array = array.copy()
        array.setflags(write=False)
        return array

    cdef Value value_argument(self, int32_t symbol):
        cdef Place* place = &self.code.layout.places[symbol]
        cdef Value value
        if memory_of(place.address) == EXTERNAL and place.strides < 0 and (
                offset_of(place.address) == 0):
            value = self.objects[external_number(place.address)]
            if place.kind == UNKNOWN or value.spec is <Spec>self.code.graph.symbols[symbol].spec:
                return value
        return copy_of_array(self.argument(symbol, False))

    cdef int store(self, int32_t symbol, result) except -1:
        """Store a result of Python where instructions read it."""
        cdef Place* place = &self.code.layout.places[symbol]
        cdef Spec spec = <Spec>self.code.graph.symbols[symbol].spec
        cdef Value value = result if type(result) is Value else None
        cdef ndarray array
        if value is None:
            if isinstance(result, Tensor):
                value = (<Tensor>result).held
            else:
                array = as_ndarray(result)
                value = copy_of_array(array) if is_borrowed(array) else value_of_array(array)
        if value.spec is not spec and not fits(value.spec, spec):
            op = self.code.graph.ops[self.code.graph.node_of(symbol)]
            told = "a call with ones" if getattr(op, "shape_rule", None) is None else (
                "the op's shape_rule")
            raise GraphError(
                f"the forward function returned an array of shape {value.spec.shape} and dtype "
                f"{value.spec.dtype}, but {told} told {spec.shape} and {spec.dtype}")
        if not value.contiguous and place.kind != UNKNOWN:
            value = copy_of_array(array_of(value))
        if memory_of(place.address) == EXTERNAL:
            return self.set_external(external_number(place.address), value)
        memcpy(self.resolved(place.address), value.data, spec.nbytes)
        return 0

    cdef int report(self, int32_t node, bytearray met) except -1:
        """Warn or raise, by NumPy's settings, about a division by zero, an overflow, ..."""
        cdef int found = found_trouble()
        cdef Py_ssize_t i
        op = self.code.graph.ops[node]
        clear_trouble()
        if self.errors is None:
            self.errors = np.geterr()
        try:
            if met is not None:
                for i, step_op in enumerate((<FusedOp>op).step_ops):
                    say(step_op, numbered((<int*><char*>met)[i]), self.errors)
            elif isinstance(op, AccumulateOp):  # may have overwritten an operand
                say(add, numbered(found), self.errors)
            elif not isinstance(op, ValueOp):
                say(op, numbered(found), self.errors)
            elif matters(found, self.errors):
                self.run_op(node)
                clear_trouble()
        except Exception as error:
            note_operation(error, self.code.graph, node)
            raise
        return 0

    cdef list results(self):
        cdef Code code = self.code
        cdef Py_ssize_t k, n_feeds = len(code.feeds)
        cdef Place* place
        cdef Value value
        cdef list outputs = []
        for k, symbol in enumerate(code.fetches, n_feeds):
            value = self.objects[k]
            place = &code.layout.places[<int32_t>symbol]
            if k in code.late:
                if place.kind == STACKED:
                    outputs.append(value_of_array(self.stacked(symbol)))
                    continue
                if place.strides >= 0:
                    outputs.append(self.repeated(symbol))
                    continue
                value = self.objects[external_number(place.address)]
                if place.kind != UNKNOWN and external_number(place.address) < n_feeds:
                    outputs.append(self.shown(symbol, value))
                    continue
                value = own_copy(value, any([value is fed for fed in self.objects[:n_feeds]]))
            elif place.strides >= 0 and memory_of(place.address) == EXTERNAL and (
                    external_number(place.address) == k):
                value = strided_value(value.spec, value.data + offset_of(place.address),
                                      code.pool + place.strides, value)
            outputs.append(value)
        return outputs


cdef Value own_copy(Value value, bint fed):
    """Return a new, immutable value with the same data."""
    cdef bint shared = type(value.owner) is ndarray and not cnp.PyArray_CHKFLAGS(
        <ndarray>value.owner, cnp.NPY_ARRAY_OWNDATA)
    array = array_of(value)
    return copy_of_array(array) if fed or shared else value_of_array(array)


cdef bint is_borrowed(ndarray array) except -1:
    """Return whether an array shares memory with a frame, which later runs overwrite."""
    cdef object base = array
    while isinstance(base, ndarray):
        base = base.base
    return type(base) is Buffer


cdef bint is_trusted(forward):
    """Return whether a function keeps no reference to its arguments."""
    module = getattr(forward, "__module__", None)
    return isinstance(forward, ufunc) or isinstance(module, str) and (
        module + ".").startswith(("numpy.", "cytape."))
