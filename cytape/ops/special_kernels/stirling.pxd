# Differences of digamma functions, and powers over gamma and beta functions, that do not cancel for
# parameters of any magnitude (DLMF 5.5.2, 5.11), and densities by such powers: logarithms are those
# of Stirling's formula with its correction. As ufuncs: polygamma_1(x), of complex numbers, too,
# psi_step(a, b), gamma_density(a, x), beta_density(a, b, x) and odds_density(a, b, z).

ctypedef float complex complex64
ctypedef double complex complex128
ctypedef fused number:
    double
    complex128

cdef enum:
    N_BERNOULLI = 8

cdef double[N_BERNOULLI] digamma_terms  # B(2k) / (2k), k = 1, 2, ...

cdef double excess(double z, double one_plus) noexcept nogil
cdef double log_of(double z, double one_plus) noexcept nogil
cdef double stirling(double a) noexcept nogil
cdef double log_less_digamma(double a) noexcept nogil
cdef number trigamma(number a) noexcept nogil
cdef double digamma_rise(double a, double b, bint less_log=*) noexcept nogil
cdef double power_of_gamma(double a, double x) noexcept nogil
cdef double power_of_beta(double a, double b, double x, double y) noexcept nogil
cdef double log_power_of_gamma(double a, double x) noexcept nogil
cdef double log_power_of_beta(double a, double b, double x, double y) noexcept nogil
cdef double density_of_beta(double a, double b, double x, double power) noexcept nogil
cdef double density_of_gamma(double a, double x, double power) noexcept nogil
cdef double density_of_odds(double a, double b, double z, double power) noexcept nogil
cdef double of_odds(double z) noexcept nogil
cdef double rest_of_odds(double z) noexcept nogil
