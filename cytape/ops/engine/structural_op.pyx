cimport cython
cimport numpy as cnp
from cpython.object cimport Py_EQ, PyObject_RichCompareBool
from cpython.ref cimport PyObject
from cytape.core.vspace cimport BackwardCall
from cytape.ops.kernels.moves cimport can_sum
from cytape.ops.kernels.walk cimport MAX_AXES
from cytape.tensor.values.spec cimport Spec, spec_of
from cytape.tensor.recording.state cimport Counts, accumulating, counts
from cytape.tensor.tensor cimport as_ndarray, new_tensor
from cytape.tensor.values.value cimport (
    array_of, copy_of_array, is_exclusive, is_uniform, new_value, value_of_array)
from numpy cimport npy_intp

from cytape.ops.calls.dispatch cimport (
    Lowering, attrs_of, conform, dense_value, frozen, input_ref, owned, tensor_value,
    with_lists_joined)
from cytape.ops.calls.symbolic cimport graph_for
from cytape.ops.calls.tangents cimport follow

from .tape_entry cimport items_of

from itertools import chain

from cytape.ops.kernels.moves import Moves as MovesOf
from cytape.ops.kernels.moves import outline

cnp.import_array()

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except *  # other return values vary
    void Py_LeaveRecursiveCall()
    PyObject* PyTuple_GET_ITEM(object t, Py_ssize_t i) noexcept  # borrowed
    Py_ssize_t PyTuple_GET_SIZE(object t) noexcept
    bint PyDict_Next(object d, Py_ssize_t* at, PyObject** key, PyObject** value) noexcept

cdef enum:
    MOST_LAYOUTS = 1024  # layouts that an op caches moves of
    MOST_BYTES = 1 << 21  # of cached moves; one layout may take more
    RECENT = 8           # cached layouts that are found by the addresses of their specs
    MANY = 16            # operands: calls with more take a slower path
    OBJECT_BYTES = 32    # of an attribute or one of its parts

cdef Counts* recorders = counts()
cdef dict structural_ops = {}  # by key


def structural_vjp(op, *gradients):
    """Compute the gradients of an op that declares no transpose."""
    return conform.structural_vjp(op, *gradients)


