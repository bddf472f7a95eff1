cimport cython
from libc.math cimport M_PI, M_PI_2, cos, fabs, fma, rint, sin

ctypedef float complex complex64
ctypedef double complex complex128

cdef extern from "<complex.h>" nogil:
    complex128 csin(complex128)
    complex128 ccos(complex128)

ctypedef fused number:
    float
    double
    complex64
    complex128


cdef double reduced_square(double x) noexcept nogil:
    """Return x**2 modulo 4, with the digits that the rounded square lacks."""
    if fabs(x) >= 18014398509481984.0:  # 2**54: a multiple of 4
        return 0 * x
    cdef double square = x * x
    cdef double rest = fma(x, x, -square)
    return square - 4 * rint(0.25 * square) + (rest - 4 * rint(0.25 * rest))


@cython.ufunc
cdef (number, number) sine_cosine_of_square(number x) noexcept nogil:
    cdef double angle
    cdef complex128 complex_angle
    if number is float or number is double:
        angle = M_PI_2 * reduced_square(x)
        return <number>sin(angle), <number>cos(angle)
    else:
        complex_angle.real = M_PI_2 * (reduced_square(x.real) - reduced_square(x.imag))
        complex_angle.imag = M_PI * x.real * x.imag
        return <number>csin(complex_angle), <number>ccos(complex_angle)
