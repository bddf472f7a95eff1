cimport numpy as cnp
from libc.stdlib cimport free, malloc
from cytape.tensor.spec cimport Spec
from numpy cimport npy_intp

from .kernels cimport WORTH_THE_GIL, Kernel, Loop, kernel_of
from .sums cimport add_to
from .vector_math cimport vector_loop
from .walk cimport Walk, begin, join, plan, proceed

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

cnp.import_array()

cdef enum:
    BLOCK_BYTES = 4096       # per register: a program's registers fit the L1 cache together
    SMALL_BYTES = 256        # data up to this size find all registers on the stack
    WORTH_VECTORS = 64       # elements above which another loop for the same function pays


WIDEN = "widen"    # a step that turns booleans into numbers
SELECT = "select"  # a step that is numpy.where


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

    def __init__(self, n_inputs):
        self.symbols = [Symbol(self, register) for register in range(FIRST_INPUT + n_inputs)]
        self.steps = []      # (ufunc, SELECT or WIDEN, input symbols, output register)
        self.constants = {}  # register -> value

    def new_symbol(self, is_bool=False):
        if len(self.symbols) == MAX_REGISTERS:
            raise NotAProgram
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
        result = self.new_symbol(is_bool)
        if len(self.steps) == MAX_REGISTERS:
            raise NotAProgram
        self.steps.append((kind, symbols, result.register))
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


def has_loop(ufunc, int type_num):
    """The output type of a ufunc's loop for inputs of a type, None if there is no such loop."""
    cdef Loop loop = kernel_of(ufunc).loops[type_num]
    return None if loop.function == NULL or ufunc.nout != 1 else loop.out_type


def trace(partial, int n_inputs):
    """Return the program of a partial derivative, or None if kernels cannot do it.

    Parameters
    ----------
    partial : callable
        Of the op's output and inputs.
    n_inputs : int
    """
    tracer = Tracer(n_inputs)
    gradient, output, *inputs = tracer.symbols
    try:
        value = partial(output, *inputs)
        if not isinstance(value, Symbol) and value == 1:
            return assemble(tracer, n_inputs, True)
        if isinstance(value, Symbol) and value.is_bool:
            tracer.select(value, gradient, 0)
        else:
            tracer.call(np.multiply, (gradient, value))
        return assemble(tracer, n_inputs, False)
    except NotAProgram:
        return None


cdef Program assemble(tracer, int n_inputs, bint is_one):
    cdef Program program = Program()
    cdef Step* step
    cdef Kernel kernel
    cdef int i, type_num
    program.kernels = []
    program.is_one = is_one
    program.first_temporary = FIRST_INPUT + n_inputs
    program.n_registers = len(tracer.symbols)
    program.runs_on = [True, True]
    for register, value in tracer.constants.items():
        program.is_constant[register] = True
        program.constants[register] = value
        program.float_constants[register] = value
    for kind, inputs, output in tracer.steps:
        step = &program.steps[program.n_steps]
        program.n_steps += 1
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
            step.inputs[i] = symbol.register
            if OUTPUT <= symbol.register < program.first_temporary:
                program.reads |= 1 << <int>(symbol.register - OUTPUT)
        step.output = output
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
        """Run over the result, contiguous and of the operands' common shape; see `run`."""
        cdef Spec shape = <Spec>operands.shape
        cdef Walk walk
        cdef char* data[N_OPERANDS]
        cdef npy_intp strides[N_OPERANDS]
        cdef int operand_of[N_OPERANDS]
        cdef int register
        if operands.flat:
            return self.run(shape.type_num, shape.size, operands.data, operands.strides,
                            result.data, accumulate)
        if not plan(&walk, shape):
            return 0  # no elements
        join(&walk, result)
        for register in range(N_OPERANDS):
            if operands.present >> register & 1:
                operand_of[register] = walk.n_operands
                join(&walk, <Value>operands.values[register])
        begin(&walk)
        while True:
            for register in range(N_OPERANDS):
                if operands.present >> register & 1:
                    data[register] = walk.data[operand_of[register]]
                    strides[register] = walk.steps[operand_of[register]]
            self.run(shape.type_num, walk.length, data, strides, walk.data[0], accumulate)
            if not walk.n_axes or not proceed(&walk):
                return 0

    cdef int run(self, int type_num, npy_intp n, char** data, const npy_intp* strides,
                 char* result, bint accumulate) except -1:
        """Compute n elements of gradient * partial into contiguous memory, or add them to it.

        `data` and `strides` (0: one element for all) describe the gradient, the output and the
        inputs; entries that the program does not read are ignored. `result` may be the memory of
        one of them if that has stride itemsize.
        """
        cdef char on_stack[MAX_REGISTERS * SMALL_BYTES]
        cdef char* memory = on_stack
        cdef npy_intp itemsize = 8 if type_num == cnp.NPY_DOUBLE else 4
        if n == 0:
            return 0
        if n * itemsize <= SMALL_BYTES:
            run_blocks(self, type_num, n, n, data, strides, result, accumulate, memory)
            return 0
        memory = <char*>malloc(self.n_registers * BLOCK_BYTES)
        if memory == NULL:
            raise MemoryError()
        if n * itemsize < WORTH_THE_GIL:
            run_blocks(self, type_num, n, BLOCK_BYTES // itemsize, data, strides, result,
                       accumulate, memory)
        else:
            with nogil:
                run_blocks(self, type_num, n, BLOCK_BYTES // itemsize, data, strides, result,
                           accumulate, memory)
        free(memory)
        return 0


