cimport numpy as cnp
from cpython.ref cimport PyObject
from cytape.core.interrupts cimport effort_so_far
from cytape.tensor.values.spec cimport Spec, scalar_spec
from cytape.tensor.values.value cimport is_uniform, new_value, strided_value
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from numpy cimport npy_intp

from .partial_tracer cimport FIRST_INPUT, GRADIENT, N_PRIMALS, OUTPUT
from .sums cimport add_to
from .ufunc_loops cimport WORTH_THE_GIL, Kernel, kernel_of
from .vector_math cimport vector_loop
from .walk cimport MAX_AXES, Walk, begin, join, plan, proceed
from .where_loops cimport select_loop

from cytape.ops.kernels.partial_tracer import SELECT, WIDEN, NotAProgram, Tracer

cnp.import_array()

cdef int64_t* effort = effort_so_far()

cdef enum:
    L1_BYTES = 1 << 15       # limit of all registers of a block,
    LEAST_BLOCK = 1 << 12    # in whole pages; each has at least so many bytes
    MOST_BLOCK = 1 << 14     # and so many at most
    PAGE = 4096
    APART = 1600             # bytes past a page, so that loads do not alias recent stores
    SMALL_BYTES = 256        # data up to this size find all registers on the stack
    WORTH_VECTORS = 64       # elements above which another loop for the same function pays


def trace(partial, int n_inputs, bint of_ones=False):
    """Return the program of a partial derivative, or None if kernels cannot do it.

    Parameters
    ----------
    partial : callable
        Of the op's output and inputs.
    n_inputs : int
    of_ones : bool, optional
        The output's gradient is 1 everywhere, and not read.
    """
    tracer = Tracer()
    try:
        return assemble(tracer, [product(tracer, partial, n_inputs, of_ones)])
    except NotAProgram:
        return None


def trace_together(tuple partials, unsigned int wanted, bint of_ones=False):
    """Return the program of the gradients of several inputs, or None if kernels cannot do it.

    The last step computes the last gradient, which may overwrite the output's.

    Parameters
    ----------
    partials : tuple of callable or None
        The op's.
    wanted : int
        Bit i: the gradient of input i is computed.
    of_ones : bool, optional
        As for `trace`.
    """
    cdef Program program
    cdef int i
    tracer = Tracer()
    try:
        program = assemble(tracer, [product(tracer, partial, len(partials), of_ones)
                                    for i, partial in enumerate(partials) if wanted >> i & 1])
    except NotAProgram:
        return None
    for i in range(program.n_results):
        if program.results[i] < N_OPERANDS or program.results[i] in program.results[:i]:
            return None
    if program.n_steps == 0 or (
            program.results[program.n_results - 1] != program.steps[program.n_steps - 1].output):
        return None
    return program


def trace_tangent(tuple partials, unsigned int present):
    """Return the program of the tangent of an op's output, or None if kernels cannot do it.

    Parameters
    ----------
    partials : tuple of callable or None
        The op's.
    present : int
        Bit i: input i has a tangent.
    """
    tracer = Tracer()
    inputs = tracer.symbols[FIRST_INPUT:FIRST_INPUT + len(partials)]
    tangents = [tracer.symbols[N_PRIMALS + symbol.register] if present >> i & 1 else None
                for i, symbol in enumerate(inputs)]
    try:
        return assemble(tracer, [tracer.tangent(
            partials, tracer.symbols[OUTPUT], inputs, tangents)])
    except NotAProgram:
        return None


def trace_gradient_tangent(partial, int n_inputs, unsigned int present):
    """Return the program of the tangent of a gradient, the result of `trace`; or None as there.

    Parameters
    ----------
    partial : callable
    n_inputs : int
    present : int
        Bit per register, from GRADIENT on, of those that have a tangent.
    """
    cdef int register
    tracer = Tracer()
    tangents = {register: tracer.symbols[N_PRIMALS + register]
                for register in range(N_PRIMALS) if present >> register & 1}
    try:
        result = product(tracer, partial, n_inputs)
        for kind, inputs, output in list(tracer.steps):
            tangents[output.register] = tracer.tangent_of_step(kind, inputs, output, tangents)
        return assemble(tracer, [tangents.get(result.register)])
    except NotAProgram:
        return None


