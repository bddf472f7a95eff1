# NodeStore: a graph, stored as the tape stores its ops.
#
#     symbols[12]   = { node 7, id 1041, spec }             what a symbolic tensor stands for
#     nodes[7]      = { inputs 30, n_inputs 2, first_output 12, n_outputs 1, ... }
#     args[30..32]  = positions of the input symbols
#     ops[7], attrs[7]                                      Python lists: what is called, with what
#
# Positions count from 0. A node's inputs stand before it: the order of the nodes is an order in
# which they can run. An edit that would break this moves nodes; symbols never move.

from cpython.ref cimport PyObject
from cytape.core.typedefs cimport id_t
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport Value
from libc.stdint cimport int32_t

from .dispatch cimport Op

cdef struct Node:
    int32_t inputs          # where its row of args begins
    int32_t n_inputs
    int32_t first_output    # symbol
    int32_t n_outputs
    int32_t context         # position in `contexts`
    int32_t instruction     # where in `code` it was built
    PyObject* code          # owned, or NULL
    bint is_derivative      # built while something was differentiated

cdef struct Symbol:
    id_t id
    PyObject* spec          # owned
    int32_t node

cdef class NodeStore:
    cdef Node* nodes
    cdef Symbol* symbols
    cdef int32_t* args
    cdef readonly int32_t n_nodes, n_symbols, n_args
    cdef int32_t nodes_capacity, symbols_capacity, args_capacity
    cdef readonly list ops, attrs    # per node
    cdef readonly list stateful      # nodes, in order
    # Settings under which ops are built, as set by the graph's context managers.
    cdef readonly list contexts
    cdef int32_t context             # the present one
    cdef object code                 # where all nodes are said to be built, or None: look each time
    cdef int32_t instruction
    cdef int32_t differentiating     # how many derivatives are being built, one within another
    # One place for all nodes until the end, which takes what the beginning returned.
    cdef object begin_backward(self)
    cdef void end_backward(self, before) noexcept
    cdef public bint finalized
    cdef public bint has_control_inputs  # any node has, see control_inputs_of
    cdef public bint has_overrides       # some contexts have gradient functions for op types
    cdef bint has_new_specs              # symbols may have others than the tensors that are held
    cdef object __weakref__
    cdef Py_ssize_t size_of_nodes(self) noexcept               # in bytes, without attributes
    cdef int32_t valid_node(self, int32_t node) except -1      # itself, if there is such a node
    cdef int32_t valid_symbol(self, int32_t symbol) except -1
    cdef Tensor new_source(self, Op op, dict attrs, Spec spec)
    cdef int32_t append(self, Op op, dict attrs, const int32_t* inputs, int32_t n_inputs,
                        int32_t n_outputs) except -1   # then its outputs, one by one
    cdef int reserve(self, int32_t n_inputs, int32_t n_outputs) except -1
    cdef int32_t append_symbol(self, Spec spec) except -1
    cdef int own_shape(self, int32_t symbol, Spec spec) except -1
    # Append another graph's node as it is; mapping[its symbol]: what that is here.
    cdef int32_t copy_node(self, NodeStore source, int32_t node,
                           const int32_t* mapping) except -1
    cdef Value value_at(self, int32_t symbol)
