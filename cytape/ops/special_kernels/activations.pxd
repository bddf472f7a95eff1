# Functions of neural networks that NumPy does not have, as ufuncs: real numbers of every precision.
#
# They go through blocks that stay in the cache, with NumPy's own loops for exponentials; half
# precision is computed in single precision and rounded once.
