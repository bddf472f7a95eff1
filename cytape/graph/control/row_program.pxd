# The ops of array_ops in plans: rows that are taken from an array, or written, cleared or added to
# where they are. `run_in_plans` tells an op which of these it does.
#
#     operands    as those of the op, but for the number of rows, which the code knows; then the
#                 result, an array in memory that an operand may have lain in
