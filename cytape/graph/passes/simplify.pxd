# All passes that look at one node at a time, in one traversal.

from libc.stdint cimport int32_t

from .rewriting cimport Rewriting

# Copy a node whose outputs get the specs that follow from its inputs', or find it to be needless.
cdef int copy_with_specs(Rewriting rewriting, int32_t node) except -1
