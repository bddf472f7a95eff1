"""Stacks that loops leave, as arrays of a known number of rows: copied without Python."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphError
from cytape.ops.adjoints.extent_checks import ensure_shape
from tests.cases import each
from tests.graph.plans import plan_of

ROWS = np.arange(6.0).reshape(3, 2)


@each(n=[0, 1, 3, 500], dtype=["float64", "float32", "complex128", "int64", "bool"])
def test_rows_are_copied(n, dtype):
    rows = np.arange(2.0 * n).reshape(n, 2).astype(dtype)
    squares = cytape.function(lambda x: cytape.map_fn(lambda row: row * row, x))
    for _ in range(3):
        found = squares(rows)
        np.testing.assert_array_equal(found, rows * rows)
        assert found.dtype == dtype


def test_nodes_after_a_loop_run_without_python():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (3, 2))
        y = cnp.tanh(cytape.map_fn(lambda row: row * row, x)) + x
    plan = plan_of(graph, [x], [y])
    assert plan.n_calls == 0
    np.testing.assert_allclose(plan.run([ROWS])[0], np.tanh(ROWS * ROWS) + ROWS)


def test_another_number_of_rows_is_an_error():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (None, 2))
        y = ensure_shape(cytape.map_fn(lambda row: row * row, x), (3, None)) + 1.0
    session = cytape.Session(graph)
    np.testing.assert_array_equal(session.run(y, {x: ROWS}), ROWS * ROWS + 1)
    with pytest.raises(GraphError, match="wrote 2 rows, but 3 were expected"):
        session.run(y, {x: ROWS[:2]})
