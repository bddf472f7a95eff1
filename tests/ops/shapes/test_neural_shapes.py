"""Shapes of what neural networks compute: of unknown batches and images, and what does not fit."""

import numpy as np
import pytest

import cytape
from cytape import nn
from cytape.errors import SymbolicTensorError
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from tests.cases import each
from tests.ways import watching

FLOAT = np.dtype(float)
IMAGES = np.random.default_rng(0).normal(size=(2, 6, 5, 3))
FILTERS = np.random.default_rng(1).normal(size=(3, 2, 3, 4))
LAYERS = {
    "conv2d": lambda x: nn.conv2d(x, FILTERS, 1, "VALID"),
    "conv2d, strided": lambda x: nn.conv2d(x, FILTERS, 2, [(1, 1), (0, 1)]),
    "max_pool2d": lambda x: nn.max_pool2d(x, 2, 1, "VALID"),
    "avg_pool2d": lambda x: nn.avg_pool2d(x, 2, 2, "VALID"),
    "softmax": lambda x: nn.softmax(x, axis=(1, 2)),
    "batch norm": lambda x: nn.fused_batch_norm(x, np.ones(3), np.zeros(3))[0],
    "logsumexp": lambda x: nn.logsumexp(x, axis=-1)}


@each(shape=[(None, 6, 5, 3), (None, None, None, 3)], name=LAYERS)
def test_layers_of_images_of_unknown_number_and_size(name, shape):
    graph = Graph()
    x = graph.placeholder(FLOAT, shape)
    with watching(x) as tape:
        y = LAYERS[name](x)
        loss = (y * y).sum()
    gradient = tape.gradient(loss, x)
    assert gradient.shape == shape
    symbols = [graph.symbol_of(y), graph.symbol_of(gradient)]
    found = run(graph, symbols, {graph.symbol_of(x): IMAGES})
    expected = np.asarray(LAYERS[name](IMAGES))
    assert y.shape[0] is None
    assert all(n in (None, m) for n, m in zip(y.shape, expected.shape, strict=True))
    if None not in shape[1:]:
        assert y.shape[1:] == expected.shape[1:]
    np.testing.assert_allclose(found[0], expected)
    eager = cytape.grad(lambda x: (LAYERS[name](x) ** 2).sum())(IMAGES)
    np.testing.assert_allclose(found[1], eager, rtol=1e-9, atol=1e-12)


def test_padding_to_the_same_size_needs_to_know_it():
    x = Graph().placeholder(FLOAT, (2, None, 5, 3))
    with pytest.raises(SymbolicTensorError, match="size of the image"):
        nn.conv2d(x, FILTERS, 1, "SAME")


def test_a_kernel_has_a_size():
    graph = Graph()
    x, filters = graph.placeholder(FLOAT, (2, 6, 5, 3)), graph.placeholder(FLOAT, (None, 2, 3, 4))
    with pytest.raises(SymbolicTensorError, match="kernel"):
        nn.conv2d(x, filters, 1, "VALID")


@each("labels, dtype, error", [
    ((3,), "float64", TypeError), ((4,), "int64", ValueError), ((3, 1), "int64", ValueError)])
def test_labels_that_do_not_fit(labels, dtype, error):
    graph = Graph()
    logits, labels = graph.placeholder(FLOAT, (3, 5)), graph.placeholder(np.dtype(dtype), labels)
    with pytest.raises(error):
        nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def test_a_batch_of_unknown_size_has_a_loss_and_a_gradient():
    graph = Graph()
    x, labels = graph.placeholder(FLOAT, (None, 3)), graph.placeholder(np.dtype(int), (None,))
    w = cytape.constant(np.arange(12.0).reshape(3, 4) / 10)
    with graph.as_default():
        with watching(x) as tape:
            loss = np.mean(nn.sparse_softmax_cross_entropy_with_logits(labels, np.tanh(x) @ w))
        gradient = tape.gradient(loss, x)
    values, classes = IMAGES[0, 0, :, :], np.array([0, 1, 3, 2, 0])
    (found,) = run(graph, [graph.symbol_of(gradient)],
                   {graph.symbol_of(x): values, graph.symbol_of(labels): classes})
    expected = cytape.grad(lambda x: np.mean(
        nn.sparse_softmax_cross_entropy_with_logits(classes, np.tanh(x) @ w)))(values)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
