# Nested code: a compiled body that an instruction of other code runs repeatedly, without Python.
# Values pass through ports:
#
#     small values   are copied into, and out of, the frame
#     large values   stay in place; their addresses are written into the instructions
#     stacks         (rows of an inner loop's iterations) are lent: their maker frees them

from cytape.core.typedefs cimport index_t
from cytape.graph.run.plan_code cimport Code
from cytape.graph.run.executor cimport Frame, Patch
from cytape.graph.run.instructions cimport Instruction, Subprogram, run_span
from cytape.graph.run.plan_layout cimport Stack
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
from numpy cimport npy_intp

cdef struct Port:
    char* slot              # NULL: the value stays where it is
    npy_intp nbytes
    bint is_stack
    const Patch* patches    # the operands of instructions that get the address
    int32_t n_patches
    Instruction* instructions

cdef struct Operand:
    Port port
    int32_t operand         # of the instruction

cdef struct Piece:          # a frame, for code without the GIL
    Instruction* instructions
    const npy_intp* pool
    index_t n_code
    npy_intp effort
    Stack* stacks
    int32_t n_stacks

# The code of a body for operands of some specs (of stacks: the result of `rows_of`), or None if
# Python has to run it.
cdef Code nested_code(body, list specs, tuple owned, int n_fresh, int n_movable)
cdef object rows_of(Code code, int32_t symbol)       # a tuple of their spec; False: it is not known
cdef object operand_spec(Code code, int32_t symbol)  # its spec, or that
cdef object row_spec(Code code, int32_t symbol, bint is_ragged)
cdef npy_intp row_bytes_of(Spec spec) except -1
cdef tuple rows_at(Code code, int32_t symbol)        # the last four fields of its RowsRead
cdef bint is_predicate(Code condition) except -1
cdef Frame new_frame(Code code, Piece* piece)
cdef int feed_port(Frame frame, Port* port, int k) except -1
cdef int fetch_port(Frame frame, Port* port, int k) except -1
cdef int count_part(Subprogram program, Code part) except -1  # add its bytes to the program's
cdef bint is_count(Code code, int32_t symbol) except -1       # one number of int64
cdef list operands_of(Code code, int32_t node)       # symbols, or None: Python runs the node
# Write the instruction of a program whose inputs are some symbols and whose outputs are placed.
cdef bint emit_program(Code code, int32_t node, Subprogram program, list symbols,
                       npy_intp effort) except -1
cdef int no_such_row() noexcept with gil             # raise, and return INTERRUPTED


cdef inline void give(Port* port, char* data) noexcept nogil:
    """Give a frame a value, or the place for one."""
    cdef int32_t i
    if port.slot != NULL:
        if port.nbytes == 8:
            (<int64_t*>port.slot)[0] = (<int64_t*>data)[0]
        else:
            memcpy(port.slot, data, port.nbytes)
            if port.is_stack:
                (<Stack*>port.slot).capacity = 0
        return
    for i in range(port.n_patches):
        port.instructions[port.patches[i].instruction].data[port.patches[i].operand] = (
            data + port.patches[i].offset)


cdef inline int feed_operand(Frame frame, Operand* to, int k, int32_t operand) except -1:
    to.operand = operand
    return feed_port(frame, &to.port, k)


cdef inline void give_all(Operand* operands, int n, char** data) noexcept nogil:
    cdef int i
    for i in range(n):
        give(&operands[i].port, data[operands[i].operand])


cdef inline int run_piece(Piece* piece) noexcept nogil:
    return run_span(piece.instructions, 0, piece.n_code, piece.pool)
