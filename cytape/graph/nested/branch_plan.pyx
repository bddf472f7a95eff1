cimport cython
from cytape.core.interrupts cimport NO_MEMORY
from cytape.core.memory cimport release, resize
from cytape.graph.run.executor cimport Frame
from cytape.graph.run.instructions cimport Runner, Subprogram
from cytape.graph.run.plan_layout cimport STACKED, Stack, clear_stacks
from cytape.ops.calls.node_store cimport Node
from cytape.tensor.values.spec cimport Spec
from libc.string cimport memcpy
from numpy cimport NPY_BOOL, npy_intp

from .nested_code cimport (
    Operand, Piece, Port, count_part, emit_program, feed_operand, fetch_port, give, give_all,
    nested_code, new_frame, operand_spec, operands_of, row_bytes_of, rows_of, run_piece)
from .stack_rows cimport fits

cdef struct RowsReturned:    # to a stack
    Port port
    int32_t operand
    npy_intp row_bytes
    npy_intp count           # -1: the branch has a stack of them
    bint can_change_places   # with that stack, which nothing else is returned from


cdef bint emit_branch(Code code, int32_t node, Op op) except -1:
    """Emit an instruction for a call of CondOp, unless a part of it needs Python."""
    cdef Node* row = &code.graph.nodes[node]
    cdef dict attrs = code.graph.attrs[node]
    cdef BranchProgram program
    cdef Code branch
    cdef list symbols, specs
    cdef tuple owned
    cdef npy_intp copied = 0
    cdef int32_t symbol, which, i
    cdef Spec predicate = code.spec(code.graph.args[row.inputs])
    if op.stateful or predicate.type_num != NPY_BOOL or predicate.size != 1:
        return False
    for symbol in range(row.first_output, row.first_output + row.n_outputs):
        if not code.spec(symbol).known and rows_of(code, symbol) is False:
            return False
    symbols = operands_of(code, node)
    if symbols is None:
        return False
    program = BranchProgram()
    program.n_operands, program.positions, program.branches = row.n_inputs, attrs["positions"], []
    for which in range(2):
        specs = [operand_spec(code, symbols[i]) for i in attrs["positions"][which]]
        if False in specs:
            return False
        owned = tuple([k for k, i in enumerate(attrs["positions"][which])
                       if code.nested and code.may_take_over(symbols[i], 1)])
        branch = nested_code(
            attrs["branches"][which], specs, owned, <int>len(specs), row.n_outputs)
        if branch is None or not fetches_as(branch, code, row.first_output):
            return False
        program.branches.append(branch)
        count_part(program, branch)
    program.stacks = frozenset([i for i in range(row.n_outputs)
                                if not code.spec(row.first_output + i).known])
    for i in range(row.n_outputs):
        symbol = row.first_output + i
        if i in program.stacks:
            code.layout.take_stack(symbol)
            continue
        which = program.moved(0, i)
        if which < 0 or which != program.moved(1, i) or not code.take_over(
                symbol, symbols[which], 1):
            code.place_output(symbol)
            if program.moved(0, i) >= 0 or program.moved(1, i) >= 0:
                copied += code.spec(symbol).nbytes
    program.effort = 2 * copied + max(
        (<Code>program.branches[0]).effort, (<Code>program.branches[1]).effort)
    return emit_program(code, node, program, symbols, program.effort)


cdef bint fetches_as(Code branch, Code code, int32_t first_output) except -1:
    """Return whether a branch returns the specs that the graph has for the outputs."""
    cdef int32_t i
    for i, symbol in enumerate(branch.fetches):
        if code.spec(first_output + i).known:
            if branch.spec(symbol) is not code.spec(first_output + i):
                return False
        elif rows_of(branch, symbol) != rows_of(code, first_output + i) or not (
                branch.layout.places[symbol].kind == STACKED
                or branch.spec(symbol).known and branch.moves[i] < 0):
            return False
    return True


@cython.final
cdef class BranchProgram(Subprogram):
    cdef list branches         # Code for true, for false
    cdef tuple positions       # of the operands of each
    cdef int n_operands
    cdef frozenset stacks      # the outputs that are stacks

    cdef int moved(self, int which, int output) except -2:
        """Return the operand in whose memory a branch leaves an output, or -1."""
        cdef int feed = (<Code>self.branches[which]).moves[output]
        return -1 if feed < 0 else self.positions[which][feed]

    cdef Runner new_runner(self):
        cdef BranchRunner runner = BranchRunner()
        cdef int which
        runner.frames = []
        for which in range(2):
            runner.set_up(self, which)
        return runner


