# A loop in a plan: a subprogram that runs two pieces of code, the condition and the body, in turn.
#
#     large loop variables  lie in two buffers each, which change places after an iteration, or in
#                           one where the body writes over its own input
#     stacks                are read and written row by row, where they are; those that nobody else
#                           reads are given back while the loop goes backward through them
#     ragged stacks         are of loops in the body, which do not all take the same number of
#                           iterations: all rows one after the other, and how many each loop left

from cytape.graph.run.code cimport Code
from cytape.ops.engine.dispatch cimport Op
from libc.stdint cimport int32_t

cdef bint emit_loop(Code code, int32_t node, Op op) except -1
