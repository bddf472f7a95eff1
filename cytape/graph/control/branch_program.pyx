cimport cython
from cytape.core.memory cimport release, resize
from cytape.graph.run.executor cimport Frame
from cytape.graph.run.instructions cimport CONTROL, Runner, Subprogram
from cytape.graph.run.layout cimport clear_stacks
from cytape.ops.engine.node_store cimport Node
from cytape.tensor.spec cimport Spec
from libc.string cimport memcpy
from numpy cimport NPY_BOOL, npy_intp

from .nested cimport (
    Piece, Port, contiguous, feed_port, fetch_port, give, nbytes_of, nested_code, new_frame,
    operand_spec, operands_of, run_piece)


cdef bint emit_branch(Code code, int32_t node, Op op) except -1:
    """Write an instruction for a call of CondOp, unless Python has to run a part of it."""
    cdef Node* row = &code.graph.nodes[node]
    cdef dict attrs = code.graph.attrs[node]
    cdef BranchProgram program
    cdef Code branch
    cdef list symbols, specs
    cdef tuple owned
    cdef npy_intp copied = 0
    cdef int32_t symbol, which
    cdef Spec predicate = code.spec(code.graph.args[row.inputs])
    if op.stateful or predicate.type_num != NPY_BOOL or predicate.size != 1:
        return False
    for symbol in range(row.first_output, row.first_output + row.n_outputs):
        if not code.spec(symbol).known:
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
        program.nbytes += nbytes_of(branch)
        program.peak_bytes = max(program.peak_bytes, branch.peak_bytes)
    for i in range(row.n_outputs):
        symbol = row.first_output + i
        which = program.moved(0, i)
        if which < 0 or which != program.moved(1, i) or not code.take_over(
                symbol, symbols[which], 1):
            code.place_output(symbol)
            if program.moved(0, i) >= 0 or program.moved(1, i) >= 0:
                copied += code.spec(symbol).nbytes
    symbols = [*contiguous(code, node, symbols),
               *range(row.first_output, row.first_output + row.n_outputs)]
    code.subprograms.append(program)
    code.layout.peak = max(code.layout.peak, code.layout.live + program.peak_bytes)
    program.effort = 2 * copied + max(
        (<Code>program.branches[0]).effort, (<Code>program.branches[1]).effort)
    code.emit_operands(node, CONTROL, program, symbols, program.effort)
    code.release_temporaries()
    return True


cdef bint fetches_as(Code branch, Code code, int32_t first_output) except -1:
    """Whether a branch returns what the graph says of the outputs."""
    cdef int32_t i
    for i, symbol in enumerate(branch.fetches):
        if branch.spec(symbol) is not code.spec(first_output + i):
            return False
    return True


@cython.final
cdef class BranchProgram(Subprogram):
    cdef list branches         # Code for true, for false
    cdef tuple positions       # of the operands of each
    cdef int n_operands

    cdef int moved(self, int which, int output) except -2:
        """The operand in whose memory a branch leaves an output, or -1."""
        cdef int feed = (<Code>self.branches[which]).moves[output]
        return -1 if feed < 0 else self.positions[which][feed]

    cdef Runner new_runner(self):
        cdef BranchRunner runner = BranchRunner()
        cdef Frame frame
        cdef int which, k, n_ports
        runner.frames = []
        for which in range(2):
            frame = new_frame(self.branches[which], &runner.pieces[which])
            runner.frames.append(frame)
            n_ports = <int>(len(frame.code.feeds) + len(frame.code.fetches))
            resize(<void**>&runner.ports[which], n_ports + 1, sizeof(Port))
            resize(<void**>&runner.operands[which], n_ports + 1, sizeof(int32_t))
            resize(<void**>&runner.moved[which], n_ports + 1, sizeof(int32_t))
            runner.n_ports[which] = n_ports
            for k in range(len(frame.code.feeds)):
                feed_port(frame, &runner.ports[which][k], k)
                runner.operands[which][k] = self.positions[which][k]
                runner.moved[which][k] = -1
            for k in range(len(frame.code.fetches)):
                n_ports = <int>len(frame.code.feeds) + k
                fetch_port(frame, &runner.ports[which][n_ports], k)
                runner.operands[which][n_ports] = self.n_operands + k
                runner.moved[which][n_ports] = self.moved(which, k)
        return runner


@cython.final
cdef class BranchRunner(Runner):
    cdef list frames
    cdef Piece pieces[2]
    cdef Port* ports[2]            # what is fed, then what is fetched
    cdef int32_t* operands[2]      # of the instruction
    cdef int32_t* moved[2]         # what is fetched: the operand that it is left in, or -1
    cdef int n_ports[2]

    def __dealloc__(self):
        cdef int which
        for which in range(2):
            release(self.ports[which])
            release(self.operands[which])
            release(self.moved[which])

    cdef int run(self, char** data) noexcept nogil:
        cdef int which = 0 if data[0][0] else 1
        cdef int k, failed
        cdef char* found
        cdef char* wanted
        for k in range(self.n_ports[which]):
            give(&self.ports[which][k], data[self.operands[which][k]])
        failed = run_piece(&self.pieces[which])
        for k in range(self.n_ports[which] if not failed else 0):
            if self.moved[which][k] >= 0:
                found, wanted = data[self.moved[which][k]], data[self.operands[which][k]]
                if found != wanted:
                    memcpy(wanted, found, self.ports[which][k].nbytes)
        clear_stacks(self.pieces[which].stacks, self.pieces[which].n_stacks)
        return failed
