# The ops of array_ops in plans: rows of an array that are read, or written, cleared or added to in
# place. `run_in_plans` installs one of these programs for an op.
#
#     operands    as those of the op, without the number of rows, which the code knows; then the
#                 result, an array in memory, which may be that of an operand
