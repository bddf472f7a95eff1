"""Copies of parts of graphs."""

from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph import editor
from tests.cases import each
from tests.graph.editor.test_connections import names


@pytest.fixture
def chain():
    """o = c2 + (c1 + (c0 + i)), of ones."""
    with cytape.Graph().as_default() as graph:
        ones = [graph.constant(np.ones(10), name=name) for name in ("c0", "c1", "c2", "i")]
        o = ones[2] + (ones[1] + (ones[0] + ones[3]))
        ten = cytape.Graph.constant(graph, np.full(10, 10.0), name="Input")
    return graph, o, ten


def test_d_5a_12_a_copy_with_another_input(chain):
    graph, o, ten = chain
    view, _ = editor.copy_with_input_replacements(o.op, {o.op.inputs[1]: ten})
    session = cytape.Session(graph)
    np.testing.assert_array_equal(session.run(view.outputs[0]), np.full(10, 11.0))
    np.testing.assert_array_equal(session.run(o), np.full(10, 4.0))


def test_d_5a_12_only_direct_inputs_can_be_replaced(chain):
    graph, o, ten = chain
    n = graph.n_nodes
    with pytest.raises(ValueError, match="'i:0' is not an input of the view, so it cannot be "
                                         "replaced; the inputs are c2:0, Add_1:0"):
        editor.copy_with_input_replacements(o.op, {graph.get_tensor_by_name("i:0"): ten})
    assert graph.n_nodes == n


def test_d_5a_10_a_whole_graph(ops):
    other = cytape.Graph()
    view, info = editor.copy(ops.graph, other)
    assert str(other) == str(ops.graph)
    for op, op_ in zip(ops.graph.get_operations(), other.get_operations(), strict=True):
        assert op.name == op_.name
        assert info.transformed(op) == op_
        assert info.original(op_) == op
        assert [x.name for x in op.control_inputs] == [x.name for x in op_.control_inputs]
    for name in "abcdefgh":
        t = getattr(ops, name)
        assert info.transformed(t).name == t.name
        assert info.original(info.transformed(t)).id == t.id
    assert names(view.outputs) == ["e", "h"]
    session = cytape.Session(other)
    np.testing.assert_array_equal(session.run("foo/bar/h:0"), [10.0, 10.0])


def test_d_5a_10_loops_survive():
    graph, other = cytape.Graph(), cytape.Graph()
    with graph.as_default():
        n = cytape.placeholder("int64", (), name="n")
        _, total = cytape.while_loop(lambda i, s: i <= n, lambda i, s: (i + 1, s + i), (1, 0))
    _, info = editor.copy(graph, other)
    assert cytape.Session(other).run(info.transformed(total), {"n:0": 10}) == 55


def test_d_5a_10_branches_and_the_gradients_of_loops_survive():
    graph, other = cytape.Graph(), cytape.Graph()
    with graph.as_default():
        x = cytape.placeholder("float64", (), name="x")
        [y] = cytape.while_loop(
            lambda v: v < 8.0, lambda v: [cytape.cond(v > 0.0, lambda: v * v, lambda: -v)], [x])
        [dx] = cytape.gradients(y, x)
    _, info = editor.copy(graph, other)
    assert cytape.Session(other).run(info.transformed([y, dx]), {"x:0": 2.0}) == [16.0, 32.0]
    [again] = cytape.gradients(info.transformed(y), info.transformed(x))
    assert cytape.Session(other).run(again, {"x:0": 2.0}) == 32.0


def test_d_5a_10_names_in_a_scope(ops):
    for expected in "copy/foo/c", "copy_1/foo/c":
        _, info = editor.copy(ops.graph, dst_scope="copy")
        assert info.transformed(ops.c.op).name == expected
    _, info = editor.copy(ops.graph, dst_scope="copy/", reuse_dst_scope=True)
    assert info.transformed(ops.c.op).name == "copy/foo/c_1"
    _, info = editor.copy(editor.sgv_scope("foo", ops.graph), None, "new", "foo/")
    assert info.transformed(ops.h.op).name == "new/bar/h"
    n = ops.graph.n_nodes
    with pytest.raises(ValueError, match="'a' is not in the source scope, 'foo/bar/'"):
        editor.copy(ops.graph, src_scope="foo/bar")
    assert ops.graph.n_nodes == n


