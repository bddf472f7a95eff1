"""Positions of stored elements: order, duplicates, errors."""

import numpy as np
import pytest

patterns = pytest.importorskip("cytape.ops.sparse_matrices.patterns")


def test_elements_in_any_order_are_sorted_and_summed():
    rows, cols = np.array([2, 0, 2, 0]), np.array([1, 3, 1, 0])
    pattern, summing = patterns.pattern_of(rows, cols, (3, 4))
    data = summing.matrix(np.ones(4)) @ np.array([1.0, 2.0, 3.0, 4.0])
    expected = np.zeros((3, 4))
    np.add.at(expected, (rows, cols), [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(pattern.matrix(data).toarray(), expected)
    np.testing.assert_array_equal(pattern.columns_matrix(data).toarray(), expected.T)
    assert pattern.rows.tolist() == [0, 0, 2] and pattern.size == 3
    assert patterns.pattern_of([0, 1], [1, 0], (2, 2))[1] is None
    assert patterns.pattern_of([], [], (0, 0))[0].size == 0


def test_positions_are_checked():
    with pytest.raises(ValueError, match="row index 3 is out of bounds for 3 rows"):
        patterns.pattern_of([3], [0], (3, 3))
    with pytest.raises(ValueError, match="column index -1"):
        patterns.pattern_of([0], [-1], (3, 3))
    with pytest.raises(TypeError, match="integers"):
        patterns.pattern_of([0.5], [0], (3, 3))
