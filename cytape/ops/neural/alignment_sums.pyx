from libc.math cimport exp, log
from libc.stdint cimport int64_t, uint8_t

import numpy as np

cdef double NEVER = -1e30  # logarithm of a probability of 0, whose differences are finite


def forward_sums(const double[:, :, ::1] scores, const uint8_t[:, ::1] skips,
                 const int64_t[::1] n_steps):
    """Return the logarithms of the sums over beginnings of alignments, by time and example.

    Parameters
    ----------
    scores : ndarray
        Logarithms of the shares of all states, of shape ``(time, batch, state)``.
    skips : ndarray
        Of shape ``(batch, state)``.
    n_steps : ndarray
        One number per example; later sums are those of the last step.
    """
    found = np.empty((scores.shape[0], scores.shape[1], scores.shape[2]))
    check(scores, skips, n_steps)
    cdef double[:, :, ::1] sums = found
    cdef Py_ssize_t t, i, s, n = scores.shape[2]
    with nogil:
        for i in range(scores.shape[1]):
            for s in range(n):
                sums[0, i, s] = scores[0, i, s] if s < 2 else NEVER
            for t in range(1, scores.shape[0]):
                for s in range(n):
                    sums[t, i, s] = sums[t - 1, i, s] if t >= n_steps[i] else (
                        scores[t, i, s] + sum_of_three(
                            sums[t - 1, i, s], sums[t - 1, i, s - 1] if s else NEVER,
                            sums[t - 1, i, s - 2] if s > 1 and skips[i, s] else NEVER))
    return found


def state_shares(const double[:, :, ::1] scores, const uint8_t[:, ::1] skips,
                 const int64_t[::1] n_steps, const double[:, :, ::1] sums,
                 const double[:, ::1] after, const double[::1] totals):
    """Return the share of all alignments that is in each state, by time and example.

    Parameters
    ----------
    scores, skips, n_steps
        As for `forward_sums`, which returned `sums`.
    after : ndarray
        0 for the states that an alignment may end in, else the logarithm of 0.
    totals : ndarray
        The logarithms of the sums over all alignments.
    """
    found = np.zeros((scores.shape[0], scores.shape[1], scores.shape[2]))
    check(scores, skips, n_steps)
    cdef double[:, :, ::1] shares = found
    cdef double[:, ::1] later = np.array(after), following = np.empty_like(after)
    cdef Py_ssize_t t, i, s, n = scores.shape[2]
    cdef double exponent
    with nogil:
        for i in range(scores.shape[1]):
            if totals[i] < NEVER / 2:
                continue
            for t in range(n_steps[i] - 1, -1, -1):
                for s in range(n):
                    exponent = sums[t, i, s] + later[i, s] - totals[i]
                    shares[t, i, s] = exp(0 if exponent > 0 else exponent)
                    following[i, s] = later[i, s] + scores[t, i, s]
                for s in range(n):
                    later[i, s] = sum_of_three(
                        following[i, s], following[i, s + 1] if s + 1 < n else NEVER,
                        following[i, s + 2] if s + 2 < n and skips[i, s + 2] else NEVER)
    return found


cdef int check(const double[:, :, ::1] scores, const uint8_t[:, ::1] skips,
               const int64_t[::1] n_steps) except -1:
    if not (skips.shape[0] == n_steps.shape[0] == scores.shape[1]
            and skips.shape[1] == scores.shape[2]):
        raise ValueError("expected arrays of shapes (time, batch, state), (batch, state) and "
                         "(batch,)")
    return 0


cdef double sum_of_three(double a, double b, double c) noexcept nogil:
    """Return the logarithm of the sum of three exponentials, one of which is not 0."""
    cdef double most = a if a > b else b
    most = c if c > most else most
    if a != a or b != b or c != c:
        return a + b + c
    return most + log(term(a - most) + term(b - most) + term(c - most))


cdef double term(double exponent) noexcept nogil:
    """Return the exponential; 1 and numbers without effect on a sum of at least 1 cost little."""
    return 1 if exponent == 0 else 0 if exponent < -40 else exp(exponent)
