# Orthogonal polynomials of a degree n and an argument x, as ufuncs for real and complex x.
#
#     by_degrees(eval_chebyt)      eval_chebyt(n, x): whole n of floats are SciPy's integers
#     derivatives(...)(n, j, x)    the j-th derivative
#
# Gegenbauer's polynomials R(n, a; x) with R = 1 at x = 1 have the derivatives
# n (n + 2a) / (2a + 1) R(n - 1, a + 1; x). They are the polynomials of Chebyshev (a = 0 and, times
# n + 1, a = 1) and Legendre (a = 1/2). Whole degrees take the recurrence, for blocks of arguments
# that share n and j; others, and those above a million, the hypergeometric function (DLMF 18.5.9).

from cytape.ops.kernels.ufunc_loops cimport Loop

cdef enum:
    N_BLOCK = 64

cdef struct Degrees:
    Loop whole, real  # SciPy's loops; without one the result is NaN

cdef struct Polynomials:
    double a
    double amplitude, scale, shift  # amplitude * R(n, a; scale * x + shift)
    bint is_hermite                 # those of Hermite, normed as He(n; x) = x**n + ...
    Loop[2] hypergeometric          # SciPy's, real and complex
