"""Gradients of elements in another order: shown, not copied, and right whatever the order."""

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each
from tests.ways import gradient, taped, watching

SHAPE = (4, 6, 5, 2)


def random_orders(rng, x, n_steps):
    """Return x with its elements in another order, by random functions; twice of the same seed."""
    for _ in range(n_steps):
        kind = rng.integers(6)
        if kind == 0:
            x = cnp.transpose(x, rng.permutation(x.ndim).tolist())
        elif kind == 1:
            x = cnp.flip(x, int(rng.integers(x.ndim)))
        elif kind == 2:
            x = x[tuple([slice(None, None, [1, -1][rng.integers(2)]) for _ in x.shape])]
        elif kind == 3:
            x = x[None, ..., None] if x.ndim < 5 else x.reshape([n for n in x.shape if n > 1])
        elif kind == 4:
            x = cnp.reshape(x, [(20, 12), (240,), (2, 3, 40), SHAPE, (1, 240, 1)][rng.integers(5)])
        else:
            x = cnp.roll(x, int(rng.integers(7)), int(rng.integers(x.ndim)))
    return x


@each(use=["eager", "traced"], weighted=[True, False])
def test_gradients_go_back_to_where_elements_came_from(use, weighted, rng):
    x = rng.normal(size=SHAPE)
    for seed in range(60 if use == "eager" else 15):
        n_steps = 1 + seed % 5

        def ordered(x, seed=seed, n_steps=n_steps):
            return random_orders(np.random.default_rng(seed), x, n_steps)

        places = ordered(np.arange(x.size).reshape(SHAPE))
        weights = rng.normal(size=places.shape) if weighted else np.full(places.shape, 3.0)
        expected = np.empty(x.size)
        expected[places.ravel()] = weights.ravel()

        def f(x, ordered=ordered, weights=weights):
            y = ordered(x)
            return cnp.sum(y * weights if weighted else y) * (1.0 if weighted else 3.0)

        gradient, pushed = cytape.grad(f), cytape.grad(lambda x, f=f: f(x) ** 2)
        if use == "traced":
            gradient, pushed = cytape.function(gradient), cytape.function(pushed)
        for _ in range(1 if use == "eager" else 2):
            np.testing.assert_array_equal(gradient(x).ravel(), expected, err_msg=f"{seed}")
            np.testing.assert_allclose(
                pushed(x).ravel(), 2.0 * float(f(x)) * expected, 1e-12, err_msg=f"{seed}")
        v = rng.normal(size=SHAPE)
        _, curved = cytape.jvp(cytape.grad(lambda x, f=f: f(x) ** 2), [x], [v])
        np.testing.assert_allclose(
            curved.ravel(), 2.0 * np.dot(expected, v.ravel()) * expected, 1e-10, err_msg=f"{seed}")


@each("reorder", [
    lambda x: cnp.transpose(x, (2, 0, 3, 1)), lambda x: x.reshape(20, 12), lambda x: cnp.flip(x),
    lambda x: x[::-1, None, :, ::-1], lambda x: cnp.moveaxis(x, 0, 2), cnp.ravel,
], ids=["transpose", "reshape", "flip", "slices", "moveaxis", "ravel"])
def test_they_are_shown_not_copied(reorder, rng):
    x = cytape.constant(rng.normal(size=SHAPE))
    tape, y = taped(reorder, x)
    given = cytape.constant(rng.normal(size=y.shape))
    gradient = tape.gradient(y, x, output_gradients=given)
    assert np.shares_memory(gradient.numpy(), given.numpy())

    tape, y = taped(lambda x: cnp.sum(reorder(x)), x)
    assert not any(tape.gradient(y, x).numpy().strides)


def test_of_two_uses_neither_is_written_to(rng):
    x, given = (cytape.constant(rng.normal(size=SHAPE)) for _ in range(2))
    before = given.numpy().copy()
    with watching(x) as tape:
        y = cnp.flip(x), cnp.moveaxis(x, 0, 3).reshape(SHAPE), cnp.transpose(x)[::-1], x[::-1]
    gradient = tape.gradient(y, x, [given, given, cnp.transpose(given), given])
    np.testing.assert_array_equal(given.numpy(), before)
    moved = np.moveaxis(before.reshape(6, 5, 2, 4), 3, 0)
    np.testing.assert_allclose(
        gradient.numpy(), np.flip(before) + moved + before[..., ::-1] + before[::-1], 1e-14)


@each("join", [
    lambda n, x, y: n.concatenate([x, y], axis=1), lambda n, x, y: n.stack([x, y], axis=-1),
    lambda n, x, y: n.pad(x, 1) + n.sum(y), lambda n, x, y: n.concatenate([y, x], axis=0),
    lambda n, x, y: n.concatenate([*n.split(x, 2, axis=1)[::-1], *n.split(y, 2, axis=1)], 2),
], ids=["side by side", "stacked", "padded", "upon each other", "split and joined"])
def test_uniform_gradients_are_divided_and_joined(join, rng):
    shape = (6, 8, 3)
    x, y = (rng.normal(size=shape) for _ in range(2))
    gradients = cytape.grad(lambda x, y: 2.5 * cnp.sum(join(cnp, x, y)), argnums=(0, 1))(x, y)
    v = rng.normal(size=shape)
    _, tangent = cytape.jvp(lambda x, y: join(cnp, x, y), [x, y], [np.full(shape, 2.5), v])
    for slope, source in zip(gradients, (0, 1), strict=True):
        unit = [np.zeros(shape), np.zeros(shape)]
        unit[source][...] = 2.5
        expected = join(np, *unit).sum() / x.size
        np.testing.assert_allclose(slope, np.full(shape, expected), 1e-12)
    np.testing.assert_allclose(tangent, join(np, np.full(shape, 2.5), v), 1e-12)


@each("reorder", [cnp.transpose, cnp.flip, lambda x: x.reshape(-1)],
                         ids=["transpose", "flip", "reshape"])
def test_batches_of_small_uniform_tangents_are_read_as_such(reorder):
    x, batch = cytape.constant(np.arange(6.0).reshape(3, 2)), cytape.constant(np.ones((50, 3, 2)))
    uniform = gradient(lambda batch: 3.0 * cnp.sum(batch), batch)
    assert not any(uniform.numpy().strides)
    with cytape.ForwardAccumulator(x, uniform, use_batch=True) as accumulator:
        y = reorder(x)
    np.testing.assert_array_equal(accumulator.jvp(y), np.full((50, *y.shape), 3.0))
