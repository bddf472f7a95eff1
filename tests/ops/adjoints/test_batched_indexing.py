"""Elements taken, added up and written at places that members share, or each has its own."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.batching import members
from tests.cases import each

RNG = np.random.default_rng(3)
X = RNG.normal(size=(4, 3, 4, 5))
I = RNG.integers(0, 3, size=4)  # noqa: E741
IS = RNG.integers(-3, 3, size=(4, 2))
MASK, MASK_BEHIND = X[0, ..., 0] > 0, X[0, 0] > 0
APART = (np.array([0, 2]), slice(None), np.array([[1], [4]]))

FUNCTIONS = {
    "take": lambda x, i, js: x[i],
    "take many": lambda x, i, js: x[js],
    "take, wrapped": lambda x, i, js: cnp.take(x, js + 7, axis=1, mode="wrap"),
    "take, clipped": lambda x, i, js: cnp.take(x, js + 2, axis=0, mode="clip"),
    "take of one": lambda x, i, js: cytape.constant(X[0])[i] * x[0],
    "apart": lambda x, i, js: x[APART],
    "mask of two axes, apart": lambda x, i, js: x[MASK, None, 1],
    "mask of two axes after a number": lambda x, i, js: x[0, ..., MASK_BEHIND],
    "set at a mask of two axes, apart": lambda x, i, js: x.at[MASK, None, [0]].set(x[0, 0, 0]),
    "nothing": lambda x, i, js: x[-1, 1:0, False, ::-1],
    "along": lambda x, i, js: cnp.take_along_axis(x, js[:, None, None], axis=0),
    "along all": lambda x, i, js: cnp.take_along_axis(x, js, axis=None),
    "set": lambda x, i, js: x.at[i].set(2.0 * x[0]),
    "set behind a slice": lambda x, i, js: x.at[:, i].set(x[:, 0]),
    "set, apart": lambda x, i, js: x.at[APART].set(x[:2, :1, :4]),
    "set a number": lambda x, i, js: x.at[1, 2:].set(x[0, 0, 0]),
    "set in what all share": lambda x, i, js: cytape.constant(X[0]).at[1:].set(x[0]),
    "set what all share": lambda x, i, js: x.at[APART].set(X[1, :1, 0, :4]),
    "take behind a slice": lambda x, i, js: x[:, i],
    "take many behind slices": lambda x, i, js: x[1:, ..., js],
    "take many behind a new axis": lambda x, i, js: x[None, js],
    "take on both sides of a slice": lambda x, i, js: x[i, :, js],
    "take on both sides of an axis": lambda x, i, js: x[i, ..., js],
    "take beside an array": lambda x, i, js: x[:, js, np.array([0, 4])],
    "take beside a number": lambda x, i, js: x[:, 1, js],
    "take many of one": lambda x, i, js: cytape.constant(X[0])[:, js] * x[0, 0, 0],
    "take of one, apart": lambda x, i, js: cytape.constant(X[0])[js, :, i] * x[0, 0, 0],
    "add behind slices": lambda x, i, js: (x * x).at[..., js].add(x[:, :, :2]),
    "add a row behind a slice": lambda x, i, js: (x * x).at[:, js].add(x[0, 0]),
    "add on both sides of a slice": lambda x, i, js: (x * x).at[i, :, js].add(x[0, 0, 0]),
    "add": lambda x, i, js: (x * x).at[js].add(x[:2]),
    "add, apart": lambda x, i, js: x.at[APART].add(x[0, 0, :4]),
}


@pytest.fixture
def loops(monkeypatch):
    """The calls for one member after the other."""
    calls, one_by_one = [], members._one_by_one
    monkeypatch.setattr(
        members, "_one_by_one", lambda *args: calls.append(args[1]) or one_by_one(*args))
    return calls


@each(name=FUNCTIONS, way=[lambda f: f, cytape.function])
def test_values_and_gradients_are_those_of_a_loop_without_one(loops, name, way):
    function = FUNCTIONS[name]

    def weighted(x, i, js):
        y = function(x, i, js)
        return cnp.sum(y * y * cnp.arange(y.size).reshape(y.shape))

    rows = [tuple(map(cytape.constant, row)) for row in zip(X, I, IS, strict=True)]
    del loops[:]
    found = way(cytape.vmap(function))(X, I, IS)
    gradients = way(cytape.vmap(cytape.grad(weighted)))(X, I, IS)
    assert loops == []
    np.testing.assert_array_equal(found, np.stack([function(*row).numpy() for row in rows]))
    np.testing.assert_allclose(
        gradients, np.stack([cytape.grad(weighted)(*row).numpy() for row in rows]), rtol=1e-12)


def test_rows_whose_number_members_share(loops):
    def total(x, row, i):
        return cytape.vmap(lambda x, row, i: x.at[i].set(row), (0, None, None))(x, row, i)

    found = cytape.function(total)(X, X[1, 2], np.array(1))
    assert loops == []
    expected = X.copy()
    expected[:, 1] = X[1, 2]
    np.testing.assert_array_equal(found, expected)
