"""Functions of neural networks: extreme values, conventions, bad input."""

import numpy as np
import pytest
from scipy import special

import cytape
from cytape import nn
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from cytape.ops.engine.op_kinds import OPS
from tests.cases import each
from tests.ways import gradient, watching

EXTREME = np.array([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4], [1e4, 1e4, 1e4]])


# -- softmax -------------------------------------------------------------------------------------


def test_softmax_family_at_extreme_logits():
    np.testing.assert_allclose(nn.softmax(EXTREME), special.softmax(EXTREME, axis=-1))
    np.testing.assert_allclose(nn.log_softmax(EXTREME), special.log_softmax(EXTREME, axis=-1))
    np.testing.assert_allclose(nn.logsumexp(EXTREME, axis=-1), special.logsumexp(EXTREME, axis=-1))
    for function in (nn.softmax, nn.log_softmax, lambda x: nn.logsumexp(x, axis=-1)):
        assert np.isfinite(gradient(function, EXTREME)).all()


def test_impossible_classes_have_no_gradient():
    x = np.array([0.0, -np.inf, 1.0])
    shares = special.softmax(x)
    np.testing.assert_allclose(nn.softmax(x), shares)
    np.testing.assert_allclose(gradient(nn.logsumexp, x), shares)
    np.testing.assert_allclose(
        gradient(lambda t: nn.softmax(t)[0], x), shares[0] * (np.eye(3)[0] - shares))
    np.testing.assert_allclose(gradient(lambda t: nn.log_softmax(t)[0], x), np.eye(3)[0] - shares)


@each("f, power", [
    (nn.logsumexp, np.exp), (lambda x: np.logaddexp(x[0], x[1]), np.exp),
    (lambda x: np.logaddexp2(x[0], x[1]), np.exp2)])
@each("dtype", ["float16", "float32", "float64"])
def test_large_logarithms_are_shared_by_their_difference(f, power, dtype):
    """Of numbers as large as these the sum of the exponentials is e to one of them, rounded."""
    large = 1 / np.finfo(dtype).eps
    share = 1 / (1 + power(-1))
    x = np.array([2 * large, 2 * large - 1], dtype)
    np.testing.assert_allclose(cytape.grad(f)(x), [share, 1 - share], rtol=4 / large)
    bend = share * (1 - share) * (np.log(2) if power is np.exp2 else 1)
    np.testing.assert_allclose(
        cytape.hessian(f)(x), bend * np.array([[1, -1], [-1, 1]]), rtol=8 / large)


def test_logsumexp_of_nothing_possible():
    x = np.full(3, -np.inf)
    assert nn.logsumexp(x) == -np.inf
    np.testing.assert_array_equal(gradient(nn.logsumexp, x), np.zeros(3))
    nothing = np.zeros((2, 0))
    np.testing.assert_array_equal(nn.logsumexp(nothing, axis=1), [-np.inf, -np.inf])
    assert gradient(lambda x: nn.logsumexp(x, axis=1)[0], nothing).shape == (2, 0)
    assert cytape.hessian(nn.logsumexp)(np.zeros(0)).shape == (0, 0)


@pytest.mark.filterwarnings("error")
def test_logsumexp_beside_an_infinite_element_does_not_warn():
    assert nn.logsumexp(np.array([np.inf, 1e4])) == np.inf


@each(f=[
    nn.softmax, nn.log_softmax, nn.logsumexp, nn.layer_norm, nn.rms_norm,
    nn.l2_normalize, lambda x: nn.group_norm(x[None], 1), lambda x: nn.huber_loss(x, x),
    lambda x: nn.fused_batch_norm(x, 1.0, 0.0)[0], lambda x: nn.kl_divergence(x, x),
    lambda x: nn.scaled_dot_product_attention(x[None], x[None], x[None])],
    way=[lambda f: f, cytape.function, cytape.vmap])
