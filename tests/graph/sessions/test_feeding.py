"""Values that can be fed for tensors."""

import numpy as np
import pytest

import cytape
from cytape.graph.sessions.feeding import checked_feeds


@pytest.fixture
def graph():
    return cytape.Graph()


def fed(tensor, value):
    [array] = checked_feeds(tensor.graph, {tensor: value}).values()
    return array


def test_keys_are_tensors_names_and_references(graph):
    x = graph.placeholder("float64", (2,), name="x")
    value = np.ones(2)
    for key in (x, x.op.outputs[0], "x:0", x.ref(), x.op.outputs[0].ref()):
        assert checked_feeds(graph, {key: value}) == {0: value}
        assert checked_feeds(graph, [(key, value)]) == {0: value}
    assert checked_feeds(graph, None) == checked_feeds(graph, {}) == {}


def test_a_tensor_is_fed_once(graph):
    x = graph.placeholder("float64", name="x")
    with pytest.raises(ValueError, match="'x:0' is fed twice"):
        checked_feeds(graph, {x: 1.0, "x:0": 2.0})


@pytest.mark.parametrize("feeds", [[1.0], ["ab"], [(1, 2, 3)]])
def test_other_than_pairs_is_refused(graph, feeds):
    with pytest.raises(TypeError, match="pairs"):
        checked_feeds(graph, feeds)


def test_operations_and_other_things_are_not_fed(graph):
    graph.placeholder("float64", name="x")
    with pytest.raises(ValueError, match="not a tensor of a graph"):
        checked_feeds(graph, {"x": 1.0})
    with pytest.raises(TypeError, match="not a tensor of a graph"):
        checked_feeds(graph, {1: 1.0})
    with pytest.raises(TypeError, match="not a tensor of a graph"):
        checked_feeds(graph, [(cytape.constant(1.0), 1.0)])
    with pytest.raises(KeyError, match="no operation 'y'"):
        checked_feeds(graph, {"y:0": 1.0})
    with pytest.raises(ValueError, match="does not belong to this graph"):
        checked_feeds(graph, {cytape.Graph().placeholder("float64"): 1.0})


@pytest.mark.parametrize(("shape", "accepted", "refused"), [
    (None, [(), (2,), (2, 3)], []), ((), [()], [(1,), (0,)]),
    ((2,), [(2,)], [(), (1,), (3,), (2, 1)]),
    ((None, 3), [(0, 3), (5, 3)], [(3,), (3, 2), (1, 3, 3)]),
    ((None,), [(0,), (7,)], [(), (1, 1)]),
])
def test_shapes_must_fit(graph, shape, accepted, refused):
    x = graph.placeholder("float64", shape, name="x")
    for own in accepted:
        assert fed(x, np.zeros(own)).shape == own
    for own in refused:
        with pytest.raises(ValueError, match="'x:0' has shape") as error:
            fed(x, np.zeros(own))
        assert str(shape) in str(error.value) and str(own) in str(error.value)


@pytest.mark.parametrize(("dtype", "value"), [
    ("float32", 1), ("float32", 1.5), ("float32", True), ("float32", np.float64(2.5)),
    ("float64", np.float32(2.5)), ("complex128", 1.5), ("complex64", 1j), ("int32", 7),
    ("uint8", [1, 255]), ("int64", np.uint8(3)), ("bool", True), ("int8", True),
    ("float64", cytape.constant([1, 2])), ("float64", cytape.Variable(3)),
])  # fmt: skip
def test_values_get_the_tensors_dtype(graph, dtype, value):
    array = fed(graph.placeholder(dtype), value)
    plain = value.numpy() if isinstance(value, cytape.Tensor) else np.asarray(value)
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, plain)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int64", 1.0), ("float64", 1j), ("bool", 1), ("int64", "1"), ("float64", None)])
def test_values_are_not_rounded(graph, dtype, value):
    with pytest.raises(TypeError, match=f"is {dtype}, cannot be fed"):
        fed(graph.placeholder(dtype), value)


@pytest.mark.parametrize(("dtype", "value"), [("uint8", 256), ("uint8", -1), ("int32", 2**40)])
def test_integers_do_not_wrap(graph, dtype, value):
    with pytest.raises(TypeError, match="out of range"):
        fed(graph.placeholder(dtype), value)


def test_symbolic_values_are_refused(graph):
    x, y = graph.placeholder("float64"), graph.placeholder("float64")
    with pytest.raises(cytape.errors.SymbolicTensorError):
        fed(x, y)


def test_ragged_values_are_refused(graph):
    with pytest.raises(ValueError, match="inhomogeneous"):
        fed(graph.placeholder("float64"), [[1.0], [1.0, 2.0]])
