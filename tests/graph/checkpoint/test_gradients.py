"""Gradients that keep only checkpoints: equal to plain ones, in less memory."""

import random
import warnings

import numpy as np
import pytest

import cytape
from cytape.graph import checkpoint
from tests.cases import each, sampled
from tests.graph.checkpoint.chains import (
    SIZE,
    chain,
    count,
    mlp,
    named,
    residual_chain,
    same,
    traces_of_runs,
)


def differ(graph, ys, xs, feed_dict=None, grad_ys=None, n_runs=2, **options):
    """Return plain gradients and such with checkpoints, after checking that they are the same."""
    checkpoints = options.pop("checkpoints")
    with graph.as_default():
        plain = cytape.gradients(ys, xs, grad_ys, **options)
        kept = cytape.gradients(ys, xs, grad_ys, checkpoints=checkpoints, **options)
    assert [x is None for x in plain] == [x is None for x in kept]
    there = [i for i, x in enumerate(plain) if x is not None]
    wanted = values(graph, [plain[i] for i in there], feed_dict)
    session = cytape.Session(graph)
    for _ in range(n_runs):
        found = values(graph, [kept[i] for i in there], feed_dict, session)
        assert same(found, wanted)
    return wanted, kept


def values(graph, fetches, feed_dict=None, session=None):
    results = (session or cytape.Session(graph)).run(fetches, feed_dict)
    return [x.to_tensor().numpy() if isinstance(x, cytape.IndexedSlices) else x for x in results]


@each("kept, ys, xs", [
    *((kept, [5], [0]) for kept in ([1], [3], [1, 2, 3, 4], [2, 4], [4])),
    ([1, 3], [5], [0, 2]),  # on both sides of a checkpoint
    ([2, 5], [7, 3, 0], [0, 1])])  # one upstream of another
def test_d_5b_01_equal_to_plain_gradients_for_every_choice(kept, ys, xs):
    a = chain(8)
    differ(a[0].graph, [a[i] for i in ys], [a[i] for i in xs], checkpoints=[a[i] for i in kept])


def test_d_5b_01_one_entry_per_x_none_for_unconnected_ones():
    a = chain(6)
    graph = a[0].graph
    with graph.as_default():
        apart = cytape.placeholder("float64", (3,))
    _, found = differ(graph, a[-1], [a[0], apart, a[3]], checkpoints=[a[2]])
    assert found[1] is None


def test_d_5b_01_random_graphs():
    rng = random.Random(1)
    for _ in range(40):
        with cytape.Graph().as_default() as graph:
            xs = [cytape.placeholder("float64", (3, 3)) for _ in range(3)]
            tensors = list(xs)
            for _ in range(rng.randrange(3, 25)):
                one, other = rng.choice(tensors[-4:]), rng.choice(tensors)
                tensors.append(rng.choice([
                    lambda x, y: x @ y, lambda x, y: x * np.tanh(y), lambda x, y: x + y,
                    lambda x, y: np.maximum(x, y[0]), lambda x, y: np.where(x > 0, x, y),
                ])(one, other) * 0.5)
            ys = rng.sample(tensors[3:], rng.randrange(1, 3)) + tensors[-1:]
            sources = rng.sample(tensors, 3)
        kept = rng.sample(tensors, rng.randrange(1, len(tensors)))
        feeds = {x: np.random.RandomState(i).standard_normal((3, 3)) for i, x in enumerate(xs)}
        try:
            differ(graph, ys, sources, feeds, checkpoints=kept)
        except ValueError as error:
            assert "no checkpoint nodes" in str(error)


@each("checkpoints", ["memory", "speed"])
def test_d_5b_01_a_network(checkpoints):
    loss, weights, layers = mlp(9)
    (_, kept) = differ(loss.graph, loss, weights, checkpoints=checkpoints)
    assert len(kept) == 9


def test_d_5b_04_checkpoints_that_are_not_between_are_ignored():
    a = chain(6)
    graph = a[0].graph
    with graph.as_default():
        apart = np.tanh(np.tanh(a[0]))
        after = np.tanh(a[-1])
    differ(graph, a[-1], [a[0]], checkpoints=[a[0], apart, a[2], after, a[-1]])


