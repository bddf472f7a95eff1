"""The op table: every operation with its derivatives, and how to declare one."""

from cytape.ops import conform, protocols  # noqa: F401  (they install themselves)
from cytape.ops.declare import (
    OPS,
    elementwise,
    general,
    linear,
    nondifferentiable,
    register_gradient,
    register_jvp,
)

__all__ = [
    "OPS",
    "elementwise",
    "general",
    "linear",
    "nondifferentiable",
    "register_gradient",
    "register_jvp",
]
