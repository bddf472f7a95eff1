# Rows of stacks that the body of a loop reads or writes: one per iteration, or all rows of an inner
# loop, whose lengths are another stack.

from cytape.core.schedules cimport Sweep, end_sweep
from cytape.graph.run.plan_layout cimport Stack, poison
from libc.stdint cimport int64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy, memset
from numpy cimport npy_intp

from .nested_code cimport Port, give

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    RETURNED = 1 << 22       # bytes of a stack that are given back at a time

cdef struct RowsRead:
    Port port
    int operand, lengths     # lengths: -1, or the operand that they are
    bint lengths_are_stack
    npy_intp n_lengths, total  # total: rows before the next slice, of a ragged stack
    bint is_stack, is_last_use
    npy_intp row_bytes, extent  # extent: how many rows there are, if it is no stack

cdef struct RowsWritten:
    Port port
    int operand, lengths
    npy_intp row_bytes


cdef inline bint fits(Stack* stack, npy_intp n, npy_intp row_bytes) noexcept nogil:
    """Make room for a number of rows; False: there is no memory."""
    cdef npy_intp nbytes
    cdef char* memory
    if row_bytes and n > PY_SSIZE_T_MAX // 2 // row_bytes:
        return False
    if n * row_bytes <= stack.capacity:
        return True
    nbytes = max(n * row_bytes, stack.capacity + stack.capacity // 2)
    memory = <char*>realloc(stack.data if stack.capacity else NULL, nbytes)
    if memory == NULL:
        return False
    if poison >= 0:
        memset(memory + stack.capacity, poison, nbytes - stack.capacity)
    stack.data, stack.capacity = memory, nbytes
    return True


cdef inline int read_rows(RowsRead* read, int operand, tuple rows) except -1:
    """Say where rows are, and what `rows_at` has found about them."""
    read.operand, read.lengths = operand, -1
    read.is_stack, read.is_last_use, read.row_bytes, read.extent = rows
    return 0


cdef inline char* rows_of_stack(
        const RowsRead* read, char** data, npy_intp* extent) noexcept nogil:
    """Return the rows of a stack, and how many there are."""
    cdef char* rows = data[read.operand]
    extent[0] = read.extent
    if read.is_stack:
        extent[0] = (<Stack*>rows).count
        rows = (<Stack*>rows).data
    return rows


cdef inline bint give_rows(
        RowsRead* read, char** data, int64_t first, int64_t n) noexcept nogil:
    """Give a body some rows of a stack; False: there are none."""
    cdef npy_intp extent
    cdef char* rows = rows_of_stack(read, data, &extent)
    cdef Stack piece
    if first + n > extent:
        return False
    piece.data, piece.count, piece.capacity = rows + first * read.row_bytes, n, 0
    give(&read.port, <char*>&piece)
    return True


cdef inline bint give_row(
        RowsRead* read, char** data, int64_t place, bint is_reverse) noexcept nogil:
    """Give a body the row of a stack, or all rows that an inner loop left; False: there is none."""
    cdef npy_intp extent, n_lengths = read.n_lengths
    cdef char* rows = rows_of_stack(read, data, &extent)
    cdef char* lengths
    cdef Stack piece
    if read.lengths < 0:
        if place >= extent:
            return False
        give(&read.port, rows + place * read.row_bytes)
        return True
    lengths = data[read.lengths]
    if read.lengths_are_stack:
        n_lengths = (<Stack*>lengths).count
        lengths = (<Stack*>lengths).data
    if place >= n_lengths:
        return False
    piece.count = (<int64_t*>lengths)[place]
    piece.capacity = 0
    if not 0 <= piece.count <= (read.total if is_reverse else extent - read.total):
        return False
    if is_reverse:
        read.total -= piece.count
    piece.data = rows + read.total * read.row_bytes
    if not is_reverse:
        read.total += piece.count
    give(&read.port, <char*>&piece)
    return True


cdef inline void give_back(RowsRead* read, char** data, int64_t place) noexcept nogil:
    """Free the rows of a stack that have been read, if that is worth it."""
    cdef Stack* stack = <Stack*>data[read.operand]
    cdef npy_intp nbytes
    cdef char* memory
    if not read.is_stack or not read.is_last_use:
        return
    nbytes = (place if read.lengths < 0 else read.total) * read.row_bytes
    if nbytes and stack.capacity - nbytes >= RETURNED:
        memory = <char*>realloc(stack.data, nbytes)
        if memory != NULL:
            stack.data, stack.capacity = memory, nbytes


cdef inline bint append(RowsWritten* written, char** data, int64_t place) noexcept nogil:
    """Add the rows that an inner loop left; False: there is no memory."""
    cdef Stack* rows = <Stack*>written.port.slot
    cdef Stack* stack = <Stack*>data[written.operand]
    cdef Stack* lengths = <Stack*>data[written.lengths]
    if not fits(lengths, place + 1, 8) or not fits(
            stack, stack.count + rows.count, written.row_bytes):
        return False
    memcpy(stack.data + stack.count * written.row_bytes, rows.data,
           rows.count * written.row_bytes)
    stack.count += rows.count
    (<int64_t*>lengths.data)[place] = rows.count
    return True


cdef inline bint list_stored(Sweep* sweep, Stack* stack) noexcept nogil:
    """Say which states a loop has stored; False: there is no memory."""
    cdef int64_t n = end_sweep(sweep), i
    cdef int64_t* index
    if not fits(stack, 1 + 2 * n, 8):
        return False
    index, stack.count = <int64_t*>stack.data, 1 + 2 * n
    index[0] = sweep.block
    for i in range(n):
        index[1 + 2 * i] = sweep.stored[i].step
        index[2 + 2 * i] = sweep.stored[i].slot
    return True
