"""autograd's operators: conventions, results beside cytape's, arguments, outputs, and errors."""

import functools
import pickle
import threading
import warnings

import numpy as np
import pytest

import cytape
import cytape.autograd.numpy as anp
from cytape import autograd
from cytape.autograd import differential_operators, grad, make_vjp, wrap_util
from cytape.autograd.extend import Box, VSpace, defvjp, primitive

A = np.arange(6.0).reshape(2, 3) / 7 + 0.1
X = np.array([0.3, -0.2, 0.7])
INDEPENDENT = "Output seems independent of input"


def scalar(x, scale=1.0):
    return scale * anp.sum(anp.tanh(anp.dot(A, x)) ** 2)


def vector(x, scale=1.0):
    return scale * anp.tanh(anp.dot(A, x)) ** 2


def close(found, expected):
    np.testing.assert_allclose(found, expected, 1e-12, 1e-14)


V, W = np.array([1.0, -2.0, 0.5]), np.array([0.5, 2.0])
JACOBIAN = cytape.jacrev(vector)(X)
HESSIAN = cytape.hessian(scalar)(X)
RESULTS = {  # each operator at X beside cytape's own
    "grad": (lambda o, f, n: o(scalar, n)(*f), cytape.grad(scalar)(X)),
    "value_and_grad": (lambda o, f, n: o(scalar, n)(*f)[1], cytape.grad(scalar)(X)),
    "elementwise_grad": (lambda o, f, n: o(vector, n)(*f), JACOBIAN.sum(0)),
    "grad_and_aux": (
        lambda o, f, n: o(lambda *x: (scalar(*x), 7), n)(*f)[0], cytape.grad(scalar)(X)),
    "jacobian": (lambda o, f, n: o(vector, n)(*f), JACOBIAN),
    "hessian": (lambda o, f, n: o(scalar, n)(*f), HESSIAN),
    "deriv": (lambda o, f, n: o(vector, n)(*f), JACOBIAN.sum(1)),
    "make_vjp": (lambda o, f, n: o(vector, n)(*f)[0](W), W @ JACOBIAN),
    "make_jvp": (lambda o, f, n: o(vector, n)(*f)(V)[1], JACOBIAN @ V),
    "make_jvp_reversemode": (lambda o, f, n: o(vector, n)(*f)(V), JACOBIAN @ V),
    "make_hvp": (lambda o, f, n: o(scalar, n)(*f)[0](V), HESSIAN @ V),
    "hessian_tensor_product": (lambda o, f, n: o(scalar, n)(*f[:2], V), HESSIAN @ V),
    "hessian_vector_product": (lambda o, f, n: o(scalar, n)(*f[:2], V), HESSIAN @ V),
    "tensor_jacobian_product": (lambda o, f, n: o(vector, n)(*f[:2], W), W @ JACOBIAN),
    "vector_jacobian_product": (lambda o, f, n: o(vector, n)(*f[:2], W), W @ JACOBIAN),
    "make_ggnvp": (
        lambda o, f, n: o(vector, f_argnum=n)(*f)(V), JACOBIAN.T @ (JACOBIAN @ V)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_operators_agree_with_those_of_cytape(name):
    result, expected = RESULTS[name]
    operator = getattr(differential_operators, name)
    close(result(operator, (X,), 0), expected)
    close(result(operator, (X, 1.0), 0), expected)
    close(result(operator, (X,), -1) if "product" not in name else expected, expected)


def test_the_package_exports_autograds_operators():
    listed = set(differential_operators.__all__)
    assert all(getattr(autograd, name) is getattr(differential_operators, name) for name in listed)
    others = {"checkpoint", "grad_named", "multigrad_dict", "holomorphic_grad"}
    assert set(RESULTS) | others == listed


@pytest.mark.parametrize("arguments", [
    {"argnum": [0, 2]}, {"argnum": (0, 2)}, {"argnums": (0, 2)}, {"argnums": [0, 2]}])
def test_several_arguments_give_a_tuple(arguments):
    def f(x, n, y):
        return anp.sum(x**n * y)

    gx, gy = grad(f, **arguments)(X, 2, V)
    close(gx, 2 * X * V)
    close(gy, X**2)
    assert type(grad(f, **arguments)(X, 2, V)) is tuple
    value, (vx, _) = autograd.value_and_grad(f, **arguments)(X, 2, V)
    close(value, f(X, 2, V))
    close(vx, gx)
    jx, jy = autograd.jacobian(lambda x, n, y: x**n * y, **arguments)(X, 2, V)
    close(jx, np.diag(gx))
    close(jy, np.diag(gy))
    close(grad(f, 2)(X, 2, V), gy)
    close(grad(f, argnum=-1)(X, 2, V), gy)


@pytest.mark.parametrize("make", [
    list, tuple, lambda x: dict(enumerate(x)), lambda x: [x[0], {"b": (x[1],), "a": x[2]}]])
def test_structures(make):
    def f(p):
        leaves = cytape.tensor.nest.flatten(p)
        return anp.sum(leaves[0] ** 2) + anp.sum(anp.sin(leaves[1]) * leaves[2])

    point = make([X, 0.5, V])
    expected = cytape.grad(f)(point)
    for found in (grad(f)(point), autograd.value_and_grad(f)(point)[1],
                  make_vjp(f)(point)[0](1.0), autograd.elementwise_grad(f)(point)):
        cytape.tensor.nest.map_structure(close, found, expected)


def test_names_docstrings_pickles_and_methods():
    assert grad.__name__ == "grad" and grad.__module__.endswith("differential_operators")
    g = grad(scalar, 1)
    assert g.__name__ == "grad_of_scalar_wrt_argnum_1"
    assert g.__doc__.startswith("    grad of function scalar with respect to argument number 1.")
    for operator in (grad, autograd.jacobian, autograd.hessian, make_vjp):
        again = pickle.loads(pickle.dumps(operator(scalar, argnum=0)))
        assert again.__name__ == f"{operator.__name__}_of_scalar_wrt_argnum_0"
    close(pickle.loads(pickle.dumps(grad(scalar)))(X), grad(scalar)(X))
    close(grad(functools.partial(scalar, scale=2.0))(X), 2 * grad(scalar)(X))
    close(grad(scalar)(X, scale=2.0), 2 * grad(scalar)(X))

    class Model:
        def loss(self, x):
            return scalar(x)

        gradient = grad(loss, 1)

    close(Model().gradient(X), grad(scalar)(X))
    close(grad(Model().loss)(X), grad(scalar)(X))


@wrap_util.unary_to_nary
def scaled_gradient(f, x, scale, power=1):
    pull_back, value = autograd.core.make_vjp(f, x)
    return pull_back(scale**power * autograd.core.vspace(value).ones())


def test_operators_of_users():
    close(scaled_gradient(scalar, 0, 3.0, power=2)(X), 9 * grad(scalar)(X))
    again = pickle.loads(pickle.dumps(scaled_gradient(scalar, 0, 3.0, power=2)))
    close(again(X), 9 * grad(scalar)(X))
    assert again.__name__ == "scaled_gradient_of_scalar_wrt_argnum_0"
    gx, gy = scaled_gradient(lambda x, y: x * y, (0, 1), 1.0)(2.0, 3.0)
    assert (gx, gy) == (3.0, 2.0)


@pytest.mark.parametrize("x", [
    2.0, np.float64(2.0), np.float32(2.0), np.array(2.0), np.array([2.0]), np.array([[2.0]]),
    np.array([2]), np.array(2), np.array([2.0], np.float16), np.array([2.0], np.longdouble)])
def test_arguments_and_outputs_of_one_element(x):
    for f in (lambda x: x**3, lambda x: anp.reshape(x**3, (1, 1))):
        value, gradient = autograd.value_and_grad(f)(x)
        dtype = np.asarray(x).dtype
        assert gradient.dtype == (float if dtype.kind == "i" else dtype)
        assert np.shape(gradient) == np.shape(x) and np.size(value) == 1
        np.testing.assert_array_equal(gradient, np.full(np.shape(x), 12.0))
        assert type(gradient) is (np.ndarray if np.ndim(x) else gradient.dtype.type)


@pytest.mark.parametrize("f, dtype", [
    (lambda x: anp.sum(x), np.float32), (lambda x: anp.sum(x * V), np.float64),
    (lambda x: anp.sum(x) * np.float64(2.0), np.float64),
    (lambda x: anp.sum(x.astype("float64")), np.float32)])
def test_gradients_have_the_dtype_of_the_result_where_it_is_wider(f, dtype):
    x = X.astype(np.float32)
    assert grad(f)(x).dtype == autograd.elementwise_grad(f)(x).dtype == dtype
    assert autograd.jacobian(lambda x: f(x) * anp.ones(2, np.float32))(x).dtype == dtype
    vjp, value = autograd.make_vjp(f)(x)
    assert vjp(value).dtype == dtype
    assert vjp(1.0).dtype == dtype
    vjp, (value,) = autograd.make_vjp(lambda x: [f(x)])(x)
    assert vjp([value]).dtype == dtype
    assert grad(lambda p: f(p["x"]))({"x": x})["x"].dtype == dtype


def test_complex_gradients_are_conjugates_of_those_of_cytape():
    z = np.array([1 + 2j, 0.5 - 1j])

    def f(z):
        return anp.real(anp.sum(z**3) + anp.sum(anp.abs(z)))

    close(grad(f)(z), np.conj(cytape.grad(f)(z)))
    close(autograd.value_and_grad(f)(z)[1], np.conj(cytape.grad(f)(z)))
    close(make_vjp(f)(z)[0](1.0), np.conj(cytape.grad(f)(z)))
    close(grad(lambda p: f(p[0] * p[1]))((z, 2.0))[0], 2 * np.conj(cytape.grad(f)(2 * z)))
    close(autograd.holomorphic_grad(lambda z: z**3)(1 + 2j), 3 * (1 + 2j) ** 2)
    close(autograd.elementwise_grad(lambda z: anp.real(z**2))(z), 2 * z)
    close(autograd.jacobian(lambda z: z**2)(z), np.diag(2 * z))
    close(grad(lambda x: anp.real(anp.sum((x + 1j) ** 3)))(X), np.real(3 * (X + 1j) ** 2))
    with pytest.warns(UserWarning, match="Input to holomorphic_grad is not complex"):
        autograd.holomorphic_grad(lambda z: z**2)(1.0)


@pytest.mark.parametrize("operator, f, x, message", [
    (grad, vector, X, "^Grad only applies to real scalar-output functions. Try jacobian,"),
    (autograd.value_and_grad, vector, X, "^value_and_grad only applies to real scalar-output"),
    (autograd.jacobian, lambda x: None, X, "^Can't find vector space for value None"),
    (grad, lambda z: z**2, 1j, "Grad only applies to real scalar-output"),
    (grad, lambda x: anp.sum(x) > 0, X, "for value True of type <class 'numpy.bool'>"),
    (grad, lambda x: None, X, "Can't find vector space for value None"),
    (autograd.elementwise_grad, lambda z: z**2, 1j, "only applies to real-output functions"),
    (autograd.jacobian, lambda x: [x, x], X, "that return one array, got a list"),
    (autograd.jacobian, lambda x: x * 1j, X, "returned complex numbers for real arguments"),
    (grad, lambda x: x, 2, "^Can't differentiate w.r.t. type <class 'int'>"),
    (grad, lambda x: x, "a", "Can't differentiate w.r.t. type <class 'str'>"),
    (grad, lambda x: x[0], [1.0, 2], "Can't differentiate w.r.t. type <class 'int'>"),
    (autograd.jacobian, lambda x: x, 2, "Can't differentiate w.r.t. type <class 'int'>"),
    (grad, None, X, "only functions can be transformed"),
    (grad, lambda x: x, np.array([{}]), "has no gradient|object"),
])
def test_bad_input_is_a_type_error(operator, f, x, message):
    with pytest.raises(TypeError, match=message):
        operator(f)(x)


def test_a_complex_tangent_of_a_real_argument_is_a_type_error():
    with pytest.raises(TypeError, match="tangent of a real argument must be real"):
        autograd.make_jvp(lambda x: x * 2)(V)(V + 1j)


def test_positions_that_are_missing():
    with pytest.raises(IndexError):
        grad(scalar, 3)(X)
    with pytest.raises(IndexError):
        autograd.jacobian(scalar, (0, 3))(X)
    with pytest.raises(TypeError, match="argnums must be an int"):
        grad(scalar, "x")


@pytest.mark.parametrize("f", [
    lambda x: 3.0, lambda x: np.float64(3.0), lambda x: anp.sum(anp.floor(x)),
    lambda x: np.zeros(1)])
def test_independent_results_warn_and_give_zeros(f):
    for operator in (grad, lambda f: lambda x: autograd.value_and_grad(f)(x)[1],
                     autograd.elementwise_grad, lambda f: lambda x: make_vjp(f)(x)[0](1.0),
                     autograd.deriv):
        with pytest.warns(UserWarning, match=INDEPENDENT) as noted:
            found = operator(f)(X)
        assert len(noted) == 1 and noted[0].category is UserWarning
        assert np.all(found == 0)
    with pytest.warns(UserWarning, match=INDEPENDENT):
        zeros = autograd.jacobian(lambda p: f(p["a"]))({"a": X, "b": 2.0})
    assert zeros["a"].shape == np.shape(f(X)) + (3,) and not np.any(zeros["a"])


def test_parts_of_the_arguments_may_be_independent_without_a_warning():
    gx, gy = grad(lambda x, y: anp.sum(x), (0, 1))(X, V)
    close(gx, np.ones(3))
    close(gy, np.zeros(3))
    with pytest.warns(UserWarning, match="Output seems independent of input."):  # the gradient
        close(autograd.hessian(lambda x: anp.sum(x))(X), np.zeros((3, 3)))


def test_results_in_containers_of_one_number():
    close(grad(lambda x: [anp.sum(x**2)])(X), 2 * X)
    close(grad(lambda x: {"loss": anp.sum(x**2)})(X), 2 * X)


def test_grad_and_aux_returns_what_is_no_array_unchanged():
    gradient, aux = autograd.grad_and_aux(lambda x: (anp.sum(x**2), {"x": 2 * x, "n": "a"}))(X)
    close(gradient, 2 * X)
    close(aux["x"], 2 * X)
    assert aux["n"] == "a" and type(aux["x"]) is np.ndarray


def test_gradients_by_name():
    def f(a, b, *rest, c=2.0, **named):
        return a * b + sum(r**2 for r in rest) + c**2 + named.get("d", 0.0) * 3

    assert autograd.grad_named(f, "b")(2.0, 3.0) == 2.0
    found = autograd.multigrad_dict(f)(2.0, 3.0, 4.0, d=5.0)
    assert found == {"a": 3.0, "b": 2.0, "rest": (8.0,), "c": 4.0, "named": {"d": 3.0}}
    assert list(found) == ["a", "b", "rest", "c", "named"]


def test_products_of_jacobians_with_tensors_of_fewer_axes():
    a, v = np.arange(12.0).reshape(2, 3, 2), np.arange(6.0).reshape(2, 3)
    full = autograd.jacobian(lambda a: anp.sin(a) * a)(a)
    close(autograd.tensor_jacobian_product(lambda a: anp.sin(a) * a)(a, v),
          np.tensordot(v, full, 2))


def test_ggnvp_with_a_loss():
    def loss(y):
        return anp.sum(2.0 * y**2 + y**4)

    inner = cytape.hessian(loss)(vector(X))
    close(autograd.make_ggnvp(vector, loss)(X)(V), JACOBIAN.T @ inner @ JACOBIAN @ V)


def test_hessian_of_results_with_axes():
    close(autograd.hessian(vector)(X), cytape.hessian(vector)(X))
    close(autograd.hessian(lambda x: x**3)(np.array([1, 2])), 6 * np.array(
        [[[1, 0], [0, 0]], [[0, 0], [0, 2.0]]]))


# ---- crossings


def test_gradients_of_gradients_across_the_two_apis():
    def cubed(x):
        return anp.sum(x**3)

    for first in (grad, cytape.grad):
        for second in (grad, cytape.grad, autograd.elementwise_grad):
            found = second(lambda x, first=first: anp.sum(first(cubed)(x)))(X)
            close(found, 6 * X)
    close(cytape.jvp(grad(cubed), (X,), (V,))[1], 6 * X * V)
    close(autograd.make_jvp(cytape.grad(cubed))(X)(V)[1], 6 * X * V)
    close(autograd.jacobian(grad(cubed))(X), np.diag(6 * X))
    close(grad(lambda x: grad(lambda y: anp.sum(y**2 * x))(1.5 * x)[0])(X), [6 * X[0], 0, 0])


def test_the_same_in_functions_vmap_and_accumulators():
    xs = np.stack([X, V, X + V])
    expected = np.stack([grad(scalar)(x) for x in xs])
    close(cytape.function(grad(scalar))(X), expected[0])
    close(cytape.function(autograd.hessian(scalar))(X), HESSIAN)
    close(cytape.function(autograd.jacobian(vector))(X), JACOBIAN)
    close(cytape.vmap(grad(scalar))(xs), expected)
    close(grad(cytape.function(scalar))(X), expected[0])
    x = cytape.constant(X)
    with cytape.ForwardAccumulator(x, V) as accumulator:
        gradient = grad(scalar)(x)
    close(accumulator.jvp(gradient), HESSIAN @ V)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = anp.sum(grad(scalar)(x) * V)
    close(tape.gradient(y, x), HESSIAN @ V)


@pytest.mark.parametrize("name", RESULTS)
def test_every_operator_can_be_traced(name):
    result, expected = RESULTS[name]
    operator = getattr(differential_operators, name)
    close(cytape.function(lambda x: result(operator, (x,), 0))(X), expected)
    close(cytape.vmap(lambda x: result(operator, (x,), 0))(np.stack([X, X])), [expected] * 2)


def test_variables():
    w = cytape.Variable(X)
    close(grad(scalar)(w), grad(scalar)(X))
    with cytape.GradientTape() as tape:
        y = scalar(w)
    close(tape.gradient(y, w), grad(scalar)(X))
    close(grad(lambda x: anp.sum(w * x**2))(X), 2 * X * X)
    with cytape.GradientTape() as tape:
        y = grad(lambda x: anp.sum(w * x**2))(np.ones(3))
        total = anp.sum(y)
    close(tape.gradient(total, w), 2 * np.ones(3))


def test_a_checkpointed_function_repeats_its_random_draws():
    def noisy(x):
        return anp.sum(anp.sin(x * anp.random.randn(3)) ** 2)

    anp.random.seed(3)
    noise = np.random.RandomState(3).randn(3)
    found = grad(autograd.checkpoint(noisy))(X)
    close(found, noise * np.sin(2 * X * noise))
    np.testing.assert_array_equal(np.random.randn(2), np.random.RandomState(3).randn(5)[3:])
    close(autograd.hessian(autograd.checkpoint(scalar))(X), HESSIAN)


class Series:
    def __init__(self, coefficients):
        self.coefficients = coefficients


class SeriesBox(Box):
    def __call__(self, x):
        return evaluate(self, x)


class SeriesSpace(VSpace):
    def __init__(self, value):
        self.size = len(value.coefficients)

    def zeros(self):
        return Series(np.zeros(self.size))

    def _add(self, x, y):
        return Series(x.coefficients + y.coefficients)

    def _scalar_mul(self, x, a):
        return Series(x.coefficients * a)


@primitive
def evaluate(series, x):
    return np.polyval(series.coefficients, x)


SeriesBox.register(Series)
SeriesSpace.register(Series)
defvjp(evaluate, lambda ans, series, x: lambda g: Series(g * np.vander([x], 3)[0]),
       lambda ans, series, x: lambda g: g * anp.polyval(anp.polyder(series.coefficients), x))


@pytest.mark.parametrize("operator", [
    grad, lambda f, n: lambda *x: autograd.value_and_grad(f, n)(*x)[1], autograd.elementwise_grad,
    lambda f, n: lambda *x: make_vjp(f, n)(*x)[0](1.0)])
def test_values_of_users_classes(operator):
    series = Series(np.array([1.0, 2.0, 3.0]))
    close(operator(lambda s: s(2.0) ** 2, 0)(series).coefficients, 22 * np.array([4.0, 2.0, 1.0]))
    gs, gx = operator(lambda s, x: s(x) * x, (0, 1))(series, 2.0)
    close(gs.coefficients, [8.0, 4.0, 2.0])
    close(gx, 11.0 + 2 * 6.0)
    found = operator(lambda p: p["s"](1.0) * anp.sum(p["x"]), 0)({"s": series, "x": X})
    close(found["s"].coefficients, np.full(3, np.sum(X)))
    close(found["x"], np.full(3, 6.0))


def test_primitives_get_plain_arrays_in_first_order():
    seen = []

    @primitive
    def square(x):
        seen.append(type(x))
        return x**2

    defvjp(square, lambda ans, x: lambda g: 2 * x * g)
    close(grad(lambda x: anp.sum(square(x)))(X), 2 * X)
    assert seen == [np.ndarray]
    close(autograd.hessian(lambda x: anp.sum(square(x)))(X), 2 * np.eye(3))


def test_threads():
    failures = []

    def work(scale):
        for _ in range(50):
            found = grad(lambda x: anp.sum(grad(lambda y: anp.sum(scale * y**3))(x)))(X)
            if not np.allclose(found, 6 * scale * X):
                failures.append(scale)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_arguments_of_the_caller_are_not_written_to():
    def writes(x):
        x[0] = 5.0
        return anp.sum(x**2)

    x = X.copy()
    close(grad(writes)(x), [0.0, *2 * X[1:]])
    np.testing.assert_array_equal(x, X)


def test_nothing_warns_in_ordinary_programs():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        autograd.hessian(scalar)(X)
        autograd.make_hvp(scalar)(X)[0](V)
