

cdef enum Derivative:
    IN_A = 0
    IN_B = 1
    IN_AA = 2
    IN_AB = 3
    IN_BB = 4

cdef double beta_in_shape(double a, double b, double z, int which) noexcept nogil
cdef double beta_level(double a, double b, double x, double y) noexcept nogil
