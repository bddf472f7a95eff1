"""Forward mode of realistic programs: against finite differences, reverse mode and each other."""

import numpy as np
import pytest

import cytape
from cytape.testing import numerical_jvp
from tests import ways
from tests.cases import each


def normal(rng, *shape):
    return rng.normal(size=shape)


def mlp(rng):
    inputs, labels = normal(rng, 8, 5), rng.integers(0, 3, size=8)

    def f(w1, b1, w2, b2):
        hidden = np.tanh(inputs @ w1 + b1)
        hidden = cytape.nn.relu(hidden) * 0.5 + hidden
        logits = hidden @ w2 + b2
        return -np.mean(cytape.nn.log_softmax(logits)[np.arange(8), labels])

    return f, [normal(rng, 5, 4), normal(rng, 4), normal(rng, 4, 3), normal(rng, 3)]


def lstm_step(rng):
    x, c = normal(rng, 2, 3), normal(rng, 2, 4)

    def sigmoid(z):
        return 1.0 / (1.0 + np.exp(-z))

    def f(w, h, bias):
        z = np.concatenate([x * np.mean(h), h], axis=1) @ w + bias
        i, j, k, o = np.split(z, 4, axis=1)
        new_c = c * sigmoid(k + 1.0) + sigmoid(i) * np.tanh(j)
        return np.tanh(new_c) * sigmoid(o)

    return f, [normal(rng, 7, 16), normal(rng, 2, 4), normal(rng, 16)]


def leapfrog(rng):
    def f(position, momentum, stiffness):
        for _ in range(20):
            momentum = momentum - 0.05 * stiffness * np.sin(position)
            position = position + 0.1 * momentum
            momentum = momentum - 0.05 * stiffness * np.sin(position)
        return 0.5 * np.sum(momentum * momentum, axis=0) - stiffness * np.cos(position)

    return f, [normal(rng, 3), normal(rng, 3), np.array(1.5)]


def softmax_cross_entropy(rng):
    labels = rng.dirichlet(np.ones(4), size=6)

    def f(logits):
        return np.mean(cytape.nn.softmax_cross_entropy_with_logits(labels, logits))

    return f, [normal(rng, 6, 4)]


def attention(rng):
    def f(q, k, v):
        scores = np.einsum("bqd,bkd->bqk", q, k) / np.sqrt(4.0)
        return np.einsum("bqk,bkd->bqd", cytape.nn.softmax(scores), v)

    return f, [normal(rng, 2, 3, 4), normal(rng, 2, 5, 4), normal(rng, 2, 5, 4)]


def solve_and_norm(rng):
    """Solve a linear system roughly, by two steps of conjugate gradients."""

    def f(a, b):
        matrix = a @ a.T + 3.0 * np.eye(3)
        x, residual = np.zeros(3), b
        direction = residual
        for _ in range(2):
            image = matrix @ direction
            step = np.dot(residual, residual) / np.dot(direction, image)
            x = x + step * direction
            new_residual = residual - step * image
            ratio = np.sum(new_residual**2) / np.sum(residual**2)
            residual, direction = new_residual, new_residual + ratio * direction
        return np.linalg.norm(x) + np.trace(matrix) * x[0]

    return f, [normal(rng, 3, 3), normal(rng, 3)]


def indexing(rng):
    def f(x):
        y = np.cumsum(x[1:] * x[:-1])
        z = x[::-1] * x[0] + np.flip(np.cumsum(x * x))
        columns = x.reshape(2, 3)[:, 1:]
        return y[2] * z[np.array([0, 0, 4])] + np.sum(columns * columns.T[:2].T) + np.max(x)

    return f, [normal(rng, 6)]


PROGRAMS = [mlp, lstm_step, leapfrog, softmax_cross_entropy, attention, solve_and_norm, indexing]


