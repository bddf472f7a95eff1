"""Forward mode of realistic programs: against finite differences, reverse mode and each other."""

import numpy as np
import pytest

import cytape
from tests import ways


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


@pytest.fixture(params=PROGRAMS, ids=lambda program: program.__name__)
def case(request):
    return Case(request.param)


def inner_product(xs, ys):
    return sum(float(np.sum(np.asarray(x) * np.asarray(y))) for x, y in zip(xs, ys, strict=True))


def gradient_of(case):
    """Compute the gradient of the scalar function by a tape, as a list of tensors."""
    return ways.reverse(case.scalar, case.primals, None)


def test_a_jvp_agrees_with_finite_differences(case):
    with cytape.ForwardAccumulator(case.primals, case.t) as accumulator:
        y = case.f(*case.primals)
    step = 1e-5
    shifted = [
        case.f(*[cytape.constant(p.numpy() + sign * step * t)
                 for p, t in zip(case.primals, case.t, strict=True)]).numpy()
        for sign in (1, -1)
    ]
    difference = (shifted[0] - shifted[1]) / (2 * step)
    np.testing.assert_allclose(accumulator.jvp(y).numpy(), difference, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("make", [cytape.constant, cytape.Variable])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_jvp_is_the_transpose_of_the_vjp(program, make):
    case = Case(program, make)
    with cytape.ForwardAccumulator(case.primals, case.t) as accumulator:
        y = case.f(*case.primals)
    jvp = accumulator.jvp(y).numpy()
    assert (jvp.shape, jvp.dtype) == (y.shape, y.dtype)
    np.testing.assert_allclose(np.sum(jvp * case.weights), inner_product(gradient_of(case), case.t))


def test_one_input_at_a_time_adds_up(case):
    terms = []
    for primal, tangent in zip(case.primals, case.t, strict=True):
        with cytape.ForwardAccumulator(primal, tangent) as accumulator:
            y = case.f(*case.primals)
        terms.append(accumulator.jvp(y).numpy())
    with cytape.ForwardAccumulator(case.primals, case.t) as accumulator:
        y = case.f(*case.primals)
    np.testing.assert_allclose(accumulator.jvp(y).numpy(), sum(terms), atol=1e-12)


def test_a_batch_is_as_many_directions(case):
    tangents = [np.stack(pair) for pair in zip(case.t, case.u, strict=True)]
    with cytape.ForwardAccumulator(case.primals, tangents, use_batch=True) as accumulator:
        y = case.f(*case.primals)
    for i, direction in enumerate((case.t, case.u)):
        with cytape.ForwardAccumulator(case.primals, direction) as single:
            y_again = case.f(*case.primals)
        np.testing.assert_allclose(
            accumulator.jvp(y)[i].numpy(), single.jvp(y_again).numpy(), atol=1e-12)


def forward_over_reverse_watched(case):
    """The same while a tape outside records all of it, which takes other ways through the ops."""
    with cytape.GradientTape() as outer:
        outer.watch(case.primals)
        return ways.forward_over_reverse(case.scalar, case.primals, case.t)


def batched_forward_over_reverse(case):
    tangents = [np.stack(pair) for pair in zip(case.u, case.t, strict=True)]
    with cytape.ForwardAccumulator(case.primals, tangents, use_batch=True) as accumulator:
        gradient = gradient_of(case)
    return [hvp[1] for hvp in accumulator.jvp(gradient, unconnected_gradients="zero")]


WAYS = {
    "forward over reverse": lambda case: ways.forward_over_reverse(
        case.scalar, case.primals, case.t),
    "reverse over forward": lambda case: ways.reverse_over_forward(
        case.scalar, case.primals, case.t),
    "watched": forward_over_reverse_watched,
    "batched": batched_forward_over_reverse,
}


def hessian_times_t(case):
    return ways.reverse_over_reverse(case.scalar, case.primals, case.t)


@pytest.mark.parametrize("way", WAYS)
def test_a_hessian_vector_product_comes_out_the_same_every_way(case, way):
    expected = hessian_times_t(case)
    scale = max(np.abs(h.numpy()).max() for h in expected)
    for got, want, primal in zip(WAYS[way](case), expected, case.primals, strict=True):
        assert (got.shape, got.dtype) == (primal.shape, primal.dtype)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-11 * scale)


@pytest.mark.parametrize("mode", ["reverse", "reverse_over_reverse"])
def test_a_graph_has_the_same_derivatives(case, mode):
    xs = [primal.numpy() for primal in case.primals]
    expected = ways.derivatives(mode, "eager", case.scalar, xs, case.t)
    scale = max(1.0, *[np.abs(x).max() for x in expected])
    for got, want in zip(
            ways.derivatives(mode, "in_graph", case.scalar, xs, case.t), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10 * scale)


def test_forward_over_forward_is_the_hessian_between_two_directions(case):
    with cytape.ForwardAccumulator(case.primals, case.u) as outer:
        with cytape.ForwardAccumulator(case.primals, case.t) as inner:
            y = case.scalar(*case.primals)
    second = outer.jvp(inner.jvp(y), unconnected_gradients="zero")
    expected = inner_product(hessian_times_t(case), case.u)
    np.testing.assert_allclose(float(second), expected, rtol=1e-9, atol=1e-9)


def test_the_numbers_are_those_of_the_program_alone(case):
    """Following changes no bit of what is computed."""
    alone = case.f(*case.primals).numpy()
    gradient_alone = gradient_of(case)
    with cytape.ForwardAccumulator(case.primals, case.t):
        followed = case.f(*case.primals).numpy()
        gradient = gradient_of(case)
    np.testing.assert_array_equal(followed, alone)
    for one, other in zip(gradient, gradient_alone, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-13)
