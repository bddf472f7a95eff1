# Density of the noncentral chi-squared distribution with df and with df + 2 degrees of freedom.
#
# The density is a sum of central ones with df + 2j degrees of freedom, with the probabilities of j
# in the Poisson distribution of mean nc / 2. It is summed from its largest term to both sides.
#
# Exponential moments of the chi distribution, for noncentral t: by their series, or by quadrature.
