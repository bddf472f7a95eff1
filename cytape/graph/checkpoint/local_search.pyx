import numpy as np

cimport cython

from cytape.graph.checkpoint.recompute_schedule import events, live_bytes


def improved(program, tuple schedule, int64_t budget, Py_ssize_t most_trials):
    """Return a schedule with fewer recomputations, if one is found.

    A recomputed value could have stayed in memory since its previous copy, if there is room. Each
    recomputation is tried, the most expensive first, until none can be removed.

    Parameters
    ----------
    program : Program
    schedule : Schedule
        Whose peak is within the budget, and which computes nothing that is not read.
    budget : int
    most_trials : int
        Of leaving out something.

    Returns
    -------
    Schedule

    Examples
    --------
    >>> from cytape.graph.checkpoint.recompute_schedule import Program
    >>> program = Program((4, 4, 4), (1, 1, 1), ((), (0,), (1,)), ((2,), (1,), (0,)))
    >>> improved(program, ((), (0, 1), (0,)), 12, 100)
    ((), (), ())
    """
    cdef Copies copies = Copies(program, schedule)
    cdef Py_ssize_t n_trials = 0, place
    cdef bint found_any = True
    costs = program.costs
    cdef list places = sorted([
        (-costs[copies.made[place]], place)
        for place in range(copies.n_values, copies.n_places) if copies.again[place]])
    while found_any:
        found_any = False
        for _, place in places:
            if copies.again[place] and n_trials < most_trials:
                n_trials += 1
                found_any |= copies.leave_out(place, budget)
    return copies.schedule()


