# Recurrences along an axis, which NumPy has no function for.
