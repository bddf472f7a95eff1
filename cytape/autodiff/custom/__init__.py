"""Derivatives that users write: rules around calls, NumPy functions, elementwise functions."""
