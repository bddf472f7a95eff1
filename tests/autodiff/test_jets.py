"""jet: against nested forward mode, closed forms, and what may go wrong."""

import math
from collections import namedtuple
from contextlib import ExitStack

import numpy as np
import pytest
from scipy import special

import cytape
import cytape.numpy as cnp
from cytape.errors import NotDifferentiableError, UnconnectedGradientWarning
from cytape.ops.engine.op_kinds import OPS, elementwise, general
from cytape.tensor.tensor import live_tensors
from tests.cases import each, grouped
from tests.ops.op_families import FAMILIES, is_sampled
from tests.ways import tangent

ORDER = 8


def nested(f, primals, series):
    """Compute a jet with one nested accumulator per order."""
    order = len(series[0])
    dtype = np.result_type(*primals)
    t = cytape.constant(np.zeros((), dtype))
    accumulators = [cytape.ForwardAccumulator(t, np.ones((), dtype)) for _ in range(order)]
    with ExitStack() as stack:
        for accumulator in accumulators:
            stack.enter_context(accumulator)
        arguments = []
        for x, derivatives in zip(primals, series, strict=True):
            polynomial = np.zeros_like(x)
            for k in range(order, 0, -1):  # not a power of t, which is 0
                polynomial = (polynomial + derivatives[k - 1]) * (t / np.array(k, dtype))
            arguments.append(x + polynomial)
        value = f(*arguments)
        results, y = [], value
        for accumulator in reversed(accumulators):
            y = None if y is None else accumulator.jvp(y)
            results.append(np.zeros(value.shape) if y is None else y.numpy())
    return value.numpy(), results


def random_series(rng, x, order):
    """Draw derivatives of a curve through x."""
    draws = [rng.normal(size=np.shape(x)) for _ in range(order)]
    if np.asarray(x).dtype.kind == "c":
        draws = [draw + 1j * rng.normal(size=np.shape(x)) for draw in draws]
    return [np.asarray(draw, np.asarray(x).dtype) for draw in draws]


def check(f, *primals, order=4, rtol=1e-9):
    rng = np.random.default_rng(0)
    series = [random_series(rng, x, order) for x in primals]
    with np.errstate(all="ignore"):
        value, derivatives = cytape.jet(f, primals, series)
        expected_value, expected = nested(f, primals, series)
    np.testing.assert_allclose(value, expected_value, rtol=rtol)
    assert len(derivatives) == order
    for derivative, reference in zip(derivatives, expected, strict=True):
        scale = np.abs(reference).max(initial=1e-9)
        np.testing.assert_allclose(derivative / scale, reference / scale, rtol=rtol, atol=rtol)
        assert derivative.dtype == value.dtype
        assert derivative.shape == value.shape


def line(f, x, order=ORDER):
    """Derivatives of a function of one number."""
    return cytape.jet(f, x, [1.0] + [0.0] * (order - 1))[1]


# -- values ----------------------------------------------------------------------------------------

FACTORIALS = [math.factorial(k) for k in range(ORDER + 1)]
TANH = [1, 0, -2, 0, 16, 0, -272, 0]
POLYGAMMA = [-special.polygamma(0, 1), *(special.polygamma(k, 1) for k in range(1, ORDER))]


