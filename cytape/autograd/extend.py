"""Names for functions with users' rules, boxes and vector spaces of users' classes."""

from cytape.autograd.core import (
    JVPNode,
    SparseObject,
    VJPNode,
    VSpace,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
    vspace,
)
from cytape.autograd.tracer import Box, Node, notrace_primitive, register_notrace
