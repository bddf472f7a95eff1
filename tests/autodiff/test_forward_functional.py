"""jvp, jacfwd, hessian, hessian_vector_product, make_ggnvp."""

import pickle
from collections import namedtuple

import numpy as np
import pytest

import cytape
from cytape.errors import UnconnectedGradientWarning
from cytape.tensor import nest
from cytape.tensor.tensor import live_tensors
from cytape.testing import numerical_jvp
from tests import ways
from tests.cases import each

Layer = namedtuple("Layer", "w b")


def cube(x):
    """A function that can be pickled."""
    return np.sum(x**3)


def wave(x):
    return np.sin(x) * x**2


def mixture(x):
    """A scalar-valued function of a vector whose Hessian is full and depends on where it is."""
    return np.sum(np.sin(x)) * np.prod(x) + np.exp(x[0] * x[-1])


def network(parameters, x):
    for layer in parameters["layers"]:
        x = np.tanh(layer.w @ x + layer.b)
    return {"hidden": x, "sums": (np.sum(x) * parameters["scale"], [x[0]])}


def network_parameters(seed=0):
    rng = np.random.default_rng(seed)
    layers = [Layer(rng.normal(size=(2, 2)), rng.normal(size=2)) for _ in range(2)]
    return {"layers": layers, "scale": float(rng.normal())}


def assert_same(actual, expected, rtol=1e-10, atol=1e-12):
    nest.assert_same_structure(actual, expected)
    for leaf, expected_leaf in zip(nest.flatten(actual), nest.flatten(expected), strict=True):
        assert np.shape(leaf) == np.shape(expected_leaf)
        np.testing.assert_allclose(
            np.asarray(leaf), np.asarray(expected_leaf), rtol=rtol, atol=atol)


def reverse_hessian(f, x):
    """The Hessian in reverse mode over reverse mode."""
    _, pull_back = cytape.vjp(cytape.grad(f), x)
    rows = [pull_back(row.reshape(x.shape))[0] for row in np.eye(x.size)]
    return np.stack(rows).reshape(x.shape + x.shape)


def reverse_jacobian(f, x):
    """The Jacobian by a persistent tape."""
    x = cytape.constant(x)
    tape, y = ways.taped(f, x, persistent=True)
    return tape.jacobian(y, x).numpy()


# -- jvp: what comes out ---------------------------------------------------------------------------


def test_jvp_of_arrays_are_arrays():
    x, direction = np.array([1.0, 2.0]), np.array([1.0, 10.0])
    value, tangent = cytape.jvp(wave, (x,), (direction,))
    assert type(value) is type(tangent) is np.ndarray
    np.testing.assert_allclose(value, wave(x))
    np.testing.assert_allclose(tangent, (np.cos(x) * x**2 + np.sin(x) * 2 * x) * direction)
    value += 1  # both are the caller's own
    tangent += 1
    assert cytape.jvp(lambda x: x, (x,), (direction,))[0] is not x


def test_jvp_of_numbers_are_numbers():
    value, tangent = cytape.jvp(cube, (2.0,), (10,))
    assert (type(value), type(tangent)) == (np.float64, np.float64)
    assert (value, tangent) == (8.0, 120.0)
    assert [type(part) for part in cytape.jvp(cube, (np.float32(2),), (1,))] == [np.float32] * 2


def test_results_share_no_memory_with_other_arrays():
    x, direction = np.ones(2), np.array([3.0, 4.0])
    value, tangent = cytape.jvp(lambda x: x, (x,), (direction,))
    value[0] = tangent[0] = 100.0
    assert x[0] == 1.0
    assert direction[0] == 3.0


@each("which", ["primal", "variable", "tangent"])
def test_tensors_in_tensors_out(which):
    x, direction = np.array([1.0, 2.0]), np.array([1.0, 0.5])
    primal = {"primal": cytape.constant(x), "variable": cytape.Variable(x)}.get(which, x)
    tangent = cytape.constant(direction) if which == "tangent" else direction
    results = cytape.jvp(wave, (primal,), (tangent,))
    assert [type(result) for result in results] == [cytape.Tensor] * 2
    assert_same(results, cytape.jvp(wave, (x,), (direction,)))
    product = cytape.hessian_vector_product(cube)(primal, tangent)
    assert type(product) is cytape.Tensor
    assert product.numpy().tolist() == [6.0, 6.0]
    curved = cytape.make_ggnvp(lambda x: x**2)(primal)(tangent)
    assert type(curved) is cytape.Tensor
    assert curved.numpy().tolist() == [4.0, 8.0]