cdef object product(tracer, partial, int n_inputs, bint of_ones=False):
    gradient, output, *inputs = tracer.symbols[:FIRST_INPUT + n_inputs]
    if of_ones:
        gradient = tracer.constant(1)
    return tracer.times(gradient, partial(output, *inputs))


cdef Program assemble(tracer, list results):
    """Keep the steps that the results depend on; a result that is None is zero."""
    cdef Program program = Program()
    cdef Step* step
    cdef Kernel kernel
    cdef int i, type_num
    program.kernels = []
    program.ufuncs = []
    program.copied = -1
    program.runs_on = [True, True]
    results = [result for result in results if result is not None]
    steps, needed = [], {result.register for result in results}
    for kind, inputs, output in reversed(tracer.steps):
        if output.register in needed:
            needed.update([symbol.register for symbol in inputs])
            steps.insert(0, (kind, inputs, output))
    if len(steps) > MAX_REGISTERS:
        raise NotAProgram
    if results and not steps:
        program.copied = results[0].register
    program.is_one = program.copied == GRADIENT
    registers = place_registers(program, tracer.constants, steps, results, needed)
    program.reads = program.operands >> OUTPUT & ((1 << (N_PRIMALS - OUTPUT)) - 1)
    for kind, inputs, output in steps:
        step = &program.steps[program.n_steps]
        program.n_steps += 1
        program.ufuncs.append(None if kind is SELECT or kind is WIDEN else kind)
        step.n_inputs = len(inputs)
        step.from_bool = all([symbol.is_bool for symbol in inputs])
        step.vector = vector_loop(kind)
        if kind is not SELECT and kind is not WIDEN:
            kernel = kernel_of(kind)
            program.kernels.append(kernel)
            for i in range(2):
                type_num = cnp.NPY_FLOAT if i else cnp.NPY_DOUBLE
                step.loops[i] = kernel.loops[<int>cnp.NPY_BOOL if step.from_bool else type_num]
                program.runs_on[i] &= step.loops[i].function != NULL
        for i, symbol in enumerate(inputs):
            step.inputs[i] = registers[symbol.register]
        step.output = registers[output.register]
    return program


