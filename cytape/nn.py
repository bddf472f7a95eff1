"""Functions of neural networks, under TensorFlow's names."""

from cytape.ops.nn import *  # noqa: F403
from cytape.ops.nn import __all__  # noqa: F401
