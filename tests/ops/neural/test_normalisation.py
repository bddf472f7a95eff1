"""Normalisation: statistics, moving averages, gradients against differences, all ways."""

import numpy as np
import pytest

import cytape
from cytape import nn
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import OF_KNOWN_EXTENTS, WAYS, check


def test_batch_norm_normalises_over_all_axes_but_the_last(rng):
    x = rng.normal(3, 5, size=(4, 2, 3))
    y, mean, variance = nn.fused_batch_norm(x, np.ones(3), np.full(3, 7.0), epsilon=0.0)
    np.testing.assert_allclose(y.mean((0, 1)), 7)
    np.testing.assert_allclose(y.std((0, 1)), 1)
    np.testing.assert_allclose(mean, x.mean((0, 1)))
    np.testing.assert_allclose(variance, x.var((0, 1), ddof=1))


def test_the_statistics_of_a_batch_are_differentiable_without_the_batch(rng):
    x = rng.normal(size=(4, 3))
    check_grads(lambda x: nn.fused_batch_norm(x, np.ones(3), np.zeros(3))[1:], [x])


def plain_layer_norm(x, scale, offset, axis, epsilon):
    mean, variance = np.mean(x, axis, keepdims=True), np.var(x, axis, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * scale + offset


@each("axis", [-1, (1, 2), [0]])
def test_layer_norm(axis, rng):
    x, scale, offset = rng.normal(size=(3, 4, 5)), rng.normal(size=5), rng.normal(size=5)
    expected = plain_layer_norm(x, scale, offset, tuple(np.atleast_1d(axis)), 1e-5)
    np.testing.assert_allclose(nn.layer_norm(x, scale, offset, axis), expected, rtol=1e-12)
    check_grads(lambda *xs: nn.layer_norm(*xs, axis), [x, scale, offset])


def test_large_means_do_not_cancel():
    x = 1e8 + np.array([[0.0, 1.0, 2.0, 3.0]])
    np.testing.assert_allclose(
        nn.layer_norm(x, epsilon=0.0), [np.array([-3, -1, 1, 3]) / 5**0.5], rtol=1e-7)


def test_half_precision_is_normalised_in_single():
    x = np.full((1, 4096), 300.0, np.float16)
    x[0, ::2] = -300
    for found in (nn.rms_norm(x), nn.layer_norm(cytape.constant(x)).numpy()):
        assert found.dtype == np.float16
        np.testing.assert_allclose(np.abs(found), 1.0, rtol=1e-3)


def test_batches_of_half_precision_have_the_statistics_of_single():
    x = np.full((5000, 2), 200.0, np.float16) * np.float16([[1, 0.01]])
    x[::2] *= -1
    one = np.ones(2, np.float16)
    y, mean, variance = nn.fused_batch_norm(cytape.constant(x), one, 0 * one, epsilon=1e-7)
    for found, expected in ((np.abs(y), 1), (mean, 0), (variance, [4e4, 4]),
                            (nn.moments(x, [0])[1], [4e4, 4])):
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), 2e-3)


def test_group_norm(rng):
    x, scale, offset = rng.normal(size=(2, 3, 2, 6)), rng.normal(size=6), rng.normal(size=6)
    parts = x.reshape(2, 6, 3, 2)
    expected = plain_layer_norm(parts, 1.0, 0.0, (1, 3), 1e-5).reshape(x.shape) * scale + offset
    np.testing.assert_allclose(nn.group_norm(x, 3, scale, offset), expected, rtol=1e-12)
    check_grads(lambda *xs: nn.group_norm(xs[0], 3, *xs[1:]), [x, scale, offset])


def test_the_scale_may_be_a_number_a_tuple_or_keep_axes(rng):
    x = rng.normal(size=(2, 3, 3, 4))
    scale = rng.normal(size=4)
    np.testing.assert_array_equal(
        nn.group_norm(x, 2, scale[None, None, None]), nn.group_norm(x, 2, scale))
    np.testing.assert_array_equal(nn.layer_norm(x, tuple(scale)), nn.layer_norm(x, scale))
    np.testing.assert_array_equal(nn.rms_norm(x, 1), nn.rms_norm(x))


