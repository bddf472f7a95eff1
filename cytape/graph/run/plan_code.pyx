# Memory is assigned while instructions are emitted: symbols count their remaining uses, blocks of
# memory the symbols in them. Memory without remaining uses is reused; an elementwise op may
# overwrite an operand that has no other reader.

from cpython.ref cimport PyObject
from cytape.core.memory cimport grow, release, resize
from cytape.ops.kernels.ufunc_loops cimport copy_loop
from cytape.ops.kernels.walk cimport MAX_AXES, begin, join_array, join_memory, plan
from cytape.tensor.values.value cimport in_c_order
from libc.string cimport memcpy, memset

from .instructions cimport CONTROL, COPY, LOOP, N_OPERANDS, OPERANDS, WALK, ZERO, Subprogram
from .plan_layout cimport (
    CONSTANT, DEFERRED, EXTERNAL, LARGE, PLACED, SMALL, SMALL_BYTES, UNKNOWN, external_address,
    external_number, is_uniform, memory_of)

cdef enum:
    MAX_EXTERNALS = 1 << 20
    FEW_STEPS = 16  # length of runs below which the calls of a loop dominate
    TILE = 256      # length of runs that are made instead


cdef class Code:
    def __cinit__(self, subgraph, bint nested=False, owned=(), int n_fresh=0, int n_movable=0):
        self.graph = subgraph.graph
        self.feeds, self.fetches = tuple(subgraph.feeds), tuple(subgraph.fetches)
        self.constants, self.unneeded, self.temporary_specs = [], [], []
        self.direct, self.releases, self.elements, self.alone = {}, {}, {}, {}
        self.nested, self.n_fresh, self.n_movable = nested, n_fresh, n_movable
        self.owned, self.moves = frozenset(owned), [-1] * len(subgraph.fetches)
        self.subprograms, self.late, self.filled, self.copied = [], set(), set(), set()
        self.repeatable, self.last_geometry = True, -1
        self.n_symbols = self.graph.n_symbols
        self.layout = Layout(self.n_symbols + N_TEMPORARIES)
        self.n_externals = <int32_t>(len(self.feeds) + len(self.fetches))

    def __dealloc__(self):
        release(self.code)
        release(self.lives)
        release(self.pool)
        release(self.spans)

    cdef int settle_both(self, int32_t x, int32_t y) except -1:
        for symbol in (x, y):
            if self.layout.places[<int32_t>symbol].kind == DEFERRED:
                self.settle(symbol)
        return 0

    cdef int32_t contiguous(self, int32_t node, int32_t symbol) except -1:
        """Return a symbol of the same value in C order: itself, or a temporary one."""
        cdef int32_t temporary
        if self.layout.places[symbol].kind == DEFERRED:
            self.settle(symbol)
        if self.layout.places[symbol].strides < 0:
            return symbol
        temporary = self.new_temporary(self.spec(symbol))
        self.emit_copy(node, &self.layout.places[symbol], self.spec(symbol),
                       self.layout.places[temporary].address)
        return temporary

    cdef int32_t new_temporary(self, Spec spec) except -1:
        cdef int32_t symbol = self.new_symbol(spec)
        self.layout.take(symbol, spec.nbytes)
        return symbol

    cdef int32_t new_symbol(self, Spec spec) except -1:
        """Return a symbol beyond those of the graph, for the present node."""
        if len(self.temporary_specs) == N_TEMPORARIES:
            raise OverflowError("an op has too many operands")
        self.temporary_specs.append(spec)
        return self.n_symbols + <int32_t>len(self.temporary_specs) - 1

    cdef int release_temporaries(self) except -1:
        cdef Py_ssize_t i
        if len(self.temporary_specs) == 0:
            return 0
        for i in range(len(self.temporary_specs)):
            self.release_claim(self.n_symbols + <int32_t>i)
        self.temporary_specs.clear()
        return 0

    cdef int accumulate(self, int32_t node, Loop* loop, int32_t deferred, int32_t other) except -1:
        """Add a deferred operand, zeros with a part, to an array: only the part, in its place."""
        cdef int32_t out = self.graph.nodes[node].first_output
        if self.layout.places[other].kind == DEFERRED:
            self.settle(other)
        self.place_over(node, out, other)
        return self.add_part(node, deferred, &self.layout.places[deferred], out, loop)

    cdef int settle(self, int32_t symbol) except -1:
        """Compute a deferred value."""
        cdef Place deferred = self.layout.places[symbol]
        cdef int32_t node = self.graph.symbols[symbol].node
        self.place_output(symbol)
        self.emit_zero(node, self.layout.places[symbol].address, self.spec(symbol).nbytes)
        self.add_part(node, symbol, &deferred, symbol, NULL)
        return self.release_claim(deferred.root)

    cdef int add_part(self, int32_t node, int32_t deferred, const Place* place, int32_t out,
                      Loop* loop) except -1:
        """Add a deferred part to an array; a region is copied if the array is zero (loop NULL)."""
        cdef int32_t symbol, source = place.source
        cdef uint64_t target = self.layout.places[out].address + place.address
        cdef uint64_t addresses[3]
        cdef Walk walk
        if deferred in self.elements:
            program, operands = self.elements.pop(deferred)
            self.emit_operands(node, CONTROL, program, [*operands, out],
                               3 * self.spec(source).nbytes)
            for symbol in operands[1:]:
                self.release_claim(self.layout.places[symbol].root)
            return 0
        if not plan(&walk, self.spec(source)):
            return 0
        addresses[0] = addresses[2] = target
        if loop != NULL:
            join_memory(&walk, NULL, self.pool + place.strides)
        addresses[walk.n_operands] = self.layout.places[source].address
        self.join_place(&walk, source)
        addresses[walk.n_operands] = target
        join_memory(&walk, NULL, self.pool + place.strides)
        return self.emit_walk(
            node, &walk, loop if loop != NULL else copy_loop(self.spec(source).itemsize), addresses)

    cdef int place_output(self, int32_t symbol) except -1:
        cdef npy_intp nbytes = self.spec(symbol).nbytes
        if nbytes > SMALL_BYTES and self.direct:
            number = self.direct.get(symbol)
            if number is not None and number not in self.filled:
                self.filled.add(number)
                return self.place_external(symbol, number)
        return self.layout.take(symbol, nbytes)

    cdef int place_over(self, int32_t node, int32_t symbol, int32_t x) except -1:
        """Give an output the memory of an operand, or a copy if the operand has other readers."""
        if not self.take_over(symbol, x, 1):
            self.place_output(symbol)
            self.emit_copy(node, &self.layout.places[x], self.spec(x),
                           self.layout.places[symbol].address)
        return 0

    cdef int place_item(self, int32_t symbol) except -1:
        """Take memory for one item, which the symbol repeats."""
        cdef npy_intp no_strides[MAX_AXES]
        cdef Spec spec = self.spec(symbol)
        memset(no_strides, 0, sizeof(no_strides))
        self.layout.take(symbol, spec.itemsize)
        self.layout.places[symbol].strides = self.push(no_strides, spec.ndim)
        return 0

    cdef bint shows_item(self, int32_t symbol) except -1:
        """Return whether a symbol is uniform in memory."""
        cdef Place* place = &self.layout.places[symbol]
        cdef Spec spec = self.spec(symbol)
        if place.kind != PLACED or not spec.known:
            return False
        return spec.size == 1 or place.strides >= 0 and is_uniform(
            spec, self.pool + place.strides)

    cdef int place_external(self, int32_t symbol, int32_t number) except -1:
        cdef Place* place = &self.layout.places[symbol]
        place.kind = PLACED if self.spec(symbol).known else UNKNOWN
        place.root = symbol
        place.claims = 1
        place.strides = -1
        place.nbytes = max(self.spec(symbol).nbytes, 0)
        place.address = external_address(number)
        if number >= <int32_t>len(self.feeds) and not self.nested:
            self.layout.live += place.nbytes
            self.layout.peak = max(self.layout.peak, self.layout.live)
        return 0

    cdef int32_t new_external(self) except -1:
        if self.n_externals == MAX_EXTERNALS:
            raise OverflowError(f"more than {MAX_EXTERNALS} large values of one run")
        self.n_externals += 1
        return self.n_externals - 1

    cdef int view(self, int32_t symbol, int32_t of, npy_intp offset,
                  const npy_intp* strides) except -1:
        """Make a symbol a view of another one; strides NULL: C order."""
        cdef Place* place = &self.layout.places[symbol]
        cdef Place* other = &self.layout.places[of]
        place.kind = PLACED
        place.root = other.root
        place.address = other.address + <uint64_t>offset
        place.strides = -1
        if strides != NULL and not in_c_order(self.spec(symbol), strides):
            place.strides = self.push(strides, self.spec(symbol).ndim)
        place.claims = 1
        self.layout.places[other.root].claims += 1
        return 0

    cdef bint may_take_over(self, int32_t dying, int32_t count) except -1:
        """Return whether an input has no other readers and may be overwritten.

        count: the number of its occurrences among the inputs.
        """
        cdef Place* other = &self.layout.places[dying]
        cdef Place* root = &self.layout.places[other.root]
        cdef int memory = memory_of(other.address)
        return (other.kind == PLACED and other.uses == count and root.claims == 1
                and other.strides < 0 and memory != CONSTANT and other.address == root.address
                and (memory != EXTERNAL or external_number(root.address) in self.owned
                     or self.is_fetched_memory(external_number(root.address))))

    cdef bint is_fetched_memory(self, int32_t number) except -1:
        """Return whether an external is new memory for a result; Python's results may be shared."""
        return number in self.filled and number not in self.late

    cdef bint take_over(self, int32_t symbol, int32_t dying, int32_t count) except -1:
        """Give an output the memory of an input, if possible."""
        cdef Place* other = &self.layout.places[dying]
        cdef Place* root = &self.layout.places[other.root]
        cdef Place* place = &self.layout.places[symbol]
        if not self.may_take_over(dying, count) or root.nbytes != self.spec(symbol).nbytes:
            return False
        if self.direct:
            number = self.direct.get(symbol)
            if memory_of(other.address) != EXTERNAL:
                if number is not None and number not in self.filled:
                    return False
            elif external_number(root.address) not in self.owned and (
                    number != external_number(root.address)):
                return False
        place.kind, place.strides, place.claims = PLACED, -1, 1
        place.root, place.address = other.root, other.address
        root.claims += 1
        return True

    cdef int drop(self, int32_t symbol) except -1:
        cdef Place* place = &self.layout.places[symbol]
        place.uses -= 1
        if place.uses == 0:
            self.release_claim(place.root)
        return 0

    cdef int release_claim(self, int32_t root) except -1:
        cdef Place* place = &self.layout.places[root]
        cdef int memory
        place.claims -= 1
        if place.claims:
            return 0
        memory = memory_of(place.address)
        if memory == SMALL or memory == LARGE:
            return self.layout.give_back(place)
        if memory == EXTERNAL:
            number = external_number(place.address)
            if number >= len(self.feeds) + len(self.fetches):
                self.layout.live -= place.nbytes
                self.unneeded.append(number)
        return 0

    cdef Instruction* next(self, int32_t node, int kind) except NULL:
        cdef Instruction* instruction
        if self.n_code == self.code_capacity:
            self.reserve(self.n_code + self.n_code // 2 + 16)
        instruction = &self.code[self.n_code]
        self.n_code += 1
        instruction.kind = kind
        instruction.node = node
        instruction.data[0] = instruction.data[1] = instruction.data[2] = NULL
        instruction.data[3] = NULL
        instruction.work = 0
        self.lives[self.n_code - 1] = self.layout.live
        return instruction

    cdef int reserve(self, int32_t n) except -1:
        resize(<void**>&self.code, n, sizeof(Instruction))
        resize(<void**>&self.lives, n, sizeof(npy_intp))
        self.code_capacity = n
        return 0

    cdef int32_t push(self, const npy_intp* numbers, int32_t n) except -1:
        cdef int32_t position = self.n_pool
        if self.n_pool + n > self.pool_capacity:
            grow(<void**>&self.pool, &self.pool_capacity, self.n_pool + n, sizeof(npy_intp))
        memcpy(self.pool + position, numbers, n * sizeof(npy_intp))
        self.n_pool += n
        return position

    cdef int32_t linear(self, npy_intp n, npy_intp a, npy_intp b, npy_intp c) except -1:
        """Return the geometry of operands with one stride each; reuses that of the last loop."""
        cdef npy_intp numbers[4]
        cdef npy_intp* last = self.pool + self.last_geometry
        if self.last_geometry >= 0 and (
                last[0] == n and last[1] == a and last[2] == b and last[3] == c):
            return self.last_geometry
        numbers[0], numbers[1], numbers[2], numbers[3] = n, a, b, c
        self.last_geometry = self.push(numbers, 4)
        return self.last_geometry

    cdef int strides_of(self, int32_t symbol, npy_intp* strides) except -1:
        cdef Spec spec = self.spec(symbol)
        cdef npy_intp stride = spec.itemsize
        cdef int axis
        if self.layout.places[symbol].strides >= 0:
            memcpy(strides, self.pool + self.layout.places[symbol].strides,
                   spec.ndim * sizeof(npy_intp))
            return 0
        for axis in range(spec.ndim - 1, -1, -1):
            strides[axis] = stride
            stride *= spec.dims[axis]
        return 0

    cdef int join_place(self, Walk* walk, int32_t symbol) except -1:
        """Add a symbol to the operands, broadcast to the walk's extents."""
        cdef index_t strides = self.layout.places[symbol].strides
        join_array(walk, NULL, self.spec(symbol), self.pool + strides if strides >= 0 else NULL)
        return 0

    cdef int emit_walk(self, int32_t node, Walk* walk, const Loop* loop,
                       uint64_t* addresses) except -1:
        begin(walk)
        return self.emit_begun(node, walk, loop, addresses)

    cdef int emit_tiled(self, int32_t node, Walk* walk, const Loop* loop,
                        uint64_t* addresses) except -1:
        """Emit a walk in any order of axes; short runs are joined to long ones, tile by tile."""
        cdef uint64_t after[N_OPERANDS]
        cdef npy_intp extent, step
        cdef int i, last
        begin(walk)
        last = walk.n_axes - 1
        if last < 0 or walk.length >= FEW_STEPS or walk.extents[last] <= TILE or (
                last + 1 == MAX_AXES):
            return self.emit_begun(node, walk, loop, addresses)
        extent, walk.extents[last] = walk.extents[last], walk.extents[last] // TILE
        walk.extents[last + 1], walk.length = walk.length, TILE
        walk.n_axes += 1
        for i in range(walk.n_operands):
            step = walk.strides[i][last]
            after[i] = addresses[i] + <uint64_t>(walk.extents[last] * TILE * step)
            walk.strides[i][last] = TILE * step
            walk.strides[i][last + 1], walk.steps[i] = walk.steps[i], step
        self.emit_begun(node, walk, loop, addresses)
        walk.extents[last], walk.length = 1, extent % TILE
        return self.emit_begun(node, walk, loop, after) if walk.length else 0

    cdef int emit_begun(self, int32_t node, Walk* walk, const Loop* loop,
                        uint64_t* addresses) except -1:
        cdef Instruction* instruction
        cdef npy_intp numbers[3 + N_OPERANDS]
        cdef npy_intp n = walk.length
        cdef int i, axis, n_operands = walk.n_operands
        for axis in range(walk.n_axes):
            n *= walk.extents[axis]
        instruction = self.next(node, WALK)
        for i in range(n_operands):
            instruction.data[i] = <char*>addresses[i]
        instruction.loop = loop
        instruction.work = 8 * n * n_operands
        if walk.n_axes == 0 and n_operands < N_OPERANDS:
            instruction.kind = LOOP
            instruction.geometry = self.linear(
                walk.length, walk.steps[0], walk.steps[1], walk.steps[2] if n_operands == 3 else 0)
            return 0
        numbers[0], numbers[1], numbers[2] = walk.n_axes, n_operands, walk.length
        for i in range(n_operands):
            numbers[3 + i] = walk.steps[i]
        instruction.geometry = self.push(numbers, 3 + n_operands)
        self.push(walk.extents, walk.n_axes)
        for i in range(n_operands):
            self.push(walk.strides[i], walk.n_axes)
        return 0

    cdef int emit_copy(self, int32_t node, Place* place, Spec spec, uint64_t target) except -1:
        """Copy a value to memory in C order."""
        cdef Instruction* instruction
        cdef uint64_t addresses[2]
        cdef Walk walk
        if spec.size == 0:
            return 0
        if place.strides < 0:
            instruction = self.next(node, COPY)
            instruction.data[0] = <char*>place.address
            instruction.data[1] = <char*>target
            instruction.work = spec.nbytes
            return 0
        plan(&walk, spec)
        join_memory(&walk, NULL, self.pool + place.strides)
        join_array(&walk, NULL, spec, NULL)
        addresses[0], addresses[1] = place.address, target
        return self.emit_tiled(node, &walk, copy_loop(spec.itemsize), addresses)

    cdef int emit_operands(self, int32_t node, int kind, op, list symbols, npy_intp work) except -1:
        """Emit an instruction that an object runs, with any number of operands."""
        cdef Instruction* instruction = NULL
        cdef int32_t i
        for i in range(len(symbols)):
            if i % N_OPERANDS == 0:
                instruction = self.next(node, OPERANDS if i else kind)
                if i == 0:
                    instruction.loop = <const Loop*><PyObject*>op
                    instruction.geometry = len(symbols)
                    instruction.work = work
            instruction.data[i % N_OPERANDS] = (
                <char*>self.layout.places[<int32_t>symbols[i]].address)
            if i == 0 and kind == CONTROL:
                self.lives[self.n_code - 1] += (<Subprogram>op).peak_bytes
                self.layout.peak = max(self.layout.peak, self.lives[self.n_code - 1])
        return 0

    cdef int emit_zero(self, int32_t node, uint64_t target, npy_intp nbytes) except -1:
        cdef Instruction* instruction
        if nbytes:
            instruction = self.next(node, ZERO)
            instruction.data[0] = <char*>target
            instruction.work = nbytes
        return 0
