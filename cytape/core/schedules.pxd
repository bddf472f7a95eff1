# Schedules for going backward through many steps with few of their states in memory.
#
# A program takes steps 0, 1, ..., n - 1; state i is what step i starts from. To go backward it
# needs the states in the opposite order. At most so many are kept, the snapshots; all others are
# computed again from the nearest one before. State 0 is a snapshot always, and counts as one.
#
# With s snapshots and every step advanced over at most r times one can reverse binomial(s + r, s)
# steps; that many repetitions, or one less, for every step are the fewest advances in all.
#
# A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Transactions on Mathematical Software
# 26 (2000).

from libc.stdint cimport int64_t

cdef enum:                # actions
    ADVANCE = 0           # take the steps from `step` to before `end`
    STORE                 # keep the present state, that is state `step`
    RESTORE               # go on from the snapshot that was stored last
    REVERSE               # go backward through a step, from the present state, which is its own
    FREE                  # forget the snapshot that was stored last
    DONE
    OUT_OF_MEMORY

cdef struct Reversal:
    int64_t step, end     # of the present action
    int64_t* kept         # the snapshots, ascending: a stack
    int64_t n_kept, capacity, n_snapshots
    int64_t remaining     # steps that have not been reversed
    int stage

cdef void begin_reversal(Reversal* self, int64_t n_steps, int64_t n_snapshots) noexcept nogil
cdef bint store(Reversal* self, int64_t state) noexcept nogil  # as first of all state 0
cdef int next_action(Reversal* self) noexcept nogil
cdef void end_reversal(Reversal* self) noexcept nogil
