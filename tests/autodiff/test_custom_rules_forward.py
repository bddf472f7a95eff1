"""Forward mode through rules of one's own: custom_gradient, recompute_grad, register_jvp."""

import gc
import itertools

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import NotDifferentiableError
from cytape.ops.engine.op_kinds import OPS, general
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.cases import each


def derivative(f):
    return lambda x: cytape.jvp(f, (x,), (1.0,))[1]


def plain_wave(x):
    return np.sin(x) * x


@cytape.custom_gradient
def wave(x):
    return np.sin(x) * x, lambda dy: dy * (np.cos(x) * x + np.sin(x))


@cytape.custom_gradient
def tripled(x):
    """Return x, with three times its gradient."""
    return x, lambda dy: 3.0 * dy


by_jvp = cytape.custom_jvp(plain_wave)
by_jvp.defjvp(lambda primals, tangents: (
    by_jvp(*primals), tangents[0] * (np.cos(primals[0]) * primals[0] + np.sin(primals[0]))))
recomputed = cytape.recompute_grad(plain_wave)
RULED = [wave, by_jvp, recomputed, cytape.recompute_grad(lambda x: recomputed(x * 1.0))]
DERIVATIVES = [derivative, cytape.grad, cytape.jacfwd]


# -- rules of every kind ---------------------------------------------------------------------------


@each(f=RULED, order=[1, 2, 3])
def test_D_3_11_derivatives_in_all_compositions(order, f):
    for transforms in itertools.product(DERIVATIVES, repeat=order):
        found, expected = f, plain_wave
        for transform in transforms:
            found, expected = transform(found), transform(expected)
        assert found(0.7) == pytest.approx(expected(0.7), rel=1e-11)


@each("f", RULED)
def test_hessians_are_those_of_the_plain_function(f):
    x = np.array([0.3, 0.7, 1.1])
    np.testing.assert_allclose(*[
        cytape.hessian(lambda x, g=g: np.sum(g(x)) * np.prod(g(g(x))))(x) for g in (f, plain_wave)])


@each(f=RULED, n_directions=[0, 1, 3])
def test_batches_of_directions(n_directions, f):
    x, batch = np.array([0.3, 0.7]), np.random.default_rng(1).normal(size=(n_directions, 2))
    _, tangents = cytape.jvp(f, (x,), (batch,), use_batch=True)
    assert tangents.shape == (n_directions, 2)
    np.testing.assert_allclose(tangents, batch * (np.cos(x) * x + np.sin(x)))


@pytest.fixture
def declared():
    """Declare ops that are forgotten after the test."""
    before = dict(OPS)
    yield general
    OPS.clear()
    OPS.update(before)


# -- custom_gradient -------------------------------------------------------------------------------


def test_the_gradient_function_is_transposed():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(2, 3))
    runs = []

    @cytape.custom_gradient
    def f(x):
        def grad_fn(dy):
            runs.append(None)
            return 10 * (dy @ matrix)

        return matrix @ x, grad_fn

    x, direction = rng.normal(size=3), rng.normal(size=3)
    value, tangent = cytape.jvp(f, (x,), (direction,))
    np.testing.assert_allclose(value, matrix @ x)
    np.testing.assert_allclose(tangent, 10 * matrix @ direction)
    assert len(runs) == 1
    np.testing.assert_allclose(cytape.jacfwd(f)(x), 10 * matrix)


def test_it_nests_in_forward_mode():
    assert derivative(lambda x: tripled(tripled(x)))(1.0) == 9.0

    @cytape.custom_gradient
    def outer(x):
        return tripled(x) * 2, lambda dy: tripled(dy) * 5

    assert cytape.grad(outer)(1.0) == 5.0
    assert derivative(outer)(1.0) == 15.0  # of its gradient function, the slope by the upstream one


