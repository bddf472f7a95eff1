"""Moves: which regions are read and written, and what they cover."""

import math

import numpy as np
import pytest

import cytape
from cytape.ops.kernels.moves import Moves, outline
from cytape.tensor.values.spec import Spec
from tests import ways
from tests.cases import each


def moves_of(target_shape, source_shape, pieces):
    target, source = (outline(Spec.of(shape, float)) for shape in (target_shape, source_shape))
    return Moves([target], [source], pieces(target, source))


def test_a_copy_is_no_piece():
    with pytest.raises(ValueError, match="got a copy or"):
        moves_of((6,), (2, 3), lambda t, s: [(t, s.T.reshape(6))])


@each("pieces", [
    lambda t, s: [(t, np.lib.stride_tricks.as_strided(s, (100,), (8,)))],
    lambda t, s: [(np.lib.stride_tricks.as_strided(t, (101,), (8,)), s[0, 0:1])],
    lambda t, s: [(t.view("f4"), s[0, :1].view("f4")[:1])]])
def test_memory_beyond_an_outline_is_no_piece(pieces):
    with pytest.raises(ValueError, match="pieces? "):
        moves_of((100,), (2, 3), pieces)


@each("strides", [(24, 8), (8, 16), (-24, -8), (0, 8), (48, -16)])
def test_an_outline_has_the_strides_and_the_room(strides):
    x = outline(Spec.of((2, 3), float), strides)
    assert x.strides == strides and x.shape == (2, 3)
    x[...] = 1.0  # all of it is there


def gradient_of(function, *seeds, shape=(40, 30)):
    x = cytape.constant(np.zeros(shape))
    return ways.gradient(function, x, output_gradients=list(seeds)).numpy()


def repeated(number, shape):
    return np.broadcast_to(cytape.constant(number), shape)


def test_parts_that_repeat_one_number_are_one():
    def halves(x):
        return np.split(x, 2)

    same = gradient_of(halves, *[repeated(3.0, (20, 30))] * 2)
    assert same.strides == (0, 0)
    np.testing.assert_array_equal(same, np.full((40, 30), 3.0))
    for seeds in ((2.0, 3.0), (0.0, -0.0), (1.0, 1.0 + 2**-52)):
        other = gradient_of(halves, *[repeated(seed, (20, 30)) for seed in seeds])
        expected = np.repeat(seeds, 20)[:, None] * np.ones(30)
        np.testing.assert_array_equal(other, expected)
        np.testing.assert_array_equal(np.signbit(other), np.signbit(expected))
    parts = gradient_of(
        lambda x: np.split(x, [40]), repeated(3.0, (40, 30)), cytape.constant(np.zeros((0, 30))))
    np.testing.assert_array_equal(parts, same)


@each("shape, wide", [
    ((1, 30), (40, 30)), ((40, 1), (40, 30)), ((30,), (40, 30)), ((1, 1), (7, 3)), ((), (1000,)),
    ((100, 1, 3), (2, 100, 5, 3))])
def test_one_number_is_summed_as_often_as_it_is_repeated(shape, wide):
    found = gradient_of(lambda x: [np.broadcast_to(x, wide)], repeated(0.5, wide), shape=shape)
    np.testing.assert_array_equal(found, np.full(shape, 0.5 * math.prod(wide) / math.prod(shape)))


def test_not_all_are_repeated_as_often():
    found = gradient_of(lambda x: [x[np.arange(40) // 2 * 2]], repeated(1.0, (40, 30)))
    np.testing.assert_array_equal(found[:, 0], [2.0, 0.0] * 20)
    windows = gradient_of(lambda x: [np.lib.stride_tricks.sliding_window_view(x, 3)],
                          repeated(1.0, (98, 3)), shape=(100,))
    np.testing.assert_array_equal(windows, [1, 2, *[3] * 96, 2, 1])


@each("function", [
    lambda x: np.pad(x, 2, mode="reflect"), lambda x: np.concatenate([x, x[::-1], x]),
    lambda x: np.pad(x, 1, mode="edge"), lambda x: np.tile(x, 3), lambda x: np.insert(x, 1, x[:2])])
@each("size", [5, 300])
def test_a_sum_may_begin_with_a_copy(function, size):
    jacobian = np.transpose([function(row) for row in np.eye(size)])
    weights = np.random.default_rng(0).normal(size=(3, len(jacobian)))

    def gradient(w):
        return cytape.grad(lambda x: np.sum(function(x) * w))(np.ones(size))

    for way in (gradient, cytape.function(gradient)):
        np.testing.assert_allclose(way(weights[0]), weights[0] @ jacobian, 1e-12, 1e-12)
    _, pullback = cytape.vjp(function, np.ones(size))
    batch = cytape.vmap(lambda w: pullback(w)[0])(weights)
    np.testing.assert_allclose(batch, weights @ jacobian, 1e-12, 1e-12)
