"""jacrev (jacobian), batch_jacobian, elementwise_grad; Hessians of vectors, and diagonals."""

import pickle

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, SymbolicTensorError, UnconnectedGradientWarning
from cytape.tensor import nest
from tests import ways
from tests.cases import each

RNG = np.random.default_rng(0)
A, X, BATCH = RNG.normal(size=(3, 4)), RNG.normal(size=4), RNG.normal(size=(5, 4))


def product(x):
    return cnp.tanh(A @ x) * x[0]


def parts(p, y):
    return {"sum": cnp.sum(p["w"] ** 2) * y, "outer": [cnp.outer(p["w"], y * p["b"])]}


def member(x):
    return cnp.stack([cnp.prod(x, axis=1), cnp.sum(x**3, axis=1)], axis=1)


def slope(x):
    """A function that can be pickled."""
    return x**3


PLACES = {"eager": lambda f: f, "function": cytape.function}
TYPES = {"array": lambda x: x, "tensor": cytape.constant, "variable": cytape.Variable}


def test_jacobian_is_another_name_for_it():
    assert cytape.jacobian is cytape.jacrev


@each(outer=[cytape.jacrev, cytape.jacfwd], inner=[cytape.jacrev, cytape.jacfwd])
def test_second_derivatives_of_a_vector(outer, inner):
    expected = np.zeros((4, 4, 4))
    expected[np.arange(4), np.arange(4), np.arange(4)] = -np.sin(X)
    np.testing.assert_allclose(outer(inner(cnp.sin))(X), expected, atol=1e-15)


def test_under_tapes_and_accumulators():
    x = cytape.constant(X)
    with cytape.ForwardAccumulator(x, cytape.constant(np.ones(4))) as accumulator:
        gradient = ways.gradient(lambda x: cnp.sum(cytape.jacrev(slope)(x) ** 2), x)
    np.testing.assert_allclose(gradient.numpy(), 36 * X**3)
    np.testing.assert_allclose(accumulator.jvp(gradient).numpy(), 108 * X**2)


def test_the_function_runs_once():
    calls = []
    cytape.jacrev(lambda x: calls.append(1) or x * x)(X)
    assert len(calls) == 1


def test_in_a_graph_and_of_unknown_numbers():
    jacobian = cytape.function(cytape.jacrev(product))
    unknown = cytape.function(
        cytape.jacrev(lambda x: cnp.sum(x) ** 2 * np.ones(2)),
        input_signature=[cytape.Spec.of((None,), float)])
    np.testing.assert_allclose(jacobian(X), cytape.jacfwd(product)(X))
    np.testing.assert_allclose(unknown(X), np.full((2, 4), 2 * X.sum()))
    with pytest.raises(SymbolicTensorError, match="jacfwd"):
        cytape.function(cytape.jacrev(slope), input_signature=[cytape.Spec.of((None,), float)])(X)


