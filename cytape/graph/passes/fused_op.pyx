cimport cython
cimport numpy as cnp
from cytape.core.interrupts cimport raise_failure
from cytape.core.vspace cimport OpType
from cytape.ops.calls.dispatch cimport Lowering
from cytape.ops.engine.elementwise_op cimport ElementwiseOp
from cytape.ops.kernels.ufunc_loops cimport WORTH_THE_GIL, Kernel, Loop, copy_loop, trouble, warn
from cytape.ops.kernels.partial_program cimport Step
from cytape.ops.kernels.vector_math cimport vector_loop
from cytape.ops.kernels.walk cimport MAX_AXES, broadcast_strides, merge_axes
from cytape.tensor.values.spec cimport Spec, broadcast_spec, spec_of_array
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy
from numpy cimport ndarray, npy_intp

from .fused_loop cimport LINE, PARTIAL_SUMS

cdef Op cast_op

import numpy as np

from cytape.ops.adjoints.conform import cast_op

cnp.import_array()

cdef enum:
    L1_BYTES = 5 << 12         # limit of the registers of a block together
    MOST_BLOCK = 2048          # elements
    PAGE = 4096
    APART = 1600               # bytes


cdef bint is_fused_type(int type_num) noexcept:
    return type_num == cnp.NPY_DOUBLE or type_num == cnp.NPY_FLOAT


cdef int fused_kind(Op op) except -1:
    if type(op) is ElementwiseOp:
        return NOT_FUSED if (<ElementwiseOp>op).kernel is None else LOOP_STEP
    if op.lowering == Lowering.SELECTED:
        return SELECT_STEP
    if op.lowering == Lowering.CONVERTED:
        return WIDEN_STEP
    return SUM_STEP if op.lowering == Lowering.SUM else NOT_FUSED


cdef bint has_step(Op op, int type_num, int n_inputs, int* input_types, int output_type) except -1:
    cdef int kind = fused_kind(op), i
    cdef bint all_bool = True, suits = n_inputs <= 3
    cdef Loop* loop
    for i in range(n_inputs):
        all_bool &= input_types[i] == cnp.NPY_BOOL
        suits &= input_types[i] == cnp.NPY_BOOL or input_types[i] == type_num
    if not suits or (output_type != type_num and output_type != cnp.NPY_BOOL):
        return False
    if kind == LOOP_STEP:
        loop = &(<ElementwiseOp>op).kernel.loops[<int>cnp.NPY_BOOL if all_bool else type_num]
        return loop.function != NULL and loop.out_type == output_type
    if kind == SELECT_STEP:
        return n_inputs == 3 and input_types[0] == cnp.NPY_BOOL and output_type == type_num
    if kind == WIDEN_STEP:
        return all_bool and output_type == type_num
    return kind == SUM_STEP and not all_bool and output_type == type_num


