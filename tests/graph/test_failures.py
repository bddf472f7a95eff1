"""What is said of an operation that failed."""

import numpy as np

import cytape
from cytape.graph.failures import note_operation, where_built
from cytape.ops.symbolic import SymbolicGraph


def test_an_unknown_location_is_left_out():
    assert where_built(None) == ""


def test_graphs_without_names_tell_the_op_type():
    named = cytape.Graph()
    y = np.tanh(named.placeholder("float64", (None,)))
    plain = SymbolicGraph()
    for node in range(2):
        symbols = [named.spec_of(symbol) for symbol in named.outputs_of(node)]
        plain.add(named.ops[node], named.inputs_of(node), named.attrs[node], symbols)
    error = ValueError("no")
    note_operation(error, plain, y.op.node)
    note_operation(error, plain, 0)
    assert "op 'Tanh'" in error.__notes__[0] and "float64 (None,)" in error.__notes__[0]
    assert error.__notes__[1].endswith("of no inputs")
