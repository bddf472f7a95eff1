"""Variables in graphs."""

import numpy as np
import pytest

import cytape


def types(graph):
    return [operation.type for operation in graph.get_operations()]


# ---- get_variable


def test_a_variable_is_made_once(graph):
    v = graph.get_variable("v", (2, 3))
    assert isinstance(v, cytape.Variable)
    assert (v.name, v.shape, v.dtype, v.trainable) == ("v", (2, 3), np.float64, True)
    assert graph.get_variable("v") is graph.get_variable("v", [2, 3], float) is v
    assert graph.get_variable("w", ()) is not v
    assert cytape.Graph().get_variable("v", ()) is not v


def test_the_scope_does_not_matter(graph):
    with graph.name_scope("a"):
        v = graph.get_variable("v", ())
    with graph.name_scope("b"):
        assert graph.get_variable("v") is v


@pytest.mark.parametrize("shape", [(3,), (), (2, 1)])
def test_another_shape_is_refused(graph, shape):
    graph.get_variable("v", (2,))
    with pytest.raises(ValueError, match=r"'v' has shape \(2,\), asked for"):
        graph.get_variable("v", shape)


def test_another_dtype_is_refused(graph):
    graph.get_variable("v", (2,), "float32")
    with pytest.raises(ValueError, match="'v' has dtype float32, asked for float64"):
        graph.get_variable("v", dtype="float64")


@pytest.mark.parametrize(("arguments", "expected"), [
    ({"shape": 2}, [0.0, 0.0]), ({"initializer": [1, 2]}, [1, 2]), ({"initializer": 3.0}, 3.0),
    ({"initializer": 3.0, "shape": (2,)}, [3.0, 3.0]),
    ({"initializer": 3.0, "dtype": "float32"}, np.float32(3.0)),
    ({"initializer": cytape.constant([1.0])}, [1.0]),
    ({"initializer": cytape.Variable([1.0])}, [1.0]),
    ({"initializer": np.ones, "shape": (2,), "dtype": "int32"}, np.int32([1, 1])),
    ({"initializer": lambda shape, dtype: cytape.constant(2.0) * 3.0}, 6.0),
])
def test_initial_values(graph, arguments, expected):
    with graph.as_default():
        v = graph.get_variable("v", **arguments)
    np.testing.assert_array_equal(v.numpy(), expected)
    assert v.dtype == np.asarray(expected).dtype
    assert graph.n_nodes == 0


def test_bad_initial_values_are_refused(graph):
    with pytest.raises(ValueError, match="no variable 'v': give a shape"):
        graph.get_variable("v")
    with pytest.raises(ValueError, match=r"shape \(2,\), but its initial value has shape \(3,\)"):
        graph.get_variable("v", (2,), initializer=np.ones(3))
    with pytest.raises(ValueError, match="negative"):
        graph.get_variable("v", (-2,))
    with pytest.raises(ZeroDivisionError):
        graph.get_variable("v", (2,), initializer=lambda shape, dtype: 1 / 0)
    with pytest.raises(cytape.errors.SymbolicTensorError):
        graph.get_variable("v", initializer=graph.placeholder("float64"))
    assert graph.get_variable("v", ()).numpy() == 0.0


def test_variables_are_collected(graph):
    v, w = graph.get_variable("v", ()), graph.get_variable("w", (), trainable=False)
    graph.get_variable("v")
    assert [x.name for x in graph.get_collection("variables")] == ["v", "w"]
    assert [x.name for x in graph.get_collection("trainable_variables")] == ["v"]
    with graph.as_default():
        w * v * w
    assert [x.name for x in graph.variables] == ["w", "v"]


# ---- reading


def test_a_variable_is_read_once_until_it_changes(graph):
    v = cytape.Variable([1.0, 2.0], name="v")
    with graph.as_default():
        v * v + np.tanh(v)
        assert types(graph).count("ReadVariable") == 1
        v.assign([3.0, 4.0])
        after = v.value()
        v + 1.0
    assert types(graph).count("ReadVariable") == 2
    assert types(graph).count("VariableHandle") == 1
    assert graph.get_operation_by_name("v").type == "VariableHandle"
    assert after.op.inputs[0].name == "v:0"
    assert after.shape == (2,)


def test_outside_of_graphs_it_is_read_at_once(graph):
    v = cytape.Variable(2.0)
    x = graph.placeholder("float64", ())
    y = x * v
    assert y.op.inputs[1].op.type == "ReadVariable"
    assert (v * 3.0).numpy() == 6.0
    v.assign(5.0)
    assert cytape.Session(graph).run(y, {x: 2.0}) == 10.0


def test_a_read_waits_for_what_it_was_built_under(graph):
    v = cytape.Variable(1.0)
    session = cytape.Session(graph)
    with graph.as_default():
        change = v.assign_add(10.0)
        unconditional = v.value()
        with graph.control_dependencies([change]):
            after = v.value()
            again = v.value()
        outside = v.value()
    assert after.ref() == again.ref() != unconditional.ref()
    assert outside.ref() == unconditional.ref()
    assert session.run(unconditional) == 1.0
    assert session.run(after) == 11.0
    assert session.run([unconditional, after]) == [21.0, 21.0]


