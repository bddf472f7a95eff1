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


cdef enum:
    N_TERMS = 9

cdef double[N_TERMS] sine_terms, cosine_terms  # of Taylor series in t**2
sine_terms[:] = [1, -1 / 6., 1 / 120., -1 / 5040., 1 / 362880., -1 / 39916800., 1 / 6227020800.,
                 -1 / 1307674368000., 1 / 355687428096000.]
cosine_terms[:] = [1, -1 / 2., 1 / 24., -1 / 720., 1 / 40320., -1 / 3628800., 1 / 479001600.,
                   -1 / 87178291200., 1 / 20922789888000.]


cdef inline (double, double) sine_cosine_of_quarters(double turns) noexcept nogil:
    """Return sine and cosine of so many quarter turns, at most two: half the price of libm's."""
    cdef int quarter = <int>(turns + (0.5 if turns > 0 else -0.5)), k
    cdef double t = M_PI_2 * (turns - quarter), square = t * t, sine = 0, cosine = 0
    for k in range(N_TERMS - 1, -1, -1):
        sine = sine * square + sine_terms[k]
        cosine = cosine * square + cosine_terms[k]
    sine *= t
    if quarter & 1:
        sine, cosine = cosine, -sine
    if quarter & 2:
        sine, cosine = -sine, -cosine
    return sine, cosine


cdef double reduced_square(double x) noexcept nogil:
    """Return x**2 modulo 4, with the digits that the rounded square lacks."""
    if fabs(x) >= 18014398509481984.0:  # 2**54: a multiple of 4
        return 0 * x
    cdef double square = x * x
    cdef double rest = fma(x, x, -square)
    return square - 4 * rint(0.25 * square) + (rest - 4 * rint(0.25 * rest))


@cython.ufunc
cdef (number, number) sine_cosine_of_square(number x) noexcept nogil:
    cdef double sine, cosine
    cdef complex128 complex_angle
    if number is float or number is double:
        sine, cosine = sine_cosine_of_quarters(x * x if fabs(x) < 1 else reduced_square(x))
        return <number>sine, <number>cosine
    else:
        complex_angle.real = M_PI_2 * (reduced_square(x.real) - reduced_square(x.imag))
        complex_angle.imag = M_PI * x.real * x.imag
        return <number>csin(complex_angle), <number>ccos(complex_angle)


@cython.ufunc
cdef (number, number) sine_cosine_over(number x) noexcept nogil:
    if number is float or number is double:
        return <number>(sin(x) / x if x != 0 else 1), <number>(cos(x) / x)
    else:
        return <number>(csin(x) / x if x != 0 else 1), <number>(ccos(x) / x)
