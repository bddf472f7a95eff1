"""The shape of what an index selects."""

import numpy as np
import pytest

import cytape
from cytape.ops.engine.op_kinds import OPS
from cytape.ops.shapes.index_shapes import gather, get_item, indexed_shape, scatter_add
from cytape.tensor.values.spec import Spec, symbolic_spec
from tests.cases import each

X = np.zeros((4, 3, 3, 5))
ROWS = np.array([0, 2, 2])
INDICES = [
    0, -1, slice(None), slice(1, 3), slice(3, 0, -2), slice(None, None, -1), slice(10, 20), None,
    Ellipsis, (), (0, 1), (Ellipsis, 0), (0, Ellipsis, 1), (slice(1, None), None, 0), ROWS,
    (ROWS, ROWS), (ROWS, 0), (0, ROWS), (slice(None), ROWS, 0), (0, slice(None), ROWS),
    (ROWS, slice(None), ROWS), (ROWS[:, None], ROWS), (ROWS, None, 1), (1, None, ROWS),
    (Ellipsis, ROWS), np.array([], int), np.array(2), (np.array(1), slice(None), np.array(0)),
    np.array([True, False, True, True]), (slice(None), np.ones((3, 3), bool)),
    np.ones(X.shape, bool), (ROWS, np.array([True, True, True])), np.array(True), np.array(False),
    True, False, (True, 0),
    (slice(None), ROWS, slice(None), np.array([True, False, True, True, False]))]


@each("index", INDICES, ids=str)
def test_as_numpy_indexes(index):
    assert indexed_shape(X.shape, index) == X[index].shape
    assert get_item(Spec.of(X.shape, "float32"), index=index) is Spec.of(X[index].shape, "float32")


@each("index", INDICES, ids=str)
def test_unknown_extents_of_the_input_are_unknown_in_the_result(index):
    for hidden in range(X.ndim):
        shape = tuple(None if i == hidden else n for i, n in enumerate(X.shape))
        found = indexed_shape(shape, index)
        assert len(found) == X[index].ndim
        assert all(n in (None, m) for n, m in zip(found, X[index].shape, strict=True))


@each("index", INDICES, ids=str)
def test_of_an_array_its_spec_is_enough(index):
    def hide(part):
        return symbolic_spec(part.shape, part.dtype) if isinstance(part, np.ndarray) else part

    hidden = tuple(map(hide, index)) if isinstance(index, tuple) else hide(index)
    found = indexed_shape(X.shape, hidden)
    assert len(found) == X[index].ndim
    assert all(n in (None, m) for n, m in zip(found, X[index].shape, strict=True))


@each("index", [
    (0,) * 5, 4, -5, (slice(None), 3), np.array([True, False]), (ROWS, np.array([0, 1])),
    np.array([4]),
], ids=str)
def test_indices_that_numpy_refuses(index):
    with pytest.raises((IndexError, ValueError)):
        X[index]
    with pytest.raises((IndexError, ValueError)):
        get_item(Spec.of(X.shape, float), index=index)


def test_slices_along_an_axis():
    x = symbolic_spec((None, 4, 2), np.dtype(float))
    indices = symbolic_spec((3, None), np.dtype(int))
    assert gather(x, indices, axis=1, mode="raise").shape == (None, 3, None, 2)
    values = symbolic_spec((None, 3, 5, 2), np.dtype(float))
    assert scatter_add(values, indices, axis=1, mode="raise", size=7).shape == (None, 7, 2)


@each("shape", [(2, 33, 2, 2), (2, 3, 3), (4,)])
def test_values_that_do_not_fit_an_index_are_refused(shape):
    index = np.array([0, 1]), slice(None), np.array([0, 1])
    graph = cytape.Graph()
    with graph.as_default():
        values = graph.placeholder("float32", shape)
        with pytest.raises(ValueError, match="cannot be added"):
            graph.build(OPS["IndexAdd"], values, index=index, shape=(4, 3, 2))
