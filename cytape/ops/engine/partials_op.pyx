cimport numpy as cnp
from cpython.ref cimport PyObject
from cytape.core.accumulator cimport tangent_of
from cytape.core.vspace cimport WANTED, OpType
from cytape.ops.kernels.ufunc_loops cimport clear_trouble, trouble
from cytape.ops.kernels.partial_program cimport add_operand
from cytape.ops.kernels.sums cimport add_sum, sum_to
from cytape.ops.kernels.partial_tracer cimport (
    FIRST_INPUT, GRADIENT, MAX_INPUTS, N_OPERANDS, N_PRIMALS, OUTPUT)
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.recording.state cimport accumulating, building, observed, recording
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport (
    BYTES_OBJECT, array_of, is_exclusive, is_one, is_symbolic, new_value, shown_again)
from libc.stdint cimport uint64_t

from cytape.ops.calls.dispatch cimport (
    conform, dense, dense_value, give, input_ref, output_ref, owned, release_objects, restored,
    saved_output_ref, spec_of_ref, spec_pointer)
from cytape.ops.calls.partial_terms cimport conjugate, operand, times, unknown_batch
from cytape.ops.calls.tangents cimport (
    aligned, follow_for, sole_accumulator, spec_of_tangent, tangent_value)

import numpy as np

from cytape.errors import TapeStateError
from cytape.ops.kernels.partial_program import (
    trace, trace_gradient_tangent, trace_tangent, trace_together)

cdef object NOT_TRACED = object()


