cimport cython
from libc.stdint cimport INT64_MAX
from libc.stdlib cimport free, realloc

from enum import Enum
from math import comb, isqrt
from typing import NamedTuple

from cytape.errors import GraphError


class Kind(Enum):
    """What an action of a schedule does."""

    ADVANCE = "advance"  # take the steps from `step` to before `stop`
    STORE = "store"      # keep the present state, that is state `step`
    RESTORE = "restore"  # go on from a snapshot
    REVERSE = "reverse"  # go backward through a step, from the present state, which is its own
    FREE = "free"        # forget a snapshot


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

    Returns
    -------
    int

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
    n_steps : int
    n_snapshots : int
        At least one.

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
    """An iterator over what a reversal does."""
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
    """Return what to do, in order, to reverse all steps once a first pass has stored some states.

    Parameters
    ----------
    stored : sequence of int
        Ascending, the first is 0. No more than that: the first pass is a part of what is returned.
    n_steps : int
    n_snapshots : int
        How many states may be stored at a time, those included.

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
            f"of {n_snapshots} states at the most that are stored the first must be 0, got "
            f"{list(stored)}")
    begin_reversal(&actions.schedule, n_steps, min(n_snapshots, max(n_steps, len(stored))))
    for state in stored:
        if not store(&actions.schedule, state):
            raise MemoryError()
    return actions


def blocks_and_snapshots(n_steps, states, nbytes, state_bytes, residual_bytes) -> tuple:
    """Return how many steps to reverse together, as a block, and how many snapshots to keep.

    Parameters
    ----------
    n_steps : int
    states : int or None
        How many snapshots there may be.
    nbytes : int or None
        Or how many bytes snapshots, and what the steps of a block leave, may have. If neither is
        given the blocks are such that every step is taken twice, with as few bytes as can be.
    state_bytes, residual_bytes : int
        Of a snapshot, and of what a step leaves for its reversal.

    Returns
    -------
    tuple of int

    Raises
    ------
    GraphError
        If one state, and what one step leaves, have more bytes than there may be.

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
    if nbytes is None:
        return block, -(-n_steps // block)
    if state + residual > nbytes:
        raise GraphError(
            f"the gradient of a loop needs {state + residual} bytes at the least, for one state "
            f"and what one iteration leaves: memory_budget is {nbytes}"
        )
    # As few repetitions as can be; half of the memory for a block where not all states fit.
    if state + n_steps * residual <= nbytes:
        return n_steps, 1
    if block * residual + -(-n_steps // block) * state > nbytes:
        block = max(min(nbytes // 2, nbytes - state) // residual, 1)
    return block, min((nbytes - block * residual) // state, -(-n_steps // block))


cdef int check(n_steps, n_snapshots) except -1:
    if n_steps < 0:
        raise ValueError(f"the number of steps must not be negative, got {n_steps}")
    if n_snapshots < 1:
        raise ValueError(f"at least one state must be stored, the first, got {n_snapshots}")
    return 0


cdef int64_t product(int64_t x, int64_t y, int64_t divisor) noexcept nogil:
    """x * y / divisor; where that is too much for the product, a little less."""
    return x * y // divisor if x <= INT64_MAX // y else x // divisor * y


cdef int64_t first_part(int64_t n_steps, int64_t n_snapshots) noexcept nogil:
    """After how many of at least two steps to store the next state.

    What comes before is reversed last, with as many snapshots but one repetition less, as it has
    been advanced over; the rest with one snapshot less. The first part is as long as that allows
    while the rest is not so short that it could do with fewer repetitions.
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
    """Note that a state is kept; False: there is no memory."""
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
        # With the snapshots that are not in use, the last part as is best for it alone.
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
