# Emitters of the ops of array_ops: rows as transfers, and checks of the places that are written.
# `run_in_plans` installs one of them for an op.
