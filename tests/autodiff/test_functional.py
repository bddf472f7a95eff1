"""grad, value_and_grad, vjp."""

import functools
import pickle
import threading
from collections import namedtuple

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import InvalidGradientError, UnconnectedGradientWarning
from cytape.tensor.tensor import live_tensors


def cube(x):
    """A function that can be pickled."""
    return np.sum(x**3)


# -- what comes out --------------------------------------------------------------------------------


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


def test_the_result_is_never_somebody_elses_array():
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


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_dtype_and_shape_are_kept(dtype, shape):
    gradient = cytape.grad(lambda x: np.sum(x * 2.0))(np.ones(shape, dtype))
    assert gradient.dtype == dtype
    assert gradient.shape == shape


# -- what goes in ----------------------------------------------------------------------------------


def test_argnums():
    def f(x, y, *, power=1):
        return (x * y**2) ** power

    assert cytape.grad(f)(3.0, 2.0) == 4.0
    assert cytape.grad(f, 1)(3.0, 2.0) == 12.0
    assert cytape.grad(f, -1)(3.0, 2.0) == 12.0
    assert cytape.grad(f, (1, 0))(3.0, 2.0) == (12.0, 4.0)
    assert cytape.grad(f, [0])(3.0, 2.0) == (4.0,)
    assert cytape.grad(f, ())(3.0, 2.0) == ()
    assert cytape.grad(f, np.int64(1))(3.0, 2.0, power=2) == 2 * 12.0 * 12.0


@pytest.mark.parametrize("argnums", [2, -3, (0, 0), (0, -2), (0, 5)])
def test_argnums_that_do_not_fit_the_call(argnums):
    with pytest.raises(ValueError, match="different positions among the 2"):
        cytape.grad(lambda x, y: x * y, argnums)(1.0, 2.0)


@pytest.mark.parametrize("argnums", [None, 1.0, "x", ("x",)])
def test_argnums_of_the_wrong_type(argnums):
    with pytest.raises(TypeError, match="argnums"):
        cytape.grad(cube, argnums)


def test_structures_as_arguments():
    Layer = namedtuple("Layer", "w b")

    def loss(parameters, x):
        for layer in parameters["layers"]:
            x = np.tanh(layer.w @ x + layer.b)
        return np.sum(x) * parameters["scale"]

    rng = np.random.default_rng(0)
    layers = [Layer(rng.normal(size=(2, 2)), rng.normal(size=2)) for _ in range(2)]
    parameters = {"layers": layers, "scale": 2.0}
    value, gradient = cytape.value_and_grad(loss)(parameters, np.ones(2))
    assert list(gradient) == ["layers", "scale"]
    assert isinstance(gradient["layers"][1], Layer)
    assert gradient["layers"][0].w.shape == (2, 2)
    assert gradient["scale"] == pytest.approx(value / 2)
    both = cytape.grad(loss, (0, 1))(parameters, np.ones(2))
    np.testing.assert_array_equal(both[0]["layers"][0].b, gradient["layers"][0].b)
    assert cytape.grad(lambda xs: xs[0] * xs[1])([2.0, 3.0]) == [3.0, 2.0]


@pytest.mark.parametrize(
    "argument", [3, True, np.arange(3), [1.0, 2], {"a": np.ones(2), "n": 3}, "text", cnp.array(3)]
)
def test_integers_and_the_like_have_no_gradient(argument):
    def f(x):
        return 1.0

    with pytest.raises(TypeError, match="argument 0.* of f.*has no gradient"):
        cytape.grad(f)(argument)


@pytest.mark.parametrize("argument", [None, object(), np.array([None]), [1.0, None]])
def test_what_is_no_number_has_no_gradient(argument):
    def f(x, y):
        return 1.0

    with pytest.raises(TypeError, match="argument 1.* of f cannot be differentiated"):
        cytape.grad(f, 1)(1.0, argument)


def test_other_arguments_are_passed_as_they_are():
    seen = []

    def f(x, *rest, **options):
        seen.append((rest, options))
        return x * x

    array = np.arange(3)
    cytape.grad(f)(1.0, array, None, text="text")
    (rest, options) = seen[0]
    assert rest[0] is array
    assert rest[1] is None
    assert options == {"text": "text"}


def test_the_same_tensor_for_two_parameters():
    x = cytape.constant(3.0)
    assert [float(g) for g in cytape.grad(lambda x, y: x * y, (0, 1))(x, x)] == [3.0, 3.0]
    assert float(cytape.grad(lambda y: y * x)(x)) == 3.0  # the closed-over one is a constant
    v = cytape.Variable(3.0)
    assert [float(g) for g in cytape.grad(lambda x, y: x * y, (0, 1))(v, v)] == [3.0, 3.0]
    assert float(cytape.grad(lambda y: y * v)(v)) == 3.0


def test_the_argument_itself_as_result():
    assert cytape.value_and_grad(lambda x: x)(3.0) == (3.0, 1.0)
    value, vjp_fn = cytape.vjp(lambda x, y: [x, x, y], 3.0, 4.0)
    assert value == [3.0, 3.0, 4.0]
    assert vjp_fn([1.0, 10.0, 100.0]) == (11.0, 100.0)


# -- what f returns --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: x * np.ones(2), r"scalar, got shape \(2,\): sum it"),
        (lambda x: x * np.ones((1,)), r"scalar, got shape \(1,\)"),
        (lambda x: (x, x), "one scalar, got a tuple: use vjp, or has_aux=True"),
        (lambda x: [x], "one scalar, got a list"),
        (lambda x: x > 0, "dtype bool, which has no gradient"),
        (lambda x: 3, "dtype int64, which has no gradient"),
        (lambda x: object(), "must return arrays or tensors"),
    ],
)
def test_results_that_grad_cannot_take(f, message):
    with pytest.raises(TypeError, match=message):
        cytape.grad(f)(1.0)


