"""numpy_function: calls of functions of arrays, recorded as one op, in all places."""

import math
import re
from collections import namedtuple

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import NotDifferentiableError
from tests import ways
from tests.bodies import traced
from tests.cases import each, sampled

X = np.array([0.3, -1.2, 2.0])
SPEC = cytape.Spec.of((3,), float)
Pair = namedtuple("Pair", "first second")


def scaled(x, w):
    """Return w * x**2, by NumPy."""
    return cytape.numpy_function(
        lambda x, w: np.square(x) * w, x, w, specs=SPEC,
        grad_func=lambda x, w, g: (g * 2.0 * x * w, cnp.sum(g * x * x)))


@cytape.custom_jvp
def scaled_with_jvp(x, w):
    return np.square(np.asarray(x)) * np.asarray(w)


@scaled_with_jvp.defjvp
def scaled_jvp(primals, tangents):
    (x, w), (dx, dw) = primals, tangents
    return None, 2.0 * x * w * dx + x * x * (0.0 if dw is None else dw)


@cytape.custom_gradient
def scaled_with_gradient(x, w):
    y = np.square(np.asarray(cytape.stop_gradient(x))) * np.asarray(cytape.stop_gradient(w))
    return y, lambda g: (g * 2.0 * x * w, cnp.sum(g * x * x))


# ---- all places, all kinds of arguments ----------------------------------------------------------


def in_eager(f):
    return f


def captured(f):
    return lambda x, w: cytape.function(lambda x: f(x, w))(x)


def bound(f):
    """A function of one argument in a graph of its own, the other a constant of that graph."""
    def both(x, w):
        y = f(x, w)
        return [y, *cytape.gradients(cnp.sum(y), x)]

    return lambda x, w: ways.run_in_graph(lambda x: both(x, w), x.numpy())


KINDS = {
    "tensor": lambda: cytape.constant(2.0),
    "variable": lambda: cytape.Variable(2.0),
    "fixed variable": lambda: cytape.Variable(2.0, trainable=False),
    "array": lambda: np.array(2.0),
    "float32 array": lambda: np.array(2.0, np.float32),
    "numpy scalar": lambda: np.float64(2.0),
    "float": lambda: 2.0,
    "int": lambda: 2,
    "integer tensor": lambda: cytape.constant(2),
    "integer variable": lambda: cytape.Variable(2),
    "integer array": lambda: np.array(2),
    "numpy integer": lambda: np.int8(2),
    "bool": lambda: np.True_,
}


@sampled(4, kind=KINDS,
         f=[scaled, scaled_with_jvp, scaled_with_gradient],
         place=[in_eager, cytape.function, *traced("cond", "while_loop").values(), captured, bound])
def test_arguments_of_all_kinds_in_all_places(place, f, kind):
    w, x = KINDS[kind](), cytape.constant(X)
    expected = X * X * float(w), 2.0 * X * float(w)
    if place is bound:
        found = place(f)(x, w)
    else:
        g = place(f)
        tape, y = ways.taped(lambda x: g(x, w), x)
        if isinstance(w, cytape.Variable) and w.trainable and w.spec.trainable:
            dx, dw = tape.gradient(y, [x, w])
            assert float(dw) == pytest.approx(np.sum(X * X))
        else:
            dx = tape.gradient(y, x)
        found = y, dx
        with cytape.ForwardAccumulator(x, cytape.constant(np.ones(3))) as accumulator:
            y = g(x, w)
        np.testing.assert_allclose(accumulator.jvp(y), expected[1])
    np.testing.assert_allclose(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1])


def test_variables_are_read_when_it_runs():
    w = cytape.Variable(2.0)
    f = cytape.function(lambda x: scaled(x, w))
    x = cytape.constant(X)
    for value in (2.0, 5.0):
        w.assign(value)
        tape, y = ways.taped(lambda: cnp.sum(f(x)))
        assert float(y) == pytest.approx(value * np.sum(X * X))
        assert float(tape.gradient(y, w)) == pytest.approx(np.sum(X * X))


# ---- arguments and results -----------------------------------------------------------------------


