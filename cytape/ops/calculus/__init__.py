"""Differences, sequences, curves, polynomials: imported when one of them is called first."""
