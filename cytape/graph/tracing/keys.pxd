# Keys: what tells the calls of a traced function apart, as a flat tuple of parts.
#
#     Spec                      a tensor or an array; (Spec, shape, dtype) where extents are unknown
#     (type, value)             a number, a string or the like; of floats the bits
#     (type, n), (dict, *keys)  a container, before what is in it
#     (OBJECT, type, id)        any other object
#     str                       a keyword, before its argument
#
# A part says how many parts follow that belong to it, so that no two structures have the same key.

# Whether there is a tensor or a variable in x, but for those that are within other objects.
cdef int describe(x, list key, list tensors, list objects) except -1
cpdef tuple describe_arguments(tuple args, dict kwargs, bint in_order=*)
cpdef with_tensors(x, replace)
cpdef bint has_attributes(tuple key) except -1
