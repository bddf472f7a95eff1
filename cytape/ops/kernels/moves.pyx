cimport numpy as cnp
from cytape.tensor.values.spec cimport scalar_spec, spec_of
from cytape.tensor.values.value cimport in_c_order, is_uniform, new_value, strided_value
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy
from numpy cimport ndarray

from .move_geometry cimport count, find_view, is_whole, repeats_of, sort_axes
from .sums cimport add_loop_of, zeros
from .ufunc_loops cimport Loop, copy_loop
from .walk cimport MAX_AXES, begin, join_memory, run

import numpy as np

cnp.import_array()

cdef enum:
    HEADER = 16  # bytes of malloc's own data in front of a block

cdef npy_intp[MAX_AXES + 1] ZERO_STRIDES


def outline(Spec spec not None, strides=None) -> np.ndarray:
    """Return an array of a spec (and strides) with untouched memory, used for addresses only."""
    cdef npy_intp lowest = 0, highest = 0, reach
    if strides is None:
        return np.empty(spec.shape, spec.dtype)
    for extent, stride in zip(spec.shape, strides, strict=True):
        reach = (max(extent, 1) - 1) * stride
        lowest += min(reach, 0)
        highest += max(reach, 0)
    return np.ndarray(spec.shape, spec.dtype, np.empty(highest - lowest + spec.itemsize, np.int8),
                      -lowest, strides)


