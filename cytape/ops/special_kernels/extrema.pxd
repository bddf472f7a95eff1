# Gradients of operands of an extremum or a clip: ufuncs of (gradient, x, y).
#
# Each is one loop, where comparisons and numpy.where would be seven, and has no branch that depends
# on the data. `first_of_maximum` and the like give the gradient where the function takes that
# operand, half of it where the two are equal, and 0 elsewhere; `where_unchanged` gives it where a
# function left its operand unchanged.
