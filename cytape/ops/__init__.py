"""The op table: every operation with its derivatives. `cytape.ops.declare` adds to it."""

from cytape.ops.adjoints import (  # noqa: F401  (they install themselves)
    conform,
    deferred_derivatives,
    tangent_batches,
)
from cytape.ops.engine.op_kinds import OPS

__all__ = ["OPS"]
