"""Traces: Python functions turned into graphs, by signature, with the tensors that they capture."""
