"""Loops over memory for single families of ops: activations, products, recurrences, ties."""
