# SymbolicGraph: a NodeStore that op calls with symbolic tensors are added to.

from cytape.tensor.values.spec cimport Spec
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.value cimport Value, is_symbolic, symbol_of
from libc.stdint cimport int32_t, uint64_t

from .dispatch cimport Op
from .node_store cimport NodeStore

cdef struct Number:
    uint64_t bits
    int32_t type_num        # 0: empty
    int32_t symbol

cdef class SymbolicGraph(NodeStore):
    cdef dict numbers                # a Python scalar, and a dtype -> its symbol
    cdef Number[16] recent_numbers   # the last ones of float dtypes

cpdef SymbolicGraph graph_for(inputs)
cdef object build(SymbolicGraph graph, Op op, inputs, dict attrs)
cdef int32_t number(SymbolicGraph graph, x, Spec like) except -1
cdef SymbolicGraph graph_of(x, y)
cdef int32_t own_symbol(SymbolicGraph graph, x) except -2  # of a Value or Tensor, or -1
cdef int32_t append1(SymbolicGraph graph, Op op, dict attrs, int32_t x, Spec spec) except -1
cdef int32_t append2(SymbolicGraph graph, Op op, int32_t x, int32_t y, Spec spec) except -1
cdef tuple call_of_node(SymbolicGraph graph, int32_t node)
cdef dict NO_ATTRS


cdef inline Value own_value(SymbolicGraph graph, x):
    """Return the value of a symbolic tensor, None for other objects."""
    cdef Value value
    if type(x) is Tensor:
        value = (<Tensor>x).held
        if is_symbolic(value) and value.owner is graph:
            return graph.value_at(<int32_t>symbol_of(value)) if graph.has_new_specs else value
    return None