@cython.final
cdef class Copies:
    def __init__(self, program, tuple schedule):
        cdef list order = events(program, schedule), present = [-1] * program.n_values
        cdef list first = [0], read = []
        cdef int32_t place, made, reading, copy
        cdef Py_ssize_t n = len(order)
        self.n_values, self.n_places = program.n_values, n
        self.live = np.array(live_bytes(program, schedule), np.int64)
        self.sizes, self.change = np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
        self.again, self.is_gone = np.zeros(n, np.int8), np.zeros(n, np.int8)
        self.n_readings, self.gone, self.read = (np.zeros(n, np.int32) for _ in range(3))
        self.made, self.before, self.after, self.last, self.n_left = (
            np.full(n, -1, np.int32) for _ in range(5))
        for place in range(n):
            made = order[place][0]
            read += [present[value] for value in set(order[place][1])]
            first.append(len(read))
            if made >= 0:
                self.made[place] = made
                self.sizes[place] = program.sizes[made]
                self.again[place] = place >= self.n_values
                self.link(present[made], place)
                present[made] = place
        self.first, self.copy = np.array(first, np.int32), np.array(read, np.int32)
        self.place, self.earlier, self.later = (
            np.full(len(read), -1, np.int32) for _ in range(3))
        for place in range(n):
            for reading in range(self.first[place], self.first[place + 1]):
                copy = self.copy[reading]
                self.place[reading] = place
                self.earlier[reading] = self.last[copy]
                if self.last[copy] >= 0:
                    self.later[self.last[copy]] = reading
                self.last[copy] = reading
                self.n_readings[copy] += 1

    cdef bint leave_out(self, int32_t copy, int64_t budget) noexcept:
        """Keep the earlier copy alive, if there is room; remove copies made only for this one."""
        cdef int32_t start = self.end_of(self.before[copy])
        cdef Py_ssize_t i
        cdef bint is_room
        self.find_gone(copy)
        is_room = self.is_room(start, copy, budget)
        if is_room:
            self.keep_before(copy)
        for i in range(self.n_gone):
            self.is_gone[self.gone[i]] = False
        for i in range(self.n_read):
            self.n_left[self.read[i]] = -1
        return is_room

    cdef void find_gone(self, int32_t copy) noexcept:
        cdef Py_ssize_t i = 0
        cdef int32_t reading, read
        self.gone[0] = copy
        self.n_gone, self.n_read = 1, 0
        while i < self.n_gone:
            copy = self.gone[i]
            self.is_gone[copy] = True
            i += 1
            for reading in range(self.first[copy], self.first[copy + 1]):
                read = self.copy[reading]
                if self.n_left[read] < 0:
                    self.n_left[read] = self.n_readings[read]
                    self.read[self.n_read] = read
                    self.n_read += 1
                self.n_left[read] -= 1
                if self.n_left[read] == 0 and self.again[read]:
                    self.gone[self.n_gone] = read
                    self.n_gone += 1

    cdef bint is_room(self, int32_t start, int32_t copy, int64_t budget) noexcept:
        """Return whether a copy fits in memory from a place on, if `gone` is not computed."""
        cdef int64_t change = self.sizes[copy]
        cdef int32_t read, place
        cdef Py_ssize_t i
        cdef bint found = True
        for i in range(self.n_read):
            read = self.read[i]
            self.change[max(self.freed_from(read), start)] -= self.sizes[read]
            self.change[max(self.end_of(read), start)] += self.sizes[read]
        for place in range(start, copy):
            change += self.change[place]
            if not self.is_gone[place] and self.live[place] + change > budget:
                found = False
                break
        for i in range(self.n_read):
            read = self.read[i]
            self.change[max(self.freed_from(read), start)] = 0
            self.change[max(self.end_of(read), start)] = 0
        return found

    cdef void keep_before(self, int32_t copy) noexcept:
        cdef int32_t before = self.before[copy], place, read, reading, first = -1
        cdef Py_ssize_t i
        for place in range(self.end_of(before), copy):
            self.live[place] += self.sizes[copy]
        for i in range(self.n_read):
            read = self.read[i]
            for place in range(self.freed_from(read), self.end_of(read)):
                self.live[place] -= self.sizes[read]
            self.n_readings[read] = self.n_left[read]
        for i in range(self.n_gone):
            place = self.gone[i]
            self.live[place] = 0
            self.again[place] = False
            self.link(self.before[place], self.after[place])
            for reading in range(self.first[place], self.first[place + 1]):
                if self.later[reading] >= 0:
                    self.earlier[self.later[reading]] = self.earlier[reading]
                else:
                    self.last[self.copy[reading]] = self.earlier[reading]
                if self.earlier[reading] >= 0:
                    self.later[self.earlier[reading]] = self.later[reading]
        # Readers of the copy read the earlier one now, after its own readers.
        reading = self.last[copy]
        while reading >= 0:
            self.copy[reading] = before
            first, reading = reading, self.earlier[reading]
        if first >= 0:
            self.earlier[first] = self.last[before]
            if self.last[before] >= 0:
                self.later[self.last[before]] = first
            self.last[before] = self.last[copy]
        self.n_readings[before] += self.n_readings[copy]

    cdef int32_t end_of(self, int32_t copy) noexcept:
        """Return the place behind that where a copy is read last."""
        return (copy if self.last[copy] < 0 else self.place[self.last[copy]]) + 1

    cdef int32_t freed_from(self, int32_t copy) noexcept:
        """Return the place after the last remaining reading; of a removed copy, its place."""
        cdef int32_t reading = self.last[copy]
        if self.is_gone[copy]:
            return copy
        while reading >= 0 and self.is_gone[self.place[reading]]:
            reading = self.earlier[reading]
        return (copy if reading < 0 else self.place[reading]) + 1

    cdef void link(self, int32_t before, int32_t after) noexcept:
        """Link consecutive copies of a value; -1: none."""
        if before >= 0:
            self.after[before] = after
        if after >= 0:
            self.before[after] = before

    cdef tuple schedule(self):
        """Return the present schedule."""
        cdef list found = [], values = []
        cdef Py_ssize_t place
        for place in range(self.n_values, self.n_places):
            if self.made[place] < 0:
                found.append(tuple(values))
                values = []
            elif self.again[place]:
                values.append(self.made[place])
        return tuple(found)
