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
#
# Where nobody knows how many steps there will be, states are stored online: so that at any time the
# steps until then could be reversed with as few repetitions of any of them as by the above. A
# stored state has a level; one that is followed by a state of a higher level can be spared, and its
# place is taken by the next. Where none can be, the present state is not stored and the next one is
# of a higher level than it. Q. Wang, P. Moin and G. Iaccarino, "Minimal repetition dynamic
# checkpointing algorithm for unsteady adjoint calculation", SIAM Journal on Scientific Computing
# 31 (2009).
#
# Steps may be reversed in blocks of equal length, which then are the steps above. The length of a
# block doubles, online, as the number of steps grows: every second state is forgotten.

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

cdef struct Stored:
    int64_t step, slot    # step -1: nothing that is of use
    int64_t level

cdef struct Sweep:        # the first pass over the steps
    int64_t next          # the step before which `stored_in` is to be asked; -1: no more
    int64_t block         # steps
    Stored* stored        # ascending; then those whose slots are the next to be written to
    int64_t n_stored, n_slots, capacity
    int64_t level         # of the present state
    int64_t n_steps       # -1: unknown
    int64_t n_snapshots, largest_block
    int64_t n_bytes, state_bytes, residual_bytes   # n_snapshots 0: these say how many

cdef int begin_sweep(Sweep* self, n_steps, states, nbytes, state_bytes, residual_bytes) except -1
cdef int64_t stored_in(Sweep* self) noexcept nogil  # a slot for state `next`, or -1; -2: no memory
cdef int64_t end_sweep(Sweep* self) noexcept nogil  # sorts; how many are of use
cdef void forget_sweep(Sweep* self) noexcept nogil

cdef void begin_reversal(Reversal* self, int64_t n_steps, int64_t n_snapshots) noexcept nogil
cdef bint store(Reversal* self, int64_t state) noexcept nogil  # as first of all state 0
cdef int next_action(Reversal* self) noexcept nogil
cdef void end_reversal(Reversal* self) noexcept nogil
