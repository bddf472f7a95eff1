# IdTable: tensor id -> slot, a tensor's place in one tape's arrays.
#
# a. Ids are assigned consecutively, so most ids on a tape are close to each other. These are in a
#    `window`: an array indexed by id - base, four bytes an id, no probing.
# b. Ids below the window's base (variables, constants older than the tape) are in `cells`, an
#    open-addressing hash table with linear probing. A removal shifts followers back: no tombstones.
# c. Every id >= base is in the window. An id too far beyond its end moves the window: its entries
#    go to the cells and it restarts at that id. So a long-lived tape has a small window.
# d. Oversized arrays shrink: the window when it moves, and both when the tape asks for it.

from .typedefs cimport NO_INDEX, id_t, index_t
from libc.stdint cimport uint64_t

cdef struct Cell:
    id_t id            # NO_ID: empty
    index_t slot

cdef struct IdTable:
    index_t* window    # slot of id base + i, or NO_INDEX
    id_t base
    id_t window_size
    Cell* cells
    uint64_t mask      # number of cells - 1; a power of two minus one
    uint64_t in_cells  # ids in the cells
    uint64_t count     # ids in all

cdef int idtable_init(IdTable* table) except -1
cdef void idtable_free(IdTable* table) noexcept
cdef int idtable_add_far(IdTable* table, id_t id, index_t slot) except -1
cdef void idtable_remove(IdTable* table, id_t id) noexcept nogil
cdef void idtable_move(IdTable* table, id_t id, index_t slot) noexcept nogil
cdef void idtable_shrink(IdTable* table) noexcept
cdef size_t idtable_nbytes(IdTable* table) noexcept nogil
cdef index_t cells_get(IdTable* table, id_t id) noexcept nogil


cdef inline index_t idtable_get(IdTable* table, id_t id) noexcept nogil:
    cdef id_t offset = id - table.base
    if offset >= 0:
        return table.window[offset] if offset < table.window_size else NO_INDEX
    return cells_get(table, id) if table.in_cells else NO_INDEX


cdef inline int idtable_add(IdTable* table, id_t id, index_t slot) except -1:
    """Map an id that is not in the table."""
    cdef id_t offset = id - table.base
    if 0 <= offset < table.window_size:
        table.window[offset] = slot
        table.count += 1
        return 0
    return idtable_add_far(table, id, slot)
