"""Running a graph: what is fetched, fed, and raised."""

from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import cytape
from cytape.errors import GraphError
from cytape.graph.sessions import session as session_module
from cytape.graph.sessions.run_trace import RunTrace
from cytape.ops.engine.op_kinds import general

Point = namedtuple("Point", "x y")
calls = []


def counted(x, label):
    calls.append(label)
    return x + 1


declared_count = general("DeclaredCount", counted, shape_rule=lambda x, label: x)
declared_failure = general(
    "DeclaredFailure", lambda x: np.linalg.inv(np.zeros((2, 2))) + x, shape_rule=lambda x: x)
declared_pair = general(
    "DeclaredPair", lambda x: (counted(x, "pair"), 2 * x), shape_rule=lambda x: (x, x))


@pytest.fixture(autouse=True)
def graph():
    calls.clear()
    return cytape.Graph()


@pytest.fixture
def session(graph):
    return cytape.Session(graph)


# ---- fetches


def test_structures_of_fetches_come_back_as_such(graph, session):
    x = graph.placeholder("float64", name="x")
    y = x * x
    op = graph.no_op("nothing")
    feed = {x: 3.0}
    assert session.run(y, feed) == 9.0
    assert session.run([x, y], feed) == [3.0, 9.0]
    assert session.run((x, [y, (y,)]), feed) == (3.0, [9.0, (9.0,)])
    assert session.run(Point(x, y), feed) == Point(3.0, 9.0)
    assert isinstance(session.run(Point(x, y), feed), Point)
    assert session.run({"b": y, "a": [x, op]}, feed) == {"b": 9.0, "a": [3.0, None]}
    ordered = session.run(OrderedDict(b=y, a=x), feed)
    assert type(ordered) is OrderedDict and list(ordered) == ["b", "a"]
    several = defaultdict(list, a=x)
    assert session.run(several, feed) == {"a": 3.0}
    assert several["a"] is x
    assert session.run([], feed) == []


def test_strings_name_tensors_and_operations(graph, session):
    graph.constant([1.0, 2.0], name="c")
    np.testing.assert_array_equal(session.run("c:0"), [1.0, 2.0])
    assert session.run("c") is None


def test_references_are_fetches(graph, session):
    x = graph.constant(2.0)
    assert session.run(x.ref()) == 2.0


def test_results_are_arrays_and_scalars_of_numpy(graph, session):
    x = graph.constant([1.0], dtype="float32")
    vector, scalar = session.run([x, x[0]])
    assert type(vector) is np.ndarray and vector.dtype == np.float32
    assert type(scalar) is np.float32


@pytest.mark.parametrize("fetch", [None, 3.0, np.ones(2), object()])
def test_other_fetches_are_refused(session, fetch):
    with pytest.raises(TypeError, match="is not a tensor or an operation of a graph"):
        session.run([fetch])


def test_fetches_of_other_graphs_are_refused(session):
    other = cytape.Graph().placeholder("float64", name="x")
    with pytest.raises(ValueError, match="does not belong to this graph"):
        session.run(other)
    with pytest.raises(ValueError, match="does not belong to this graph"):
        session.run(other.op)


def test_unknown_names_are_refused(session):
    with pytest.raises(KeyError, match="no operation 'x'"):
        session.run("x:0")


def test_indexed_slices_are_fetched_as_such(graph, session):
    slices = cytape.IndexedSlices(graph.constant([[1.0], [2.0]]), graph.constant([1, 1]), (3, 1))
    result = session.run({"slices": slices})["slices"]
    np.testing.assert_array_equal(result.to_tensor().numpy(), [[0.0], [3.0], [0.0]])
    assert result.dense_shape == (3, 1)


def test_a_run_tells_the_dense_shape_of_indexed_slices(graph, session):
    x = graph.placeholder("float64", (None, 2))
    table = x * 1.0
    for source in x, table:
        slices = cytape.gradients(cytape.gather(source, [0, 0]), source)[0]
        assert isinstance(slices, cytape.IndexedSlices)
        for n in 2, 3:
            result = session.run(slices, {x: np.ones((n, 2))})
            assert result.dense_shape == (n, 2)
            np.testing.assert_array_equal(result.to_tensor()[:2], [[2.0, 2.0], [0.0, 0.0]])


def test_results_are_the_callers_own(graph, session):
    c = graph.constant([1.0, 2.0])
    x = graph.placeholder("float64", (2,))
    fed = np.array([3.0, 4.0])
    same = cytape.identity(x)
    results = session.run([c, x, same, x[::-1], same], {x: fed})
    for result in results[:4]:
        assert result.flags.writeable
        result += 100.0
    np.testing.assert_array_equal(fed, [3.0, 4.0])
    np.testing.assert_array_equal(results[1], [103.0, 104.0])
    np.testing.assert_array_equal(results[2], [103.0, 104.0])
    np.testing.assert_array_equal(results[3], [104.0, 103.0])
    np.testing.assert_array_equal(session.run(c), [1.0, 2.0])


