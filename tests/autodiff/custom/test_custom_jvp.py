"""custom_jvp."""

import copy
import gc
import pickle

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, InvalidGradientError, UnconnectedGradientWarning
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.cases import each


def with_rule(f, rule):
    """Return f with a JVP rule."""
    f = cytape.custom_jvp(f)
    f.defjvp(rule)
    return f


def derivative(f):
    return lambda x: cytape.jvp(f, (x,), (1.0,))[1]


@cytape.custom_jvp
def wave(x):
    """Make a wave."""
    return np.sin(x) * x


@wave.defjvp
def wave_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return wave(x), dx * (np.cos(x) * x + np.sin(x))


# A rule that is not the derivative of its function shows that it has been used.
doubled = with_rule(lambda x: 2 * x, lambda primals, tangents: (None, 7 * tangents[0]))


@cytape.custom_jvp
def product_and_sum(a, b):
    return a * b, {"sum": a + b}


@product_and_sum.defjvp
def product_and_sum_jvp(primals, tangents):
    (a, b), (da, db) = primals, tangents
    return product_and_sum(a, b), (da * b + a * db, {"sum": da + db})


# -- one derivative --------------------------------------------------------------------------------


def test_the_rule_serves_both_modes():
    x = np.array([0.3, 0.7])
    value, tangent = cytape.jvp(doubled, (x,), (np.array([1.0, 10.0]),))
    assert value.tolist() == [0.6, 1.4]
    assert tangent.tolist() == [7.0, 70.0]
    (gradient,) = cytape.vjp(doubled, x)[1](np.array([1.0, 10.0]))
    assert gradient.tolist() == [7.0, 70.0]
    assert cytape.jacfwd(doubled)(x).tolist() == [[7.0, 0.0], [0.0, 7.0]]


def test_a_rule_whose_transpose_is_another_matrix():
    rng = np.random.default_rng(0)
    a, x, direction, weights = (rng.normal(size=shape) for shape in [(2, 3), 3, 3, 2])
    f = with_rule(lambda x: a @ x**2, lambda p, t: (None, a @ (2 * p[0] * t[0])))
    np.testing.assert_allclose(cytape.jvp(f, (x,), (direction,))[1], a @ (2 * x * direction))
    np.testing.assert_allclose(cytape.vjp(f, x)[1](weights)[0], 2 * x * (a.T @ weights))


def test_several_arguments_and_outputs():
    (product, rest), (tangent, of_rest) = cytape.jvp(product_and_sum, (2.0, 3.0), (1.0, 10.0))
    assert (product, rest) == (6.0, {"sum": 5.0})
    assert (tangent, of_rest) == (23.0, {"sum": 11.0})
    _, pull_back = cytape.vjp(product_and_sum, 2.0, 3.0)
    assert pull_back((1.0, {"sum": 0.0})) == (3.0, 2.0)
    assert pull_back((0.0, {"sum": 1.0})) == (1.0, 1.0)
    assert pull_back((10.0, {"sum": 1.0})) == (31.0, 21.0)
    # An output that is not used, arguments that stand still, the same argument twice:
    assert cytape.grad(lambda x: product_and_sum(x, x)[0])(3.0) == 6.0
    assert cytape.grad(lambda x: product_and_sum(x, 5.0)[0])(3.0) == 5.0
    assert derivative(lambda x: product_and_sum(5.0, x)[1]["sum"])(3.0) == 1.0
    assert derivative(lambda x: product_and_sum(x, x)[0])(3.0) == 6.0


def test_structures_integers_and_what_is_no_number():
    seen = []

    @cytape.custom_jvp
    def scaled(parameters, n, text, *, power=1):
        return {"y": [parameters["x"] * n]}, np.argmax(parameters["x"])

    @scaled.defjvp
    def rule(primals, tangents, **options):
        seen.append((primals, tangents, options))
        return None, ({"y": [tangents[0]["x"] * primals[1]]}, None)

    def f(x):
        values, top = scaled({"x": x, "unused": 2.5}, cytape.constant(3), "text", power=2)
        assert int(top) == 1
        return values["y"][0]

    x = np.array([1.0, 2.0])
    assert cytape.jvp(f, (x,), (np.array([1.0, 10.0]),))[1].tolist() == [3.0, 30.0]
    ((parameters, n, text), (of_parameters, of_n, of_text), options) = seen.pop()
    assert parameters["x"].numpy().tolist() == [1.0, 2.0]
    assert (parameters["unused"], int(n), text, options) == (2.5, 3, "text", {"power": 2})
    assert of_parameters["x"].numpy().tolist() == [1.0, 10.0]
    assert of_parameters["unused"] == 0.0  # it stands still
    assert (of_n, of_text) == (None, None)  # these can have no tangent
    assert cytape.vjp(f, x)[1](np.array([1.0, 10.0]))[0].tolist() == [3.0, 30.0]
    assert seen[0][1][1:] == (None, None)


