cimport cython
from cpython.object cimport PyObject
from cytape.ops.calls.dispatch cimport Op
from cytape.ops.calls.node_store cimport Node
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport Value, is_symbolic
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from .rewriting cimport ABSENT

cdef Op constant_op

import numpy as np

from cytape.ops.creation import constant_op

cdef enum:
    COMPARED_BYTES = 4096   # constants and arrays up to this size are compared by value


cdef bint may_merge(Rewriting rewriting, int32_t node) except -1:
    """Return whether an equal node may replace a node."""
    cdef Op op = <Op>rewriting.source.ops[node]
    if op.stateful or rewriting.pinned[node]:
        return False
    if rewriting.source.nodes[node].n_inputs:
        return True
    return op is constant_op  # other ops without inputs, such as placeholders, may differ in value


# ---- attributes

cdef bint is_atom(x) noexcept:
    cdef object kind = type(x)
    return (x is None or kind is int or kind is str or kind is bool or kind is bytes
            or kind is type)


cdef uint64_t mixed(uint64_t hash, uint64_t more) noexcept:
    hash = (hash ^ more) * <uint64_t>0x9E3779B97F4A7C15
    return hash ^ (hash >> 29)


cdef uint64_t hash_of(x) except? 0:
    """Return a hash of an attribute; attributes that are `same` have the same one."""
    cdef object kind = type(x)
    cdef uint64_t hash = <uint64_t><PyObject*>kind
    cdef Value value
    if is_atom(x):
        return mixed(hash, <uint64_t><Py_ssize_t>hash_python(x))
    if type(x) is tuple:
        for part in x:
            hash = mixed(hash, hash_of(part))
        return hash
    if type(x) is slice:
        return mixed(mixed(mixed(hash, hash_of(x.start)), hash_of(x.stop)), hash_of(x.step))
    if type(x) is Tensor:
        value = (<Tensor>x).held
        hash = mixed(hash, <uint64_t><PyObject*>value.spec)
        if is_plain(value):
            return mixed(hash, hash_of_bytes(value.data, value.spec.nbytes))
        return mixed(hash, <uint64_t><PyObject*>value)
    if isinstance(x, np.dtype):
        return mixed(hash, <uint64_t><Py_ssize_t>hash_python(x))
    if type(x) is float or type(x) is complex:
        return mixed(hash, <uint64_t><Py_ssize_t>hash_python(repr(x)))
    if type(x) is np.ndarray:
        if x.nbytes > COMPARED_BYTES or x.dtype.hasobject:
            return mixed(hash, <uint64_t><PyObject*>x)
        return mixed(hash, <uint64_t><Py_ssize_t>hash_python(x.tobytes()))
    return mixed(hash, <uint64_t><PyObject*>x)


cdef uint64_t hash_of_bytes(const char* data, Py_ssize_t nbytes) noexcept:
    cdef uint64_t hash = nbytes, word
    while nbytes > 0:
        word = 0
        memcpy(&word, data, min(nbytes, <Py_ssize_t>sizeof(uint64_t)))
        hash = mixed(hash, word)
        data += sizeof(uint64_t)
        nbytes -= sizeof(uint64_t)
    return hash


cdef Py_ssize_t hash_python(x) except? -1:
    return hash(x)


cdef bint same(x, y) except -1:
    """Return whether two attributes are equal: by value for known types, else by identity."""
    cdef Value a, b
    cdef Py_ssize_t i
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if is_atom(x) or isinstance(x, np.dtype):
        return x == y
    if type(x) is tuple:
        if len(x) != len(y):
            return False
        for i in range(len(x)):
            if not same(x[i], y[i]):
                return False
        return True
    if type(x) is slice:
        return same(x.start, y.start) and same(x.stop, y.stop) and same(x.step, y.step)
    if type(x) is float or type(x) is complex:
        return repr(x) == repr(y)  # 0.0 == -0.0, and NaN is not NaN
    if type(x) is Tensor:
        a, b = (<Tensor>x).held, (<Tensor>y).held
        return a is b or (a.spec is b.spec and is_plain(a) and is_plain(b)
                          and memcmp(a.data, b.data, a.spec.nbytes) == 0)
    if type(x) is np.ndarray:
        return (x.shape == y.shape and x.dtype == y.dtype and not x.dtype.hasobject
                and x.nbytes <= COMPARED_BYTES and x.tobytes() == y.tobytes())
    return False