@cython.final
cdef class StructuralOp(GeneralOp):
    def __init__(self, str name, forward, pieces, transpose, batched=None, shape_rule=None,
                 bint makes_views=False):
        if transpose is None:
            transpose = structural_vjp
        GeneralOp.__init__(self, name, forward, transpose, saved_inputs=(), batched=batched,
                           linear=True, shape_rule=shape_rule)
        self.pieces = pieces
        self.makes_views = makes_views
        self.lowering = Lowering.MOVED
        self.key = name
        while self.key in structural_ops:  # a replaced op keeps its moves
            self.key += "'"
        structural_ops[self.key] = self
        self.known, self.known_nbytes = {}, 0
        self.recent = [None] * RECENT

    def __call__(self, *inputs, **attrs):
        cdef list values = None, read
        cdef Value out
        cdef Moves moves = None
        self.failure = None
        if not (recorders.symbolic and graph_for(inputs) is not None):
            values = read = values_if_any(inputs)
        if values is not None:
            moves = self.moves_of_values(values, attrs)
            if moves is None and not all_in_order(values):
                read = [in_c_order(value) for value in values]
                moves = self.moves_of_values(read, attrs)
        if moves is not None and moves.are_views:
            for x in inputs:
                if tensor_value(x) is None:  # an array, which may change
                    read = values = [
                        value if tensor_value(x) is not None else copy_of_array(array_of(value))
                        for x, value in zip(inputs, values)]
                    moves = self.moves_of_values(values, attrs)
                    break
        if moves is None or moves.sums and not can_sum(moves.targets[0]):
            result = GeneralOp.__call__(self, *inputs, **attrs)
            if self.failure is not None:
                error, self.failure = self.failure, None
                raise ValueError(f"the pieces or the shape rule of op {self.name!r} fail where its "
                                 f"forward function does not: {error}") from error
            return result
        if moves.in_tuple:
            result = self.call_many(moves, read, values, attrs)
            if self.makes_views:
                self.note_views(inputs, result, attrs)
            return result
        out = self.moved(moves, 0, read)
        tensor = new_tensor(out)
        if self.makes_views:
            self.note_views(inputs, tensor, attrs)
        if recorders.entered and out.spec.trainable:
            attrs = self.attrs_to_keep(attrs)
            self.record_few(items_of(values), <int>len(values), out, attrs)
            if recorders.accumulators.count:
                self.follow_by_loops(values, out, attrs)
        return tensor

    def move(self, *arrays, **attrs) -> tuple:
        """Return the results of moves on arrays of a dtype that can be summed."""
        cdef list values = [in_c_order(value_of_array(array)) for array in arrays]
        cdef Moves moves = self.moves_of_values(values, attrs)
        if moves is None:
            raise ValueError(
                f"op {attrs.get('of', self.name)!r} has no gradient with the attributes "
                f"{dict(attrs.get('attrs', attrs))}: its result does not consist of regions of its "
                "inputs")
        return tuple([array_of(moves.target(i, values, -1)) for i in range(len(moves.targets))])

    cdef Value moved(self, Moves moves, int target, list read):
        """Return a result: a view of an operand only if the op is declared to make views."""
        cdef Value out
        if moves.are_views and not self.makes_views:
            out = new_value(<Spec>moves.targets[target])
            moves.run_into(target, read, out, -1, False, False)
            return out
        out = moves.target(target, read, -1)
        out.is_part = moves.are_views
        return out

    cdef tuple call_many(self, Moves moves, list read, list values, dict attrs):
        cdef list outputs = [self.moved(moves, i, read) for i in range(len(moves.targets))]
        tensors = tuple([new_tensor(value) for value in outputs])
        if recorders.entered and (<Spec>moves.targets[0]).trainable:
            attrs = self.attrs_to_keep(attrs)
            self.record_call(values, outputs, attrs)
            if accumulating() is not None:
                follow(self, values, outputs, attrs)
        return tensors

    cdef dict attrs_to_keep(self, dict attrs):
        """Return attributes with frozen values; the dict already belongs to the call."""
        for attr in attrs.values():
            if not is_plain(attr):
                return {name: frozen(attr) for name, attr in attrs.items()}
        return attrs

    cdef Moves moves_of_values(self, list values, dict attrs):
        cdef PyObject* specs[MANY]
        cdef Py_ssize_t i, n = len(values)
        cdef bint in_order = True
        cdef Value value
        for i, value in enumerate(values):
            in_order &= value.contiguous
            if i < MANY:
                specs[i] = <PyObject*>value.spec
        if in_order and n <= MANY:
            return self.moves_in_order(specs, n, attrs)
        return self.moves_of(layout_of(values), attrs)

    cdef Moves moves_in_order(self, PyObject** specs, Py_ssize_t n, dict attrs):
        """Return the moves of operands in C order; recent calls are looked up first."""
        cdef size_t place = (<size_t>specs[0] >> 5) % RECENT
        cdef tuple before = self.recent[place]
        cdef Moves moves
        cdef Py_ssize_t i = 0, at = 0
        cdef PyObject* name
        cdef PyObject* attr
        if before is not None and PyTuple_GET_SIZE(before) == 1 + n + 2 * len(attrs):
            moves = <Moves>PyTuple_GET_ITEM(before, 0)
            while i < n and PyTuple_GET_ITEM(before, 1 + i) == specs[i]:
                i += 1
            while i >= n and PyDict_Next(attrs, &at, &name, &attr) and (
                    PyTuple_GET_ITEM(before, 1 + i) == name
                    and means_the_same(PyTuple_GET_ITEM(before, 2 + i), attr)):
                i += 2
            if i == n + 2 * len(attrs):
                return moves
        layout = objects_of(specs, n)
        moves = self.moves_of(layout, attrs)
        if moves is not None and all([is_plain(x) for x in attrs.values()]):
            self.recent[place] = (moves,) + layout + tuple(chain.from_iterable(attrs.items()))
        return moves

    cdef Moves moves_of(self, tuple layout, dict attrs):
        for attr in attrs.values():
            if not is_plain(attr):
                return self.new_moves(layout, attrs)
        key = layout + tuple(attrs.items())
        moves = self.known.get(key, self)
        if moves is self:
            moves = self.new_moves(layout, attrs)
            if self.failure is None:  # else every call raises
                self.remember(key, moves)
        return moves

    cdef int remember(self, tuple key, Moves moves) except -1:
        cdef Py_ssize_t nbytes = key_nbytes(key) + (0 if moves is None else moves.nbytes())
        self.known_nbytes += nbytes
        if len(self.known) >= MOST_LAYOUTS or self.known_nbytes > MOST_BYTES:
            self.known.clear()
            self.recent = [None] * RECENT
            self.known_nbytes = nbytes
        self.known[key] = moves
        return 0

    cdef Moves new_moves(self, tuple layout, dict attrs):
        cdef Spec spec
        cdef list sources = []
        n = layout.index(None) if None in layout else len(layout)
        if n > 1 and self.moving == 1:
            return None
        specs = layout[:n]
        for spec in specs:
            if not spec.known or not may_move(spec) or (
                    spec.type_num != (<Spec>specs[0]).type_num):
                return None
        if self.pieces is None:
            return None if len(layout) > n else transposed_moves(
                specs, attrs["of"], attrs["shapes"], attrs["attrs"])
        strides = layout[n + 1:] if len(layout) > n else [None] * n
        try:
            targets = self.shape_rule(*specs, **attrs)
            in_tuple = type(targets) is not Spec
            if not in_tuple:
                targets = (targets,)
            elif not targets:
                return None
            for spec in targets:
                if spec.type_num != (<Spec>specs[0]).type_num:
                    return None
            for spec, each in zip(specs, strides):
                sources.append(outline(spec, each))
            targets = [outline(spec) for spec in targets]
            return MovesOf(
                targets, sources, self.pieces(targets, sources, **attrs), in_tuple=in_tuple)
        except Exception as error:
            if self.is_users:
                self.failure = error
            return None  # NumPy raises

    cdef Value tangent_by_loops(self, list inputs, list tangents, dict attrs, bint batched):
        cdef list found = self.moved_tangents(inputs, tangents, attrs, batched)
        return None if found is None else found[0]

    cdef list moved_tangents(self, list inputs, list tangents, dict attrs, bint batched):
        cdef PyObject* specs[MANY]
        cdef Moves moves
        cdef Value value, tangent
        cdef npy_intp n_batch = -1
        cdef Py_ssize_t i, n = len(inputs)
        if n <= MANY:
            for i, value in enumerate(inputs):
                specs[i] = <PyObject*>value.spec
            moves = self.moves_in_order(specs, n, attrs)
        else:
            moves = self.moves_of(tuple([(<Value>x).spec for x in inputs]), attrs)
        if moves is None or moves.sums and not can_sum(moves.targets[0]):
            return None
        tangents = [tangent if tangent is None else as_read(tangent) for tangent in tangents]
        if batched:
            for i in range(moves.n_moves):
                if moves.moves[i].ndim == MAX_AXES:
                    return None  # no room for another axis
            for tangent in tangents:
                if tangent is not None:
                    n_batch = tangent.spec.dims[0]
        return [moves.target(i, tangents, n_batch) for i in range(len(moves.targets))]

    cdef object tangents(self, list inputs, list outputs, dict attrs, list tangents, bint plain,
                         bint batched):
        cdef list found = None
        if plain:
            found = self.moved_tangents(
                inputs, [None if x is None else value_of_array(x) for x in tangents], attrs,
                batched)
        if found is None:
            if batched and self.batch is None:
                return NotImplemented
            return GeneralOp.tangents(self, inputs, outputs, attrs, tangents, plain, batched)
        return tuple([array_of(value) for value in found])

    cdef bint takes_batches(self) noexcept:
        return True

    cdef bint backward_by_loops(self, BackwardCall* call) except -1:
        cdef int i, n_in = call.n_inputs, n_out = call.n_outputs
        cdef list gradients = [None] * n_out
        cdef PyObject* specs[MANY]
        cdef Value value
        cdef Moves moves
        cdef Spec spec
        cdef void* arrived
        if n_in <= MANY:
            for i in range(n_in):
                specs[i] = <PyObject*>input_ref(call, i)
            moves = self.moves_in_order(specs, n_in, attrs_of(call))
        else:
            moves = self.moves_of(objects_of(<PyObject**>call.refs + n_out, n_in),
                                  attrs_of(call))
        if moves is None:
            return False
        moves = moves.transpose()
        spec = moves.sources[0]
        if moves.sums and not can_sum(spec):
            return False
        for i in range(n_out):
            if call.output_gradients[i] != NULL:
                value = dense_value(<object>call.output_gradients[i])
                if value.spec.type_num != spec.type_num:
                    return False
                gradients[i] = as_read(value)
        for i in range(n_in):
            if not call.needed[i]:
                continue
            arrived = call.arrived[i]
            spec = moves.targets[i]
            if arrived != NULL and is_exclusive(<PyObject*>arrived) and (
                    (<Value>arrived).spec is spec) and moves.add_target(
                    i, gradients, <Value>arrived):
                continue
            call.input_gradients[i] = owned(moves.target(i, gradients, -1))
        return True