def test_a_tensor_that_stands_still_has_a_zero_tangent():
    seen = []

    def rule(primals, tangents):
        seen.append(tangents[1])
        return None, primals[0] * tangents[1] + tangents[0] * primals[1]

    f = with_rule(lambda x, y: x * y, rule)
    still = cytape.constant(np.array([3.0, 4.0], np.float32))
    assert derivative(lambda x: np.sum(f(x, still)))(2.0) == 7.0
    assert seen[0].numpy().tolist() == [0.0, 0.0]
    assert seen[0].dtype == np.float32


def test_outputs_without_a_derivative():
    f = with_rule(lambda x: (x * x, np.argmax(x)), lambda p, t: (None, (2 * p[0] * t[0], None)))
    x = np.array([1.0, 2.0])
    (value, top), (tangent, of_top) = cytape.jvp(f, (x,), (np.ones(2),))
    assert (top, of_top) == (1, 0)
    assert tangent.tolist() == [2.0, 4.0]
    assert cytape.grad(lambda x: np.sum(f(x)[0]))(x).tolist() == [2.0, 4.0]
    stopped = with_rule(lambda x: x * x, lambda p, t: (None, None))
    at = cytape.constant(3.0)
    assert ways.tangent(stopped, at, 1.0) is None
    with pytest.warns(UnconnectedGradientWarning):
        assert cytape.grad(stopped)(3.0) == 0.0


@each(dtype=[np.float32, np.float64, np.complex64, np.complex128], shape=[(), (0, 2), (3,)])
def test_dtype_and_shape_are_kept(dtype, shape):
    # The rule computes in double precision.
    double = np.result_type(dtype, np.float64)
    f = with_rule(lambda x: x * x, lambda p, t: (None, 2 * p[0].astype(double) * t[0]))
    x = np.full(shape, 3, dtype)
    value, tangent = cytape.jvp(f, (x,), (np.ones(shape, dtype),))
    (gradient,) = cytape.vjp(f, x)[1](np.ones(shape, dtype))
    assert value.dtype == tangent.dtype == gradient.dtype == dtype
    np.testing.assert_array_equal(tangent, 2 * x)
    np.testing.assert_array_equal(gradient, 2 * x)


def test_complex_derivatives_follow_the_conventions_of_both_modes():
    square = with_rule(lambda z: z * z, lambda p, t: (None, 2 * p[0] * t[0]))
    z = 7 + 3j
    assert cytape.jvp(square, (z,), (1j,))[1] == 2 * z * 1j
    assert cytape.grad(square)(z) == np.conj(2 * z)


def test_where_the_derivative_is_infinite():
    root = with_rule(np.sqrt, lambda p, t: (None, t[0] / (2 * root(p[0]))))
    with np.errstate(divide="ignore"):
        assert derivative(root)(0.0) == np.inf
        assert cytape.grad(root)(0.0) == np.inf


@each("within", [lambda f: f, cytape.function], ids=["eager", "traced"])
@each(("rule", "refused"), [
    (lambda f, x, dx: f(dx), cytape.grad),
    (lambda f, x, dx: f(x * dx) + f(dx), cytape.grad),
    (lambda f, x, dx: cytape.grad(f)(x) * dx, cytape.grad),
    (lambda f, x, dx: cytape.grad(f)(x) * dx, derivative),
], ids=["applied", "applied twice", "grad", "grad in forward mode"])  # fmt: skip
def test_a_rule_that_needs_its_own_derivative(rule, refused, within):
    f = with_rule(lambda x: 2 * x, lambda p, t: (None, rule(f, *p, *t)))
    for _ in range(2):
        with pytest.raises(RecursionError, match="rule of <lambda> needs its own derivative"):
            refused(within(f))(3.0)
    assert float(cytape.grad(wave)(0.0)) == 0.0


def test_a_rule_may_apply_its_function_to_smaller_problems():
    def rule(primals, tangents, n):
        (dx,) = tangents
        return None, 2 * f(dx, n=n - 1) if n else 3 * dx

    f = with_rule(lambda x, n: 3 * 2**n * x, rule)
    assert float(cytape.grad(lambda x: f(x, n=30))(1.0)) == 3 * 2**30