def test_d_5b_10_structure_of_the_rewritten_graph():
    a = chain(5)
    graph = a[0].graph
    n_before = graph.n_nodes
    cytape.gradients(a[4], a[0], checkpoints=[a[2]])
    added = graph.get_operations()[n_before:]
    pin = graph.get_operation_by_name("a02_sg")
    assert [x.name for x in pin.inputs] == ["a02:0"]
    readers = [op.name for op in added if "a02_sg:0" in [x.name for x in op.inputs]]
    assert readers == ["a03_1"]
    names = [op.name for op in added if op.type == "Tanh"]
    assert names == ["a03_1", "a04_1", "a01_1", "a02_1"]  # the last segment first
    assert sum(op.type == "Tanh" for op in graph.get_operations()) == 8
    position = {op.name: i for i, op in enumerate(added)}
    last_of_the_second = position["gradients/a03_grad/Multiply_1"]
    assert position["a04_1"] < position["gradients/a04_grad/Multiply_1"] < last_of_the_second
    assert last_of_the_second < position["a01_1"] < position["gradients/a02_grad/Multiply"]


def waits_for(op):
    """Return the names of all that must run before an op."""
    found, pending = set(), [op]
    while pending:
        op = pending.pop()
        for other in [*op.control_inputs, *(x.op for x in op.inputs)]:
            if other.name not in found:
                found.add(other.name)
                pending.append(other)
    return found


def test_d_5b_11_recomputation_waits():
    a = chain(9)
    graph = a[0].graph
    inputs = {op.name: [x.name for x in op.inputs] for op in graph.get_operations()}
    cytape.gradients(a[8], a[0], checkpoints=[a[3], a[6]])
    for copy in ("a07_1", "a08_1"):
        assert "a08" in waits_for(graph.get_operation_by_name(copy))
    for copy in ("a04_1", "a05_1", "a06_1"):
        assert "gradients/a07_grad/Multiply_1" in waits_for(graph.get_operation_by_name(copy))
    for copy in ("a01_1", "a02_1", "a03_1"):
        assert "gradients/a04_grad/Multiply_1" in waits_for(graph.get_operation_by_name(copy))
    for op in graph.get_operations()[: len(inputs)]:
        assert [x.name for x in op.inputs] == inputs[op.name]
        assert not op.control_inputs


def test_d_5b_12_an_x_used_in_several_segments():
    with cytape.Graph().as_default() as graph:
        w = cytape.placeholder("float64", (4, 4))
        h = cytape.placeholder("float64", (5, 4))
        layers = [h]
        for _ in range(6):
            layers.append(np.tanh(layers[-1] @ w + layers[0]))
    rng = np.random.RandomState(0)
    feeds = {w: rng.standard_normal((4, 4)), h: rng.standard_normal((5, 4))}
    differ(graph, layers[-1], [w, h], feeds, checkpoints=[layers[2], layers[4]])


@each("shape", [(10, 3), (None, 3), (None, None)])
def test_d_5b_12_sparse_gradients_also_of_unknown_dense_shape(shape):
    with cytape.Graph().as_default() as graph:
        table = cytape.placeholder("float64", shape)
        h = 0.0
        rows = []
        for i in range(4):
            h = np.tanh(h + np.take(table, np.array([i, 2 * i + 1]), axis=0))
            rows.append(h)
    feeds = {table: np.linspace(-1.0, 1.0, 30).reshape(10, 3)}
    _, [found] = differ(graph, h, [table], feeds, checkpoints=rows[1:3])
    assert isinstance(found, cytape.IndexedSlices) == (shape[1] is not None)
    with warnings.catch_warnings():  # slices of unknown size are made dense, as without checkpoints
        warnings.simplefilter("ignore", UserWarning)
        differ(graph, h + np.sum(table), [table], feeds, checkpoints=rows[1:3])


@each("options", [
    {"aggregation_method": cytape.AggregationMethod.EXPERIMENTAL_TREE},
    {"gate_gradients": True}, {"colocate_gradients_with_ops": True}, {"name": "derivative"},
    {"unconnected_gradients": "zero"},
])
def test_d_5b_13_options_are_handed_on(options):
    loss, weights, layers = mlp(4)
    with loss.graph.as_default():
        shared = weights[0]
        loss = loss + np.sum(np.tanh(layers[-1] @ shared))
    _, found = differ(loss.graph, loss, weights, checkpoints="memory", **options)
    if "name" in options:
        assert found[0].name.startswith("derivative")


def test_d_5b_13_stopped_gradients():
    a = chain(7)
    differ(a[0].graph, a[-1] * a[3], [a[0], a[2]], checkpoints=[a[1], a[4]], stop_gradients=a[3])


