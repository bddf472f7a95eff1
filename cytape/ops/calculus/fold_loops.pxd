# Folds of slices by ufuncs; NumPy accumulates only over whole axes.