cdef class Moves:
    """Moves between outlines.

    Parameters
    ----------
    targets, sources : sequence of ndarray
        Results of `outline`.
    pieces : iterable
        Pairs of a part of a target and of a source, the latter broadcast to the former.
    in_tuple : bool, optional
        Whether results are returned in a tuple, even a single one.

    Raises
    ------
    ValueError
        If a piece is not a view of an outline.
    """

    def __init__(self, targets, sources, pieces, bint in_tuple=False):
        cdef Py_ssize_t n = 0
        cdef Move* move
        cdef ndarray written, read
        cdef int axis
        pieces = viewed(pieces, targets, sources)
        self.allocate(len(pieces))
        self.in_tuple = in_tuple
        self.targets = tuple([spec_of(x.shape, x.dtype) for x in targets])
        self.sources = tuple([spec_of(x.shape, x.dtype) for x in sources])
        target_places, source_places = Places(targets), Places(sources)
        dtype = targets[0].dtype if targets else None
        for written, read in pieces:
            move = &self.moves[n]
            self.shape_move(move, cnp.PyArray_NDIM(written))
            if written.dtype != dtype or read.dtype != dtype:
                raise ValueError("pieces must be views of the outputs and inputs, of dtype "
                                 f"{dtype}, got {written.dtype} and {read.dtype}")
            move.target = target_places.find(written, &move.write_offset)
            move.source = source_places.find(read, &move.read_offset)
            for axis in range(move.ndim):
                move.dims[axis] = cnp.PyArray_DIMS(written)[axis]
                move.read_strides[axis] = cnp.PyArray_STRIDES(read)[axis]
                move.write_strides[axis] = cnp.PyArray_STRIDES(written)[axis]
            sort_axes(move)
            n += 1
        self.find_counts()

    cdef Py_ssize_t nbytes(self) except -1:
        cdef Py_ssize_t of_axes = 0
        cdef int i
        for i in range(self.n_moves):
            of_axes += HEADER + (3 * self.moves[i].ndim + 1) * sizeof(npy_intp)
        return 2 * (self.n_moves * (sizeof(Move) + sizeof(int)) + of_axes) + 2 * sizeof(void*) * (
            len(self.targets) + len(self.sources))

    cdef int allocate(self, int n) except -1:
        self.moves = <Move*>calloc(max(n, 1), sizeof(Move))
        if self.moves == NULL:
            raise MemoryError()
        self.n_moves = n
        return 0

    cdef int shape_move(self, Move* move, int ndim) except -1:
        move.dims = <npy_intp*>calloc(3 * ndim + 1, sizeof(npy_intp))
        if move.dims == NULL:
            raise MemoryError()
        move.ndim = ndim
        move.read_strides = move.dims + ndim
        move.write_strides = move.dims + 2 * ndim
        return 0

    def __dealloc__(self):
        cdef int i
        for i in range(self.n_moves if self.moves != NULL else 0):
            free(self.moves[i].dims)
        free(self.moves)
        free(self.begins)

    cdef int sort_by_target(self) except -1:
        cdef int i, n = <int>len(self.targets)
        self.begins = <int*>calloc(n + 2 + self.n_moves, sizeof(int))
        if self.begins == NULL:
            raise MemoryError()
        self.by_target = self.begins + n + 2
        for i in range(self.n_moves):
            self.begins[self.moves[i].target + 2] += 1
        for i in range(n):
            self.begins[i + 2] += self.begins[i + 1]
        for i in range(self.n_moves):  # begins[t + 1] advances from the begin of target t
            self.by_target[self.begins[self.moves[i].target + 1]] = i
            self.begins[self.moves[i].target + 1] += 1
        return 0

    cdef int find_counts(self) except -1:
        """Count the writes to elements of the targets."""
        cdef Spec spec
        cdef list counts = []
        cdef int i
        self.sort_by_target()
        self.are_views = self.n_moves == len(self.targets)
        for i in range(self.n_moves):
            spec = self.targets[i] if self.are_views else None
            if spec is None or self.moves[i].target != i or not is_whole(&self.moves[i], spec):
                self.are_views = False
                break
        self.fills = self.are_views
        self.sums = self.begins_whole = False
        self.repeats = 0
        if self.are_views:
            return 0
        self.fills = True
        for spec in self.targets:
            counts.append(np.zeros(spec.shape, np.uint8))
        for i in range(self.n_moves):
            spec = self.targets[self.moves[i].target]
            count(&self.moves[i], <ndarray>counts[self.moves[i].target], spec.itemsize)
        for each in counts:
            self.fills &= not each.size or each.min() == each.max() == 1
            self.sums |= each.size > 0 and each.max() > 1
        if self.sums and len(self.targets) == len(self.sources) == 1:
            often = [repeats_of(&self.moves[i], self.targets[0]) for i in range(self.n_moves)]
            self.repeats = sum(often) if all(often) else 0
        self.begins_whole = self.sums and len(self.targets) == 1 and is_whole(
            &self.moves[0], self.targets[0])
        return 0

    cdef Moves transpose(self):
        cdef Moves other
        cdef Move* move
        cdef int i
        if self.transposed is None:
            other = Moves.__new__(Moves)
            other.allocate(self.n_moves)
            other.targets, other.sources = self.sources, self.targets
            other.in_tuple = len(other.targets) > 1
            for i in range(self.n_moves):
                move = &other.moves[i]
                other.shape_move(move, self.moves[i].ndim)
                memcpy(move.dims, self.moves[i].dims, move.ndim * sizeof(npy_intp))
                memcpy(move.read_strides, self.moves[i].write_strides,
                       move.ndim * sizeof(npy_intp))
                memcpy(move.write_strides, self.moves[i].read_strides,
                       move.ndim * sizeof(npy_intp))
                move.source, move.target = self.moves[i].target, self.moves[i].source
                move.read_offset = self.moves[i].write_offset
                move.write_offset = self.moves[i].read_offset
                sort_axes(move)
                other.put_in_order(move)
            other.find_counts()
            self.transposed = other
        return self.transposed

    cdef int put_in_order(self, Move* move) except -1:
        """Reorder a move that writes a whole target, so that it writes in C order."""
        cdef Spec spec = self.targets[move.target]
        cdef npy_intp strides[MAX_AXES]
        cdef npy_intp offset = move.read_offset, stride = spec.itemsize
        cdef int axis
        if not find_view(spec, move.ndim, move.dims, move.write_strides, move.write_offset,
                         move.read_strides, &offset, strides):
            return 0
        free(move.dims)
        move.dims = NULL
        self.shape_move(move, spec.ndim)
        move.read_offset, move.write_offset = offset, 0
        for axis in range(spec.ndim - 1, -1, -1):
            move.dims[axis] = spec.dims[axis]
            move.read_strides[axis] = strides[axis]
            move.write_strides[axis] = stride
            stride *= spec.dims[axis]
        return 0

    cdef Value target(self, int target, list sources, npy_intp n_batch):
        cdef Spec spec = self.targets[target]
        cdef npy_intp strides[MAX_AXES + 1]
        cdef Value out, source
        cdef Move* move
        cdef int lead = n_batch >= 0
        cdef bint is_shown = spec.nbytes > COPIED_BYTES or n_batch > 1
        if is_shown and self.fills:
            source = one_of([sources[self.moves[target].source]] if self.are_views else sources)
            if source is not None:
                return strided_value(batch_of(spec, n_batch), source.data, ZERO_STRIDES, source)
        if self.repeats and n_batch < 0 and sources[0] is not None and is_uniform(sources[0]):
            return repeated(spec, summed(sources[0], self.repeats), is_shown)
        if is_shown and self.are_views:
            move = &self.moves[target]
            source = sources[move.source]
            if source is None:
                return zeros(batch_of(spec, n_batch))
            strides[0] = (<Spec>self.sources[move.source]).nbytes
            memcpy(strides + lead, move.read_strides, move.ndim * sizeof(npy_intp))
            return strided_value(batch_of(spec, n_batch), source.data + move.read_offset, strides,
                                 source)
        if self.are_views and n_batch < 0:
            move = &self.moves[target]
            source = sources[move.source]
            if source is not None and in_c_order(spec, move.read_strides) and (
                    not is_uniform(source)):
                out = new_value(spec)
                memcpy(out.data, source.data + move.read_offset, spec.nbytes)
                return out
        if (self.fills or self.begins_whole) and None not in sources:
            out = new_value(batch_of(spec, n_batch))
        else:
            out = zeros(batch_of(spec, n_batch))
        self.run_into(target, sources, out, n_batch, self.sums, self.begins_whole)
        return out

    cdef bint add_target(self, int target, list sources, Value total):
        if not can_sum(total.spec):
            return False
        self.run_into(target, sources, total, -1, True, False)
        return True

    cdef int run_into(self, int target, list sources, Value out, npy_intp n_batch, bint adding,
                      bint anew) except -1:
        """Run the moves to a target; anew: the first one overwrites it, the others add."""
        cdef Spec spec = self.targets[target]
        cdef Value source
        cdef Walk walk
        cdef int i, place, operand, axis
        cdef Loop* loop = add_loop_of(spec) if adding else NULL
        cdef npy_intp steps[3]
        cdef bint uniform, adds
        if adding and loop == NULL:
            raise TypeError(f"several elements of {spec.dtype} would be added in one place, but "
                            "only floats and complex numbers are: convert them first")
        if n_batch == 0:
            return 0
        for place in range(self.begins[target], self.begins[target + 1]):
            i = self.by_target[place]
            source = sources[self.moves[i].source]
            if source is None:
                continue
            uniform, adds = is_uniform(source), adding and not (anew and i == 0)
            self.join(&walk, i, source.data, out.data, adds, uniform)
            if n_batch >= 0:  # the batch axis, outermost
                steps[0] = steps[2] = spec.nbytes
                steps[1] = 0 if uniform else source.spec.nbytes // n_batch
                if not adds:
                    steps[0], steps[1] = steps[1], steps[0]
                for operand in range(walk.n_operands):
                    for axis in range(walk.n_axes, 0, -1):
                        walk.strides[operand][axis] = walk.strides[operand][axis - 1]
                    walk.strides[operand][0] = steps[operand]
                for axis in range(walk.n_axes, 0, -1):
                    walk.extents[axis] = walk.extents[axis - 1]
                walk.extents[0] = n_batch
                walk.n_axes += 1
            begin(&walk)
            run(loop if adds else copy_loop(spec.itemsize), &walk, out.spec.nbytes)
        return 0

    cdef int join(self, Walk* walk, int move, char* source, char* target, bint twice,
                  bint uniform=False) noexcept:
        """Make the walk of a move; if it sums, the target is an operand and the result."""
        cdef Move* it = &self.moves[move]
        cdef int axis
        walk.n_axes = it.ndim
        walk.n_operands = 0
        for axis in range(it.ndim):
            walk.extents[axis] = it.dims[axis]
        if twice:
            join_memory(walk, target + it.write_offset, it.write_strides)
        if uniform:
            join_memory(walk, source, ZERO_STRIDES)
        else:
            join_memory(walk, source + it.read_offset, it.read_strides)
        join_memory(walk, target + it.write_offset, it.write_strides)
        return 0