@cython.final
cdef class FusedOp(FusedLoop):
    """Elementwise ops of one shape, and sums over all elements, as one op.

    Elementwise results equal those of the separate ops to the bit; sums are as accurate as NumPy's.
    It has no derivative, since fusion is the last pass, after all differentiation.

    Parameters
    ----------
    spec : Spec
        Of what the ops compute, if they do not compare; float64 or float32.
    operand_specs : sequence of Spec
        Floats of that dtype, or booleans of that shape.
    calls : sequence of (Op, dict, tuple of int, bool)
        An op, its attributes, and its inputs by number: operands come first, then the outputs of
        the calls in their order. True: sine and cosine may be computed by the faster loop that
        derivatives use.
    results : sequence of int
        Which outputs of calls are returned.
    layouts : dict of int to sequence of int, optional
        Strides of operands that are not in C order, floats whose last extent is the op's, for
        `run`: each block of such an operand is copied before it is read.

    Examples
    --------
    >>> from cytape.ops import OPS
    >>> from cytape.tensor.values.spec import Spec
    >>> vector = Spec.of((3,), float)
    >>> calls = [(OPS["Square"], {}, (0,), False), (OPS["Exp"], {}, (1,), False)]
    >>> op = FusedOp(vector, [vector], calls, [2])
    >>> op.forward(np.array([0.0, 1.0, 2.0]))
    (array([ 1.        ,  2.71828183, 54.59815003]),)
    """

    def __init__(self, Spec spec not None, operand_specs, calls, results, dict layouts=None):
        self.shape = spec
        self.op_type = OpType("Fused")
        self.lowering = Lowering.FUSED
        self.op_type.kind.owner = <void*>self
        self.operand_specs = tuple(operand_specs)
        self.calls = list(calls)
        self.results = tuple(results)
        self.layouts = layouts or {}
        self.kernels, self.step_ops = [], []
        self.compile()

    @property
    def __doc__(self) -> str:
        return "Elementwise ops fused: " + ", ".join([call[0].name for call in self.calls])

    cdef object infer(self, list inputs, dict attrs):
        return self.result_specs

    cdef int compile(self) except -1:
        cdef Compiler compiler = Compiler(self)
        compiler.take_operands()
        for call in self.calls:
            compiler.take_call(<Op>call[0], call[2], call[3])
        compiler.finish()
        return 0

    def forward(self, *arrays):
        """Compute the results from arrays of the operands' specs."""
        cdef list outputs = [np.empty(spec.shape, spec.dtype) for spec in self.result_specs]
        cdef list operands = [np.ascontiguousarray(x) for x in arrays]
        cdef Py_ssize_t n_data = len(arrays) + len(outputs)
        cdef char** data = <char**>malloc(n_data * sizeof(char*) + self.scratch.nbytes)
        cdef char* scratch = <char*>(data + n_data)
        cdef int i, failed
        if data == NULL:
            raise MemoryError()
        try:
            if len(operands) != self.n_operands:
                raise TypeError(f"expected {self.n_operands} operands, got {len(operands)}")
            for i, (x, spec) in enumerate(zip(operands, self.operand_specs)):
                if x.size != spec.size or x.dtype != spec.dtype:
                    raise ValueError(f"operand {i} should be {spec!r}, is {spec_of_array(x)!r}")
                data[i] = <char*>cnp.PyArray_DATA(<ndarray>x)
            for i, x in enumerate(outputs):
                data[self.n_operands + i] = <char*>cnp.PyArray_DATA(<ndarray>x)
            if self.nbytes < WORTH_THE_GIL:
                failed = self.run(data, data + self.n_operands, scratch, NULL)
            else:
                with nogil:
                    failed = self.run(data, data + self.n_operands, scratch, NULL)
            if failed:
                raise_failure(failed)
        finally:
            free(data)
        if trouble():
            warn(self.report, arrays)
        return tuple(outputs)

    def report(self, *arrays):
        """Run the calls one by one, so that NumPy warns by its settings; return the results."""
        values = list(arrays)
        for op, attrs, inputs, _ in self.calls:
            values.append(op.forward(*[values[i] for i in inputs], **attrs))
        return tuple([values[i] for i in self.results])


