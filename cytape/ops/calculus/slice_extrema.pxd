# Derivatives of sums and extrema of slices along an axis (reduceat), for arrays in C order.
