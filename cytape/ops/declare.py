"""How to declare an op of one's own: one kind of op after the other, each with its derivatives.

Users of the package declare with these names, cytape itself with `cytape.ops.engine.op_kinds` and
`rules`, where they are defined: a room of engines does not import from the families above it.
"""

from cytape.ops.engine.op_kinds import (
    elementwise,
    general,
    linear,
    multilinear,
    nondifferentiable,
    structural,
)
from cytape.ops.engine.user_rules import (
    disable_gradient,
    gradient_rule,
    register_gradient,
    register_jvp,
)

__all__ = [
    "disable_gradient",
    "elementwise",
    "general",
    "gradient_rule",
    "linear",
    "multilinear",
    "nondifferentiable",
    "register_gradient",
    "register_jvp",
    "structural",
]
