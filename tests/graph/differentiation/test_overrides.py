"""gradient_override_map where tapes and accumulators differentiate, in graphs and in functions."""

import gc
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.bodies import BODIES, branch, loop
from tests.cases import each
from tests.ways import RECORDERS, gradient, run_in_graph, tangent

X = np.array([0.5, 1.0])


@cytape.register_gradient("DeclaredTimesTen")
def times_ten(op, dy):
    return 10.0 * dy * op.inputs[0]


@cytape.register_gradient("DeclaredForTwo")
def for_two(op, dy):
    return dy, None


@cytape.register_gradient("DeclaredTimesSquare")
def times_square(op, dy):
    return dy * op.outputs[0] ** 2


def tanh(x, op_type="Tanh"):
    with x.graph.gradient_override_map({op_type: "DeclaredTimesTen"}):
        return cnp.tanh(x)


@each("way", RECORDERS.values(), ids=RECORDERS)
def test_in_a_graph(way):
    found = run_in_graph(
        lambda x: [way(f, x) for f in (tanh, lambda x: tanh(x, "Sin"), cnp.tanh)], X)
    assert np.allclose(found, [10.0 * X, 1 - np.tanh(X) ** 2, 1 - np.tanh(X) ** 2])


@each("way", RECORDERS.values(), ids=RECORDERS)
def test_in_a_traced_function(way):
    assert np.allclose(cytape.function(lambda x: way(tanh, x))(X), 10.0 * X)


@each("way", [gradient, tangent])
def test_of_a_traced_function(way):
    f = cytape.function(tanh)
    x = cytape.constant(X)
    assert np.allclose(way(f, x), 10.0 * X)
    assert np.allclose(way(cytape.function(lambda x: 2.0 * f(x)), x), 20.0 * X)
    assert np.allclose(cytape.function(lambda x: way(f, x))(X), 10.0 * X)


def test_the_second_order_is_that_of_the_gradient_function():
    f = cytape.function(tanh)
    first = cytape.grad(lambda x: cnp.sum(f(x)))
    assert np.allclose(cytape.jacfwd(first)(X), 10.0 * np.eye(2))
    assert np.allclose(cytape.grad(lambda x: cnp.sum(first(x)))(X), [10.0, 10.0])


@each("op_type, f, expected", [
    ("Multiply", lambda x: x * 3.0, [1.0, 1.0]), ("GetItem", lambda x: x[:1], "error"),
])
def test_ops_of_all_kinds(op_type, f, expected):
    def program(x):
        with x.graph.gradient_override_map({op_type: "DeclaredForTwo"}):
            return f(x)

    for way in RECORDERS.values():
        traced = cytape.function(lambda x, way=way: way(program, x))
        if expected == "error":
            with pytest.raises(ValueError, match="must return one gradient"):
                traced(X)
        else:
            assert np.array_equal(traced(X), expected)


def test_an_op_without_a_gradient_gets_one():
    def rounded(x):
        with x.graph.gradient_override_map({"Round": "DeclaredTimesTen"}):
            return cnp.round(x)

    for way in RECORDERS.values():
        assert np.allclose(cytape.function(lambda x, way=way: way(rounded, x))(X), 10.0 * X)


def test_no_reference_keeps_the_graph():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder(np.float64, (2,))
        tape, y = ways.taped(tanh, x, persistent=True)
        slope = tape.gradient(y, x)
    alive = weakref.ref(graph)
    del graph, x, y, slope, tape
    gc.collect()
    assert alive() is None


@each("inside", [
    loop, branch, lambda f: lambda x: cytape.map_fn(f, x),
    lambda f: lambda x: cytape.scan(lambda _, y: f(y), x, x[0]),
    lambda f: branch(loop(f)),
], ids=["while_loop", "cond", "map_fn", "scan", "a loop in a branch"])
@each("traced", [False, True])
def test_ops_built_in_bodies_have_overrides(inside, traced):
    def f(x):
        graph = cytape.get_default_graph()
        with graph.gradient_override_map({"Exp": "DeclaredTimesTen"}):
            y = inside(cnp.exp)(x)
        [gradient] = cytape.gradients(y * 2.0, x)
        [plain] = cytape.gradients(inside(cnp.exp)(x), x)
        return gradient, plain

    if traced:
        gradient, plain = cytape.function(f)(X)
    else:
        with cytape.Graph().as_default() as graph:
            x = graph.placeholder("float64", (2,))
            fetches = f(x)
        gradient, plain = cytape.Session(graph).run(fetches, {x: X})
    np.testing.assert_allclose(gradient, 20.0 * X)
    np.testing.assert_allclose(plain, np.exp(X))


def with_map(f, op_type="Exp", name="DeclaredTimesTen"):
    def under(*args):
        with cytape.get_default_graph().gradient_override_map({op_type: name}):
            return f(*args)

    return under


