"""How gradients that arrive at one tensor are summed."""

import numpy as np
import pytest

import cytape
from cytape import AggregationMethod
from cytape.ops.engine.op_kinds import general
from cytape.tensor.recording.state import building_into
from tests.graph.programs import evaluate, types_of

METHODS = [None, AggregationMethod.ADD_N, AggregationMethod.DEFAULT,
           AggregationMethod.EXPERIMENTAL_TREE, AggregationMethod.EXPERIMENTAL_ACCUMULATE_N]
PAIRWISE = METHODS[3:]


def used_ten_times():
    x = cytape.constant(1.0)
    y = 2.0 * x
    return x, y, [y * float(i) for i in range(10)]


def additions(graph, first):
    """Count, for each number of inputs, the sums among ops from a node on."""
    counts = {}
    for op in graph.get_operations()[first:]:
        if op.type in ("Add", "AddN"):
            counts[len(op.inputs)] = counts.get(len(op.inputs), 0) + 1
    return counts


@pytest.mark.parametrize("method", METHODS)
def test_d_4a_10_every_method_gives_the_sum(graph, method):
    x, y, zs = used_ten_times()
    assert evaluate(cytape.gradients(zs, [x, y], aggregation_method=method)) == [90.0, 45.0]
    total = cytape.identity(y)
    for _ in range(9):
        total = total + y
    assert evaluate(cytape.gradients(total, [x, y], aggregation_method=method)) == [20.0, 10.0]


def test_d_4a_10_the_default_is_one_op_of_ten_inputs(graph):
    assert AggregationMethod.DEFAULT == AggregationMethod.ADD_N == 0
    x, y, zs = used_ten_times()
    before = graph.n_nodes
    cytape.gradients(zs, [x, y])
    assert additions(graph, before) == {10: 1}


@pytest.mark.parametrize("method", PAIRWISE)
def test_d_4a_10_the_other_methods_take_nine_ops_of_two_inputs(graph, method):
    x, y, zs = used_ten_times()
    before = graph.n_nodes
    cytape.gradients(zs, [x, y], aggregation_method=method)
    assert additions(graph, before) == {2: 9}


@pytest.mark.parametrize("method", METHODS)
def test_d_4a_10_a_single_contribution_is_not_added(graph, method):
    x = cytape.constant(1.0)
    y = np.sin(x)
    before = graph.n_nodes
    cytape.gradients(y, x, aggregation_method=method)
    assert additions(graph, before) == {}


@pytest.mark.parametrize("method", [3, -1, "tree"])
def test_d_4a_10_an_unknown_method_is_an_error_once_something_is_aggregated(graph, method):
    x = cytape.constant(1.0)
    assert evaluate(cytape.gradients(2.0 * x, x, aggregation_method=method)) == [2.0]
    with pytest.raises(ValueError, match="aggregation_method") as info:
        cytape.gradients(x * x, x, aggregation_method=method)
    assert repr(method) in str(info.value)


@pytest.mark.parametrize("method", PAIRWISE)
def test_pairs_are_added_as_soon_as_they_are_there(graph, method):
    x, y, zs = used_ten_times()
    before = graph.n_nodes
    cytape.gradients(zs, y, aggregation_method=method)
    alive = most = 0
    for op in graph.get_operations()[before:]:
        if op.type == "Multiply":
            alive += 1
        elif op.type == "Add":
            alive -= 1
        most = max(most, alive)
    assert (alive, most) == (1, 2)


@pytest.mark.parametrize("method", PAIRWISE)
def test_pairs_are_added_in_a_scope_called_after_the_op(graph, method):
    x, y, zs = used_ten_times()
    before = graph.n_nodes
    cytape.gradients(zs, y, aggregation_method=method)
    names = [op.name for op in graph.get_operations()[before:] if op.type == "Add"]
    assert names[:2] == [
        "gradients/Multiply_gradient_sum/Add", "gradients/Multiply_gradient_sum/Add_1"]


@pytest.mark.parametrize("method", METHODS)
def test_extents_that_are_not_known_do_not_matter(graph, method):
    x = cytape.placeholder("float64", (None,))
    [dx] = cytape.gradients([x * 2.0, x * 3.0, x * x], x, aggregation_method=method)
    value = cytape.Session(graph).run(dx, {x: [1.0, 10.0]})
    np.testing.assert_array_equal(value, [7.0, 25.0])


# ---- sparse gradients


def table_and_rows(*rows):
    table = cytape.constant(np.arange(8.0).reshape(4, 2))
    return table, [cytape.gather(table, np.array(each)) for each in rows]