@cython.final
cdef class Compiler:
    """Compiler of calls to steps; values get registers, which are reused when they are free."""

    cdef FusedOp op
    cdef list registers       # per value; None: none any more
    cdef list type_nums       # per value
    cdef list last_uses       # per value: the last call that reads it
    cdef list free_registers
    cdef dict written         # value -> register of a result
    cdef list places
    cdef int32_t n_values, n_calls

    def __init__(self, FusedOp op):
        cdef int32_t i, value, n_sums = 0, n_inputs = 0
        self.op = op
        op.n_operands = len(op.operand_specs)
        self.n_values = op.n_operands
        self.registers = list(range(op.n_operands))
        self.free_registers = []
        self.last_uses = [-1] * (op.n_operands + len(op.calls))
        for i, call in enumerate(op.calls):
            for value in call[2]:
                if not 0 <= value < op.n_operands + i:
                    raise ValueError(f"call {i} reads value {value}, which there is not yet")
                self.last_uses[value] = i
            n_inputs += len(call[2])
            n_sums += fused_kind(call[0]) == SUM_STEP
        op.steps = <Step*>calloc(  # an operand may be copied, an input widened
            op.n_operands + len(op.calls) + n_inputs, sizeof(Step))
        op.sum_results = <int32_t*>calloc(
            n_sums + 2 * len(op.results) + op.n_operands + 1, sizeof(int32_t))
        if op.steps == NULL or op.sum_results == NULL:
            raise MemoryError()
        op.result_places = op.sum_results + n_sums
        op.written_by = op.result_places + len(op.results)
        op.free_from = op.written_by + len(op.results)
        self.written = {}
        for i, value in enumerate(op.results):
            op.written_by[i] = -1
            if not op.n_operands <= value < op.n_operands + len(op.calls) or (
                    op.results.index(value) != i):
                raise ValueError(f"result {i} should be one more output of a call, not {value}")
            if fused_kind(op.calls[value - op.n_operands][0]) != SUM_STEP:
                self.written[value] = op.n_operands + op.n_written
                op.result_places[op.n_written] = i
                op.n_written += 1
        op.n_registers = op.n_operands + op.n_written

    cdef int take_operands(self) except -1:
        cdef FusedOp op = self.op
        cdef Spec spec, shape = op.shape
        if not is_fused_type(shape.type_num):
            raise ValueError(f"only ops of float64 or float32 can be fused, not of {shape.dtype}")
        for spec in op.operand_specs:
            if broadcast_spec(shape, spec) is not shape:
                raise ValueError(f"an operand of shape {spec.shape} cannot be broadcast to "
                                 f"{shape.shape}")
            if spec.type_num == cnp.NPY_BOOL and spec.size != shape.size:
                raise ValueError("a boolean operand has to have the full shape")
        self.type_nums = [spec.type_num for spec in op.operand_specs]
        for i in op.layouts:
            self.copy_blocks(i)
        return 0

    cdef int copy_blocks(self, int32_t operand) except -1:
        """Copy the blocks of a strided operand to a register, from which all steps read."""
        cdef Step* step = self.new_step(cast_op)
        step.n_inputs = 1
        step.inputs[0] = operand
        step.output = self.registers[operand] = self.new_register()
        step.loops[0] = copy_loop(self.op.shape.itemsize)[0]
        step.loops[0].out_type = self.op.shape.type_num
        return 0

    cdef int32_t new_register(self) except -1:
        if self.free_registers:
            return self.free_registers.pop()
        self.op.n_registers += 1
        return self.op.n_registers - 1

    cdef Step* new_step(self, Op op) except NULL:
        self.op.step_ops.append(op)
        self.op.n_steps += 1
        return &self.op.steps[self.op.n_steps - 1]

    cdef int32_t widened(self, int32_t value, Op op) except -1:
        """Return a register with the floats for a boolean value."""
        cdef Step* step = self.new_step(op)
        step.n_inputs = 1
        step.from_bool = True
        step.inputs[0] = self.registers[value]
        step.output = self.new_register()
        return step.output

    cdef int take_call(self, Op op, tuple inputs, bint fast) except -1:
        cdef int type_num = self.op.shape.type_num, kind = fused_kind(op)
        cdef int32_t value, i, number = self.n_values - self.op.n_operands
        cdef int types[3]
        cdef int32_t registers[3]
        cdef bint from_bool = True, in_place
        cdef Step* step
        cdef Kernel kernel
        cdef Loop* loop = NULL
        cdef int output_type = type_num
        cdef list passing = []
        if len(inputs) > 3:
            raise ValueError(f"op {op.name!r} has too many inputs to be fused")
        for i, value in enumerate(inputs):
            types[i] = self.type_nums[value]
            from_bool &= types[i] == cnp.NPY_BOOL
        if kind == LOOP_STEP:
            kernel = (<ElementwiseOp>op).kernel
            loop = &kernel.loops[<int>cnp.NPY_BOOL if from_bool else type_num]
            output_type = loop.out_type
        if kind == NOT_FUSED or not has_step(op, type_num, len(inputs), types, output_type):
            raise ValueError(f"op {op.name!r} cannot be fused")
        for i, value in enumerate(inputs):
            registers[i] = self.registers[value]
            if types[i] == cnp.NPY_BOOL and kind != WIDEN_STEP and not from_bool and (
                    kind == LOOP_STEP or i > 0):
                registers[i] = self.widened(value, op)
                passing.append(registers[i])
        step = self.new_step(op)
        step.n_inputs = len(inputs)
        step.from_bool = from_bool
        in_place = (  # the step may overwrite its argument
            kind == LOOP_STEP and not fast and output_type == type_num and not from_bool)
        for i in range(step.n_inputs):
            step.inputs[i] = registers[i]
            if registers[i] < self.op.n_operands:
                self.op.free_from[registers[i]] = self.op.n_steps - in_place
        if self.n_values in self.written and output_type == type_num:
            i = self.op.result_places[<int32_t>self.written[self.n_values] - self.op.n_operands]
            self.op.written_by[i] = self.op.n_steps - 1
        if kind == SUM_STEP:
            self.take_sum(step)
        elif in_place:
            self.release(inputs, number, cnp.NPY_BOOL)
            step.output = (self.written[self.n_values] if self.n_values in self.written
                           else self.new_register())
        else:
            step.output = (self.written[self.n_values] if self.n_values in self.written
                           else self.new_register())
        if kind == LOOP_STEP:
            self.op.kernels.append(kernel)
            step.loops[0] = step.loops[1] = loop[0]
            if fast:
                step.vector = vector_loop(kernel.ufunc)
        self.registers.append(step.output)
        self.type_nums.append(output_type)
        self.free_registers += passing
        self.release((*inputs, self.n_values), number, -1)
        self.n_values += 1
        return 0

    cdef int release(self, tuple values, int32_t number, int type_num) except -1:
        """Free the registers of values not read after a call, but for those of one type."""
        cdef int32_t value
        for value in values:
            register = self.registers[value]
            if self.last_uses[value] <= number and register is not None and (
                    register >= self.op.n_operands + self.op.n_written
                    and self.type_nums[value] != type_num):
                self.free_registers.append(register)
                self.registers[value] = None
        return 0

    cdef int take_sum(self, Step* step) except -1:
        cdef FusedOp op = self.op
        if step.inputs[0] < op.n_operands and (
                (<Spec>op.operand_specs[step.inputs[0]]).size != op.shape.size):
            raise ValueError("an operand that is summed has to have the full shape")
        op.sum_results[op.n_sums] = op.results.index(self.n_values)
        op.n_sums += 1
        step.output = -op.n_sums
        return 0

    cdef int finish(self) except -1:
        cdef FusedOp op = self.op
        cdef Spec spec, shape = op.shape
        cdef int32_t value, n_live = op.n_registers
        cdef npy_intp pages, n_bytes
        cdef list specs = []
        op.nbytes = 0
        for value in op.results:
            dtype = bool if self.type_nums[value] == cnp.NPY_BOOL else shape.dtype
            call = op.calls[value - op.n_operands]
            extents = shape.shape
            if fused_kind(call[0]) == SUM_STEP:
                extents = (1,) * shape.ndim if call[1].get("keepdims") else ()
            specs.append(Spec.of(extents, dtype))
        op.result_specs = tuple(specs)
        op.overwritable = sorted(
            [i for i, spec in enumerate(op.operand_specs)
             if (<Spec>spec).size == shape.size and (<Spec>spec).type_num == shape.type_num],
            key=lambda i: op.free_from[<int32_t>i])
        for spec in op.operand_specs + op.result_specs:
            op.nbytes += spec.nbytes
        for spec in op.operand_specs:
            n_live -= spec.size == 1
        op.block = L1_BYTES // (shape.itemsize * max(n_live, 1)) // 64 * 64
        op.block = min(max(op.block, LEAST_BLOCK), MOST_BLOCK)
        self.lay_out()
        self.lay_out_steps()
        op.block = min(op.block, op.size)
        # Loads at addresses slightly above a recent store, modulo 4 KiB, are delayed (4K aliasing),
        # so registers are spaced to avoid this.
        pages = (op.block * shape.itemsize - APART + PAGE - 1) // PAGE
        op.spacing = max(pages, 0) * PAGE + APART
        n_bytes = (op.n_registers * <npy_intp>sizeof(char*)
                   + op.n_sums * PARTIAL_SUMS * <npy_intp>sizeof(double)
                   + (op.n_registers - op.n_operands - op.n_written) * op.spacing + LINE)
        op.scratch = Spec.of((n_bytes,), np.uint8)
        return 0

    cdef int lay_out_steps(self) except -1:
        """Compute the strides of every step's arguments."""
        cdef FusedOp op = self.op
        cdef Step* step
        cdef npy_intp* strides
        cdef int32_t i, j
        op.step_strides = <npy_intp*>calloc(4 * op.n_steps + 1, sizeof(npy_intp))
        if op.step_strides == NULL:
            raise MemoryError()
        for i in range(op.n_steps):
            step = &op.steps[i]
            strides = op.step_strides + 4 * i
            for j in range(step.n_inputs):
                strides[j] = 1 if step.from_bool else op.strides[step.inputs[j]]
            strides[step.n_inputs] = op.shape.itemsize
            if step.loops[0].out_type == cnp.NPY_BOOL:
                strides[step.n_inputs] = 1
        return 0

    cdef int lay_out(self) except -1:
        """Compute the axes to iterate over, and the strides of each operand."""
        cdef FusedOp op = self.op
        cdef Spec shape = op.shape
        cdef int n_axes, axis, i
        cdef npy_intp[MAX_AXES] extents
        cdef npy_intp[MAX_AXES] own
        op.strides = <npy_intp*>calloc(
            op.n_registers + op.n_operands * shape.ndim + 1, sizeof(npy_intp))
        if op.strides == NULL:
            raise MemoryError()
        op.outer_strides = op.strides + op.n_registers
        for i in range(op.n_registers):
            op.strides[i] = shape.itemsize
        for i in range(op.n_operands):
            layout = op.layouts.get(i)
            for axis in range(0 if layout is None else len(layout)):
                own[axis] = layout[axis]
            broadcast_strides(op.operand_specs[i], NULL if layout is None else own, shape.ndim,
                              shape.dims, op.outer_strides + i * shape.ndim)
        memcpy(extents, shape.dims, shape.ndim * sizeof(npy_intp))
        n_axes = merge_axes(shape.ndim, extents, op.n_operands, op.outer_strides, shape.ndim)
        op.n_axes = max(n_axes - 1, 0)
        op.size = extents[op.n_axes] if n_axes else 1
        memcpy(op.extents, extents, op.n_axes * sizeof(npy_intp))
        for i in range(op.n_operands):
            op.strides[i] = op.outer_strides[i * shape.ndim + op.n_axes] if n_axes else 0
            for axis in range(op.n_axes):
                op.outer_strides[i * op.n_axes + axis] = op.outer_strides[i * shape.ndim + axis]
        for result in op.results:
            if result in self.written and self.type_nums[result] == cnp.NPY_BOOL:
                op.strides[<int32_t>self.written[result]] = 1
        return 0