WRAPPERS = {
    **{name: BODIES[name] for name in (
        "itself", "function", "case", "cond", "while_loop", "vmap", "recompute_grad",
        "checkpoint dots", "function with checkpoints", "checkpoint_sequential",
        "checkpointed_scan")},
    "foldl": lambda f: lambda x: cytape.foldl(lambda _, y: f(y), x[np.newaxis], x),
    "map_fn": lambda f: lambda x: cytape.map_fn(f, x),
    "scan": lambda f: lambda x: cytape.scan(lambda _, y: f(y), x, x[0]),
    "vmap of a loop": lambda f: BODIES["vmap"](loop(f)),
}
OUTER = ["itself", "function", "while_loop", "function with checkpoints", "recompute_grad", "vmap"]
PAIRS = [
    pytest.param(
        outer, inner,
        marks=[] if outer in ("itself", "function") or inner == "function"
        else [pytest.mark.exhaustive])
    for outer in OUTER for inner in WRAPPERS]


def slope_later(way, f, x):
    """Call a function; return what computes its slope, later for all but accumulators."""
    if way == "accumulator":
        with cytape.ForwardAccumulator(x, np.ones(2)) as accumulator:
            y = f(x)
        return lambda: accumulator.jvp(y)
    if way == "tape":
        tape, y = ways.taped(f, x)
        return lambda: tape.gradient(y, x)
    y = f(x)
    return lambda: cytape.gradients(y, x)[0]


@each("place", ["definition", "call", "gradient"])
@pytest.mark.parametrize("outer, inner", PAIRS)
def test_a_map_holds_for_all_that_is_called_under_it(place, outer, inner):
    f = WRAPPERS[outer](WRAPPERS[inner](with_map(cnp.exp) if place == "definition" else cnp.exp))
    if "function" in (outer, inner) and place == "call":
        f(X)  # so that it has been traced
    called = with_map(f) if place == "call" else f

    def program(way, x):
        later = slope_later(way, called, x)
        return with_map(later)() if place == "gradient" else later()

    found = run_in_graph(lambda x: [program(way, x) for way in RECORDERS], X)
    found += [cytape.function(lambda x, way=way: program(way, x))(X) for way in RECORDERS]
    for slope in found:
        np.testing.assert_allclose(slope, np.exp(X) if place == "gradient" else 10.0 * X)


LOOPS = [name for name in WRAPPERS if name not in ("itself", "vmap")]


@each("inner", LOOPS)
def test_the_innermost_map_holds(inner):
    f = cytape.function(WRAPPERS[inner](with_map(cnp.exp, name="DeclaredTimesSquare")))
    for way in RECORDERS:
        slope = cytape.function(lambda x, way=way: slope_later(way, with_map(f), x)())
        np.testing.assert_allclose(slope(X), np.exp(2 * X))


@each("inner", LOOPS)
def test_calls_of_one_function_have_the_maps_of_each(inner):
    f = cytape.function(WRAPPERS[inner](cnp.exp))

    def slopes(x):
        called = [f, with_map(f), with_map(f, name="DeclaredTimesSquare"), f]
        return [slope_later(way, g, x)() for g in called for way in RECORDERS]

    expected = [np.exp(X), 10.0 * X, np.exp(2 * X), np.exp(X)]
    for i, slope in enumerate(cytape.function(slopes)(X)):
        np.testing.assert_allclose(slope, expected[i // len(RECORDERS)])


@each("inner", LOOPS)
def test_the_second_order_is_that_of_the_gradient_function_in_bodies_too(inner):
    f = cytape.function(WRAPPERS[inner](cnp.exp))
    first = cytape.grad(lambda x: cnp.sum(with_map(f)(x)))
    twice = [cytape.jacfwd(first), cytape.grad(lambda x: cnp.sum(first(x)))]
    for second, expected in zip(twice, [10.0 * np.eye(2), [10.0, 10.0]], strict=True):
        np.testing.assert_allclose(cytape.function(second)(X), expected)


def test_bodies_that_assign_and_draw_do_so_once():
    v = cytape.Variable(0.0)

    @cytape.function
    def f(x):
        def step(i, y):
            v.assign_add(1.0)
            return i + 1, cnp.exp(y) + 0.0 * cnp.random.normal(size=())

        return cytape.while_loop(lambda i, y: i < 1, step, (cytape.constant(0), x))[1]

    for way in RECORDERS:
        v.assign(0.0)
        slope = cytape.function(lambda x, way=way: slope_later(way, with_map(f), x)())
        np.testing.assert_allclose(slope(X), 10.0 * X)
        assert float(v) == 1.0


def test_an_op_without_a_gradient_gets_one_in_bodies_too():
    f = cytape.function(loop(cnp.round))
    for way in RECORDERS:
        slope = cytape.function(lambda x, way=way: slope_later(way, with_map(f, "Round"), x)())
        np.testing.assert_allclose(slope(X), 10.0 * X)