def test_d_5b_13_an_unknown_method_is_refused_by_the_trial_already():
    loss, weights, layers = mlp(4)
    n_before = loss.graph.n_nodes
    with loss.graph.as_default(), pytest.raises(ValueError, match="aggregation_method"):
        shared = layers[-1] @ weights[0]
        cytape.gradients(
            np.sum(shared) + loss, weights, checkpoints="memory", aggregation_method=99)
    assert loss.graph.n_nodes > n_before


@each("wrapper", [
    checkpoint.gradients_collection, checkpoint.gradients_memory, checkpoint.gradients_speed])
def test_d_5b_13_wrappers_can_replace_gradients(wrapper):
    loss, weights, layers = mlp(6)
    loss.graph.add_to_collection("checkpoints", layers[2])
    plain = cytape.gradients(loss, weights, [cytape.constant(2.0)], name="g")
    found = wrapper(loss, weights, [cytape.constant(2.0)], name="g")
    session = cytape.Session(loss.graph)
    assert same(session.run(found), session.run(plain))


def test_d_5b_14_grad_ys():
    a = chain(6)
    with a[0].graph.as_default():
        g = cytape.placeholder("float64", (SIZE,))
    wanted, _ = differ(
        a[0].graph, [a[-1], a[2]], [a[0]], {g: np.arange(SIZE) * 1.0}, grad_ys=[g, None],
        checkpoints=[a[3]])
    assert wanted[0].any()


@each("build, n, plain_units, units, n_tanh", [
    (chain, 100, 101, 20, 198), (chain, 26, 27, 10, 50), (residual_chain, 100, 101, 20, 198)])
def test_d_5b_15_peak_memory(build, n, plain_units, units, n_tanh):
    """In units of one activation; a plain gradient of a chain needs neither a00 nor the last to
    the end.

    The graph has each op twice. What is kept is not computed again, where only that is read.
    """
    a = build(n)
    graph = a[0].graph
    for checkpoints, most in ((None, plain_units), ("memory", units)):
        with graph.as_default():
            [dx] = cytape.gradients(a[-1], a[0], checkpoints=checkpoints)
        _, traces = traces_of_runs(graph, dx)
        unit = 8 * SIZE
        peaks = [trace.peak_bytes / unit for trace in traces]
        if build is chain:
            assert peaks[0] == (most if checkpoints else most - 2)
        else:
            assert most - 2 <= peaks[0] <= most
        assert peaks[1] == peaks[2] and peaks[0] - 1.01 <= peaks[1] <= peaks[0]
        [n_evaluations] = {count(trace, "Tanh") for trace in traces}
        n_ops = sum(op.type == "Tanh" for op in graph.get_operations())
        if checkpoints:
            n_kept = sum(op.name.endswith("_sg") for op in graph.get_operations()) - 1
            assert n_ops == n_tanh
            assert n_evaluations == n_tanh - (n_kept if build is chain else 0)
        else:
            assert n_evaluations == n_ops == n - 1


def test_peaks_and_counts_agree_on_the_first_three_runs():
    loss, weights, _ = mlp(64, width=80, batch=80)
    graph = loss.graph
    peaks = {}
    for checkpoints in (None, "memory"):
        with graph.as_default():
            found = cytape.gradients(loss, weights, checkpoints=checkpoints)
        results, traces = traces_of_runs(graph, found)
        assert same(results[0], results[1]) and same(results[0], results[2])
        assert len({count(trace, "MatMul") for trace in traces}) == 1
        assert traces[1].peak_bytes == traces[2].peak_bytes
        assert traces[0].peak_bytes == pytest.approx(traces[1].peak_bytes, rel=0.05)
        peaks[checkpoints] = traces[0].peak_bytes - sum(8 * 80 * 80 for _ in weights)
    assert peaks["memory"] < 0.4 * peaks[None]


def peak_of(graph, fetches):
    return max(trace.peak_bytes for trace in traces_of_runs(graph, fetches)[1])


@each("kind", ["memory", "auto", "list"])
def test_nothing_is_computed_again_where_plans_fuse_all(kind):
    a = chain(40, size=1 << 14)
    graph, checkpoints = a[0].graph, a[6:36:6] if kind == "list" else kind
    with graph.as_default():
        [plain] = cytape.gradients(a[-1], a[0])
        plan = checkpoint.plan(a[-1], a[0], checkpoints=checkpoints)
        [dx] = cytape.gradients(a[-1], a[0], checkpoints=checkpoints)
        [planned] = cytape.gradients(a[-1], a[0], checkpoints=plan)
    results = [traces_of_runs(graph, each)[0] for each in (plain, dx, planned)]
    assert all(np.array_equal(x, results[0][0]) for each in results for x in each)
    peaks = [peak_of(graph, each) for each in (plain, dx, planned)]
    assert peaks == [plan.peak_bytes] * 3 == [plan.plain_peak_bytes] * 3
    assert peaks[0] < 5 * a[0].spec.nbytes


