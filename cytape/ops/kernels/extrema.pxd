# What an operand of an extremum, or of a clip, gets of the gradient: ufuncs of (gradient, x, y).
#
# Each is one loop, where comparisons and numpy.where would be seven, and has no branch that depends
# on the data. `first_of_maximum` and the like give the gradient where the function takes that
# operand, half of it where the two are equal, and 0 elsewhere; `where_unchanged` gives it where the
# second operand is what a function has made of the first, and is the same.
