"""The op that runs one of two bodies, called as `cond` and derivatives call it."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphError, UnconnectedGradientWarning
from cytape.graph.control.cond_op import call_branch, common
from cytape.graph.run import interpreter
from cytape.ops.engine.op_kinds import OPS
from cytape.tensor.values.spec import symbolic_spec
from tests.cases import each, sampled


@each(
    ("first", "second", "expected"),
    [((2,), (2,), (2,)), ((2, 3), (2, 4), (2, None)), ((2,), (), None), ((None,), (1,), (None,)),
     (None, (1,), None)])
def test_a_spec_for_both(first, second, expected):
    spec = common(symbolic_spec(first, "float32"), symbolic_spec(second, "float32"))
    assert (spec.shape, spec.dtype) == (expected, np.float32)


def call(graph):
    double = cytape.function(lambda x: x * 2.0).get_concrete_function(np.array(1.0))
    one = np.array(1.0)
    product = cytape.function(lambda x, y: x * y).get_concrete_function(one, one)
    with graph.as_default():
        p = graph.placeholder("bool", ())
        x, y = graph.placeholder("float64", ()), graph.placeholder("float64", ())
        [result] = call_branch(p, [double, product], [[x], [y, x]])
    return p, x, y, result


def test_each_input_is_an_operand_once():
    graph = cytape.Graph()
    p, x, y, result = call(graph)
    node = graph.node_of(graph.symbol_of(result))
    assert graph.inputs_of(node) == [graph.symbol_of(t) for t in (p, x, y)]
    assert graph.attrs[node]["positions"] == ((1,), (2, 1))


@each(("which", "expected"), [(True, [6.0, 2.0, 0.0]), (False, [15.0, 5.0, 3.0])])
def test_gradients_of_one_branch_are_zero_in_the_other(which, expected):
    graph = cytape.Graph()
    p, x, y, result = call(graph)
    fetches = [result, *cytape.gradients(result, [x, y])]
    feeds = {p: np.bool_(which), x: 3.0, y: 5.0}
    assert cytape.Session(graph).run(fetches, feeds) == expected
    told = {graph.symbol_of(t): np.asarray(v) for t, v in feeds.items()}
    assert interpreter.run(graph, [graph.symbol_of(t) for t in fetches], told) == expected


def test_branches_without_a_gradient_have_none():
    graph = cytape.Graph()
    p, x, _, result = call(graph)
    with pytest.warns(UnconnectedGradientWarning, match="bool"):
        assert cytape.gradients(result, [p]) == [None]


OTHER_SHAPES = {
    "scalar": lambda x: cytape.cond(x[0] > 0, lambda: x * x, lambda: x[1] ** 3),
    "axes": lambda x: cytape.cond(x[0] > 0, lambda: x * x, lambda: cnp.outer(x, x)),
    "extent": lambda x: cytape.cond(x[0] > 0, lambda: x * x, lambda: x[1:] ** 3),
    "case": lambda x: cytape.case(
        [(x[0] > 0, lambda: x * x), (x[1] > 0, lambda: x[0] * x[1])], lambda: x[:1] ** 3),
    "switch_case": lambda x: cytape.switch_case(
        cnp.sum(x > 0), [lambda: x * x, lambda: x[0] ** 3, lambda: cnp.outer(x, x)]),
    "loop": lambda x: cytape.while_loop(
        lambda i, s: i < 3,
        lambda i, s: (i + 1, s + cnp.sum(cytape.cond(i < 2, lambda: x * x, lambda: s * s))),
        (0, 1.0))[1],
}


TRANSFORMS = {
    "grad": cytape.grad, "hessian": cytape.hessian,
    "traced twice": lambda f: cytape.jacobian(cytape.function(cytape.grad(f))),
    "recomputed": lambda f: cytape.grad(cytape.recompute_grad(f)),
    "jvp": lambda f: lambda x: cytape.jvp(f, (x,), (cnp.ones(2),))[1],
    "vmap": lambda f: lambda x: cytape.vmap(cytape.grad(f))(cnp.stack([x, -x])),
    "in a trace": lambda f: cytape.function(lambda x: cytape.grad(f)(x) * x)}


@sampled(4, transform=TRANSFORMS, shape=[(2,), (None,)], body=OTHER_SHAPES)
def test_derivatives_of_traced_branches_of_other_shapes(body, shape, transform):
    def f(x):
        return cnp.sum(cnp.sin(OTHER_SHAPES[body](x)))

    traced = cytape.function(f, input_signature=[symbolic_spec(shape, "float64")])
    for x in ([1.0, 2.0], [-1.0, 2.0], [1.0, -2.0], [-1.0, -2.0]):
        expected, found = (TRANSFORMS[transform](g)(np.array(x)) for g in (f, traced))
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_branch_that_runs_must_fit():
    graph = cytape.Graph()
    row = cytape.function(lambda x: x * 2.0).get_concrete_function(np.ones(2))
    scalar = cytape.function(lambda x: x * 3.0).get_concrete_function(np.ones(()))
    with graph.as_default():
        p, x = graph.placeholder("bool", ()), graph.placeholder("float64", (2,))
        [y] = call_branch(p, [row, scalar], [[x], [x]])
    np.testing.assert_array_equal(cytape.Session(graph).run(y, {p: True, x: np.ones(2)}), [2, 2])
    with pytest.raises(GraphError, match=r"has the shape \(2,\).*expected were \(\)"):
        cytape.Session(graph).run(y, {p: False, x: np.ones(2)})


def test_the_stateful_one_counts_every_call():
    assert OPS["StatefulCond"].stateful
    assert not OPS["Cond"].stateful


def test_an_op_of_which_the_gradient_is_told_some_results_only():
    matrix, b = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.25]]), np.array([[1.0], [2.0], [-1.0]])

    def squares(b):  # how many there are only a run tells: the solution is kept, these are not
        return np.sum(np.linalg.lstsq(matrix, b, rcond=None)[1] ** 2)

    @cytape.function
    def gradient(b):
        return cytape.grad(lambda b: cytape.cond(
            b[0, 0] > 0, lambda: squares(b), lambda: cytape.constant(0.0)))(b)

    np.testing.assert_allclose(gradient(b), cytape.grad(squares)(b))