def test_a_rule_may_end_by_values():
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        return None, cytape.jvp(f, (x / 2,), (dx,))[1] if float(x) > 1 else 3 * dx

    f = with_rule(lambda x: 3 * x, rule)
    assert cytape.jvp(f, (2.0**20,), (1.0,))[1] == 3


# -- higher order ----------------------------------------------------------------------------------


def test_a_custom_rule_in_a_custom_rule():
    cosine = with_rule(np.cos, lambda p, t: (None, -3 * np.sin(p[0]) * t[0]))
    sine = with_rule(np.sin, lambda p, t: (None, 2 * cosine(p[0]) * t[0]))
    for first in (derivative, cytape.grad):
        assert first(sine)(0.3) == pytest.approx(2 * np.cos(0.3))
        for second in (derivative, cytape.grad):
            assert second(first(sine))(0.3) == pytest.approx(-6 * np.sin(0.3))


# -- variables -------------------------------------------------------------------------------------


def test_variables_as_arguments():
    v = cytape.Variable(0.7)
    for mode in ways.ALL_MODES.values():
        found, wanted = (mode(f, [v], [1.0]) for f in (wave, lambda x: np.sin(x) * x))
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    with cytape.GradientTape() as tape:
        y = wave(v)
        assert tape.watched_variables() == (v,)
    assert float(tape.gradient(y, v)) == pytest.approx(np.cos(0.7) * 0.7 + np.sin(0.7))


def test_variables_that_are_no_arguments():
    v, held = cytape.Variable(3.0), cytape.Variable(5.0, trainable=False)
    reads = with_rule(lambda x: x * v, lambda p, t: (None, t[0] * v))
    for x in (1.0, cytape.constant(1.0)):
        with pytest.raises(TypeError, match="reads Variable.*not among its arguments: pass it as"):
            reads(x)
    passes = with_rule(lambda x, v: x * v, lambda p, t: (None, t[0] * p[1] + p[0] * t[1]))
    tape, y = ways.taped(lambda: passes(2.0, v))
    assert float(tape.gradient(y, v)) == 2.0
    constant = with_rule(lambda x: x * held, lambda p, t: (None, t[0] * held))
    assert derivative(constant)(2.0) == cytape.grad(constant)(2.0) == 5.0


# -- calls -----------------------------------------------------------------------------------------


def test_without_recorders_the_rule_does_not_run():
    def rule(primals, tangents):
        raise AssertionError("the rule ran")

    f = with_rule(lambda x: (x * x, [np.argmax(x)]), rule)
    x = np.array([1.0, 2.0])
    square, [top] = f(x)
    assert type(square) is np.ndarray
    assert top == 1
    square, [top] = f(cytape.constant(x))
    assert type(square) is type(top) is cytape.Tensor
    other = cytape.constant(3.0)
    with cytape.ForwardAccumulator(other, 1.0) as accumulator, cytape.GradientTape() as tape:
        tape.watch(other)
        y, _ = f(cytape.constant(x))
        with cytape.stop_recording():
            f(other)
    assert accumulator.jvp(y) is None
    assert tape.gradient(y, other) is None


def test_reverse_mode_runs_the_rule_in_the_backward_pass_only():
    runs = []
    f = with_rule(lambda x: x, lambda p, t: (runs.append(None), 2 * t[0]))
    x = cytape.constant(1.0)
    tape, y = ways.taped(f, x, persistent=True)
    assert not runs
    for n_runs in (1, 2):
        assert float(tape.gradient(y, x)) == 2.0
        assert len(runs) == n_runs


def test_tensors_must_be_passed_by_position():
    f = with_rule(lambda x, scale=1.0: x * scale, lambda p, t, scale: (None, t[0] * scale))
    assert derivative(lambda x: f(x, scale=3.0))(2.0) == 3.0
    assert cytape.grad(lambda x: f(x, scale=3.0))(2.0) == 3.0
    for scale in (cytape.constant(3.0), cytape.Variable(3.0), [cytape.constant(3.0)]):
        with pytest.raises(TypeError, match="by position"):
            f(2.0, scale=scale)


def test_it_works_as_a_method():
    class Layer:
        scale = 4.0

        @cytape.custom_jvp
        def apply(self, x):
            """Scale."""
            return x * self.scale

        @apply.defjvp
        def apply_jvp(self, primals, tangents):
            return self.apply(*primals), tangents[0] * (self.scale + 1)

    assert Layer().apply(2.0) == 8.0
    assert derivative(Layer().apply)(2.0) == 5.0
    assert cytape.grad(Layer().apply)(2.0) == 5.0
    assert Layer.apply.__doc__ == "Scale."


