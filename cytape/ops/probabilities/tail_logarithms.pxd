# Logarithms of incomplete gamma and beta functions and of Student's t, and scaled derivatives, as
# ufuncs for float32 and float64.
#
#     log_gamma(a, x, p, q), log_beta(a, b, z, p, q), log_t(df, t, p, q)
#         log(p), given SciPy's values of a function p and its complement q
#     gamma_a(a, x, log_p), gamma_aa, gamma_x, and the like
#         a derivative of the distribution function, divided by p, one of both tails
#
# Below exp(LEAST), where p may underflow, p is the tail integral of `incomplete_integrals` times
# the density, whose logarithm is known, and derivatives are ratios of such integrals.

cdef double LEAST
