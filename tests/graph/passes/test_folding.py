"""Constant folding, and ops that leave their input unchanged."""

import numpy as np
from hypothesis import given, settings

import cytape
import cytape.numpy as cnp
from cytape.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.ops.adjoints.conform import broadcast_to_op, cast_op, sum_to_op
from cytape.ops.engine.op_kinds import OPS, nondifferentiable, structural
from tests.cases import each
from tests.graph.passes.graphs import (
    GraphWithControls,
    check_same,
    names,
    programs,
    results,
    simplest,
    subgraph_of,
)

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5, 5e-324])
CALLS = []


def _count(x):
    CALLS.append(x)
    return x + 1


counted = nondifferentiable("DeclaredCounted", _count, shape_rule=lambda x: x)
stateful = nondifferentiable("DeclaredFoldingState", _count, shape_rule=lambda x: x)
stateful.stateful = True


def folded(function, *arrays):
    before = subgraph_of(function, *arrays)
    after = simplest(before)
    check_same(before, after, arrays)
    again = simplest(after)
    assert again.graph.n_nodes == after.graph.n_nodes
    return names(after)


def constants_of(function):
    """The ops that remain of a function of constants, which multiplies an input."""
    return folded(lambda x: x * function(), np.array(3.0))


def test_values_of_constants_alone_are_computed_once():
    found = constants_of(lambda: cnp.sum(cnp.exp(cytape.constant([1.0, 2.0])) * 2.0))
    assert found == {"Multiply": 1}


def test_parts_of_a_repeated_number_are_that_number_repeated():
    def parts(x):
        ones = cnp.broadcast_to(cytape.constant(1.0), (4, 6))
        first, rest = cnp.split(ones, [2], axis=1)
        return [first * x[:, :2], rest[1:] * x[1:, 2:], ones[0, 0] * x, first, ones[::2, 3],
                cnp.transpose(ones).reshape((4, 6)) * x]

    found = folded(parts, np.arange(24.0).reshape(4, 6))
    assert {*found} == {"GetItem", "BroadcastTo"} and found["GetItem"] == 2


@each("view", [
    lambda x: cnp.flip(x, 0), lambda x: cnp.diagonal(x), lambda x: cnp.swapaxes(x, 0, 1),
    lambda x: cnp.unstack(x)[1], lambda x: cnp.rot90(x)])
def test_any_view_of_a_repeated_number_is_that_number_repeated(view):
    def function(x):
        return view(cnp.broadcast_to(cytape.constant(3.0), (4, 4))) * x

    assert {*folded(function, np.array(2.0))} == {"BroadcastTo", "Multiply"}


@each("shift", [
    OPS["Imag"],  # zeros, for real numbers
    structural("DeclaredShift", lambda x: np.concatenate([x[1:], np.zeros(1)]),
               lambda results, operands: [(results[0][:-1], operands[0][1:])], lambda x: x,
               views=True),
])
def test_an_op_that_does_not_always_make_views_is_called(shift):
    found = folded(lambda x: shift(cnp.broadcast_to(cytape.constant(3.0), (4,))) * x, np.ones(4))
    assert {*found} > {"Multiply"} and found[shift.name] == 1


def test_a_broadcast_by_a_neutral_element_stays():
    def products(x):
        ones, zeros = (cnp.broadcast_to(cytape.constant(y), (5, 8)) for y in (1.0, 0.0))
        return [x * ones, ones * x[:1], x / ones, x - zeros, x + -zeros, x[:, None] * ones[:, None]]

    assert {*folded(products, SPECIAL)} == {"BroadcastTo", "GetItem"}


def test_the_forward_function_runs_once_and_not_again():
    subgraph = subgraph_of(lambda x: x * counted(cytape.constant(2.0)), np.array(1.0))
    CALLS.clear()
    after = simplest(subgraph)
    assert len(CALLS) == 1
    assert names(after) == {"Multiply": 1}


def test_stateful_ops_are_left_to_be_run():
    found = constants_of(lambda: stateful(cytape.constant(2.0)))
    assert found == {"DeclaredFoldingState": 1, "Multiply": 1}


