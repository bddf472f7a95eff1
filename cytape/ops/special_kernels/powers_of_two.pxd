# Powers of two, by which NumPy's ldexp multiplies element by element in the C library.