cdef Value one_of(list sources):
    """Return one source if all sources repeat the same item, else None."""
    cdef Value source, first = None
    for source in sources:
        if source is not None and source.spec.size == 0:
            continue
        if source is None or not is_uniform(source):
            return None
        if first is None:
            first = source
        elif memcmp(first.data, source.data, first.spec.itemsize):
            return None
    return first


cdef Value summed(Value uniform, npy_intp n):
    """Return a multiple of the item of a uniform value."""
    cdef Value total = zeros(scalar_spec(uniform.spec))
    cdef char* data[3]
    cdef Loop* loop = add_loop_of(total.spec)
    if total.spec.type_num == cnp.NPY_DOUBLE:  # rounded once
        (<double*>total.data)[0] = n * (<double*>uniform.data)[0]
    else:
        data[0] = data[2] = total.data
        data[1] = uniform.data
        loop.function(data, &n, ZERO_STRIDES, loop.data)
    return total


cdef Value repeated(Spec spec, Value item, bint is_shown):
    cdef Value out
    cdef char* data[2]
    cdef npy_intp[2] strides = [0, spec.itemsize]
    cdef npy_intp n = spec.size
    cdef Loop* loop = copy_loop(spec.itemsize)
    if is_shown:
        return strided_value(spec, item.data, ZERO_STRIDES, item)
    out = new_value(spec)
    data[0], data[1] = item.data, out.data
    loop.function(data, &n, strides, loop.data)
    return out