@each("place", [in_eager, cytape.function])
def test_structures(place):
    seen = []

    def split(parameters, word, n, empty):
        seen.append((type(parameters["x"]), type(parameters["y"][0]), word, n, empty))
        x, (y,) = parameters["x"], parameters["y"]
        return Pair(x * y, {"n": np.argmax(x), "none": [x > 0]})

    def f(x, y):
        specs = Pair(
            SPEC, {"n": cytape.Spec.of((), np.int64), "none": [cytape.Spec.of((3,), bool)]})
        result = cytape.numpy_function(
            split, {"x": x, "y": (y,)}, "word", 3, None, specs=specs,
            grad_func=lambda parameters, word, n, empty, g, *_: (
                {"x": g * parameters["y"][0], "y": [g * parameters["x"]]}, None, None, None))
        assert type(result) is Pair
        assert list(result.second) == ["n", "none"]
        return result

    x, y = cytape.constant(X), cytape.constant(np.array([1.0, 2.0, 3.0]))
    tape, (first, second) = ways.taped(lambda x, y: place(f)(x, y), x, y)
    assert seen[0] == (np.ndarray, np.ndarray, "word", 3, None)
    np.testing.assert_array_equal(first, X * y.numpy())
    assert int(second["n"]) == 2
    assert second["none"][0].numpy().tolist() == [True, False, True]
    dx, dy = tape.gradient(first, [x, y])
    np.testing.assert_array_equal(dx, y)
    np.testing.assert_array_equal(dy, X)


def test_plain_arrays_in_plain_arrays_out():
    y = cytape.numpy_function(np.cumsum, X, specs=SPEC)
    assert type(y) is np.ndarray
    assert type(cytape.numpy_function(np.cumsum, cytape.constant(X), specs=SPEC)) is cytape.Tensor
    traced = cytape.function(lambda: cytape.numpy_function(np.cumsum, X, specs=SPEC))
    np.testing.assert_array_equal(traced(), np.cumsum(X))


def test_python_numbers_are_weak():
    specs = [cytape.Spec.of((), np.float32), cytape.Spec.of((), np.int8)]
    y, n = cytape.numpy_function(lambda: [0.5, 3], specs=specs)
    assert (y.dtype, n.dtype) == (np.float32, np.int8)
    with pytest.raises(ValueError, match="result 0.*float64; its spec says .* float32"):
        cytape.numpy_function(lambda: np.float64(0.5), specs=specs[0])
    with pytest.raises(ValueError, match="result 0.*bool; its spec says .* int8"):
        cytape.numpy_function(lambda: True, specs=specs[1])


@each("place", [in_eager, cytape.function])
def test_later_writes_of_the_function_to_arrays_change_nothing(place):
    kept = []

    def f(x):
        kept.append(x)
        result = x.copy()
        kept.append(result)
        return result

    x = cytape.constant(X)
    run = place(lambda x: cytape.numpy_function(f, x * 1.0, specs=SPEC) * 1.0)
    first, second = run(x), run(x + 1.0)
    np.testing.assert_array_equal(kept[0], X)
    np.testing.assert_array_equal(kept[2], X + 1.0)
    kept[1][:] = kept[3][:] = 7.0
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second, X + 1.0)
    direct = cytape.function(lambda x: cytape.numpy_function(f, x, specs=SPEC))(x)
    kept[-1][:] = 7.0
    np.testing.assert_array_equal(direct, X)


def test_unknown_extents():
    def f(x):
        return cytape.numpy_function(
            lambda x: x[x > 0], x, specs=cytape.Spec.of((None,), float),
            grad_func=lambda x, g: cytape.numpy_function(
                put, x, g, specs=x.spec))

    def put(x, g):
        result = np.zeros_like(x)
        result[x > 0] = g
        return result

    traced = cytape.function(
        lambda x: cnp.sum(f(x) ** 2), input_signature=[cytape.Spec.of((None,), float)])
    for n in (1, 3, 5):
        x = np.linspace(-1.0, 2.0, n)
        np.testing.assert_allclose(traced(x), np.sum(x[x > 0] ** 2))
        np.testing.assert_allclose(cytape.grad(traced)(x), np.where(x > 0, 2 * x, 0.0))