@each("call", [lambda x: nn.group_norm(x, 4), lambda x: nn.group_norm(x, 0),
               lambda x: nn.group_norm(x[0, 0, 0], 3)])
def test_groups_that_do_not_fit_are_refused(call):
    with pytest.raises(ValueError, match="group_norm takes a batch"):
        call(np.ones((2, 3, 2, 6)))


WEIGHTS = np.linspace(0.5, 2, 6).reshape(2, 3)
NORMS = {
    "layer_norm": (
        lambda x: nn.layer_norm(x, WEIGHTS[0]),
        lambda x: plain_layer_norm(x, WEIGHTS[0], 0, -1, 1e-5)),
    "rms_norm": (
        lambda x: nn.rms_norm(x, WEIGHTS[0]),
        lambda x: x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-6) * WEIGHTS[0]),
    "group_norm": (
        lambda x: nn.group_norm(x, 1), lambda x: plain_layer_norm(x, 1, 0, 1, 1e-5)),
    "batch_norm": (
        lambda x: nn.batch_norm(
            x, WEIGHTS[0], WEIGHTS[1], np.zeros(3), np.ones(3), training=True)[0],
        lambda x: plain_layer_norm(x, WEIGHTS[0], WEIGHTS[1], 0, 1e-3)),
    "moments": (
        lambda x: sum(nn.moments(x, [0])), lambda x: np.mean(x, 0) + np.var(x, 0)),
}


@each("name", NORMS)
def test_all_ways_agree(name):
    x = np.array([[0.3, -1.0, 2.0], [1.0, 0.5, -0.7]])
    ours, plain = (lambda x, f=f: np.sum(f(x) ** 3) for f in NORMS[name])
    # Of groups the number of channels must be known.
    check(ours, plain, x, rtol=1e-7, atol=1e-8,
          ways=OF_KNOWN_EXTENTS if name == "group_norm" else WAYS)


def test_group_norm_of_a_batch_of_unknown_size(rng):
    x = rng.normal(size=(3, 4, 6))
    signature = [cytape.Spec.of((None, None, 6), float)]

    def cubed(x):
        return np.sum(nn.group_norm(x, 2) ** 3)

    found = cytape.function(cytape.grad(cubed), input_signature=signature)(cytape.constant(x))
    np.testing.assert_allclose(found, cytape.grad(cubed)(x), rtol=1e-9, atol=1e-12)


def test_batch_norm_keeps_moving_statistics(rng):
    x, scale, offset = rng.normal(size=(10, 2)), np.array([1.0, 2.0]), np.array([0.5, 0.0])
    mean, variance = np.zeros(2), np.ones(2)
    for _ in range(300):
        y, mean, variance = nn.batch_norm(
            x, scale, offset, mean, variance, training=True, momentum=0.9)
    np.testing.assert_allclose(mean, x.mean(0))
    np.testing.assert_allclose(variance, x.var(0, ddof=1))
    again, same, _ = nn.batch_norm(
        cytape.constant(x), scale, offset, mean, x.var(0), training=False)
    np.testing.assert_allclose(again, y, rtol=1e-9)
    assert same is mean
    with pytest.raises(ValueError, match="momentum"):
        nn.batch_norm(x, scale, offset, mean, variance, training=True, momentum=2.0)


def test_batches_with_other_numbers_of_channels_are_refused():
    for scale, offset in ((np.ones(1), np.ones(3)), (np.ones(3), 1.0)):
        with pytest.raises(ValueError, match="one number for each of the channels"):
            cytape.nn.fused_batch_norm(np.ones((2, 3)), scale, offset)


@each("call", [
    lambda x: nn.layer_norm(x, (4,)), lambda x: nn.layer_norm(x, (2, 4)),
    lambda x: nn.rms_norm(x, (4,))])
def test_extents_are_no_scale(call):
    with pytest.raises(TypeError, match="the axes to normalise are called axis"):
        call(np.ones((2, 4)))


@each("numbers", [np.ones(3), np.ones((4, 1)), np.ones((2, 4))])
def test_group_norm_takes_a_number_per_channel(numbers):
    for name in ("scale", "offset"):
        with pytest.raises(ValueError, match=f"{name} must have one number per channel"):
            nn.group_norm(np.ones((2, 3, 4)), 2, **{name: numbers})
