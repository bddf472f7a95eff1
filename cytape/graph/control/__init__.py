"""Branches and loops as ops of graphs, with their derivatives."""
