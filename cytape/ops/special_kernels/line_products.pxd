# Derivatives of products along lines of arrays in C order, by division or by recurrences.

ctypedef long double longdouble
ctypedef float complex floatcomplex
ctypedef double complex doublecomplex
ctypedef long double complex longdoublecomplex
ctypedef fused number:
    float
    double
    longdouble
    floatcomplex
    doublecomplex
    longdoublecomplex

cdef enum:
    LANES = 8  # lines that are gone through at once
