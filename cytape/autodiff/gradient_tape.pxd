# GradientTape: the recorder that users enter for gradients.

from cytape.tensor.recording.state cimport Recorder
from cytape.tensor.tensor cimport Tensor

cdef class GradientTape:
    cdef readonly Recorder _recorder  # None: consumed by its gradient
    cdef bint persistent
    cdef bint watch_accessed_variables
    cdef bint entered                 # at least once
    cdef dict consumed_variables      # variables that the consumed recorder had watched
    cdef set warned_of                # ids of variables without gradient that were warned of
    cdef object __weakref__
    cdef dict __dict__                # users may give it attributes

    cdef Recorder usable_recorder(self, bint entered)
    cdef Recorder active_recorder(self)
    cdef Recorder take_recorder(self)
    cdef list flat_targets(self, target)
    cdef int require_seen(self, Tensor target) except -1
    cdef list flat_sources(self, sources)
    cdef int warn_of(self, Tensor leaf, str what) except -1
    cdef object check_jacobian_call(self, unconnected_gradients, bint experimental_use_pfor)
    cdef list rows(self, Tensor target, list sources, seeds)