cdef class PartialsOp(Op):
    def __init__(self, str name, forward, tuple partials):
        self.op_type = OpType(name)
        self.op_type.kind.release = release_objects
        self.op_type.kind.owner = <void*>self
        self.forward = forward
        self.partials = partials
        self.n_inputs = len(partials)
        if self.n_inputs > MAX_INPUTS:
            raise ValueError(f"an elementwise op has at most {MAX_INPUTS} inputs")
        for i, partial in enumerate(partials):
            if partial is not None:
                self.moving |= 1 << i

    cdef int trace_partials(self) except -1:
        cdef Program program
        cdef uint64_t all_inputs = (1 << self.n_inputs) - 1
        cdef int i
        programs = []
        for i, partial in enumerate(self.partials):
            program = None if partial is None or self.together else trace(partial, self.n_inputs)
            programs.append(program)
            if partial is not None:
                self.saves[i].inputs = all_inputs if program is None else program.reads >> 1
                self.saves[i].outputs = 1 if program is None else program.reads & 1
            self.kept.inputs |= self.saves[i].inputs
            self.kept.outputs |= self.saves[i].outputs
        self.kept_for = self.saves
        if self.programs is None:  # again: another thread may have traced it
            self.programs = tuple(programs)
            for i in range(self.n_inputs):
                self.program_of[i] = <PyObject*>self.programs[i]
        return 0

    cdef int backward(self, BackwardCall* call) except -1:
        cdef Value gradient
        cdef bint spare
        if self.programs is None:
            self.trace_partials()
        if observed():
            graph = building()
            if graph is not None and recording() is None and accumulating() is None and (
                    self.backward_in_graph(call, graph)):
                return 0
            accumulator = sole_accumulator()
            if accumulator is not None and self.backward_with_tangents(call, accumulator):
                return 0
            return self.backward_by_partials(call, dense(<object>call.output_gradients[0]), False)
        spare = is_exclusive(<PyObject*>call.output_gradients[0])
        gradient = dense_value(<object>call.output_gradients[0])
        if self.backward_by_programs(call, gradient, spare):
            return 0
        return self.backward_by_partials(call, array_of(gradient), True)

    cdef bint backward_in_graph(self, BackwardCall* call, SymbolicGraph graph) except -1:
        return False

    cdef int32_t append_call(self, SymbolicGraph graph, const int32_t* symbols, int n) except -2:
        return -1

    cdef bint wants(self, BackwardCall* call, int i) except -1:
        """Return whether to compute the gradient of input i.

        If no recorder tracked the input when the op ran, the values that the partial reads were not
        saved. The gradient is None then, or an error if a source needs it.
        """
        cdef int j
        cdef bint saved
        if not call.needed[i] or not self.moving >> i & 1:
            return False
        saved = not self.saves[i].outputs or call.n_refs > 1 + call.n_inputs and (
            type(<object>saved_output_ref(call)) is Value)
        for j in range(call.n_inputs):
            if self.saves[i].inputs >> j & 1 and type(<object>input_ref(call, j)) is not Value:
                saved = False
        if not saved and call.needed[i] == WANTED:
            raise TapeStateError(
                f"a source was watched only after op {self.op_type.name!r} had used it, which "
                "therefore did not save what its gradient needs; watch it before it is used")
        return saved

    cdef bint backward_by_programs(self, BackwardCall* call, Value gradient,
                                   bint spare) except -1:
        """Run the programs, in the gradient's memory if spare; return False if none apply."""
        cdef Spec out = <Spec>output_ref(call, 0)
        cdef int which = 0 if out.type_num == cnp.NPY_DOUBLE else 1
        cdef unsigned int reads = 0, wanted = 0, moving = <unsigned int>self.moving
        cdef PyObject* program
        cdef Operands operands
        cdef void* saved
        cdef bint of_ones
        cdef int i, last = -1
        if out.type_num != cnp.NPY_DOUBLE and out.type_num != cnp.NPY_FLOAT:
            return False
        for i in range(call.n_inputs):
            if not call.needed[i] or not moving >> i & 1:
                continue
            program = self.program_of[i]
            if (<object>program is None or not (<Program>program).runs_on[which]
                    or (<Spec>spec_pointer(call, i)).type_num != out.type_num):
                return False
            reads |= (<Program>program).reads
            wanted |= 1 << i
            last = i
        operands.shape = <void*>out
        operands.flat = True
        operands.present = 0
        if not add_operand(&operands, GRADIENT, gradient):
            return False
        for i in range(1 + call.n_inputs if reads else 0):
            if not reads >> i & 1:
                continue
            if i == 0 and call.n_refs == 1 + call.n_inputs:
                return False
            # The output is the last ref; the inputs follow the output's spec.
            saved = input_ref(call, i - 1) if i else saved_output_ref(call)
            if type(<object>saved) is not Value or not add_operand(
                    &operands, OUTPUT + i, <Value>saved):
                return False
        of_ones = out.nbytes > BYTES_OBJECT and is_one(gradient)
        if wanted & (wanted - 1) and out.nbytes > BYTES_OBJECT:
            wanted = self.give_together(call, gradient, &operands, wanted, spare, of_ones)
        for i in range(last + 1):
            if wanted >> i & 1:
                self.give_by_program(call, gradient, &operands, i, spare and i == last, of_ones)
                if (<Program>self.program_of[i]).is_one:
                    spare = False  # it was passed on
        return True

    cdef unsigned int give_together(self, BackwardCall* call, Value gradient, Operands* operands,
                                    unsigned int wanted, bint spare, bint of_ones) except? 64:
        """Compute the gradients of several inputs in one pass over memory; return the others."""
        cdef Spec out = <Spec>output_ref(call, 0)
        cdef PyObject* results[MAX_INPUTS]
        cdef Program program
        cdef unsigned int place = wanted | of_ones << MAX_INPUTS
        cdef int i, n = 0
        for i in range(call.n_inputs):
            if wanted >> i & 1 and (
                    (<Program>self.programs[i]).is_one or call.arrived[i] != NULL
                    or spec_of_ref(<object>input_ref(call, i)) is not out
                    or i and input_ref(call, i) == input_ref(call, i - 1) and (
                        type(<object>input_ref(call, i)) is Value)):
                return wanted
        if self.shared_programs is None:
            self.shared_programs = [NOT_TRACED] * (2 << MAX_INPUTS)
        if self.shared_programs[place] is NOT_TRACED:
            self.shared_programs[place] = trace_together(self.partials, wanted, of_ones)
        program = self.shared_programs[place]
        if program is None:
            return wanted
        for i in range(call.n_inputs):
            if not wanted >> i & 1:
                continue
            n += 1
            if spare and n == program.n_results:
                call.input_gradients[i] = call.output_gradients[0]
                call.output_gradients[0] = NULL
            else:
                call.input_gradients[i] = owned(new_value(out))
            results[n - 1] = <PyObject*>call.input_gradients[i]
        program.run_together(operands, results, False)
        return 0

    cdef PyObject* program_of_ones(self, int i, Operands* operands, void* x) except NULL:
        """Return the program for a gradient of ones; the general one where operands repeat."""
        cdef PyObject* program
        if self.programs_of_ones is None:
            self.programs_of_ones = [NOT_TRACED] * MAX_INPUTS
        if self.programs_of_ones[i] is NOT_TRACED:
            traced = trace(self.partials[i], self.n_inputs, True)
            if self.programs_of_ones[i] is NOT_TRACED:  # again, as in trace_partials
                self.programs_of_ones[i] = traced
        program = <PyObject*>self.programs_of_ones[i]
        if <object>program is None or (<Program>program).copied >= 0 and (
                operands.values[(<Program>program).copied] == x
                or (<Value>operands.values[(<Program>program).copied]).spec
                is not <Spec>operands.shape):
            return self.program_of[i]
        return program

    cdef int give_by_program(self, BackwardCall* call, Value gradient, Operands* operands, int i,
                             bint spare, bint of_ones) except -1:
        """Compute the gradient of input i, in memory of another gradient if possible."""
        cdef PyObject* program = self.program_of[i]  # all borrowed: this runs per op
        cdef void* out = output_ref(call, 0)
        cdef void* spec = spec_pointer(call, i)
        cdef void* arrived = arrived_for(call, i)
        cdef void* copied = NULL
        cdef Value terms
        if arrived != NULL and (not is_exclusive(<PyObject*>arrived)
                                or <void*>(<Value>arrived).spec != spec):
            arrived = NULL
        if of_ones and not (<Program>program).is_one:
            program = self.program_of_ones(i, operands, input_ref(call, i))
        if (<Program>program).copied >= 0:
            copied = operands.values[(<Program>program).copied]
        if spec != out:
            if copied != NULL:
                terms = <Value>copied
            else:
                terms = new_value(<Spec>out)
                (<Program>program).run_on(operands, terms, False)
            # Not added to the gradient that arrived: the order of additions would change.
            call.input_gradients[i] = owned(sum_to(terms, <Spec>spec))
        elif arrived != NULL:
            if copied != NULL:
                add_sum(<Value>arrived, <Value>copied)
            else:
                (<Program>program).run_on(operands, <Value>arrived, True)
        elif copied != NULL:
            call.input_gradients[i] = owned(
                gradient if (<Program>program).is_one else shown_again(<Value>copied))
        elif (<Spec>out).nbytes > BYTES_OBJECT and (<Program>program).repeats(operands):
            call.input_gradients[i] = owned((<Program>program).repeated(operands))
        elif spare:
            (<Program>program).run_on(operands, gradient, False)
            call.input_gradients[i] = call.output_gradients[0]
            call.output_gradients[0] = NULL
        else:
            terms = new_value(<Spec>out)
            (<Program>program).run_on(operands, terms, False)
            call.input_gradients[i] = owned(terms)
        return 0

    cdef int backward_by_partials(self, BackwardCall* call, gradient, bint plain) except -1:
        """Run the backward pass on whole arrays or recorded tensors, for every dtype."""
        cdef int i
        output = None
        if call.n_refs > 1 + call.n_inputs:
            output = restored(<object>saved_output_ref(call), plain)
        inputs = [operand(<object>input_ref(call, i), <Spec>output_ref(call, 0), plain)
                  for i in range(call.n_inputs)]
        wanted = [i for i in range(call.n_inputs) if self.wants(call, i)]
        slopes = plain and len(wanted) > 1 and self.together and self.together(output, *inputs)
        for i in wanted:
            product = times(gradient, conjugate(
                slopes[i] if slopes else self.partials[i](output, *inputs)))
            give(self, call, i, conform.sum_to(product, spec_of_ref(<object>input_ref(call, i))))
        return 0

    # ---- forward mode

    cdef int follow(self, Value out, PyObject** inputs, int n) except -1:
        """Compute the output's tangent for each accumulator of this thread that tracks an input."""
        cdef list followers = accumulating()
        cdef TangentRecorder accumulator
        cdef void* tangents[MAX_INPUTS]
        cdef unsigned int present
        cdef int i
        if followers is None:
            return 0
        for accumulator in followers:
            present = 0
            for i in range(n):
                tangents[i] = NULL
                if self.moving >> i & 1 and (<Value>inputs[i]).spec.trainable:
                    tangents[i] = tangent_of(accumulator, (<Value>inputs[i]).id)
                    if tangents[i] != NULL:
                        present |= 1 << i
            if present and not self.follow_by_program(accumulator, out, inputs, tangents, n,
                                                      present):
                follow_for(accumulator, self, [<object>inputs[i] for i in range(n)], [out], {})
        return 0

    cdef bint follow_by_program(self, TangentRecorder accumulator, Value out, PyObject** inputs,
                                void** tangents, int n, unsigned int present) except -1:
        """Run the program of the output's tangent; False, with no effect, if none applies."""
        cdef Spec spec = out.spec
        cdef Program program
        cdef Operands operands
        cdef Value tangent
        cdef list aligned_ones  # operands hold no references
        cdef int i
        if is_symbolic(out) or not accumulator.outermost or accumulator.by_transposition or (
                accumulator.rule is not None) or (
                spec.type_num != cnp.NPY_DOUBLE and spec.type_num != cnp.NPY_FLOAT):
            return False
        program = self.tangent_program(present)
        if program is None or not program.runs_on[0 if spec.type_num == cnp.NPY_DOUBLE else 1]:
            return False
        for i in range(n):
            if present >> i & 1 and type(<object>tangents[i]) is Tensor:
                tangents[i] = <void*>(<Tensor>tangents[i]).held
        if accumulator.use_batch:
            aligned_ones = [aligned(<Value>tangents[i], out.spec.ndim) if present >> i & 1 else None
                            for i in range(n)]
            for i in range(n):
                if present >> i & 1:
                    tangents[i] = <void*><PyObject*>aligned_ones[i]
                    spec = spec_of_tangent(out.spec, (<Value>tangents[i]).spec.dims[0])
        operands.shape = <void*>spec
        operands.flat = True
        operands.present = 0
        if program.operands >> OUTPUT & 1 and not add_operand(&operands, OUTPUT, out):
            return False
        for i in range(n):
            if program.operands >> (FIRST_INPUT + i) & 1 and not add_operand(
                    &operands, FIRST_INPUT + i, <Value>inputs[i]):
                return False
            if present >> i & 1 and not add_operand(
                    &operands, N_PRIMALS + FIRST_INPUT + i, <Value>tangents[i]):
                return False
        if program.copied >= 0:
            if (<Value>operands.values[program.copied]).spec is not spec:
                return False
            tangent = <Value>operands.values[program.copied]
        else:
            tangent = new_value(spec)
            program.run_on(&operands, tangent, False)
            if trouble():
                clear_trouble()
        return accumulator.store(out.id, owned(tangent)) == 0

    cdef Program tangent_program(self, unsigned int present):
        """Return the program of the output's tangent; None if kernels cannot compute it.

        present: the inputs with a tangent, one bit each."""
        if self.tangent_programs is None:
            self.tangent_programs = [NOT_TRACED] * (1 << MAX_INPUTS)
        if self.tangent_programs[present] is NOT_TRACED:
            self.tangent_programs[present] = trace_tangent(self.partials, present)
        return self.tangent_programs[present]

    cdef object tangents(self, list inputs, list outputs, dict attrs, list tangents, bint plain,
                         bint batched):
        cdef Value out = outputs[0]
        shape = out.spec.shape if out.spec.known else out.spec.unknown
        output = restored(out, plain)
        inputs = [operand(value, out.spec, plain) for value in inputs]
        total = None
        for partial, tangent in zip(self.partials, tangents):
            if tangent is None or partial is None:
                continue
            if batched:
                directions = tangent.shape[:1]
                if not out.spec.known or directions[0] is None:
                    return unknown_batch(self.partials, output, inputs, out, tangents)
                shape = directions + out.spec.shape
                tangent = tangent.reshape(
                    directions + (1,) * (len(shape) - tangent.ndim) + tangent.shape[1:])
            term = times(tangent, partial(output, *inputs))
            total = term if total is None else total + term
        if total is None or (out.spec.known and total.shape == shape):
            return total
        return np.broadcast_to(total, shape) if plain else conform.broadcast_to(total, shape)

    cdef bint takes_batches(self) noexcept:
        return True

    cdef bint backward_with_tangents(self, BackwardCall* call,
                                     TangentRecorder accumulator) except -1:
        """Run programs of gradients and their tangents; False, with nothing done, if none apply."""
        cdef Spec out = <Spec>output_ref(call, 0)
        cdef int which = 0 if out.type_num == cnp.NPY_DOUBLE else 1
        cdef unsigned int present = 0, missing
        cdef Operands operands
        cdef Program program, tangents
        cdef Value gradient, value
        cdef void* values[N_OPERANDS]
        cdef PyObject* programs_of_tangents[MAX_INPUTS]
        cdef int i, register
        if out.type_num != cnp.NPY_DOUBLE and out.type_num != cnp.NPY_FLOAT:
            return False
        gradient = dense_value(<object>call.output_gradients[0])
        for register in range(GRADIENT, FIRST_INPUT + call.n_inputs):
            saved = gradient
            if register == OUTPUT:
                saved = None if call.n_refs == 1 + call.n_inputs else (
                    <object>saved_output_ref(call))
            elif register >= FIRST_INPUT:
                saved = <object>input_ref(call, register - FIRST_INPUT)
            values[register] = values[N_PRIMALS + register] = NULL
            if type(saved) is Value:
                values[register] = <void*><PyObject*>saved
                value = tangent_value(accumulator, saved)
                if value is not None:
                    values[N_PRIMALS + register] = <void*><PyObject*>value
                    present |= 1 << register
        operands.shape = <void*>out
        operands.flat = True
        operands.present = 0
        for i in range(call.n_inputs):
            if not call.needed[i] or not self.moving >> i & 1:
                continue
            program = <Program>self.programs[i]
            if program is None or not program.runs_on[which] or (
                    spec_of_ref(<object>input_ref(call, i)).type_num != out.type_num):
                return False
            tangents = self.gradient_tangent_program(i, present & program.operands)
            if tangents is None or not tangents.runs_on[which]:
                return False
            programs_of_tangents[i] = <PyObject*>tangents
            missing = (program.operands | tangents.operands) & ~operands.present
            register = 0
            while missing >> register:
                if missing >> register & 1 and (values[register] == NULL or not add_operand(
                        &operands, register, <Value>values[register])):
                    return False
                register += 1
        for i in range(call.n_inputs):
            if call.needed[i] and self.moving >> i & 1:
                self.give_with_tangent(call, accumulator, &operands, i,
                                       <Program>programs_of_tangents[i])
        return True

    cdef Program gradient_tangent_program(self, int i, unsigned int present):
        """Return the program of the tangent of input i's gradient; None as above.

        present: the registers with a tangent, one bit each."""
        cdef int place = i << N_PRIMALS | present
        if self.gradient_tangent_programs is None:
            self.gradient_tangent_programs = [NOT_TRACED] * (MAX_INPUTS << N_PRIMALS)
        if self.gradient_tangent_programs[place] is NOT_TRACED:
            self.gradient_tangent_programs[place] = trace_gradient_tangent(
                self.partials[i], self.n_inputs, present)
        return self.gradient_tangent_programs[place]

    cdef int give_with_tangent(self, BackwardCall* call, TangentRecorder accumulator,
                               Operands* operands, int i, Program tangents) except -1:
        cdef Program program = <Program>self.programs[i]
        cdef Spec spec = spec_of_ref(<object>input_ref(call, i))
        cdef Value gradient = computed(program, operands, spec), tangent
        call.input_gradients[i] = owned(gradient)
        if (tangents.n_steps or tangents.copied >= 0) and tangent_of(
                accumulator, gradient.id) == NULL:
            tangent = computed(tangents, operands, spec)
            accumulator.store(gradient.id, owned(tangent))
        return 0


cdef Value computed(Program program, Operands* operands, Spec spec):
    """Return the result of a program, summed over the axes that were broadcast."""
    cdef Value value
    if program.copied >= 0 and (
            (<Value>operands.values[program.copied]).spec is <Spec>operands.shape):
        value = <Value>operands.values[program.copied]
    else:
        value = new_value(<Spec>operands.shape)
        program.run_on(operands, value, False)
    return value if value.spec is spec else sum_to(value, spec)


cdef void* arrived_for(BackwardCall* call, int i) noexcept:
    """Return the gradient that the one of input i may be added to, NULL if none.

    If one tensor is two inputs, its gradients of this call are summed first, as they are when
    none has arrived yet.
    """
    cdef int j
    for j in range(call.n_inputs):
        if j != i and input_ref(call, j) == input_ref(call, i) and (
                type(<object>input_ref(call, i)) is Value):
            return call.input_gradients[j] if j < i else NULL
    return call.arrived[i]
