"""SciPy's functions on tensors, by SciPy's names and signatures (``pip install cytape[scipy]``)."""