def test_specs_of_one_tensor_say_nothing_of_another():
    """A spec of unknown extents is that of its tensor; a result only looks like it."""
    traced = cytape.function(
        lambda x: cytape.numpy_function(
            lambda x: x[:1], x, specs=x.spec, grad_func=lambda x, g: g * cnp.ones_like(x)) * x,
        input_signature=[cytape.Spec.of((None,), float)])
    np.testing.assert_array_equal(traced(X), X[0] * X)


# ---- when it is called ---------------------------------------------------------------------------


def counted():
    calls = []

    def square(x):
        calls.append(x)
        return x * x

    return calls, lambda x: cytape.numpy_function(
        square, x, specs=x.spec, grad_func=lambda x, g: 2.0 * x * g)


def test_a_call_is_made_once_per_run_and_not_again_for_its_derivative():
    calls, f = counted()
    x = cytape.constant(X)
    for place in (in_eager, cytape.function):
        g = place(lambda x: cnp.sum(f(x) + f(x)))
        for _ in range(2):
            calls.clear()
            tape, y = ways.taped(g, x, persistent=True)
            assert len(calls) == 2
            np.testing.assert_allclose(tape.gradient(y, x), 4 * X)
            np.testing.assert_allclose(tape.gradient(y, x), 4 * X)
            assert len(calls) == 2


def test_calls_in_a_loop_are_made_once_per_iteration():
    calls, f = counted()
    run = cytape.function(lambda x: cytape.while_loop(lambda v: v < 100, lambda v: [f(v)], [x])[0])
    calls.clear()
    x = cytape.constant(2.0)
    with ways.watching(x) as outer:
        inner, y = ways.taped(run, x)
        slope = inner.gradient(y, x)
    assert [float(v) for v in calls] == [2.0, 4.0, 16.0]
    assert float(y) == 256.0
    assert float(slope) == 8 * 2.0**7
    assert float(outer.gradient(slope, x)) == 56 * 2.0**6
    assert len(calls) == 3


def test_a_call_that_returns_nothing_is_made_for_what_it_does():
    calls = []

    @cytape.function
    def f(x):
        assert cytape.numpy_function(calls.append, x, specs=()) == ()
        cytape.cond(x > 1.0, lambda: cytape.numpy_function(calls.append, -x, specs=()), lambda: ())
        return x * 2.0

    assert float(f(cytape.constant(1.0))) == 2.0
    assert [float(x) for x in calls] == [1.0]
    assert float(f(cytape.constant(3.0))) == 6.0
    assert [float(x) for x in calls] == [1.0, 3.0, -3.0]
    assert float(cytape.grad(f)(5.0)) == 2.0
    assert [float(x) for x in calls] == [1.0, 3.0, -3.0, 5.0, -5.0]


def test_draws_of_the_function_are_drawn_anew():
    rng = np.random.default_rng(1)
    f = cytape.function(lambda: cytape.numpy_function(
        lambda: rng.normal(size=3), specs=SPEC) + cytape.numpy_function(
        lambda: rng.normal(size=3), specs=SPEC))
    found = [f() for _ in range(4)]
    again = np.random.default_rng(1)
    for y in found:
        np.testing.assert_array_equal(y, again.normal(size=3) + again.normal(size=3))


def test_a_session_makes_the_calls_that_are_needed():
    calls, f = counted()
    with cytape.Graph().as_default() as graph:
        p = cytape.placeholder("float64", (None,))
        y, z = f(p), p * 3.0
        [slope] = cytape.gradients(cnp.sum(y), p)
    session = cytape.Session(graph)
    assert session.run(z, {p: X}).tolist() == (3 * X).tolist()
    assert not calls
    for n in (1, 2):
        np.testing.assert_allclose(session.run(slope, {p: X}), 2 * X)
        np.testing.assert_allclose(session.run([y, slope], {p: X})[0], X * X)
        assert len(calls) == n


