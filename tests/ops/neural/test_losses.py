"""Losses: extreme arguments, vectors of length 0, all ways; specs_activations.py has values."""

import numpy as np
import pytest
from scipy import special

import cytape
from cytape import nn
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import check, gradient


def test_log_cosh_near_0_and_far_away():
    z = np.array([1e-9, 1e-3, 0.999999, 1.0, 50.0, 1e5])
    expected = np.where(z < 1e-2, z**2 / 2 - z**4 / 12, np.logaddexp(z, -z) - np.log(2))
    np.testing.assert_allclose(nn.log_cosh_loss(np.zeros(6), z), expected, rtol=1e-10)
    np.testing.assert_allclose(
        gradient(lambda z: nn.log_cosh_loss(np.zeros(6), z), z), np.tanh(z), rtol=1e-12)


def test_sigmoid_cross_entropy_of_certain_labels():
    x = np.array([40.0, -40.0, 1e4, -1e4])
    for label, sign in ((0.0, 1), (1.0, -1)):
        labels = np.full(4, label)
        found = nn.sigmoid_cross_entropy_with_logits(labels, x)
        np.testing.assert_allclose(found, -special.log_expit(-sign * x), rtol=1e-12)
        np.testing.assert_allclose(
            gradient(lambda x, y=labels: nn.sigmoid_cross_entropy_with_logits(y, x), x),
            sign * special.expit(sign * x), rtol=1e-12)


def test_divergences_of_impossible_events():
    p = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    q = np.array([[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]])
    with np.errstate(divide="ignore"):
        assert nn.kl_divergence(p, q).tolist() == [np.log(2), 0, np.inf]
    slope = gradient(lambda q: nn.kl_divergence(p[:2], q), q[:2])
    np.testing.assert_array_equal(slope, [[0, -2], [0, -1]])


def test_vectors_of_length_0():
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert np.isfinite(gradient(nn.l2_normalize, x)).all()
    assert nn.cosine_similarity(x, x).round(12).tolist() == [0, 1]
    assert np.isfinite(gradient(lambda x: nn.cosine_similarity(x, x), x)).all()


@each("size", [1e200, 1.0, 1e-3])
def test_lengths_do_not_overflow(size):
    x = size * np.array([3.0, 4.0, 0.0])
    np.testing.assert_allclose(nn.l2_normalize(x), [0.6, 0.8, 0])
    slope = gradient(lambda x: nn.l2_normalize(x)[0], x)
    np.testing.assert_allclose(slope, np.array([0.128, -0.096, 0]) / size, rtol=1e-9, atol=1e-300)


def test_ways_of_normalisation():
    check(lambda x: np.sum(nn.l2_normalize(x) ** 3), lambda x: np.sum(
        (x / np.sqrt(np.sum(x**2))) ** 3), np.array([[0.3, -1.0, 20.0]]), ways=["function", "vmap"])


@each("loss", [nn.squared_error, nn.huber_loss, nn.log_cosh_loss, nn.log_poisson_loss,
               nn.kl_divergence, nn.cosine_similarity, nn.hinge_loss, nn.absolute_error,
               nn.sigmoid_cross_entropy_with_logits])
def test_derivatives_in_labels_and_predictions(loss):
    labels, predictions = np.array([[0.4, 0.6, 0.3]]), np.array([[0.9, 0.2, 2.0]])
    check_grads(loss, [labels, predictions])
    check(lambda x: np.sum(loss(labels, x) ** 2), lambda x: np.sum(loss(labels, x) ** 2),
          predictions, ways=["function", "vmap", "graph"])
    assert loss(labels.astype("f4"), predictions.astype("f4")).dtype == np.float32
    assert loss([1, 0], [1, 1]).dtype == np.float64


def test_triplets():
    a, p, n = np.array([[0.0, 0.5]]), np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]])
    assert nn.triplet_loss(a, p, n, 0.5) == [0.5]
    assert nn.triplet_loss(a, a, n) == [0.0]
    check_grads(nn.triplet_loss, [a, p, n])


@each("loss", [nn.squared_error, nn.huber_loss, nn.log_cosh_loss, nn.log_poisson_loss,
               nn.kl_divergence, nn.hinge_loss, nn.absolute_error,
               nn.sigmoid_cross_entropy_with_logits])
def test_shapes_that_would_broadcast_are_refused(loss):
    for labels, logits in ((np.ones(4), np.ones((4, 1))), (np.ones(1), np.ones(4))):
        for call in (loss, cytape.function(loss), lambda y, x: cytape.grad(
                lambda x: np.sum(loss(y, x)))(x)):
            with pytest.raises(ValueError, match=r"same shape.*, got \(\d,\) and \(4.*: reshape"):
                call(labels, logits)


@each("shapes, fit", [
    (((None,), (3,)), True), ((None, (3,)), True), (((None,), (None, 1)), False)])
def test_unknown_extents(shapes, fit):
    signature = [cytape.Spec.of(shape, float) for shape in shapes]
    loss = cytape.function(nn.squared_error, input_signature=signature)
    if fit:
        assert loss(np.ones(3), np.zeros(3)).tolist() == [1, 1, 1]
    else:
        with pytest.raises(ValueError, match="same shape"):
            loss(np.ones(3), np.ones((3, 1)))


def test_a_scalar_fits():
    assert nn.squared_error(1, [1.0, 3.0]).tolist() == [0, 4]


def test_a_negative_delta_is_refused():
    for delta in (-1.0, np.nan, cytape.constant(-1.0)):
        with pytest.raises(ValueError, match="delta must be at least 0"):
            nn.huber_loss([1.0], [2.0], delta)
