"""The CTC loss against sums over all alignments, its derivatives, lengths and errors."""

import itertools

import numpy as np
import pytest

import cytape
from cytape import nn
from cytape.testing import check_grads
from tests.cases import each

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(5, 4, 3))
LABELS = np.array([[1, 2], [1, 1], [2, 0], [0, 0]])
N_LABELS, N_STEPS = np.array([2, 2, 1, 0]), np.array([5, 4, 3, 2])


def collapsed(alignment, blank):
    return [c for c, _ in itertools.groupby(alignment) if c != blank]


def enumerated(labels, logits, blank=0):
    """Return the loss of one example by enumeration."""
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return -np.log(sum(
        np.prod(shares[np.arange(len(shares)), list(alignment)])
        for alignment in itertools.product(range(shares.shape[1]), repeat=len(shares))
        if collapsed(alignment, blank) == list(labels)))


def test_values_are_sums_over_all_alignments():
    expected = [enumerated(LABELS[i, :N_LABELS[i]], LOGITS[:N_STEPS[i], i]) for i in range(4)]
    np.testing.assert_allclose(nn.ctc_loss(LABELS, LOGITS, N_LABELS, N_STEPS), expected, 1e-12)
    np.testing.assert_allclose(nn.ctc_loss(
        LABELS, LOGITS.swapaxes(0, 1), N_LABELS, N_STEPS, logits_time_major=False), expected, 1e-12)
    last = nn.ctc_loss([[0]], LOGITS[:4, :1], [1], [4], blank_index=-1)
    np.testing.assert_allclose(last, [enumerated([0], LOGITS[:4, 0], 2)], 1e-12)


def test_derivatives():
    check_grads(lambda x: nn.ctc_loss(LABELS, x, N_LABELS, N_STEPS), [LOGITS])


def test_functions_and_single_precision():
    def f(x):
        return nn.ctc_loss(LABELS, x, N_LABELS, N_STEPS)

    slope = cytape.grad(lambda x: np.sum(f(x)))
    np.testing.assert_allclose(cytape.function(slope)(LOGITS), slope(LOGITS), 1e-12, 1e-14)
    single = cytape.constant(LOGITS.astype(np.float32))
    assert f(single).dtype == np.float32 and slope(single).dtype == np.float32
    np.testing.assert_allclose(slope(single), slope(LOGITS), 1e-4, 1e-5)


def test_labels_that_do_not_fit_have_no_slope():
    def f(x):
        return nn.ctc_loss([[1, 1]], x, [2], [2])

    assert f(LOGITS[:2, :1])[0] >= 1e30
    assert not cytape.grad(lambda x: np.sum(f(x)))(LOGITS[:2, :1]).any()


@each("change", [
    {"label_length": [3]}, {"logit_length": [0]}, {"logit_length": [6]}, {"labels": [[3]]},
    {"labels": [[0]]}, {"labels": [1]}, {"logits": LOGITS}])
def test_errors(change):
    given = {"labels": [[1]], "logits": LOGITS[:, :1], "label_length": [1], "logit_length": [5]}
    with pytest.raises(ValueError, match="ctc_loss takes labels"):
        nn.ctc_loss(**{**given, **change})


@each("blank", [2, 7, -3])
def test_the_blank_is_a_class(blank):
    with pytest.raises(ValueError, match="blank_index from -2 to 1 of logits with 2 classes"):
        nn.ctc_loss([[1]], np.zeros((5, 1, 2)), [1], [5], blank_index=blank)
    with pytest.raises(ValueError, match="0 classes"):
        nn.ctc_loss([[1]], np.zeros((5, 1, 0)), [1], [5])


def test_labels_are_integers():
    with pytest.raises(TypeError, match="integers"):
        nn.ctc_loss([[1.0]], LOGITS[:, :1], [1], [5])


def test_half_precision_and_no_labels():
    half = nn.ctc_loss(LABELS, cytape.constant(LOGITS.astype(np.float16)), N_LABELS, N_STEPS)
    np.testing.assert_allclose(half, nn.ctc_loss(LABELS, LOGITS, N_LABELS, N_STEPS), 1e-2)
    np.testing.assert_allclose(
        nn.ctc_loss(np.zeros((4, 0), int), LOGITS, [0] * 4, N_STEPS)[3],
        enumerated([], LOGITS[:2, 3]), 1e-12)
