# Composites: ops declared with a `composition` of simpler ones, which plans run without Python:
#
#     Softmax(x)    ->    m = Max(x);  e = Exp(x - m);  e / Sum(e)
#
# Only the value is computed by the composition; derivatives are the op's own. The value must be the
# same, except for the order of sums over several axes, since the first run of a function does not
# use this pass.

from cytape.ops.calls.symbolic cimport SymbolicGraph
from libc.stdint cimport int32_t

from .rewriting cimport Rewriting

cdef bint any_composites(SymbolicGraph graph) except -1
cdef bint decompose(Rewriting rewriting, int32_t node) except -1