def test_ops_that_raise_are_not_folded():
    failing = nondifferentiable("DeclaredFailing", lambda x: 1 // 0, shape_rule=lambda x: x)
    subgraph = subgraph_of(lambda x: x * failing(cytape.constant(2.0)), np.array(1.0))
    assert names(simplest(subgraph)) == {"DeclaredFailing": 1, "Multiply": 1}


@each("name", ["log", "reciprocal"])
def test_ops_that_warn_are_not_folded(name):
    found = constants_of(lambda: getattr(cnp, name)(cytape.constant(0.0)))
    assert found == {name.title(): 1, "Multiply": 1}


def test_large_results_are_not_made_of_small_constants():
    def function(x):
        return cnp.sum(cnp.broadcast_to(cytape.constant(2.0), (1000, 1000)) + 0.5) * x

    found = folded(function, np.array(1.0))
    assert "Add" not in found  # done once, on one number
    assert found["BroadcastTo"] == 1


def test_results_no_larger_than_what_they_are_made_of_are_folded():
    large = cytape.constant(np.arange(200_000.0))
    found = folded(lambda x: cnp.sum(cnp.negative(large) * x), np.array(1.0))
    assert found == {"Multiply": 1, "Sum": 1}


def test_a_transposed_constant_remains_a_view():
    found = folded(lambda x: x @ cytape.constant(np.ones((3, 2))).T, np.ones((2, 2)))
    assert found == {"Transpose": 1, "MatMul": 1}


@each("view", [cnp.flip, lambda x: cnp.swapaxes(x, 0, 1), lambda x: x[::2]])
def test_other_views_of_constants_are_folded_with_their_readers(view):
    rows = np.arange(6.0).reshape(3, 2)
    assert constants_of(lambda: cnp.sum(cnp.exp(view(cytape.constant(rows))))) == {"Multiply": 1}


def test_equal_results_are_one_constant():
    def function(x):
        two = cytape.constant(2.0)
        return [x * cnp.exp(two), x + cnp.exp(two)]

    after = simplest(subgraph_of(function, np.array(1.0)))
    assert [op.name for op in after.graph.ops].count("Constant") == 1


NEUTRAL = {
    "times one": lambda x: x * 1.0,
    "one times": lambda x: 1.0 * x,
    "by one": lambda x: x / 1.0,
    "minus zero": lambda x: x - 0.0,
    "plus minus zero": lambda x: x + -0.0,
    "minus minus": lambda x: cnp.negative(-x),
    "positive": lambda x: cnp.positive(x),
    "times ones": lambda x: x * cnp.broadcast_to(cytape.constant(1.0), (8,)),
    "reshape": lambda x: cnp.reshape(x, (8,)),
    "broadcast": lambda x: broadcast_to_op(x, shape=(8,)),
    "sum to": lambda x: sum_to_op(x, shape=(8,)),
    "cast": lambda x: cast_op(x, dtype=np.dtype(float)),
    "identity": lambda x: OPS["Identity"](x),
}


@each("function", NEUTRAL.values(), ids=NEUTRAL)
def test_ops_that_change_nothing_are_left_out(function):
    assert folded(lambda x: cnp.sqrt(function(x)), SPECIAL) == {"Sqrt": 1}


NOT_NEUTRAL = {
    "plus zero": lambda x: x + 0.0,
    "minus minus zero": lambda x: x - -0.0,
    "zero minus": lambda x: 0.0 - x,
    "times zero": lambda x: x * 0.0,
    "one by": lambda x: 1.0 / x,
    "minus": lambda x: -x,
    "to another dtype": lambda x: cast_op(x, dtype=np.dtype("float32")),
    "to another shape": lambda x: cnp.reshape(x, (2, 4)),
    "to a larger shape": lambda x: x * cytape.constant(np.ones((2, 1))),
    "times nearly one": lambda x: x * np.nextafter(1.0, 2.0),
}


@each("function", NOT_NEUTRAL.values(), ids=NOT_NEUTRAL)
def test_ops_that_change_something_are_kept(function):
    assert sum(folded(lambda x: cnp.sqrt(function(x)), SPECIAL).values()) == 2


def test_signs_of_zeros_are_kept():
    before = subgraph_of(lambda x: [x + 0.0, x - 0.0, x + -0.0], np.array([-0.0]))
    after = simplest(before)
    assert [bool(np.signbit(x[0])) for x in results(after, [np.array([-0.0])])] == [
        False, True, True,
    ]


def test_a_fetch_may_be_what_an_op_changed_nothing_of():
    before = subgraph_of(lambda x: [x * 1.0, x], SPECIAL)
    after = simplest(before)
    assert after.fetches == after.feeds * 2


def test_fed_values_are_not_constants():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(float, ())
        two = cytape.constant(2.0) * x * 0.5
    symbol = graph.symbol_of(two)
    constant = graph.inputs_of(graph.node_of(symbol))[1]
    subgraph = Subgraph(graph, (graph.symbol_of(x), constant), (symbol,))
    after = simplest(subgraph)
    check_same(subgraph, after, [np.array(3.0), np.array(1.0)])
    check_same(subgraph, after, [np.array(3.0), np.array(7.0)])


def test_control_inputs_of_others_remain():
    graph = GraphWithControls()
    with graph.as_default():
        x = graph.placeholder(float, ())
        y = x * 1.0
        before = graph.after(y)
        z = cnp.sin(x)
        graph.enter_context(before)
    after = simplest(Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(z),)))
    assert names(after) == {"Multiply": 1, "Sin": 1}
    waiting = after.graph.node_of(after.fetches[0])
    assert [after.graph.ops[n].name for n in after.graph.control_inputs_of(waiting)] == ["Multiply"]


@settings(max_examples=60, deadline=None)
@given(programs())
def test_random_programs_compute_the_same(program):
    function, arrays = program
    folded(function, *arrays)
