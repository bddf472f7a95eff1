"""Logarithms of probabilities in tails where the probabilities underflow."""
