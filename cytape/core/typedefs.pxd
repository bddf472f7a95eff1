# The two integer types of the core.

from libc.stdint cimport int32_t, int64_t

ctypedef int64_t id_t  # a tensor's id: assigned by the host, never reused, >= 0

# A position in one tape's arrays: half the memory traffic of an id on the hot path. Growth past
# 2**31 - 1 entries is an error, never a wrap.
ctypedef int32_t index_t

cdef enum:
    NO_ID = -1           # the id of no tensor (a literal constant, say)
    NO_INDEX = -1