cdef dict place_registers(Program program, dict constants, list steps, list results, set needed):
    """Assign registers; results of steps share as few as possible.

    Going backwards, a register is free before the step that writes to it. The last result's is
    not reused, since the output's gradient may be read from there.
    """
    cdef dict registers = {}
    cdef list free_ones = []
    cdef int i, register, n_constants, last = -1
    program.n_registers = N_OPERANDS
    for traced in sorted(needed):
        if traced < N_OPERANDS:
            registers[traced] = register = traced
            program.operands |= 1 << register
            program.n_operands = register + 1
        elif traced in constants:
            registers[traced] = register = new_register(program)
            program.is_constant[register] = True
            program.constants[register] = constants[traced]
            program.float_constants[register] = constants[traced]
    n_constants = program.n_registers - N_OPERANDS
    for i, result in enumerate(results if steps else []):
        program.n_results = i + 1
        if result.register not in registers:
            registers[result.register] = new_register(program)
        program.results[i] = last = registers[result.register]
    for kind, inputs, output in reversed(steps):
        in_place = not (kind is SELECT or kind is WIDEN or output.is_bool
                        or any([symbol.is_bool for symbol in inputs]) or vector_loop(kind) != NULL)
        is_free = registers[output.register] != last
        if in_place and is_free:
            free_ones.append(registers[output.register])
        for symbol in inputs:
            if symbol.register not in registers:
                registers[symbol.register] = (
                    free_ones.pop() if free_ones else new_register(program))
        if is_free and not in_place:
            free_ones.append(registers[output.register])
    n_live = program.n_registers - N_OPERANDS - n_constants + bin(program.operands).count("1")
    program.block = min(max(L1_BYTES // max(n_live, 1) // PAGE * PAGE, LEAST_BLOCK), MOST_BLOCK)
    program.spacing = (program.block - APART + PAGE - 1) // PAGE * PAGE + APART
    return registers


cdef int new_register(Program program) except -1:
    if program.n_registers == MAX_REGISTERS:
        raise NotAProgram
    program.n_registers += 1
    return program.n_registers - 1


cdef bint add_operand(Operands* operands, int register, Value value) noexcept:
    cdef Spec shape = <Spec>operands.shape
    if value.spec.type_num != shape.type_num:
        return False
    operands.present |= 1 << register
    operands.values[register] = <void*>value
    operands.data[register] = value.data
    operands.strides[register] = 0
    if value.spec.size == 1:
        return True
    if value.spec is not shape or not value.contiguous:
        if is_uniform(value):
            return True
        operands.flat = False
    operands.strides[register] = shape.itemsize
    return True


cdef class Program:
    cdef int run_on(self, Operands* operands, Value result, bint accumulate) except -1:
        cdef PyObject* results = <PyObject*>result
        return self.run_together(operands, &results, accumulate)

    cdef int run_together(self, Operands* operands, PyObject** results, bint accumulate) except -1:
        """Compute the results, contiguous and of the operands' common shape, or add to them.

        The last one may share the memory of an operand with the same layout.
        """
        cdef Spec shape = <Spec>operands.shape
        cdef char on_stack[(MAX_REGISTERS - N_OPERANDS) * SMALL_BYTES]
        cdef char* memory = on_stack
        cdef char* data[MAX_INPUTS]
        cdef Walk walk
        cdef npy_intp n = shape.size
        cdef int i
        if n == 0:
            return 0
        for i in range(self.n_results):
            data[i] = (<Value>results[i]).data
        if operands.flat and shape.nbytes <= SMALL_BYTES:
            lay_out(self, shape.itemsize, shape.nbytes, operands.data, operands.strides, on_stack)
            run_steps(self, shape.type_num, n, operands.data, operands.strides, data, accumulate)
            return 0
        if not operands.flat:
            plan(&walk, shape)
            for i in range(self.n_results):
                join(&walk, <Value>results[i])
            self.join_operands(operands, &walk)
            begin(&walk)
            n = walk.length
        if n * shape.itemsize > SMALL_BYTES:
            memory = <char*>malloc((self.n_registers - N_OPERANDS) * self.spacing)
            if memory == NULL:
                raise MemoryError()
        if operands.flat:
            self.run(shape.type_num, n, operands.data, operands.strides, data, accumulate, memory)
        else:
            self.run_along(&walk, shape.type_num, accumulate, memory)
        if memory != on_stack:
            free(memory)
        return 0

    cdef bint repeats(self, Operands* operands) noexcept:
        """Return whether all operands that are read are uniform."""
        cdef int register
        for register in range(self.n_operands):
            if self.operands >> register & 1 and operands.strides[register]:
                return False
        return operands.flat

    cdef Value repeated(self, Operands* operands):
        """Return the uniform result for uniform operands."""
        cdef Spec shape = <Spec>operands.shape
        cdef Value one = new_value(scalar_spec(shape))
        cdef npy_intp strides[MAX_AXES]
        cdef int axis
        operands.shape = <void*>one.spec
        self.run_on(operands, one, False)
        operands.shape = <void*>shape
        for axis in range(shape.ndim):
            strides[axis] = 0
        return strided_value(shape, one.data, strides, one)

    cdef void join_operands(self, Operands* operands, Walk* walk) noexcept:
        cdef int register
        for register in range(self.n_operands):
            if self.operands >> register & 1:
                join(walk, <Value>operands.values[register])

    cdef void run_along(self, Walk* walk, int type_num, bint accumulate, char* memory) noexcept:
        """Run the program on each run of a walk; the result is its first operand."""
        cdef char* data[MAX_REGISTERS]
        cdef npy_intp strides[MAX_REGISTERS]
        cdef int register, operand
        while True:
            operand = self.n_results - 1
            for register in range(self.n_operands):
                if self.operands >> register & 1:
                    operand += 1
                    data[register] = walk.data[operand]
                    strides[register] = walk.steps[operand]
            self.run(type_num, walk.length, data, strides, walk.data, accumulate, memory)
            if not walk.n_axes or not proceed(walk):
                return

    cdef void run(self, int type_num, npy_intp n, char** data, npy_intp* strides, char** results,
                  bint accumulate, char* memory) noexcept:
        """Compute n elements into contiguous memory, or add them to it.

        `data` and `strides` (0: uniform) describe the operands; entries behind these are
        overwritten. `memory` is for registers: of a block, or of n elements if these take
        no more than SMALL_BYTES.
        """
        cdef npy_intp itemsize = 8 if type_num == cnp.NPY_DOUBLE else 4
        if n * itemsize <= SMALL_BYTES:
            lay_out(self, itemsize, n * itemsize, data, strides, memory)
            run_steps(self, type_num, n, data, strides, results, accumulate)
        elif n * itemsize < WORTH_THE_GIL:
            run_blocks(self, type_num, n, data, strides, results, accumulate, memory)
        else:
            effort[0] += n * itemsize * self.n_steps
            with nogil:
                run_blocks(self, type_num, n, data, strides, results, accumulate, memory)


cdef void lay_out(Program program, npy_intp itemsize, npy_intp spacing, char** registers,
                  npy_intp* strides, char* memory) noexcept nogil:
    """Set the registers behind the operands: constants, and temporaries of `nbytes` each."""
    cdef int register
    for register in range(N_OPERANDS, program.n_registers):
        if program.is_constant[register]:
            strides[register] = 0
            registers[register] = (<char*>&program.float_constants[register] if itemsize == 4
                                   else <char*>&program.constants[register])
        else:
            strides[register] = itemsize
            registers[register] = memory
            memory += spacing


cdef void run_blocks(Program program, int type_num, npy_intp n, char** data,
                     const npy_intp* strides, char** results, bint accumulate,
                     char* memory) noexcept nogil:
    cdef npy_intp itemsize = 8 if type_num == cnp.NPY_DOUBLE else 4
    cdef char* registers[MAX_REGISTERS]
    cdef npy_intp register_strides[MAX_REGISTERS]
    cdef char* blocks[MAX_INPUTS]
    cdef npy_intp length = program.block // itemsize
    cdef int register, i
    for register in range(program.n_operands):
        registers[register] = data[register]
        register_strides[register] = strides[register]
    for i in range(program.n_results):
        blocks[i] = results[i]
    lay_out(program, itemsize, program.spacing, registers, register_strides, memory)
    while n:
        length = min(length, n)
        run_steps(program, type_num, length, registers, register_strides, blocks, accumulate)
        n -= length
        for register in range(program.n_operands if n else 0):
            registers[register] += length * register_strides[register]
        for i in range(program.n_results):
            blocks[i] += length * itemsize


cdef void run_steps(Program program, int type_num, npy_intp length, char** registers,
                    const npy_intp* strides, char** results, bint accumulate) noexcept nogil:
    cdef npy_intp itemsize = 8 if type_num == cnp.NPY_DOUBLE else 4
    cdef int i
    cdef Step* step
    for i in range(0 if accumulate else program.n_results):
        registers[program.results[i]] = results[i]
    for i in range(program.n_steps):
        step = &program.steps[i]
        run_step(step, type_num, length, registers, strides, registers[step.output])
    for i in range(program.n_results if accumulate else 0):
        add_to(type_num, itemsize, itemsize, length, results[i],
               registers[program.results[i]])


cdef void run_step(const Step* step, int type_num, npy_intp length, char** registers,
                   const npy_intp* strides, char* output) noexcept nogil:
    cdef int which = 0 if type_num == cnp.NPY_DOUBLE else 1
    cdef char* arguments[4]
    cdef npy_intp argument_strides[4]
    cdef int j
    for j in range(step.n_inputs):
        arguments[j] = registers[step.inputs[j]]
        argument_strides[j] = 1 if step.from_bool else strides[step.inputs[j]]
    arguments[step.n_inputs] = output
    argument_strides[step.n_inputs] = 4 if which else 8
    if step.vector != NULL and not which and length > WORTH_VECTORS:
        step.vector(arguments, &length, argument_strides, NULL)
    elif step.loops[which].function != NULL:
        if step.loops[which].out_type == cnp.NPY_BOOL:
            argument_strides[step.n_inputs] = 1
        step.loops[which].function(arguments, &length, argument_strides, step.loops[which].data)
    elif step.n_inputs == 1:
        widen(type_num, length, arguments[0], arguments[1])
    else:
        argument_strides[0] = 1  # of the condition
        select_loop(4 if which else 8).function(arguments, &length, argument_strides, NULL)


cdef void widen(int type_num, npy_intp n, char* booleans, char* numbers) noexcept nogil:
    cdef npy_intp i
    for i in range(n):
        if type_num == cnp.NPY_DOUBLE:
            (<double*>numbers)[i] = booleans[i]
        else:
            (<float*>numbers)[i] = booleans[i]
