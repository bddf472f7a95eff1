"""Who is a view of whom: rings of tensors that come and go."""

import random

import numpy as np

import cytape
from cytape.tensor.tensor import live_tensors


def test_views_die_with_their_names():
    x = cytape.constant(np.zeros((100, 3)))
    before = live_tensors()
    rows = list(x)
    nested = [row[1:] for row in rows]
    assert live_tensors() == before + 200
    del rows
    assert live_tensors() == before + 100
    del x, nested
    assert live_tensors() == before - 1


def test_views_that_come_and_go_in_any_order():
    numbers = random.Random(0)
    array = np.zeros((20, 4))
    x = cytape.constant(array)
    views = []
    for step in range(500):
        array = array.copy()
        row, start = numbers.randrange(20), numbers.randrange(4)
        views.append((x[row:], row, slice(None)))
        views.append((views[-1][0][0][start:], row, start))
        for _ in range(min(len(views), numbers.randrange(5))):
            del views[numbers.randrange(len(views))]
        array[row, start] = x[row, start] = float(step)
        for view, row, start in views:
            expected = array[row:] if type(start) is slice else array[row, start:]
            np.testing.assert_array_equal(view, expected)
        view = None


def test_a_ring_is_left_by_a_tensor_of_its_own():
    def f(row):
        row[0] = 5.0
        return row

    x = cytape.constant(np.zeros((3, 2)))
    changed = cytape.map_fn(f, x)
    np.testing.assert_array_equal(changed, [[5.0, 0.0]] * 3)
    np.testing.assert_array_equal(x, np.zeros((3, 2)))
