# Checkpoint schedules: backward passes over many steps with few states in memory.
#
# A program takes steps 0, 1, ..., n - 1; step i starts from state i. A backward pass needs the
# states in the opposite order. A bounded number of states is kept, the snapshots; each other state
# is recomputed from the nearest snapshot before it. State 0 is always a snapshot, and counts as
# one.
#
# With s snapshots, and every step advanced over at most r times, binomial(s + r, s) steps can be
# reversed; the total number of advances is least if every step has r or r - 1 repetitions.
#
# A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Transactions on Mathematical Software
# 26 (2000).
#
# If the number of steps is unknown, states are stored online, so that at any time the steps so far
# can be reversed with the same least number of repetitions. A stored state has a level. A state
# followed by one of a higher level can be dropped, and the next state takes its place. If none can
# be dropped, the present state is not stored and the next one has a higher level. Q. Wang, P. Moin
# and G. Iaccarino, "Minimal repetition dynamic checkpointing algorithm for unsteady adjoint
# calculation", SIAM Journal on Scientific Computing 31 (2009).
#
# Steps may be reversed in blocks of equal length, which then take the place of steps above. Online,
# the length of a block doubles as the number of steps grows: every second state is dropped.

from libc.stdint cimport int64_t

cdef enum:                # actions
    ADVANCE = 0           # take the steps from `step` to before `end`
    STORE                 # keep the present state, that is state `step`
    RESTORE               # go on from the snapshot that was stored last
    REVERSE               # reverse a step, from its own state, which is the present one
    FREE                  # drop the snapshot that was stored last
    DONE
    OUT_OF_MEMORY

cdef struct Reversal:
    int64_t step, end     # of the present action
    int64_t* kept         # the snapshots, ascending: a stack
    int64_t n_kept, capacity, n_snapshots
    int64_t remaining     # steps that have not been reversed
    int stage

cdef struct Stored:
    int64_t step, slot    # step -1: unused
    int64_t level

cdef struct Sweep:        # the first pass over the steps
    int64_t next          # the next step for which `stored_in` is called; -1: none
    int64_t block         # steps
    Stored* stored        # ascending; then entries with free slots
    int64_t n_stored, n_slots, capacity
    int64_t level         # of the present state
    int64_t n_steps       # -1: unknown
    int64_t n_snapshots, largest_block
    int64_t n_bytes, state_bytes, residual_bytes   # n_snapshots 0: these say how many

cdef int begin_sweep(Sweep* self, n_steps, states, nbytes, state_bytes, residual_bytes) except -1
cdef int64_t stored_in(Sweep* self) noexcept nogil  # a slot for state `next`, or -1; -2: no memory
cdef int64_t end_sweep(Sweep* self) noexcept nogil  # sorts; returns the number in use
cdef void forget_sweep(Sweep* self) noexcept nogil

cdef void begin_reversal(Reversal* self, int64_t n_steps, int64_t n_snapshots) noexcept nogil
cdef bint store(Reversal* self, int64_t state) noexcept nogil  # state 0 first
cdef int next_action(Reversal* self) noexcept nogil
cdef void end_reversal(Reversal* self) noexcept nogil