def test_functions_that_use_cytape_themselves():
    def slope(x):
        assert type(x) is np.ndarray
        return cytape.function(cytape.grad(lambda x: cnp.sum(x**3)))(x)

    run = cytape.function(lambda x: cytape.numpy_function(slope, x, specs=SPEC))
    np.testing.assert_allclose(run(X), 3 * X**2)
    with cytape.Graph().as_default() as graph:
        y = run(cytape.constant(X))
        n_nodes = graph.n_nodes
        np.testing.assert_allclose(cytape.Session(graph).run(y), 3 * X**2)
        assert graph.n_nodes == n_nodes


# ---- beside its relatives ------------------------------------------------------------------------


def test_it_says_to_custom_jvp_what_it_returns():
    """Made-up arrays would not do for this function."""
    def positive(x):
        if np.any(x != 4.0):
            raise ValueError(f"not four: {x}")
        return np.sqrt(x)

    @cytape.custom_jvp
    def root(x):
        return cytape.numpy_function(positive, x, specs=x.spec)

    @root.defjvp
    def root_jvp(primals, tangents):
        return None, tangents[0] / (2.0 * root(primals[0]))

    bare = cytape.custom_jvp(lambda x: positive(np.asarray(x)))
    bare.defjvp(root_jvp)
    x = np.full(3, 4.0)
    with pytest.raises(TypeError, match=re.compile("numpy_function.*specs.*not four", re.S)):
        cytape.function(bare)(x)
    np.testing.assert_array_equal(bare(x), np.full(3, 2.0))
    f = cytape.function(lambda x: cnp.sum(root(x)))
    np.testing.assert_allclose(cytape.grad(f)(x), np.full(3, 0.25))
    np.testing.assert_allclose(
        cytape.grad(lambda x: cnp.sum(cytape.grad(f)(x)))(x), np.full(3, -1 / 32))


def test_gradients_that_are_calls_themselves():
    def integer_power(x, n):
        return cytape.numpy_function(
            lambda x, n: x**n, x, n, specs=x.spec,
            grad_func=lambda x, n, g: (g * n * integer_power(x, n - 1) if n else None, None))

    for place in (in_eager, cytape.function):
        derivative = place(lambda x: cnp.sum(integer_power(x, 4)))
        for expected in (4 * X**3, 12 * X**2, 24 * X):
            derivative = cytape.grad(derivative)
            np.testing.assert_allclose(derivative(X), expected)
            derivative = (lambda f: lambda x: cnp.sum(f(x)))(derivative)


def test_beside_recompute_grad_and_stop_gradient():
    calls, f = counted()
    block = cytape.recompute_grad(lambda x: cnp.sin(f(x)) * cytape.stop_gradient(f(x)))
    expected = 2 * X * np.cos(X * X) * X * X
    for place in (in_eager, cytape.function):
        g = place(block)
        np.testing.assert_allclose(cytape.grad(lambda x, g=g: cnp.sum(g(x)))(X), expected)


def test_series_of_it():
    def cube(x):
        return cytape.numpy_function(
            lambda x: x**3, x, specs=x.spec, grad_func=lambda x, g: 3.0 * x * x * g)

    _, expected = cytape.jet(lambda x: x**3, 2.0, [1.0, 0.5, 0.25])
    for place in (in_eager, cytape.function):
        _, series = cytape.jet(place(cube), 2.0, [1.0, 0.5, 0.25])
        np.testing.assert_allclose(series, expected)


def test_math():
    erf = np.vectorize(math.erf, otypes=[float])
    f = cytape.function(lambda x: cytape.numpy_function(erf, x, specs=SPEC))
    np.testing.assert_array_equal(f(X), erf(X))


@each("place", [lambda f: f, cytape.function], ids=["eager", "traced"])
@each("derivative", [
    cytape.grad, lambda f: lambda x: cytape.jvp(f, (x,), (np.ones(3),))[1],
    lambda f: cytape.grad(lambda x: cnp.sum(cytape.grad(f)(x) * x))])
def test_a_derivative_that_is_multiplied_by_zero_is_not_needed(place, derivative):
    def times(factor):
        return lambda x: cnp.sum(cytape.numpy_function(
            lambda a: a * 2.0, x, specs=SPEC)) * factor + cnp.sum(x)

    if derivative is cytape.grad:
        assert place(derivative(times(0.0)))(X).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(NotDifferentiableError, match="has no gradient"):
        place(derivative(times(1.0)))(X)
