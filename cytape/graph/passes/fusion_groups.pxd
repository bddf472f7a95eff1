# Groups of elementwise ops that become one op each.
#
# Every node gets a stage: that of its inputs, one more where it uses what a group computes and
# does not belong to that group itself. Nodes of one stage and one kind (shape and dtype) may go
# together: a value that leaves a group is at a later stage for ever, so no path comes back, and the
# groups can run one after the other.

from cpython.ref cimport PyObject
from cytape.ops.calls.dispatch cimport Op
from cytape.ops.calls.symbolic cimport SymbolicGraph
from cytape.tensor.values.spec cimport Spec
from libc.stdint cimport int32_t

from .rewriting cimport Rewriting

cdef Op broadcast_to_op

cdef class FusionGroups:
    cdef Rewriting rewriting
    cdef SymbolicGraph source
    cdef Py_ssize_t least       # elements
    cdef void* memory
    cdef PyObject** kinds       # per node: the Spec of its group's floats, or NULL: not to be fused
    # Per node:
    cdef int32_t* stages
    cdef int32_t* cuts          # the input that must be in another group, or ABSENT
    cdef int32_t* firsts        # the first member of the node's group so far
    cdef int32_t* lasts         # the last producer of a large operand that only the group reads
    cdef int32_t* breaks        # nodes up to it that compute large arrays outside of groups
    cdef int32_t* limits        # the latest possible stage
    cdef int32_t* parents       # union-find: towards the group's representative, its first node
    cdef int32_t* sizes         # of the group, at its representative
    cdef int32_t* nexts         # the group's next member, or ABSENT
    cdef int32_t* befores       # a stateful node: the one before it, or ABSENT
    cdef char* is_sum
    cdef char* fast             # sine or cosine that may be computed by the faster loop
    cdef char* joins            # at `limits` it meets a consumer of its kind
    cdef char* is_last          # no member of its group stands behind it
    cdef char* fetched
    # Per symbol:
    cdef int32_t* uses
    cdef int32_t* users         # the last node seen that reads it
    cdef char* escapes          # used outside the group that computes it

    cdef int32_t producer(self, int32_t symbol) noexcept
    cdef int32_t seen_through(self, int32_t symbol) except -2
    cdef int32_t input_of(self, int32_t node, int32_t i) except -2
    cdef PyObject* kind_of(self, int32_t node) except? NULL
    cdef PyObject* kind_of_sum(self, int32_t node, Spec out) except? NULL
    cdef int distance(self, int32_t node, int32_t user) noexcept
    cdef int assign_stages(self) except -1
    cdef int cut(self, int32_t node) except -1
    cdef int32_t fused_input(self, int32_t node, int32_t i) except -2
    cdef int choose_fast(self) except -1
    cdef int sink(self) except -1
    cdef int32_t root(self, int32_t node) noexcept
    cdef int join(self, int32_t node, int32_t other) noexcept
    cdef int count_breaks(self) except -1
    cdef bint may_share(self, int32_t node, int32_t other) noexcept
    cdef int form_groups(self) except -1
    cdef int find_escapes(self) except -1

cdef bint any_large(SymbolicGraph graph, Py_ssize_t least) except -1
