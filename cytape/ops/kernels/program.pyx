cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from cytape.tensor.spec cimport Spec
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from numpy cimport npy_intp

from .loops cimport WORTH_THE_GIL, Kernel, Loop, kernel_of
from .selection cimport select_loop
from .sums cimport add_to
from .vector_math cimport vector_loop
from .walk cimport Walk, begin, join, plan, proceed

import operator

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

cnp.import_array()

cdef int64_t* effort = effort_so_far()

cdef enum:
    BLOCK_BYTES = 4096       # per register: a program's registers fit the L1 cache together
    SMALL_BYTES = 256        # data up to this size find all registers on the stack
    WORTH_VECTORS = 64       # elements above which another loop for the same function pays


WIDEN = "widen"    # a step that turns booleans into numbers
SELECT = "select"  # a step that is numpy.where

partials_of = {}   # ufunc -> one partial derivative per input, as ops declare them


class NotAProgram(Exception):
    """A partial derivative does something that kernels cannot do."""


class Symbol(NDArrayOperatorsMixin):
    """Stands for an array while a partial derivative is being traced."""

    def __init__(self, tracer, register, is_bool=False):
        self.tracer = tracer
        self.register = register
        self.is_bool = is_bool

    def __array_ufunc__(self, ufunc, method, *inputs, **arguments):
        if method != "__call__" or arguments:
            raise NotAProgram
        return self.tracer.call(ufunc, inputs)

    def __array_function__(self, function, types, args, arguments):
        if function is not np.where or len(args) != 3 or arguments:
            raise NotAProgram
        return self.tracer.select(*args)

    def __getattr__(self, name):
        raise NotAProgram

    def __bool__(self):
        raise NotAProgram  # which branch to take depends on the data


class Tracer:
    """Collects the steps of one program."""

    def __init__(self):
        self.symbols = [Symbol(self, register) for register in range(N_OPERANDS)]
        self.steps = []      # (ufunc, SELECT or WIDEN, input symbols, result symbol)
        self.constants = {}  # register -> value

    def new_symbol(self, is_bool=False):
        symbol = Symbol(self, len(self.symbols), is_bool)
        self.symbols.append(symbol)
        return symbol

    def constant(self, value):
        if isinstance(value, complex) or np.ndim(value):
            raise NotAProgram
        value = float(value)
        for register, known in self.constants.items():
            if known.hex() == value.hex():  # 0.0 == -0.0
                return self.symbols[register]
        symbol = self.new_symbol()
        self.constants[symbol.register] = value
        return symbol

    def number(self, x):
        """Return the symbol of an operand that is not to be boolean."""
        symbol = x if isinstance(x, Symbol) else self.constant(x)
        return self.add_step(WIDEN, [symbol]) if symbol.is_bool else symbol

    def select(self, condition, x, y):
        if not isinstance(condition, Symbol) or not condition.is_bool:
            raise NotAProgram
        return self.add_step(SELECT, [condition, self.number(x), self.number(y)])

    def add_step(self, kind, symbols, is_bool=False):
        for known_kind, known_symbols, result in self.steps:
            if known_kind is kind and all(map(operator.is_, known_symbols, symbols)):
                return result
        result = self.new_symbol(is_bool)
        self.steps.append((kind, symbols, result))
        return result

    def call(self, ufunc, inputs):
        symbols = [x if isinstance(x, Symbol) else self.constant(x) for x in inputs]
        if len(symbols) > 3:
            raise NotAProgram
        all_bool = all(symbol.is_bool for symbol in symbols)
        loop_type = cnp.NPY_BOOL if all_bool else cnp.NPY_DOUBLE
        if has_loop(ufunc, loop_type) is None:
            if not all_bool:
                raise NotAProgram
            all_bool, loop_type = False, cnp.NPY_DOUBLE
        if not all_bool:
            symbols = list(map(self.number, symbols))
        out_type = has_loop(ufunc, loop_type)
        if out_type != cnp.NPY_BOOL and out_type != cnp.NPY_DOUBLE:
            raise NotAProgram
        return self.add_step(ufunc, symbols, is_bool=out_type == cnp.NPY_BOOL)

    # ---- derivatives

    def times(self, symbol, partial):
        """Multiply by a partial derivative, as `PartialsOp` does on arrays."""
        if callable(partial):
            return partial(symbol)
        if not isinstance(partial, Symbol) and partial == 1:
            return symbol
        if isinstance(partial, Symbol) and partial.is_bool:
            return self.select(partial, symbol, 0)
        return self.call(np.multiply, (symbol, partial))

    def tangent_of_step(self, kind, inputs, result, tangents):
        """Return the tangent of a step's result, None for zero; tangents go by register."""
        of_inputs = [tangents.get(symbol.register) for symbol in inputs]
        if kind is WIDEN or result.is_bool or all([tangent is None for tangent in of_inputs]):
            return None
        if kind is SELECT:
            _, x, y = [0 if tangent is None else tangent for tangent in of_inputs]
            return self.select(inputs[0], x, y)
        if kind not in partials_of:
            raise NotAProgram
        return self.tangent(partials_of[kind], result, inputs, of_inputs)

    def tangent(self, partials, output, inputs, tangents):
        """Sum the tangents (None: zero) of an op's inputs, times the partials."""
        total = None
        for partial, tangent in zip(partials, tangents):
            if partial is not None and tangent is not None:
                term = self.times(tangent, partial(output, *inputs))
                total = term if total is None else self.call(np.add, (total, term))
        return total


