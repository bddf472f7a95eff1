"""Captures of bodies: derivatives with respect to captured objects of any kind.

Each body below computes x * x, or hands x itself back, of an x that it finds around it; the result
is multiplied by x again.
"""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.trace_derivatives import DerivativeGraph
from cytape.ops.calls.symbolic import in_graph
from tests.cases import each, sampled
from tests.ways import RECORDERS, gradient, gradients

TRUE = np.array(True)


def loop(step, start):
    """Run a step twice in a loop."""
    return cytape.while_loop(
        lambda i, v: i < 2, lambda i, v: [i + 1, step(v)], [np.array(0), start])[1]


# Functions of x, and the power of x that each returns.
BODIES = {
    "function": (lambda x: cytape.function(lambda: x * x)(), 2),
    "function in a function": (
        lambda x: cytape.function(lambda: cytape.function(lambda: x * x)())(), 2),
    "true branch": (lambda x: cytape.cond(TRUE, lambda: x * x, lambda: x), 2),
    "false branch": (lambda x: cytape.cond(~TRUE, lambda: x, lambda: x * x), 2),
    "branch in a function": (
        lambda x: cytape.function(lambda: cytape.cond(TRUE, lambda: x * x, lambda: x))(), 2),
    "loop": (lambda x: loop(lambda v: v * x, 1.0), 2),
    "loop in a function": (lambda x: cytape.function(lambda: loop(lambda v: v * x, 1.0))(), 2),
    "loop in a branch": (
        lambda x: cytape.cond(TRUE, lambda: loop(lambda v: v * x, 1.0), lambda: x), 2),
    "branch in a loop": (
        lambda x: loop(lambda v: cytape.cond(v > 0, lambda: v * x, lambda: v), 1.0), 2),
    "returned by a function": (lambda x: cytape.function(lambda: x)(), 1),
    "returned by a branch": (lambda x: cytape.cond(TRUE, lambda: x, lambda: x * x), 1),
    "start of a loop": (lambda x: loop(lambda v: v, x), 1),
    "returned by a loop": (lambda x: loop(lambda v: x, 0.0), 1),
}
KINDS = {
    "constant of the graph": lambda: cytape.constant(3.0),
    "tensor with a value": None,
    "variable": lambda: cytape.Variable(3.0),
    "placeholder": lambda: cytape.placeholder("float64", (), name="x"),
    "result of an op": lambda: cytape.constant(1.5) * 2.0,
}


SECOND = {
    f"{outer} over {inner}": lambda f, x, outer=outer, inner=inner: (
        RECORDERS[outer](lambda x: RECORDERS[inner](f, x), x))
    for outer in RECORDERS for inner in RECORDERS
    if (outer, inner) != ("gradients", "accumulator")  # that tangent is one of a tensor, not a path
}


def value(graph, tensor):
    if graph is None:
        return tensor.item()
    feeds = {"x:0": 3.0} if any(op.name == "x" for op in graph.get_operations()) else {}
    return cytape.Session(graph).run(tensor, feeds)


@each("kind, mode", [
    (kind, mode) for kind in KINDS for mode in RECORDERS | SECOND
    if not (kind == "tensor with a value" and "gradients" in mode)])  # which says so
@each("body", BODIES)
def test_derivatives_reach_what_a_body_takes_from_outside(body, kind, mode):
    call, power = BODIES[body]
    x = cytape.constant(3.0)
    with cytape.Graph().as_default() as graph:
        if KINDS[kind] is not None:
            x = KINDS[kind]()
        found = (RECORDERS | SECOND)[mode](lambda x: x * call(x), x)
    n = power + 1
    expected = n * 3.0**power if mode in RECORDERS else n * power * 3.0 ** (power - 1)
    assert value(graph, found) == pytest.approx(expected, rel=1e-14)


@each(mode=[mode for mode in RECORDERS | SECOND if "gradients" not in mode], traced=[False, True])
@each("body", BODIES)
def test_a_body_without_a_graph_around_it_is_no_different(body, traced, mode):
    call, power = BODIES[body]
    x = cytape.constant(3.0)
    differentiate = (RECORDERS | SECOND)[mode]

    def program():
        return differentiate(lambda x: x * call(x), x)

    found = cytape.function(program)() if traced else program()
    n = power + 1
    expected = n * 3.0**power if mode in RECORDERS else n * power * 3.0 ** (power - 1)
    assert found.item() == pytest.approx(expected, rel=1e-14)


