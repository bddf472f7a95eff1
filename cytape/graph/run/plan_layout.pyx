cimport cython
from cytape.core.memory cimport grow, release
from cytape.tensor.values.spec cimport Spec
from libc.stdlib cimport calloc, free
from libc.string cimport memmove

cdef enum:
    LINE = 64  # bytes

poison = -1


def poison_memory(byte):
    """Make plans fill their memory with a byte before each run; None: not any more.

    For tests: reads of uninitialised memory change results.
    """
    global poison
    poison = -1 if byte is None else <unsigned char>byte


@cython.final
@cython.no_gc
cdef class Layout:
    def __cinit__(self, int32_t n_places):
        cdef int i
        self.places = <Place*>calloc(n_places + 1, sizeof(Place))
        if self.places == NULL:
            raise MemoryError()
        self.n_places = n_places
        for i in range(N_CLASSES):
            self.vacant[i] = -1

    def __dealloc__(self):
        free(self.places)
        release(self.slots)
        release(self.blocks)

    cdef int take(self, int32_t symbol, npy_intp nbytes) except -1:
        """Find memory for a symbol."""
        cdef Place* place = &self.places[symbol]
        cdef int32_t found
        cdef int size_class = class_of(nbytes)
        place.kind = PLACED
        place.root = symbol
        place.claims = 1
        place.strides = -1
        place.nbytes = nbytes
        self.live += nbytes
        if self.live > self.peak:
            self.peak = self.live
        if size_class == N_CLASSES:
            place.address = address_in(LARGE, self.take_block(nbytes))
            return 0
        found = self.vacant[size_class]
        if found < 0:
            found = self.new_slot(size_of_class(size_class))
        else:
            self.vacant[size_class] = self.slots[found].next
        place.slot = found
        place.address = address_in(SMALL, self.slots[found].offset)
        return 0

    cdef int take_stack(self, int32_t symbol) except -1:
        cdef Place* place = &self.places[symbol]
        place.kind = STACKED
        place.root = symbol
        place.claims = 1
        place.strides = -1
        place.nbytes = sizeof(Stack)
        place.address = address_in(STACKS, self.n_stacks * <npy_intp>sizeof(Stack))
        self.n_stacks += 1
        return 0

    cdef int32_t new_slot(self, npy_intp size) except -1:
        cdef int32_t slot = self.n_slots
        if slot == self.slots_capacity:
            grow(<void**>&self.slots, &self.slots_capacity, slot + 1, sizeof(Slot))
        self.small_bytes += -self.small_bytes & (min(size, LINE) - 1)
        self.slots[slot].offset = self.small_bytes
        self.small_bytes += size
        self.n_slots += 1
        return slot

    cdef int give_back(self, Place* root) except -1:
        """Free the memory of a root, when none of its symbols has remaining uses."""
        cdef int size_class = class_of(root.nbytes)
        self.live -= root.nbytes
        if size_class == N_CLASSES:
            return self.give_block(offset_of(root.address), rounded(root.nbytes))
        self.slots[root.slot].next = self.vacant[size_class]
        self.vacant[size_class] = root.slot
        return 0

    cdef npy_intp take_block(self, npy_intp nbytes) except -1:
        cdef index_t i, best = -1
        cdef npy_intp offset, size = rounded(nbytes)
        for i in range(self.n_blocks):
            if self.blocks[i].nbytes >= size and (
                    best < 0 or self.blocks[i].nbytes < self.blocks[best].nbytes):
                best = i
        if best < 0:
            offset = self.large_bytes
            i = self.n_blocks - 1
            if i >= 0 and self.blocks[i].offset + self.blocks[i].nbytes == offset:
                offset = self.blocks[i].offset  # extend the free memory at the end
                self.n_blocks -= 1
            self.large_bytes = offset + size
            return offset
        offset = self.blocks[best].offset
        self.blocks[best].offset += size
        self.blocks[best].nbytes -= size
        if self.blocks[best].nbytes == 0:
            self.n_blocks -= 1
            memmove(self.blocks + best, self.blocks + best + 1,
                    (self.n_blocks - best) * sizeof(Block))
        return offset

    cdef int give_block(self, npy_intp offset, npy_intp size) except -1:
        cdef index_t low = 0, high = self.n_blocks, middle
        cdef Block* block
        while low < high:
            middle = (low + high) // 2
            if self.blocks[middle].offset < offset:
                low = middle + 1
            else:
                high = middle
        if self.n_blocks == self.blocks_capacity:
            grow(<void**>&self.blocks, &self.blocks_capacity, self.n_blocks + 1, sizeof(Block))
        block = self.blocks + low
        if low and self.blocks[low - 1].offset + self.blocks[low - 1].nbytes == offset:
            block = self.blocks + low - 1
            block.nbytes += size
        else:
            memmove(block + 1, block, (self.n_blocks - low) * sizeof(Block))
            self.n_blocks += 1
            block.offset, block.nbytes = offset, size
        if (block + 1 < self.blocks + self.n_blocks
                and block.offset + block.nbytes == block[1].offset):
            block.nbytes += block[1].nbytes
            self.n_blocks -= 1
            memmove(block + 1, block + 2,
                    (self.blocks + self.n_blocks - block - 1) * sizeof(Block))
        return 0


cdef inline npy_intp rounded(npy_intp nbytes) noexcept:
    return (nbytes + LINE - 1) & ~<npy_intp>(LINE - 1)


cdef inline int class_of(npy_intp nbytes) noexcept:
    if nbytes <= 8:
        return 0
    if nbytes <= 32:
        return 1 if nbytes <= 16 else 2
    return <int>(2 + (nbytes + 63) // 64) if nbytes <= SMALL_BYTES else N_CLASSES


cdef inline npy_intp size_of_class(int size_class) noexcept:
    return 8 << size_class if size_class < 3 else 64 * (size_class - 2)


cdef void clear_stacks(Stack* stacks, int32_t n) noexcept nogil:
    cdef int32_t i
    for i in range(n):
        if stacks[i].capacity:
            free(stacks[i].data)
        stacks[i].data = NULL
        stacks[i].count = stacks[i].capacity = 0


cdef bint is_uniform(Spec spec, const npy_intp* strides) noexcept:
    cdef int axis
    for axis in range(spec.ndim):
        if spec.dims[axis] > 1 and strides[axis]:
            return False
    return True
