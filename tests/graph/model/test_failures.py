"""Notes on errors of operations."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphError
from cytape.graph.model.failures import note_operation, where_built
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run.executable import Executable
from cytape.ops.calls.symbolic import SymbolicGraph
from tests.cases import each


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
    for note, expected in zip(error.__notes__, [
        "computed Tanh:1 (float64, shape (None,)), op Tanh of float64 (None,), built at ",
        "computed Placeholder:0 (float64, shape (None,)), op Placeholder of no inputs, built at ",
    ], strict=True):
        assert note.startswith(f"while a graph {expected}{__file__}:")


@each("f, shapes", [
    (lambda x, y: cnp.sum(x) * 2.0 + x @ y, [(3, 2), (3, 2)]),
    (lambda x, y: x * y, [(3, 2), (2, 2)]),
    (lambda x, y: cnp.concatenate([x, y]), [(3, 2), (3, 3)]),
    (lambda x, y: cytape.gather(x, [0, 7]) + y, [(3, 2), (2, 2)]),
    (lambda x, y: cytape.cond(cnp.sum(y) > 0, lambda: x @ y, lambda: x), [(3, 2), (3, 2)]),
    (lambda x, y: cytape.while_loop(
        lambda x: cnp.sum(x) < 99, lambda x: x @ x, [x]), [(3, 2), (1, 1)]),
])
@each("derivative", [lambda f: f, cytape.grad])
def test_a_misfit_at_run_time_is_named_with_its_line(f, shapes, derivative):
    signature = [cytape.Spec.of((None, None), float)] * 2
    function = cytape.function(f, input_signature=signature)
    f = derivative(lambda *arguments: cnp.sum(function(*arguments)))
    for _ in range(3):
        with pytest.raises((ValueError, IndexError)) as failure:
            f(*map(np.ones, shapes))
        assert f"built at {__file__}:" in failure.value.__notes__[0]
        assert " in <lambda>" in failure.value.__notes__[0]


def test_a_fed_value_that_does_not_fit_is_named_with_the_line_of_its_placeholder():
    for extent in None, 2:
        graph = cytape.Graph()
        x = graph.placeholder("float64", (extent,))
        y = graph.symbol_of(x * 2.0)
        executable = Executable(Subgraph(graph, (graph.symbol_of(x),), (y,)))
        for wrong in np.ones((2, 2)), np.ones(2, "float32"):
            for _ in range(3):
                with pytest.raises(GraphError, match=r"'Placeholder:0' .*_failures.py, line \d"):
                    executable.run([wrong])
        with pytest.raises(GraphError, match="1 values have to be fed, got 2"):
            executable.run([np.ones(2)] * 2)
        np.testing.assert_array_equal(executable.run([np.ones(2)])[0], [2.0, 2.0])
