"""Differentiation for users: tapes, accumulators, transforms of functions, custom rules."""
