cimport cython
from cytape.core.interrupts cimport INTERRUPTED, NO_MEMORY, spend_without_gil
from cytape.core.memory cimport release, resize
from cytape.core.schedules cimport Sweep, begin_sweep, forget_sweep, stored_in
from cytape.graph.passes.rewriting cimport RewrittenGraph, set_spec
from cytape.graph.run.executor cimport Frame
from cytape.graph.run.instructions cimport Runner, Subprogram
from cytape.graph.run.plan_layout cimport SMALL_BYTES, STACKED, Stack, clear_stacks
from cytape.ops.calls.node_store cimport Node
from cytape.ops.kernels.ufunc_loops cimport WORTH_THE_GIL
from cytape.tensor.values.buffer cimport Buffer, new_buffer
from cytape.tensor.values.spec cimport Spec, symbolic_spec
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from numpy cimport npy_intp

from .nested_code cimport (
    Operand, Piece, Port, count_part, emit_program, feed_operand, feed_port, fetch_port, give,
    give_all, is_count, is_predicate, nested_code, new_frame, no_such_row, operand_spec,
    operands_of, row_bytes_of, row_spec, rows_at, run_piece)
from .stack_rows cimport (
    RowsRead, RowsWritten, append, fits, give_back, give_row, list_stored, read_rows)

cdef enum:
    PREALLOCATED = 1 << 26  # first allocation of a stack at most, if the limit is large

cdef struct Variable:
    npy_intp nbytes
    bint is_large, stays
    char* present            # where its value is
    char* next               # ... and the next one will be
    char* told               # the address of the present value that the body has
    int moved, spare         # large: the variables whose memory is the next one of this, or free
    Port into, out, into_condition


cdef bint emit_loop(Code code, int32_t node, Op op) except -1:
    """Emit an instruction for a call of LoopOp, unless a part of it needs Python."""
    cdef Node* row = &code.graph.nodes[node]
    cdef dict attrs = code.graph.attrs[node]
    cdef int n = attrs["n_variables"], n_rows = attrs["n_stacks"], i
    cdef LoopProgram program
    cdef list symbols, specs, row_specs
    cdef npy_intp copied = 0
    cdef int32_t symbol
    if op.stateful or attrs["reverse"] and (
            attrs["condition"] is not None or attrs["ragged_kept"]):
        return False
    symbols = operands_of(code, node)
    if symbols is None or not is_count(code, symbols[0]):
        return False
    specs = [operand_spec(code, symbol) for symbol in symbols]
    row_specs = [row_spec(code, symbols[1 + n + i], i in attrs["ragged_stacks"])
                 for i in range(n_rows)]
    if tuple in map(type, specs[:1 + n]) or False in specs or False in row_specs:
        return False
    program = LoopProgram()
    program.n_inputs, program.n_variables = row.n_inputs, n
    program.variable_specs = specs[1:1 + n]
    program.body = nested_code(
        attrs["body"],
        program.variable_specs + row_specs + [specs[i] for i in attrs["body_inputs"]],
        tuple(range(n)), n + n_rows, n)
    program.attrs = attrs
    if program.body is None or not program.suits(code, row.first_output):
        return False
    if attrs["condition"] is not None:
        program.condition = nested_code(
            attrs["condition"],
            program.variable_specs + [specs[i] for i in attrs["condition_inputs"]], (), n, 0)
        if program.condition is None or not is_predicate(program.condition):
            return False
    program.tell(code, row.first_output)
    program.rows = [rows_at(code, symbol) for symbol in
                    symbols[1 + n:1 + n + n_rows + len(attrs["ragged_stacks"])]]
    program.count_bytes()
    for i in range(row.n_outputs):
        symbol = row.first_output + i
        if i > n:
            code.layout.take_stack(symbol)
        elif not (code.nested and i and program.stays(i - 1)
                  and code.take_over(symbol, symbols[i], 1)):
            code.place_output(symbol)
            copied += code.spec(symbol).nbytes
    return emit_program(code, node, program, symbols, WORTH_THE_GIL + 2 * copied)


