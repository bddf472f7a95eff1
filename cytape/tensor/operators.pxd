# Operators and methods that Tensor calls: slots for ops of the higher package `ops`, which derive
# from Operator and are registered here.

cdef class Operator:
    cdef object call1(self, x)
    cdef object call2(self, x, y)
    cdef int assign(self, x, index, value) except -1  # x[index] = value

cdef Operator op_add, op_subtract, op_multiply, op_divide, op_matmul, op_power, op_floor_divide
cdef Operator op_remainder, op_negative, op_positive, op_absolute, op_square, op_getitem
cdef Operator op_set_item  # None until the first update imports these
cdef Operator op_less, op_less_equal, op_equal, op_not_equal, op_greater, op_greater_equal
cdef dict functions  # other functions that tensors call, by name
