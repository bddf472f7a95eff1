"""Recorders (tapes and accumulators), and the stack of entered recorders of each thread."""