@cython.final
cdef class BranchRunner(Runner):
    cdef list frames
    cdef Piece pieces[2]
    cdef Operand* operands[2]      # inputs, then outputs
    cdef int32_t* moved[2]         # per output: the operand whose memory holds it, or -1
    cdef int n_operands[2]
    cdef RowsReturned* rows[2]
    cdef int n_rows[2]

    def __dealloc__(self):
        cdef int which
        for which in range(2):
            release(self.operands[which])
            release(self.moved[which])
            release(self.rows[which])

    cdef int set_up(self, BranchProgram program, int which) except -1:
        cdef Code code = program.branches[which]
        cdef Frame frame = new_frame(code, &self.pieces[which])
        cdef int n_feeds = <int>len(code.feeds), n_fetches = <int>len(code.fetches), k, n
        cdef int32_t symbol
        cdef RowsReturned* rows
        cdef Spec spec
        self.frames.append(frame)
        resize(<void**>&self.operands[which], n_feeds + n_fetches + 1, sizeof(Operand))
        resize(<void**>&self.moved[which], n_feeds + n_fetches + 1, sizeof(int32_t))
        resize(<void**>&self.rows[which], n_fetches + 1, sizeof(RowsReturned))
        for k in range(n_feeds):
            feed_operand(frame, self.operands[which] + k, k, program.positions[which][k])
            self.moved[which][k] = -1
        n = n_feeds
        for k in range(n_fetches):
            if k not in program.stacks:
                fetch_port(frame, &self.operands[which][n].port, k)
                self.operands[which][n].operand = program.n_operands + k
                self.moved[which][n] = program.moved(which, k)
                n += 1
                continue
            symbol = code.fetches[k]
            spec = code.spec(symbol)
            rows = self.rows[which] + self.n_rows[which]
            fetch_port(frame, &rows.port, k)
            rows.operand = program.n_operands + k
            rows.row_bytes = row_bytes_of(spec)
            rows.count = -1 if rows.port.is_stack else spec.dims[0]
            rows.can_change_places = code.fetches.count(symbol) == 1
            self.n_rows[which] += 1
        self.n_operands[which] = n
        return 0

    cdef list memory(self):
        return self.frames

    cdef int run(self, char** data) noexcept nogil:
        cdef int which = 0 if data[0][0] else 1
        cdef Operand* operands = self.operands[which]
        cdef RowsReturned* rows = self.rows[which]
        cdef Stack* stack
        cdef int k, failed
        cdef char* found
        cdef char* wanted
        give_all(operands, self.n_operands[which], data)
        for k in range(self.n_rows[which]):
            if rows[k].count >= 0:
                stack = <Stack*>data[rows[k].operand]
                if not fits(stack, rows[k].count, rows[k].row_bytes):
                    return NO_MEMORY
                stack.count = rows[k].count
                give(&rows[k].port, stack.data)
        failed = run_piece(&self.pieces[which])
        for k in range(self.n_operands[which] if not failed else 0):
            if self.moved[which][k] >= 0:
                found, wanted = data[self.moved[which][k]], data[operands[k].operand]
                if found != wanted:
                    memcpy(wanted, found, operands[k].port.nbytes)
        for k in range(self.n_rows[which] if not failed else 0):
            if rows[k].count < 0 and not hand_on(&rows[k], <Stack*>data[rows[k].operand]):
                failed = NO_MEMORY
        clear_stacks(self.pieces[which].stacks, self.pieces[which].n_stacks)
        return failed


cdef bint hand_on(RowsReturned* rows, Stack* stack) noexcept nogil:
    """Return a stack of the branch; False if there is no memory."""
    cdef Stack* own = <Stack*>rows.port.slot
    if own.capacity and rows.can_change_places:
        own[0], stack[0] = stack[0], own[0]
        return True
    if not fits(stack, own.count, rows.row_bytes):
        return False
    memcpy(stack.data, own.data, own.count * rows.row_bytes)
    stack.count = own.count
    return True
