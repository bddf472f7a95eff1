cimport cython
from libc.stdint cimport INT64_MAX, uint64_t
from libc.stdlib cimport free, qsort, realloc

from enum import Enum
from math import comb, isqrt
from typing import NamedTuple

from cytape.errors import GraphError


class Kind(Enum):
    """Kinds of actions in a schedule."""

    ADVANCE = "advance"  # take the steps from `step` to before `stop`
    STORE = "store"      # keep the present state, that is state `step`
    RESTORE = "restore"  # go on from a snapshot
    REVERSE = "reverse"  # reverse a step, from its own state, which is the present one
    FREE = "free"        # drop a snapshot


class Action(NamedTuple):
    """One action.

    Attributes
    ----------
    kind : Kind
    step : int
    stop : int
        Of an advance.
    """

    kind: Kind
    step: int
    stop: int = -1


cdef list kinds = [Kind.ADVANCE, Kind.STORE, Kind.RESTORE, Kind.REVERSE, Kind.FREE]


def fewest_advances(n_steps, n_snapshots) -> int:
    """Return the smallest number of steps that must be taken before all have been reversed.

    Parameters
    ----------
    n_steps : int
    n_snapshots : int
        At least one.

    Examples
    --------
    >>> fewest_advances(10_000, 100)
    24747
    >>> fewest_advances(5, 1) == 4 + 3 + 2 + 1
    True
    """
    check(n_steps, n_snapshots)
    repetitions, reversible = 0, 1
    while reversible < n_steps:
        repetitions += 1
        reversible = reversible * (n_snapshots + repetitions) // repetitions
    return max(repetitions * n_steps - comb(n_snapshots + repetitions, n_snapshots + 1), 0)


def sweep(n_steps, n_snapshots) -> list:
    """Return the states to store in the first pass over a known number of steps.

    Parameters
    ----------
    n_steps, n_snapshots
        As for `fewest_advances`.

    Returns
    -------
    list of int
        Ascending; the first is 0.

    Examples
    --------
    >>> sweep(10, 3)
    [0, 4, 7]
    """
    check(n_steps, n_snapshots)
    stored, last = [0], 0
    while n_steps - last > 1 and len(stored) < n_snapshots:
        last += first_part(n_steps - last, min(n_snapshots - len(stored) + 1, n_steps))
        stored.append(last)
    return stored


@cython.final
cdef class Actions:
    """Iterator over the actions of a reversal."""
    cdef Reversal schedule

    def __dealloc__(self):
        end_reversal(&self.schedule)

    def __iter__(self):
        return self

    def __next__(self):
        cdef int kind = next_action(&self.schedule)
        if kind == OUT_OF_MEMORY:
            raise MemoryError()
        if kind == DONE:
            raise StopIteration
        return Action(kinds[kind], self.schedule.step,
                      self.schedule.end if kind == ADVANCE else -1)


def reversal(stored, n_steps, n_snapshots):
    """Return the actions that reverse all steps after a first pass has stored some states.

    Parameters
    ----------
    stored : sequence of int
        The steps whose states are stored, ascending and beginning with 0. If it is ``[0]``, the
        first pass is part of the result.
    n_steps : int
    n_snapshots : int
        Maximal number of stored states, these included.

    Returns
    -------
    iterator of Action

    Examples
    --------
    >>> for action in reversal([0], 2, 1):
    ...     print(action.kind.value, *action[1:])
    restore 0 -1
    advance 0 1
    reverse 1 -1
    restore 0 -1
    reverse 0 -1
    free 0 -1
    """
    cdef Actions actions = Actions()
    cdef int64_t state
    check(n_steps, n_snapshots)
    if list(stored[:1]) != [0] or len(stored) > n_snapshots:
        raise ValueError(
            f"stored must be at most {n_snapshots} states, the first of them 0, got {list(stored)}")
    begin_reversal(&actions.schedule, n_steps, min(n_snapshots, max(n_steps, len(stored))))
    for state in stored:
        if not store(&actions.schedule, state):
            raise MemoryError()
    return actions


