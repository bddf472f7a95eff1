"""Loops over all elements in plans, and over one where all are the same."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph import RunTrace
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes.accumulation import accumulated
from cytape.graph.passes.fusion import fused
from cytape.graph.run.plan import Plan
from tests.cases import each
from tests.graph.plans import assert_as_reference, plan_of, symbols
from tests.graph.programs import new_graph

LARGE = 40, 50
SPREAD = np.random.default_rng(0).normal(size=LARGE)
OF_ONE = {
    "one operand": lambda y, z: np.exp(y),
    "two operands": lambda y, z: y * z - y,
    "a scalar besides": lambda y, z: 2.0 * y,
    "three operands": lambda y, z: np.where(y < z, y, z),
    "a cast": lambda y, z: y.astype("float32"),
    "two dtypes": lambda y, z: y.astype("float32") + z,
    "an infinity": lambda y, z: y * np.inf,
    "a sum of many": lambda y, z: cytape.add_n([y, z, y]),
    "repeated": lambda y, z: np.concatenate([y, y]).T,
}


@each("function", OF_ONE.values(), ids=OF_ONE)
@each("shape", [(), (1, 1), (40, 1)])
def test_of_operands_that_are_one_item_one_is_computed(function, shape):
    """Operands that are one number everywhere have results that are one number everywhere."""
    graph, x = new_graph(shape)
    y = np.broadcast_to(x, LARGE)
    array = np.full(shape, 1.5)
    z = function(y, np.broadcast_to(x - 1.0, LARGE))
    plan = assert_as_reference(graph, [x], [z, z + SPREAD.sum()], [array])
    assert plan.n_calls == 0
    is_one = shape != (40, 1)
    if function is not OF_ONE["repeated"]:
        assert all((result.numpy().strides == (0, 0)) == is_one for result in plan.run([array]))


def test_small_operands_are_gone_through():
    graph, x = new_graph()
    (result,) = plan_of(graph, [x], [np.exp(np.broadcast_to(x, (4,)))]).run([np.array(0.0)])
    assert result.numpy().strides == (8,)


def test_a_warning_of_one_item():
    graph, x = new_graph()
    plan = plan_of(graph, [x], [np.log(np.broadcast_to(x, LARGE))])
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert plan.run([np.array(0.0)])[0].numpy()[3, 4] == -np.inf


@each("function, n_instructions", [
    (lambda x, y: np.tanh(x) * y + x, 1), (lambda x, y: np.exp(x * y) * y, 1),
    (lambda x, y: cnp.sum(x * y + y), 2)])  # the sum is copied
@each("which", [0, 1])
def test_groups_of_operands_that_are_one_item(function, n_instructions, which):
    graph, s = new_graph()
    x = graph.placeholder("float64", LARGE)
    one = np.broadcast_to(s, LARGE)
    value = function(*((one, x) if which else (x, one)))
    subgraph = Subgraph(graph, symbols(graph, [s, x]), symbols(graph, [value]))
    arrays = [np.array(0.75), SPREAD]
    expected = Plan(subgraph).run(arrays)[0].numpy()
    plan = Plan(fused(subgraph, 65))
    for _ in range(2):
        trace = RunTrace()
        np.testing.assert_allclose(plan.run(arrays, trace)[0].numpy(), expected, rtol=1e-13)
        assert len(trace.events) == n_instructions


def test_parts_of_a_sum_that_are_one_item():
    graph, x = new_graph(LARGE)
    with graph.as_default():
        value = cnp.sum(x[3:]) * 2.0 + cnp.sum(x[:, 1:])
        gradient = cytape.gradients(value, x)[0]
    subgraph = accumulated(Subgraph(graph, symbols(graph, [x]), symbols(graph, [gradient])))
    expected = np.zeros(LARGE)
    expected[3:] += 2.0
    expected[:, 1:] += 1.0
    for _ in range(2):
        np.testing.assert_array_equal(Plan(subgraph).run([SPREAD])[0].numpy(), expected)
