# Distribution function of von Mises and its derivatives in kappa, as ufuncs.
#
#     vonmises(x, kappa)        the distribution function, which grows by 1 in each turn
#     vonmises_in_kappa, vonmises_in_kappas    its first and second derivative in kappa
#     vonmises_slopes(x, kappa) the density and the first derivative in kappa
#
# Below kappa = 20 they are Fourier series, with the ratios I_p / I_0 of Bessel functions as
# coefficients. From 20 on, with s = 2 sqrt(kappa) sin(x / 2), the density in s is that of the
# normal distribution times a power series in s**2 / (4 kappa), which is integrated term by term.

cdef double distribution(double x, double kappa, int order, double* density) noexcept nogil
