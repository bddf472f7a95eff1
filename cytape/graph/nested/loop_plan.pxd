# Loop plan: a subprogram that runs two nested codes in turn, the condition and the body.
#
#     large loop variables  in two buffers each, swapped after each iteration, or in one buffer if
#                           the body overwrites its own input
#     stacks                read and written row by row, in place; a stack without other readers is
#                           freed while the loop goes backward through it
#     ragged stacks         of loops in the body whose numbers of iterations differ: all rows one
#                           after the other, and the number of rows that each loop appended

from cytape.graph.run.plan_code cimport Code
from cytape.ops.calls.dispatch cimport Op
from libc.stdint cimport int32_t

cdef bint emit_loop(Code code, int32_t node, Op op) except -1
