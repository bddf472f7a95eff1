"""The op that runs one of two bodies, called as `cond` and derivatives call it."""

import numpy as np
import pytest

import cytape
from cytape.errors import UnconnectedGradientWarning
from cytape.graph.control.cond_op import call_branch, common
from cytape.graph.run import interpreter
from cytape.ops.engine.op_kinds import OPS
from cytape.tensor.values.spec import symbolic_spec
from tests.cases import each


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
def test_what_only_one_branch_has_a_gradient_for_is_zero_in_the_other(which, expected):
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