# ---- ops that run


def test_only_what_is_fetched_runs(graph, session):
    x = graph.placeholder("float64", (), name="x")
    y = declared_count(x, label="y")
    declared_count(y, label="z")
    declared_failure(graph.placeholder("float64", ()))
    assert session.run(y, {x: 1.0}) == 2.0
    assert calls == ["y"]
    session.run(y.op, {x: 1.0})
    assert calls == ["y", "y"]


def test_each_operation_runs_once(graph, session):
    x = graph.constant(1.0)
    y = declared_count(x, label="y")
    assert session.run([y, y, y + y, y.op]) == [2.0, 2.0, 4.0, None]
    assert calls == ["y"]


def test_control_inputs_run_first(graph, session):
    x = graph.constant(1.0)
    first = declared_count(x, label="first")
    with graph.control_dependencies([first]):
        second = declared_count(x, label="second")
    with graph.control_dependencies([second]):
        third = cytape.identity(x)
    assert session.run(third) == 1.0
    assert calls == ["first", "second"]


def test_a_group_runs_all_of_its_operations(graph, session):
    x = graph.constant(1.0)
    both = graph.group(declared_count(x, label="a"), declared_count(x, label="b"))
    assert session.run(both) is None
    assert calls == ["a", "b"]


def test_variables_change_from_run_to_run(graph, session):
    with graph.as_default():
        v = graph.get_variable("v", initializer=[1.0, 2.0])
        doubled = v * 2.0
        change = v.assign_add([10.0, 10.0])
    np.testing.assert_array_equal(session.run(doubled), [2.0, 4.0])
    np.testing.assert_array_equal(session.run(change), [11.0, 12.0])
    np.testing.assert_array_equal(session.run(doubled), [22.0, 24.0])
    np.testing.assert_array_equal(v.numpy(), [11.0, 12.0])
    fetched = session.run({"v": v, "change": change.op})
    np.testing.assert_array_equal(fetched["v"], [21.0, 22.0])
    fetched["v"][0] = 0.0
    np.testing.assert_array_equal(v.numpy(), [21.0, 22.0])


def test_it_runs_while_a_graph_is_built(graph, session):
    with graph.as_default():
        v = graph.get_variable("v", initializer=1.0)
        change = v.assign(5.0)
        n_nodes = graph.n_nodes
        assert session.run(change) == 5.0
        assert graph.n_nodes == n_nodes
        assert v.numpy() == 5.0
        assert np.tanh(v).graph is graph


def test_it_runs_under_a_tape(graph, session):
    x = graph.placeholder("float64")
    y = x * x
    with cytape.GradientTape() as tape:
        eager = cytape.constant(3.0)
        tape.watch(eager)
        assert session.run(y, {x: eager}) == 9.0
    assert tape.gradient(eager, eager).numpy() == 1.0


# ---- feeds


def test_any_tensor_can_be_fed(graph, session):
    x = graph.placeholder("float64", (), name="x")
    y = declared_count(x, label="y")
    z = y * 10.0
    assert session.run(z, {y: 5.0}) == 50.0
    assert session.run([y, z], {y: 5.0, x: 1.0}) == [5.0, 50.0]
    assert calls == []


def test_one_of_several_outputs_can_be_fed(graph, session):
    first, second = declared_pair(graph.constant(1.0))
    assert session.run([first, second], {first: 7.0}) == [7.0, 2.0]
    assert calls == ["pair"]
    assert session.run([first, second], {first: 7.0, second: 8.0}) == [7.0, 8.0]
    assert session.run(first.op, {first: 7.0, second: 8.0}) is None
    assert calls == ["pair"]


def test_fed_nodes_do_not_run_as_control_inputs(graph, session):
    x = graph.placeholder("float64", ())
    with graph.control_dependencies([x]):
        y = graph.constant(1.0)
    assert session.run([y, x.op], {x: 2.0}) == [1.0, None]
    with pytest.raises(GraphError):
        session.run(y)


def test_an_unfed_placeholder_is_named(graph, session):
    x = graph.placeholder("float64", (None, 2), name="x")
    y = np.tanh(x)
    with pytest.raises(GraphError, match=r"'x:0' \(float64, shape \(None, 2\)\), built in") as e:
        session.run(y)
    assert __file__ in str(e.value) and "feed_dict={'x:0': value}" in str(e.value)
    session.run(y, {y: np.ones((1, 2))})


def test_unknown_extents_may_differ_from_run_to_run(graph, session):
    x = graph.placeholder("float64", (None, None))
    y = np.sum(x * x, axis=1)
    rank = graph.placeholder("float64")
    for shape in [(2, 3), (5, 1), (2, 3), (0, 4)]:
        value = np.arange(float(np.prod(shape))).reshape(shape)
        np.testing.assert_array_equal(session.run(y, {x: value}), np.sum(value**2, axis=1))
        np.testing.assert_array_equal(session.run(np.exp(rank), {rank: value}), np.exp(value))


