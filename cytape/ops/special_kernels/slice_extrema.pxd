# Derivatives of reductions of slices along an axis, for arrays in C order.