def test_the_handle_waits_for_nothing(graph):
    v = cytape.Variable(1.0)
    first = graph.no_op("first")
    with graph.as_default(), graph.control_dependencies([first]), graph.name_scope("a"):
        read = v.value()
    handle = read.op.inputs[0].op
    assert (handle.name, handle.control_inputs) == ("Variable", ())
    assert (read.op.name, read.op.control_inputs) == ("a/ReadVariable", (first,))


def test_reads_and_assignments_run_in_order(graph):
    v = cytape.Variable(1.0)
    with graph.as_default():
        values = [v.value()]
        for method, operand in [("assign", 10.0), ("assign_add", 5.0), ("assign_sub", 3.0)]:
            values.append(getattr(v, method)(operand))
            values.append(v.value())
    assert cytape.Session(graph).run(values) == [1.0, 10.0, 10.0, 15.0, 15.0, 12.0, 12.0]
    assert v.numpy() == 12.0


# ---- assigning


def test_tensors_are_assigned(graph):
    v = cytape.Variable([1.0, 2.0])
    x = graph.placeholder("float32", (None,), name="x")
    with graph.as_default():
        change = v.assign(x)
    np.testing.assert_array_equal(cytape.Session(graph).run(change, {x: [3.0, 4.0]}), [3.0, 4.0])
    assert (change.shape, change.dtype) == ((2,), np.float64)
    with pytest.raises(ValueError, match=r"shape \(2,\), cannot assign a value of shape \(3,\)"):
        cytape.Session(graph).run(change, {x: np.ones(3)})
    assert v.tolist() == [3.0, 4.0]


def test_slices_are_assigned_densely(graph):
    v = cytape.Variable([[1.0], [2.0]])
    slices = cytape.IndexedSlices(graph.constant([[5.0]]), graph.constant([1]), (2, 1))
    with graph.as_default():
        change = v.assign_sub(slices)
    np.testing.assert_array_equal(cytape.Session(graph).run(change), [[1.0], [-3.0]])


def test_a_gradient_goes_through_what_an_assignment_returns(graph):
    v = cytape.Variable(2.0)
    with graph.as_default():
        alone = v.assign_add(1.0) * 1.0
        y = alone * v
        gradients = cytape.gradients([alone], v), cytape.gradients([y], v)
    assert cytape.Session(graph).run([alone, y, *gradients]) == [3.0, 9.0, [1.0], [6.0]]


def test_assignments_are_chained(graph):
    v = cytape.Variable(2.0)
    slices = cytape.IndexedSlices(cytape.constant([5.0]), cytape.constant([0]), (1,))
    with graph.as_default():
        other = cytape.Variable([1.0]).assign([3.0]).assign_add(slices)
        first = v.assign_add(1.0)
    last = first.assign_sub(0.5).assign_add(first)
    assert cytape.Session(graph).run([last, other]) == [5.5, [8.0]]
    assert v.numpy() == 5.5
    for tensor in first * 1.0, cytape.constant(1.0):
        with pytest.raises(AttributeError, match="a tensor has no 'assign': variables have"):
            tensor.assign(1.0)


@pytest.mark.parametrize(("method", "shape"), [
    ("assign", (3,)), ("assign", ()), ("assign", (1, 2)), ("assign", (None, 2)),
    ("assign", (1,)), ("assign_add", (3,)), ("assign_sub", (1, 2)), ("assign_add", (2, None)),
])  # fmt: skip
def test_other_shapes_are_refused_when_the_graph_is_built(graph, method, shape):
    v = cytape.Variable([1.0, 2.0], name="v")
    x = graph.placeholder("float64", shape)
    with pytest.raises(ValueError, match=rf"'v' has shape \(2,\), cannot {method} a value of"):
        with graph.as_default():
            getattr(v, method)(x)
    assert "AssignVariable" not in types(graph)


@pytest.mark.parametrize(
    ("method", "shape"),
    [("assign", (None,)), ("assign", None), ("assign_add", ()), ("assign_sub", (1,)),
     ("assign_add", (None,)), ("assign_add", None)],
)  # fmt: skip
def test_shapes_that_may_fit_are_accepted(graph, method, shape):
    v = cytape.Variable([1.0, 2.0], name="v")
    x = graph.placeholder("float64", shape)
    with graph.as_default():
        assert getattr(v, method)(x).shape == (2,)


def test_other_kinds_are_refused_when_the_graph_is_built(graph):
    v = cytape.Variable([1, 2], name="v")
    with graph.as_default(), pytest.raises(TypeError, match="int64, cannot assign.*float64"):
        v.assign([1.5, 2.5])


def test_a_tape_follows_variables_in_graphs(graph):
    v = cytape.Variable(3.0)
    with graph.as_default(), cytape.GradientTape() as tape:
        y = v * v
    with graph.as_default():
        gradient = tape.gradient(y, v)
    assert cytape.Session(graph).run(gradient) == 6.0
    v.assign(5.0)
    assert cytape.Session(graph).run(gradient) == 10.0


def test_an_accumulator_follows_variables_in_graphs(graph):
    v = cytape.Variable(3.0)
    with graph.as_default(), cytape.ForwardAccumulator(v, 10.0) as accumulator:
        y = v * v
    assert cytape.Session(graph).run(accumulator.jvp(y)) == 60.0


def test_the_handle_of_a_variable_is_known_once_it_was_asked_for(graph):
    v = cytape.Variable(3.0)
    assert graph.known_handle(v) is None
    handle = graph.variable_handle(v)
    assert graph.known_handle(v) == graph.symbol_of(handle)
