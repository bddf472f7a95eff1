"""Writes to results that are copies in NumPy, wherever a program runs."""

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each, sampled
from tests.ways import agree, as_in_numpy

X = np.arange(1.0, 25.0).reshape(4, 3, 2)
COPIES = {
    "copy": lambda x: x.copy(), "astype": lambda x: x.astype(float), "array": cnp.array,
    "product": lambda x: x * 2, "sum": lambda x: np.sum(x, 0), "rows": lambda x: x[[0, 1]],
    "mask": lambda x: x[x > 2], "concatenate": lambda x: np.concatenate([x, x]),
    "matmul": lambda x: x @ np.ones((2, 2)), "where": lambda x: np.where(x > 2, x, 0.0),
    "stack": lambda x: np.stack([x, x]), "hstack": lambda x: np.hstack([x, x]),
    "block": lambda x: np.block([x, x]), "r_": lambda x: cnp.r_[x, x],
    "roll": lambda x: np.roll(x, 1), "pad": lambda x: np.pad(x, 1),
    "tile": lambda x: np.tile(x, 2), "repeat": lambda x: np.repeat(x, 2),
    "insert": lambda x: np.insert(x, 1, 5.0, 0), "append": lambda x: np.append(x, 5.0),
    "list": lambda x: cnp.array([x, x]), "diag": lambda x: np.diag(x[:, 0, 0]),
    "triu": np.triu, "tril": lambda x: np.tril(x, 5), "rows and columns": lambda x: x[[0, 1], :2],
    # Where nothing is moved:
    "flatten": lambda x: x.flatten(), "concatenate one": lambda x: np.concatenate([x]),
    "hstack one": lambda x: np.hstack([x]), "block of one": lambda x: np.block([x]),
    "roll by none": lambda x: np.roll(x, 0), "pad by none": lambda x: np.pad(x, 0),
    "append nothing": lambda x: np.append(x, []), "delete": lambda x: np.delete(x, 0, 0),
    "delete nothing": lambda x: np.delete(x, [], 0), "resize": lambda x: np.resize(x, (3, 8)),
    "kron": lambda x: np.kron(x, x), "vander": lambda x: np.vander(x[:, 0, 0]),
    "meshgrid": lambda x: np.meshgrid(x[:, 0, 0], x[:, 0, 0])[0],
    "sparse meshgrid": lambda x: np.meshgrid(x[:, 0, 0], x[:, 0, 0], sparse=True)[1],
    "choose": lambda x: np.choose(np.zeros(2, int), [x]),
    "insert nothing": lambda x: np.insert(x, [], np.zeros((0, *x.shape[1:])), 0),
    "repeat once": lambda x: np.repeat(x, 1, 0), "ndmin": lambda x: cnp.array(x, ndmin=4),
    "along an axis": lambda x: np.apply_along_axis(lambda row: row, 0, x),
    "number in an array": lambda x: x[np.array(1)],
    "number in an array beside a slice": lambda x: x[1:, np.array(-1)],
    "copy of rows": lambda x: x[1:].copy(),
}


def changed(make):
    def f(x):
        y = make(x)
        y[0] = 7.0
        y += 1.0
        y[0] = y[0] * 2.0
        return y, x * 1.0

    return f


WAYS = {
    "eager": lambda f: f, "eager, of many elements": lambda f: f, "traced": cytape.function,
    "recomputed": cytape.recompute_grad,
    "batched": lambda f: lambda x: [y[0] for y in cytape.vmap(f)(x[None])],
    "batched, traced": lambda f: cytape.function(lambda x: [y[0] for y in cytape.vmap(f)(x[None])])}


@sampled(4, way=WAYS, name=COPIES)
def test_results_can_be_changed_and_leave_what_they_are_made_of(name, way):
    if name == "mask" and "eager" not in way or name == "kron" and "many" in way:
        return
    f, array = changed(COPIES[name]), np.tile(X, (1, 600, 1)) if "many" in way else X
    x = cytape.constant(array)
    agree(WAYS[way](f)(x), (f(array.copy())[0], array))
    agree(x, array)


@each("make", [make for name, make in COPIES.items() if name != "mask"])
def test_gradients_of_changed_copies_are_those_of_functions(make):
    def by_change(x):
        y = make(x)
        y[0] = 7.0
        return cnp.sum(y * y)

    def by_choice(x):
        y = make(x)
        first = np.arange(y.shape[0]).reshape((-1,) + (1,) * (y.ndim - 1)) == 0
        return cnp.sum(np.where(first, 7.0, y) ** 2)

    expected = cytape.grad(by_choice)(X)
    for f in (by_change, cytape.function(by_change)):
        np.testing.assert_allclose(cytape.grad(f)(X), expected)


def test_signs_of_complex_numbers_can_be_changed():
    def f(z):
        signs = np.sign(z)
        signs[0] = 7.0
        return signs

    as_in_numpy(f, np.array([3.0 + 4.0j, -2.0]))
