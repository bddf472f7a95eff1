"""Quantiles that SciPy searches for, found by bisection where its number is far off."""

import sys

import numpy as np

from cytape.ops.engine.op_kinds import nondifferentiable


def _solve(q, *shapes, name, method):
    """Return quantiles, from which steps of Newton's method for logarithms converge."""
    dist = getattr(sys.modules[__package__], name)
    q, *shapes = np.broadcast_arrays(*[np.asarray(x, float) for x in (q, *shapes)])
    found = np.array(getattr(dist.scipys, method)(q, *shapes), float)
    is_lower = method == "ppf"
    log_p = dist.logarithms["logcdf" if is_lower else "logsf"]
    with np.errstate(all="ignore"):
        log_q = np.log(q)
        error = abs(log_p(found, *shapes) - log_q)
        is_far = (q > 0) & (q < 1) & (found == found) & ~(
            error < 0.1 * np.minimum(1, -log_q) + 1e-14)
        if not np.any(is_far):
            return found
        log_q, error, *shapes = [x[is_far] for x in (log_q, error, *shapes)]
        largest = np.finfo(float).max
        low, high = [_order(np.clip(end + 0 * log_q, -largest, largest))
                     for end in dist.support(*shapes)]
        for _ in range(64):  # the numbers of double precision are as many as those of 64 bits
            middle = (low & high) + ((low ^ high) >> 1)
            z = _number(middle)
            excess = log_p(z, *shapes) - log_q
            is_above = np.where(  # probabilities overflow far out
                excess == excess, (excess > 0) == is_lower, z > dist.inside(*shapes))
            low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
        z = _number(low)
        is_nearer = abs(log_p(z, *shapes) - log_q) < np.where(error == error, error, np.inf)
        found[is_far] = np.where(is_nearer, z, found[is_far])
    return found


def _order(x):
    """Return integers in the order of numbers."""
    return np.where(np.signbit(x), -1, 1) * abs(x).view(np.int64)


def _number(order):
    return np.copysign(abs(order).view(float), order)


solve_op = nondifferentiable("ScipyStatsSolvedQuantile", _solve)
