# Gradients of operands of an extremum or a clip: ufuncs of (gradient, x, y).
#
# Each is one loop without branches on the data; comparisons and numpy.where would take seven loops.
# `first_of_maximum` and similar ufuncs return the gradient where the operand is the result, half of
# it at ties, and 0 elsewhere. `where_unchanged` returns it where the result equals the operand.
