# Ufuncs of neural networks that NumPy does not have, for real numbers of every precision.
#
# They process blocks that fit into the cache, with NumPy's loops for exponentials. Half precision
# is computed in single precision and rounded once.
