# Derivatives of incomplete gamma and beta functions in their shapes, as tail integrals or series of
# the density times scores. `power` scales the result: that of the gamma or beta function gives the
# derivative, 1 gives a ratio that does not underflow. Order 0 and `VALUE` are the function itself.

cdef enum:  # derivatives
    IN_A = 0
    IN_B = 1
    IN_AA = 2
    IN_AB = 3
    IN_BB = 4
    VALUE = 5
    LESS_IN_A = 6  # in a plus power / a, in b minus power / b: of the F distribution
    LESS_IN_B = 7

cdef bint has_gamma_series(double a, double x, int order) noexcept nogil
cdef double gamma_series(double a, double x, double power, int order) noexcept nogil
cdef double gamma_tail(
    double a, double x, double power, double level, int order, int sign) noexcept nogil
cdef double gamma_in_shape(double a, double x, double power, int order) noexcept nogil
cdef bint by_series(
    double a, double b, double x, double power, bint second, double* slopes) noexcept nogil
cdef double beta_tail(
    double a, double b, double x, double y, double power, int which) noexcept nogil
cdef int exchanged(int which) noexcept nogil
cdef void beta_in_shapes(
    double a, double b, double x, double y, double power, unsigned int wanted,
    double* slopes) noexcept nogil
cdef double beta_in_shape(double a, double b, double z, int which) noexcept nogil
cdef double beta_level(double a, double b, double x, double y) noexcept nogil
