"""Functions of NumPy's main namespace that are imported with the package, gathered from `ops`."""

from cytape.ops.broadcasting import *  # noqa: F403
from cytape.ops.clipping import *  # noqa: F403
from cytape.ops.comparisons import *  # noqa: F403
from cytape.ops.constants import *  # noqa: F403
from cytape.ops.creation import *  # noqa: F403
from cytape.ops.cumulative import *  # noqa: F403
from cytape.ops.einsum import *  # noqa: F403
from cytape.ops.elementwise import *  # noqa: F403
from cytape.ops.indexing import *  # noqa: F403
from cytape.ops.joining import *  # noqa: F403
from cytape.ops.matrix_products import *  # noqa: F403
from cytape.ops.ordering import *  # noqa: F403
from cytape.ops.rearranging import *  # noqa: F403
from cytape.ops.reductions import *  # noqa: F403
from cytape.ops.shaping import *  # noqa: F403
from cytape.ops.variance import *  # noqa: F403
