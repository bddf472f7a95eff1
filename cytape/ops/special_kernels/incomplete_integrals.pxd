cdef enum:  # derivatives
    IN_A = 0
    IN_B = 1
    IN_AA = 2
    IN_AB = 3
    IN_BB = 4

cdef void beta_in_shapes(
    double a, double b, double x, double y, double power, unsigned int wanted,
    double* slopes) noexcept nogil
cdef double beta_level(double a, double b, double x, double y) noexcept nogil
