"""Recorders, and the stacks of threads that they are entered on."""