@each(("f", "x", "expected"), [
    (cnp.exp, 0.0, [1] * ORDER), (cnp.expm1, 0.0, [1] * ORDER),
    (cnp.exp2, 0.0, [math.log(2) ** k for k in range(1, ORDER + 1)]),
    (cnp.sin, 0.0, [1, 0, -1, 0] * 2), (cnp.cos, 0.0, [0, -1, 0, 1] * 2),
    (cnp.sinh, 0.0, [1, 0] * 4), (cnp.tanh, 0.0, TANH), (cnp.tan, 0.0, np.abs(TANH)),
    (cnp.arctan, 0.0, [1, 0, -2, 0, 24, 0, -720, 0]),
    (cnp.arcsin, 0.0, [1, 0, 1, 0, 9, 0, 225, 0]),
    (cnp.arctanh, 0.0, [1, 0, 2, 0, 24, 0, 720, 0]),
    (cnp.log, 1.0, [(-1) ** k * FACTORIALS[k] for k in range(ORDER)]),
    (cnp.log1p, 0.0, [(-1) ** k * FACTORIALS[k] for k in range(ORDER)]),
    (lambda x: 1 / (1 - x), 0.0, FACTORIALS[1:]),
    (lambda x: cnp.reciprocal(1 - x), 0.0, FACTORIALS[1:]),
    (cnp.sqrt, 1.0, [1 / 2, -1 / 4, 3 / 8, -15 / 16, 105 / 32, -945 / 64, 10395 / 128,
                     -135135 / 256]),
    (cnp.square, 3.0, [6, 2, 0, 0, 0, 0, 0, 0]),
    (lambda x: x**3, 0.0, [0, 0, 6, 0, 0, 0, 0, 0]),
    (lambda x: x**3.0, 2.0, [12, 12, 6, 0, 0, 0, 0, 0]),
    (lambda x: x**-1, 1.0, [(-1) ** k * FACTORIALS[k] for k in range(1, ORDER + 1)]),
    (lambda x: x**0, 0.0, [0] * ORDER),
    (lambda x: x * x * x, 0.0, [0, 0, 6, 0, 0, 0, 0, 0]),
    (lambda x: x**x, 1.0, [1, 2, 3, 8, 10, 54, -42, 944]),
    (lambda x: cnp.float_power(x, x), 1.0, [1, 2, 3, 8, 10, 54, -42, 944]),
    (lambda x: cnp.maximum(cnp.sqrt(x), 1.0), 0.0, [0] * 8),
    (lambda x: 2.0**x, 0.0, [math.log(2) ** k for k in range(1, ORDER + 1)]),
    (lambda x: 1 / (1 + cnp.exp(-x)), 0.0, [1 / 4, 0, -1 / 8, 0, 1 / 4, 0, -17 / 16, 0]),
    (cytape.nn.sigmoid, 0.0, [1 / 4, 0, -1 / 8, 0, 1 / 4, 0, -17 / 16, 0]),
    (lambda x: cnp.logaddexp(x, 0.0), 0.0, [1 / 2, 1 / 4, 0, -1 / 8, 0, 1 / 4, 0, -17 / 16]),
    (lambda x: cnp.logaddexp(0.0, x), 0.0, [1 / 2, 1 / 4, 0, -1 / 8, 0, 1 / 4, 0, -17 / 16]),
    (cnp.abs, -2.0, [-1] + [0] * 7),
    (lambda x: cnp.maximum(x, 0.0), 0.5, [1] + [0] * 7),
    (lambda x: cnp.maximum(x, 0.0), -0.5, [0] * 8),
    (lambda x: cnp.where(x > 0, x**2, cnp.log(-x)), -1.0,
     [-FACTORIALS[k] for k in range(ORDER)]),
    (lambda x: cnp.floor(x) * x, 2.5, [2] + [0] * 7),
    (lambda x: cnp.floor(x), 2.5, [0] * 8),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::cytape.errors.UnconnectedGradientWarning")  # of floor
def test_closed_forms(f, x, expected):
    np.testing.assert_allclose(line(f, x), expected, rtol=1e-12, atol=1e-12)


@each(power=[cnp.power, cnp.float_power], exponent=[0.0, 1.0, 2.0, 3.0, -1.0])
def test_a_power_whose_exponent_moves_through_an_integer(power, exponent):
    still, moving = [0.0] * ORDER, [1.0] + [0.0] * (ORDER - 1)
    by_logarithm = lambda x, y: cnp.exp(y * cnp.log(x))  # noqa: E731
    for series in ((still, moving), (moving, moving)):
        _, derivatives = cytape.jet(power, (2.0, exponent), series)
        _, expected = cytape.jet(by_logarithm, (2.0, exponent), series)
        np.testing.assert_allclose(derivatives, expected, rtol=1e-10, atol=1e-10)


@each("spec, case, dtype", [
    (spec, spec.cases[index], dtype)
    for spec in FAMILIES["elementwise"]
    for index in (0, 3)
    for dtype in ("float64", "complex128")
    if spec.differentiable is not False and spec.op in OPS and index < len(spec.cases)
    and dtype in spec.dtypes
])
def test_every_elementwise_op_against_nested_forward_mode(spec, case, dtype):
    against_nested(spec, case, dtype)


def against_nested(spec, case, dtype, order=3):
    inputs = spec.draw(case, dtype)
    moving = [i for i, x in enumerate(inputs) if spec.has_gradient(i, x)]

    def f(*arguments):
        operands = list(inputs)
        for i, argument in zip(moving, arguments, strict=True):
            operands[i] = argument
        result = spec.fn(*operands, **case.kwargs)
        return result if isinstance(result, cytape.Tensor) else result[0]

    check(f, *[inputs[i] for i in moving], order=order, rtol=1e-8)


@grouped("spec", [
    (family, str(spec), (spec,), i % 3 > 0 or not is_sampled(spec))
    for family, specs in FAMILIES.items() if family != "elementwise"
    for i, spec in enumerate(specs) if spec.differentiable is not False and spec.order == 2
])  # fmt: skip
def test_all_other_ops_against_nested_forward_mode(spec):
    for case in spec.cases[:3]:
        if any(spec.has_gradient(i, x) for i, x in enumerate(spec.draw(case, "float64"))):
            if not spec.third:
                with pytest.raises(NotDifferentiableError, match="has no third derivative"):
                    against_nested(spec, case, "float64")
            against_nested(spec, case, "float64", order=3 if spec.third else 2)


def mlp(x, w, b, v):
    hidden = cnp.tanh(x @ w + b)
    logits = cytape.nn.softmax(hidden @ v)
    return cnp.sum(cnp.log(logits)) + cnp.mean(hidden**2) + cnp.max(hidden) * cnp.std(logits)


def test_a_network():
    rng = np.random.default_rng(1)
    shapes = (5, 3), (3, 4), (4,), (4, 2)
    check(mlp, *[rng.normal(size=shape) for shape in shapes], order=5)


def test_high_order_of_a_composition():
    f = lambda x: cnp.exp(cnp.sin(x)) / (1 + cnp.sqrt(x) * cnp.arctan(x))  # noqa: E731
    check(f, np.array([0.3, 0.7]), order=7)


def test_broadcasting_0d_and_empty():
    rng = np.random.default_rng(2)
    check(lambda x, y: cnp.hypot(x, y) * x / y + x, rng.uniform(1, 2, (3, 1)), rng.uniform(1, 2, 4))
    check(lambda x, y: x**y, np.array(1.5), rng.uniform(1, 2, 4))
    check(lambda x: x + np.ones(4), rng.uniform(1, 2, (3, 1)))
    check(lambda x: np.ones(4) / x, rng.uniform(1, 2, (3, 1)))
    check(lambda x: cnp.tanh(x) * x, np.ones((0, 2)))
    value, (first, second) = cytape.jet(cnp.sin, 0.5, [1.0, 0.0])
    assert type(value) is type(first) is type(second) is np.float64


@each("dtype", ["float16", "float32", "complex64"])
def test_the_dtype_stays(dtype):
    x = np.array([0.3, 0.6], dtype)
    for f in (
        cnp.tanh, lambda x: x**2.5, lambda x: x * 2 / (x + 1), cnp.sin, cnp.log, np.copy,
        lambda x: cnp.where(x.real > 0.5, x, 2),
        lambda x: cnp.concatenate([x, [1, 2]]).astype(dtype),
    ):
        value, derivatives = cytape.jet(f, x, [np.ones(2)] + [np.zeros(2)] * 3)
        _, expected = cytape.jet(
            f, x.astype("complex128" if "c" in dtype else float), [np.ones(2)] + [np.zeros(2)] * 3)
        assert value.dtype == dtype
        assert all(derivative.dtype == dtype for derivative in derivatives)
        for derivative, exact in zip(derivatives, expected, strict=True):
            scale = np.abs(exact).max()
            assert np.abs(derivative - exact).max() < 50 * np.finfo(dtype).eps * (scale + 1)


def test_complex_numbers_and_functions_that_are_not_holomorphic():
    z = np.array([1 + 2j, -0.5 + 0.3j])
    check(lambda z: cnp.abs(z) ** 2 + cnp.real(z) * cnp.imag(z), z)
    check(lambda z: cnp.exp(z) / z, z)
    check(lambda z: z * cnp.conj(z) + cnp.angle(z), z)
    check(lambda x: cnp.real(cnp.exp(1j * x)), np.array([0.3, 0.4]))


def test_the_cost_is_polynomial():
    # Like sin and cos, of which each needs the other.
    calls = []

    def partial_of_twin(y, x):
        calls.append(1)
        return -sine(x)

    number = len(OPS)
    sine = elementwise(f"DeclaredJetSine{number}", np.sin, lambda y, x: cosine(x))
    cosine = elementwise(f"DeclaredJetCosine{number}", np.cos, partial_of_twin)
    line(sine, 0.3, 16)
    assert len(calls) == 8


def test_an_order_that_nested_forward_mode_would_never_reach():
    np.testing.assert_allclose(
        line(cnp.sin, 0.0, 40), [0 if k % 2 else 1 - k % 4 for k in range(40)])
    logistic = line(lambda x: cnp.logaddexp(x, 0.0), 0.0, 24)
    np.testing.assert_allclose(logistic[1], 0.25)
    np.testing.assert_allclose(logistic[2::2], 0, atol=1e-3)
    # (2**k - 1) * B_k / k
    np.testing.assert_allclose(logistic[19], (2**20 - 1) * special.bernoulli(20)[20] / 20)


def test_intermediate_results_and_their_series_die_early():
    counts = []

    def f(x):
        for _ in range(20):
            x = cnp.tanh(x)
            x = cytape.nn.softmax(cnp.sum(x) * x) @ np.eye(3)
            counts.append(live_tensors())
        return x

    cytape.jet(f, np.ones(3), np.zeros((4, 3)))
    assert max(counts[2:]) == min(counts[2:])


# -- structures and types --------------------------------------------------------------------------


def test_arguments_and_results_may_be_structures():
    Point = namedtuple("Point", "x y")

    def f(p, scale):
        return {"product": p.x * p.y * scale["s"], "constant": 3.0, "list": [p.x, (p.y,)]}

    value, (first, second) = cytape.jet(
        f, (Point(2.0, 3.0), {"s": 1.0}),
        ([Point(1.0, 0.0), Point(0.0, None)], [{"s": None}, {"s": 1.0}]))
    assert value == {"product": 6.0, "constant": 3.0, "list": [2.0, (3.0,)]}
    assert first == {"product": 3.0, "constant": 0.0, "list": [1.0, (0.0,)]}
    assert second == {"product": 6.0, "constant": 0.0, "list": [0.0, (0.0,)]}
    value, (first,) = cytape.jet(lambda p: p[0] * p[1], [2.0, 3.0], [[1.0, 1.0]])
    assert (value, first) == (6.0, 5.0)


def test_array_likes_and_rows_of_an_array():
    x = np.array([1.0, 2.0])
    for derivatives in ([[1, 2], [0, 0]], np.array([[1.0, 2.0], [0.0, 0.0]]), ([1, 2], None)):
        _, (first, second) = cytape.jet(lambda x: x**2, x, derivatives)
        np.testing.assert_array_equal(first, [2, 8])
        np.testing.assert_array_equal(second, [2, 8])


def test_tensors_in_tensors_out():
    for x, one in ((cytape.constant(2.0), 1.0), (2.0, cytape.constant(1.0)),
                   (cytape.Variable(2.0), 1.0)):  # fmt: skip
        value, derivatives = cytape.jet(lambda x: x**2, x, [one, 0.0])
        assert all(type(result) is cytape.Tensor for result in (value, *derivatives))
        assert [float(derivative) for derivative in derivatives] == [4.0, 2.0]


def test_arrays_are_the_callers_own():
    x = np.array([1.0, 2.0])
    tangent = np.array([1.0, 1.0])
    value, (first, second) = cytape.jet(lambda x: x, x, [tangent, tangent])
    value += 1
    first += 1
    second += 2
    assert x.tolist() == [1.0, 2.0]
    assert tangent.tolist() == [1.0, 1.0]


def test_results_independent_of_the_primals_have_zeros():
    c = cytape.constant([1.0, 2.0])
    with pytest.warns(UnconnectedGradientWarning):
        value, (first, second) = cytape.jet(
            lambda x: (c * 2, np.ones(3), 7, x > 0, cytape.stop_gradient(x)), 1.0, [1.0, 0.0])
    assert [np.shape(y) for y in value] == [(2,), (3,), (), (), ()]
    for derivative in (first, second):
        assert not any(np.any(y) for y in derivative)
        assert [np.shape(y) for y in derivative] == [(2,), (3,), (), (), ()]


def test_a_tensor_that_is_also_reached_another_way_is_a_constant_there():
    x = cytape.constant(3.0)
    _, (first, second) = cytape.jet(lambda y: x * y, x, [1.0, 1.0])
    assert (float(first), float(second)) == (3.0, 3.0)
    _, (first, second) = cytape.jet(lambda y, z: y * z, (x, x), ([x, x], [0.0, 0.0]))
    assert (float(first), float(second)) == (9.0, 9.0)


# -- together with tapes, accumulators and jets ----------------------------------------------------


def test_gradient_of_a_jet():
    x = cytape.Variable(0.4)
    with cytape.GradientTape() as tape:
        _, derivatives = cytape.jet(lambda x: cnp.exp(x) * cnp.sin(x), x, [1.0, 0.0, 0.0])
    _, expected = cytape.jet(lambda x: cnp.exp(x) * cnp.sin(x), 0.4, [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(tape.gradient(derivatives[2], x), expected[3])


@each("f", [
    lambda x: cnp.sum(cytape.nn.softmax(x) * x), lambda x: cnp.sum(x[:2] ** x[1:]),
    lambda x: cnp.prod(x) / cnp.std(x),
    lambda x: (x @ x) * cnp.max(x) + cnp.sum(cnp.logaddexp(x, x[0])),
    lambda x: cnp.einsum("i,i,j->", x, x, x),
])
def test_gradient_of_a_jet_in_all_that_it_depends_on(f):
    x = np.array([0.7, 1.2, 0.4])
    v = np.array([0.1, -0.3, 0.8])

    def last(x, v):
        return cytape.jet(f, x, [v, np.zeros(3), np.zeros(3)])[1][2]

    gx, gv = cytape.grad(last, (0, 1))(x, v)
    _, ahead = cytape.jet(f, x, [v, *np.zeros((3, 3))])
    np.testing.assert_allclose(gx @ v, ahead[3], rtol=1e-9)  # the fourth derivative along v
    np.testing.assert_allclose(gv @ v, 3 * ahead[2], rtol=1e-9)  # Euler: homogeneous of order 3


def test_accumulator_around_a_jet():
    x = cytape.constant(0.4)
    with cytape.ForwardAccumulator(x, 1.0) as accumulator:
        _, derivatives = cytape.jet(cnp.tanh, x, [1.0, 0.0, 0.0])
    _, expected = cytape.jet(cnp.tanh, 0.4, [1.0, 0.0, 0.0, 0.0])
    jvps = [float(accumulator.jvp(derivative)) for derivative in derivatives]
    np.testing.assert_allclose(jvps, expected[1:])


def test_jet_of_a_jet():
    def second(x):
        return cytape.jet(lambda y: cnp.sin(y) * x, x, [1.0, 0.0])[1][1]  # -sin(x) * x

    np.testing.assert_allclose(line(second, 0.3, 3), line(lambda x: -cnp.sin(x) * x, 0.3, 3))


def test_jet_of_a_gradient():
    def f(x):
        return cnp.sum(cnp.exp(x[0] * x[1]) + cnp.tanh(x) @ cnp.ones_like(x) / x[1])

    x, v = np.array([0.3, 0.8]), np.array([1.0, -2.0])
    series = [v, *np.zeros((3, 2))]
    _, derivatives = cytape.jet(cytape.grad(f), x, series)
    for order, derivative in enumerate(derivatives, 1):
        gradient = cytape.grad(lambda x: cytape.jet(f, x, series)[1][order - 1])(x)  # noqa: B023
        np.testing.assert_allclose(derivative, gradient)
    accumulated = []

    def by_accumulator(x):
        accumulated.append(1)
        return tangent(f, x, v)

    _, jvps = cytape.jet(by_accumulator, x, series)
    _, expected = cytape.jet(f, x, [*series, np.zeros(2)])
    np.testing.assert_allclose(jvps, expected[1:])


def test_custom_gradients():
    @cytape.custom_gradient
    def cosine(x):
        sine = cnp.sin(x)  # the gradient function holds it
        return cytape.stop_gradient(cnp.cos(x)), lambda dy: -dy * sine

    np.testing.assert_allclose(line(cosine, 0.3, 5), line(cnp.cos, 0.3, 5))
    check(lambda x: cosine(x * x) * x, np.array([0.3, 0.4]))
    recomputed = cytape.recompute_grad(lambda x: cnp.tanh(cnp.sin(x)))
    expected = line(lambda x: cnp.tanh(cnp.sin(x)), 0.3, 5)
    np.testing.assert_allclose(line(recomputed, 0.3, 5), expected)
    x = cytape.constant(0.3)
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = cosine(x) * x
        derivatives = cytape.jet(lambda x: cosine(x) * x, x, [1.0, 0.0, 0.0])[1]
    expected = line(lambda x: cnp.cos(x) * x, 0.3, 4)
    np.testing.assert_allclose(tape.gradient(y, x), expected[0])
    np.testing.assert_allclose([tape.gradient(d, x) for d in derivatives], expected[1:])


def test_custom_jvps():
    @cytape.custom_jvp
    def tangent(x, y):
        return cytape.stop_gradient(cnp.tan(x) * y)

    @tangent.defjvp
    def tangent_jvp(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        z = tangent(x, y)
        return z, (1 + cnp.tan(x) ** 2) * y * dx + cnp.tan(x) * dy

    x, y = np.array([0.3, 0.4]), np.array([1.0, 2.0])
    series = [x, y, x], [y, y, x]
    _, derivatives = cytape.jet(tangent, (x, y), series)
    _, expected = cytape.jet(lambda x, y: cnp.tan(x) * y, (x, y), series)
    np.testing.assert_allclose(derivatives, expected)


def test_a_users_ops():
    number = len(OPS)
    cube = general(
        f"DeclaredJetCube{number}", lambda x: x**3, lambda op, g: 3 * op.inputs[0] ** 2 * g)
    exponential = general(
        f"DeclaredJetExp{number}", np.exp, jvp=lambda op, t: op.outputs[0] * t, saved_outputs=(0,))
    np.testing.assert_allclose(line(cube, 2.0, 4), [12, 12, 6, 0])
    np.testing.assert_allclose(line(exponential, 0.0, 6), np.ones(6))
    check(lambda x: cube(exponential(x)), np.array([0.1, 0.2]))


def test_one_tensor_as_the_derivative_of_two_primals():
    product = general(
        f"DeclaredJetProduct{len(OPS)}", np.multiply,
        jvp=lambda op, dx, dy: dx * op.inputs[1] + op.inputs[0] * dy,
    )  # fmt: skip
    one = cytape.constant(1.0)
    _, derivatives = cytape.jet(product, (2.0, 3.0), ([one, 5.0], [one, 7.0]))
    assert [float(derivative) for derivative in derivatives] == [5.0, 2 + 5 * 3 + 2 * 7]
    assert line(lambda x: product(x, x), 3.0, 3) == [6.0, 2.0, 0.0]


def test_variables_that_stand_still():
    kernel = cytape.Variable([[1.0, 2.0], [0.5, 1.0]])
    x = np.array([0.1, 0.2])
    series = [np.ones(2), np.zeros(2), np.zeros(2)]
    _, derivatives = cytape.jet(lambda x: cnp.tanh(x @ kernel), x, series)
    _, expected = cytape.jet(lambda x: cnp.tanh(x @ kernel.numpy()), x, series)
    np.testing.assert_allclose(derivatives, expected)
