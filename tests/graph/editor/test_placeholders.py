"""Placeholders in place of tensors."""

import pytest

import cytape
from cytape.graph import editor


def test_d_5a_11_names(ops):
    assert editor.placeholder_name(ops.c) == "foo/geph__c_0"
    assert editor.placeholder_name(ops.c, scope="") == "geph__c_0"
    assert editor.placeholder_name(ops.c, scope="other/") == "other/geph__c_0"
    assert editor.placeholder_name(ops.c, prefix="ph") == "foo/ph__c_0"
    assert editor.placeholder_name() == "geph"
    assert editor.placeholder_name(scope="a") == "a/geph"


def test_the_name_of_a_placeholder_stays(ops):
    placeholder = editor.make_placeholder_from_tensor(ops.c, graph=ops.graph)
    assert placeholder.op.name == "foo/geph__c_0"
    assert editor.placeholder_name(placeholder) == "foo/geph__c_0"


def test_it_is_of_the_same_kind_in_the_graph_that_is_built():
    x = cytape.Graph().placeholder("float32", (None, 3), name="x")
    with cytape.Graph().as_default() as _:
        found = editor.make_placeholder_from_tensor(x)
    assert (found.dtype, found.shape, found.op.type) == (x.dtype, x.shape, "Placeholder")
    with cytape.Graph().as_default() as graph, graph.name_scope("scope"):
        found = editor.make_placeholder_from_dtype_and_shape("int64", (2,))
    assert (found.name, found.dtype, found.shape) == ("geph:0", "int64", (2,))
    with pytest.raises(RuntimeError, match="no graph is being built"):
        editor.make_placeholder_from_tensor(x)


def test_only_tensors_of_graphs_have_such_names():
    for wrong in "x", cytape.constant(1.0):
        with pytest.raises(TypeError, match="expected a tensor of a graph"):
            editor.placeholder_name(wrong)
