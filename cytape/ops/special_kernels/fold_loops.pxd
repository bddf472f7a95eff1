# Folds of slices by ufuncs, which NumPy accumulates over whole axes only.