def dense_sum(*rows):
    total = np.zeros((4, 2))
    for each in rows:
        np.add.at(total, np.array(each), 1.0)
    return total


def test_d_4a_11_slices_pass_through_identities(graph):
    table = cytape.constant(np.arange(8.0).reshape(4, 2))
    [dtable] = cytape.gradients(cytape.gather(cytape.identity(table), [1, 1, 3]), table)
    assert isinstance(dtable, cytape.IndexedSlices)
    np.testing.assert_array_equal(evaluate(dtable.indices), [1, 1, 3])
    first, _ = cytape.identity_n(table, cytape.constant(1.0))
    [dtable] = cytape.gradients(cytape.gather(first, [1, 1, 3]), table)
    assert isinstance(dtable, cytape.IndexedSlices)


def test_d_4a_11_slices_of_a_variable_stay_slices(graph):
    variable = cytape.Variable(np.arange(8.0).reshape(4, 2))
    [slices] = cytape.gradients(cytape.gather(variable, [1, 1, 3]), variable)
    assert isinstance(slices, cytape.IndexedSlices)
    np.testing.assert_array_equal(evaluate(slices.to_tensor()), dense_sum([1, 1, 3]))


@pytest.mark.parametrize("method", METHODS)
def test_d_4a_11_slices_are_concatenated_whatever_the_method(graph, method):
    table, ys = table_and_rows([0, 2], [2, 3, 3])
    before = graph.n_nodes
    [slices] = cytape.gradients(ys, table, aggregation_method=method)
    assert isinstance(slices, cytape.IndexedSlices)
    assert slices.dense_shape == (4, 2)
    assert additions(graph, before) == {}
    assert sorted(evaluate(slices.indices)) == [0, 2, 2, 3, 3]
    np.testing.assert_array_equal(evaluate(slices.to_tensor()), dense_sum([0, 2], [2, 3, 3]))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dense_first", [True, False])
def test_d_4a_11_slices_and_tensors_make_a_tensor(graph, method, dense_first):
    table, ys = table_and_rows([0, 2], [2, 3, 3])
    ys = [table * 10.0, *ys, table * 100.0] if dense_first else [*ys, table * 10.0, table * 100.0]
    [gradient] = cytape.gradients(ys, table, aggregation_method=method)
    assert isinstance(gradient, cytape.Tensor)
    expected = dense_sum([0, 2], [2, 3, 3]) + 110.0
    np.testing.assert_array_equal(evaluate(gradient), expected)


def test_slices_as_a_seed(graph):
    x = cytape.constant(np.ones((3, 2)))
    seed = cytape.IndexedSlices(cytape.constant([[5.0, 7.0]]), cytape.constant([1]), (3, 2))
    [same] = cytape.gradients(x, x, grad_ys=seed)
    assert isinstance(same, cytape.IndexedSlices)
    [dense] = cytape.gradients(x * 2.0, x, grad_ys=seed)
    np.testing.assert_array_equal(evaluate(dense), [[0.0, 0.0], [10.0, 14.0], [0.0, 0.0]])


# ---- devices


def on_devices(devices):
    """Build uses of a tensor on devices; return it, the uses and how many nodes there are."""
    graph = cytape.get_default_graph()
    with graph.device("/job:w/task:0/device:cpu:0"):
        x = cytape.constant(3.0)
    ys = []
    for i, device in enumerate(devices):
        with graph.device(device):
            ys.append(x * float(i + 1))
    return x, ys, graph.n_nodes


def sums(graph, first):
    """List the sums among ops from a node on: where they are computed, and their inputs."""
    return [
        (op.device, [tensor.device for tensor in op.inputs])
        for op in graph.get_operations()[first:]
        if op.type in ("Add", "AddN")
    ]


CPU, GPU, REMOTE = (
    "/job:w/task:0/device:cpu:0", "/job:w/task:0/device:gpu:0", "/job:w/task:1/device:gpu:0")


def test_gradient_ops_are_on_the_device_of_the_op_if_requested(graph):
    x, ys, before = on_devices([CPU, GPU])
    cytape.gradients(ys[1], x, colocate_gradients_with_ops=True)
    assert {op.device for op in graph.get_operations()[before:]} == {GPU}
    before = graph.n_nodes
    cytape.gradients(ys[1], x)
    assert {op.device for op in graph.get_operations()[before:]} == {""}
    before = graph.n_nodes
    with graph.device(REMOTE):
        cytape.gradients(ys[1], x)
    assert {op.device for op in graph.get_operations()[before:]} == {REMOTE}


