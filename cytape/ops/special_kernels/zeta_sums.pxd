# Derivatives in s of Hurwitz's zeta function, as a ufunc zeta_derivative(k, s, q) of order k <= 15.
#
# The first terms are summed; the formula of Euler and Maclaurin gives the others (DLMF 25.11.28).
# Its derivatives are those of a power series in s, times those of (q + N_SUMMED)**-s.

ctypedef float complex complex64
ctypedef double complex complex128

cdef enum:
    N_SUMMED = 7
    N_BERNOULLI = 8
    MAX_ORDER = 15

cdef double[N_SUMMED + 1] logs         # of 1, 2, ...
cdef double[N_BERNOULLI] coefficients  # B(2j) / (2j)!, j = 1, 2, ...