@each("body", BODIES)
def test_a_constant_that_is_fed_is_fed_to_bodies_too(body):
    call, power = BODIES[body]
    with cytape.Graph().as_default() as graph:
        x = cytape.constant(3.0)
        y = call(x)
    assert cytape.Session(graph).run(y, {x: 5.0}) == 5.0**power


@each("body", BODIES)
def test_gradients_inside_a_function_reach_the_constants_around_it(body):
    call, power = BODIES[body]
    with cytape.Graph().as_default() as graph:
        x = cytape.constant(3.0)
        slope = cytape.function(lambda: cytape.gradients(call(x), x)[0])()
    assert cytape.Session(graph).run(slope) == power * 3.0 ** (power - 1)


def test_a_given_gradient_is_followed():
    x, weight = cytape.constant(3.0), cytape.constant(2.0)
    f = cytape.function(lambda: cytape.gradients(cytape.identity(x) ** 2, x, grad_ys=weight)[0])
    assert [g.item() for g in gradients(lambda x, weight: f(), x, weight)] == [4.0, 6.0]


@each("eager", [False, True])
def test_a_tensor_becomes_the_graphs_own(eager):
    outer = FunctionGraph("outer", None)
    graph = FunctionGraph("g", outer)
    x = cytape.constant(2.0) if eager else outer.constant(2.0)
    y = in_graph(graph, x)
    assert y.graph is graph
    assert in_graph(graph, y) is y
    assert in_graph(graph, x).id == y.id
    assert [tensor.id for tensor, _ in graph.captures] == [x.id]


def test_constants_of_a_trace_are_not_passed_to_its_derivatives():
    f = cytape.function(lambda x: cnp.sum(x * cytape.constant([1.0, 2.0, 3.0])))
    x = cytape.constant(np.ones(3))
    assert gradient(f, x).numpy().tolist() == [1.0, 2.0, 3.0]
    ((derivatives,),) = [trace.derivatives.values() for trace in f._traces.by_key.values()]
    (backward,) = derivatives._traces._backward_from.values()
    assert type(backward.graph) is DerivativeGraph
    assert backward.captured_inputs == []


def test_a_function_that_captured_a_constant_is_traced_anew_elsewhere():
    x = cytape.constant(3.0)
    f = cytape.function(lambda: x * x)
    for n in 1, 2:
        with cytape.Graph().as_default() as graph:
            x = cytape.constant(3.0 * n)
            y = f()
        assert cytape.Session(graph).run(y) == 9.0 * n**2
        assert f.experimental_get_tracing_count() == n


# -- captured tensors that are changed between calls in a trace ------------------------------------


def set_item(q):
    q[0] = 30.0


def add_in_place(q):
    q += 1.0


def write_to_view(q):
    q[1:][0] = 5.0


def write_to_output(q):
    np.multiply(q, 2.0, out=q)


@sampled(4, around=[
    cytape.function, cytape.vmap, lambda f: cytape.function(cytape.recompute_grad(f)),
    lambda f: cytape.function(cytape.function(f)),
    lambda f: cytape.function(lambda a: cytape.cond(a[0, 0] > 0.0, lambda: f(a), lambda: a)),
    lambda f: cytape.function(
        lambda a: cytape.while_loop(lambda i, y: i < 1, lambda i, y: (i + 1, f(y)), (0, a))[1]),
], change=[set_item, add_in_place, write_to_view, write_to_output], inside=[
    lambda f: f, cytape.recompute_grad, cytape.checkpoint(policy="dots"), cytape.function,
    lambda f: lambda b: cytape.cond(np.array(True), lambda: f(b), lambda: b),
    lambda f: lambda b: loop(lambda y: f(y) - y, b),
    lambda f: lambda b: cytape.vmap(f)(b[None])[0],
])
def test_later_calls_in_a_trace_see_what_was_written_to_a_captured_tensor(change, around, inside):
    def called_twice(a, wrapped=cytape.function):
        q = a * 2.0
        scaled = wrapped(inside(lambda b: q * b))
        first = scaled(a)
        change(q)
        return first + 10.0 * scaled(a)

    def plain(a):
        return called_twice(a, lambda f: f)

    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    expected = (cytape.vmap(plain) if around is cytape.vmap else plain)(cytape.constant(x))
    np.testing.assert_array_equal(around(called_twice)(x), expected)
    if around is not cytape.vmap:
        np.testing.assert_allclose(
            cytape.grad(lambda a: np.sum(around(called_twice)(a)))(x),
            cytape.grad(lambda a: np.sum(plain(a)))(x))
