"""Loops over memory: NumPy's inner loops, walks over strides, sums, and programs of them."""