def test_complex_numbers_are_refused(f, way):
    with pytest.raises(TypeError, match="real numbers, got complex128"):
        way(f)(np.ones((2, 2), complex))
    with pytest.raises(TypeError, match="not supported"):
        nn.softsign(np.ones(2, complex))


def test_integer_logits_are_taken_as_floats():
    assert nn.softmax(np.array([0, 0])).tolist() == [0.5, 0.5]


def test_float32_logits_stay_float32():
    logits = np.zeros((2, 3), np.float32)
    assert nn.sparse_softmax_cross_entropy_with_logits([0, 2], logits).dtype == np.float32
    for labels in ([[0, 1, 0]] * 2, np.ones((2, 3)) / 3):
        assert nn.softmax_cross_entropy_with_logits(labels, logits).dtype == np.float32


@each(("name", "inputs", "attrs"), [
    ("SoftmaxCrossEntropyWithLogits", [np.ones(2), np.ones(2)], {"axis": 0}),
    ("SparseSoftmaxCrossEntropyWithLogits", [np.ones(2), 1], {"axis": -1}),
    ("FusedBatchNorm", [np.ones((3, 2)), np.ones(2), np.ones(2)], {"epsilon": 1.0})])
def test_D_1A_10_gradients_of_all_outputs_but_the_first_may_be_none(name, inputs, attrs):
    op, seen = OPS[name], []
    vjp = op.vjp
    x = cytape.constant(inputs[0])
    with watching(x) as tape:
        y, *others = op(x, *inputs[1:], **attrs)
    op.define(vjp=lambda call, *gradients: seen.append(gradients) or vjp(call, *gradients))
    try:
        tape.gradient(y, x)
    finally:
        op.define(vjp=vjp)
    assert [gradient is None for gradient in seen[0]] == [False] + [True] * len(others)


# -- dropout -------------------------------------------------------------------------------------


def test_dropout_drops_a_share_and_keeps_the_mean():
    x = np.ones((100, 50))
    y = nn.dropout(x, 0.25, seed=1)
    assert type(y) is np.ndarray
    np.testing.assert_allclose(np.unique(y), [0, 4 / 3])
    assert abs(y.mean() - 1) < 0.03
    assert isinstance(nn.dropout(cytape.constant(x), 0.25), cytape.Tensor)
    assert nn.dropout(cytape.constant(np.float32([1, 2])), 0.5).dtype == np.float32


def test_dropout_of_nothing_and_bad_arguments():
    x = cytape.constant([1.0, 2.0])
    assert nn.dropout(x, 0) is x
    for rate in (-0.1, 1, 1.5):
        with pytest.raises(ValueError, match="rate"):
            nn.dropout(x, rate)
    with pytest.raises(TypeError, match="int64"):
        nn.dropout(cytape.constant([1, 2]), 0.5)


def test_dropped_elements_get_no_gradient_and_the_others_their_share():
    x = cytape.constant(np.arange(1.0, 101.0))
    with watching(x) as tape:
        y = nn.dropout(x, 0.5, seed=3)
    slope = tape.gradient(y, x).numpy()
    np.testing.assert_array_equal(slope, np.where(y.numpy() == 0, 0, 2))
    assert 20 < (slope == 0).sum() < 80


@each("shape", [(40,), (None,)])
def test_dropout_in_a_graph_chooses_once_in_a_run_and_anew_in_the_next(shape):
    graph = Graph()
    graph.seed = 5
    with graph.as_default():
        x = graph.placeholder(np.dtype(float), shape)
        with watching(x) as tape:
            y = nn.dropout(x, 0.5)
        slope = tape.gradient(y, x)
    symbols = [graph.symbol_of(y), graph.symbol_of(slope)]
    values = np.arange(1.0, 41.0)
    runs = [run(graph, symbols, {graph.symbol_of(x): values}) for _ in range(2)]
    for dropped, slope in runs:
        np.testing.assert_array_equal(slope, np.where(dropped == 0, 0, 2))
        np.testing.assert_array_equal(dropped, slope * values)
    assert not np.array_equal(runs[0][0], runs[1][0])
