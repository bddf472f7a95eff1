# Derivatives of Carlson's integrals of real operands, as ufuncs with one output per derivative:
# elliprf_slopes(value, x, y, z), elliprd_slopes(value, x, y, z), elliprj_slopes(value, x, y, z, p).
# Likewise agm_slopes(a, b) of the arithmetic-geometric mean.
#
# Carlson's duplication is repeated until the operands are almost equal; the integral is a Taylor
# series in their deviations from the mean (DLMF 19.19, 19.26 and 19.36). Its derivatives are
# propagated back through the duplications by the chain rule, whose terms are all negative.
