"""Transformations of graphs, as handlers say."""

import numpy as np
import pytest

import cytape
from cytape.graph import editor
from tests.graph.editor.test_connections import names


def test_originals_and_their_copies(ops):
    view, info = editor.copy(ops.graph, cytape.Graph(), dst_scope="copy")
    new = info.transformed({"c": ops.c, "ops": [ops.e.op, "foo/b:0"]})
    assert new["c"].name == "copy/foo/c:0"
    assert new["ops"][0].name == "copy/foo/bar/e"
    assert new["ops"][1].name == "copy/foo/b:0"
    assert info.original(new)["ops"] [0] == ops.e.op
    assert info.original("copy/foo/bar/h") == ops.h.op
    assert info.transformed(["nothing", view.op(0)]) == [None, None]
    assert info.transformed("nothing", str.upper) == "NOTHING"
    assert names(info.transformed_ts) == list("abcdefgh")
    assert "foo/c -> copy/foo/c" in str(info)
    with pytest.raises(TypeError, match="expected an operation, a tensor or a name"):
        info.transformed([3])


def test_a_handler_builds_other_operations():
    graph = cytape.Graph()
    x = graph.placeholder("float64", (2,), name="x")
    y = np.exp(np.tanh(x))

    def sines(info, op, new_inputs):
        if op.type != "Tanh":
            return editor.copy_op_handler(info, op, new_inputs)
        new = np.sin(new_inputs[0])
        return new.op, [new]

    transformer = editor.Transformer()
    transformer.transform_op_handler = sines
    view, info = transformer(graph, graph, "sine")
    found = cytape.Session(graph).run([y, info.transformed(y)], {x: [1.0, 2.0], "sine/x:0": [1, 2]})
    np.testing.assert_allclose(found[0], np.exp(np.tanh([1.0, 2.0])))
    np.testing.assert_allclose(found[1], np.exp(np.sin([1.0, 2.0])))


def test_handlers_for_what_is_read_from_outside(ops):
    seen = []

    def zeros(info, t):
        seen.append(t.name)
        return info.graph_.constant(np.zeros(2))

    transformer = editor.Transformer()
    transformer.transform_external_input_handler = zeros
    transformer.transform_external_hidden_input_handler = editor.keep_t_if_possible_handler
    view = editor.sgv(ops.f.op).remap_inputs([1])
    new, _ = transformer(view, ops.graph, "new")
    assert seen == ["foo/d:0"]
    assert new.ops[0].inputs[0].name == "foo/c:0"
    np.testing.assert_array_equal(cytape.Session(ops.graph).run(new.outputs[0]), [3.0, 3.0])


def test_control_inputs_are_handled(ops):
    _, info = editor.copy_with_input_replacements(ops.h.op, {})
    assert info.transformed(ops.h.op).control_inputs == (ops.c.op,)
    _, info = editor.copy_with_input_replacements([ops.c.op, ops.h.op], {})
    assert info.transformed(ops.h.op).control_inputs == (info.transformed(ops.c.op),)
    _, info = editor.copy(ops.h.op, cytape.Graph())
    assert info.transformed(ops.h.op).control_inputs == ()
    transformer = editor.Transformer()
    transformer.transform_control_input_handler = lambda info, op: ops.a.op
    _, info = transformer(ops.h.op, ops.graph, "")
    assert info.transformed(ops.h.op).control_inputs == (ops.a.op,)


def test_original_operations_are_handled():
    graph = cytape.Graph()
    x = graph.placeholder("float64", (), name="x")
    y = np.sin(x)
    [dx] = cytape.gradients(y, x)
    [gradient] = [op for op in graph.get_operations() if op.type == "Cos"]
    assert gradient.original_op == y.op
    _, info = editor.copy(graph, cytape.Graph())
    assert info.transformed(gradient).original_op == info.transformed(y.op)
    _, info = editor.copy_with_input_replacements(gradient, {})
    assert info.transformed(gradient).original_op == y.op
    _, info = editor.copy(gradient, cytape.Graph())
    assert info.transformed(gradient).original_op is None
    transformer = editor.Transformer()
    transformer.transform_original_op_handler = lambda info, op: None
    _, info = transformer(graph, cytape.Graph(), "")
    assert info.transformed(gradient).original_op is None


def test_collections_are_renamed(ops):
    ops.graph.add_to_collections(["foo/losses", "foo/all"], ops.h)
    ops.graph.add_to_collection("foo/all", ops.c.op)
    other = cytape.Graph()
    view, info = editor.copy(editor.sgv_scope("foo", ops.graph), other, "new", "foo")
    assert sorted(other.get_all_collection_keys()) == ["new/all", "new/losses"]
    assert other.get_collection("new/losses")[0].name == "new/bar/h:0"
    assert info.transformed(ops.c.op) in other.get_collection("new/all")


def test_nothing_is_built_if_a_handler_raises(ops):
    graph, listing, version = ops.graph, str(ops.graph), ops.graph.n_nodes
    graph.add_to_collection("all", ops.a)

    def failing(info, op, new_inputs):
        if op == ops.f.op:
            raise ZeroDivisionError
        return editor.copy_op_handler(info, op, new_inputs)

    transformer = editor.Transformer()
    transformer.transform_op_handler = failing
    with pytest.raises(ZeroDivisionError):
        transformer(ops.graph, graph, "new")
    assert (str(graph), graph.n_nodes) == (listing, version)
    assert len(graph.get_collection("all")) == 1
    view, _ = editor.copy(graph, graph, "new")
    assert view.op(0).name == "new/a"  # the scope is free again


def test_transformers_say_what_they_expect(ops):
    with pytest.raises(TypeError, match="dst_graph must be a graph, got 'x'"):
        editor.copy(ops.graph, "x")
    with pytest.raises(ValueError, match="the view is empty"):
        editor.Transformer()(editor.sgv(), ops.graph, "")
    with pytest.raises(ValueError, match="'a' is not in the source scope, 'foo/'"):
        editor.copy(ops.graph, cytape.Graph(), src_scope="foo")


@cytape.register_gradient("DeclaredStraightThroughCopies")
def straight_through(op, dy):
    return dy


def test_devices_overrides_and_places_are_copied():
    graph, other = cytape.Graph(), cytape.Graph()
    x = graph.placeholder("float64", (), name="x")
    rules = {"Tanh": "DeclaredStraightThroughCopies"}
    with graph.device("cpu:1"), graph.gradient_override_map(rules):
        y = np.tanh(x)
    _, info = editor.copy(graph, other)
    new = info.transformed(y)
    assert new.op.device == "cpu:1"
    assert other.gradient_override_of(new.op.node) == "DeclaredStraightThroughCopies"
    assert new.op.location == y.op.location
    [dx] = cytape.gradients(new, info.transformed(x))
    assert cytape.Session(other).run(dx, {"x:0": 2.0}) == 1.0


def test_operations_without_consumers_stay_so():
    graph, other = cytape.Graph(), cytape.Graph()
    with graph.as_default():
        x = graph.placeholder("float64", (), name="x")
        with cytape.stop_recording():
            y = x * x
    _, info = editor.copy(graph, other)
    new = info.transformed(y.op)
    assert not other.contexts[other.context_of(new.node)].recorded