def test_d_5a_11_outside_inputs_become_placeholders(ops):
    other = cytape.Graph()
    view, _ = editor.copy(editor.sgv(ops.f.op, ops.g.op), other)
    assert [t.name for t in view.inputs] == ["geph__c_0:0", "geph__d_0:0", "geph__a_0:0"]
    assert {t.op.type for t in view.inputs} == {"Placeholder"}
    view, _ = editor.copy(ops.f.op, dst_scope="copy")
    assert [t.name for t in view.inputs] == ["copy/geph__c_0:0", "copy/geph__d_0:0"]
    np.testing.assert_array_equal(cytape.Session(ops.graph).run(
        view.outputs[0], dict(zip(view.inputs, ([1.0, 2.0], [3.0, 4.0]), strict=True))), [4.0, 6.0])


def test_d_5a_11_without_replacements_they_stay_connected(ops):
    view, _ = editor.copy_with_input_replacements([ops.f.op, ops.g.op], {})
    assert names(view.inputs) == ["c", "d", "a"]
    np.testing.assert_array_equal(cytape.Session(ops.graph).run(view.outputs[0]), [6.0, 6.0])
    view, _ = editor.copy_with_input_replacements(ops.f.op, {}, cytape.Graph())
    assert [t.name for t in view.inputs] == ["geph__c_0:0", "geph__d_0:0"]


Pair = namedtuple("Pair", "first second")


def test_d_5a_13_targets_in_their_containers(ops):
    graph = ops.graph
    new = graph.constant([10.0, 10.0], name="new")
    session = cytape.Session(graph)
    for targets in (
        ops.h, [ops.h, ops.b], (ops.h,), {"h": ops.h, "b": ops.b}, OrderedDict(h=ops.h),
        Pair(ops.h, [ops.e])):
        found = editor.graph_replace(targets, {ops.a: new})
        assert type(found) is type(targets)
        # c = 12, f = 15, g = 22
        expected = {"h": 37.0, "b": 2.0, "e": 15.0}
        flat = [found] if targets is ops.h else [
            *(found.values() if isinstance(found, dict) else found)]
        value = session.run(flat[0])
        np.testing.assert_array_equal(value, np.full(2, expected["h"]))
    found = editor.graph_replace({"h": ops.h, "b": ops.b}, {ops.a: new})
    assert found["b"] is ops.b
    np.testing.assert_array_equal(session.run(ops.h), [10.0, 10.0])


def test_d_5a_13_nothing_connected(ops):
    with pytest.raises(ValueError, match="foo/d:0, depends on the replaced tensors, a:0"):
        editor.graph_replace(ops.d, {ops.a: ops.b})
    with pytest.raises(ValueError, match="none of the targets, none, depends"):
        editor.graph_replace([], {ops.a: ops.b})
    with pytest.raises(ValueError, match="the replaced tensors, none"):
        editor.graph_replace(ops.d, {})


def test_a_target_and_what_depends_on_another_one_replaced(ops):
    new = ops.graph.constant([10.0, 10.0])
    found = editor.graph_replace([ops.a, ops.h], {ops.a: new, ops.c: ops.d})  # f = 6, g = 13
    assert found[0] is new
    np.testing.assert_array_equal(cytape.Session(ops.graph).run(found[1]), [19.0, 19.0])


def test_shapes_are_worked_out_anew():
    graph = cytape.Graph()
    x = graph.placeholder("float64", (3, 2), name="x")
    y = cnp.sum(np.tanh(x), axis=0)
    longer = graph.placeholder("float64", (5, 4), name="longer")
    new = editor.graph_replace(y, {x: longer})
    assert new.shape == (4,)


def test_nothing_is_copied_if_shapes_do_not_fit():
    graph = cytape.Graph()
    x, w = graph.placeholder("float64", (3, 2)), graph.placeholder("float64", (2, 2))
    y = np.tanh(x * x + 1.0) @ w
    listing, other = str(graph), graph.placeholder("float64", (3, 5))
    listing = str(graph)
    with pytest.raises(ValueError):
        editor.graph_replace(y, {x: other})
    assert str(graph) == listing
    z = np.tanh(x)
    assert z.name == "Tanh_1:0"  # the names are free again
    assert cytape.Session(graph).run(z, {x: np.zeros((3, 2))}).sum() == 0.0


