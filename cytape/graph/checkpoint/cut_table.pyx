import numpy as np

cdef enum:
    MOST_CUTS = 256  # a choice is a byte


cdef void choose(const double* rest, const double* back, double more, long long taken,
                 long long needed, Py_ssize_t n_levels, unsigned char way, double* best,
                 unsigned char* ways) noexcept nogil:
    """Update entries for which a choice is faster: `rest` with fewer levels, `back`, extra time."""
    cdef Py_ssize_t level
    cdef double found
    for level in range(max(taken, needed), n_levels):
        found = rest[level - taken] + (0 if back == NULL else back[level]) + more
        if found < best[level]:
            best[level] = found
            ways[level] = way


def filled(Py_ssize_t n_levels, const double[::1] times, const signed char[::1] has_steps,
           const long long[::1] down, const long long[:, ::1] between,
           const long long[:, ::1] advance, const long long[:, ::1] first,
           const long long[::1] kept, const long long[::1] inside,
           const long long[::1] inside_first, const long long[::1] beside,
           const long long[::1] beside_down, const long long[:, ::1] fixed):
    """Fill the table of a dynamic program over cuts. All bytes are counted in levels.

    Parameters
    ----------
    n_levels : int
        Number of levels of bytes.
    times : ndarray of float
        Of computing all values before each cut.
    has_steps : ndarray of int8
        Whether steps back belong to the block before each cut: the values since the cut before it.
    down : ndarray of int
        To which cut one can go back by steps that read nothing but the frontier of each.
    between, advance, first : ndarray of int
        By two cuts: bytes of the second's frontier in addition to the first's; bytes to recompute
        it, and to compute it for the first time.
    kept, inside, inside_first : ndarray of int
        By cut: bytes that the steps of its block read; bytes to compute these.
    beside, beside_down : ndarray of int
        By cut: bytes of all else during the steps of its block, and down to `down`.
    fixed : ndarray of int
        By two cuts: bytes of the values between them that are computed once, and so stay in memory.

    Returns
    -------
    seconds, ways : ndarray
        By two cuts and level: the least time of going back from the second to the first, with the
        frontier of the first in memory beside the level; and how many cuts further the frontier is
        kept that this begins with, 0 if it is all that the next block's steps read.
    first_seconds, first_ways : ndarray
        The same by one cut and level: of coming to the end for the first time and going back.

    Raises
    ------
    ValueError
        If there are more than 256 cuts.
    """
    cdef Py_ssize_t n = len(times), length, s, t, j
    cdef long long own
    cdef double[:, :, ::1] table
    cdef double[:, ::1] whole
    cdef unsigned char[:, :, ::1] ways
    cdef unsigned char[:, ::1] first_ways
    if n > MOST_CUTS:
        raise ValueError(f"there are {n} cuts, {MOST_CUTS} are the most")
    table = np.full((n, n, n_levels), np.inf)
    whole = np.full((n, n_levels), np.inf)
    ways = np.zeros((n, n, n_levels), np.uint8)
    first_ways = np.zeros((n, n_levels), np.uint8)
    whole[n - 1] = 0
    for s in range(n):
        table[s, s] = 0
    for length in range(1, n):
        for s in range(n - length):
            t = s + length
            if not has_steps[t]:
                table[s, t] = table[s, t - 1]
                continue
            own = max(inside[s + 1] + fixed[s + 1, t] + beside[t],
                      kept[s + 1] + beside[s + 1])
            choose(&table[s + 1, t, 0], NULL, times[s + 1] - times[s], kept[s + 1], own, n_levels,
                   0, &table[s, t, 0], &ways[s, t, 0])
            for j in range(s + 1, t):
                choose(&table[j, t, 0], &table[s, max(down[j], s), 0], times[j] - times[s],
                       between[s, j],
                       max(advance[s, j] + fixed[j, t] + beside[t],
                           between[s, j] + beside_down[j]), n_levels, j - s,
                       &table[s, t, 0], &ways[s, t, 0])
    for s in range(n - 2, -1, -1):
        own = max(inside_first[s + 1], kept[s + 1] + beside[s + 1])
        choose(&whole[s + 1, 0], NULL, 0, kept[s + 1], own, n_levels, 0, &whole[s, 0],
               &first_ways[s, 0])
        for j in range(s + 1, n - 1):
            choose(&whole[j, 0], &table[s, max(down[j], s), 0], 0, between[s, j],
                   max(first[s, j], between[s, j] + beside_down[j]), n_levels, j - s, &whole[s, 0],
                   &first_ways[s, 0])
    return (np.asarray(table), np.asarray(ways), np.asarray(whole), np.asarray(first_ways))
