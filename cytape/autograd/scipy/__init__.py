"""Functions of SciPy, by the names of `autograd.scipy`."""
