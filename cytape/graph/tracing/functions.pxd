# Function: a Python function with its traces, the result of `cytape.function`.

from .concrete_function cimport ConcreteFunction
from .trace_cache cimport Traces

cdef class Function:
    cdef dict __dict__                  # name, docstring and other attributes of `f`
    cdef object __weakref__
    cdef readonly str name
    cdef readonly Traces _traces
    cdef object f
    cdef tuple input_signature          # or None
    cdef list places                    # of its tensors, in a trace's order
    cdef bint reduce_retracing
    cdef bint keyword_order_counts
    cdef object grad_func, python_grad_func, checkpoints
    cdef int n_traces                   # made so far
    cdef int n_new_keys                 # keys traced for; traced twice if variables are created
    cdef long long n_uses               # of traces: a clock
    cdef tuple described(self, tuple args, dict kwargs)
    cdef tuple fitting(self, tuple args, dict kwargs)
    cdef ConcreteFunction trace_for(self, tuple key, list objects, tuple args, dict kwargs)
    cdef ConcreteFunction new_trace(self, tuple key, list objects, tuple args, dict kwargs)
    cdef int allow_for_caches(self, tuple key, list objects, tuple args, dict kwargs,
                              ConcreteFunction trace) except -1
    cdef ConcreteFunction traced_anew(self, tuple key, list objects, tuple args, dict kwargs)
    cdef ConcreteFunction traced(self, tuple args, dict kwargs, list variables,
                                 may_make_variables)
    cdef int warn_of_changes(self, list given, ConcreteFunction trace) except -1
