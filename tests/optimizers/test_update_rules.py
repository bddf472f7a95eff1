"""Each rule against its formula in NumPy, step by step, dense and by rows."""

import numpy as np
import pytest

import cytape
from cytape.optimizers import SGD, Adagrad, Adam, AdamW, Lion, RMSProp
from tests.cases import each


def descent(p, g, s, t, rate=0.1):
    return p - rate * g


def momentum(p, g, s, t):
    s["v"] = 0.9 * s.get("v", 0) + g
    return p - 0.1 * s["v"]


def nesterov(p, g, s, t):
    s["v"] = 0.9 * s.get("v", 0) + g
    return p - 0.1 * (g + 0.9 * s["v"])


def adagrad(p, g, s, t):
    s["v"] = s.get("v", 0.1) + g**2
    return p - 0.1 * g / (np.sqrt(s["v"]) + 1e-7)


def rmsprop(p, g, s, t):
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * g**2
    return p - 0.1 * g / (np.sqrt(s["v"]) + 1e-7)


def rmsprop_momentum(p, g, s, t):
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * g**2
    s["m"] = 0.5 * s.get("m", 0) + g / (np.sqrt(s["v"]) + 1e-7)
    return p - 0.1 * s["m"]


def adam(p, g, s, t):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.99 * s.get("v", 0) + 0.01 * g**2
    return p - 0.1 * (s["m"] / (1 - 0.9**t)) / (np.sqrt(s["v"] / (1 - 0.99**t)) + 1e-3)


def lion(p, g, s, t):
    m = s.get("m", 0)
    s["m"] = 0.99 * m + 0.01 * g
    return p - 0.1 * np.sign(0.9 * m + 0.1 * g)


RULES = [
    (descent, lambda **more: SGD(0.1, **more)),
    (momentum, lambda **more: SGD(0.1, momentum=0.9, **more)),
    (nesterov, lambda **more: SGD(0.1, momentum=0.9, nesterov=True, **more)),
    (adagrad, lambda **more: Adagrad(0.1, **more)),
    (rmsprop, lambda **more: RMSProp(0.1, **more)),
    (rmsprop_momentum, lambda **more: RMSProp(0.1, momentum=0.5, **more)),
    (adam, lambda **more: Adam(0.1, beta_2=0.99, epsilon=1e-3, **more)),
    (lion, lambda **more: Lion(0.1, **more)),
]
TOLERANCES = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3}


def gradients(shape, n=4):
    rng = np.random.default_rng(1)
    return [rng.normal(size=shape) for _ in range(n)]


@each(rule=RULES, dtype=TOLERANCES)
def test_steps_are_those_of_the_formula(rule, dtype):
    formula, make = rule
    expected = np.linspace(-1, 1, 37).reshape(37, 1)  # not a multiple of a vector's length
    parameters = [expected.astype(dtype), cytape.Variable(expected.astype(dtype))]
    optimizers, state = [make(), make()], {}
    for t, g in enumerate(gradients((37, 1)), 1):
        expected = formula(expected, g, state, t)
        for p, optimizer in zip(parameters, optimizers, strict=True):
            optimizer.update(p, cytape.constant(g.astype(dtype)))
            assert p.dtype == dtype
            np.testing.assert_allclose(
                np.asarray(p, float), expected, TOLERANCES[dtype], TOLERANCES[dtype])


@each(rule=RULES, dtype=["float64", "float32", "float16"], order=[[0, 1, 2], [1, 0, 2]])
def test_rows_have_the_steps_of_a_dense_gradient_and_other_rows_none(rule, dtype, order):
    _, make = rule
    start = np.linspace(-1, 1, 24).reshape(6, 2, 2).astype(dtype)
    table, rows = cytape.Variable(start), cytape.Variable(start[[1, 4]])
    sparse, dense = make(weight_decay=0.1), make(weight_decay=0.1)
    for g in gradients((3, 2, 2)):
        g = g.astype(dtype)
        slices = cytape.IndexedSlices(
            cytape.constant(g[order]), cytape.constant(np.array([4, 1, -2])[order]),
            dense_shape=(6, 2, 2))
        sparse.update(table, slices)
        dense.update(rows, np.stack([g[1], (g[0].astype(float) + g[2]).astype(dtype)]))
    np.testing.assert_allclose(
        table.numpy()[[1, 4]], rows.numpy(), TOLERANCES[dtype], TOLERANCES[dtype])
    assert np.array_equal(table.numpy()[[0, 2, 3, 5]], start[[0, 2, 3, 5]])


def test_adamw_decays_the_weights_and_not_the_gradient():
    p = np.array([2.0])
    AdamW(0.1, weight_decay=0.5).update(p, np.zeros(1))
    assert p == [2.0 * (1 - 0.1 * 0.5)]
    assert AdamW().weight_decay == 0.01


@pytest.mark.parametrize("make", [
    lambda: SGD(momentum=1.0), lambda: SGD(nesterov=True), lambda: Adam(beta_1=-0.1),
    lambda: RMSProp(epsilon=-1.0), lambda: Lion(beta_2=1.0), lambda: Adagrad(initial_total=-1.0)])
def test_constants_out_of_range_are_refused(make):
    with pytest.raises(ValueError, match=r"must be at least|needs a momentum"):
        make()


def test_a_gradient_that_is_not_a_number_reaches_the_parameter():
    for _, make in RULES:
        p = np.ones(2)
        make().update(p, np.array([np.nan, 0.5]))
        assert np.isnan(p[0])
        assert np.isfinite(p[1])


@each("rule", [SGD, RMSProp])
def test_a_momentum_that_is_set_later_is_refused(rule):
    w, opt = np.ones(2), rule(0.1)
    opt.momentum = 0.9
    with pytest.raises(ValueError, match="momentum was 0 when the optimizer was made"):
        opt.update(w, np.ones(2))
    assert w.tolist() == [1, 1]