def test_several_arguments_and_outputs():
    @cytape.custom_gradient
    def f(pair, c):
        a, b = pair["a"], pair["b"]
        return (a * c, [b * c]), lambda dx, dy: ({"a": dx * 10 + dy, "b": [dy * 100]}, None)

    a, b, c = (cytape.constant(float(i)) for i in (2, 3, 5))
    with cytape.ForwardAccumulator([a, b, c], [1.0, 7.0, 1000.0]) as accumulator:
        x, [y] = f({"a": a, "b": b}, c)
        only_x = 2 * f({"a": a, "b": b}, c)[0]
    assert float(accumulator.jvp(x)) == 10.0
    assert float(accumulator.jvp(y)) == 701.0
    assert float(accumulator.jvp(only_x)) == 20.0
    with cytape.ForwardAccumulator(c, 1.0) as accumulator:  # its gradient is None
        x, [y] = f({"a": a, "b": b}, c)
    assert accumulator.jvp([x, y]) == [None, None]
    with cytape.ForwardAccumulator(b, 1.0) as accumulator:
        x, [y] = f({"a": a, "b": b}, c)
    assert float(accumulator.jvp(y)) == 100.0
    assert cytape.jvp(lambda a: f({"a": a, "b": 3.0}, 5.0)[1][0], (2.0,), (1.0,))[1] == 1.0


def test_variables_that_are_read_inside():
    v, w = cytape.Variable(3.0), cytape.Variable(5.0)

    @cytape.custom_gradient
    def f(x):
        return x * w * v, lambda dy, variables: (dy * 10, [dy * 20, dy * 30])

    x = cytape.constant(2.0)
    for primals, tangents, expected in (
        ([x, v, w], [1.0, 1.0, 1.0], 60.0), ([w], [2.0], 60.0), ([v, x], [0.5, 0.0], 10.0),
    ):
        assert float(ways.tangent(lambda primals: f(x), primals, tangents)) == expected


def test_integer_arguments_and_outputs():
    @cytape.custom_gradient
    def f(x, n, text):
        return (x * n, np.argmax(x)), lambda dy, _: (dy * 7, dy, dy)

    x, n = cytape.constant([1.0, 2.0]), cytape.constant(3)
    with cytape.ForwardAccumulator(x, np.array([1.0, 10.0])) as accumulator:
        y, top = f(x, n, "text")
    assert accumulator.jvp(y).numpy().tolist() == [7.0, 70.0]
    assert accumulator.jvp(top) is None


def test_a_gradient_function_that_is_not_linear_takes_its_slope_at_ones():
    f = cytape.custom_gradient(lambda x: (2 * x, lambda dy: dy**3))
    assert cytape.jvp(f, (2.0,), (10.0,)) == (4.0, 30.0)


@each("dtype", [np.float32, np.complex64])
def test_dtype_and_convention(dtype):
    double = np.result_type(dtype, np.float64)
    square = cytape.custom_gradient(
        lambda z: (z * z, lambda dy: dy * np.conj(2 * z).astype(double)))
    z = dtype(7 + 3j) if dtype is np.complex64 else dtype(7)
    tangent = cytape.jvp(square, (z,), (dtype(1j) if dtype is np.complex64 else dtype(1),))[1]
    assert type(tangent) is dtype
    assert tangent == 2 * z * (1j if dtype is np.complex64 else 1)


def test_sparse_gradients():
    @cytape.custom_gradient
    def rows(table):
        def grad_fn(dy):
            return cytape.IndexedSlices(10 * dy, cytape.constant([2, 0]), cytape.constant([3, 2]))

        return cytape.gather(table, [2, 0]), grad_fn

    table, direction = np.ones((3, 2)), np.arange(6.0).reshape(3, 2)
    _, tangent = cytape.jvp(rows, (table,), (direction,))
    np.testing.assert_allclose(tangent, 10 * direction[[2, 0]])


@each("grad_fn", [lambda dy: np.zeros(2), lambda dy: cnp.zeros(2), lambda dy: None])
def test_a_gradient_that_is_zero_gives_no_tangent(grad_fn):
    f = cytape.custom_gradient(lambda x: (2 * x, grad_fn))
    x = cytape.constant(np.ones(2))
    with cytape.ForwardAccumulator(x, x) as accumulator:
        y = f(x)
    assert y.numpy().tolist() == [2.0, 2.0]
    assert accumulator.jvp(y) is None


def test_results_that_are_dropped_free_what_they_held():
    x = cytape.constant(np.ones(3))
    gc.collect()
    with cytape.ForwardAccumulator(x, np.ones(3)):
        before = live_tensors()
        y = wave(wave(x))
        del y
        assert live_tensors() == before


# -- recompute_grad --------------------------------------------------------------------------------