def test_a_tensor_among_the_other_arguments_makes_tensors():
    factor = cytape.constant(3.0)
    f = lambda x, factor: np.sum(x * x) * factor  # noqa: E731
    x = np.ones(2)
    assert type(cytape.jacfwd(f)(x, factor)) is cytape.Tensor
    assert type(cytape.jacfwd(lambda x, *, factor: x * factor)(1.0, factor=factor)) is cytape.Tensor
    assert type(cytape.hessian(f)(x, factor)) is cytape.Tensor
    assert type(cytape.hessian_vector_product(f)(x, factor, x)) is cytape.Tensor
    scaled = cytape.make_ggnvp(lambda x, factor: x * factor)(x, factor)(x)
    assert type(scaled) is cytape.Tensor
    assert scaled.numpy().tolist() == [9.0, 9.0]


def test_results_that_an_outer_recorder_follows_stay_tensors():
    v = cytape.Variable(3.0)
    with cytape.GradientTape() as tape:
        value, tangent = cytape.jvp(lambda x: x**2 * v, (5.0,), (1.0,))
        unrelated = cytape.jvp(np.square, (5.0,), (1.0,))
    assert type(value) is type(tangent) is cytape.Tensor
    assert [type(part) for part in unrelated] == [np.float64] * 2
    assert float(tape.gradient(tangent, v)) == 10.0
    with cytape.ForwardAccumulator(v, 1.0) as accumulator:
        jacobian = cytape.jacfwd(lambda x: x**2 * v)(np.array([5.0]))
    assert accumulator.jvp(jacobian).numpy().tolist() == [[10.0]]


def test_structures_in_and_out():
    parameters, directions = network_parameters(), network_parameters(1)
    x, direction = np.array([0.3, -0.4]), np.array([1.0, 2.0])
    value, tangent = cytape.jvp(network, (parameters, x), (directions, direction))
    assert_same(value, network(parameters, x))
    step = 1e-5

    def moved(sign):
        move = lambda at, along: at + sign * step * along  # noqa: E731
        return network(nest.map_structure(move, parameters, directions), move(x, direction))

    expected = nest.map_structure(lambda a, b: (a - b) / (2 * step), moved(1), moved(-1))
    assert_same(tangent, expected, rtol=1e-6, atol=1e-8)
    jacobian = cytape.jacfwd(network)(parameters, x)
    assert list(jacobian) == ["hidden", "sums"]
    assert isinstance(jacobian["sums"][1][0]["layers"][1], Layer)
    assert jacobian["hidden"]["layers"][0].w.shape == (2, 2, 2)


def test_values_and_products_against_numbers_and_reverse_mode():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    da, db = rng.normal(size=a.shape), rng.normal(size=b.shape)
    f = lambda a, b: np.exp(np.tanh(a @ b) / 2) * np.sum(a)  # noqa: E731
    value, tangent = cytape.jvp(f, (a, b), (da, db))
    np.testing.assert_allclose(value, f(a, b))
    np.testing.assert_allclose(tangent, numerical_jvp(f, (a, b), (da, db)), rtol=1e-7)
    weights = rng.normal(size=value.shape)
    by_a, by_b = cytape.vjp(f, a, b)[1](weights)
    np.testing.assert_allclose(
        np.vdot(weights, tangent), np.vdot(by_a, da) + np.vdot(by_b, db), rtol=1e-12)