def test_automatic_names_are_not_given_to_copies(tmp_path):
    graph, other = cytape.Graph(), cytape.Graph()
    x = graph.placeholder("float64", (), name="x")
    y = np.tanh(2.0 * x)
    editor.copy(graph, other)
    assert str(other) == str(graph)
    assert [other.was_named(node) for node in range(4)] == [
        graph.was_named(node) for node in range(4)]
    graph.save(tmp_path / "graph")
    other.save(tmp_path / "other")
    assert (tmp_path / "graph").read_bytes() == (tmp_path / "other").read_bytes()
    view, info = editor.copy(graph, graph)
    assert info.transformed(y.op).name == "Tanh_1"


def test_variables_are_the_same_in_the_copy():
    graph, other = cytape.Graph(), cytape.Graph()
    v = cytape.Variable(3.0, name="v")
    with graph.as_default():
        y = v * v
        with graph.control_dependencies(y):
            update = v.assign_add(1.0)
    _, info = editor.copy(graph, other)
    new, new_update = info.transformed([y, update])
    assert other.variables == [v] or other.variables[0] is v
    [dv] = cytape.gradients(new, v)
    session = cytape.Session(other)
    assert session.run([new, dv]) == [9.0, 6.0]
    assert session.run(new_update) == 4.0
    assert v.numpy() == 4.0
    inside, info = editor.copy(graph, graph, "again")
    assert len(graph.variables) == 1
    assert cytape.Session(graph).run(info.transformed(y)) == 16.0


def test_copies_draw_their_own_numbers():
    graph = cytape.Graph()
    graph.seed = 1
    with graph.as_default():
        x = cnp.random.normal(size=(4,))
    view, _ = editor.copy(x.op)
    first, second = cytape.Session(graph).run([x, view.outputs[0]])
    assert (first != second).all()


def test_tapes_follow_copies():
    graph = cytape.Graph()
    x = graph.placeholder("float64", (), name="x")
    y = x * x
    with graph.as_default(), cytape.GradientTape() as tape:
        z = x * 2.0
        tape.watch(z)
        new = editor.graph_replace(y, {x: z})
    assert cytape.Session(graph).run(tape.gradient(new, z), {x: 3.0}) == 12.0


def test_in_a_function():
    @cytape.function
    def f(x):
        y = x * x
        return editor.graph_replace(y, {x: x + 1.0}) + y

    assert f(np.array(2.0)) == 13.0
    assert cytape.grad(f)(np.array(2.0)) == 10.0


def test_operations_without_outputs():
    graph, other = cytape.Graph(), cytape.Graph()
    first = graph.no_op("first")
    graph.group(first, name="all")
    editor.copy(graph, other)
    assert str(graph) == str(other)


def test_a_finalized_graph_cannot_be_copied_into(ops):
    ops.graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        editor.copy(ops.graph)
    assert len(editor.copy(ops.graph, cytape.Graph())[0].ops) == 8


def reading_a_variable():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (), name="x")
        w = cytape.Variable(3.0, name="w")
        with cytape.name_scope("enc"):
            y = x * w
    return graph, x, w, y


@each("into_another", [False, True])
def test_a_copy_reads_the_same_variable_and_asks_for_no_feed(into_another):
    graph, _, w, y = reading_a_variable()
    into = cytape.Graph() if into_another else graph
    view, info = editor.copy(editor.sgv_scope("enc", graph=graph), into, "copy")
    handle, x = view.inputs
    assert handle.op == into.variable_handle(w).op
    session = cytape.Session(into)
    assert session.run(info.transformed(y), {x: 2.0}) == 6.0
    w.assign(5.0)
    assert session.run(info.transformed(y), {x: 2.0}) == 10.0
    assert [op.name for op in into.get_operations() if "geph" in op.name] == ["copy/geph__x_0"]


def test_reads_of_a_variable_can_be_replaced():
    graph, x, w, y = reading_a_variable()
    v = cytape.Variable(7.0, name="v")
    with graph.as_default():
        read, other = graph.variable_value(w), graph.variable_value(v)
    assert cytape.Session(graph).run(editor.graph_replace(y, {read: other}), {x: 2.0}) == 14.0
    n_nodes = graph.n_nodes
    for replaced, error in [
            ({w.ref(): v}, TypeError), ({graph.variable_handle(w): other}, ValueError),
            ({read: v}, TypeError)]:
        with pytest.raises(error, match=r"graph\.variable_value\(w\)"):
            editor.graph_replace(y, replaced)
    with pytest.raises(TypeError, match=r"graph\.constant\(value\)"):
        editor.graph_replace(y, {x: cytape.constant(2.0)})
    assert graph.n_nodes == n_nodes