@cython.final
cdef class LoopProgram(Subprogram):
    cdef Code body, condition
    cdef int n_inputs, n_variables
    cdef dict attrs
    cdef list variable_specs, output_specs
    cdef list rows             # of stacks, then of the lengths of ragged ones: see `rows_at`

    cdef bint suits(self, Code code, int32_t first_output) except -1:
        """Return whether the body returns the specs of its arguments, and rows of one shape."""
        cdef Code body = self.body
        cdef Spec spec
        cdef int i, n = self.n_variables
        self.output_specs = list(self.variable_specs)
        for i in range(n):
            if body.spec(body.fetches[i]) is not self.variable_specs[i]:
                return False
        for i in range(len(body.fetches) - n):
            spec = body.spec(body.fetches[n + i])
            is_ragged = i in self.attrs["ragged_kept"]
            if spec.shape is None or None in list(spec.shape)[is_ragged:]:
                return False
            if is_ragged and body.layout.places[<int32_t>body.fetches[n + i]].kind != STACKED:
                return False
            self.output_specs.append(
                symbolic_spec((None, *list(spec.shape)[is_ragged:]), spec.dtype))
        if self.attrs.get("snapshots") is not None:
            self.output_specs += [
                symbolic_spec((None, *spec.shape), spec.dtype) for spec in self.variable_specs]
            self.output_specs.append(symbolic_spec((None,), "int64"))
        for i, spec in enumerate(self.output_specs):
            found = code.spec(first_output + 1 + i)
            if found is not spec and found.shape != spec.shape and (
                    found.known or type(code.graph) is not RewrittenGraph):
                return False
        return True

    cdef int tell(self, Code code, int32_t first_output) except -1:
        """Copy the specs of the body's results to the outputs, in a graph made by passes."""
        cdef int i
        for i, spec in enumerate(self.output_specs):
            if code.spec(first_output + 1 + i).shape != spec.shape:
                set_spec(code.graph, first_output + 1 + i, spec)
        return 0

    cdef int count_bytes(self) except -1:
        cdef Code part
        for part in (self.body, self.condition):
            if part is not None:
                count_part(self, part)
                self.effort += part.effort
        for i, spec in enumerate(self.variable_specs):
            if not self.stays(i):
                self.nbytes += 2 * spec.nbytes
                self.peak_bytes += 2 * spec.nbytes
        return 0

    cdef bint stays(self, int i) except -1:
        """Return whether the body leaves a large variable in place: it can be in the output."""
        return self.body.moves[i] == i and self.variable_specs[i].nbytes > SMALL_BYTES

    cdef Runner new_runner(self):
        cdef LoopRunner runner = LoopRunner()
        runner.set_up(self)
        return runner