def test_constants_and_integers_have_zero_tangents():
    def f(x):
        return {"one": 1.5, "array": np.ones(2), "top": np.argmax(x), "x": x}

    value, tangent = cytape.jvp(f, (np.array([1.0, 2.0]),), (np.array([3.0, 4.0]),))
    assert value["top"] == 1
    expected = {"one": 0.0, "array": np.zeros(2), "top": 0, "x": np.array([3.0, 4.0])}
    assert_same(tangent, expected)
    assert tangent["top"].dtype == value["top"].dtype
    with pytest.warns(UnconnectedGradientWarning):
        assert_same(cytape.jacfwd(lambda x: 3.0)(np.ones(2)), np.zeros(2))
    with pytest.warns(UnconnectedGradientWarning):
        assert_same(cytape.hessian(lambda x: 3.0)(np.ones(2)), np.zeros((2, 2)))
    assert_same(cytape.hessian(np.sum)(np.ones(2)), np.zeros((2, 2)))


def test_the_same_tensor_twice_counts_as_two():
    x, v = cytape.constant(3.0), cytape.Variable(3.0)
    for argument in (x, v):
        _, tangent = cytape.jvp(lambda x, y: x**2 * y, (argument, argument), (1.0, 10.0))
        assert float(tangent) == 2 * 9 + 10 * 9
        jacobian = cytape.jacfwd(lambda x, y: x**2 * y, (0, 1))(argument, argument)
        assert [float(part) for part in jacobian] == [18.0, 9.0]


def test_a_tensor_in_a_closure_is_a_constant():
    x, v = cytape.constant(3.0), cytape.Variable(3.0)
    assert float(cytape.jvp(lambda y: y * x * v, (x,), (1.0,))[1]) == 9.0
    assert float(cytape.jvp(lambda y: y * v, (v,), (1.0,))[1]) == 3.0
    assert float(cytape.hessian(lambda y: y**2 * x)(x)) == 6.0


def test_jvp_has_aux():
    def f(x):
        y = x * x
        return np.sum(y), {"y": y, "note": "text"}

    x = np.array([1.0, 2.0])
    value, tangent, aux = cytape.jvp(f, (x,), (np.array([1.0, 0.0]),), has_aux=True)
    assert (value, tangent) == (5.0, 2.0)
    assert type(aux["y"]) is np.ndarray
    assert aux["y"].tolist() == [1.0, 4.0]
    assert aux["note"] == "text"
    *_, aux = cytape.jvp(f, (cytape.constant(x),), (x,), has_aux=True)
    assert type(aux["y"]) is cytape.Tensor
    for returned in ([1.0, 2.0], (1.0, 2.0, 3.0), 1.0):
        with pytest.raises(TypeError, match="with has_aux=True <lambda> must return a pair"):
            cytape.jvp(lambda x, returned=returned: returned, (x,), (x,), has_aux=True)


def test_lists_and_no_primals():
    assert cytape.jvp(lambda x, y: x * y, [2.0, 3.0], [1.0, 10.0]) == (6.0, 23.0)
    assert cytape.jvp(lambda x, y: x * y, [2.0, 3.0], (1.0, 10.0)) == (6.0, 23.0)
    assert cytape.jvp(lambda: 3.0, (), ()) == (3.0, 0.0)
    assert cytape.jvp(lambda pair: pair[0] * pair[1], ([2.0, 3.0],), ([1.0, 10.0],)) == (6.0, 23.0)


