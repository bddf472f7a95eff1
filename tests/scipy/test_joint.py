"""Distributions of matrices, directions and random counts: SciPy's values, derivatives, errors."""

import pickle

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each

stats = pytest.importorskip("scipy.stats")
ours = pytest.importorskip("cytape.scipy.stats")
ROOT = np.array([[1.5, 0.0], [0.4, 0.9]])
X, V = ROOT @ ROOT.T, np.array([[2.0, 0.3], [0.3, 1.0]])
M = np.array([[0.3, 1.2], [-0.7, 0.4], [1.1, -0.2]])
ROWS = np.eye(3) + 0.2
COUNTS = np.array([[1, 2, 4], [3, 3, 1], [3, 3, 0]])
DIRECTIONS = np.array([[1.0, 2.0, 2.0], [2.0, -1.0, 2.0]]) / 3
CALLS = [
    ("wishart", (X, 5.5, V)), ("wishart", (np.stack([X, V], -1), 5.5, V)),
    ("wishart", (2.0, 5.5, 1.5)), ("wishart", (np.array([2.0, 3.0]), 5.5, 1.5)),
    ("invwishart", (X, 5.5, V)), ("invwishart", (np.stack([X, V], -1), 5.5, V)),
    ("matrix_normal", (M, M[::-1], ROWS, V)), ("matrix_normal", (np.array([M, M**2]), M, ROWS, V)),
    ("matrix_normal", (M, np.zeros((3, 2)), 2.0, 3.0)),
    ("dirichlet_multinomial", (COUNTS, np.array([0.5, 1.5, 2.0]), 7)),
    ("vonmises_fisher", (DIRECTIONS, DIRECTIONS[0], 2.5)),
    ("normal_inverse_gamma", (np.array([0.3, 0.5]), np.array([1.2, 0.7]), 0.1, 1.5, 2.0, 3.0))]


@each("name, args", CALLS)
def test_values_are_scipys(name, args):
    log = "logpmf" if name == "dirichlet_multinomial" else "logpdf"
    for method in (log, log[3:]):
        function, expected = (getattr(getattr(where, name), method) for where in (ours, stats))
        wanted = expected(*args)
        found = function(*map(cytape.constant, args))
        np.testing.assert_allclose(np.asarray(found), wanted, 1e-12)
        np.testing.assert_array_equal(function(*args), wanted)
        traced = cytape.function(lambda *args, f=function: f(*args))(*args)
        np.testing.assert_allclose(np.asarray(traced), wanted, 1e-12)
        rest = args[2 if name == "normal_inverse_gamma" else 1:]  # its variable has two parts
        for given in (rest, tuple(map(cytape.constant, rest))):
            frozen = getattr(getattr(ours, name)(*given), method)
            variables = map(cytape.constant, args[:len(args) - len(rest)])
            np.testing.assert_allclose(np.asarray(frozen(*variables)), wanted, 1e-12)


@each("f, args", [
    (lambda r, df, s: ours.wishart.logpdf(r @ r.T, 1.0 * df, s @ s.T),
     (ROOT, np.array(5.5), ROOT.T)),
    (lambda r, df, s: ours.invwishart.logpdf(r @ r.T, 1.0 * df, s @ s.T),
     (ROOT, np.array(5.5), ROOT.T)),
    (lambda x, mean, c: ours.matrix_normal.logpdf(x, mean, ROWS, c @ c.T), (M, M[::-1], ROOT)),
    (lambda a: ours.dirichlet_multinomial.logpmf(COUNTS[0], a, 7), (np.array([0.5, 1.5, 2.0]),)),
    (lambda k: ours.vonmises_fisher.logpdf(DIRECTIONS[0], DIRECTIONS[1], 1.0 * k),
     (np.array(2.5),)),
    (ours.normal_inverse_gamma.logpdf, tuple(map(np.array, (0.3, 1.2, 0.1, 1.5, 2.0, 3.0))))])
def test_derivatives(f, args):
    check_grads(f, list(args))


def test_errors_are_scipys():
    x = cytape.constant(X)
    with pytest.raises(ValueError, match="Degrees of freedom must be greater"):
        ours.wishart.logpdf(x, 0.5, V)
    with pytest.raises(ValueError, match="must be square"):
        ours.wishart.logpdf(cytape.constant(M), 5.0, V)
    with pytest.raises(ValueError, match="must contain only positive"):
        ours.dirichlet_multinomial.logpmf([1, 2], cytape.constant([-1.0, 2.0]), 3)
    with pytest.raises(ValueError, match="must be a positive scalar"):
        ours.vonmises_fisher.logpdf(DIRECTIONS, DIRECTIONS[0], cytape.constant(-1.0))
    with pytest.raises(TypeError, match="argument"):
        ours.wishart.logpdf(x)
    assert pickle.loads(pickle.dumps(ours.wishart)) is ours.wishart
    assert ours.wishart.mean(5.5, V).shape == (2, 2)