def structural_op(key):
    """Return the structural op of a key: its name, with a suffix if it was declared again."""
    return structural_ops[key]


cdef Moves transposed_moves(tuple gradients, of, shapes, attrs):
    """Return the transposed moves of an op for inputs of given shapes."""
    cdef StructuralOp op = structural_ops[of]
    cdef Moves moves = op.moves_of(
        tuple([spec_of(shape, (<Spec>gradients[0]).dtype) for shape in shapes]), dict(attrs))
    if moves is not None and moves.targets != gradients:
        raise ValueError(f"op {of!r} with inputs of shapes {shapes} has outputs {moves.targets}, "
                         f"not the gradients {gradients}")
    return None if moves is None else moves.transpose()


cdef list values_if_any(tuple inputs):
    """Return the values of operands; None if no operand itself is a tensor."""
    cdef list values = []
    cdef Value value
    cdef bint any_tensor = False, all_tensors = True
    for x in inputs:
        value = tensor_value(x)
        any_tensor |= value is not None
        all_tensors &= value is not None
        values.append(value)
    if not any_tensor:
        return None
    if not all_tensors:
        if with_lists_joined(inputs) is not None:
            return None
        for i, x in enumerate(inputs):
            if values[i] is None:
                values[i] = value_of_array(as_ndarray(x))
    return values


