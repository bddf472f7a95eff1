"""A graph of one member, called for all: what is shared is computed once, the rest in one call."""

import gc
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.batching import members
from cytape.ops.declare import linear
from tests.cases import each

X = np.random.default_rng(1).normal(size=(4, 3))
W = np.arange(3.0)


@pytest.fixture
def loops(monkeypatch):
    """The names of ops that are called for one member after the other, per loop."""
    names, one_by_one = [], members._one_by_one

    def noted(graph, nodes, *rest):
        names.append([graph.ops[node].name for node in nodes])
        return one_by_one(graph, nodes, *rest)

    monkeypatch.setattr(members, "_one_by_one", noted)
    return names


SHAPES: list = []  # that the op is called with


def noted(x):
    SHAPES.append(x.shape)
    return x * 2.0


doubled_op = linear(
    "DeclaredDoubledInBatches", noted, lambda op, g: 2.0 * g, batched=lambda x: doubled_op(x),
    shape_rule=lambda x: x)


@each("f", [
    lambda x: cnp.sum(cnp.tanh(x) * W, axis=-1), lambda x: cnp.max(x) + cnp.argmax(x),
    lambda x: cnp.linalg.inv(cnp.diag(W + 1.0) + x[:, None] * x) @ x,
    lambda x: cnp.where(x > 0, x, 0.0)[cnp.argsort(x)],
    lambda x: cnp.einsum("i,j->ij", x, x), lambda x: cnp.tensordot(x, x, 1),
    lambda x: cytape.nn.softmax(x) @ cnp.concatenate([x, W])[:3],
    cytape.grad(lambda x: cnp.sum(cnp.linalg.solve(cnp.diag(W + 2.0) + x[:, None] * x, x))),
    cytape.hessian(lambda x: cnp.prod(x) * cnp.std(x)),
    cytape.grad(lambda x: cnp.median(x) * cnp.sum(cnp.percentile(x, [10, 40]))),
    cytape.grad(lambda x: cnp.nanquantile(x, 0.3) * x[0]),
    cytape.grad(lambda x: cnp.sum(cnp.convolve(x, W) * cnp.convolve(W[:2], x, "same")[:1] ** 2)),
    cytape.grad(lambda x: cnp.sum(cnp.correlate(x, x, "full") ** 2)),
    cytape.grad(lambda x: cnp.sum(cnp.linalg.pinv(cnp.outer(x, x) + cnp.diag(W + 1)) ** 2)),
    cytape.grad(lambda x: cnp.sum(cnp.tile(x, (2, 1)) * cnp.roll(cnp.flip(x), 1)) ** 2),
    cytape.grad(lambda x: cnp.sum(cnp.linspace(x[0], x[1], 4) * cnp.vander(x[:1], 4)[0])),
    cytape.grad(lambda x: cnp.histogram(W, 2, weights=x)[0][1] ** 2),
    cytape.grad(lambda x: cnp.sum(cnp.zeros((2, 3)).at[1].set(x * x) ** 2)),
    cytape.grad(lambda x: cnp.sum(cnp.pad(x, 2, mode="wrap") * cnp.repeat(x, 3)[:7])),
    cytape.grad(lambda x: cnp.sum(cytape.nn.max_pool2d(
        cnp.reshape(cnp.outer(x, x), (1, 3, 3, 1)), 2, 1, "VALID") ** 2)),
])  # fmt: skip
def test_ops_computed_for_all_members_at_once(loops, f):
    del loops[:]
    found = cytape.vmap(f)(X)
    assert loops == []
    np.testing.assert_allclose(found, np.stack([f(x) for x in X]), rtol=1e-10)


def test_functions_called_once_per_member(loops):
    cytape.vmap(lambda x: cnp.linalg.lstsq(x[:, None], W)[0] + cnp.sum(x))(X)
    assert loops == [["LeastSquares"]]


def test_long_sequences_are_convolved_one_by_one(loops):
    x = np.random.default_rng(2).normal(size=(2, 60))
    np.testing.assert_allclose(
        cytape.vmap(lambda x: cnp.convolve(x, x[:20]))(x),
        [np.convolve(row, row[:20]) for row in x])
    assert loops == [["Convolve"]]


def test_one_loop_goes_from_shapes_that_differ_to_shapes_that_do_not(loops):
    def f(x):
        large = x[x > 0]
        total = np.sum(large)
        return np.exp(np.sum(large * (2.0 * total))) + np.sin(x)

    x = np.array([[0.1, -1.0, 0.2], [0.3, 0.1, 0.2]])
    found = cytape.vmap(f)(x)
    assert loops == [["GetItem", "Sum", "Multiply", "Multiply", "Sum"]]
    np.testing.assert_allclose(found, np.stack([f(row) for row in x]))


def test_values_shared_by_members_are_computed_once():
    del SHAPES[:]
    w = cytape.constant(W)
    found = cytape.vmap(lambda x: doubled_op(w) + doubled_op(x))(X)
    assert SHAPES == [(3,), (4, 3)]
    np.testing.assert_array_equal(found, 2 * W + 2 * X)


def test_intermediates_are_let_go(monkeypatch):
    made, most = [], []
    called = members._called

    def counted(*args):
        results, mapped = called(*args)
        most.append(sum(x() is not None for x in made))
        made.extend(map(weakref.ref, [results] if isinstance(results, cytape.Tensor) else results))
        return results, mapped

    def f(x):
        for _ in range(50):
            x = cnp.sin(x)
        return x

    monkeypatch.setattr(members, "_called", counted)
    gc.disable()
    try:
        cytape.vmap(f)(X)
    finally:
        gc.enable()
    assert len(most) >= 50
    assert max(most) <= 3


def test_a_derivative_of_the_users_is_refused_where_it_misses_a_tie():
    w = cytape.constant(2.0)
    scaled = cytape.custom_jvp(lambda x: x * w)
    scaled.defjvp(lambda primals, tangents: (primals[0] * w, tangents[0] * w))
    np.testing.assert_array_equal(cytape.vmap(scaled)(X), 2 * X)
    with cytape.GradientTape() as tape, pytest.raises(TypeError, match="not among its arguments"):
        tape.watch(w)
        cytape.vmap(scaled)(X)


@each("way", [lambda f: f, cytape.function])
def test_shared_calls_of_the_users_own(way):
    scaled = cytape.custom_gradient(lambda x: (x * 2.0, lambda g: g * 5.0))
    f = way(lambda w: cnp.sum(cytape.vmap(lambda x, w: x * scaled(w), (0, None))(X, w)))
    np.testing.assert_allclose(cytape.grad(f)(W), 5 * X.sum(0))
