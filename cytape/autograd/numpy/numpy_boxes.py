"""The class of tensors by autograd's name."""

from cytape.autograd.tracer import ArrayBox, Box

__all__ = ["ArrayBox", "Box"]
