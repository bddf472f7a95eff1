"""Arrays to be filled, where programs record and elsewhere, and constants like other tensors."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, SymbolicTensorError
from cytape.ops import constants
from tests.cases import each

MAKERS = ("zeros", "ones", "empty", "full")


def arguments_of(make):
    return ((2, 3), 7) if make == "full" else ((2, 3),)


@each("make", MAKERS)
def test_where_nothing_records_they_are_arrays(make):
    numpys, ours = getattr(np, make), getattr(cnp, make)
    for dtype in (None, "float32", int, bool, complex, object, "U3", "M8[s]"):
        options = {"dtype": dtype, "order": "F"}
        found, expected = ours(*arguments_of(make), **options), numpys(
            *arguments_of(make), **options)
        assert type(found) is np.ndarray
        assert (found.dtype, found.strides) == (expected.dtype, expected.strides)
        if make != "empty":
            np.testing.assert_array_equal(found, expected)
    assert ours(*arguments_of(make))[0, 0] in {ours(*arguments_of(make))[0, 0]: "hashable"} or (
        make == "empty")
    assert cnp.zeros(2, [("a", float), ("b", int)]).dtype.names == ("a", "b")
    with pytest.raises((TypeError, ValueError), match="[Dd]evice"):
        ours(*arguments_of(make), device="gpu")


@each("make", MAKERS)
def test_where_something_records_floats_are_tensors_to_be_filled(make):
    def made(**options):
        return getattr(cnp, make)(*arguments_of(make), **options)

    def check(dtypes_of_tensors):
        for dtype in (None, "float32", complex, int, bool, object, "U3", [("a", float)]):
            if make == "full" and isinstance(dtype, list):
                continue
            x = made() if dtype is None else made(dtype=dtype)
            expected = getattr(np, make)(
                *arguments_of(make), **({} if dtype is None else {"dtype": dtype}))
            assert (x.dtype, x.shape) == (expected.dtype, expected.shape)
            if x.dtype.kind in dtypes_of_tensors or dtype is None and make != "full":
                assert type(x) is cytape.Tensor
                x[0] = 1
            else:
                assert type(x) is np.ndarray

    with cytape.GradientTape():
        check("fc")
        x = made(dtype=float, order="F")
        flat = x.ravel()  # which NumPy copies
        flat[0] = 99.0
        assert 99.0 not in x.numpy()
    with cytape.ForwardAccumulator(cytape.constant(1.0), 1.0):
        check("fc")
    cytape.function(lambda: check("biufc"))()
    with cytape.Graph().as_default():
        check("biufc")
    assert type(made(dtype=float)) is np.ndarray


X = np.array([0.5, -1.0, 2.0])


def filled(x):
    found = cnp.zeros(3)
    for i in range(3):
        found[i] = x[i] * x[0]
    out = cnp.empty(3)
    np.multiply(found, 2.0, out=out)
    return cnp.sum(out * found)


@cytape.custom_gradient
def with_rule(x):
    found = cnp.zeros(3)
    found[:2] = x[:2]
    return found * 2.0, lambda g: cnp.array([2.0, 2.0, 0.0]) * g


WAYS = {
    "grad": cytape.grad, "traced": lambda f: cytape.function(cytape.grad(f)),
    "of a traced one": lambda f: cytape.grad(cytape.function(f)), "jacfwd": cytape.jacfwd,
    "recomputed": lambda f: cytape.grad(cytape.recompute_grad(f)),
    "recomputed, traced": lambda f: cytape.function(cytape.grad(cytape.recompute_grad(f))),
    "checkpointed": lambda f: cytape.grad(cytape.checkpoint(policy="dots")(f)),
    "mapped": lambda f: lambda x: cytape.vmap(cytape.grad(f))(x[None])[0],
    "of a mapped one": lambda f: cytape.grad(lambda x: cnp.sum(cytape.vmap(f)(x[None]))),
    "branch": lambda f: cytape.grad(
        lambda x: cytape.cond(x[0] > 0, lambda: f(x), lambda: x[0])),
    "branch, traced": lambda f: cytape.function(cytape.grad(
        lambda x: cytape.cond(x[0] > 0, lambda: f(x), lambda: x[0]))),
    "loop": lambda f: cytape.grad(lambda x: cytape.while_loop(
        lambda i, _: i < 1, lambda i, total: (i + 1, total + f(x)), (0, 0.0 * x[0]))[1]),
    "loop, traced": lambda f: cytape.function(cytape.grad(lambda x: cytape.while_loop(
        lambda i, _: i < 1, lambda i, total: (i + 1, total + f(x)), (0, 0.0 * x[0]))[1])),
    "fold": lambda f: cytape.grad(lambda x: cytape.foldl(
        lambda total, e: total + f(x) * e, np.ones(1), 0.0 * x[0])),
    "map_fn": lambda f: cytape.grad(
        lambda x: cnp.sum(cytape.map_fn(lambda e: f(x) * e, np.ones(1)))),
    "jvp": lambda f: lambda x: np.array([cytape.jvp(f, (x,), (e,))[1] for e in np.eye(3)]),
    "vjp": lambda f: lambda x: cytape.vjp(f, x)[1](1.0),
    "second order": lambda f: lambda x: cytape.jacrev(cytape.grad(f))(x) @ x / 3.0,
}


@each("way", WAYS.values(), ids=WAYS)
def test_filled_arrays_are_differentiated_in_every_way(way):
    expected = cytape.grad(lambda x: cnp.sum(2.0 * (x * x[0]) ** 2))(X)  # homogeneous, of degree 4
    np.testing.assert_allclose(np.ravel(way(filled)(X)), expected)


def test_values_are_the_same_where_nothing_records():
    expected = np.sum(2.0 * (X * X[0]) ** 2)
    for x in (X, cytape.constant(X)):
        np.testing.assert_allclose(np.asarray(filled(x)), expected)
    np.testing.assert_array_equal(cytape.grad(lambda x: cnp.sum(with_rule(x)))(X), [2.0, 2.0, 0.0])
    np.testing.assert_array_equal(with_rule(X), [1.0, -2.0, 0.0])


def test_an_array_of_outside_of_a_tape_holds_no_tensor_that_it_follows():
    outside, x = cnp.zeros(3), cytape.constant(X)
    outside[0] = x[1]
    with cytape.GradientTape() as tape:
        tape.watch(x)
        outside[1] = 2.0
        with pytest.raises(DetachedError, match="inside of the tape"):
            outside[2] = x[2]
    assert outside.tolist() == [-1.0, 2.0, 0.0]


def test_indices_and_masks_are_arrays_under_tapes():
    def f(x):
        order, chosen, seen = cnp.zeros(3, int), cnp.zeros(3, bool), {}
        for i in range(3):
            order[i] = 2 - i
            chosen[i] = x[i] > 0
            seen[order[i]] = chosen[i]
        return cnp.sum(x[order][chosen]) + len(seen) * x[0]

    np.testing.assert_array_equal(cytape.grad(f)(X), [4.0, 0.0, 1.0])


def test_full_like_casts_to_the_dtype_of_the_prototype(watched):
    s, gradient = watched(2.7)
    y = constants.full_like(np.zeros(2, int), s)
    assert y.dtype == int
    np.testing.assert_array_equal(y.numpy(), [2, 2])
    assert gradient(y) is None


@each("make", [
    cnp.zeros, cnp.ones, cnp.empty, lambda n: cnp.zeros((n, 2)), lambda n: cnp.full((2, n), 3.0),
    lambda n: cnp.full(n, 1.0 * n), lambda n: cnp.broadcast_to(1.0 * n, (n,)), cnp.arange,
    lambda n: cnp.random.normal(size=n), lambda n: cnp.random.random((n, 2)),
    lambda n: cnp.random.uniform(size=n), lambda n: cnp.random.integers(3, size=(n,))])
def test_extents_that_are_tensors_without_value_say_what_to_write(make):
    def f(x):
        return make(cnp.size(x, 0))

    traced = cytape.function(f, input_signature=[cytape.Spec.of((None,), float)])
    with pytest.raises(SymbolicTensorError, match=r"ones\(x\.shape\)"):
        traced(np.ones(3))
    assert 3 in f(np.ones(3)).shape


def test_shapes_with_open_extents_are_taken_as_a_whole():
    @cytape.function(input_signature=[cytape.Spec.of((None,), float)])
    def f(x):
        noise = cnp.random.normal(cnp.zeros_like(x), 1.0)
        numbers = cnp.cumsum(cnp.ones(x.shape)) - 1
        return numbers, cnp.full(x.shape, 2.0), cnp.diag(cnp.ones(x.shape)), noise

    numbers, twos, identity, noise = f(np.zeros(3))
    assert numbers.tolist() == [0.0, 1.0, 2.0] and twos.tolist() == [2.0] * 3
    assert identity.tolist() == np.eye(3).tolist() and len(set(noise)) == 3


@each("make", [
    lambda m, a: m.full((2, 3), a[0], order="F"), lambda m, a: m.full_like(a, a[0], order="F"),
    lambda m, a: m.full_like(a, 2.0, order="F"), lambda m, a: m.zeros_like(a, order="F"),
    lambda m, a: m.ones_like(a[0], shape=(2, 3), order="F"),
    lambda m, a: m.empty_like(a, order="F"), lambda m, a: m.array([a[0], a[1]], order="F")])
@each("read", [lambda r: r.ravel("K"), lambda r: r.reshape(-1), lambda r: r.ravel("F")])
def test_an_order_decides_as_in_numpy_what_is_a_view(make, read):
    def written(m):
        def f(a):
            result = make(m, a)
            result[...] = a
            flat = read(result)
            flat[1] = 50.0
            return flat * np.arange(6.0), result * 1.0

        return f

    x = np.arange(6.0).reshape(2, 3)
    wanted = written(np)(x)
    for found in written(cnp)(cytape.constant(x)), cytape.function(written(cnp))(x):
        for result, array in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(result, array)


def test_lists_of_tensors_are_copied():
    x = cytape.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="copy"):
        cnp.array([x, x], copy=False)


def test_integers_are_arrays_unless_a_graph_is_built():
    def first(x):
        return x * int(cnp.zeros(2, dtype=int)[0])

    x = np.ones(2)
    np.testing.assert_array_equal(first(x), 0.0)
    np.testing.assert_array_equal(cytape.grad(lambda x: cnp.sum(first(x)))(x), 0.0)
    for traced in cytape.function(first), cytape.vmap(first):
        with pytest.raises(SymbolicTensorError, match=r"asked for its value by int\(\)"):
            traced(x)
