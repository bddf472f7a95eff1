"""grad, value_and_grad, vjp."""

import pickle

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, InvalidGradientError, UnconnectedGradientWarning
from cytape.tensor.tensor import live_tensors
from tests.cases import each
from tests.threads import in_thread, in_threads


def cube(x):
    """A function that can be pickled."""
    return np.sum(x**3)


# -- results ---------------------------------------------------------------------------------------


def test_arrays_in_arrays_out():
    x = np.array([1.0, 2.0])
    gradient = cytape.grad(cube)(x)
    assert type(gradient) is np.ndarray
    np.testing.assert_array_equal(gradient, [3.0, 12.0])
    gradient += 1  # it is the caller's own
    value, gradient = cytape.value_and_grad(cube)(x)
    assert type(value) is np.float64
    assert value == 9.0
    np.testing.assert_array_equal(gradient, [3.0, 12.0])


def test_the_result_shares_no_memory_with_other_arrays():
    weights = np.array([1.0, 2.0])
    gradient = cytape.grad(lambda x: np.sum(x * weights))(np.ones(2))
    gradient[0] = 100.0
    assert weights[0] == 1.0


def test_numbers_in_numbers_out():
    value, gradient = cytape.value_and_grad(cube)(2.0)
    assert (type(value), type(gradient)) == (np.float64, np.float64)
    assert (value, gradient) == (8.0, 12.0)
    assert type(cytape.grad(cube)(np.float32(2.0))) is np.float32


def test_tensors_in_tensors_out():
    for x in (cytape.constant([1.0, 2.0]), cytape.Variable([1.0, 2.0])):
        value, gradient = cytape.value_and_grad(cube)(x)
        assert type(value) is type(gradient) is cytape.Tensor
        assert gradient.numpy().tolist() == [3.0, 12.0]
    mixed = cytape.grad(lambda x, y: np.sum(x * y))(np.ones(2), cytape.constant([1.0, 2.0]))
    assert type(mixed) is cytape.Tensor


def test_a_result_that_an_outer_tape_records_stays_a_tensor():
    v = cytape.Variable(3.0)
    with cytape.GradientTape() as tape:
        gradient = cytape.grad(lambda x: x**2 * v)(5.0)
        unrelated = cytape.grad(lambda x: x**2)(5.0)
    assert type(unrelated) is np.float64
    assert float(tape.gradient(gradient, v)) == 10.0


def test_sparse_gradients_come_back_dense():
    table = np.arange(6.0).reshape(3, 2)
    gradient = cytape.grad(lambda t: np.sum(cytape.gather(t, [0, 2, 2])))(table)
    assert type(gradient) is np.ndarray
    np.testing.assert_array_equal(gradient, [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]])
    _, vjp_fn = cytape.vjp(lambda t: cytape.gather(t, [1]), cytape.constant(table))
    (gradient,) = vjp_fn(np.ones((1, 2)))
    assert gradient.numpy().tolist() == [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]


def test_no_dependence_gives_zeros():
    x = np.ones((2, 3), np.float32)
    with pytest.warns(UnconnectedGradientWarning, match="argument 0"):
        gradient = cytape.grad(lambda x, y: y * 2.0)(x, 1.0)
    assert gradient.shape == (2, 3)
    assert gradient.dtype == np.float32
    assert not gradient.any()
    with pytest.warns(UnconnectedGradientWarning, match="argument 0"):
        assert cytape.grad(lambda x: 5.0)(1.0) == 0.0
    _, vjp_fn = cytape.vjp(lambda x, y: y, 1.0, 2.0)
    with pytest.warns(UnconnectedGradientWarning, match="argument 0"):
        assert vjp_fn(3.0) == (0.0, 3.0)


