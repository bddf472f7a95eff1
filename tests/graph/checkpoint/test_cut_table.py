"""The table of cuts; what it says of chains and graphs is tested with `cuts`."""

import numpy as np
import pytest

from cytape.graph.checkpoint.cut_table import filled

NAMES = (
    "n_levels", "times", "has_steps", "down", "between", "advance", "first", "kept", "inside",
    "inside_first", "beside", "beside_down", "fixed")


def problem(rng, n, n_levels):
    """Numbers that need not be those of a program."""
    *by_two, fixed = [rng.integers(0, 5, (n, n)) for _ in range(4)]
    by_one = [rng.integers(0, 5, n) for _ in range(5)]
    down = np.array([rng.integers(0, j + 1) for j in range(n)])
    return dict(zip(NAMES, (
        n_levels, np.cumsum(rng.integers(1, 9, n)).astype(float),
        rng.integers(0, 2, n).astype(np.int8), down, *by_two, *by_one, fixed), strict=True))


def back(p, s, t, level):
    """The least time of going back from one cut to another, by trying every way."""
    if s == t:
        return 0.0, None
    if not p["has_steps"][t]:
        return back(p, s, t - 1, level)[0], None
    beside, times, ways = p["beside"][t], p["times"], {}
    least = max(p["inside"][s + 1] + p["fixed"][s + 1, t] + beside,
                p["kept"][s + 1] + p["beside"][s + 1])
    for way in range(t - s):
        j = s + max(way, 1)
        taken = p["between"][s, j] if way else p["kept"][j]
        if way:
            least = max(p["advance"][s, j] + p["fixed"][j, t] + beside, taken + p["beside_down"][j])
        if level >= max(least, taken):
            ways[way] = back(p, j, t, level - taken)[0] + times[j] - times[s] + (
                back(p, s, max(p["down"][j], s), level)[0] if way else 0)
    return min(((time, way) for way, time in ways.items()), default=(np.inf, 0))


def whole(p, s, level):
    """Return the time of runs that reach the end first."""
    n = len(p["times"])
    if s == n - 1:
        return 0.0, None
    ways = {}
    least = max(p["inside_first"][s + 1], p["kept"][s + 1] + p["beside"][s + 1])
    for way in range(n - 1 - s):
        j = s + max(way, 1)
        taken = p["between"][s, j] if way else p["kept"][j]
        if way:
            least = max(p["first"][s, j], taken + p["beside_down"][j])
        if level >= max(least, taken):
            ways[way] = whole(p, j, level - taken)[0] + (
                back(p, s, max(p["down"][j], s), level)[0] if way else 0)
    return min(((time, way) for way, time in ways.items()), default=(np.inf, 0))


def test_the_table_is_what_trying_every_way_finds():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = problem(rng, 6, 9)
        seconds, ways, first_seconds, first_ways = filled(*p.values())
        for s in range(6):
            for level in range(9):
                for t in range(s, 6):
                    time, way = back(p, s, t, level)
                    assert seconds[s, t, level] == time
                    assert way is None or np.isinf(time) or ways[s, t, level] == way
                time, way = whole(p, s, level)
                assert first_seconds[s, level] == time
                assert way is None or np.isinf(time) or first_ways[s, level] == way


def test_there_is_no_way_up():
    seconds, *_ = filled(*problem(np.random.default_rng(1), 4, 5).values())
    assert np.isinf(seconds[np.tril_indices(4, -1)]).all()


def test_too_many_cuts_are_refused():
    with pytest.raises(ValueError, match="there are 301 cuts, 256 are the most"):
        filled(*problem(np.random.default_rng(2), 301, 2).values())
