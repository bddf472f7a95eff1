"""Ops that take no stacks: members as more rows, columns, images or bins."""

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each

RNG = np.random.default_rng(4)
X = RNG.normal(size=(4, 6))
IMAGES = RNG.normal(size=(4, 2, 5, 5, 2))


@each("mode", ["full", "same", "valid"])
@each("n, m", [(6, 3), (3, 6), (6, 6), (6, 1), (5, 4), (2, 5)])
@each(axes=[(0, 0), (0, None), (None, 0)], name=["convolve", "correlate"])
def test_convolutions(name, mode, n, m, axes):
    def operand(length, axis):
        return X[:, :length] if axis == 0 else X[1, :length]

    a, v = operand(n, axes[0]), operand(m, axes[1])
    expected = [getattr(np, name)(a[k] if axes[0] == 0 else a, v[k] if axes[1] == 0 else v, mode)
                for k in range(4)]  # fmt: skip
    np.testing.assert_allclose(
        cytape.vmap(lambda a, v: getattr(cnp, name)(a, v, mode), axes)(a, v), expected, atol=1e-14)


def test_maxima_of_images_lie_in_their_member():
    def pooled(x):
        return cytape.nn.max_pool2d(x, 2, 2, "SAME")

    weights = RNG.normal(size=pooled(IMAGES[0]).shape)
    gradient = cytape.grad(lambda x: cnp.sum(pooled(x) * weights))
    np.testing.assert_array_equal(cytape.vmap(pooled)(IMAGES), list(map(pooled, IMAGES)))
    np.testing.assert_array_equal(cytape.vmap(gradient)(IMAGES), list(map(gradient, IMAGES)))


@each("axes", [(0, 0), (0, None), (None, 0)])
def test_weights_go_to_bins_of_their_member(axes):
    points, weights = (X, X[0])[axes[0] is None], (X, X[0])[axes[1] is None]
    found = cytape.vmap(
        lambda a, w: cnp.histogram(a, cytape.constant([-1.0, 0.0, 0.3, 0.5]), weights=w)[0], axes)(
            points, weights)  # points outside the bins are left out
    expected = [np.histogram(X[k if axes[0] == 0 else 0], [-1.0, 0.0, 0.3, 0.5],
                             weights=X[k if axes[1] == 0 else 0])[0] for k in range(4)]  # fmt: skip
    np.testing.assert_allclose(found, expected, atol=1e-14)


@each("q", [0.3, np.array([0.2, 0.9]), np.array([[0.1, 0.2], [0.6, 0.9]])])
@each("axes", [(0, None), (None, 0), (0, 0)])
def test_quantiles_whose_axes_come_first(q, axes):
    own = np.stack([q, q, q]) * np.array([1.0, 0.9, 0.8]).reshape(3, *(1,) * np.ndim(q))
    x = np.stack([X, X + 1.0, X * 2.0])
    found = cytape.vmap(lambda x, q: cnp.quantile(x, q, axis=0), axes)(
        x if axes[0] == 0 else X, own if axes[1] == 0 else q)
    expected = [np.quantile(x[k] if axes[0] == 0 else X, own[k] if axes[1] == 0 else q, axis=0)
                for k in range(3)]  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@each("f", [
    cnp.flip, lambda x: cnp.tile(x, (2, 3)), lambda x: cnp.roll(x, 2), cnp.tril,
    lambda x: cnp.repeat(x, 2), lambda x: cnp.diag(x, -2), lambda x: cnp.diag(cnp.outer(x, x), 1),
    lambda x: cnp.split(x, 3)[1], lambda x: cnp.pad(x, 2, constant_values=(1.0, 2.0)),
    lambda x: cnp.transpose(x, 0), lambda x: x.transpose(-1),
])  # fmt: skip
@each("way", [lambda f: f, cytape.function])
def test_transposes_of_moves(f, way):
    def total(x):
        y = cnp.asarray(f(x))
        return cnp.sum(y * y * cnp.arange(y.size).reshape(y.shape))

    np.testing.assert_allclose(
        way(cytape.vmap(cytape.grad(total)))(X), [cytape.grad(total)(x) for x in X], rtol=1e-12)
    hessians = way(cytape.vmap(cytape.hessian(total)))(X)
    np.testing.assert_allclose(hessians, [cytape.hessian(total)(x) for x in X], rtol=1e-12)


@each("mode", ["full", "same", "valid"])
def test_infinities_do_not_meet_the_padding_of_convolutions(mode):
    filters = np.array([[1.0, np.inf], [np.nan, 2.0]])
    x = np.arange(1.0, 4.0)
    found = cytape.vmap(lambda a: cnp.convolve(x, a, mode))(filters)
    np.testing.assert_array_equal(found, [np.convolve(x, a, mode) for a in filters])


@each("function", [cnp.tril, cnp.triu])
def test_triangles_of_vectors_of_unknown_number(function):
    f = cytape.function(cytape.vmap(function), input_signature=[cytape.Spec.of((None, 3), float)])
    np.testing.assert_array_equal(f(np.ones((2, 3))), [function(np.ones(3))] * 2)


@each("mode", ["wrap", "clip"])
def test_small_integers_find_elements_beyond_their_own_extremes(mode):
    x, indices = np.arange(600.0).reshape(2, 300), np.array([[1], [-2]], np.int8)
    found = cytape.vmap(lambda x, i: cnp.take(x, i, mode=mode))(x, indices)
    expected = [np.take(row, i, mode=mode) for row, i in zip(x, indices, strict=True)]
    np.testing.assert_array_equal(found, expected)
    gradient = cytape.grad(lambda x: cnp.sum(cnp.take(x, indices[1], mode=mode)))(x[0])
    assert gradient.nonzero()[0].tolist() == [298 if mode == "wrap" else 0]


@each(dtype=["bool", "uint8", "int16", "int64", "float32"], mode=["full", "same", "valid"])
@each("name", ["convolve", "correlate"])
def test_convolutions_stay_in_their_dtype(name, mode, dtype):
    x, filters = (np.arange(12).reshape(3, 4) * 40).astype(dtype), np.array([1, 51, 101], dtype)
    found = cytape.vmap(lambda a: getattr(cnp, name)(a, filters, mode))(x)
    expected = np.stack([getattr(np, name)(a, filters, mode) for a in x])
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