@each("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
@each("shape", [(), (0,), (0, 2), (2, 3)])
def test_dtype_and_shape_are_kept(dtype, shape):
    x = np.full(shape, 2, dtype)
    value, tangent = cytape.jvp(np.square, (x,), (np.ones(shape, np.int8),))
    assert value.dtype == tangent.dtype == dtype
    np.testing.assert_array_equal(tangent, 2 * x)
    jacobian = cytape.jacfwd(np.square)(x)
    assert jacobian.dtype == dtype
    assert jacobian.shape == shape + shape
    np.testing.assert_array_equal(jacobian.reshape(x.size, x.size), np.diag(2 * x.ravel()))
    hessian = cytape.hessian(lambda x: np.sum(np.real(x * x)))(x)
    assert hessian.dtype == dtype
    np.testing.assert_array_equal(hessian.reshape(x.size, x.size), 2 * np.eye(x.size))


def test_complex_products_are_derivatives_without_a_conjugate():
    z = 7 + 3j
    assert cytape.jvp(lambda z: z * z, (z,), (1j,))[1] == 2 * z * 1j
    assert cytape.jvp(lambda z: z * np.conj(z), (z,), (1j,))[1] == 1j * np.conj(z) - 1j * z
    assert cytape.jvp(lambda x: (x * (1 + 2j)) ** 2, (2.0,), (1.0,))[1] == 4 * (1 + 2j) ** 2
    zs = np.array([1 + 2j, 3j])
    np.testing.assert_allclose(cytape.jacfwd(np.exp)(zs), np.diag(np.exp(zs)))
    # Along the real axis, if the function is not holomorphic:
    assert cytape.jacfwd(lambda z: z * np.conj(z))(z) == 2 * z.real
    real_and_complex = cytape.jacfwd(lambda x, z: x * z, (0, 1))(2.0, z)
    assert real_and_complex == (z, 2.0)
    assert [part.dtype for part in real_and_complex] == [np.complex128] * 2


# -- jvp: batches ----------------------------------------------------------------------------------


@each("n_directions", [0, 1, 3])
def test_a_batch_of_directions(n_directions):
    rng = np.random.default_rng(3)
    parameters, x = network_parameters(), np.array([0.3, -0.4])
    batch = nest.map_structure(
        lambda leaf: rng.normal(size=(n_directions, *np.shape(leaf))), (parameters, x))
    value, tangents = cytape.jvp(network, (parameters, x), batch, use_batch=True)
    assert_same(value, network(parameters, x))
    assert tangents["hidden"].shape == (n_directions, 2)
    assert tangents["sums"][0].shape == (n_directions,)
    for k in range(n_directions):
        direction = nest.map_structure(lambda leaf, k=k: leaf[k], batch)
        _, expected = cytape.jvp(network, (parameters, x), direction)
        assert_same(nest.map_structure(lambda leaf, k=k: leaf[k], tangents), expected)


def test_D_3_12_a_batch_for_two_numbers():
    batches = np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0])
    value, tangents = cytape.jvp(lambda x, y: x * y, (2.0, 5.0), batches, use_batch=True)
    assert value == 10.0
    assert tangents.tolist() == [5.0, 2.0, 7.0]


def test_constants_in_a_batch():
    _, tangents = cytape.jvp(lambda x: (x, np.ones(2)), (2.0,), (np.ones(3),), use_batch=True)
    assert_same(tangents, (np.ones(3), np.zeros((3, 2))))


@each(("tangents", "message"), [
    ((1.0, np.ones(2)), "primal 0.*with use_batch it needs one more leading axis"),
    ((np.ones((3, 1)), np.ones(3)), r"primal 0 has shape \(3, 1\).*one more leading axis"),
    ((np.ones(3), np.ones(2)), r"different numbers of directions, \[2, 3\]"),
])
def test_D_3_12_batches_that_do_not_fit(tangents, message):
    with pytest.raises(ValueError, match=message):
        cytape.jvp(lambda x, y: x * y, (2.0, 5.0), tangents, use_batch=True)


# -- jvp: what cannot be done ----------------------------------------------------------------------


@each(("primals", "tangents", "error", "message"), [
    (np.ones(2), np.ones(2), TypeError, "per argument of wave; got ndarray and ndarray"),
    ((1.0,), 1.0, TypeError, "must be tuples.*got tuple and float"),
    ((1.0,), (1.0, 2.0), ValueError, "structures differ in length, 1 and 2"),
    (({"a": 1.0},), ({"b": 1.0},), ValueError, r"keys \['a'\] and \['b'\]"),
    ((np.ones(2),), ([1.0, 1.0],), ValueError, "structures differ"),
    ((np.ones(2),), (np.ones(3),), ValueError, r"\(3,\), the primal \(2,\)"),
    ((1.0,), (1j,), TypeError, "primal 0 is complex128, the primal float64"),
    ((1.0,), ("text",), TypeError, "primal 0 is <U4, the primal float64"),
    ((1,), (1.0,), TypeError, "argument 0 of wave has dtype int64, which has no gradient"),
    ((True,), (1.0,), TypeError, "argument 0 of wave has dtype bool"),
    (("text",), (1.0,), TypeError, "argument 0 of wave has dtype <U4"),
    ((None,), (1.0,), TypeError, "argument 0 of wave cannot be differentiated"),
    (([1.0, object()],), ([1.0, 1.0],), TypeError, r"argument 0\[1\] of wave cannot be"),
])
def test_primals_and_tangents_that_jvp_cannot_take(primals, tangents, error, message):
    with pytest.raises(error, match=message):
        cytape.jvp(wave, primals, tangents)