cdef bint is_plain(Value value) noexcept:
    """Return whether a value can be compared by its bytes."""
    return not is_symbolic(value) and value.contiguous and value.spec.nbytes <= COMPARED_BYTES


cdef bint same_attrs(dict a, dict b) except -1:
    if a is b:
        return True
    if len(a) != len(b):
        return False
    for name, x in a.items():
        if name not in b or not same(x, b[name]):
            return False
    return True


# ---- nodes

@cython.final
cdef class NodeTable:
    def __cinit__(self, SymbolicGraph graph, int32_t n_nodes=0):
        self.graph = graph
        self.capacity = 64
        while self.capacity < 2 * n_nodes:
            self.capacity *= 2
        self.resize(0)

    def __dealloc__(self):
        free(self.places)
        free(self.hashes)

    cdef int32_t find(self, Rewriting rewriting, int32_t node, uint64_t* hash) except -2:
        cdef Node* sought = &rewriting.source.nodes[node]
        cdef Node* found
        cdef const int32_t* inputs = rewriting.source.args + sought.inputs
        cdef const int32_t* others
        cdef dict attrs = <dict>rewriting.source.attrs[node]
        cdef int32_t place, candidate, i
        cdef Op op = <Op>rewriting.source.ops[node]
        cdef uint64_t total = mixed(<uint64_t><PyObject*>op, sought.n_inputs)
        for i in range(sought.n_inputs):
            total = mixed(total, rewriting.mapping[inputs[i]])
        if len(attrs):
            for x in attrs.values():
                total ^= hash_of(x)
        hash[0] = total
        place = total & (self.capacity - 1)
        while self.places[place] != ABSENT:
            candidate = self.places[place]
            found = &self.graph.nodes[candidate]
            if (self.hashes[place] == total and found.n_inputs == sought.n_inputs
                    and self.graph.ops[candidate] is op):
                others = self.graph.args + found.inputs
                for i in range(found.n_inputs):
                    if others[i] != rewriting.mapping[inputs[i]]:
                        break
                else:
                    if same_attrs(attrs, <dict>self.graph.attrs[candidate]):
                        return candidate
            place = (place + 1) & (self.capacity - 1)
        return ABSENT

    cdef int put(self, int32_t node, uint64_t hash) except -1:
        cdef int32_t place
        if 2 * self.count >= self.capacity:
            self.capacity *= 2
            self.resize(self.capacity // 2)
        place = hash & (self.capacity - 1)
        while self.places[place] != ABSENT:
            place = (place + 1) & (self.capacity - 1)
        self.places[place] = node
        self.hashes[place] = hash
        self.count += 1
        return 0

    cdef int resize(self, int32_t before) except -1:
        """Resize the table to `capacity` places."""
        cdef int32_t* places = self.places
        cdef uint64_t* hashes = self.hashes
        cdef int32_t place
        self.places = <int32_t*>malloc(self.capacity * sizeof(int32_t))
        self.hashes = <uint64_t*>malloc(self.capacity * sizeof(uint64_t))
        if self.places == NULL or self.hashes == NULL:
            free(places)
            free(hashes)
            raise MemoryError()
        memset(self.places, 0xff, self.capacity * sizeof(int32_t))  # ABSENT everywhere
        self.count = 0
        for place in range(before):
            if places[place] != ABSENT:
                self.put(places[place], hashes[place])
        free(places)
        free(hashes)
        return 0


cdef int copy_or_merge(Rewriting rewriting, NodeTable table, int32_t node) except -1:
    """Copy a node unless an equal one exists."""
    cdef uint64_t hash
    cdef int32_t found, i, first, symbol
    if not may_merge(rewriting, node):
        rewriting.copy(node)
        return 0
    found = table.find(rewriting, node, &hash)
    if found == ABSENT:
        table.put(rewriting.copy(node), hash)
        return 0
    first = rewriting.source.nodes[node].first_output
    symbol = rewriting.target.nodes[found].first_output
    rewriting.target.nodes[found].is_derivative &= rewriting.source.nodes[node].is_derivative
    for i in range(rewriting.source.nodes[node].n_outputs):
        if rewriting.mapping[first + i] == ABSENT:
            rewriting.mapping[first + i] = symbol + i
    rewriting.note(node, found)
    return 0
