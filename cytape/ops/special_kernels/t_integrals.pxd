# Derivatives of the distributions t and F in degrees of freedom, ufuncs for float32 and float64.
#
#     stdtr_df(df, t), stdtr_dfdf   of stdtr(df, t)
#     t_density_in_df(df, t)        of the density
#     f_slopes(n, d, f)             of fdtr(n, d, f), also in f
#     betainc_less_b(a, b, z)       twice that of fdtr in d
#
# For small df they are derivatives of the incomplete beta function. For large df these cancel, and
# the derivative of the density is integrated as in `incomplete_integrals`: from abs(t) to infinity,
# or from 0 where the derivative of the density changes its sign beyond.

cdef double t_in_shape(double df, double t, double power, int order) noexcept nogil
cdef double t_power(double df, double t) noexcept nogil
cdef double t_density(double df, double t, double power) noexcept nogil
