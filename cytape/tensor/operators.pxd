# Operators and functions that tensors call: slots for ops of the higher package `ops`, which derive
# from Operator and are registered here.

cdef class Operator:
    cdef object call1(self, x)
    cdef object call2(self, x, y)
    cdef int assign(self, x, index, value) except -1  # x[index] = value

cdef class Operators:  # under the names of NumPy's ufuncs
    cdef public Operator add, subtract, multiply, divide, matmul, power, floor_divide, remainder
    cdef public Operator negative, positive, absolute, square, getitem
    cdef public Operator less, less_equal, equal, not_equal, greater, greater_equal
    cdef public Operator set_item  # None until the first update imports it

cdef Operators operators
cdef dict functions  # other functions that tensors call, by name
