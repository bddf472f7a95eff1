# Local search: removal of recomputations from a schedule. A copy of a value has the number of the
# place that computes it, in the order of `events`; readings are numbered in the same order.

from libc.stdint cimport int32_t, int64_t

cdef class Copies:
    cdef Py_ssize_t n_values, n_places, n_gone, n_read
    # Per place:
    cdef int32_t[::1] made        # the value, -1 for a backward step
    cdef signed char[::1] again   # whether it is recomputed there
    cdef int32_t[::1] first       # reading; one more for the end
    cdef int64_t[::1] live        # bytes in memory; 0 where nothing is computed any more
    # Per copy:
    cdef int64_t[::1] sizes
    cdef int32_t[::1] before      # the copy of the same value before it, and after; -1: none
    cdef int32_t[::1] after
    cdef int32_t[::1] last        # reading, -1: none
    cdef int32_t[::1] n_readings
    # Per reading:
    cdef int32_t[::1] place
    cdef int32_t[::1] copy
    cdef int32_t[::1] earlier     # of the same copy, and later; -1: none
    cdef int32_t[::1] later
    # Work arrays of a trial without a copy:
    cdef int32_t[::1] gone        # places
    cdef signed char[::1] is_gone
    cdef int32_t[::1] read        # copies that these read
    cdef int32_t[::1] n_left      # per copy: its readings by others than these; -1: none of these
    cdef int64_t[::1] change      # per place: change of the bytes in memory

    cdef void find_gone(self, int32_t copy) noexcept
    cdef bint is_room(self, int32_t start, int32_t copy, int64_t budget) noexcept
    cdef bint leave_out(self, int32_t copy, int64_t budget) noexcept
    cdef void keep_before(self, int32_t copy) noexcept
    cdef int32_t end_of(self, int32_t copy) noexcept
    cdef int32_t freed_from(self, int32_t copy) noexcept
    cdef void link(self, int32_t before, int32_t after) noexcept
    cdef tuple schedule(self)