def test_D_3_11_recomputed_functions_have_tangents():
    # TensorFlow refuses; here the function runs again.
    runs = []

    def f(x):
        runs.append(None)
        return np.tanh(x * x)

    x = cytape.constant(0.5)
    with cytape.ForwardAccumulator(x, 10.0) as accumulator:
        y = cytape.recompute_grad(f)(x)
    slope = 2 * 0.5 * (1 - np.tanh(0.25) ** 2)
    assert float(accumulator.jvp(y)) == pytest.approx(10 * slope)
    assert len(runs) == 2
    runs.clear()
    tape, y = ways.taped(lambda x: cytape.recompute_grad(f)(x), x)
    assert len(runs) == 1
    with cytape.ForwardAccumulator(x, 10.0):
        gradient = tape.gradient(y, x)
    assert float(gradient) == pytest.approx(slope)
    assert len(runs) == 2


def test_D_3_11_variables_that_are_read_inside():
    v, still = cytape.Variable([1.0, 2.0]), cytape.Variable(3.0, trainable=False)
    plain = lambda x: np.sum(np.sin(x * v) * v * still)  # noqa: E731
    x = cytape.constant(0.5)
    direction = np.array([1.0, 10.0])

    def derivatives(f):
        with cytape.ForwardAccumulator(v, direction) as outer:
            with cytape.ForwardAccumulator([x, v], [0.1, direction]) as inner:
                y = f(x)
            tape, z = ways.taped(f, x)
            gradients = tape.gradient(z, [x, v])
        results = [outer.jvp(y), inner.jvp(y), outer.jvp(inner.jvp(y)), *outer.jvp(gradients)]
        with cytape.GradientTape() as tape:
            with cytape.ForwardAccumulator(x, 1.0) as accumulator:
                y = f(x)
        results.append(tape.gradient(accumulator.jvp(y), v))
        return [result.numpy() for result in results]

    ours = derivatives(cytape.recompute_grad(plain))
    for result, expected in zip(ours, derivatives(plain), strict=True):
        np.testing.assert_allclose(result, expected)
        assert np.any(expected)


def test_D_3_11_structures_keywords_and_integers():
    def f(weights, n, *, scale, power=2):
        return {"y": [(weights["w"] * scale) ** power * n], "top": np.argmax(weights["w"])}

    w, scale, n = cytape.constant([1.0, 2.0]), cytape.constant(3.0), cytape.constant(5)
    with cytape.ForwardAccumulator([w, scale], [np.array([1.0, 0.0]), 10.0]) as accumulator:
        result = cytape.recompute_grad(f)({"w": w}, n, scale=scale, power=3)
    tangents = accumulator.jvp(result)
    np.testing.assert_allclose(tangents["y"][0], [5 * 3 * 9 * (3 + 10), 5 * 3 * 36 * 20])
    assert tangents["top"] is None


@each("shape", [(), (0, 3), (2, 3)])
def test_D_3_11_shapes_and_batches(shape):
    x = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    recomputed = cytape.recompute_grad(plain_wave)
    _, tangent = cytape.jvp(recomputed, (x,), (x,))
    assert tangent.dtype == np.float32
    np.testing.assert_allclose(tangent, cytape.jvp(plain_wave, (x,), (x,))[1], rtol=1e-6)
    for n_directions in (0, 2):
        batch = np.stack([x] * 2)[:n_directions]
        _, tangents = cytape.jvp(recomputed, (x,), (batch,), use_batch=True)
        assert tangents.shape == (n_directions, *shape)
        np.testing.assert_allclose(tangents, np.stack([tangent] * 2)[:n_directions], rtol=1e-6)


def test_D_3_11_the_same_tensor_twice():
    recomputed = cytape.recompute_grad(lambda x, y: x * x * y)
    for x in (cytape.constant(3.0), cytape.Variable(3.0)):
        with cytape.ForwardAccumulator(x, 10.0) as accumulator:
            y = recomputed(x, x)
        assert float(accumulator.jvp(y)) == 270.0


def test_D_3_11_captured_tensors_of_a_recomputed_function_have_tangents():
    x, outside = cytape.constant(2.0), cytape.constant(3.0)
    recomputed = cytape.recompute_grad(lambda x: x * outside)
    with cytape.ForwardAccumulator([x, outside], [1.0, 100.0]) as accumulator:
        y = recomputed(x)
    assert float(accumulator.jvp(y)) == 3.0 + 2.0 * 100.0


# -- rules of ops ----------------------------------------------------------------------------------


