from .memory cimport release, resize, resized
from .typedefs cimport NO_ID

cdef enum:
    INITIAL_CELLS = 16
    INITIAL_WINDOW = 64
    SPARSEST = 8        # the window has at most this many cells per id, ...
    WINDOW_SLACK = 128  # ... plus this many
    TOO_LARGE = 8       # ratio of capacity to need from which an array shrinks


cdef int idtable_init(IdTable* table) except -1:
    table.window = NULL
    table.cells = NULL
    table.base = table.window_size = 0
    table.mask = table.in_cells = table.count = 0
    if not rebuild_cells(table, INITIAL_CELLS):
        raise MemoryError("cannot allocate the ids of a tape")
    return 0


cdef void idtable_free(IdTable* table) noexcept:
    release(table.window)
    release(table.cells)
    table.window = NULL
    table.cells = NULL


cdef size_t idtable_nbytes(IdTable* table) noexcept nogil:
    return table.window_size * sizeof(index_t) + (table.mask + 1) * sizeof(Cell)


cdef int idtable_add_far(IdTable* table, id_t id, index_t slot) except -1:
    """Map an id outside the window."""
    cdef id_t offset = id - table.base
    if offset < 0:
        reserve_cells(table, table.in_cells + 1)
        place(table, id, slot)
        table.in_cells += 1
    else:
        if <uint64_t>offset < SPARSEST * (table.count - table.in_cells + WINDOW_SLACK):
            widen_window(table, offset + 1)
        else:
            move_window(table, id)
            offset = 0
        table.window[offset] = slot
    table.count += 1
    return 0


cdef void idtable_remove(IdTable* table, id_t id) noexcept nogil:
    """Remove an id that is in the table."""
    if id >= table.base:
        table.window[id - table.base] = NO_INDEX
    else:
        cells_remove(table, id)
    table.count -= 1


cdef void idtable_move(IdTable* table, id_t id, index_t slot) noexcept nogil:
    """Map an id that is in the table to another slot."""
    cdef uint64_t position
    if id >= table.base:
        table.window[id - table.base] = slot
        return
    position = home(table, id)
    while table.cells[position].id != id:
        position = (position + 1) & table.mask
    table.cells[position].slot = slot


cdef void idtable_shrink(IdTable* table) noexcept:
    """Shrink arrays that are far too large for the present ids."""
    cdef id_t end = table.window_size
    cdef uint64_t capacity
    if window_is_too_large(table):
        capacity = cells_for(table, table.count)
        if capacity > table.mask + 1 and not rebuild_cells(table, capacity):
            return
        while end > 0 and table.window[end - 1] == NO_INDEX:
            end -= 1
        empty_window(table, table.base + end)
    capacity = INITIAL_CELLS
    while 2 * table.in_cells > capacity:
        capacity *= 2
    if table.mask + 1 > TOO_LARGE * capacity:
        rebuild_cells(table, capacity)


cdef inline bint window_is_too_large(IdTable* table) noexcept nogil:
    return table.window_size > TOO_LARGE * SPARSEST * <id_t>(
        table.count - table.in_cells + WINDOW_SLACK)


cdef int widen_window(IdTable* table, id_t at_least) except -1:
    cdef id_t i, size = max(2 * table.window_size, max(at_least, <id_t>INITIAL_WINDOW))
    resize(<void**>&table.window, size, sizeof(index_t))
    for i in range(table.window_size, size):
        table.window[i] = NO_INDEX
    table.window_size = size
    return 0


cdef int move_window(IdTable* table, id_t base) except -1:
    """Start an empty window at ``base`` and move the entries of the old one to the cells."""
    reserve_cells(table, table.count)  # everything that can fail comes first
    if table.window_size == 0:
        widen_window(table, INITIAL_WINDOW)
    empty_window(table, base)
    return 0


cdef void empty_window(IdTable* table, id_t base) noexcept:
    """Start an empty window, given enough cells; a window that is too large is shrunk."""
    cdef id_t i
    cdef bint too_large = window_is_too_large(table)
    for i in range(table.window_size):
        if table.window[i] != NO_INDEX:
            place(table, table.base + i, table.window[i])
            table.in_cells += 1
            table.window[i] = NO_INDEX
    table.base = base
    if too_large:
        table.window_size = INITIAL_WINDOW
        resized(<void**>&table.window, INITIAL_WINDOW, sizeof(index_t))


cdef inline uint64_t home(IdTable* table, id_t id) noexcept nogil:
    cdef uint64_t scattered = <uint64_t>id * <uint64_t>0x9E3779B97F4A7C15  # 2**64 / golden ratio
    return (scattered ^ (scattered >> 32)) & table.mask


cdef index_t cells_get(IdTable* table, id_t id) noexcept nogil:
    cdef uint64_t position = home(table, id)
    while table.cells[position].id != NO_ID:
        if table.cells[position].id == id:
            return table.cells[position].slot
        position = (position + 1) & table.mask
    return NO_INDEX


cdef void place(IdTable* table, id_t id, index_t slot) noexcept nogil:
    cdef uint64_t position = home(table, id)
    while table.cells[position].id != NO_ID:
        position = (position + 1) & table.mask
    table.cells[position].id = id
    table.cells[position].slot = slot


cdef int reserve_cells(IdTable* table, uint64_t count) except -1:
    cdef uint64_t capacity = cells_for(table, count)
    if capacity > table.mask + 1 and not rebuild_cells(table, capacity):
        raise MemoryError(f"cannot allocate cells for {count} ids of a tape")
    return 0


cdef inline uint64_t cells_for(IdTable* table, uint64_t count) noexcept nogil:
    cdef uint64_t capacity = table.mask + 1
    while 2 * count > capacity:
        capacity *= 2
    return capacity


cdef void cells_remove(IdTable* table, id_t id) noexcept nogil:
    cdef uint64_t hole = home(table, id)
    cdef uint64_t position, from_home
    while table.cells[hole].id != id:
        hole = (hole + 1) & table.mask
    position = (hole + 1) & table.mask
    while table.cells[position].id != NO_ID:
        from_home = (position - home(table, table.cells[position].id)) & table.mask
        if from_home >= ((position - hole) & table.mask):
            table.cells[hole] = table.cells[position]
            hole = position
        position = (position + 1) & table.mask
    table.cells[hole].id = NO_ID
    table.in_cells -= 1


cdef bint rebuild_cells(IdTable* table, uint64_t capacity) noexcept:
    """Move the cells to a new array; False if there is no memory: the table is as it was."""
    cdef Cell* old = table.cells
    cdef Cell* cells = NULL
    cdef uint64_t i, old_capacity = table.mask + 1 if old != NULL else 0
    if not resized(<void**>&cells, capacity, sizeof(Cell)):
        return False
    for i in range(capacity):
        cells[i].id = NO_ID
    table.cells = cells
    table.mask = capacity - 1
    for i in range(old_capacity):
        if old[i].id != NO_ID:
            place(table, old[i].id, old[i].slot)
    release(old)
    return True
