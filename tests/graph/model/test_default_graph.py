"""Functions that act on the graph being built."""

import pytest

import cytape
from tests.cases import each


def test_they_act_on_the_graph_being_built():
    with cytape.Graph().as_default() as graph:
        assert cytape.get_default_graph() is graph
        with cytape.device("cpu:1"), cytape.name_scope("a") as scope:
            x = cytape.placeholder("float64", (2,), name="x")
        with cytape.control_dependencies([x]), cytape.colocate_with(x):
            y = cytape.no_op("y")
        both = cytape.group(x, y, name="both")
        v = cytape.get_variable("v", (2,), "float32", initializer=3.0, trainable=False)
    assert (scope, x.name, x.device, x.graph) == ("a/", "a/x:0", "cpu:1", graph)
    assert (y.control_inputs, y.device) == ((x.op,), "cpu:1")
    assert both.control_inputs == (x.op, y)
    assert (v.dtype, v.trainable, v.tolist()) == ("float32", False, [3.0, 3.0])
    assert graph.get_variable("v") is v


@each("function", [
    cytape.get_default_graph, lambda: cytape.placeholder("float64"), cytape.no_op,
    lambda: cytape.get_variable("v", ()), cytape.group,
])  # fmt: skip
def test_without_a_graph_there_is_an_error(function):
    with pytest.raises(RuntimeError, match=r"with graph\.as_default\(\)"):
        function()


def test_without_a_graph_blocks_do_nothing():
    x = cytape.constant(1.0)
    with (
        cytape.name_scope("a") as scope, cytape.device("cpu:1"), cytape.colocate_with(x),
        cytape.control_dependencies([x]), cytape.name_scope(None) as none,
    ):  # fmt: skip
        assert (x + 1.0).numpy() == 2.0
    assert (scope, none) == ("a", "")
