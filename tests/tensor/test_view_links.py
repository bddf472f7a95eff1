"""Memory of links, which is reused."""

import tracemalloc

import numpy as np

import cytape


def test_links_of_the_dead_are_used_again():
    x = cytape.constant(np.zeros((10, 3)))

    def views(n):
        for _ in range(n):
            row = x[1:]
            for _ in range(10):
                row = row[:, :]

    views(10)
    tracemalloc.start()
    views(1000)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown < 10_000


def test_long_chains_are_left_without_recursion():
    view = cytape.constant(np.zeros(3))
    for _ in range(200_000):
        view = view[:]
    view = view * 1.0
    assert view.shape == (3,)
