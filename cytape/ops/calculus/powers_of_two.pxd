# ldexp for arrays, vectorized. NumPy's calls the C library once per element.
