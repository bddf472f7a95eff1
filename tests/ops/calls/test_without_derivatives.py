"""Functions of SciPy without derivatives, those of `scipy.optimize`: results, errors."""

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError
from tests.cases import each

scipys = pytest.importorskip("scipy.optimize")
ours = pytest.importorskip("cytape.scipy.optimize")


def parabola(x, a):
    return (np.sum(x) - a) ** 2


CALLS = [
    ("golden", lambda f, a: f(parabola, (a,))),
    ("brent", lambda f, a: f(parabola, (a,))),
    ("fminbound", lambda f, a: f(parabola, 0, 3, (a,))),
    ("bracket", lambda f, a: f(parabola, 0.0, 1.0, (a,))[1]),
    ("fmin", lambda f, a: f(parabola, [0.0], (a,), disp=False)[0]),
    ("differential_evolution", lambda f, a: f(parabola, [(0, 3)], (a,), seed=0).x[0]),
    ("line_search", lambda f, a: f(
        lambda x: parabola(x, a), lambda x: 2 * (x - a), np.zeros(1), np.ones(1))[0]),
    ("leastsq", lambda f, a: f(lambda x, a: [x[0] - a, x[0] - 2 * a], [1.0], (a,))[0][0]),
    ("rosen", lambda f, a: f([a, a])),
]


@each(("name", "call"), CALLS)
def test_values_are_scipys_and_gradients_are_not_lost(name, call):
    function = getattr(ours, name)
    expected = call(getattr(scipys, name), 1.3)
    np.testing.assert_allclose(call(function, 1.3), expected)
    np.testing.assert_allclose(call(function, cytape.constant(1.3)), expected)
    with pytest.raises(DetachedError, match="has no derivative"):
        cytape.grad(lambda a: call(function, a))(1.3)


def test_replacements_are_named():
    with pytest.raises(DetachedError, match="optimize.minimize_scalar has one"):
        cytape.grad(lambda a: ours.golden(parabola, (a,)))(1.3)
