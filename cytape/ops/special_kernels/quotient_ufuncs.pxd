# Quotients in derivatives, as ufuncs for float32 and float64. Blocks in which no intermediate can
# overflow or underflow take one division per element, other blocks a careful formula.
#
#     over_squares(a, b, c)       a / (b**2 + c**2), 0 at the origin
#     power_less_one(a, b, c)     b**(c - 1), where a is b**c; 1 where b and c are 0
#     unit(a, b)                  a / b, 0 where b is 0; the sign of a where a is infinite
#     divergence_slope(a, b)      (b - a) / b, 1 at the origin and at infinite b, NaN if negative
