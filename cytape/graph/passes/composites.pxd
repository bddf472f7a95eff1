# Ops that are declared to be made of simpler ones (`composition`), which plans run without Python:
#
#     Softmax(x)    ->    m = Max(x);  e = Exp(x - m);  e / Sum(e)
#
# The derivatives of such an op are its own; only what computes the value is another. It should be
# the same, but for the order of sums over several axes, as the first run of a function computes it
# without this pass.

from cytape.ops.calls.symbolic cimport SymbolicGraph
from libc.stdint cimport int32_t

from .rewriting cimport Rewriting

cdef bint any_composites(SymbolicGraph graph) except -1
cdef bint decompose(Rewriting rewriting, int32_t node) except -1
