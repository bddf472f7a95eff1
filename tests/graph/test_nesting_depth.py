"""Bodies within bodies, deep: traces and results grow with the depth, and do not double with it."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.control import control_ops
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.function_graph import FunctionGraph
from tests.bodies import BODIES
from tests.cases import each, sampled

X = np.array([0.3, 0.1, 0.2])


def scanned(f):
    return lambda a: cytape.scan(lambda y, _: f(y), np.zeros(1), a)[-1]


def folded(f):
    return lambda a: cytape.foldl(lambda y, e: f(y) * e, a[:2], a)


def mapped(f):
    return lambda a: cnp.sum(cytape.map_fn(lambda e: f(a * e), a[:2]), axis=0)


def drawn(f):
    return lambda a: cytape.while_loop(
        lambda i, _: i < 2, lambda i, y: (i + 1, f(y) * cnp.random.normal()),
        (np.array(0), a))[1]


WRAPPERS = {
    **{name: BODIES[name] for name in (
        "recompute_grad", "checkpoint dots", "checkpoint everything", "function", "while_loop")},
    "scan": scanned,
    "foldl": folded,
    "map_fn": mapped,
    "cond": lambda f: lambda a: cytape.cond(a[0] > -9.0, lambda: f(a), lambda: a),
}
LOOPS = "scan", "foldl", "map_fn", "while_loop"
MODES = {
    "grad": cytape.grad,
    "jacfwd": cytape.jacfwd,
    "traced": lambda f: cytape.grad(cytape.function(f)),
    "second order": lambda f: cytape.grad(lambda a: cnp.sum(cytape.grad(f)(a))),
    "forward over reverse": lambda f: lambda a: cytape.jvp(cytape.grad(f), (a,), (a,))[1],
}


def nested(wrap, depth):
    f = cnp.sin
    for _ in range(depth):
        f = wrap(lambda a, f=f: cnp.sin(f(a)))
    return f


def plain(depth):
    return nested(lambda f: f, depth)


@pytest.fixture
def graphs_made(monkeypatch):
    """List the names of the graphs of functions and bodies that are made from here on."""
    names = []
    made = FunctionGraph.__init__

    def noted(self, name, *args, **named):
        names.append(name)
        made(self, name, *args, **named)

    monkeypatch.setattr(FunctionGraph, "__init__", noted)
    return names


def third_order(f):
    return MODES["second order"](lambda a: cnp.sum(cytape.grad(f)(a)))


@pytest.mark.parametrize("wrapper", LOOPS)
def test_third_derivatives_of_loops_of_unknown_extents_trace_as_many_graphs_for_each_level(
        graphs_made, wrapper):
    counts = []
    for depth in 2, 3, 4:
        graphs_made.clear()
        f = nested(WRAPPERS[wrapper], depth)
        derivative = cytape.function(third_order(lambda a, f=f: cnp.sum(f(a))))
        derivative.get_concrete_function(cytape.Spec.of((None,), float))
        counts.append(len(graphs_made))
    assert counts[2] - counts[1] <= 1.1 * (counts[1] - counts[0]), counts


@each(order=[1, 2], wrapper=["recompute_grad", "checkpoint dots", "checkpoint everything"])
def test_memory_of_nested_checkpointed_calls_does_not_double_per_level(wrapper, order):
    counts = []
    for depth in 4, 8:
        f = nested(WRAPPERS[wrapper], depth)
        mode = MODES["grad" if order == 1 else "second order"]
        derivative = cytape.function(mode(lambda a, f=f: cnp.sum(f(a))))
        trace = derivative.get_concrete_function(cytape.Spec.of((3,), float))
        np.testing.assert_allclose(
            derivative(X), mode(lambda a, depth=depth: cnp.sum(plain(depth)(a)))(X), rtol=1e-12)
        counts.append(trace.graph.n_symbols)
    assert counts[1] <= 8 * counts[0], counts


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_the_number_of_graphs_does_not_double_with_each_level(graphs_made, wrapper, mode):
    counts = []
    for depth in 3, 6:
        graphs_made.clear()
        f = nested(WRAPPERS[wrapper], depth)
        found = cytape.function(MODES[mode](lambda a, f=f: cnp.sum(f(a))))(X)
        if wrapper not in ("foldl", "map_fn"):  # which compute more besides
            wanted = MODES[mode](lambda a, depth=depth: cnp.sum(plain(depth)(a)))(X)
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
        counts.append(len(graphs_made))
    assert counts[1] <= (2.5 if wrapper in LOOPS else 5) * counts[0], counts


def n_nodes(trace):
    """Count the nodes of a trace and of all bodies within it, each once."""
    parts, found = [trace], {}
    for part in parts:
        if id(part) not in found:
            found[id(part)] = part
            parts += part.traces()
    return sum(part.graph.n_nodes for part in found.values() if isinstance(part, ConcreteFunction))


@sampled(4, n=[3, None], of_mode=[
    ("grad", (5, 10), 6.0), ("second order", (3, 6), 5.2), ("forward over reverse", (3, 6), 3.8)],
         wrapper=[*LOOPS, "draws"])
def test_the_size_of_a_derivative_does_not_double_with_each_level(wrapper, of_mode, n):
    mode, depths, most = of_mode
    counts = []
    for depth in depths:
        f = nested(WRAPPERS.get(wrapper, drawn), depth)
        derivative = cytape.function(MODES[mode](lambda a, f=f: cnp.sum(f(a))))
        counts.append(n_nodes(derivative.get_concrete_function(cytape.Spec.of((n,), float))))
    assert counts[1] <= most * counts[0], counts


@pytest.mark.parametrize("wrapper", [*LOOPS, "cond"])
def test_the_specs_of_a_body_are_inferred_once_for_each_signature(monkeypatch, wrapper):
    n_inferred = 0
    infer = control_ops.with_known_specs

    def counted(*args):
        nonlocal n_inferred
        n_inferred += 1
        return infer(*args)

    monkeypatch.setattr(control_ops, "with_known_specs", counted)
    counts = []
    for depth in 3, 6:
        n_inferred = 0
        f = nested(WRAPPERS[wrapper], depth)
        cytape.function(
            cytape.grad(lambda a, f=f: cnp.sum(f(a))),
            input_signature=[cytape.Spec.of((None,), float)])(X)
        counts.append(n_inferred)
    assert 0 < counts[0] and counts[1] <= 2.5 * counts[0], counts


def assigning(loop, v, f):
    def step(y):
        v.assign_add(1.0)
        return f(y) * v

    if loop == "scan":
        return lambda a: cytape.scan(lambda y, _: step(y), np.zeros(2), a)[-1]
    return lambda a: cytape.while_loop(
        lambda i, _: i < 2, lambda i, y: (i + 1, step(y)), (np.array(0), a))[1]


@each("loop", ["scan", "while_loop"])
def test_bodies_that_assign_are_not_traced_twice_for_each_level(loop):
    n_calls = 0

    def innermost(y):
        nonlocal n_calls
        n_calls += 1
        return cnp.sin(y)

    for depth in 1, 3, 6:
        v, n_calls, f = cytape.Variable(0.0), 0, innermost
        for _ in range(depth):
            f = assigning(loop, v, f)
        traced = cytape.function(f)
        found = traced(X)
        assert n_calls <= depth + 1
        last = v.numpy()
        v.assign(0.0)
        np.testing.assert_allclose(found, f(X), rtol=1e-12)
        assert v.numpy() == last


def test_loops_of_one_function_change_other_variables():
    v, w = cytape.Variable(1.0), cytape.Variable(2.0)

    def grown(variable, other, y):
        def body(i, y):
            variable.assign_add(y * other)
            return i + 1, y + variable * 0.5

        return cytape.while_loop(lambda i, _: i < 2, body, (np.array(0), y))[1]

    def f(y):
        return cytape.while_loop(
            lambda i, _: i < 3,
            lambda i, y: (i + 1, grown(w, v, grown(v, w, y)) * 0.1), (np.array(0), y))[1]

    found = [cytape.function(f)(0.5), v.numpy(), w.numpy()]
    v.assign(1.0)
    w.assign(2.0)
    np.testing.assert_allclose(found, [f(cytape.constant(0.5)), v.numpy(), w.numpy()], rtol=1e-12)


@each("wrapper", ["recompute_grad", "checkpoint dots"])
def test_kept_values_of_deep_nesting_are_counted_once(wrapper):
    f = cytape.function(cytape.grad(lambda a: cnp.sum(nested(WRAPPERS[wrapper], 40)(a))))
    for _ in range(2):
        np.testing.assert_allclose(
            f(X), cytape.grad(lambda a: cnp.sum(plain(40)(a)))(X), rtol=1e-12)
    assert f.cache_info().plans < 200
    assert f.cache_info().nbytes < 2**24


def with_unused_values(a):
    unused = cnp.exp(a)
    cnp.sin(unused * unused)
    return cnp.tanh(a)


def with_a_second_derivative(a):
    def slope(a):
        return cytape.jvp(lambda a: cnp.sum(cnp.sin(a) * a), (a,), (cnp.ones(3),))[1]

    return cytape.jvp(slope, (a,), (a,))[1]


@each("wrapper", ["recompute_grad", "checkpoint dots", "checkpoint everything"])
@each("f", [with_unused_values, with_a_second_derivative])
def test_forward_mode_reads_only_what_the_results_need(f, wrapper):
    wrapped = WRAPPERS[wrapper](f)
    wanted = cytape.jvp(f, (X,), (X,))
    for call in (
            lambda a: cytape.jvp(cytape.function(lambda a: wrapped(a)), (a,), (a,)),
            cytape.function(lambda a: cytape.jvp(wrapped, (a,), (a,)))):
        for found, expected in zip(call(X), wanted, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)
