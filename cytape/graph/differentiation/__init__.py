"""Gradients of graphs, by adding operations to them."""