@each("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
@each("shape", [(), (0,), (2, 3)])
def test_dtype_and_shape_are_kept(dtype, shape):
    gradient = cytape.grad(lambda x: np.sum(x * 2.0))(np.ones(shape, dtype))
    assert gradient.dtype == dtype
    assert gradient.shape == shape


# -- arguments -------------------------------------------------------------------------------------


def test_the_argument_itself_as_result():
    assert cytape.value_and_grad(lambda x: x)(3.0) == (3.0, 1.0)
    value, vjp_fn = cytape.vjp(lambda x, y: [x, x, y], 3.0, 4.0)
    assert value == [3.0, 3.0, 4.0]
    assert vjp_fn([1.0, 10.0, 100.0]) == (11.0, 100.0)


# -- results of f ----------------------------------------------------------------------------------


def test_has_aux():
    def f(x):
        y = x * x
        return np.sum(y), {"y": y, "note": "text"}

    x = np.array([1.0, 2.0])
    gradient, aux = cytape.grad(f, has_aux=True)(x)
    np.testing.assert_array_equal(gradient, [2.0, 4.0])
    assert type(aux["y"]) is np.ndarray
    assert aux["note"] == "text"
    (value, aux), gradient = cytape.value_and_grad(f, has_aux=True)(cytape.constant(x))
    assert float(value) == 5.0
    assert type(aux["y"]) is cytape.Tensor
    value, vjp_fn, aux = cytape.vjp(f, x, has_aux=True)
    assert aux["y"].tolist() == [1.0, 4.0]
    np.testing.assert_array_equal(vjp_fn(2.0)[0], [4.0, 8.0])
    for transform in (cytape.grad, cytape.value_and_grad):
        with pytest.raises(TypeError, match="has_aux=True cube must return a pair"):
            transform(cube, has_aux=True)(x)


# -- vjp -------------------------------------------------------------------------------------------


def test_vjp_takes_weights_in_the_structure_of_the_value():
    def f(x, parameters):
        return {"a": x * parameters["w"], "b": (np.sum(x),)}

    x, w = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    value, vjp_fn = cytape.vjp(f, x, {"w": w})
    assert value["a"].tolist() == [3.0, 8.0]
    assert value["b"] == (3.0,)
    for _ in range(2):
        by_x, by_parameters = vjp_fn({"b": (10.0,), "a": np.array([1.0, 2.0])})
        assert by_x.tolist() == [13.0, 18.0]
        assert by_parameters["w"].tolist() == [1.0, 4.0]
    with pytest.raises(ValueError, match="structures differ"):
        vjp_fn([1.0, 2.0])
    with pytest.raises(InvalidGradientError, match=r"shape \(3,\), its target \(2,\)"):
        vjp_fn({"a": np.ones(3), "b": (1.0,)})


def test_vjp_of_integer_results():
    value, vjp_fn = cytape.vjp(lambda x: (x * x, np.argmax(x)), np.array([1.0, 2.0]))
    assert value[1] == 1
    (gradient,) = vjp_fn((np.ones(2), None))
    assert gradient.tolist() == [2.0, 4.0]


def test_vjp_is_linear_in_tensors_that_are_recorded():
    x = cytape.constant([1.0, 2.0])
    with cytape.GradientTape() as tape:
        weights = cytape.constant([3.0, 4.0])
        tape.watch(weights)
        _, vjp_fn = cytape.vjp(lambda x: x**2, x)
        (gradient,) = vjp_fn(weights)
    assert tape.gradient(gradient, weights).numpy().tolist() == [2.0, 4.0]


def test_a_vjp_keeps_what_it_needs_and_no_longer():
    before = live_tensors()
    value, vjp_fn = cytape.vjp(lambda x: np.tanh(np.tanh(x)), np.ones(3))
    assert live_tensors() > before
    del vjp_fn
    assert live_tensors() == before
    cytape.grad(cube)(np.ones(3))
    assert live_tensors() == before


# -- higher order ----------------------------------------------------------------------------------


def test_nested_to_any_order():
    f = np.tanh
    derivatives = [f(0.3)]
    for _ in range(5):
        f = cytape.grad(f)
        derivatives.append(f(0.3))
        assert type(derivatives[-1]) is np.float64
    t = np.tanh(0.3)
    expected = [
        t, 1 - t**2, -2 * t * (1 - t**2), (6 * t**2 - 2) * (1 - t**2),
        (16 * t - 24 * t**3) * (1 - t**2), (16 - 120 * t**2 + 120 * t**4) * (1 - t**2),
    ]
    np.testing.assert_allclose(derivatives, expected, rtol=1e-12)


def test_a_hessian_by_vjp_of_grad():
    rng = np.random.default_rng(1)
    a = rng.normal(size=(3, 3))
    x = rng.normal(size=3)
    gradient, vjp_fn = cytape.vjp(cytape.grad(lambda x: x @ a @ x), x)
    np.testing.assert_allclose(gradient, (a + a.T) @ x)
    hessian = np.stack([vjp_fn(row)[0] for row in np.eye(3)])
    np.testing.assert_allclose(hessian, a + a.T)


def test_value_and_grad_inside_grad():
    def f(x):
        value, gradient = cytape.value_and_grad(np.sin)(x)
        return value * gradient

    assert cytape.grad(f)(0.3) == pytest.approx(np.cos(0.6))


def test_mixed_derivatives():
    f = lambda x, y: np.sin(x) * y**3  # noqa: E731
    mixed = cytape.grad(cytape.grad(f, 1), 0)(0.3, 2.0)
    assert mixed == pytest.approx(np.cos(0.3) * 12)


def test_complex_gradients_follow_the_convention_of_the_conjugate():
    # TensorFlow's: conj(d/dz) for holomorphic functions. JAX and autograd give the conjugate of it.
    assert cytape.grad(lambda z: z * z)(7 + 3j) == 14 - 6j
    assert cytape.grad(lambda z: np.real(z * np.conj(z)))(7 + 3j) == 14 + 6j
    _, vjp_fn = cytape.vjp(lambda z: z * z, 7 + 3j)
    assert vjp_fn(1j)[0] == 1j * (14 - 6j)


@each("transform", [
    cytape.grad, cytape.value_and_grad, cytape.hessian, cytape.elementwise_grad, cytape.jacrev,
    lambda f: cytape.function(cytape.grad(f)), lambda f: cytape.grad(cytape.grad(f)),
    lambda f: lambda x: cytape.vmap(cytape.grad(f))(np.full(3, x)), cytape.hessian_diagonal,
    lambda f: lambda x: cytape.grad(lambda x, z: f(x) * z, (0, 1))(x, 1j),
])
def test_a_complex_result_of_real_arguments_is_an_error(transform):
    """Its gradient would be that of the real part only: here 0."""
    with pytest.raises(TypeError, match=r"Take numpy\.real"):
        transform(lambda x: x * 1j)(2.0)


def test_real_parts_of_complex_results_are_differentiated():
    assert cytape.grad(lambda x: np.real((x * (1 + 2j)) ** 2))(2.0) == (4 * (1 + 2j) ** 2).real
    assert cytape.grad(lambda x: np.imag(x * 3j))(2.0) == 3


# -- as objects ------------------------------------------------------------------------------------


def test_threads_differentiate_at_the_same_time():
    def work(k):
        return [cytape.grad(cytape.grad(lambda x: x**k))(2.0) for _ in range(50)]

    for k, results in zip(range(2, 6), in_threads(work, *range(2, 6)), strict=True):
        assert set(results) == {k * (k - 1) * 2.0 ** (k - 2)}


@each("transform", [cytape.grad, cytape.hessian, lambda f: lambda x: cytape.jvp(f, (x,), (x,))])
@each("convert", [float, np.asarray, pickle.dumps])
def test_a_conversion_in_another_thread_is_an_error(transform, convert):
    with pytest.raises(DetachedError, match="(?s)by .*results of processes and other threads"):
        transform(lambda x: x * (1 if in_thread(convert, x * x) else 2))(3.0)


def test_with_scipy_optimisers():
    optimize = pytest.importorskip("scipy.optimize")

    def rosenbrock(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    solution = optimize.minimize(cytape.value_and_grad(rosenbrock), np.zeros(4), jac=True)
    np.testing.assert_allclose(solution.x, np.ones(4), atol=1e-4)


@pytest.mark.parametrize("signature", [None, [cytape.Spec.of((None,), float)]])
def test_no_warning_of_slices_without_a_request_for_them(signature, monkeypatch, recwarn):
    for axis in None, 0:  # without an axis, one more op comes between
        gradient = cytape.grad(lambda a: cnp.sum(cnp.take(a, [0, 1], axis) ** 2))  # noqa: B023
        traced = cytape.function(gradient, input_signature=signature)
        np.testing.assert_array_equal(traced(np.ones(3)), [2, 2, 0])
    monkeypatch.setattr("cytape.ops.sparse_sums.MANY_ELEMENTS", 1)
    np.testing.assert_array_equal(gradient(np.ones(3)), [2, 2, 0])
    assert not recwarn.list


def test_gradients_are_not_the_weights():
    weights = cytape.constant([1.0, 2.0])
    gradient, = cytape.vjp(lambda x: x, cytape.constant([3.0, 4.0]))[1](weights)
    gradient[0] = 9.0
    assert weights.numpy().tolist() == [1.0, 2.0]


@each(shape=[(1,), (1, 1), (1, 1, 1)], wrapped=[lambda f: f, cytape.function])
@each("take", [np.ones, lambda shape: cytape.constant(np.ones(shape))])
def test_a_result_of_one_element_is_a_scalar(shape, wrapped, take):
    def f(x):
        return 3.0 * x * x

    x = take(shape)
    gradient = wrapped(cytape.grad(f))(x)
    assert type(gradient) is type(x)
    np.testing.assert_array_equal(gradient, np.full(shape, 6.0))
    value, gradient = wrapped(cytape.value_and_grad(f))(x)
    np.testing.assert_array_equal([value, gradient], np.stack([np.full(shape, i) for i in (3, 6)]))
    np.testing.assert_array_equal(wrapped(cytape.grad(cytape.grad(f)))(x), np.full(shape, 6.0))
    hvp = cytape.hessian_vector_product(f)
    np.testing.assert_array_equal(wrapped(hvp)(x, take(shape)), np.full(shape, 6.0))
    np.testing.assert_array_equal(wrapped(cytape.hessian_diagonal(f))(x), np.full(shape, 6.0))


@each(shape=[(0,), (2,), (1, 2)], wrapped=[lambda f: f, cytape.function])
def test_other_arrays_are_no_scalars(shape, wrapped):
    for transform in (cytape.grad, cytape.value_and_grad):
        with pytest.raises(TypeError, match="must return a scalar, got shape"):
            wrapped(transform(lambda x: x * 2.0))(np.ones(shape))


@each(integers=[np.array([1, 2]), 3, np.array([True, False]), [1, 2]], transform=[
    cytape.grad, cytape.value_and_grad, cytape.jacrev, cytape.jacfwd, cytape.hessian])
@each("wrapped", [lambda f: f, cytape.function])
def test_integers_beside_differentiated_arrays_are_named(integers, transform, wrapped):
    def f(x, n):
        return np.sum(x) * 2.0

    for argnums in ((0, 1), (1, 0), 1, -1):
        with pytest.raises(TypeError, match=r"argument 1(\[0\])? of f has dtype (int64|bool)"):
            wrapped(transform(f, argnums))(np.ones(2), integers)
    assert np.shape(wrapped(cytape.grad(f))(np.ones(2), integers)) == (2,)
