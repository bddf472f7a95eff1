"""Benchmarks of functions of SciPy on tensors: rows of times beside their limits."""