@each("returned", [None, object(), {"a": None}])
def test_results_that_forward_mode_cannot_take(returned):
    def f(x):
        return returned

    with pytest.raises(TypeError, match="f must return arrays or tensors, got"):
        cytape.jvp(f, (1.0,), (1.0,))
    with pytest.raises(TypeError, match="f must return arrays or tensors, got"):
        cytape.jacfwd(f)(1.0)


# -- jacfwd ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [
    wave, lambda x: np.sum(x), lambda x: x[..., 0] * x[..., 1], lambda x: x.T @ x,
    lambda x: np.cumsum(x, axis=0) * np.max(x),
    lambda x: np.einsum("ij,kj,k->ik", x, x, x[:, 0]),
    pytest.param(
        lambda x: np.ones(3),
        marks=pytest.mark.filterwarnings("ignore::cytape.errors.UnconnectedGradientWarning")),
    lambda x: x[:0],
])
def test_jacfwd_equals_the_jacobian_of_a_tape(f):
    x = np.random.default_rng(4).normal(size=(3, 2))
    jacobian = cytape.jacfwd(f)(x)
    assert type(jacobian) is np.ndarray
    watched = lambda x: f(x) + 0 * np.sum(x)  # noqa: E731  # so that constants are connected
    expected = reverse_jacobian(watched, x)
    assert jacobian.shape == expected.shape
    np.testing.assert_allclose(jacobian, expected, atol=1e-12)


def test_jacobians_of_several_results_by_several_arguments():
    f = lambda p, x: (p["a"] * x, [np.sum(p["b"])])  # noqa: E731
    p, x = {"a": 2.0, "b": np.array([1.0, 2.0])}, np.array([3.0, 4.0, 5.0])
    jacobian = cytape.jacfwd(f, (0, 1))(p, x)
    by_first = {"a": x, "b": np.zeros((3, 2))}, 2.0 * np.eye(3)
    by_second = {"a": 0.0, "b": np.ones(2)}, np.zeros(3)
    assert_same(jacobian, (by_first, [by_second]))


def test_jacfwd_of_integers_and_gathered_rows():
    by_values, by_index = cytape.jacfwd(lambda x: (x, np.argmax(x)))(np.ones(2))
    assert_same((by_values, by_index), (np.eye(2), np.zeros(2)))
    jacobian = cytape.jacfwd(lambda x: cytape.gather(x, [2, 2]))(np.ones(3))
    assert jacobian.tolist() == [[0.0, 0.0, 1.0]] * 2
    # The gradient of a gather is sparse.
    gradient = cytape.grad(lambda x: np.sum(cytape.gather(x, [0, 2, 2]) ** 3))
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(cytape.jacfwd(gradient)(x), np.diag([6.0, 0.0, 36.0]))


# -- nesting ---------------------------------------------------------------------------------------


def derivative(f):
    return lambda x: cytape.jvp(f, (x,), (1.0,))[1]


@each("inner", [derivative, cytape.grad, cytape.jacfwd])
@each("outer", [derivative, cytape.grad, cytape.jacfwd])
def test_second_derivatives_in_all_compositions(outer, inner):
    x = 0.7
    second = outer(inner(wave))(x)
    assert type(second) is np.float64
    expected = (2 - x**2) * np.sin(x) + 4 * x * np.cos(x)
    assert second == pytest.approx(expected, rel=1e-12)


@each("transforms", [
    (derivative,) * 4,
    (cytape.jacfwd, cytape.grad, cytape.jacfwd, cytape.grad),
    (cytape.grad, cytape.jacfwd, derivative, cytape.grad),
    (derivative, cytape.grad, cytape.grad, cytape.jacfwd),
])
def test_fourth_derivatives(transforms):
    f = np.tanh
    for transform in transforms:
        f = transform(f)
    t = np.tanh(0.3)
    assert f(0.3) == pytest.approx((16 * t - 24 * t**3) * (1 - t**2), rel=1e-11)


