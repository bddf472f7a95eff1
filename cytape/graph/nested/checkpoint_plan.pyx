cimport cython
from cpython.exc cimport PyErr_SetString
from cytape.core.interrupts cimport INTERRUPTED, NO_MEMORY, spend_without_gil
from cytape.core.memory cimport release, resize
from cytape.core.schedules cimport (
    ADVANCE, DONE, OUT_OF_MEMORY, RESTORE, REVERSE, STORE, Reversal, begin_reversal,
    end_reversal, next_action, store)
from cytape.graph.run.emitters cimport emit_by
from cytape.graph.run.plan_code cimport Code
from cytape.graph.run.executor cimport Frame
from cytape.graph.run.instructions cimport Runner, Subprogram
from cytape.graph.run.plan_layout cimport Stack, clear_stacks
from cytape.ops.calls.dispatch cimport Lowering, Op
from cytape.ops.engine.general_op cimport GeneralOp
from cytape.ops.calls.node_store cimport Node
from cytape.ops.kernels.ufunc_loops cimport WORTH_THE_GIL
from cytape.tensor.values.buffer cimport Buffer, new_buffer
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.string cimport memcpy
from numpy cimport npy_intp

from .nested_code cimport (
    Operand, Piece, Port, count_part, emit_program, feed_operand, feed_port, fetch_port, give,
    give_all, is_count, nested_code, new_frame, no_such_row, operand_spec, operands_of, rows_at,
    rows_of, run_piece)
from .stack_rows cimport RowsRead, fits, give_rows, read_rows, rows_of_stack

from cytape.core.schedules import blocks_and_snapshots, snapshots_beside
from cytape.errors import GraphError

cdef object graph_error = GraphError

cdef enum:
    ALIGNMENT = 16

cdef struct Carried:         # a loop variable, or a gradient
    npy_intp offset, nbytes  # in its record
    char* present            # of a loop variable: in a record, or a snapshot
    Stack kept               # its snapshots
    Port into, into_reverse, out


cdef class CheckpointedOp(GeneralOp):
    """The backward pass of a loop with few states kept.

    The inputs are the number of iterations, the start values of the loop variables, the gradients
    of their last values and initial sums; then loop-invariant inputs and stacks. The outputs are
    the final gradients and sums.

    Attributes of a call: `advance` and `reverse`, each a ConcreteFunction from a number of
    iterations and loop variables, for the latter also gradients and sums, to their next values;
    `n_variables` and `n_gradients`; `advance_inputs` and `reverse_inputs`, the positions of the
    other inputs of each; `stacks`, the positions of stacks; `snapshots`, the positions of the
    snapshots' stacks and of their index, if there are any; `residual_bytes`, the bytes that an
    iteration saves; `checkpoints`, the limits on the number of states and on their bytes.
    """

    def __cinit__(self, *_, **__):
        self.lowering = Lowering.CHECKPOINTED_LOOP


cdef bint emit_checkpointed(Code code, int32_t node, Op op) except -1:
    """Emit an instruction for a call of CheckpointedOp, unless a part of it needs Python."""
    cdef Node* row = &code.graph.nodes[node]
    cdef dict attrs = code.graph.attrs[node]
    cdef int n = attrs["n_variables"], m = attrs["n_gradients"], i
    cdef CheckpointProgram program
    cdef list symbols = operands_of(code, node), specs
    cdef int32_t symbol
    if symbols is None or not is_count(code, symbols[0]):
        return False
    specs = [operand_spec(code, symbol) for symbol in symbols]
    for i in attrs["stacks"]:
        specs[i] = rows_of(code, symbols[i])
    if tuple in map(type, specs[:1 + n + m]) or False in specs:
        return False
    program = CheckpointProgram()
    program.attrs, program.n_inputs = attrs, row.n_inputs
    program.carried_specs = specs[1:1 + n + m]
    program.advance = nested_code(
        attrs["advance"], specs[:1 + n] + [specs[i] for i in attrs["advance_inputs"]], (), 1 + n,
        0)
    program.reverse = nested_code(
        attrs["reverse"], specs[:1 + n + m] + [specs[i] for i in attrs["reverse_inputs"]],
        (), 1 + n + m, 0)
    if program.advance is None or program.reverse is None or not program.suits(
            code, row.first_output):
        return False
    if not program.note_rows(code, symbols):
        return False
    program.count_bytes()
    for symbol in range(row.first_output, row.first_output + row.n_outputs):
        code.place_output(symbol)
    return emit_program(code, node, program, symbols, WORTH_THE_GIL)


emit_by(Lowering.CHECKPOINTED_LOOP, emit_checkpointed)