cdef bint can_sum(Spec spec) noexcept:
    return add_loop_of(spec) != NULL and spec.type_num != cnp.NPY_FLOAT16


cdef Spec batch_of(Spec spec, npy_intp n):
    return spec if n < 0 else spec_of((n,) + spec.shape, spec.dtype)


cdef list viewed(pieces, targets, sources):
    """List the pieces that have elements; raise if one is not a view."""
    outlines = {id(x) for x in (*targets, *sources)}
    found = []
    for i, (part, of) in enumerate(pieces):
        for x in (part, of):
            if not isinstance(x, ndarray):
                raise ValueError(f"piece {i} is a number, not an array: for a part without axes "
                                 "write x[k, ...]")
            if x.base is None and id(x) not in outlines:
                raise ValueError(f"piece {i} is a copy: parts are views, as slices make them, "
                                 "not masks, arrays of positions or arithmetic")
        if part.size:
            found.append((part, of if of.shape == part.shape else np.broadcast_to(of, part.shape)))
    return found


cdef class Places:
    """Addresses of outlines, sorted, to find the outline that a part belongs to."""
    cdef list places

    def __init__(self, outlines):
        cdef ndarray x, memory
        self.places = []
        for i, x in enumerate(outlines):
            memory = x if (<object>x).base is None else (<object>x).base
            start = <size_t>cnp.PyArray_DATA(memory)
            self.places.append((start, start + <size_t>cnp.PyArray_NBYTES(memory),
                                <size_t>cnp.PyArray_DATA(x), i))
        self.places.sort()

    cdef int find(self, ndarray part, npy_intp* offset) except -1:
        """Return the number of the outline, and set the offset of the part in it."""
        cdef size_t first = <size_t>cnp.PyArray_DATA(part), last = first + part.itemsize
        cdef npy_intp reach
        cdef Py_ssize_t low = 0, high = len(self.places), middle
        cdef int axis
        for axis in range(cnp.PyArray_NDIM(part)):
            reach = (cnp.PyArray_DIMS(part)[axis] - 1) * cnp.PyArray_STRIDES(part)[axis]
            if reach < 0:
                first += reach
            else:
                last += reach
        while low < high:
            middle = (low + high) // 2
            if <size_t>self.places[middle][0] <= first:
                low = middle + 1
            else:
                high = middle
        if low:
            _, end, data, i = self.places[low - 1]
            if last <= end:
                offset[0] = <npy_intp>(<size_t>cnp.PyArray_DATA(part) - <size_t>data)
                return i
        raise ValueError("a piece must be a view of an output and one of an input, got a copy or a "
                         "view of another array")