def test_feeds_are_told_apart(graph, session):
    x, y = graph.placeholder("float64", ()), graph.placeholder("float64", ())
    z = x - 2.0 * y
    for _ in range(2):
        assert session.run(z, {x: 1.0, y: 2.0}) == -3.0
        assert session.run(z, {y: 1.0, x: 2.0}) == 0.0
        assert session.run([z, x], {x: 5.0, z: 7.0}) == [7.0, 5.0]
        assert session.run([x, z], {x: 5.0, z: 7.0}) == [5.0, 7.0]


def test_a_plan_is_made_once(graph, session, monkeypatch):
    made = []
    real = session_module.Executable
    monkeypatch.setattr(
        session_module, "Executable", lambda subgraph: (made.append(1), real(subgraph))[1])
    x = graph.placeholder("float64", ())
    y = x * 2.0
    for value in range(3):
        assert session.run(y, {x: value}) == 2.0 * value
    assert len(made) == 1
    z = y + 1.0
    assert session.run(z, {x: 1.0}) == 3.0
    assert len(made) == 2


def test_control_inputs_that_are_added_later_count(graph, session):
    x = graph.constant(1.0)
    first = declared_count(x, label="first")
    second = declared_count(x, label="second")
    session.run(second)
    assert calls == ["second"]
    graph.add_control_inputs(second.op, first)
    calls.clear()
    session.run(second)
    assert calls == ["first", "second"]


def test_a_trace_tells_what_each_operation_takes(graph, session):
    x = graph.placeholder("float64", (1000,), name="x")
    with graph.name_scope("layer"):
        y = np.cumsum(np.cumsum(x))
    trace = RunTrace()
    session.run(y, {x: np.zeros(1000)}, options=trace)
    assert any("layer/" in event.name for event in trace.events)
    assert trace.peak_bytes >= 8000
    assert "layer/" in trace.to_chrome_trace()


# ---- failures


def test_the_operation_that_failed_is_named(graph, session):
    def build(x):
        return declared_failure(x)

    with graph.name_scope("model"):
        y = build(graph.constant([1.0, 2.0]))
    with pytest.raises(np.linalg.LinAlgError, match="Singular") as failure:
        session.run(y)
    [note] = failure.value.__notes__
    line = build.__code__.co_firstlineno + 1
    assert "'model/DeclaredFailure:0' (float64, shape (2,))" in note
    assert f"built at {__file__}:{line} in build" in note


def test_the_operation_that_failed_is_named_in_every_run(graph, session):
    y = cytape.identity(declared_failure(graph.constant([1.0, 2.0])), name="y")
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError) as failure:
            session.run(y)
        assert "'DeclaredFailure:0'" in failure.value.__notes__[0]


def test_a_failure_leaves_the_session_usable(graph, session):
    x = graph.constant(1.0)
    bad = declared_failure(x)
    with pytest.raises(np.linalg.LinAlgError):
        session.run(bad)
    assert session.run(x) == 1.0
    assert cytape.constant(1.0).graph is None


# ---- sessions


def test_the_graph_being_built_is_the_default(graph):
    with graph.as_default():
        assert cytape.Session().graph is graph
    with pytest.raises(RuntimeError, match="with graph.as_default"):
        cytape.Session()


def test_a_closed_session_runs_nothing(graph):
    x = graph.constant(1.0)
    with cytape.Session(graph) as session:
        assert session.run(x) == 1.0
    with pytest.raises(RuntimeError, match="closed"):
        session.run(x)


def test_a_graph_can_grow_between_runs(graph, session):
    x = graph.placeholder("float64")
    assert session.run(x, {x: 1.0}) == 1.0
    y = x + 1.0
    assert session.run(y, {x: 1.0}) == 2.0


def test_a_finalized_graph_runs(graph, session):
    v = cytape.Variable(2.0)
    with graph.as_default():
        y = v * 3.0
    graph.finalize()
    assert session.run([y, v]) == [6.0, 2.0]


def test_a_tensor_that_has_a_value_is_fetched_as_it_is():
    graph = cytape.Graph()
    x, unused = graph.placeholder("float64", (2,)), graph.placeholder("float64", (3,))
    [of_x, of_unused] = cytape.gradients([x * x], [x, unused], unconnected_gradients="zero")
    value = cytape.constant([1.0, 2.0])
    session = cytape.Session(graph)
    for _ in range(2):
        found = session.run(
            {"x": of_x, "unused": of_unused, "value": [value], "number": cytape.constant(3.0)},
            {x: [1.0, 2.0]})
        np.testing.assert_array_equal(found["x"], [2.0, 4.0])
        np.testing.assert_array_equal(found["unused"], np.zeros(3))
        np.testing.assert_array_equal(found["value"][0], [1.0, 2.0])
        assert found["number"] == 3.0
        found["value"][0][0] = 9.0  # the caller's own
    assert session.run(value).tolist() == [1.0, 2.0]
