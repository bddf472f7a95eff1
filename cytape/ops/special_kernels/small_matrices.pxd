# Loops over vectors of three components and over small matrices.
#
# `cross` is a generalized ufunc, of vectors along the last axes. `cholesky_gradient`, which LAPACK
# does not have, is one pass over the rows of a factor, from the last up. `inverse` takes a third of
# the steps that LAPACK takes to solve a system with the identity.
