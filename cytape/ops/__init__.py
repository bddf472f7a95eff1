"""The op table: every operation of NumPy with its derivatives, one module per family."""

from cytape.ops.adjoints.identity_groups import add_n, identity_n
from cytape.ops.creation import checkpoint_name, identity
from cytape.ops.engine.op_kinds import OPS
from cytape.ops.engine.user_rules import disable_gradient, register_gradient, register_jvp
from cytape.ops.indexing import gather

__all__ = [
    "OPS",
    "add_n",
    "checkpoint_name",
    "disable_gradient",
    "gather",
    "identity",
    "identity_n",
    "register_gradient",
    "register_jvp",
]


def __dir__() -> list[str]:
    return __all__
