# Sine and cosine of pi x**2 / 2, and of x over x, as ufuncs of two outputs. Those of the square add
# its rounding error.
