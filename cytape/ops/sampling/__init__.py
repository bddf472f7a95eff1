"""Random numbers: the distributions of `numpy.random`."""
