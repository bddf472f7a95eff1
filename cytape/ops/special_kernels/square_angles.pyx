cimport cython
from libc.math cimport M_PI_2, cos, fma, rint, sin

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


@cython.ufunc
cdef (number, number) sine_cosine_of_square(number x) noexcept nogil:
    cdef double square, angle
    cdef complex128 complex_angle
    if number is float or number is double:
        square = <double>x * <double>x
        angle = M_PI_2 * (square - 4 * rint(0.25 * square) + fma(x, x, -square))
        return <number>sin(angle), <number>cos(angle)
    else:
        complex_angle = M_PI_2 * <complex128>x * <complex128>x
        return <number>csin(complex_angle), <number>ccos(complex_angle)
