"""Building a graph."""

import gc
import time
import weakref

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError
from cytape.graph.model.graph import checked_shape


def test_tensors_of_a_graph_have_no_value(graph):
    x = graph.placeholder("float64", (None, 2), name="x")
    assert repr(x) == "<Tensor 'x:0' (float64, shape (None, 2))>"
    assert (x.shape, x.dtype, x.ndim, x.size) == ((None, 2), np.float64, 2, None)
    with pytest.raises(SymbolicTensorError, match="'x:0'"):
        float(x)
    assert repr(graph.placeholder("bool")) == "<Tensor 'Placeholder:0' (bool, unknown shape)>"


def test_ops_are_added_where_their_operands_are(graph):
    x = graph.placeholder("float64", (2,))
    y = np.tanh(x) + 1.0
    assert y.graph is graph
    assert np.tanh(cytape.constant(1.0)).graph is None


def test_ops_of_constants_are_added_to_the_default_graph(graph):
    with graph.as_default() as entered:
        y = np.tanh(cytape.constant([1.0]))
        with cytape.Graph().as_default() as other:
            assert cytape.constant(1.0).graph is other
        assert cytape.constant(1.0).graph is graph
    assert entered is graph and y.graph is graph
    assert cytape.constant(1.0).graph is None


def test_the_default_graph_is_left_when_an_error_passes(graph):
    with pytest.raises(ZeroDivisionError), graph.as_default():
        1 / 0  # noqa: B018
    assert cytape.constant(1.0).graph is None


def test_graphs_do_not_mix(graph):
    x, y = graph.placeholder("float64"), cytape.Graph().placeholder("float64")
    with pytest.raises(ValueError, match="belongs to another graph"):
        x + y


@pytest.mark.parametrize(("shape", "expected"), [
    (None, None), ((), ()), (3, (3,)), ([2, None], (2, None)), ((np.int64(2),), (2,)),
    (np.int32(4), (4,)),
])  # fmt: skip
def test_shapes_of_placeholders(graph, shape, expected):
    assert checked_shape(shape) == expected
    assert graph.placeholder("float32", shape).shape == expected


@pytest.mark.parametrize(
    ("shape", "error"), [((-1,), ValueError), ((1.5,), TypeError), ("ab", TypeError)])
def test_bad_shapes_are_refused(graph, shape, error):
    with pytest.raises(error):
        graph.placeholder("float32", shape)
    assert graph.n_nodes == 0


@pytest.mark.parametrize("dtype", [object, "no dtype", [("a", int)]])
def test_bad_dtypes_are_refused(graph, dtype):
    with pytest.raises(TypeError):
        graph.placeholder(dtype)
    assert graph.n_nodes == 0


def test_constants_keep_their_own_data(graph):
    array = np.array([1.0, 2.0])
    tensors = [
        graph.constant(array), graph.constant([1, 2], dtype="float32"),
        graph.constant(cytape.Variable(3.0), name="c"), graph.constant(cytape.constant(4.0)),
    ]  # fmt: skip
    array[:] = 0.0
    session = cytape.Session(graph)
    for tensor, expected in zip(tensors, [[1.0, 2.0], [1.0, 2.0], 3.0, 4.0], strict=True):
        np.testing.assert_array_equal(session.run(tensor), expected)
    assert [tensor.dtype for tensor in tensors[:2]] == [np.float64, np.float32]
    assert tensors[2].name == "c:0"
    with pytest.raises(SymbolicTensorError):
        graph.constant(tensors[0])


def test_constants_can_be_named_where_a_graph_is_built(graph):
    with graph.as_default():
        assert cytape.constant(1.0, name="c").name == "c:0"
    assert cytape.constant(1.0, name="c").graph is None


def test_identity_gives_another_tensor(graph):
    x = graph.placeholder("float64", (2,))
    y = cytape.identity(x, name="y")
    assert (y.name, y.op.type, y.shape) == ("y:0", "Identity", (2,))
    assert cytape.identity(x).name == "Identity:0"
    eager = cytape.identity([1.0, 2.0], name="y")
    assert eager.graph is None and eager.tolist() == [1.0, 2.0]


def test_a_group_waits_for_all(graph):
    a, b = graph.no_op("a"), graph.constant(1.0, name="b")
    assert [op.name for op in graph.group(a, b, name="both").control_inputs] == ["a", "b"]
    assert graph.group("a").control_inputs == (a,)
    assert graph.group().name == "group_1"


def test_control_inputs_can_be_added(graph):
    a, b, c = graph.no_op("a"), graph.no_op("b"), graph.no_op("c")
    version = graph.version
    graph.add_control_inputs(c, [b])
    graph.add_control_inputs(c, "a")
    graph.add_control_inputs(c, a)
    assert c.control_inputs == (a, b)
    assert graph.control_inputs_of(2) == [0, 1]
    assert (a.control_inputs, b.control_inputs) == ((), ())
    assert graph.version > version
    for other in (b, c):
        with pytest.raises(ValueError, match="cannot wait for"):
            graph.add_control_inputs(b, other)


def test_added_control_inputs_join_those_of_the_context(graph):
    a, b = graph.no_op("a"), graph.no_op("b")
    with graph.control_dependencies([a]):
        c = graph.no_op("c")
    graph.add_control_inputs(c, [b, a])
    assert c.control_inputs == (a, b)


def test_a_finalized_graph_does_not_change(graph):
    x = graph.placeholder("float64")
    y = np.tanh(x)
    assert not graph.finalized
    graph.finalize()
    assert graph.finalized
    with pytest.raises(RuntimeError, match="finalized: op 'Tanh'"):
        np.tanh(x)
    with pytest.raises(RuntimeError, match="finalized: op 'Placeholder'"):
        graph.placeholder("float64")
    with pytest.raises(RuntimeError, match="finalized: op 'Tanh' cannot wait"):
        graph.add_control_inputs(y.op, x)
    with pytest.raises(RuntimeError, match="finalized: op 'Constant'"):
        x + 2.0
    assert graph.n_nodes == 2


def test_failed_ops_are_not_added(graph):
    x, y = graph.placeholder("float64", (2,)), graph.placeholder("float64", (3,))
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        x + y
    assert graph.n_nodes == 2


def test_a_graph_lives_as_long_as_its_last_tensor():
    with cytape.Graph().as_default() as graph, graph.name_scope("a"):
        v = graph.get_variable("v", initializer=1.0)
        y = np.tanh(graph.placeholder("float64", name="x")) * v
    graph.add_to_collection("tensors", y)
    graph.add_to_collection("operations", y.op)
    y.consumers()
    cytape.Session(graph).run(y, {"a/x:0": 1.0})
    reference = weakref.ref(graph)
    del graph
    gc.collect()
    assert reference() is y.graph
    assert y.name == "a/Multiply:0"
    del y
    gc.collect()
    assert reference() is None


def test_repr_counts_operations(graph):
    graph.no_op()
    assert repr(graph) == "<Graph of 1 operations>"


def test_building_takes_linear_time(graph):
    def build(n):
        x = graph.placeholder("float64", (2,))
        start = time.process_time()  # whatever else the machine does
        for _ in range(n):
            x = np.tanh(x)
        x.name  # noqa: B018
        x.op.inputs[0].consumers()
        return time.process_time() - start

    build(1000)
    short, long = min(build(2000) for _ in range(3)), min(build(16000) for _ in range(3))
    assert long < 8 * 4 * short
