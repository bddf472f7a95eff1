"""Attention against loops over queries; masks, dropout, bad input. Embeddings."""

import numpy as np
import pytest

import cytape
from cytape import nn
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import OF_KNOWN_EXTENTS, check


def by_loops(q, k, v, seen):
    result = np.zeros((*q.shape[:-1], v.shape[-1]))
    for place in np.ndindex(*q.shape[:-1]):
        batch, i = place[:-1], place[-1]
        keys = [j for j in range(k.shape[-2]) if seen[i, j]]
        if keys:
            weights = np.exp([q[place] @ k[(*batch, j)] / np.sqrt(q.shape[-1]) for j in keys])
            result[place] = sum(
                w * v[(*batch, j)] for w, j in zip(weights / weights.sum(), keys, strict=True))
    return result


def operands(rng, batch=(2,), queries=3, keys=4):
    return [rng.normal(size=(*batch, n, d)) for n, d in ((queries, 5), (keys, 5), (keys, 2))]


@each(batch=[(), (2,), (2, 3)], is_causal=[False, True], masked=[False, True])
def test_values(batch, is_causal, masked, rng):
    q, k, v = operands(rng, batch)
    seen = np.tri(3, 4, dtype=bool) if is_causal else np.ones((3, 4), bool)
    mask = None
    if masked:
        mask = rng.uniform(size=(3, 4)) < 0.6
        mask[1] = False  # sees nothing
        seen = seen & mask
    found = nn.scaled_dot_product_attention(q, k, v, mask, is_causal)
    np.testing.assert_allclose(found, by_loops(q, k, v, seen), rtol=1e-10)
    check_grads(
        lambda *xs: nn.scaled_dot_product_attention(*xs, mask, is_causal), [q, k, v], order=1)


def test_added_masks_scales_and_dtypes(rng):
    q, k, v = operands(rng)
    seen = np.array([[True, False, True, True]] * 3)
    added = np.where(seen, 0.0, -np.inf)
    np.testing.assert_allclose(
        nn.scaled_dot_product_attention(q, k, v, added), by_loops(q, k, v, seen), rtol=1e-10)
    np.testing.assert_allclose(
        nn.scaled_dot_product_attention(q, k, v, scale=5**-0.5),
        nn.scaled_dot_product_attention(q, k, v), rtol=1e-12)
    halves = [x.astype(np.float16) for x in (q, k, v)]
    found = nn.scaled_dot_product_attention(*halves, is_causal=True)
    assert found.dtype == np.float16
    np.testing.assert_allclose(
        found, by_loops(q, k, v, np.tri(3, 4, dtype=bool)), rtol=2e-2, atol=2e-3)


def test_all_ways_agree():
    x = np.array([[0.3, -1.0], [2.0, 0.5], [-0.2, 0.1]])

    def attended(x):
        return np.sum(nn.scaled_dot_product_attention(x, 2 * x, x, is_causal=True) ** 2)

    def plain(x):
        products = x @ (2 * x).T / np.sqrt(2.0)
        weights = np.exp(products) * np.tri(3)
        return np.sum((weights / np.sum(weights, 1, keepdims=True) @ x) ** 2)

    check(attended, plain, x, ways=OF_KNOWN_EXTENTS)
    signature = [cytape.Spec.of((None, 2), float)]
    found = cytape.function(attended, input_signature=signature)(cytape.constant(x))
    np.testing.assert_allclose(found, plain(x))


def test_weights_are_dropped(rng):
    q, k, v = operands(rng)
    draws = [nn.scaled_dot_product_attention(q, k, v, dropout_rate=0.5, seed=s) for s in (1, 1, 2)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    many = [nn.scaled_dot_product_attention(q, k, v, dropout_rate=0.2, seed=s) for s in range(500)]
    np.testing.assert_allclose(
        np.mean(many, 0), nn.scaled_dot_product_attention(q, k, v), atol=0.15)


def test_embeddings_have_gradients_by_rows():
    table = cytape.Variable(np.arange(8.0).reshape(4, 2))
    with cytape.GradientTape() as tape:
        rows = nn.embedding_lookup(table, np.array([[1, 3], [1, 0]]))
        loss = np.sum(rows * rows)
    assert rows.shape == (2, 2, 2)
    gradient = tape.gradient(loss, table)
    assert isinstance(gradient, cytape.IndexedSlices)
    expected = 2 * table.numpy() * np.array([[1], [2], [0], [1]])
    np.testing.assert_array_equal(gradient.to_tensor(), expected)
    with pytest.raises(IndexError):
        nn.embedding_lookup(table, [4])
    for ids in ([0.5], np.array([1.0]), [True]):
        with pytest.raises(TypeError, match="ids must be integers"):
            nn.embedding_lookup(table, ids)
    assert nn.embedding_lookup(table, []).shape == (0, 2)


def test_causal_queries_do_not_see_later_keys_where_numbers_exclude_the_earlier_ones(rng):
    q, k, v = operands(rng)
    added = np.zeros((3, 4))
    added[:, 0] = -np.inf  # padding on the left
    found = nn.scaled_dot_product_attention(q, k, v, added, is_causal=True)
    assert not found[..., 0, :].any()
    seen = np.tri(3, 4, dtype=bool) & (added == 0)
    np.testing.assert_allclose(found[..., 1:, :], by_loops(q, k, v, seen)[..., 1:, :], rtol=1e-10)
    check_grads(lambda *xs: nn.scaled_dot_product_attention(*xs, added, True), [q, k, v], order=2)
