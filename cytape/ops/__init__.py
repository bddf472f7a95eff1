"""The op table: every operation with its derivatives. `cytape.ops.declare` adds to it."""

from cytape.ops import conform, protocols  # noqa: F401  (they install themselves)
from cytape.ops.declare import OPS

__all__ = ["OPS"]
