"""Solvers of linear systems in batches and graphs."""

import numpy as np
import pytest

import cytape
from tests.cases import each

ours = pytest.importorskip("cytape.scipy.linalg")

A = np.array([[4.0, 1.0, 0.5], [1.5, 5.0, 0.2], [-0.5, 0.7, 6.0]])
B = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 2.5]])
SOLVERS = {
    "solve": lambda a, b: ours.solve(a, b, assume_a="pos"), "general": ours.solve,
    "solve_triangular": ours.solve_triangular,
    "solve_banded": lambda a, b: ours.solve_banded((1, 1), a, b),
    "solve_sylvester": lambda a, b: ours.solve_sylvester(a, A[:2, :2], b)}


def matrices(name):
    return np.stack([A @ A.T, A @ A.T + 1]) if name == "solve" else np.stack([A, A + 1])


@each(name=SOLVERS, axes=[(0, 0), (0, None), (None, 0)])
def test_vmap_equals_a_loop(name, axes):
    f, stacks = SOLVERS[name], (matrices(name), np.stack([B, -B]))
    args = [x if axis == 0 else x[0] for x, axis in zip(stacks, axes, strict=True)]
    found = cytape.vmap(f, axes)(*args)
    for i in range(2):
        one = [x[i] if axis == 0 else x for x, axis in zip(args, axes, strict=True)]
        np.testing.assert_allclose(found[i], f(*map(cytape.constant, one)), 1e-12)


@each("name", SOLVERS)
def test_batches_of_directions(name):
    f, a = SOLVERS[name], matrices(name)[1]
    forward = cytape.jacfwd(f, argnums=(0, 1))(a, B)
    reverse = cytape.jacrev(f, argnums=(0, 1))(a, B)
    for x, y in zip(forward, reverse, strict=True):
        np.testing.assert_allclose(x, y, 1e-10, 1e-12)


@each("name", SOLVERS)
def test_graphs_check_shapes_and_take_unknown_ones(name):
    f, a = SOLVERS[name], matrices(name)[0]
    with cytape.Graph().as_default() as graph:
        places = [cytape.placeholder("float64", (None, None)) for _ in range(2)]
        result = f(*places)
        with pytest.raises(ValueError, match="fit|compatible|square|[Ii]ncompatible"):
            f(cytape.placeholder("float64", (3, 3)), cytape.placeholder("float64", (4, 2)))
    found = cytape.Session(graph).run(result, dict(zip(places, (a, B), strict=True)))
    np.testing.assert_allclose(found, f(cytape.constant(a), B), 1e-13)