def test_returning_nothing():
    def f(x):
        x * x

    with pytest.raises(ValueError, match="f returned None: was the return statement forgotten"):
        cytape.grad(f)(1.0)


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


def test_an_error_in_f_leaves_no_tape_behind():
    def f(x):
        if x > 0:
            raise KeyError("inside")
        return x * x

    v = cytape.Variable(-2.0)
    with cytape.GradientTape() as tape:
        for transform in (cytape.grad(f), cytape.value_and_grad(f), lambda x: cytape.vjp(f, x)):
            with pytest.raises(KeyError, match="inside"):
                transform(1.0)
        y = cytape.grad(f)(v) * v
    assert float(tape.gradient(y, v)) == -8.0


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
        t,
        1 - t**2,
        -2 * t * (1 - t**2),
        (6 * t**2 - 2) * (1 - t**2),
        (16 * t - 24 * t**3) * (1 - t**2),
        (16 - 120 * t**2 + 120 * t**4) * (1 - t**2),
    ]
    np.testing.assert_allclose(derivatives, expected, rtol=1e-12)


def test_no_perturbation_confusion():
    # d/dx [x * d/dy (x + y)] is 1; 2 if the two levels are mixed up.
    gradient = cytape.grad(lambda x: x * cytape.grad(lambda y: x + y)(1.0))(1.0)
    assert gradient == 1.0
    gradient = cytape.grad(lambda x: x * cytape.grad(lambda y: x * y)(x))(3.0)
    assert gradient == 6.0


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
    assert cytape.grad(lambda x: (x * (1 + 2j)) ** 2)(2.0) == (4 * (1 + 2j) ** 2).real
    _, vjp_fn = cytape.vjp(lambda z: z * z, 7 + 3j)
    assert vjp_fn(1j)[0] == 1j * (14 - 6j)


# -- as objects ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "transformed",
    [
        cytape.grad(cube),
        cytape.grad(cytape.grad(functools.partial(np.power, 2.0))),
        cytape.value_and_grad(cube, argnums=0),
        cytape.gradients_function(cube),
    ],
)
def test_transformed_functions_can_be_pickled(transformed):
    again = pickle.loads(pickle.dumps(transformed))
    np.testing.assert_array_equal(list(np.ravel(again(1.5))), list(np.ravel(transformed(1.5))))


def test_transformed_functions_look_like_the_function():
    gradient = cytape.grad(cube)
    assert gradient.__name__ == "cube"
    assert gradient.__doc__ == "A function that can be pickled."
    assert gradient.__wrapped__ is cube
    assert cytape.grad(functools.partial(cube))(2.0) == 12.0


def test_only_functions_can_be_transformed():
    with pytest.raises(TypeError, match="only functions can be transformed, got float64"):
        cytape.grad(cube(2.0))


def test_a_transformed_method():
    class Model:
        scale = 3.0

        @functools.partial(cytape.grad, argnums=1)
        def slope(self, x):
            return x * x * self.scale

    assert Model().slope(2.0) == 12.0


@pytest.mark.threads
def test_threads_differentiate_at_the_same_time():
    results = {}

    def work(k):
        results[k] = [cytape.grad(cytape.grad(lambda x: x**k))(2.0) for _ in range(50)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2, 6):
        assert set(results[k]) == {k * (k - 1) * 2.0 ** (k - 2)}


def test_with_scipy_optimisers():
    optimize = pytest.importorskip("scipy.optimize")

    def rosenbrock(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    solution = optimize.minimize(cytape.value_and_grad(rosenbrock), np.zeros(4), jac=True)
    np.testing.assert_allclose(solution.x, np.ones(4), atol=1e-4)


@pytest.mark.parametrize("signature", [None, [cytape.Spec.of((None,), float)]])
def test_no_warning_of_slices_that_nobody_asked_for(signature, monkeypatch, recwarn):
    for axis in None, 0:  # without an axis, one more op comes between
        gradient = cytape.grad(lambda a: cnp.sum(cnp.take(a, [0, 1], axis) ** 2))  # noqa: B023
        traced = cytape.function(gradient, input_signature=signature)
        np.testing.assert_array_equal(traced(np.ones(3)), [2, 2, 0])
    monkeypatch.setattr("cytape.ops.sparse.MANY_ELEMENTS", 1)
    np.testing.assert_array_equal(gradient(np.ones(3)), [2, 2, 0])
    assert not recwarn.list


class _Parameters:
    def __init__(self, w):
        self.w = w


@pytest.mark.parametrize("argument, place, what", [
    ({"w": np.ones(2), "n": 3}, r"0\['n'\] of f", "int64"),
    ({"w": [1.0, (1.0, np.ones(2, int))], "a": 3.0}, r"0\['w'\]\[1\]\[1\] of f", "int64"),
    ([1.0, _Parameters(1.0)], r"0\[1\] of f", "class _Parameters.* in a dict"),
    (_Parameters(1.0), "0 of f", "class _Parameters.* in a dict"),
    (3, "0 of f", "int64"),
])
def test_an_error_says_which_part_of_an_argument_has_no_derivative(argument, place, what):
    def f(x):
        return 1.0

    with pytest.raises(TypeError, match=f"argument {place}.*{what}"):
        cytape.grad(f)(argument)


def test_what_is_passed_by_name_is_to_be_passed_by_position():
    for transform in cytape.grad, cytape.jacfwd:
        with pytest.raises(ValueError, match=r"by position, not by name \(x\)"):
            transform(lambda x: x**2)(x=1.0)
