# NodeTable: hash table of the nodes of a graph by op, attributes and inputs, to find equal nodes.

from cytape.ops.calls.symbolic cimport SymbolicGraph
from libc.stdint cimport int32_t, uint64_t

from .rewriting cimport Rewriting

cdef class NodeTable:
    cdef SymbolicGraph graph
    cdef int32_t* places         # of nodes, ABSENT where free; open addressing
    cdef uint64_t* hashes        # per place
    cdef int32_t capacity, count
    # A node of the target that equals a node of the source, ABSENT if there is none; `hash` is for
    # `put`.
    cdef int32_t find(self, Rewriting rewriting, int32_t node, uint64_t* hash) except -2
    cdef int put(self, int32_t node, uint64_t hash) except -1
    cdef int resize(self, int32_t before) except -1

cdef int copy_or_merge(Rewriting rewriting, NodeTable table, int32_t node) except -1
cdef bint may_merge(Rewriting rewriting, int32_t node) except -1