def has_loop(ufunc, int type_num):
    """The output type of a ufunc's loop for inputs of a type, None if there is no such loop."""
    cdef Loop loop = kernel_of(ufunc).loops[type_num]
    return None if loop.function == NULL or ufunc.nout != 1 else loop.out_type


def declare_partials(ufunc, partials, instead_of=None):
    """Tell how the steps that call a ufunc are differentiated.

    The first to tell is believed, until he tells it anew, `instead_of` what he told.
    """
    if instead_of is not None and partials_of.get(ufunc) is instead_of:
        partials_of[ufunc] = partials
    partials_of.setdefault(ufunc, partials)


def trace(partial, int n_inputs):
    """Return the program of a partial derivative, or None if kernels cannot do it.

    Parameters
    ----------
    partial : callable
        Of the op's output and inputs.
    n_inputs : int
    """
    tracer = Tracer()
    try:
        return assemble(tracer, product(tracer, partial, n_inputs))
    except NotAProgram:
        return None


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
        return assemble(tracer, tracer.tangent(partials, tracer.symbols[OUTPUT], inputs, tangents))
    except NotAProgram:
        return None


def trace_gradient_tangent(partial, int n_inputs, unsigned int present):
    """Return the program of the tangent of what `trace`'s computes, or None as there.

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
        return assemble(tracer, tangents.get(result.register))
    except NotAProgram:
        return None


cdef object product(tracer, partial, int n_inputs):
    gradient, output, *inputs = tracer.symbols[:FIRST_INPUT + n_inputs]
    return tracer.times(gradient, partial(output, *inputs))


cdef Program assemble(tracer, result):
    """Keep the steps that lead to the result (None: zero)."""
    cdef Program program = Program()
    cdef Step* step
    cdef Kernel kernel
    cdef int i, type_num, register
    program.kernels = []
    program.ufuncs = []
    program.copied = -1
    program.runs_on = [True, True]
    steps, needed = [], set()
    if result is not None:
        needed.add(result.register)
    for kind, inputs, output in reversed(tracer.steps):
        if output.register in needed:
            needed.update([symbol.register for symbol in inputs])
            steps.insert(0, (kind, inputs, output))
    if result is not None and not steps:
        program.copied = result.register
    program.is_one = program.copied == GRADIENT
    registers = {}  # operands keep theirs, the others move together
    program.n_registers = N_OPERANDS
    for traced in sorted(needed):
        if traced < N_OPERANDS:
            registers[traced] = register = traced
            program.operands |= 1 << register
            program.n_operands = register + 1
            continue
        registers[traced] = register = program.n_registers
        program.n_registers += 1
        if register == MAX_REGISTERS:
            raise NotAProgram
        if traced in tracer.constants:
            program.is_constant[register] = True
            program.constants[register] = tracer.constants[traced]
            program.float_constants[register] = tracer.constants[traced]
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


cdef bint add_operand(Operands* operands, int register, Value value) noexcept:
    cdef Spec shape = <Spec>operands.shape
    if value.spec.type_num != shape.type_num:
        return False
    operands.present |= 1 << register
    operands.values[register] = <void*>value
    operands.data[register] = value.data
    operands.strides[register] = 0 if value.spec.size == 1 else shape.itemsize
    if value.spec.size != 1 and (value.spec is not shape or not value.contiguous):
        operands.flat = False
    return True


cdef class Program:
    cdef int run_on(self, Operands* operands, Value result, bint accumulate) except -1:
        """Compute the result, contiguous and of the operands' common shape, or add to it.

        It may share the memory of an operand that lies as it does.
        """
        cdef Spec shape = <Spec>operands.shape
        cdef char on_stack[(MAX_REGISTERS - N_OPERANDS) * SMALL_BYTES]
        cdef char* memory = on_stack
        cdef Walk walk
        cdef npy_intp n = shape.size
        if n == 0:
            return 0
        if operands.flat and shape.nbytes <= SMALL_BYTES:
            lay_out(self, shape.itemsize, n, operands.data, operands.strides, on_stack)
            run_steps(self, shape.type_num, n, operands.data, operands.strides, result.data,
                      accumulate)
            return 0
        if not operands.flat:
            plan(&walk, shape)
            join(&walk, result)
            self.join_operands(operands, &walk)
            begin(&walk)
            n = walk.length
        if n * shape.itemsize > SMALL_BYTES:
            memory = <char*>malloc((self.n_registers - N_OPERANDS) * BLOCK_BYTES)
            if memory == NULL:
                raise MemoryError()
        if operands.flat:
            self.run(shape.type_num, n, operands.data, operands.strides, result.data, accumulate,
                     memory)
        else:
            self.run_along(&walk, shape.type_num, accumulate, memory)
        if memory != on_stack:
            free(memory)
        return 0

    cdef void join_operands(self, Operands* operands, Walk* walk) noexcept:
        cdef int register
        for register in range(self.n_operands):
            if self.operands >> register & 1:
                join(walk, <Value>operands.values[register])

    cdef void run_along(self, Walk* walk, int type_num, bint accumulate, char* memory) noexcept:
        """Run over each run of a walk; the result is its first operand."""
        cdef char* data[MAX_REGISTERS]
        cdef npy_intp strides[MAX_REGISTERS]
        cdef int register, operand
        while True:
            operand = 0
            for register in range(self.n_operands):
                if self.operands >> register & 1:
                    operand += 1
                    data[register] = walk.data[operand]
                    strides[register] = walk.steps[operand]
            self.run(type_num, walk.length, data, strides, walk.data[0], accumulate, memory)
            if not walk.n_axes or not proceed(walk):
                return

    cdef void run(self, int type_num, npy_intp n, char** data, npy_intp* strides, char* result,
                  bint accumulate, char* memory) noexcept:
        """Compute n elements into contiguous memory, or add them to it.

        `data` and `strides` (0: one element for all) describe the operands; what stands behind
        them is overwritten. `memory` is for registers: of a block, or of n elements if these take
        no more than SMALL_BYTES.
        """
        cdef npy_intp itemsize = 8 if type_num == cnp.NPY_DOUBLE else 4
        if n * itemsize <= SMALL_BYTES:
            lay_out(self, itemsize, n, data, strides, memory)
            run_steps(self, type_num, n, data, strides, result, accumulate)
        elif n * itemsize < WORTH_THE_GIL:
            run_blocks(self, type_num, n, data, strides, result, accumulate, memory)
        else:
            effort[0] += n * itemsize * self.n_steps
            with nogil:
                run_blocks(self, type_num, n, data, strides, result, accumulate, memory)


cdef void lay_out(Program program, npy_intp itemsize, npy_intp length, char** registers,
                  npy_intp* strides, char* memory) noexcept nogil:
    """Place the registers behind the operands: constants, and memory for so many elements."""
    cdef int register
    for register in range(N_OPERANDS, program.n_registers):
        if program.is_constant[register]:
            strides[register] = 0
            registers[register] = (<char*>&program.float_constants[register] if itemsize == 4
                                   else <char*>&program.constants[register])
        else:
            strides[register] = itemsize
            registers[register] = memory
            memory += length * itemsize


cdef void run_blocks(Program program, int type_num, npy_intp n, char** data,
                     const npy_intp* strides, char* result, bint accumulate,
                     char* memory) noexcept nogil:
    cdef npy_intp itemsize = 8 if type_num == cnp.NPY_DOUBLE else 4
    cdef char* registers[MAX_REGISTERS]
    cdef npy_intp register_strides[MAX_REGISTERS]
    cdef npy_intp length = BLOCK_BYTES // itemsize
    cdef int register
    for register in range(program.n_operands):
        registers[register] = data[register]
        register_strides[register] = strides[register]
    lay_out(program, itemsize, length, registers, register_strides, memory)
    while n:
        length = min(length, n)
        run_steps(program, type_num, length, registers, register_strides, result, accumulate)
        n -= length
        for register in range(program.n_operands if n else 0):
            registers[register] += length * register_strides[register]
        result += length * itemsize


cdef void run_steps(Program program, int type_num, npy_intp length, char** registers,
                    const npy_intp* strides, char* result, bint accumulate) noexcept nogil:
    cdef npy_intp itemsize = 8 if type_num == cnp.NPY_DOUBLE else 4
    cdef int i, last = program.n_steps - 1
    cdef Step* step
    for i in range(program.n_steps):
        step = &program.steps[i]
        run_step(step, type_num, length, registers, strides,
                 result if i == last and not accumulate else registers[step.output])
    if accumulate:
        add_to(type_num, itemsize, length, result, registers[program.steps[last].output])


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
