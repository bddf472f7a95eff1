"""Functions of `scipy.ndimage` that have derivatives."""