cdef Py_ssize_t key_nbytes(key) except -1:
    """Return the size in memory of a tuple of specs and attributes, nested ones included."""
    cdef Py_ssize_t nbytes = sizeof(void*) * len(key)
    for part in <tuple>key:
        nbytes += key_nbytes(part) if type(part) is tuple else OBJECT_BYTES
    return nbytes


cdef inline bint may_move(Spec spec) noexcept:
    """Return whether elements are numbers; other dtypes vary in size or in meaning."""
    return spec.type_num <= cnp.NPY_CLONGDOUBLE or spec.type_num == cnp.NPY_FLOAT16


cdef tuple objects_of(PyObject** row, Py_ssize_t n):
    cdef list objects = []
    cdef Py_ssize_t i
    for i in range(n):
        objects.append(<object>row[i])
    return tuple(objects)


cdef tuple layout_of(list values):
    cdef Value value
    cdef list parts = [(<Value>value).spec for value in values]
    if all_in_order(values):
        return tuple(parts)
    parts.append(None)
    for value in values:
        parts.append(None if value.contiguous else (<object>value.owner).strides)
    return tuple(parts)


cdef bint all_in_order(list values) except -1:
    cdef Value value
    for value in values:
        if not value.contiguous:
            return False
    return True


cdef Value as_read(Value value):
    """Return a value that moves of operands in C order can read."""
    return value if value.contiguous or is_uniform(value) else in_c_order(value)


cdef Value in_c_order(Value value):
    return value if value.contiguous else value_of_array(
        cnp.PyArray_NewCopy(array_of(value), cnp.NPY_CORDER))


cdef inline bint means_the_same(PyObject* plain, PyObject* attr) except -1:
    """Return whether an attribute is equal to a plain one, in type too."""
    if plain == attr:
        return True
    return plain.ob_type == attr.ob_type and is_plain(<object>attr) and (
        PyObject_RichCompareBool(<object>plain, <object>attr, Py_EQ))


cdef bint is_plain(attr) except -1:
    """Return whether equal attributes have equal types; 1 == True == 1.0 do not."""
    if attr is None or type(attr) is int or type(attr) is str:
        return True
    if type(attr) is not tuple:
        return False
    Py_EnterRecursiveCall(b" in an attribute: it is nested too deeply")
    try:
        for part in <tuple>attr:
            if not is_plain(part):
                return False
    finally:
        Py_LeaveRecursiveCall()
    return True