def test_all_on_one_device_are_one_sum_there(graph):
    x, ys, before = on_devices([GPU] * 4)
    [dx] = cytape.gradients(ys, x, colocate_gradients_with_ops=True)
    assert sums(graph, before) == [(GPU, [GPU] * 4)]
    assert evaluate(dx) == 10.0


def test_per_device_sums_are_added_up_level_by_level(graph):
    x, ys, before = on_devices([CPU, CPU, CPU, GPU, GPU, REMOTE, REMOTE])
    [dx] = cytape.gradients(ys, x, colocate_gradients_with_ops=True)
    assert evaluate(dx) == 28.0
    found = sums(graph, before)
    assert sorted(found[:3]) == sorted([(CPU, [CPU] * 3), (GPU, [GPU] * 2), (REMOTE, [REMOTE] * 2)])
    # Task 0 first, then the job.
    assert found[3:] == [(CPU, [CPU, GPU]), (CPU, [CPU, REMOTE])]


def test_a_gradient_without_a_device_is_added_last(graph):
    x, ys, before = on_devices([CPU, GPU, ""])
    [dx] = cytape.gradients(ys, x, colocate_gradients_with_ops=True)
    assert evaluate(dx) == 6.0
    found = sums(graph, before)
    assert found[0] == (CPU, [CPU, GPU])
    assert sorted(found[1][1]) == [CPU, "cpu"]


def test_sums_of_pairs_are_on_the_device_of_the_op(graph):
    x, ys, before = on_devices([CPU, GPU, REMOTE])
    [dx] = cytape.gradients(
        ys, x, colocate_gradients_with_ops=True,
        aggregation_method=AggregationMethod.EXPERIMENTAL_TREE)
    assert evaluate(dx) == 6.0
    assert {device for device, _ in sums(graph, before)} == {CPU}


# ---- contributions of a gradient function


many_ways = general("DeclaredEach", lambda x, y: x + y, vjp=lambda op, dy: (2.0, np.array(3.0)))


def test_gradients_may_be_numbers_and_arrays(graph):
    x, y = cytape.constant(1.0), cytape.constant(2.0)
    assert evaluate(cytape.gradients(many_ways(x, y), [x, y])) == [2.0, 3.0]
    assert evaluate(cytape.gradients(many_ways(x, x), x)) == [5.0]
    assert "Constant" in types_of(graph)


# ---- D-4A-16: dense tensors of slices


def test_d_4a_16_slices_of_one_index_are_summed(graph):
    table = cytape.constant(np.zeros((4, 2)))
    [slices] = cytape.gradients(cytape.gather(table, [1, 3, 1]), table)
    np.testing.assert_array_equal(evaluate(slices.to_tensor()), dense_sum([1, 3, 1]))


@pytest.mark.parametrize("shape", [None, (None, 2)])
def test_d_4a_16_without_a_dense_shape_it_is_an_error(graph, shape):
    slices = cytape.IndexedSlices(cytape.constant([[1.0, 2.0]]), cytape.constant([0]), shape)
    with pytest.raises(ValueError, match="dense_shape"):
        slices.to_tensor()


@pytest.mark.parametrize("in_graph", [True, False])
def test_d_4a_16_many_elements_are_warned_of(in_graph, monkeypatch):
    monkeypatch.setattr("cytape.ops.sparse_sums.MANY_ELEMENTS", 1000)
    with building_into(cytape.Graph() if in_graph else None):
        values, indices = cytape.constant([1.0]), cytape.constant([0])
        cytape.IndexedSlices(values, indices, (999,)).to_tensor()
        with pytest.warns(UserWarning, match="1000 elements .* much memory"):
            cytape.IndexedSlices(values, indices, (1000,)).to_tensor()


def test_d_4a_16_the_limit_is_a_hundred_million(graph):
    values, indices = cytape.constant([1.0]), cytape.constant([0])
    cytape.IndexedSlices(values, indices, (99_999_999,)).to_tensor()
    with pytest.warns(UserWarning, match="100000000 elements"):
        cytape.IndexedSlices(values, indices, (100_000_000,)).to_tensor()


def test_d_4a_16_an_unknown_number_of_elements_is_warned_of(graph):
    table = cytape.placeholder("float64", (None, 2))
    [slices] = cytape.gradients(cytape.gather(table, [1, 1]), table)
    with pytest.warns(UserWarning, match="unknown number"):
        dense = slices.to_tensor()
    value = cytape.Session(graph).run(dense, {table: np.zeros((3, 2))})
    np.testing.assert_array_equal(value, [[0, 0], [2, 2], [0, 0]])
