"""Contexts under which ops are built."""

import numpy as np
import pytest

import cytape
from cytape.graph.model.contexts import Context

# ---- control inputs


def test_control_inputs_nest_and_clear(graph):
    a, b = graph.no_op("a"), graph.no_op("b")
    with graph.control_dependencies([b]):
        with graph.control_dependencies([a]):
            both = graph.no_op()
            with graph.control_dependencies(None):
                none = graph.no_op()
                with graph.control_dependencies([a]):
                    one = graph.no_op()
        outer = graph.no_op()
    after = graph.no_op()
    assert [op.control_inputs for op in (both, none, one, outer, after)] == [
        (a, b), (), (a,), (b,), ()
    ]  # fmt: skip


def test_control_inputs_are_operations_tensors_or_names(graph):
    a = graph.constant(1.0, name="a")
    for given in (a, a.op, "a", "a:0", [a], [a, a.op, "a"], (each for each in [a])):
        with graph.control_dependencies(given):
            assert graph.no_op().control_inputs == (a.op,)


def test_tensors_with_values_are_no_control_inputs(graph):
    with graph.control_dependencies([cytape.constant(1.0), cytape.Variable(1.0)]):
        assert graph.no_op().control_inputs == ()


def test_bad_control_inputs_are_refused(graph):
    with pytest.raises(TypeError, match="3 is not an operation"):
        graph.control_dependencies([3])
    with pytest.raises(ValueError, match="does not belong to this graph"):
        graph.control_dependencies([cytape.Graph().no_op()])
    with pytest.raises(ValueError, match="does not belong to this graph"):
        graph.control_dependencies([cytape.Graph().constant(1.0)])
    with pytest.raises(KeyError, match="no operation 'a'"):
        graph.control_dependencies(["a"])


# ---- devices


def test_devices_replace_each_other(graph):
    with graph.device("cpu:0"):
        outer = graph.constant(1.0)
        with graph.device("cpu:1"):
            inner = graph.constant(1.0)
        with graph.device(None):
            anywhere = graph.constant(1.0)
    after = graph.constant(1.0)
    assert [x.device for x in (outer, inner, anywhere, after)] == ["cpu:0", "cpu:1", "cpu", "cpu"]


def test_a_device_is_a_label(graph):
    with pytest.raises(TypeError, match="a device is a label"):
        graph.device(3)


def test_colocation_takes_the_device_over(graph):
    with graph.device("cpu:1"):
        x = graph.constant(1.0)
    with graph.device("cpu:2"):
        with graph.colocate_with(x), graph.name_scope("a"):
            y = graph.constant(1.0)
        with graph.colocate_with(y.op):
            z = graph.constant(1.0)
    assert (y.device, z.device, y.name) == ("cpu:1", "cpu:1", "a/Constant:0")


# ---- gradient functions


def test_overrides_nest(graph):
    x = graph.placeholder("float64")
    with graph.gradient_override_map({"Tanh": "A", "Sin": "B"}):
        with graph.gradient_override_map({"Tanh": "C"}):
            inner = [np.tanh(x), np.sin(x), np.cos(x)]
        outer = [np.tanh(x), np.sin(x)]
    after = np.tanh(x)
    assert [graph.gradient_override_of(y.op.node) for y in inner] == ["C", "B", None]
    assert [graph.gradient_override_of(y.op.node) for y in outer] == ["A", "B"]
    assert graph.gradient_override_of(after.op.node) is None


@pytest.mark.parametrize("overrides", [None, ["Tanh"], {"Tanh": 3}, {3: "Tanh"}, "Tanh"])
def test_overrides_map_strings_to_strings(graph, overrides):
    with pytest.raises(TypeError, match="mapping from op types"):
        graph.gradient_override_map(overrides)


def test_ops_remember_what_they_differentiate(graph):
    x = graph.placeholder("float64", name="x")
    with graph.name_scope("gradients"), graph.differentiating(x.op):
        y = np.tanh(x)
        with graph.control_dependencies([x]):
            z = np.tanh(x)
    assert (y.name, y.op.original_op) == ("gradients/x_grad/Tanh:0", x.op)
    assert (z.name, z.op.original_op) == ("gradients/x_grad/Tanh_1:0", x.op)
    assert graph.original_of(0) is None


# ---- all of them


def test_equal_contexts_are_one(graph):
    a = graph.no_op("a")
    for _ in range(3):
        with graph.device("cpu:1"), graph.control_dependencies([a]):
            graph.no_op()
        with graph.control_dependencies([a]), graph.device("cpu:1"):
            graph.no_op()
    assert len({graph.context_of(node) for node in range(1, 7)}) == 1
    assert len(graph.contexts) == 4
    assert graph.contexts[0] == Context()


def test_a_block_can_be_entered_again(graph):
    block = graph.device("cpu:1")
    with block:
        with block:
            first = graph.no_op()
        second = graph.no_op()
    with block:
        third = graph.no_op()
    fourth = graph.no_op()
    assert [op.device for op in (first, second, third, fourth)] == ["cpu:1"] * 3 + [""]


def test_blocks_do_not_disturb_other_graphs(graph):
    other = cytape.Graph()
    with graph.device("cpu:1"), graph.name_scope("a"):
        assert (other.no_op().device, other.no_op().name) == ("", "NoOp_1")


def test_a_scope_can_be_entered_without_working_out_its_name(graph):
    number = graph.scope_context("a")
    before = graph.enter_context(number)
    first = graph.no_op()
    graph.enter_context(before)
    with graph.name_scope("a"):
        second = graph.no_op()
    assert (first.name, second.name) == ("a/NoOp", "a_1/NoOp")
    assert graph.scope_context(None) == 0
    with pytest.raises(ValueError, match="not a valid name"):
        graph.scope_context("a b")


def test_ops_that_differentiate_one_may_be_on_another_device(graph):
    x = graph.placeholder("float64", name="x")
    with graph.device("cpu:1"):
        contexts = [graph.gradient_context(x.op.node), graph.gradient_context(x.op.node, "gpu:0")]
    made = []
    for number in contexts:
        before = graph.enter_context(number)
        made.append(graph.no_op())
        graph.enter_context(before)
    assert [op.device for op in made] == ["cpu:1", "gpu:0"]
    assert [op.original_op for op in made] == [x.op, x.op]
    assert [op.name for op in made] == ["x_grad/NoOp", "x_grad_1/NoOp"]
