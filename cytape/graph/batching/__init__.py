"""Graphs of one member of a batch, computed for all members at once."""
