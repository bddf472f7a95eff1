"""Branches, loops and TensorArrays: ops of graphs, and their derivatives."""
