# Backpropagation over one tape: the search for the needed ops, then one pass over them.

from .op_store cimport OpStore
from .typedefs cimport id_t
from .vspace cimport VSpace

# Fills results (one per source, NULL: unconnected) with new references. seeds[i] is the gradient of
# target i, an owned reference that is taken over, or NULL for "ones". infos[i] describes a target
# that is a source, too; it is NULL for other targets. consume: release every op, needed or not,
# exactly once.
cdef int backpropagate(OpStore store, VSpace vspace, const id_t* targets, Py_ssize_t n_targets,
                       void** seeds, void** infos, const id_t* sources, Py_ssize_t n_sources,
                       bint build_zeros, bint consume, void** results) except -1
