# Sine and cosine of pi x**2 / 2, as a ufunc of two outputs. They add the square's rounding error.
