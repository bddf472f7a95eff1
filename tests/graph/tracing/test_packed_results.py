"""Structures that traced functions return."""

from collections import namedtuple

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.ways import gradient

X = np.array([0.3, -1.2, 2.0])


def test_structures_go_in_and_come_out():
    pair = namedtuple("pair", "first second")

    @cytape.function
    def f(nested, *, shift):
        return {"sum": nested["a"] + nested["b"][0], "pair": pair(shift, [None, "word", 3.0])}

    result = f({"b": (X,), "a": cytape.constant(X)}, shift=np.float64(2.0))
    np.testing.assert_array_equal(result["sum"], 2 * X)
    assert float(result["pair"].first) == 2.0
    none, word, number = result["pair"].second
    assert none is None and word == "word" and float(number) == 3.0
    assert isinstance(number, cytape.Tensor)


def test_sparse_gradients_come_out_as_slices():
    @cytape.function
    def f(table):
        return gradient(lambda table: cnp.sum(cytape.gather(table, [0, 2, 2])), table)

    slices = f(np.ones((4, 2)))
    assert isinstance(slices, cytape.IndexedSlices)
    np.testing.assert_array_equal(slices.to_tensor(), [[1, 1], [0, 0], [2, 2], [0, 0]])
