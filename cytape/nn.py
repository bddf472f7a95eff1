"""Functions of neural networks, under TensorFlow's names."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from cytape.ops.neural.activation_functions import *  # noqa: F403
from cytape.ops.neural.activation_functions import __all__ as _of_activation_functions
from cytape.ops.neural.attention import *  # noqa: F403
from cytape.ops.neural.attention import __all__ as _of_attention
from cytape.ops.neural.convolution import *  # noqa: F403
from cytape.ops.neural.convolution import __all__ as _of_convolution
from cytape.ops.neural.cross_entropy import *  # noqa: F403
from cytape.ops.neural.cross_entropy import __all__ as _of_cross_entropy
from cytape.ops.neural.initial_weights import *  # noqa: F403
from cytape.ops.neural.initial_weights import __all__ as _of_initial_weights
from cytape.ops.neural.losses import *  # noqa: F403
from cytape.ops.neural.losses import __all__ as _of_losses
from cytape.ops.neural.neural_ops import *  # noqa: F403
from cytape.ops.neural.neural_ops import __all__ as _of_neural_ops
from cytape.ops.neural.normalisation import *  # noqa: F403
from cytape.ops.neural.normalisation import __all__ as _of_normalisation
from cytape.ops.neural.pooling import *  # noqa: F403
from cytape.ops.neural.pooling import __all__ as _of_pooling
from cytape.ops.neural.sequence_losses import *  # noqa: F403
from cytape.ops.neural.sequence_losses import __all__ as _of_sequence_losses
from cytape.tensor.names_elsewhere import no_attribute as _no_attribute

__all__ = sorted([  # noqa: PLE0605
    *_of_activation_functions, *_of_attention, *_of_convolution, *_of_cross_entropy,
    *_of_initial_weights, *_of_losses, *_of_neural_ops, *_of_normalisation, *_of_pooling,
    *_of_sequence_losses])

__path__: list[str] = []  # a package, so that ``import cytape.nn.functional`` has advice
if not _TYPE_CHECKING:  # a checker knows the names
    def __getattr__(name: str) -> None:
        raise _no_attribute("cytape.nn", name)