@cython.final
cdef class CheckpointProgram(Subprogram):
    cdef Code advance, reverse
    cdef dict attrs
    cdef int n_inputs
    cdef list carried_specs     # of loop variables, then of gradients
    cdef dict rows              # of stacks and snapshots, by operand: see `rows_at`

    cdef bint suits(self, Code code, int32_t first_output) except -1:
        """Return whether the bodies return the specs of their arguments."""
        cdef int n = self.attrs["n_variables"], i
        for i in range(n):
            if self.advance.spec(self.advance.fetches[i]) is not self.carried_specs[i]:
                return False
        for i in range(len(self.carried_specs) - n):
            spec = self.carried_specs[n + i]
            if (self.reverse.spec(self.reverse.fetches[i]) is not spec
                    or code.spec(first_output + i) is not spec):
                return False
        return True

    cdef bint note_rows(self, Code code, list symbols) except -1:
        """Note where rows are; False: the snapshots are not of the loop variables."""
        cdef tuple positions = self.attrs.get("snapshots", ())
        cdef list specs = [*self.carried_specs[:self.attrs["n_variables"]], Spec.of((), "int64")]
        if len(positions) not in (0, len(specs)):
            return False
        for i, spec in zip(positions, specs):
            if rows_of(code, symbols[i]) != (spec,):
                return False
        self.rows = {i: rows_at(code, symbols[i]) for i in {*positions, *self.attrs["stacks"]}}
        return True

    cdef int count_bytes(self) except -1:
        cdef Code part
        for part in (self.advance, self.reverse):
            count_part(self, part)
        for spec in self.carried_specs:
            self.nbytes += 2 * in_records(spec.nbytes)
            self.peak_bytes += 2 * in_records(spec.nbytes)
        return 0

    cdef Runner new_runner(self):
        cdef CheckpointRunner runner = CheckpointRunner()
        runner.set_up(self)
        return runner


cdef inline npy_intp in_records(npy_intp nbytes) noexcept:
    return (nbytes + ALIGNMENT - 1) & ~<npy_intp>(ALIGNMENT - 1)