@each("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_dtypes(dtype):
    x = X.astype(dtype)
    found = cytape.jacrev(slope)(x)
    assert found.dtype == x.dtype
    expected = np.diag(np.conj(3 * x**2))
    np.testing.assert_allclose(found, expected, rtol=5e-3 if dtype == "float16" else 1e-5)


@each("transform", [cytape.jacrev, cytape.batch_jacobian, cytape.elementwise_grad])
def test_errors_name_the_wrong_argument(transform):
    with pytest.raises(TypeError, match="integer|floating point"):
        transform(slope)(np.arange(4).reshape(2, 2))
    with pytest.raises(TypeError, match="a gradient|no gradient"):
        transform(lambda x: (x > 0).astype(np.int64))(BATCH)
    with pytest.raises((TypeError, ValueError), match="return"):
        transform(lambda x: None)(BATCH)


@each("place", PLACES)
def test_a_jacobian_of_each_member(place):
    found = PLACES[place](cytape.batch_jacobian(member))(BATCH)
    expected = [cytape.jacfwd(lambda x: member(x[None])[0])(x) for x in BATCH]
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(
        PLACES[place](cytape.batch_jacobian(lambda a, x: a * member(x), -1))(2.0, BATCH),
        2 * np.array(expected))
    some = cytape.function(
        cytape.batch_jacobian(member), input_signature=[cytape.Spec.of((None, 4), float)])
    np.testing.assert_allclose(some(BATCH), expected)


def test_members_must_be_as_many():
    with pytest.raises(ValueError, match="first one"):
        cytape.batch_jacobian(lambda x: x[:2])(BATCH)
    with pytest.raises(ValueError, match="two dimensions"):
        cytape.batch_jacobian(slope)(X)
    with pytest.raises(TypeError, match="one array"):
        cytape.batch_jacobian(lambda x: x[0] * x[1])([BATCH, BATCH])


@each("place", PLACES)
def test_the_slope_of_each_element(place):
    f = PLACES[place](cytape.elementwise_grad(slope))
    np.testing.assert_allclose(f(BATCH), 3 * BATCH**2)
    twice = PLACES[place](cytape.elementwise_grad(cytape.elementwise_grad(slope)))
    np.testing.assert_allclose(twice(BATCH), 6 * BATCH)
    by_both = PLACES[place](cytape.elementwise_grad(lambda x, y: x**2 * y, (0, 1)))
    np.testing.assert_allclose(by_both(BATCH, BATCH), [2 * BATCH**2, BATCH**2])
    np.testing.assert_allclose(f(2.0), 12.0)


def test_results_without_a_derivative_beside_others():
    found = cytape.jacrev(lambda x: {"y": x * x, "n": 3, "zeros": np.zeros(2)})(X[:2])
    np.testing.assert_allclose(found["y"], np.diag(2 * X[:2]))
    assert not np.any(found["n"]) and found["n"].shape == (2,) and found["n"].dtype.kind == "i"
    assert not np.any(found["zeros"]) and found["zeros"].shape == (2, 2)


def test_one_warning_for_what_does_not_depend():
    with pytest.warns(UnconnectedGradientWarning) as caught:
        assert not np.any(cytape.jacrev(lambda x: np.zeros(3))(X))
    assert len(caught) == 1
    with pytest.warns(UnconnectedGradientWarning, match="left its tensor"):
        found = cytape.jacrev(lambda x: (x * x, x.numpy().sum()))(X)
    np.testing.assert_allclose(found[0], np.diag(2 * X))
    with pytest.raises(DetachedError):
        cytape.jacrev(lambda x: x.numpy() * 2)(X)


@each("transform", [cytape.batch_jacobian, cytape.elementwise_grad])
def test_one_result_only(transform):
    for function in (lambda x: [x[0], x[1]], lambda x: (x,), lambda x: {"y": x}):
        with pytest.raises(TypeError, match="one array"):
            transform(function)(BATCH)
    with pytest.raises(TypeError, match="one array|dict"):
        cytape.batch_jacobian(lambda p: p["x"])({"x": BATCH})


@each("transform", [cytape.jacrev, cytape.batch_jacobian, cytape.elementwise_grad])
def test_complex_results_of_real_arguments_are_no_gradients(transform):
    with pytest.raises(TypeError, match="jacfwd"):
        transform(lambda x: x * 1j)(BATCH)


# -- Hessians --------------------------------------------------------------------------------------


def of_forward_mode(f, argnums=0):
    return cytape.jacfwd(cytape.jacfwd(f, argnums), argnums)


OF_FORWARD_MODE = {cytape.jacrev: cytape.jacfwd, cytape.hessian: of_forward_mode}


@each(transform=OF_FORWARD_MODE, place=PLACES, make=TYPES)
def test_derivatives_of_vectors_are_those_of_forward_mode(make, place, transform):
    for f, x in ((product, X), (lambda x: cnp.sum(x**2), X), (lambda x: x[None] * x[:, None], X),
                 (cnp.cumprod, np.float64(2.0)), (lambda x: x[:0], X), (lambda x: x[:1] ** 2, X),
                 (lambda x: x**3 @ A.T, BATCH[:2])):  # fmt: skip
        found = PLACES[place](transform(f))(TYPES[make](x))
        assert found.shape == f(x).shape + x.shape * (1 if transform is cytape.jacrev else 2)
        np.testing.assert_allclose(
            np.asarray(found), OF_FORWARD_MODE[transform](f)(x), atol=1e-12)
        assert isinstance(found, cytape.Tensor) == (make != "array")


@each(transform=OF_FORWARD_MODE, argnums=[0, 1, (0, 1), (1, 0), -1])
def test_derivatives_of_structures_are_those_of_forward_mode(argnums, transform):
    arguments = {"w": X, "b": np.float64(0.5)}, np.float64(2.0)
    found = transform(parts, argnums)(*arguments)
    expected = OF_FORWARD_MODE[transform](parts, argnums)(*arguments)
    nest.assert_same_structure(found, expected)
    for a, b in zip(nest.flatten(found), nest.flatten(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-13)


def test_hessians_of_holomorphic_functions():
    z = X[:2] + 1j * X[2:]
    hessian = cytape.hessian(lambda z: z**3)(z)
    expected = np.zeros((2, 2, 2), complex)
    expected[[0, 1], [0, 1], [0, 1]] = np.conj(6 * z)
    np.testing.assert_allclose(hessian, expected)
    with pytest.raises(TypeError, match="returned complex numbers for real arguments"):
        cytape.hessian(lambda x: x * 1j)(X)


def energy(x):
    return cnp.sum(cnp.sin(x) ** 2) * x[0] + cnp.prod(x)


@each(place=PLACES, make=TYPES, chunk_size=[None, 1, 3])
def test_a_diagonal_is_that_of_the_hessian(place, make, chunk_size):
    found = PLACES[place](cytape.hessian_diagonal(energy, chunk_size=chunk_size))(TYPES[make](X))
    np.testing.assert_allclose(np.asarray(found), np.diag(cytape.hessian(energy)(X)), atol=1e-12)
    assert isinstance(found, cytape.Tensor) == (make != "array")
    whole = cytape.hessian_diagonal(energy, blocks=True, chunk_size=chunk_size)(X)
    np.testing.assert_allclose(whole, cytape.hessian(energy)(X), atol=1e-12)


def test_diagonals_of_structures():
    def f(p, y):
        return cnp.sum(p["w"] ** 3) * y**2 * p["b"] + cnp.sum(p["m"][0] ** 2 * y)

    p = {"w": X, "b": np.float64(0.5), "m": [A]}
    diagonal = cytape.hessian_diagonal(f, (0, 1))(p, 2.0)
    np.testing.assert_allclose(diagonal[0]["w"], 6 * X * 4 * 0.5)
    np.testing.assert_allclose(diagonal[0]["m"][0], np.full_like(A, 4.0))
    assert diagonal[0]["b"] == 0.0
    np.testing.assert_allclose(diagonal[1], 2 * 0.5 * np.sum(X**3))


@each(separable_axes=[0, 1, 2, 3], chunk_size=[None, 2])
def test_separable_functions(separable_axes, chunk_size):
    x = RNG.normal(size=(2, 3, 2))

    def f(x):
        axes = tuple(range(separable_axes, 3))
        return cnp.sum(cnp.exp(cnp.sum(cnp.sin(x), axis=axes)) + cnp.prod(x, axis=axes))

    options = {"separable_axes": separable_axes, "chunk_size": chunk_size}
    hessian = cytape.hessian(f)(x).reshape(12, 12)
    found = cytape.hessian_diagonal(f, **options)(x)
    np.testing.assert_allclose(found, np.diag(hessian).reshape(x.shape), atol=1e-12)
    blocks = cytape.hessian_diagonal(f, blocks=True, **options)(x)
    part = x.shape[separable_axes:]
    size = int(np.prod(part))
    assert blocks.shape == x.shape + part
    for i, block in enumerate(blocks.reshape(12 // size, size, size)):
        rows = slice(i * size, (i + 1) * size)
        np.testing.assert_allclose(block, hessian[rows, rows], atol=1e-12)


def test_a_separable_function_takes_one_product():
    calls = []

    def f(x):
        calls.append(x)
        return cnp.sum(x**3)

    np.testing.assert_allclose(cytape.hessian_diagonal(f, separable_axes=1)(X), 6 * X)
    assert len(calls) == 1


def test_diagonals_of_what_is_empty_constant_or_a_number():
    assert cytape.hessian_diagonal(lambda x: cnp.sum(x**2))(np.zeros((0, 3))).shape == (0, 3)
    assert cytape.hessian_diagonal(lambda x: x**3)(2.0) == 12.0
    with pytest.warns(UnconnectedGradientWarning):
        np.testing.assert_array_equal(cytape.hessian_diagonal(lambda x: 3.0)(X), np.zeros_like(X))


def test_diagonals_can_be_differentiated_pickled_and_mapped():
    trace = lambda x: cnp.sum(cytape.hessian_diagonal(lambda x: cnp.sum(x**4))(x))  # noqa: E731
    np.testing.assert_allclose(cytape.grad(trace)(X), 24 * X)
    again = pickle.loads(pickle.dumps(cytape.hessian_diagonal(energy)))
    np.testing.assert_array_equal(again(X), cytape.hessian_diagonal(energy)(X))
    np.testing.assert_allclose(
        cytape.vmap(cytape.hessian_diagonal(energy))(BATCH),
        [cytape.hessian_diagonal(energy)(x) for x in BATCH], rtol=1e-10)


@each("call, error, message", [
    (lambda: cytape.hessian_diagonal(energy, separable_axes=2)(X), ValueError,
     r"separable_axes=2 is more than .* of energy, which has shape \(4,\)"),
    (lambda: cytape.hessian_diagonal(energy, separable_axes=-1), ValueError, "at least 0"),
    (lambda: cytape.hessian_diagonal(energy, chunk_size=0), ValueError, "chunk_size at least 1"),
    (lambda: cytape.hessian_diagonal(product)(X), TypeError, "must return a scalar"),
    (lambda: cytape.hessian_diagonal(energy)(np.arange(3)), TypeError, "dtype int64"),
    (lambda: cytape.hessian(lambda x: "x")(X), TypeError, "must return numbers"),
])  # fmt: skip
def test_wrong_calls_of_hessians(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_diagonals_need_known_extents():
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", (None,))
        with pytest.raises(SymbolicTensorError, match="the number of elements is known only when"):
            cytape.hessian_diagonal(lambda x: cnp.sum(x**2))(x)