def test_D_3_10_a_registered_jvp_wins_over_transposition(declared):
    op = declared("Cubed", lambda x: x**3, vjp=lambda op, dy: 3 * op.inputs[0] ** 2 * dy)
    assert derivative(op)(2.0) == 12.0  # transposed
    assert derivative(derivative(op))(2.0) == derivative(cytape.grad(op))(2.0) == 12.0

    @cytape.register_jvp("Cubed")
    def rule(op, tangent):
        return 100 * tangent

    assert rule(None, 1.0) == 100.0
    assert derivative(op)(2.0) == 100.0
    assert cytape.grad(op)(2.0) == 12.0
    batch = np.array([1.0, 2.0])
    assert cytape.jvp(op, (2.0,), (batch,), use_batch=True)[1].tolist() == [100.0, 200.0]
    with pytest.raises(ValueError, match="'Cubed' has a jvp already"):
        cytape.register_jvp("Cubed")(rule)


def test_D_3_10_a_jvp_alone_serves_forward_mode_only(declared):
    op = declared("Cubed", lambda x: x**3, jvp=lambda op, dx: 3 * op.inputs[0] ** 2 * dx)
    assert derivative(op)(2.0) == derivative(derivative(op))(2.0) == 12.0
    assert cytape.grad(derivative(op))(2.0) == 12.0  # the rule itself consists of other ops
    for f in (cytape.grad(op), derivative(cytape.grad(op)), cytape.grad(cytape.grad(op))):
        with pytest.raises(NotDifferentiableError, match="op 'Cubed' has no gradient"):
            f(2.0)
    assert derivative(np.square)(2.0) == cytape.grad(np.square)(2.0) == 4.0


def test_D_3_10_an_op_without_rules_refuses_both_modes(declared):
    op = declared("Cubed", lambda x: x**3)
    assert float(op(cytape.constant(2.0))) == 8.0
    for transform in (derivative, cytape.grad):
        with pytest.raises(NotDifferentiableError, match="op 'Cubed' has no gradient"):
            transform(op)(2.0)


def test_D_3_10_a_rule_may_hide_an_op_from_one_mode(declared):
    forward_only = declared(
        "ForwardOnly", lambda x: 2 * x, vjp=lambda op, dy: None, jvp=lambda op, dx: 2 * dx)
    backward_only = declared(
        "BackwardOnly", lambda x: 2 * x, vjp=lambda op, dy: 2 * dy, jvp=lambda op, dx: None)
    x = cytape.constant(3.0)
    with ways.watching(x, persistent=True) as tape:
        with cytape.ForwardAccumulator(x, 1.0) as accumulator:
            forward, backward = forward_only(x), backward_only(x)
    assert float(accumulator.jvp(forward)) == float(tape.gradient(backward, x)) == 2.0
    assert accumulator.jvp(backward) is None
    assert tape.gradient(forward, x) is None


def test_D_3_10_recorders_may_be_suspended_one_by_one():
    x = cytape.constant(3.0)
    with ways.watching(x, persistent=True) as tape:
        with cytape.ForwardAccumulator(x, 1.0) as accumulator:
            with tape.stop_recording():
                forward = wave(x)
        backward = wave(x)
    slope = np.cos(3.0) * 3 + np.sin(3.0)
    assert float(accumulator.jvp(forward)) == pytest.approx(slope)
    assert float(tape.gradient(backward, x)) == pytest.approx(slope)
    assert accumulator.jvp(backward) is None
    assert tape.gradient(forward, x) is None


def test_a_vjp_that_leaves_cytape_gives_no_tangent(declared):
    op = declared("Foreign", lambda x: 2 * x, vjp=lambda op, dy: 2 * np.array(dy.item()))
    assert cytape.grad(op)(3.0) == 2.0
    x = cytape.constant(3.0)
    assert ways.tangent(op, x, 1.0) is None


scale = general("DeclaredScaleInPlace", lambda x: x * 2.0)


@cytape.register_jvp("DeclaredScaleInPlace")
def scale_jvp(op, dx):
    dx *= 2.0
    return dx


def test_a_rule_in_a_trace_that_changes_a_tangent_in_place_changes_no_other():
    def f(x):
        return np.sum((scale(x) + x) * np.array([1.0, 10.0]))

    x, dx = np.array([1.0, 2.0]), np.array([1.0, -1.0])
    assert cytape.jvp(cytape.function(f), (x,), (dx,))[1] == -27.0
    assert cytape.function(lambda x, dx: cytape.jvp(f, (x,), (dx,)))(x, dx)[1] == -27.0