def test_it_looks_and_pickles_like_the_function():
    assert wave.__name__ == "wave"
    assert wave.__doc__ == "Make a wave."
    assert wave.__wrapped__(0.5) == wave(0.5)
    assert pickle.loads(pickle.dumps(wave)) is wave
    assert copy.deepcopy(wave) is wave
    assert callable(wave_jvp)  # the decorator of the rule returns it as it is
    assert wave_jvp.__name__ == "wave_jvp"


def test_the_result_keeps_nothing_alive_that_is_not_needed():
    x = cytape.constant(np.ones(3))
    gc.collect()
    with ways.watching(x) as tape:
        before = live_tensors()
        y = wave(wave(x))
        assert live_tensors() > before
        del y
        assert live_tensors() == before
        assert tape.gradient(x, x) is not None


# -- rules that will not do ------------------------------------------------------------------------


def test_a_function_without_a_rule():
    @cytape.custom_jvp
    def lonely(x):
        return x

    for x in (1.0, cytape.constant(1.0)):
        with pytest.raises(TypeError, match="lonely has no rule yet.*lonely.defjvp"):
            lonely(x)


@each("returned", [None, 1.0, (1.0,), [1.0, 2.0], (1.0, 2.0, 3.0)])
def test_rules_that_return_no_pair(returned):
    f = with_rule(np.square, lambda primals, tangents: returned)
    for derive in (derivative, cytape.grad):
        with pytest.raises(TypeError, match="JVP rule of square must return a pair"):
            derive(f)(2.0)


@each("tangent", [(1.0,), [1.0, 2.0], {"a": 1.0}])
def test_tangents_structured_unlike_the_outputs(tangent):
    f = with_rule(np.square, lambda primals, tangents: (None, tangent))
    for derive in (derivative, cytape.grad):
        with pytest.raises(ValueError, match="structures differ"):
            derive(f)(2.0)


@each("tangent", [1.0, np.ones(3), np.ones((1, 2))])
def test_tangents_of_the_wrong_shape(tangent):
    f = with_rule(np.square, lambda primals, tangents: (None, tangent))
    message = r"JVP rule of square returned a tangent of shape .* for an output of shape \(2,\)"
    x = np.ones(2)
    with pytest.raises(InvalidGradientError, match=message):
        cytape.jvp(f, (x,), (x,))
    with pytest.raises(InvalidGradientError, match=message):
        cytape.vjp(f, x)[1](x)


def test_rules_that_cannot_be_transposed():
    def foreign(x):
        return x.numpy() if isinstance(x, cytape.Tensor) else x

    f = with_rule(np.square, lambda p, t: (None, 2 * foreign(p[0]) * foreign(t[0])))
    assert derivative(f)(3.0) == 6.0
    with pytest.raises(DetachedError, match="JVP rule of square cannot be transposed"):
        cytape.grad(f)(3.0)
    constant = with_rule(np.square, lambda p, t: (None, np.zeros(2)))
    with pytest.warns(UnconnectedGradientWarning):
        assert cytape.vjp(constant, np.ones(2))[1](np.ones(2))[0].tolist() == [0.0, 0.0]


def test_an_error_in_a_rule_leaves_no_recorder_behind():
    seen = []

    def rule(primals, tangents):
        seen.extend(tangents)
        raise KeyError("rule")

    f = with_rule(np.square, rule)
    v = cytape.Variable(3.0)
    with cytape.GradientTape() as tape:
        for derive in (derivative, cytape.grad):
            with pytest.raises(KeyError, match="rule"):
                derive(f)(2.0)
        y = cnp.square(v)
    assert len(seen) == 2
    assert [float(np.asarray(tangent)) for tangent in seen] == [1.0, 1.0]  # no recorder has them
    assert float(tape.gradient(y, v)) == 6.0
    assert derivative(np.square)(2.0) == 4.0
    assert type(cytape.jvp(np.square, (2.0,), (1.0,))[1]) is np.float64


def test_a_recorded_tensor_from_a_closure_is_refused():
    def scaled(w):
        @cytape.custom_jvp
        def f(x):
            return x * w

        @f.defjvp
        def rule(primals, tangents):
            return f(*primals), tangents[0] * w

        return f(cytape.constant(2.0))

    for transform in (cytape.grad, lambda f: lambda w: cytape.jvp(f, (w,), (1.0,))):
        with pytest.raises(TypeError, match="f has a custom JVP, but depends on a tensor that is"):
            transform(scaled)(3.0)
    assert float(scaled(cytape.constant(3.0))) == 6.0  # no recorder is active
