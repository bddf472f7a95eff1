"""Distances and alignment of sets of points: values, gradients, errors."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each

scipys = pytest.importorskip("scipy.spatial")
ours = pytest.importorskip("cytape.scipy.spatial")

X, Y = np.random.default_rng(0).normal(size=(2, 5, 3))


@each("function", [
    lambda m, x, y: m.distance_matrix(x, y[:2]), lambda m, x, y: m.distance_matrix(x, y, 1),
    lambda m, x, y: m.distance_matrix(x, y, np.inf), lambda m, x, y: m.distance_matrix(x, y, 3.5),
    lambda m, x, y: m.minkowski_distance(x[:, None], y, 3),
    lambda m, x, y: m.procrustes(x, y)[1], lambda m, x, y: m.procrustes(x, y)[2]])
def test_values_and_gradients(function):
    expected = function(scipys, X, Y)
    np.testing.assert_allclose(function(ours, cytape.constant(X), Y), expected, 1e-10)
    np.testing.assert_allclose(
        cytape.function(lambda x, y: function(ours, x, y))(X, Y), expected, 1e-10)
    check_grads(lambda x, y: function(ours, x, y), [X, Y], order=1)


def test_errors():
    for call in (lambda m, x: m.distance_matrix(x, Y[:, :2]), lambda m, x: m.procrustes(x, Y[:2]),
                 lambda m, x: m.procrustes(x * 0, Y)):
        with pytest.raises(ValueError) as theirs:
            call(scipys, X)
        with pytest.raises(ValueError) as found:
            call(ours, cytape.constant(X))
        assert str(found.value) == str(theirs.value)