def test_checkpoints_between_fused_ops_stay_where_they_save_memory():
    """As a plan fuses nothing across products of matrices."""
    with cytape.Graph().as_default() as graph:
        w = cytape.Variable(np.eye(64))
        h = cytape.identity(cytape.Variable(np.ones((512, 64))))
        for _ in range(24):
            h = np.sin(np.tanh(h @ w) * 1.5)
        plain, kept = (cytape.gradients(h, w, checkpoints=kind) for kind in (None, "memory"))
    assert peak_of(graph, kept) < 0.5 * peak_of(graph, plain)


def test_a_second_gradient_at_another_point():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (None,))
        a = [x]
        for _ in range(8):
            a.append(np.sin(a[-1]))
        [plain] = cytape.gradients(a[-1], x)
        [found] = cytape.gradients(a[-1], x, checkpoints=[a[3], a[6]])
    session = cytape.Session(graph)
    for n in (1, 2, 5, 5):
        feed = {x: np.linspace(0.0, n, n)}
        assert same([session.run(found, feed)], [session.run(plain, feed)])


def test_gradients_can_be_differentiated_again():
    a = chain(7)
    with a[0].graph.as_default():
        [plain] = cytape.gradients(a[-1], a[0])
        [found] = cytape.gradients(a[-1], a[0], checkpoints=[a[2], a[4]])
        [second], [wanted] = (cytape.gradients(g, a[0]) for g in (found, plain))
        [both] = cytape.gradients(found, a[0], checkpoints=[a[3]])
    session = cytape.Session(a[0].graph)
    wanted = session.run(wanted)
    assert np.allclose(session.run(second), wanted, rtol=1e-12, atol=0)
    assert np.allclose(session.run(both), wanted, rtol=1e-12, atol=0)


def test_a_value_that_is_read_many_steps_later():
    a = chain(12)
    graph = a[0].graph
    with graph.as_default():
        y = np.tanh(a[-1] * a[1] * a[5])
    differ(graph, y, [a[0]], checkpoints=[a[3], a[7]])


def test_long_bridges_take_no_more_memory_than_short_ones():
    """An encoder whose values a decoder reads in reverse; their gradients wait meanwhile."""
    n = 49
    with cytape.Graph().as_default() as graph:
        x = cytape.Variable(np.linspace(-1.0, 1.0, SIZE))
        down, up = [cytape.identity(x)], []
        for _ in range(n):
            down.append(np.tanh(down[-1]))
        h = down[-1]
        for other in reversed(down[1:-1]):
            h = np.tanh(h) * other
            up.append(h)
        [plain] = cytape.gradients(h, x)
        [found] = cytape.gradients(h, x, checkpoints=down[7::7] + up[7::7])
    [one, *_], traces = traces_of_runs(graph, found)
    assert same([one], [cytape.Session(graph).run(plain)])
    assert traces[0].peak_bytes <= (n + 16) * 8 * SIZE
    assert count(traces[0], "Tanh") <= 3 * 2 * n


@sampled(2, checkpoints=["memory", "auto"], n_rows=[40, 5])
def test_blocks_that_share_weights_take_no_more_memory_than_others(checkpoints, n_rows):
    """Also where weights, and so the gradients that wait to be summed, are the largest."""
    peaks = {}
    for shared in (True, False):
        with cytape.Graph().as_default() as graph:
            h = cytape.constant(np.linspace(-1, 1, 40 * n_rows).reshape(n_rows, 40))
            weights = [cytape.Variable(np.eye(40)) for _ in range(1 if shared else 36)]
            for i in range(36):
                h = np.tanh(h @ weights[i % len(weights)])
            plain = cytape.gradients(h, weights)
            least = cytape.graph.checkpoint.MIN_CHECKPOINT_NODE_SIZE
            cytape.graph.checkpoint.MIN_CHECKPOINT_NODE_SIZE = 100
            try:
                found = cytape.gradients(h, weights, checkpoints=checkpoints)
            finally:
                cytape.graph.checkpoint.MIN_CHECKPOINT_NODE_SIZE = least
        results, traces = traces_of_runs(graph, found)
        wanted = cytape.Session(graph).run(plain)
        assert all(same(result, wanted) for result in results)
        peaks[shared] = [trace.peak_bytes for trace in traces]
    assert all(one <= other for one, other in zip(peaks[True], peaks[False], strict=True))


