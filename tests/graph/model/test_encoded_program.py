"""Nodes as JSON, and back."""

import json

import numpy as np
import pytest

import cytape
from cytape.errors import GraphFileError
from cytape.graph.model.encoded_program import GraphBuilder, field, graph_code, spec_code
from cytape.graph.model.encoding import Decoder, Encoder
from cytape.tensor.values.spec import Spec, symbolic_spec
from tests.cases import each


def graph_with_contexts():
    with cytape.Graph().as_default() as graph, graph.name_scope("outer"), graph.device("cpu:1"):
        x = graph.placeholder("float64", (None, 3), name="x")
        with graph.control_dependencies([x]):
            np.sum(x, axis=0)
    return graph


def test_a_graph_is_built_again():
    graph, encoder = graph_with_contexts(), Encoder()
    code = json.loads(json.dumps(graph_code(graph, encoder)))
    new = cytape.Graph()
    builder = GraphBuilder(new, code, Decoder(encoder.arrays, encoder.variables))
    builder.build_all()
    assert new.listing() == graph.listing()
    assert json.loads(json.dumps(graph_code(new, Encoder()))) == code
    assert builder.tensor(1).name == "outer/Sum:0"


@each("name", ["nodes", "scopes", "contexts"])
def test_the_error_names_missing_fields(name):
    code = graph_code(graph_with_contexts(), Encoder())
    del code[name]
    with pytest.raises(GraphFileError, match=f"'{name}'"):
        GraphBuilder(cytape.Graph(), code, Decoder([], [])).build_all()


def test_fields_have_types():
    assert field({"a": 1}, "a", int) == 1
    for code in {"a": True}, {"a": 1.0}, {}, [], None:
        with pytest.raises(GraphFileError, match=r"expected an object with 'a' \(int\)"):
            field(code, "a", int)


def test_specs_as_json():
    assert spec_code(Spec.of((2, 3), "float32")) == ["<f4", [2, 3]]
    assert spec_code(symbolic_spec((None, 3), "int64")) == ["<i8", [None, 3]]
    assert spec_code(symbolic_spec(None, "bool")) == ["|b1", None]