def test_no_perturbation_confusion():
    # d/dx [x * d/dy (x + y)] is 1; 2 if the two levels are mixed up.
    for outer in (derivative, cytape.grad, cytape.jacfwd):
        for inner in (derivative, cytape.grad, cytape.jacfwd):
            assert outer(lambda x, inner=inner: x * inner(lambda y: x + y)(1.0))(1.0) == 1.0
            assert outer(lambda x, inner=inner: x * inner(lambda y: x * y)(x))(3.0) == 6.0


def test_vjp_of_jvp_and_jvp_of_vjp():
    x, direction = np.array([0.3, 0.7]), np.array([1.0, 10.0])
    tangent, pull_back = cytape.vjp(lambda x: cytape.jvp(np.sin, (x,), (direction,))[1], x)
    np.testing.assert_allclose(tangent, np.cos(x) * direction)
    np.testing.assert_allclose(pull_back(np.array([1.0, 2.0]))[0], -np.sin(x) * direction * [1, 2])
    # It is linear in the direction, and so differentiable in it.
    _, pull_back = cytape.vjp(lambda v: cytape.jvp(np.sin, (x,), (v,))[1], direction)
    np.testing.assert_allclose(pull_back(np.ones(2))[0], np.cos(x))
    weights = np.array([3.0, 4.0])
    value, tangent = cytape.jvp(lambda x: cytape.vjp(np.sin, x)[1](weights)[0], (x,), (direction,))
    np.testing.assert_allclose(value, np.cos(x) * weights)
    np.testing.assert_allclose(tangent, -np.sin(x) * weights * direction)


def test_jacobians_of_jacobians():
    x = np.array([0.3, 0.7, 1.1])
    f = lambda x: np.outer(x, x) @ np.sin(x)  # noqa: E731
    second = cytape.jacfwd(cytape.jacfwd(f))(x)
    assert second.shape == (3, 3, 3)
    np.testing.assert_allclose(second, np.swapaxes(second, 1, 2), atol=1e-14)
    for i in range(3):
        np.testing.assert_allclose(
            second[i], reverse_hessian(lambda x, i=i: f(x)[i], x), atol=1e-13)


def test_a_batch_in_a_batch():
    x = np.array([0.3, 0.7])
    f = lambda x: np.sin(x[0]) * x[1] ** 3  # noqa: E731

    def inner(x):
        return cytape.jvp(f, (x,), (np.eye(2),), use_batch=True)[1]

    gradient, hessian = cytape.jvp(inner, (x,), (np.eye(2),), use_batch=True)
    np.testing.assert_allclose(gradient, cytape.grad(f)(x))
    np.testing.assert_allclose(hessian, reverse_hessian(f, x))


# -- as objects ------------------------------------------------------------------------------------


def test_gauss_newton_makers_can_be_pickled():
    for make in (cytape.make_ggnvp(wave), cytape.make_ggnvp(wave, cube, 0, True)):
        again = pickle.loads(pickle.dumps(make))
        batch = np.eye(2) if make._options[-1] else np.ones(2)
        x = np.array([1.0, 2.0])
        np.testing.assert_array_equal(again(x)(batch), make(x)(batch))


def test_nothing_is_kept():
    before = live_tensors()
    cytape.jvp(wave, (np.ones(3),), (np.ones(3),))
    cytape.hessian(mixture)(np.ones(3))
    product = cytape.make_ggnvp(wave)(np.ones(3))
    product(np.ones(3))
    del product
    assert live_tensors() == before


def test_tangents_of_results_are_not_those_of_arguments():
    direction = cytape.constant([1.0, 2.0])
    tangent = cytape.jvp(lambda x: x, (cytape.constant([3.0, 4.0]),), (direction,))[1]
    tangent[0] = 9.0
    assert direction.numpy().tolist() == [1.0, 2.0]


def test_a_vector_that_does_not_come_last_is_explained():
    product = cytape.hessian_vector_product(lambda p, x: np.sum(p["w"] * x) ** 2)
    with pytest.raises(ValueError, match="structures differ") as caught:
        product({"w": np.ones(500)}, {"w": np.ones(500)}, np.ones(500))
    assert len(str(caught.value)) < 600
    assert "the vector comes after the arguments" in caught.value.__notes__[0]
