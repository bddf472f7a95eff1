"""Derivatives in batches of directions, where a graph does not know how large anything is."""

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError
from tests.cases import each

X = np.array([1.0, -2.0, 3.0])
UNKNOWN = cytape.Spec.of((None,), float)


# Functions whose intermediates have extents that a trace does not know, whatever the argument's.
MASKED = {
    "square": lambda a: np.sum(a[a > 0] ** 2), "exp": lambda a: np.sum(np.exp(a[a > 0])),
    "log": lambda a: np.sum(np.log(a[a > 0])), "matmul": lambda a: a[a > 0] @ a[a > 0],
    "matrices": lambda a: np.sum(np.outer(a[a > 0], a[a > 0]) @ np.outer(a[a > 0], a)),
    "std": lambda a: np.std(a[a > 0]), "norm": lambda a: np.linalg.norm(a[a > 0]),
    "pad": lambda a: np.sum(np.pad(a[a > 0], 1) ** 3),
    "extract": lambda a: np.sum(np.extract(a > 0, a) ** 3),
    "compress": lambda a: np.sum(np.compress(np.greater(a, 0), a) ** 3),
    "nonzero": lambda a: np.sum(a[np.nonzero(a > 0)] ** 3),
    "broadcast": lambda a: np.sum((a[a > 0][:, None] * a) ** 2),
    "concatenate": lambda a: np.sum(np.concatenate([a[a > 0], a]) ** 3),
    "where": lambda a: np.sum(np.where(a[a > 0] > 2, a[a > 0] ** 2, a[0] ** 3)),
    "squeeze": lambda a: np.sum(np.squeeze(a[a > 0][:, None], 1) ** 3)}
# These take one direction of a batch after the other, so there must be a known number of them.
ONE_BY_ONE = {
    "prod": lambda a: np.prod(a[a > 0]),
    "roll": lambda a: np.sum(np.roll(a[a > 0], 1) * a[a > 0] ** 2)}
WHOLE = {
    "sum": lambda a: np.sum(a) ** 3, "mean": lambda a: np.mean(np.exp(a)),
    "cumsum": lambda a: np.sum(np.cumsum(a) ** 3), "outer": lambda a: np.sum(np.outer(a, a) ** 2),
    "slices": lambda a: np.sum((a[1:] * a[:-1]) ** 2),
    "take": lambda a: np.sum(np.take(a, [0, 1, 1]) ** 3), "max": lambda a: np.max(a) ** 3,
    "reshape": lambda a: np.sum(np.reshape(a, (1, -1)) @ np.reshape(a, (-1, 1))) ** 2,
    "stack": lambda a: np.sum(np.stack([a, a**2]) ** 2),
    "softmax": lambda a: cytape.nn.softmax(a)[0], "clip": lambda a: np.sum(np.clip(a, -1, 1) ** 3)}


@each("name", [*MASKED, *ONE_BY_ONE])
def test_hessians_of_what_has_unknown_extents_inside(name):
    f = {**MASKED, **ONE_BY_ONE}[name]
    np.testing.assert_allclose(
        cytape.function(cytape.hessian(f))(X), cytape.hessian(f)(X), atol=1e-12)


@each("name", [*MASKED, *WHOLE])
def test_hessians_in_arguments_of_unknown_extents(name):
    f = {**MASKED, **WHOLE}[name]
    traced = cytape.function(cytape.hessian(f), input_signature=[UNKNOWN])
    np.testing.assert_allclose(traced(X), cytape.hessian(f)(X), atol=1e-12)
    other = np.array([3.0, -1.0, 2.0, 0.5])
    np.testing.assert_allclose(traced(other), cytape.hessian(f)(other), atol=1e-12)


@each("name", ONE_BY_ONE)
def test_an_unknown_number_of_directions_cannot_be_taken_one_by_one(name):
    traced = cytape.function(cytape.hessian(ONE_BY_ONE[name]), input_signature=[UNKNOWN])
    with pytest.raises(SymbolicTensorError, match="known only when the graph runs"):
        traced(X)
    whole = cytape.function(ONE_BY_ONE[name], input_signature=[UNKNOWN])
    np.testing.assert_allclose(  # the advice of the error
        cytape.hessian(whole)(X), cytape.hessian(ONE_BY_ONE[name])(X), atol=1e-12)


def test_a_third_derivative_of_what_has_unknown_extents_inside():
    def f(a):
        return np.sum(a[a > 0] ** 3 * a[0])

    third = cytape.jacfwd(cytape.hessian(f))
    np.testing.assert_allclose(cytape.function(third)(X), third(X), atol=1e-12)
    traced = cytape.function(third, input_signature=[UNKNOWN])
    np.testing.assert_allclose(traced(X), third(X), atol=1e-12)


def test_a_batch_in_a_graph_can_be_differentiated():
    def f(a):
        return np.sum(cytape.jacfwd(lambda a: a[a > 0] ** 3 * np.sum(a))(a) ** 2)

    for options in {}, {"input_signature": [UNKNOWN]}:
        traced = cytape.function(cytape.grad(f), **options)
        np.testing.assert_allclose(traced(X), cytape.grad(f)(X))


def test_dtypes_of_tangents_are_kept():
    f = MASKED["square"]
    assert cytape.function(cytape.hessian(f))(X.astype(np.float32)).dtype == np.float32
    z = X + 1j
    of_part = cytape.function(cytape.jacfwd(lambda z: z[np.real(z) > 0] ** 2))
    np.testing.assert_allclose(of_part(z), np.diag(2 * z)[[0, 2]])


def test_several_arguments_of_unknown_extents():
    def f(a, b):
        return np.sum(np.exp(a)) * np.sum(b["w"] ** 2 * b["s"])

    arguments = X, {"w": np.arange(6.0).reshape(2, 3), "s": np.float64(2.0)}
    signature = [UNKNOWN, {"w": cytape.Spec.of((2, None), float), "s": cytape.Spec.of((), float)}]
    for argnums in 1, (0, 1):
        found = cytape.function(cytape.hessian(f, argnums), input_signature=signature)(*arguments)
        expected = cytape.hessian(f, argnums)(*arguments)
        found, expected = (np.concatenate([np.ravel(leaf) for leaf in _leaves(tree)])
                           for tree in (found, expected))
        np.testing.assert_allclose(found, expected)


def _leaves(tree):
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in _leaves(part)]
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in _leaves(part)]
    return [tree.numpy() if isinstance(tree, cytape.Tensor) else tree]


def test_an_unconnected_result_of_unknown_extents_has_zeros():
    traced = cytape.function(
        cytape.jacfwd(lambda a: (a**2, np.floor(a[a > 0]))), input_signature=[UNKNOWN])
    square, steps = traced(X)
    np.testing.assert_array_equal(square, np.diag(2 * X))
    np.testing.assert_array_equal(steps, np.zeros((2, 3)))


def test_a_shape_with_an_unknown_extent_is_refused_when_a_graph_is_built():
    def rows(a):
        return np.reshape(a, (a.shape[0], 1))

    with pytest.raises(SymbolicTensorError, match=r"cytape\.numpy\.size"):
        cytape.function(rows, input_signature=[UNKNOWN])(X)


def test_no_elements():
    traced = cytape.function(cytape.hessian(WHOLE["sum"]), input_signature=[UNKNOWN])
    assert traced(np.zeros(0)).shape == (0, 0)
    assert cytape.function(cytape.hessian(MASKED["square"]))(-X[:1]) == [[0.0]]