def blocks_and_snapshots(n_steps, states, nbytes, state_bytes, residual_bytes) -> tuple:
    """Return the number of steps to reverse as one block, and the number of snapshots.

    Parameters
    ----------
    n_steps : int
    states : int or None
        Maximal number of snapshots.
    nbytes : int or None
        Maximal number of bytes for snapshots and the saved values of one block of steps. If neither
        is given, blocks are chosen such that every step runs twice, with as few bytes as possible.
    state_bytes, residual_bytes : int
        Bytes of one snapshot, and of the values that one step saves for its reversal.

    Returns
    -------
    tuple of int

    Raises
    ------
    GraphError
        If one state and the saved values of one step need more bytes than allowed.

    Examples
    --------
    >>> blocks_and_snapshots(10_000, None, None, 8, 8)
    (100, 100)
    >>> blocks_and_snapshots(10_000, 7, None, 8, 8)
    (1, 7)
    >>> blocks_and_snapshots(10_000, None, 800, 8, 8)
    (50, 50)
    """
    if states is not None:
        return 1, states
    n_steps, state, residual = max(n_steps, 1), max(state_bytes, 1), max(residual_bytes, 1)
    block = min(max(isqrt(n_steps * state // residual), 1), n_steps)
    if nbytes is not None:
        check_budget(nbytes, state, residual)
        # The fewest repetitions; if not all states fit, half of the memory is for a block.
        if state + n_steps * residual <= nbytes:
            return n_steps, 1
        if block * residual + -(-n_steps // block) * state > nbytes:
            block = longest_block(nbytes, state, residual)
    return block, snapshots_beside(block, n_steps, None, nbytes, state, residual)


def snapshots_beside(block, n_steps, states, nbytes, state_bytes, residual_bytes) -> int:
    """Return the number of snapshots for a known number of steps per block.

    Parameters
    ----------
    block : int
    n_steps, states, nbytes, state_bytes, residual_bytes : int or None
        As for `blocks_and_snapshots`.

    Returns
    -------
    int

    Examples
    --------
    >>> snapshots_beside(64, 10_000, None, None, 8, 8)
    157
    >>> snapshots_beside(64, 10_000, None, 800, 8, 8)
    36
    """
    n_blocks = max(-(-n_steps // block), 1)
    if nbytes is not None:
        state, residual = max(state_bytes, 1), max(residual_bytes, 1)
        check_budget(nbytes, state, residual)
        states = max((nbytes - block * residual) // state, 1)
    return n_blocks if states is None else min(states, n_blocks)


cdef int check_budget(nbytes, state, residual) except -1:
    if state + residual > nbytes:
        raise GraphError(
            f"the gradient of a loop needs at least {state + residual} bytes, for one state and "
            f"the residuals of one iteration: memory_budget is {nbytes}"
        )
    return 0


cdef longest_block(nbytes, state, residual):
    return max(min(nbytes // 2, nbytes - state) // residual, 1)


@cython.final
cdef class FirstPass:
    """First pass over steps: chooses the states to store, also for an unknown number of steps.

    Parameters
    ----------
    n_steps : int or None
        None if it is unknown.
    states, nbytes, state_bytes, residual_bytes : int or None
        As for `blocks_and_snapshots`.

    Examples
    --------
    >>> first_pass = FirstPass(None, 2, None, 8, 8)
    >>> [first_pass.slot_for(step) for step in range(5)]
    [0, 1, -1, 1, -1]
    >>> first_pass.index()
    [1, 0, 0, 3, 1]
    """
    cdef Sweep sweep

    def __init__(self, n_steps, states, nbytes, state_bytes, residual_bytes):
        begin_sweep(&self.sweep, n_steps, states, nbytes, state_bytes, residual_bytes)

    def __dealloc__(self):
        forget_sweep(&self.sweep)

    def slot_for(self, int64_t step) -> int:
        """Return the slot to store the state of the next step in, -1: it is not stored."""
        if step != self.sweep.next:
            return -1
        cdef int64_t slot = stored_in(&self.sweep)
        if slot == -2:
            raise MemoryError()
        return slot

    def index(self) -> list:
        """Return the number of steps of a block, and each stored state and its slot, ascending."""
        cdef int64_t i, n = end_sweep(&self.sweep)
        cdef list index = [self.sweep.block]
        for i in range(n):
            index += [self.sweep.stored[i].step, self.sweep.stored[i].slot]
        return index


cdef int begin_sweep(Sweep* self, n_steps, states, nbytes, state_bytes, residual_bytes) except -1:
    cdef object state = max(state_bytes, 1), residual = max(residual_bytes, 1), largest = 1
    forget_sweep(self)
    self.n_stored = self.n_slots = 0
    self.block = 1
    self.level = INT64_MAX    # of state 0, which is never dropped
    self.n_steps, self.next = (-1, 0) if n_steps is None else (n_steps, 0 if n_steps > 0 else -1)
    if n_steps is not None:
        self.block, states = blocks_and_snapshots(n_steps, states, nbytes, state, residual)
    elif states is None:
        largest = INT64_MAX // 4 if nbytes is None else longest_block(nbytes, state, residual)
    self.n_snapshots = 0 if states is None else min(states, INT64_MAX)
    self.largest_block = min(largest, INT64_MAX // 4)
    self.n_bytes = -1 if nbytes is None else min(nbytes, INT64_MAX)
    self.state_bytes, self.residual_bytes = min(state, INT64_MAX), min(residual, INT64_MAX)
    return 0


cdef void forget_sweep(Sweep* self) noexcept nogil:
    free(self.stored)
    self.stored = NULL
    self.capacity = 0


cdef int64_t stored_in(Sweep* self) noexcept nogil:
    cdef int64_t step = self.next, remaining
    self.next = step + self.block
    if self.n_steps < 0:
        if (self.n_stored == self.n_slots >= most_stored(self)
                and not thin_out(self, step)):
            return -1
        return store_next(self, step)
    # One more step than there are, free to reverse, since the state that the last step starts
    # from is unknown when the pass ends.
    remaining = (self.n_steps - 1 - step) // self.block + 2
    if self.n_slots + 1 < self.n_snapshots:
        self.next = step + self.block * first_part(
            remaining, min(self.n_snapshots - self.n_slots, remaining))
    if self.n_slots + 1 == self.n_snapshots or self.next >= self.n_steps:
        self.next = -1
    return store_next(self, step)


cdef int64_t most_stored(Sweep* self) noexcept nogil:
    """Return the largest number of states; while blocks can grow, by the bytes left by a block."""
    cdef int64_t block = self.block, most = INT64_MAX
    if self.n_snapshots:
        return self.n_snapshots
    if 2 * block <= self.largest_block:
        block *= 2
        most = product(block, self.residual_bytes, self.state_bytes)
    if self.n_bytes >= 0:
        most = min(most, (self.n_bytes - block * self.residual_bytes) // self.state_bytes)
    return max(most, 1)


cdef bint thin_out(Sweep* self, int64_t step) noexcept nogil:
    """Make room for further states; return whether the present one is stored, too."""
    cdef int64_t i
    if 2 * self.block > self.largest_block:
        self.level += 1
        while self.stored[self.n_stored - 1].level < self.level:
            self.n_stored -= 1
        return False
    self.block *= 2
    self.n_stored = (self.n_stored + 1) // 2
    for i in range(self.n_stored):
        self.stored[i], self.stored[2 * i] = self.stored[2 * i], self.stored[i]
    for i in range(self.n_stored, self.n_slots):
        self.stored[i].step = -1
    self.next = step + (step % self.block or self.block)
    return step % self.block == 0


cdef int64_t store_next(Sweep* self, int64_t step) noexcept nogil:
    """Return the slot of a state that is stored now; -2 if there is no memory."""
    cdef int64_t capacity = self.capacity
    cdef void* memory
    cdef Stored* stored
    if self.n_stored == capacity:
        capacity = 2 * capacity + 16
        memory = realloc(self.stored, capacity * sizeof(Stored))
        if memory == NULL:
            return -2
        self.stored, self.capacity = <Stored*>memory, capacity
    stored = self.stored + self.n_stored
    if self.n_stored == self.n_slots:
        stored.slot = self.n_slots
        self.n_slots += 1
    stored.step, stored.level = step, self.level
    self.n_stored += 1
    self.level = 0
    return stored.slot


cdef int64_t end_sweep(Sweep* self) noexcept nogil:
    cdef int64_t n = self.n_slots
    self.next = -1
    if n:
        qsort(self.stored, n, sizeof(Stored), by_step)
    while n and self.stored[n - 1].step < 0:
        n -= 1
    return n


cdef int by_step(const void* x, const void* y) noexcept nogil:
    cdef uint64_t first = (<Stored*>x).step, second = (<Stored*>y).step  # -1 is the greatest
    return (first > second) - (first < second)


cdef int check(n_steps, n_snapshots) except -1:
    if n_steps < 0:
        raise ValueError(f"the number of steps must not be negative, got {n_steps}")
    if n_snapshots < 1:
        raise ValueError(f"n_snapshots must be at least 1, for the first state, got {n_snapshots}")
    return 0


cdef int64_t product(int64_t x, int64_t y, int64_t divisor) noexcept nogil:
    """Return x * y / divisor, a little less if the product would overflow."""
    return x * y // divisor if x <= INT64_MAX // y else x // divisor * y


cdef int64_t first_part(int64_t n_steps, int64_t n_snapshots) noexcept nogil:
    """Return the number of steps before the next stored state; there are two steps or more.

    The steps before that state are reversed last, with as many snapshots but one repetition less,
    since they have been advanced over once; the steps after it with one snapshot less. The first
    part is as long as possible while the second needs its number of repetitions.
    """
    cdef int64_t repetitions = 0, reversible = 1, longest = 1, shortest_rest
    while reversible < n_steps:
        repetitions += 1
        longest = reversible    # binomial(n_snapshots + repetitions - 1, n_snapshots)
        reversible = product(reversible, n_snapshots + repetitions, repetitions)
    shortest_rest = product(longest, n_snapshots, n_snapshots + repetitions - 1)
    return min(longest, n_steps - shortest_rest)


cdef enum Stage:
    FIRST = 0, PLACING, STORING, REVERSING


cdef void begin_reversal(Reversal* self, int64_t n_steps, int64_t n_snapshots) noexcept nogil:
    self.kept = NULL
    self.n_kept = self.capacity = 0
    self.n_snapshots, self.remaining = n_snapshots, n_steps
    self.stage = FIRST


cdef void end_reversal(Reversal* self) noexcept nogil:
    free(self.kept)
    self.kept = NULL


cdef bint store(Reversal* self, int64_t state) noexcept nogil:
    """Note that a state is kept; return False if there is no memory."""
    cdef int64_t capacity = self.capacity
    cdef void* memory
    if self.n_kept == capacity:
        capacity = 2 * capacity + 16
        memory = realloc(self.kept, capacity * sizeof(int64_t))
        if memory == NULL:
            return False
        self.kept, self.capacity = <int64_t*>memory, capacity
    self.kept[self.n_kept] = state
    self.n_kept += 1
    return True


cdef int next_action(Reversal* self) noexcept nogil:
    cdef int64_t last = self.kept[self.n_kept - 1] if self.n_kept else 0
    if self.stage == FIRST:
        if self.n_kept == 0:
            return DONE
        self.step = last
        if self.remaining == last:
            self.n_kept -= 1
            return FREE
        self.stage = PLACING
        return RESTORE
    if self.stage == STORING:
        self.step = self.end
        self.stage = PLACING
        return STORE if store(self, self.end) else OUT_OF_MEMORY
    if self.stage == PLACING:
        # Choose the best schedule of the last part alone, with the unused snapshots.
        self.step = last
        if self.remaining - last > 1 and self.n_kept < self.n_snapshots:
            self.end = last + first_part(
                self.remaining - last, self.n_snapshots - self.n_kept + 1)
            self.stage = STORING
            return ADVANCE
        self.stage = REVERSING
        if self.remaining - 1 > last:
            self.end = self.remaining - 1
            return ADVANCE
    self.remaining -= 1
    self.step = self.remaining
    self.stage = FIRST
    return REVERSE
