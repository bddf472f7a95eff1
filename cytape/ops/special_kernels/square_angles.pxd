# Sine and cosine of pi x**2 / 2, as a ufunc of two outputs. The rounding error of the square counts.