@cython.final
cdef class LoopRunner(Runner):
    cdef Frame body_frame, condition_frame
    cdef Piece body, condition
    cdef bint has_condition, is_reverse, stores
    cdef char goes_on
    cdef Buffer memory_of_variables
    cdef int n_inputs, n_variables, n_read, n_written, n_same, n_in_condition
    cdef Variable* variables
    cdef RowsRead* read
    cdef RowsWritten* written
    cdef Operand* same                    # of the body, then of the condition
    cdef tuple snapshots                  # arguments of `begin_sweep` after the limit
    cdef Sweep sweep

    def __dealloc__(self):
        forget_sweep(&self.sweep)
        release(self.variables)
        release(self.read)
        release(self.written)
        release(self.same)

    cdef int set_up(self, LoopProgram program) except -1:
        cdef dict attrs = program.attrs
        cdef Frame frame = new_frame(program.body, &self.body)
        cdef int n = program.n_variables, i
        cdef Port goes_on
        self.body_frame = frame
        self.is_reverse = attrs["reverse"]
        self.has_condition = program.condition is not None
        self.n_variables, self.n_read = n, attrs["n_stacks"]
        self.n_written = <int>len(program.body.fetches) - n
        self.n_same = <int>len(attrs["body_inputs"])
        self.n_in_condition = <int>len(attrs["condition_inputs"]) if self.has_condition else 0
        resize(<void**>&self.variables, n + 1, sizeof(Variable))
        resize(<void**>&self.read, self.n_read + 1, sizeof(RowsRead))
        resize(<void**>&self.written, self.n_written + 1, sizeof(RowsWritten))
        resize(<void**>&self.same, self.n_same + self.n_in_condition + 1, sizeof(Operand))
        for i in range(n):
            feed_port(frame, &self.variables[i].into, i)
            fetch_port(frame, &self.variables[i].out, i)
        self.set_up_rows(program)
        for i in range(self.n_same):
            feed_operand(frame, self.same + i, n + self.n_read + i, attrs["body_inputs"][i])
        self.set_up_variables(program)
        self.sweep.next = -1
        self.stores = attrs.get("snapshots") is not None
        if self.stores:
            states, nbytes, residual_bytes = attrs["snapshots"]
            self.snapshots = (
                states, nbytes, sum([spec.nbytes for spec in program.variable_specs]),
                residual_bytes)
        if not self.has_condition:
            return 0
        self.condition_frame = frame = new_frame(program.condition, &self.condition)
        for i in range(n):
            feed_port(frame, &self.variables[i].into_condition, i)
        for i in range(self.n_in_condition):
            feed_operand(frame, self.same + self.n_same + i, n + i, attrs["condition_inputs"][i])
        fetch_port(frame, &goes_on, 0)
        give(&goes_on, &self.goes_on)
        return 0

    cdef int set_up_rows(self, LoopProgram program) except -1:
        cdef dict attrs = program.attrs
        cdef int n = self.n_variables, n_inputs = 1 + n + self.n_read, i
        cdef RowsRead* read
        cdef RowsWritten* written
        cdef Code body = program.body
        cdef Spec spec
        for i in range(self.n_read):
            read = self.read + i
            feed_port(self.body_frame, &read.port, n + i)
            read_rows(read, 1 + n + i, program.rows[i])
        for i, k in enumerate(attrs["ragged_stacks"]):
            read = self.read + <int>k
            read.lengths = n_inputs + i
            read.lengths_are_stack, _, _, read.n_lengths = program.rows[self.n_read + i]
        n_inputs = self.n_inputs = program.n_inputs
        for i in range(self.n_written):
            written = self.written + i
            spec = body.spec(body.fetches[n + i])
            fetch_port(self.body_frame, &written.port, n + i)
            written.operand = n_inputs + 1 + n + i
            written.lengths = -1
            written.row_bytes = row_bytes_of(spec) if written.port.is_stack else spec.nbytes
        for i, k in enumerate(attrs["ragged_kept"]):
            self.written[<int>k].lengths = n_inputs + 1 + n + self.n_written + i
        return 0

    cdef int set_up_variables(self, LoopProgram program) except -1:
        """Allocate buffers of variables: two for large ones, unless the body moves them."""
        cdef list moves = program.body.moves, vacant
        cdef Variable* variable
        cdef Spec spec
        cdef npy_intp size, total = 0
        cdef int i, n = self.n_variables
        cdef char* data
        vacant = [i for i in range(n) if i not in moves]
        for i in range(n):
            variable = self.variables + i
            spec = program.variable_specs[i]
            variable.nbytes = spec.nbytes
            variable.is_large = spec.nbytes > SMALL_BYTES
            variable.moved = moves[i]
            variable.stays = program.stays(i)
            variable.spare = -1
            if variable.is_large and variable.moved < 0:
                variable.spare = next(
                    k for k in vacant if program.variable_specs[k].nbytes == spec.nbytes)
                vacant.remove(variable.spare)
            if not variable.stays:
                total += in_lines(spec.nbytes) * (1 + (variable.spare >= 0))
        self.memory_of_variables = new_buffer(total)
        data = self.memory_of_variables.data
        for i in range(n):
            variable = self.variables + i
            size = in_lines(variable.nbytes)
            if variable.stays:
                continue
            variable.present = variable.next = data
            if variable.spare >= 0:
                variable.next = data + size
                data += size
            data += size
            give(&variable.out, variable.next)
        return 0

    cdef list memory(self):
        frames = [self.body_frame, self.condition_frame]
        return [self.memory_of_variables, *frames[: 1 + self.has_condition]]

    cdef int run(self, char** data) noexcept nogil:
        cdef int64_t count = 0, limit = (<int64_t*>data[0])[0], effort = 0
        cdef int failed = self.begin(data, limit)
        cdef int i
        while not failed and count < limit:
            if self.has_condition:
                for i in range(self.n_variables):
                    give(&self.variables[i].into_condition, self.variables[i].present)
                failed = run_piece(&self.condition)
                if failed or not self.goes_on:
                    break
            if count == self.sweep.next:
                failed = self.store_state(data)
                if failed:
                    break
            failed = self.run_body(data, limit - 1 - count if self.is_reverse else count)
            count += 1
            if not failed:
                failed = spend_without_gil(&effort, self.body.effort)
        if not failed:
            failed = self.finish(data, count)
        for i in range(self.n_read if not self.careful else 0):
            if self.read[i].is_stack and self.read[i].is_last_use:
                clear_stacks(<Stack*>data[self.read[i].operand], 1)
        clear_stacks(self.body.stacks, self.body.n_stacks)
        return failed

    cdef int begin(self, char** data, int64_t limit) noexcept nogil:
        cdef Variable* variable
        cdef RowsWritten* written
        cdef RowsRead* read
        cdef Stack* stack
        cdef bint is_known = not self.has_condition
        cdef int i
        give_all(self.same, self.n_same + self.n_in_condition, data)
        for i in range(self.n_variables):
            variable = self.variables + i
            if variable.stays:
                variable.present = variable.next = data[self.n_inputs + 1 + i]
            if variable.present != data[1 + i]:
                memcpy(variable.present, data[1 + i], variable.nbytes)
            variable.told = NULL
        for i in range(self.n_read):
            read = self.read + i
            read.total = 0
            if self.is_reverse:
                read.total = (<Stack*>data[read.operand]).count if read.is_stack else read.extent
        for i in range(self.n_written):
            written = self.written + i
            stack = <Stack*>data[written.operand]
            stack.count = 0
            if written.port.is_stack:
                stack = <Stack*>data[written.lengths]
                stack.count = 0
                if is_known and not fits(stack, max(limit, 0), 8):
                    return NO_MEMORY
            elif (is_known or limit < PREALLOCATED
                    and limit * written.row_bytes <= PREALLOCATED) and not fits(
                        stack, max(limit, 0), written.row_bytes):
                return NO_MEMORY
        return sweep_begun(self, limit) if self.stores else 0

    cdef int store_state(self, char** data) noexcept nogil:
        cdef int64_t slot = stored_in(&self.sweep)
        cdef int first = self.n_inputs + 1 + self.n_variables + self.n_written, i
        cdef Variable* variable
        cdef Stack* stack
        if slot == -2:
            return NO_MEMORY
        for i in range(self.n_variables if slot >= 0 else 0):
            variable, stack = self.variables + i, <Stack*>data[first + i]
            if not fits(stack, slot + 1, variable.nbytes):
                return NO_MEMORY
            memcpy(stack.data + slot * variable.nbytes, variable.present, variable.nbytes)
        return 0

    cdef int run_body(self, char** data, int64_t place) noexcept nogil:
        cdef Variable* variable
        cdef RowsWritten* written
        cdef Stack* stack
        cdef int i, failed
        for i in range(self.n_variables):
            variable = self.variables + i
            if not variable.is_large or variable.told != variable.present:
                give(&variable.into, variable.present)
                variable.told = variable.present
        for i in range(self.n_read):
            if not give_row(&self.read[i], data, place, self.is_reverse):
                return no_such_row()
        for i in range(self.n_written):
            written = self.written + i
            if not written.port.is_stack:
                stack = <Stack*>data[written.operand]
                if not fits(stack, place + 1, written.row_bytes):
                    return NO_MEMORY
                give(&written.port, stack.data + place * written.row_bytes)
        failed = run_piece(&self.body)
        if failed:
            return failed
        for i in range(self.n_written):
            if self.written[i].port.is_stack:
                if not append(&self.written[i], data, place):
                    return NO_MEMORY
        self.change_places()
        for i in range(self.n_read if self.is_reverse and not self.careful else 0):
            give_back(&self.read[i], data, place)
        return 0

    cdef void change_places(self) noexcept nogil:
        """Make the next values of large variables the present ones."""
        cdef Variable* variables = self.variables
        cdef Variable* variable
        cdef int i
        for i in range(self.n_variables):
            variable = variables + i
            if variable.is_large and variable.moved >= 0:
                variable.next = variables[variable.moved].present
        # The body has the addresses of the present values; from here on `present` changes.
        for i in range(self.n_variables):
            variables[i].present, variables[i].next = variables[i].next, variables[i].present
        for i in range(self.n_variables):
            variable = variables + i
            if variable.spare >= 0:
                variable.next = variables[variable.spare].told
                give(&variable.out, variable.next)

    cdef int finish(self, char** data, int64_t count) noexcept nogil:
        cdef int n_inputs = self.n_inputs
        cdef Stack* stack
        cdef int i
        (<int64_t*>data[n_inputs])[0] = count
        for i in range(self.n_variables):
            if not self.variables[i].stays:
                memcpy(data[n_inputs + 1 + i], self.variables[i].present,
                       self.variables[i].nbytes)
        for i in range(self.n_written):
            stack = <Stack*>data[self.written[i].operand]
            if self.written[i].port.is_stack:
                stack = <Stack*>data[self.written[i].lengths]
            stack.count = count
        if self.stores:
            data += n_inputs + 1 + self.n_variables + self.n_written
            for i in range(self.n_variables):
                (<Stack*>data[i]).count = self.sweep.n_slots
            if not list_stored(&self.sweep, <Stack*>data[self.n_variables]):
                return NO_MEMORY
        return 0


ctypedef int (*quiet_t)(LoopRunner, int64_t) noexcept  # its caller passes the error on


cdef int sweep_begun(LoopRunner runner, int64_t limit) noexcept with gil:
    return INTERRUPTED if (<quiet_t>begin_to_store)(runner, limit) else 0


cdef int begin_to_store(LoopRunner runner, int64_t limit) except -1:
    cdef object n_steps = None if runner.has_condition else max(limit, 0)
    states, nbytes, state_bytes, residual_bytes = runner.snapshots
    return begin_sweep(&runner.sweep, n_steps, states, nbytes, state_bytes, residual_bytes)


cdef inline npy_intp in_lines(npy_intp nbytes) noexcept:
    return (nbytes + 63) & ~<npy_intp>63
