"""Consumers that read other tensors from now on."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph import editor
from tests.graph.editor.test_connections import names


@pytest.fixture
def two():
    """c0 = a0 + b0, c1 = a1 + b1, of constants 1, 2, 3 and 4."""
    with cytape.Graph().as_default() as graph:
        a0, b0, a1, b1 = (graph.constant(float(i + 1), name=name) for i, name in enumerate(
            ("a0", "b0", "a1", "b1")))
        return graph, a0, b0, a0 + b0, a1, b1, a1 + b1


def inputs(t):
    return [x.name[:-2] for x in t.op.inputs]


def test_d_5a_07_consumers_read_others(two):
    graph, a0, b0, c0, a1, b1, c1 = two
    session = cytape.Session(graph)
    assert session.run([c0, c1]) == [3.0, 7.0]
    assert editor.reroute_ts([a0, b0], [a1, b1]) == 2
    assert (inputs(c0), inputs(c1)) == (["a0", "b0"], ["a0", "b0"])
    assert session.run([c0, c1]) == [3.0, 3.0]  # plans are made anew
    assert (a1.consumers(), names(a0.consumers())) == ([], [c0.op.name, c1.op.name])


def test_d_5a_07_the_number_of_inputs_that_change(two):
    graph, a0, *_ = two
    twice = a0 * a0
    new = graph.constant(5.0)
    assert editor.reroute_ts(new, a0) == 3
    assert cytape.Session(graph).run(twice) == 25.0
    assert editor.reroute_ts(new, new) == 0
    assert editor.reroute_ts([], []) == 0


def test_d_5a_07_which_consumers_may_change(two):
    graph, a0, b0, c0, a1, b1, c1 = two
    other = abs(a1)
    assert editor.reroute_ts(a0, a1, can_modify=other.op) == 1
    assert (inputs(other), inputs(c1)) == (["a0"], ["a1", "b1"])
    assert editor.reroute_ts(b0, [b1], cannot_modify=[c1.op]) == 0
    assert editor.reroute_ts(b0, b1, can_modify=[c1.op], cannot_modify=c1.op) == 0
    assert editor.reroute_ts(b0, b1, can_modify=[]) == 0
    assert inputs(c1) == ["a1", "b1"]


def test_d_5a_07_views_that_do_not_match(two):
    graph, a0, b0, c0, a1, b1, c1 = two
    integer, vector = graph.constant(1), graph.constant([1.0])
    listing = str(graph)
    with pytest.raises(ValueError, match="expected as many replacements as tensors to replace, "
                                         "got 2 and 1"):
        editor.reroute_ts([a0, b0], [a1])
    with pytest.raises(ValueError, match=r"\(int64, shape \(\)\) cannot be read in place of"):
        editor.reroute_ts([b0, integer], [b1, a1])
    with pytest.raises(ValueError, match=r"\(float64, shape \(1,\)\) cannot be read in place of"):
        editor.swap_ts([b0, vector], [b1, a1])
    with pytest.raises(ValueError, match="'a1:0' .* cannot be replaced by two tensors at once"):
        editor.reroute_ts([a0, b0], [a1, a1])
    with pytest.raises(ValueError, match="another graph"):
        editor.reroute_ts(a0, cytape.Graph().constant(1.0))
    with pytest.raises(TypeError, match="expected Tensor objects"):
        editor.reroute_ts(1.0, a1)
    assert str(graph) == listing


def test_less_must_not_be_known_of_a_shape():
    graph = cytape.Graph()
    known, unknown = graph.placeholder("float64", (3,)), graph.placeholder("float64", (None,))
    z = abs(unknown)
    with pytest.raises(ValueError, match="known extents must stay known"):
        editor.reroute_ts(unknown, known)
    assert editor.reroute_ts(known, unknown) == 1
    assert graph.spec_of(graph.symbol_of(z)).shape == (3,)


def test_shapes_follow_what_is_read():
    """A residual whose two parts share an unknown shape, until one of them is rerouted."""
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (None,), name="x")
        h = np.tanh(x)
        y = cnp.sum(h * x)
        new = cytape.placeholder("float64", (None,), name="new")
    editor.reroute_ts(new, x, can_modify=h.op)
    [dnew, dx] = cytape.gradients(y, [new, x])
    session = cytape.Session(graph)
    feeds = {x: [1.0, 2.0, 3.0], new: [0.5]}
    for _ in range(3):
        assert session.run(y, feeds) == pytest.approx(6 * np.tanh(0.5))
        found = session.run([dnew, dx], feeds)
        np.testing.assert_allclose(found[0], [6 * (1 - np.tanh(0.5) ** 2)])
        np.testing.assert_allclose(found[1], np.tanh(np.full(3, 0.5)))
    with graph.as_default():
        z = cnp.sum(h + x)  # h was made when it had the shape of x
    [dnew] = cytape.gradients(z, new)
    np.testing.assert_allclose(session.run(dnew, feeds), [3 * (1 - np.tanh(0.5) ** 2)])


def test_shapes_that_cannot_be_are_refused():
    graph = cytape.Graph()
    x, four = graph.placeholder("float64", (None,)), graph.placeholder("float64", (4,))
    y = cnp.reshape(x, (2, 3))
    listing = str(graph)
    with pytest.raises(ValueError):
        editor.reroute_ts(four, x)
    assert str(graph) == listing
    assert cytape.Session(graph).run(y, {x: np.ones(6)}).shape == (2, 3)


def test_ops_built_later_run_earlier(two):
    graph, a0, b0, c0, a1, b1, c1 = two
    new = graph.constant(10.0) * graph.constant(2.0)
    editor.reroute_ts(new, a0)
    assert new.op.node < c0.op.node
    assert cytape.Session(graph).run([c0, c1, new]) == [22.0, 7.0, 20.0]
    assert names([op for op in graph.get_operations() if op.type == "Add"]) == ["Add", "Add_1"]
    assert graph.get_operation_by_name("Add") == c0.op


def test_a_cycle_changes_nothing(two):
    graph, a0, b0, c0, a1, b1, c1 = two
    product = c0 * c1
    listing = str(graph)
    with pytest.raises(ValueError, match="'Add' would have to run before itself: 'Add' needs "
                                         "'Multiply' needs 'Add'. Nothing has been changed"):
        editor.reroute_ts([product, b0], [a0, b1])
    assert str(graph) == listing
    assert cytape.Session(graph).run(product) == 21.0


def test_gradients_of_an_edited_graph(two):
    graph, a0, b0, c0, a1, b1, c1 = two
    product = c0 * c1
    editor.reroute_ts(product, a0, cannot_modify=c0.op)  # nothing else reads it
    new = graph.constant(10.0, name="new")
    late = new * new
    editor.reroute_ts(late, b0)  # (a0 + new^2) * (a1 + b1)
    grads = cytape.gradients(product, [new, a0, a1, b0])
    assert grads[3] is None
    assert cytape.Session(graph).run(grads[:3]) == [140.0, 7.0, 101.0]


def test_saved_and_loaded_after_an_edit(two, tmp_path):
    graph, a0, b0, c0, a1, b1, c1 = two
    product = cytape.identity(c0 * c1, name="product")
    graph.add_to_collection("all", c1)
    graph.add_to_collection("all", product.op)
    late = graph.constant(10.0, name="new") * 2.0
    editor.reroute_ts(late, b0)
    editor.add_control_inputs(c0.op, c1.op)
    graph.save(tmp_path / "graph")
    loaded = cytape.Graph.load(tmp_path / "graph")
    assert str(loaded) == str(graph)
    assert cytape.Session(loaded).run("product:0") == 147.0
    assert [x.name for x in loaded.get_collection("all")] == [c1.name, product.op.name]


def test_a_gradient_that_stands_before_what_it_differentiates_is_saved(tmp_path):
    graph = cytape.Graph()
    x = graph.placeholder("float64", (), name="x")
    y = cytape.identity(np.sin(x), name="y")
    [dx] = cytape.gradients(y, x)
    late = abs(dx)
    editor.reroute_ts(late, x, can_modify=y.op.inputs[0].op)
    graph.save(tmp_path / "graph")
    loaded = cytape.Graph.load(tmp_path / "graph")
    assert str(loaded) == str(graph)
    assert cytape.Session(loaded).run("y:0", {"x:0": 0.5}) == pytest.approx(np.sin(np.cos(0.5)))


def test_effects_keep_their_order():
    graph = cytape.Graph()
    v = cytape.Variable(1.0)
    with graph.as_default():
        y = abs(graph.constant(5.0))
        before = v * 1.0
        with graph.control_dependencies([before, v.assign_add(10.0)]):
            after = v * 1.0
        with graph.control_dependencies(after):
            both = before + after
    editor.reroute_ts(after, y.op.inputs[0])
    with graph.control_dependencies(both):
        total = y + 0.0
    # The second read, which y now needs, still comes after the assignment, and that after the first
    assert cytape.Session(graph).run([before, after, y, total]) == [1.0, 11.0, 11.0, 11.0]


def test_an_assignment_of_what_is_read_after_it_is_refused():
    graph = cytape.Graph()
    v = cytape.Variable(1.0)
    with graph.as_default():
        x = graph.constant(5.0)
        update = v.assign(x)
        with graph.control_dependencies(update):
            after = v * 2.0
    with pytest.raises(ValueError, match="would have to run before itself"):
        editor.reroute_ts(after, x)
    w = cytape.Variable(7.0)
    with graph.as_default():
        other = w * 2.0
    editor.reroute_ts(other, x)  # another variable
    assert cytape.Session(graph).run(after) == 28.0


def test_draws_can_change_places():
    graph = cytape.Graph()
    graph.seed = 3
    with graph.as_default():
        x = cytape.placeholder("float64", (4,), name="x")
        h = cytape.nn.dropout(x, 0.5) + 1.0
        y = cytape.nn.dropout(h, 0.5) * 1.0
    first, second = (op for op in graph.get_operations() if "stream" in op.attrs)
    assert len(editor.get_forward_walk_ops(first)) > len(editor.get_forward_walk_ops(second))
    session = cytape.Session(graph)
    session.run(y, {x: np.ones(4)})
    editor.swap_ts(first.outputs[0], second.outputs[0])
    session.run(y, {x: np.ones(4)})


def test_d_5a_08_consumers_are_exchanged(two):
    graph, a0, b0, c0, a1, b1, c1 = two
    assert editor.swap_ts([a0, b0], [a1, b1]) == 4
    assert (inputs(c0), inputs(c1)) == (["a1", "b1"], ["a0", "b0"])
    assert cytape.Session(graph).run([c0, c1]) == [7.0, 3.0]
    assert editor.swap_ts(a0, a1, can_modify=c0.op) == 1
    assert (inputs(c0), inputs(c1)) == (["a0", "b1"], ["a0", "b0"])


def test_d_5a_08_tensors_with_a_common_consumer_do_not_collapse(two):
    graph, a0, b0, c0, *_ = two
    difference = a0 - b0
    assert editor.swap_ts(a0, b0) == 4
    assert (inputs(c0), inputs(difference)) == (["b0", "a0"], ["b0", "a0"])
    assert cytape.Session(graph).run(difference) == 1.0
    assert editor.swap_ts(a0, a0) == 0
    with pytest.raises(ValueError, match="two tensors at once"):
        editor.swap_ts([a0, a0], [b0, c0])


def test_d_5a_08_inputs_of_views(two):
    graph, a0, b0, c0, a1, b1, c1 = two
    x, y = abs(a0), abs(a1)
    view0, view1 = editor.sgv(c0.op), editor.sgv(c1.op)
    assert editor.swap_inputs(view0, view1) == (view0, view1)
    assert (inputs(c0), inputs(c1), inputs(x), inputs(y)) == (
        ["a1", "b1"], ["a0", "b0"], ["a0"], ["a1"])
    assert (names(view0.inputs), names(view1.inputs)) == (["a1", "b1"], ["a0", "b0"])
    _, view1 = editor.reroute_inputs(view0, c1.op)
    assert (inputs(c0), inputs(c1)) == (["a1", "b1"], ["a1", "b1"])
    assert names(view1.inputs) == ["a1", "b1"]


def test_d_5a_08_outputs_of_views(two):
    graph, a0, b0, c0, a1, b1, c1 = two
    x, y = abs(c0), abs(c1)
    editor.swap_outputs(c0.op, c1.op)
    assert cytape.Session(graph).run([x, y, c0]) == [7.0, 3.0, 3.0]
    editor.reroute_outputs(c0.op, c1.op)
    assert cytape.Session(graph).run([x, y]) == [3.0, 3.0]


def test_d_5a_08_inputs_and_outputs_of_views(two):
    graph, a0, b0, c0, a1, b1, c1 = two
    x = abs(c0)
    difference = a0 - b0
    product = x * difference
    editor.swap_ios(c0.op, difference.op)  # of the same inputs
    assert cytape.Session(graph).run([x, product]) == [1.0, 3.0]
    editor.reroute_ios(c1.op, c0.op)
    assert inputs(c0) == ["a1", "b1"]


def test_views_of_two_graphs_and_of_different_sizes(two):
    graph, a0, b0, c0, *_ = two
    with pytest.raises(ValueError, match="two graphs"):
        editor.swap_inputs(c0.op, abs(cytape.Graph().constant(1.0)).op)
    with pytest.raises(ValueError, match="got 2 and 1"):
        editor.swap_inputs(c0.op, abs(a0).op)


def test_ios_that_do_not_fit_change_nothing(two):
    graph, a0, b0, c0, *_ = two
    y = abs(a0)
    listing = str(graph)
    with pytest.raises(ValueError, match="got 2 and 1"):
        editor.swap_ios(c0.op, y.op)  # the outputs fit, the inputs do not
    assert str(graph) == listing


def test_a_finalized_graph_is_not_edited(two):
    graph, a0, b0, *_ = two
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        editor.reroute_ts(a0, b0)
    with pytest.raises(RuntimeError, match="finalized"):
        editor.detach_inputs(b0.consumers()[0])


def test_in_a_function():
    @cytape.function
    def f(x):
        y = x * x
        z = np.sin(y)
        editor.reroute_ts(x + 1.0, x, can_modify=y.op)
        return z

    for _ in range(3):
        assert f(np.array(2.0)) == pytest.approx(np.sin(9.0))
    assert cytape.grad(f)(np.array(2.0)) == pytest.approx(6.0 * np.cos(9.0))
    assert cytape.jvp(f, (np.array(2.0),), (np.array(1.0),))[1] == pytest.approx(6.0 * np.cos(9.0))


def test_in_a_body_of_a_loop(tmp_path):
    graph = cytape.Graph()

    def body(i, x):
        y = x * 2.0
        editor.reroute_ts(x + 1.0, x, can_modify=y.op)
        return i + 1, y

    with graph.as_default():
        x = cytape.placeholder("float64", (), name="x")
        y = cytape.identity(cytape.while_loop(lambda i, _: i < 3, body, (0, x))[1], name="y")
        [dx] = cytape.gradients(y, x)
    assert cytape.Session(graph).run([y, dx], {x: 1.0}) == [22.0, 8.0]
    graph.save(tmp_path / "graph")
    loaded = cytape.Graph.load(tmp_path / "graph")
    assert cytape.Session(loaded).run("y:0", {"x:0": 1.0}) == 22.0
