"""Primitives in graphs; `tests/autograd/test_primitives.py` has the transforms."""

import numpy as np
import pytest

import cytape
from cytape.autograd.extend import defjvp, defvjp, primitive


def test_the_function_gets_arrays_in_each_run():
    seen = []
    op = primitive(lambda x: seen.append(x) or 2 * x)
    defvjp(op, lambda ans, x: lambda g: 2 * g)
    f = cytape.function(lambda x: op(x) + 1)
    assert f(np.ones(2))[0] == 3
    n_sample_calls = len(seen) - 1
    assert f(np.full(2, 5.0))[0] == 11 and f(np.full(2, 7.0))[0] == 15
    assert len(seen) == n_sample_calls + 3 and set(map(type, seen)) == {np.ndarray}


def test_a_rule_may_need_values():
    op = primitive(lambda x: np.exp(x))
    defvjp(op, lambda ans, x: lambda g: g * np.asarray(ans))
    assert np.allclose(cytape.function(cytape.grad(op))(1.0), np.e)


def test_a_rule_of_forward_mode_alone_serves_both_modes():
    op = primitive(lambda xs: xs[0] ** 2 * xs[1])
    defjvp(op, lambda g, ans, xs: 2 * xs[0] * xs[1] * g[0] + xs[0] ** 2 * g[1])

    def f(x):
        return op([x, 3.0])

    assert cytape.function(cytape.grad(f))(2.0) == 12
    assert cytape.function(lambda x: cytape.jvp(f, (x,), (1.0,))[1])(2.0) == 12


def test_results_are_packed():
    op = primitive(lambda pair: {"sum": pair[0] + pair[1], "product": [pair[0] * pair[1]]})
    defvjp(op, lambda ans, pair: lambda g: [g["sum"] + g["product"][0] * pair[1],
                                            g["sum"] + g["product"][0] * pair[0]])

    def f(x):
        found = op([x, 2 * x])
        return found["sum"] * found["product"][0]

    assert f(cytape.constant(2.0)) == 48 and cytape.function(cytape.grad(f))(2.0) == 72


def test_a_missing_rule_is_named():
    with pytest.raises(NotImplementedError, match="VJP of .* wrt argnums"):
        cytape.function(cytape.grad(primitive(lambda x: 2 * x)))(1.0)
