# Simplification: the passes that rewrite one node at a time, in one traversal.

from libc.stdint cimport int32_t

from .rewriting cimport Rewriting

# Copy a node with output specs inferred from its inputs' specs, or remove it if it is redundant.
cdef int copy_with_specs(Rewriting rewriting, int32_t node) except -1
