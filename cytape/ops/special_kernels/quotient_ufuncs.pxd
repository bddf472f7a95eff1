# Quotients: ufuncs that derivatives are made of, with one division an element where all numbers are
# of ordinary size, and with care where some are not. For float32 and float64 only.
#
#     over_squares(a, b, c)       a / (b**2 + c**2), 0 at the origin
#     power_less_one(a, b, c)     b**(c - 1), where a is b**c; 1 where b and c are 0
#     unit(a, b)                  a / b, 0 where b is 0; of an infinite a its sign