cdef void run_blocks(Program program, int type_num, npy_intp n, npy_intp block, char** data,
                     const npy_intp* strides, char* result, bint accumulate,
                     char* memory) noexcept nogil:
    cdef int which = 0 if type_num == cnp.NPY_DOUBLE else 1
    cdef npy_intp itemsize = 4 if which else 8
    cdef char* registers[MAX_REGISTERS]
    cdef npy_intp register_strides[MAX_REGISTERS]
    cdef char* arguments[4]
    cdef npy_intp argument_strides[4]
    cdef npy_intp length
    cdef int i, j, register, last = program.n_steps - 1
    cdef Step* step
    for register in range(program.first_temporary):
        registers[register] = data[register]
        register_strides[register] = strides[register]
    for register in range(program.first_temporary, program.n_registers):
        registers[register] = memory
        register_strides[register] = itemsize
        if program.is_constant[register]:
            register_strides[register] = 0
            registers[register] = (<char*>&program.float_constants[register] if which
                                   else <char*>&program.constants[register])
        else:
            memory += block * itemsize
    while True:
        length = min(block, n)
        for i in range(program.n_steps):
            step = &program.steps[i]
            for j in range(step.n_inputs):
                arguments[j] = registers[step.inputs[j]]
                argument_strides[j] = 1 if step.from_bool else register_strides[step.inputs[j]]
            arguments[step.n_inputs] = (result if i == last and not accumulate
                                        else registers[step.output])
            argument_strides[step.n_inputs] = itemsize
            if step.vector != NULL and not which and length > WORTH_VECTORS:
                step.vector(arguments, &length, argument_strides, NULL)
            elif step.loops[which].function != NULL:
                if step.loops[which].out_type == cnp.NPY_BOOL:
                    argument_strides[step.n_inputs] = 1
                step.loops[which].function(arguments, &length, argument_strides,
                                           step.loops[which].data)
            elif step.n_inputs == 1:
                widen(type_num, length, arguments[0], arguments[1])
            else:
                select(type_num, length, arguments, argument_strides)
        if accumulate:
            add_to(type_num, itemsize, length, result, registers[program.steps[last].output])
        n -= length
        if n == 0:
            return
        for register in range(program.first_temporary):
            registers[register] += length * register_strides[register]
        result += length * itemsize


cdef void widen(int type_num, npy_intp n, char* booleans, char* numbers) noexcept nogil:
    cdef npy_intp i
    for i in range(n):
        if type_num == cnp.NPY_DOUBLE:
            (<double*>numbers)[i] = booleans[i]
        else:
            (<float*>numbers)[i] = booleans[i]


cdef void select(int type_num, npy_intp n, char** data, npy_intp* strides) noexcept nogil:
    cdef npy_intp i
    cdef char* x = data[1]
    cdef char* y = data[2]
    for i in range(n):
        if type_num == cnp.NPY_DOUBLE:
            (<double*>data[3])[i] = (<double*>x if data[0][i] else <double*>y)[0]
        else:
            (<float*>data[3])[i] = (<float*>x if data[0][i] else <float*>y)[0]
        x += strides[1]
        y += strides[2]
