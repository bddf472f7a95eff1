"""The op table: every operation with its derivatives. `cytape.ops.declare` adds to it."""

from cytape.ops import protocols  # noqa: F401  (they install themselves)
from cytape.ops.engine.declare import OPS
from cytape.ops.shared import batches, conform, deferred  # noqa: F401  (they install themselves)

__all__ = ["OPS"]
