# NodeStore: the nodes of a graph, in flat arrays like the ops of a tape.
#
#     symbols[12]   = { node 7, id 1041, spec }             value of a symbolic tensor
#     nodes[7]      = { inputs 30, n_inputs 2, first_output 12, n_outputs 1, ... }
#     args[30..32]  = positions of the input symbols
#     ops[7], attrs[7]                                      Python lists: ops and attributes
#
# Positions count from 0. A node's inputs come before it, so nodes can run in order. An edit that
# would break this moves nodes; symbols never move.

from cpython.ref cimport PyObject
from cytape.core.typedefs cimport id_t
from cytape.tensor.values.spec cimport Spec
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport Value
from libc.stdint cimport int32_t

from .dispatch cimport Op

cdef struct Node:
    int32_t inputs          # begin of its row of args
    int32_t n_inputs
    int32_t first_output    # symbol
    int32_t n_outputs
    int32_t context         # position in `contexts`
    int32_t instruction     # position in `code` that built it
    PyObject* code          # owned, or NULL
    bint is_derivative      # built by a derivative

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
    cdef object code                 # code that all nodes count as built by; None: look at frames
    cdef int32_t instruction
    cdef int32_t differentiating     # nesting depth of derivatives being built
    # Nodes built in between have one place in the user's code; `end` takes the result of `begin`.
    cdef object begin_backward(self)
    cdef void end_backward(self, before) noexcept
    cdef public bint finalized
    cdef public bint has_control_inputs  # any node has, see control_inputs_of
    cdef public bint has_overrides       # some contexts have gradient functions for op types
    cdef bint has_new_specs              # specs of symbols may differ from those of held tensors
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
    # Append another graph's node unchanged; mapping[its symbol] = symbol here.
    cdef int32_t copy_node(self, NodeStore source, int32_t node,
                           const int32_t* mapping) except -1
    cdef Value value_at(self, int32_t symbol)
