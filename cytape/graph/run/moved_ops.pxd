# How plans run ops that only move numbers: by views, or by copies of regions.

from cytape.ops.engine.dispatch cimport Op
from libc.stdint cimport int32_t

from .code cimport Code

cdef bint moved(Code code, int32_t node, Op op) except -1
