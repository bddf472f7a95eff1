"""Functions of neural networks, under TensorFlow's names."""

from cytape.ops.neural.cross_entropy import *  # noqa: F403
from cytape.ops.neural.cross_entropy import __all__ as _of_cross_entropy
from cytape.ops.neural.neural_ops import *  # noqa: F403
from cytape.ops.neural.neural_ops import __all__ as _of_nn

__all__ = sorted([*_of_cross_entropy, *_of_nn])  # noqa: PLE0605
