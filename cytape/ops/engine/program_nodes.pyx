cimport numpy as cnp
from cytape.ops.kernels.partial_program cimport Program, Step
from cytape.ops.kernels.partial_tracer cimport (
    GRADIENT, MAX_INPUTS, MAX_REGISTERS, N_OPERANDS, OUTPUT)
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.values.value cimport Value

from cytape.ops.calls.dispatch cimport (
    conform, input_ref, output_ref, owned, saved_output_ref, spec_of_ref)
from cytape.ops.calls.symbolic cimport append1, number, own_symbol

op_by_ufunc = {}


cdef bint append_gradients(PartialsOp op, BackwardCall* call, SymbolicGraph graph) except -1:
    cdef int32_t registers[MAX_REGISTERS]
    cdef Program program
    cdef Spec spec
    cdef int32_t results[MAX_INPUTS]
    cdef int i
    if (<Spec>output_ref(call, 0)).type_num != cnp.NPY_DOUBLE and (
            (<Spec>output_ref(call, 0)).type_num != cnp.NPY_FLOAT):
        return False
    for i in range(call.n_inputs):
        program = op.programs[i]
        spec = spec_of_ref(<object>input_ref(call, i))
        if type(<object>input_ref(call, i)) is Value and (
                spec.type_num != (<Spec>output_ref(call, 0)).type_num):
            return False
        if call.needed[i] and op.moving >> i & 1 and (
                program is None or not spec.known or not program_in_graph(program)
                or spec.type_num != (<Spec>output_ref(call, 0)).type_num):
            return False
    registers[GRADIENT] = own_symbol(graph, <object>call.output_gradients[0])
    if registers[GRADIENT] < 0:
        return False
    for i in range(1 + call.n_inputs):
        registers[OUTPUT + i] = -1
        if i or call.n_refs > 1 + call.n_inputs:
            registers[OUTPUT + i] = own_symbol(
                graph, <object>(input_ref(call, i - 1) if i else saved_output_ref(call)))
    for i in range(call.n_inputs):
        results[i] = -1
        if op.wants(call, i):
            results[i] = append_program(graph, op.programs[i], registers,
                                        <Spec>graph.symbols[registers[GRADIENT]].spec)
            if results[i] < 0:
                return False
    for i in range(call.n_inputs):
        if results[i] < 0:
            continue
        spec = spec_of_ref(<object>input_ref(call, i))
        if <Spec>graph.symbols[results[i]].spec is not spec:
            results[i] = append1(
                graph, conform.sum_to_op, {"shape": spec.shape}, results[i], spec)
        call.input_gradients[i] = owned(graph.value_at(results[i]))
    return True


cdef bint program_in_graph(Program program) except -1:
    """Return whether every step of a program is a call of an op that graphs can have."""
    if program.ops is None:
        program.ops = [op_by_ufunc.get(ufunc) for ufunc in program.ufuncs]
        program.in_graph = None not in program.ops
    return program.in_graph


cdef int32_t append_program(SymbolicGraph graph, Program program, int32_t* registers,
                            Spec like) except -2:
    """Add the steps of a program to a graph; return the symbol of the result, or -1."""
    cdef int32_t symbols[MAX_INPUTS]
    cdef Step* step
    cdef int i, j, register
    if program.n_steps == 0:
        return registers[program.copied] if program.copied >= 0 else -1
    for register in range(N_OPERANDS, program.n_registers):
        if program.is_constant[register]:
            registers[register] = number(graph, program.constants[register], like)
    for i in range(program.n_steps):
        step = &program.steps[i]
        for j in range(step.n_inputs):
            symbols[j] = registers[step.inputs[j]]
            if symbols[j] < 0:
                return -1
        registers[step.output] = (<PartialsOp>program.ops[i]).append_call(
            graph, symbols, step.n_inputs)
        if registers[step.output] < 0:
            return -1
    return registers[program.steps[program.n_steps - 1].output]