class Case:
    """A program, where to differentiate it, two directions and weights that make it a scalar."""

    def __init__(self, program, make=cytape.constant):
        rng = np.random.default_rng(7)
        self.f, arrays = program(rng)
        self.primals = [make(array) for array in arrays]
        self.t, self.u = ([normal(rng, *array.shape) for array in arrays] for _ in range(2))
        self.weights = rng.normal(size=self.f(*self.primals).shape)

    def scalar(self, *primals):
        return np.sum(self.f(*primals) * self.weights)


@pytest.fixture(params=[(program, make) for program in PROGRAMS for make in (
    cytape.constant, cytape.Variable)], ids=lambda made: f"{made[0].__name__} {made[1].__name__}")
def case(request):
    return Case(*request.param)


def inner_product(xs, ys):
    return sum(float(np.sum(np.asarray(x) * np.asarray(y))) for x, y in zip(xs, ys, strict=True))


def test_first_derivatives_of_all_modes_fit_together(case):
    alone, gradient = case.f(*case.primals).numpy(), ways.reverse(case.scalar, case.primals, None)
    batch = [np.stack(pair) for pair in zip(case.t, case.u, strict=True)]
    with cytape.ForwardAccumulator(case.primals, batch, use_batch=True) as accumulator:
        y, followed = case.f(*case.primals), ways.reverse(case.scalar, case.primals, None)
    np.testing.assert_array_equal(y, alone)  # following changes no bit of what is computed
    for one, other in zip(followed, gradient, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    for jvp, t in zip(accumulator.jvp(y), (case.t, case.u), strict=True):
        [single] = ways.forward(case.f, case.primals, t)
        assert (single.shape, single.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(jvp, single, atol=1e-12)
        np.testing.assert_allclose(
            np.sum(single.numpy() * case.weights), inner_product(gradient, t))
        terms = [ways.tangent(lambda _: case.f(*case.primals), primal, part).numpy()
                 for primal, part in zip(case.primals, t, strict=True)]
        np.testing.assert_allclose(single, sum(terms), atol=1e-12)
        values = [primal.numpy() for primal in case.primals]
        expected = numerical_jvp(case.f, values, t)
        np.testing.assert_allclose(single, expected, rtol=1e-6, atol=1e-7)


def watched(case):
    """Compute products while a tape records all, which takes other ways through the ops."""
    with ways.watching(case.primals):
        return ways.forward_over_reverse(case.scalar, case.primals, case.t)


def batched(case):
    tangents = [np.stack(pair) for pair in zip(case.u, case.t, strict=True)]
    with cytape.ForwardAccumulator(case.primals, tangents, use_batch=True) as accumulator:
        gradient = ways.reverse(case.scalar, case.primals, None)
    return [hvp[1] for hvp in accumulator.jvp(gradient, unconnected_gradients="zero")]


def test_second_derivatives_of_all_modes_fit_together(case):
    def of_mode(mode):
        return mode(case.scalar, case.primals, case.t)

    expected = of_mode(ways.reverse_over_reverse)
    scale = max(np.abs(h.numpy()).max() for h in expected)
    for products in (of_mode(ways.forward_over_reverse), of_mode(ways.reverse_over_forward),
                     watched(case), batched(case)):
        for found, wanted, primal in zip(products, expected, case.primals, strict=True):
            assert (found.shape, found.dtype) == (primal.shape, primal.dtype)
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11 * scale)
    with cytape.ForwardAccumulator(case.primals, case.u) as outer:
        [tangent] = of_mode(ways.forward)
    second = float(outer.jvp(tangent, unconnected_gradients="zero"))
    np.testing.assert_allclose(second, inner_product(expected, case.u), rtol=1e-9, atol=1e-9)


@each("mode", ["reverse", "reverse_over_reverse"])
def test_a_graph_has_the_same_derivatives(case, mode):
    xs = [primal.numpy() for primal in case.primals]
    expected = ways.derivatives(mode, "eager", case.scalar, xs, case.t)
    scale = max(1.0, *[np.abs(x).max() for x in expected])
    found = ways.derivatives(mode, "in_graph", case.scalar, xs, case.t)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10 * scale)
