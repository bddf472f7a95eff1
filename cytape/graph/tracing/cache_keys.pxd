# Keys of traces: the signature of a call as a flat tuple of parts.
#
#     Spec                      a tensor or an array; (Spec, shape, dtype) if extents are unknown
#     (type, value)             a number, a string or the like; of floats the bits
#     (type, n), (dict, *keys)  a container, before its items
#     (OBJECT, type, id)        any other object
#     str                       a keyword, before its argument
#
# Each part determines the number of parts that belong to it, so different structures have different
# keys.

# Return whether x contains a tensor or a variable; parts of opaque objects do not count.
cdef int describe(x, list key, list tensors, list objects) except -1
cpdef tuple describe_arguments(tuple args, dict kwargs, bint in_order=*)
cpdef with_tensors(x, replace)
cpdef bint has_attributes(tuple key) except -1
