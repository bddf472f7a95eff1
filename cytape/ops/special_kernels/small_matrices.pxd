# Loops over vectors of three components and over small matrices.
#
# `cross` is a generalized ufunc of vectors along the last axes. `cholesky_gradient` and
# `lu_gradient`, which LAPACK lacks, are one pass over the rows of factors, from last to first.
# `inverse` takes a third of the operations of LAPACK's solution of a system with the identity.