@cython.final
cdef class CheckpointRunner(Runner):
    cdef CheckpointProgram program
    cdef Frame advance_frame, reverse_frame
    cdef Piece advance, reverse
    cdef Port advance_limit, reverse_limit
    cdef int n_variables, n_gradients, n_same, n_read, n_read_forward
    cdef Carried* carried       # loop variables, then gradients
    cdef Operand* same
    cdef RowsRead* read         # by the function that goes forward, then by the other
    cdef RowsRead* snapshots    # ... and their index; NULL: there are none
    cdef int64_t* index         # the contents of that; NULL: only the first state
    cdef int64_t n_first, n_rows    # states it lists, and rows in the stacks
    cdef npy_intp state_bytes, gradient_bytes
    cdef Buffer both_records    # ... of each
    cdef char* records[2]
    cdef char* gradients[2]
    cdef Reversal schedule
    cdef int64_t n_steps, n_blocks, block, n_snapshots

    def __dealloc__(self):
        end_reversal(&self.schedule)
        release(self.carried)
        release(self.same)
        release(self.read)
        release(self.snapshots)

    cdef int set_up(self, CheckpointProgram program) except -1:
        cdef int n = program.attrs["n_variables"], m = program.attrs["n_gradients"], i
        cdef Carried* carried
        cdef char* data
        self.program = program
        self.n_variables, self.n_gradients = n, m
        self.advance_frame = new_frame(program.advance, &self.advance)
        self.reverse_frame = new_frame(program.reverse, &self.reverse)
        feed_port(self.advance_frame, &self.advance_limit, 0)
        feed_port(self.reverse_frame, &self.reverse_limit, 0)
        resize(<void**>&self.carried, n + m + 1, sizeof(Carried))
        for i in range(n + m):
            carried = self.carried + i
            carried.nbytes = program.carried_specs[i].nbytes
            carried.kept.data, carried.kept.capacity = NULL, 0
            feed_port(self.reverse_frame, &carried.into_reverse, 1 + i)
            if i < n:
                feed_port(self.advance_frame, &carried.into, 1 + i)
                fetch_port(self.advance_frame, &carried.out, i)
                carried.offset = self.state_bytes
                self.state_bytes += in_records(carried.nbytes)
            else:
                fetch_port(self.reverse_frame, &carried.out, i - n)
                carried.offset = self.gradient_bytes
                self.gradient_bytes += in_records(carried.nbytes)
        self.both_records = new_buffer(2 * (self.state_bytes + self.gradient_bytes))
        data = self.both_records.data
        for i in range(2):
            self.records[i] = data + i * self.state_bytes
            self.gradients[i] = data + 2 * self.state_bytes + i * self.gradient_bytes
        advance_inputs, reverse_inputs, snapshots = (
            program.attrs["advance_inputs"], program.attrs["reverse_inputs"],
            program.attrs.get("snapshots", ()))
        if snapshots:
            resize(<void**>&self.snapshots, n + 1, sizeof(RowsRead))
        for i, operand in enumerate(snapshots):
            read_rows(self.snapshots + i, operand, program.rows[operand])
            self.snapshots[i].is_last_use &= snapshots.count(operand) == 1 and (
                operand not in advance_inputs and operand not in reverse_inputs)
        n_given = len(advance_inputs) + len(reverse_inputs)
        resize(<void**>&self.same, n_given + 1, sizeof(Operand))
        resize(<void**>&self.read, n_given + 1, sizeof(RowsRead))
        self.set_up_given(self.advance_frame, 1 + n, advance_inputs)
        self.n_read_forward = self.n_read
        self.set_up_given(self.reverse_frame, 1 + n + m, reverse_inputs)
        return 0

    cdef int set_up_given(self, Frame frame, int first, tuple operands) except -1:
        cdef int k
        for k, operand in enumerate(operands, first):
            if operand in self.program.attrs["stacks"]:
                feed_port(frame, &self.read[self.n_read].port, k)
                read_rows(self.read + self.n_read, operand, self.program.rows[operand])
                self.n_read += 1
            else:
                feed_operand(frame, self.same + self.n_same, k, operand)
                self.n_same += 1
        return 0

    cdef list memory(self):
        return [self.both_records, self.advance_frame, self.reverse_frame]

    cdef int run(self, char** data) noexcept nogil:
        cdef int failed, i
        self.n_steps = max((<int64_t*>data[0])[0], 0)
        failed = self.find_snapshots(data)
        if failed or divided(self):
            return INTERRUPTED
        begin_reversal(&self.schedule, self.n_blocks, self.n_snapshots)
        failed = self.take_snapshots(data)
        if not failed:
            failed = self.follow(data)
        end_reversal(&self.schedule)
        for i in range(self.n_variables):
            clear_stacks(&self.carried[i].kept, 1)
        clear_stacks(self.advance.stacks, self.advance.n_stacks)
        clear_stacks(self.reverse.stacks, self.reverse.n_stacks)
        return failed

    cdef int find_snapshots(self, char** data) noexcept nogil:
        """Read the index of stored states; INTERRUPTED if it does not fit the loop."""
        cdef npy_intp i, n, n_rows
        cdef int64_t* index
        self.index, self.n_first, self.n_rows = NULL, 1, 1
        if self.snapshots == NULL or self.n_steps <= 0:
            return 0
        index = <int64_t*>rows_of_stack(self.snapshots + self.n_variables, data, &n)
        self.n_rows = INT64_MAX
        for i in range(self.n_variables):
            rows_of_stack(self.snapshots + i, data, &n_rows)
            self.n_rows = min(self.n_rows, n_rows)
        if n < 3 or n % 2 == 0 or index[0] < 1 or index[1] != 0:
            return no_such_snapshots()
        for i in range(1, n, 2):
            if (index[i] % index[0] or not 0 <= index[i] < self.n_steps
                    or i > 1 and index[i] <= index[i - 2]
                    or not 0 <= index[i + 1] < self.n_rows):
                return no_such_snapshots()
        self.index, self.n_first = index, n // 2
        return 0

    cdef int64_t row_of(self, int64_t k) noexcept nogil:
        """Return the address of the k-th snapshot: an initial one, or a further one."""
        if k >= self.n_first:
            return self.n_rows + k - self.n_first
        return 0 if self.index == NULL else self.index[2 + 2 * k]

    cdef int take_snapshots(self, char** data) noexcept nogil:
        """Take over the stored snapshots; without any, the first state."""
        cdef Carried* carried
        cdef Stack* stack
        cdef char* rows
        cdef npy_intp i, n
        for i in range(self.n_variables):
            carried = self.carried + i
            rows, n = data[1 + i], 1
            if self.index != NULL:
                rows = rows_of_stack(self.snapshots + i, data, &n)
                stack = <Stack*>data[self.snapshots[i].operand]
                if (self.snapshots[i].is_stack and self.snapshots[i].is_last_use
                        and stack.capacity and not self.careful):
                    carried.kept = stack[0]
                    stack.data, stack.count, stack.capacity = NULL, 0, 0
                    continue
            if not fits(&carried.kept, n, carried.nbytes):
                return NO_MEMORY
            memcpy(carried.kept.data, rows, n * carried.nbytes)
        for i in range(self.n_first):
            n = 0 if self.index == NULL else self.index[1 + 2 * i] // self.block
            if not store(&self.schedule, n):
                return NO_MEMORY
        return 0

    cdef int follow(self, char** data) noexcept nogil:
        """Run the actions of the schedule."""
        cdef int64_t effort = 0, row
        cdef int i, kind, failed = 0
        cdef int turn = 0, turn_of_gradients = 0
        cdef Reversal* schedule = &self.schedule
        cdef Carried* carried
        for i in range(self.n_variables, self.n_variables + self.n_gradients):
            carried = self.carried + i
            memcpy(self.gradients[0] + carried.offset, data[1 + i], carried.nbytes)
        give_all(self.same, self.n_same, data)
        while not failed:
            kind = next_action(schedule)
            row = self.row_of(schedule.n_kept - 1)
            if kind == RESTORE:
                for i in range(self.n_variables):
                    carried = self.carried + i
                    carried.present = carried.kept.data + row * carried.nbytes
            elif kind == STORE:
                for i in range(self.n_variables):
                    carried = self.carried + i
                    if not fits(&carried.kept, row + 1, carried.nbytes):
                        return NO_MEMORY
                    memcpy(carried.kept.data + row * carried.nbytes, carried.present,
                           carried.nbytes)
            elif kind == ADVANCE:
                failed = self.go_forward(data, self.records[turn])
                turn = 1 - turn
                if not failed:
                    failed = spend_without_gil(&effort, self.advance.effort)
            elif kind == REVERSE:
                failed = self.go_back(data, turn_of_gradients)
                turn_of_gradients = 1 - turn_of_gradients
                if not failed:
                    failed = spend_without_gil(&effort, self.reverse.effort)
            elif kind == OUT_OF_MEMORY:
                return NO_MEMORY
            elif kind == DONE:
                break
        if failed:
            return failed
        for i in range(self.n_gradients):
            carried = self.carried + self.n_variables + i
            memcpy(data[self.program.n_inputs + i],
                   self.gradients[turn_of_gradients] + carried.offset, carried.nbytes)
        return 0

    cdef int go_forward(self, char** data, char* next) noexcept nogil:
        cdef int64_t first = self.schedule.step * self.block
        cdef int64_t n = min(self.schedule.end * self.block, self.n_steps) - first
        cdef Carried* carried
        cdef int i
        give(&self.advance_limit, <char*>&n)
        for i in range(self.n_variables):
            carried = self.carried + i
            give(&carried.into, carried.present)
            give(&carried.out, next + carried.offset)
            carried.present = next + carried.offset
        for i in range(self.n_read_forward):
            if not give_rows(&self.read[i], data, first, n):
                return no_such_row()
        return run_piece(&self.advance)

    cdef int go_back(self, char** data, int turn) noexcept nogil:
        cdef int64_t first = self.schedule.step * self.block
        cdef int64_t n = min(first + self.block, self.n_steps) - first
        cdef Carried* carried
        cdef int i
        give(&self.reverse_limit, <char*>&n)
        for i in range(self.n_variables):
            carried = self.carried + i
            give(&carried.into_reverse, carried.present)
        for i in range(self.n_variables, self.n_variables + self.n_gradients):
            carried = self.carried + i
            give(&carried.into_reverse, self.gradients[turn] + carried.offset)
            give(&carried.out, self.gradients[1 - turn] + carried.offset)
        for i in range(self.n_read_forward, self.n_read):
            if not give_rows(&self.read[i], data, first, n):
                return no_such_row()
        return run_piece(&self.reverse)


ctypedef int (*quiet_t)(CheckpointRunner) noexcept  # its caller passes the error on


cdef int divided(CheckpointRunner runner) noexcept with gil:
    return (<quiet_t>divide)(runner)


cdef int divide(CheckpointRunner runner) except -1:
    """Divide the iterations into blocks, and choose the number of states to keep."""
    cdef dict attrs = runner.program.attrs
    states, nbytes = attrs["checkpoints"]
    state_bytes = sum([spec.nbytes for spec in runner.program.carried_specs[:runner.n_variables]])
    given = runner.n_steps, states, nbytes, state_bytes, attrs["residual_bytes"]
    if runner.index == NULL:
        runner.block, n_snapshots = blocks_and_snapshots(*given)
    else:
        runner.block = runner.index[0]
        n_snapshots = snapshots_beside(runner.block, *given)
    runner.n_blocks = (runner.n_steps + runner.block - 1) // runner.block
    runner.n_snapshots = max(min(n_snapshots, runner.n_blocks), runner.n_first)
    return 0


cdef int no_such_snapshots() noexcept with gil:
    PyErr_SetString(graph_error, b"the snapshots are not those of a loop of so many iterations")
    return INTERRUPTED
