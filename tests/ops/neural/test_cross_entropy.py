"""Cross-entropies: extreme values, impossible classes, bad labels."""

import numpy as np
import pytest
from scipy import special

import cytape
from cytape import nn
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import gradient

EXTREME = np.array([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4], [1e4, 1e4, 1e4]])


@each("one_hot", [np.eye(3), np.eye(3, dtype=int)], ids=["float", "int"])
def test_both_cross_entropies_agree_and_are_stable(one_hot):
    classes = np.array([0, 1, 2])
    logs = special.log_softmax(EXTREME, axis=-1)
    dense = nn.softmax_cross_entropy_with_logits(one_hot, EXTREME)
    sparse = nn.sparse_softmax_cross_entropy_with_logits(classes, EXTREME)
    np.testing.assert_allclose(dense, -logs[np.arange(3), classes])
    np.testing.assert_allclose(sparse, dense)
    expected = special.softmax(EXTREME, axis=-1) - one_hot
    for loss, labels in [
        (nn.softmax_cross_entropy_with_logits, one_hot),
        (nn.sparse_softmax_cross_entropy_with_logits, classes),
    ]:
        result = gradient(lambda x, loss=loss, labels=labels: loss(labels, x), EXTREME)
        np.testing.assert_allclose(result, expected, atol=1e-15)


@each("loss", [nn.softmax_cross_entropy_with_logits, nn.sigmoid_cross_entropy_with_logits])
def test_exchanged_arguments_warn_where_labels_are_differentiated(loss):
    labels, logits = np.eye(2), np.array([[0.5, -1.0], [2.0, 0.0]])
    with pytest.warns(UserWarning, match="were they exchanged"):
        cytape.grad(lambda x: cytape.numpy.sum(loss(x, labels)))(logits)
    cytape.grad(lambda x: cytape.numpy.sum(loss(x, logits)))(labels)
    cytape.grad(lambda x: cytape.numpy.sum(loss(x, x)))(logits)
    of_softmax = cytape.grad(lambda x: cytape.numpy.sum(loss(nn.softmax(x), labels[0])))
    for transform in (lambda f: f, cytape.function, cytape.vmap):
        transform(of_softmax)(logits if transform is cytape.vmap else logits[0])


def test_an_impossible_class_without_a_label_costs_nothing():
    logits, labels = np.array([0.0, -np.inf, 0.0]), np.array([0.5, 0.0, 0.5])
    np.testing.assert_allclose(nn.softmax_cross_entropy_with_logits(labels, logits), np.log(2))
    np.testing.assert_array_equal(
        gradient(lambda x: nn.softmax_cross_entropy_with_logits(labels, x), logits), np.zeros(3))


def test_cross_entropies_have_a_second_derivative(rng):
    logits = rng.normal(size=(2, 3))
    labels = special.softmax(rng.normal(size=(2, 3)), axis=-1)
    check_grads(nn.softmax_cross_entropy_with_logits, [labels, logits], order=3)
    check_grads(lambda x: nn.sparse_softmax_cross_entropy_with_logits([0, 2], x), [logits], order=3)


@each(("labels", "error"), [
    ([0, 3], ValueError), ([0, -1], ValueError), ([0], ValueError), ([[0, 1]], ValueError),
    ([0.0, 1.0], TypeError)])
def test_bad_classes_are_errors_that_name_the_labels(labels, error):
    advice = "labels, which come first, .*logits come second" if error is TypeError else "labels"
    with pytest.raises(error, match=advice):
        nn.sparse_softmax_cross_entropy_with_logits(labels, np.zeros((2, 3)))
    with pytest.raises(TypeError, match="go to softmax_cross_entropy_with_logits"):
        nn.sparse_softmax_cross_entropy_with_logits(np.eye(3), np.zeros((3, 3)))


def test_labels_of_another_shape_are_an_error():
    with pytest.raises(ValueError, match="labels and logits"):
        nn.softmax_cross_entropy_with_logits(np.zeros(3), np.zeros((2, 3)))


@each("make", [list, np.array, cytape.constant])
@each("loss", [nn.softmax_cross_entropy_with_logits, nn.sigmoid_cross_entropy_with_logits])
def test_integer_logits_after_floating_labels_are_exchanged(make, loss):
    with pytest.raises(TypeError, match="logits, which come second, .* int64; labels come first"):
        loss(make([[0.5, -1.0]]), make([[0, 1]]))
    for labels, logits in ([[0, 1]], [[0, 1]]), ([[0, 1]], [[0.5, -1.0]]):
        assert np.isfinite(loss(make(labels), make(logits))).all()
