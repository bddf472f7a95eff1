"""Placement of boxes."""

import random
from itertools import combinations

import pytest

from cytape.tensor.pictures.layered_layout import layered


def overlapping(layout, sizes):
    """List the pairs of boxes that have a point in common."""
    return [(a, b) for a, b in combinations(sizes, 2) if all(
        abs(layout.centres[a][axis] - layout.centres[b][axis])
        < (sizes[a][axis] + sizes[b][axis]) / 2 - 1e-9 for axis in (0, 1))]


def crossed(layout, sizes, arrow):
    """List the boxes that a vertical part of an arrow, or its ends between layers, run through."""
    route, found = layout.routes[arrow], []
    for (xa, ya), (xb, yb) in zip(route[1::2], route[2::2], strict=False):
        assert xa == xb
        found += [key for key, (x, y) in layout.centres.items()
                  if abs(x - xa) < sizes[key][0] / 2 and y > min(ya, yb) and y < max(ya, yb)]
    return found


@pytest.mark.parametrize("seed", range(12))
def test_random_diagrams(seed):
    rng = random.Random(seed)
    n = rng.randrange(1, 60)
    sizes = {i: (rng.randrange(10, 200), rng.randrange(10, 60)) for i in range(n)}
    arrows = [(rng.randrange(i), i) for i in range(1, n) for _ in range(rng.randrange(3))]
    layout = layered(sizes, arrows)
    assert not overlapping(layout, sizes)
    for start, end in arrows:
        assert layout.centres[start][1] < layout.centres[end][1]
        assert not crossed(layout, sizes, (start, end))
    for key, (x, y) in layout.centres.items():
        assert sizes[key][0] / 2 - 1e-9 <= x <= layout.width - sizes[key][0] / 2 + 1e-9
        assert sizes[key][1] / 2 - 1e-9 <= y <= layout.height - sizes[key][1] / 2 + 1e-9


def test_one_arrow_of_a_circle_points_up():
    arrows = [(0, 1), (1, 2), (2, 0), (2, 3)]
    layout = layered(dict.fromkeys(range(4), (10, 10)), arrows)
    up = [arrow for arrow in arrows if layout.centres[arrow[0]][1] > layout.centres[arrow[1]][1]]
    assert len(up) == 1
    (_, first), *_, (_, last) = layout.routes[up[0]]
    assert first > last


def test_a_chain_is_straight_and_a_source_stands_near_its_reader():
    layout = layered(dict.fromkeys("abcx", (10, 10)), [("a", "b"), ("b", "c"), ("x", "c")])
    assert layout.centres["x"][1] == layout.centres["b"][1]
    assert layout.centres["a"][0] == pytest.approx(layout.centres["b"][0])


def test_crossings_are_avoided():
    layout = layered(dict.fromkeys("abcd", (10, 10)), [("a", "d"), ("b", "c")])
    assert (layout.centres["a"][0] < layout.centres["b"][0]) == (
        layout.centres["d"][0] < layout.centres["c"][0])


def test_nothing():
    assert layered({}, []) == ({}, {}, 0.0, 0.0)


def test_a_long_chain_with_a_constant_and_a_long_arrow_at_each_box_stays_straight():
    n = 100
    sizes = {("op", i): (100, 40) for i in range(n)}
    sizes |= {("constant", i): (20, 10) for i in range(1, n, 2)}
    arrows = [(("op", i - 1), ("op", i)) for i in range(1, n)]
    arrows += [(("constant", i), ("op", i)) for i in range(1, n, 2)]
    arrows += [(("op", 0), ("op", i)) for i in range(2, n, 2)]
    layout = layered(sizes, arrows)
    across = [layout.centres["op", i][0] for i in range(n)]
    assert max(across) - min(across) < 100 and layout.width < 400
