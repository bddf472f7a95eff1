"""Dropout: what is dropped, what is kept, and the same in the backward pass."""

import numpy as np
import pytest

import cytape
from cytape import nn
from cytape.graph import Graph
from cytape.graph.run.reference import run


def test_dropout_drops_a_share_and_keeps_the_mean():
    x = np.ones((100, 50))
    y = nn.dropout(x, 0.25, seed=1)
    assert type(y) is np.ndarray
    np.testing.assert_allclose(np.unique(y), [0, 4 / 3])
    assert abs(y.mean() - 1) < 0.03
    assert isinstance(nn.dropout(cytape.constant(x), 0.25), cytape.Tensor)
    assert nn.dropout(cytape.constant(np.float32([1, 2])), 0.5).dtype == np.float32


def test_dropout_of_nothing_and_bad_arguments():
    x = cytape.constant([1.0, 2.0])
    assert nn.dropout(x, 0) is x
    for rate in (-0.1, 1, 1.5):
        with pytest.raises(ValueError, match="rate"):
            nn.dropout(x, rate)
    with pytest.raises(TypeError, match="int64"):
        nn.dropout(cytape.constant([1, 2]), 0.5)


def test_dropped_elements_get_no_gradient_and_the_others_their_share():
    x = cytape.constant(np.arange(1.0, 101.0))
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = nn.dropout(x, 0.5, seed=3)
    gradient = tape.gradient(y, x).numpy()
    np.testing.assert_array_equal(gradient, np.where(y.numpy() == 0, 0, 2))
    assert 20 < (gradient == 0).sum() < 80


@pytest.mark.parametrize("shape", [(40,), (None,)])
def test_dropout_in_a_graph_chooses_once_in_a_run_and_anew_in_the_next(shape):
    graph = Graph()
    graph.seed = 5
    with graph.as_default():
        x = graph.placeholder(np.dtype(float), shape)
        with cytape.GradientTape() as tape:
            tape.watch(x)
            y = nn.dropout(x, 0.5)
        gradient = tape.gradient(y, x)
    symbols = [graph.symbol_of(y), graph.symbol_of(gradient)]
    values = np.arange(1.0, 41.0)
    runs = [run(graph, symbols, {graph.symbol_of(x): values}) for _ in range(2)]
    for dropped, slope in runs:
        np.testing.assert_array_equal(slope, np.where(dropped == 0, 0, 2))
        np.testing.assert_array_equal(dropped, slope * values)
    assert not np.array_equal(runs[0][0], runs[1][0])
