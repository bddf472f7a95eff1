"""Public names for declarations of users' ops: the kinds of ops, and rules that are added later.

They are defined in `cytape.ops.engine.op_kinds` and `user_rules`; cytape's own modules import them
from there.
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
