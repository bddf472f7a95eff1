# Derivatives of characteristic values, as ufuncs for float32 and float64. `order` is 1 or 2.
#
#     mathieu_in_q(value, m, q, sign, order)         of mathieu_a, sign 1, and mathieu_b, sign -1
#     spheroidal_in_c(value, m, n, c, sign, order)   of pro_cv, sign 1, and obl_cv, sign -1
#
# A value is an eigenvalue of a symmetric tridiagonal matrix base + p * part, of coefficients of
# Fourier (DLMF 28.4, p is q) or of Legendre functions (DLMF 30.8, p is c**2 or its negative).
# Its derivative in p is v' part v / v' v. Sweeps from both ends of the rows that matter eliminate
# one row after the other and meet at a row `twist` where the eigenvector v is large. The sums of a
# sweep are relative to v in the next row, so nothing is stored. Sweeps also correct SciPy's value:
# by the quotient of Rayleigh, or by bisection if it is another eigenvalue, as for large q.

cdef struct Matrix:
    bint is_spheroidal
    double first   # number of row 0: of a Fourier coefficient, or the degree of a Legendre function
    double square  # of the order m, of spheroidal functions
    double corner  # part[0, 0], and part[0, 1]**2, of Mathieu's functions
    double edge
    double p

cdef struct Sweep:     # rows before row k; v[k] is 1
    long k
    long negatives     # eliminated pivots below 0
    double taken       # subtracted from the pivot of row k
    double norm        # v' v
    double part        # v' part v, with the terms that row k takes part in, but for its diagonal
    double taken_in_p  # derivatives in p
    double norm_in_p
    double part_in_p