def test_random_and_stateful_ops_run_once():
    calls = []

    def double(x):
        calls.append(1)
        return 2.0 * x

    with cytape.Graph().as_default() as graph:
        x = cytape.Variable(np.linspace(0.5, 1.0, SIZE))
        h = x * 1.0
        layers = []
        for _ in range(5):
            h = cytape.numpy_function(
                double, cytape.nn.dropout(np.tanh(h), rate=0.5), specs=h.spec,
                grad_func=lambda x, g: 2.0 * g)
            layers.append(h)
        y = np.sum(h * h)
        [plain] = cytape.gradients(y, x)
        [found] = cytape.gradients(y, x, checkpoints=layers[1:4:2])
    for n_runs in range(1, 4):
        one, other = cytape.Session(graph).run([plain, found])  # of the same draw
        assert np.array_equal(one, other) and one.any()
        assert len(calls) == 5 * n_runs
    _, traces = traces_of_runs(graph, found)
    n_draws = {sum("andom" in event.op_type for event in trace.events) for trace in traces}
    assert len(n_draws) == 1 and n_draws.pop() <= 5


def test_variables_are_read_once_and_assigned_once():
    with cytape.Graph().as_default() as graph:
        v = cytape.Variable(np.full(SIZE, 0.5))
        count = cytape.Variable(0.0)
        h = np.tanh(v)
        middle = named(np.tanh(h * v), "middle")
        count.assign_add(1.0)
        v.assign(h * 0.0 + 7.0)
        y = np.tanh(np.tanh(middle))
        [found] = cytape.gradients(y, v, checkpoints=["middle"])
        [plain] = cytape.gradients(y, v)
    session = cytape.Session(graph)
    wanted = session.run(plain)
    v.assign(np.full(SIZE, 0.5))
    count.assign(0.0)
    assert np.array_equal(session.run(found), wanted)


def test_branches_and_loops_are_computed_again_as_a_whole():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (5,))
        h = np.tanh(x)
        kept = []
        for _ in range(3):
            h = cytape.cond(np.sum(h) > 0, lambda h=h: np.sin(h), lambda h=h: np.cos(h))
            [h] = cytape.while_loop(
                lambda h: np.sum(h * h) < 30.0, lambda h: [h * 1.5 + np.tanh(h)], [h])
            kept.append(np.tanh(h))
            h = kept[-1]
    for sign in (1.0, -1.0):
        differ(graph, h, [x], {x: sign * np.linspace(0.1, 1.0, 5)}, n_runs=3, checkpoints=kept[:2])


def test_in_a_branch_of_captured_tensors():
    @cytape.function
    def gradient(x):
        h, positive = np.tanh(x), np.sum(x) > 0

        def body(*kept):
            a = [h]
            for _ in range(6):
                a.append(np.tanh(a[-1] * x))
            return cytape.gradients(
                a[-1], [x, h], checkpoints=[a[i] for i in kept] if kept else None)

        return cytape.cond(positive, lambda: body(2, 4), body), cytape.cond(
            ~positive, lambda: body(2, 4), body)

    for _ in range(3):
        found, wanted = gradient(cytape.constant(np.linspace(0.1, 1.0, 7)))
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_overridden_gradients_are_those_of_the_original():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (4,))
        with graph.gradient_override_map({"Tanh": "CheckpointTestTwice"}):
            a = np.tanh(x)
            b = np.tanh(np.sin(a))
            y = np.tanh(b)
    differ(graph, y, [x], {x: np.linspace(0.0, 1.0, 4)}, checkpoints=[b])


@cytape.register_gradient("CheckpointTestTwice")
def _twice(op, g):
    return 2.0 * g * op.outputs[0]


def test_devices_and_scopes_are_those_of_the_original():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (4,))
        with graph.name_scope("layer"), graph.device("cpu:1"):
            a = named(np.tanh(x), "a")
            b = named(np.tanh(a), "b")
        y = np.tanh(b)
        cytape.gradients(y, x, checkpoints=[b])
    copy = graph.get_operation_by_name("layer/a_1")
    assert copy.device == "cpu:1" and not copy.control_inputs


def test_long_chains_need_no_recursion():
    a = chain(10_000, size=1)
    [dx] = cytape.gradients(a[-1], a[0], checkpoints=a[150::150])
    [plain] = cytape.gradients(a[-1], a[0])
    session = cytape.Session(a[0].graph)
    assert np.array_equal(session.run(dx), session.run(plain))
