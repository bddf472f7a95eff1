"""Differences, sequences, interpolation, polynomials, methods of ufuncs. Imported at first use."""
