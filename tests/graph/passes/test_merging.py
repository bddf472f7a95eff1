"""Common subexpressions: what is the same, and what only looks like it."""

import numpy as np
from hypothesis import given, settings

import cytape
import cytape.numpy as cnp
from cytape.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.ops.engine.op_kinds import general, nondifferentiable
from tests.cases import each
from tests.graph.passes.graphs import (
    GraphWithControls,
    check_same,
    names,
    programs,
    simplest,
    subgraph_of,
)

X = np.linspace(-1, 1, 6)

scale = nondifferentiable("DeclaredScale", lambda x, by: x * 2, shape_rule=lambda x, by: x)
both = general("DeclaredBoth", lambda x: (x + 1, x - 1), shape_rule=lambda x: (x, x))
draw = nondifferentiable("DeclaredDraw", lambda x: x, shape_rule=lambda x: x)
draw.stateful = True


def merged(function, *arrays, **options):
    before = subgraph_of(function, *arrays, **options)
    after = simplest(before)
    check_same(before, after, arrays)
    again = simplest(after)
    assert again.graph.n_nodes == after.graph.n_nodes
    return names(after)


def test_equal_calls_become_one():
    assert merged(lambda x: cnp.sin(x) + cnp.sin(x), X) == {"Sin": 1, "Add": 1}


def test_calls_of_what_is_equal_become_one():
    found = merged(lambda x: cnp.exp(cnp.sin(x)) * cnp.exp(cnp.sin(x)), X)
    assert found == {"Sin": 1, "Exp": 1, "Multiply": 1}


def test_other_inputs_and_another_order_are_not_the_same():
    found = merged(lambda x, y: (x - y) * (y - x) * (x - x), X, X)
    assert found["Subtract"] == 3


def test_all_outputs_are_merged():
    def function(x):
        (a, b), (c, d) = both(x), both(x)
        return a * b + c * d

    assert merged(function, X) == {"DeclaredBoth": 1, "Multiply": 1, "Add": 1}


EQUAL = [
    3, "a", None, True, 0.5, -0.0, float("nan"), 2j, (1, (2, None)), slice(0, 3), float,
    np.dtype("float32"), np.array([1, 2]), b"x",
]


@each("value", EQUAL, ids=repr)
def test_attributes_are_compared_by_value(value):
    if isinstance(value, (float, complex, tuple, bytes)):
        copies = [eval(repr(value), {"nan": float("nan")}) for _ in range(2)]
    elif isinstance(value, slice):
        copies = [slice(0, 3), slice(0, 3)]
    else:
        copies = [value, value.copy() if isinstance(value, np.ndarray) else value]
    found = merged(lambda x: scale(x, by=copies[0]) + scale(x, by=copies[1]), X)
    assert found == {"DeclaredScale": 1, "Add": 1}


class Odd:
    """Equal to everything, and not to be hashed."""

    __hash__ = None

    def __eq__(self, other):
        return True

    def __repr__(self):  # names tests: the same in every process
        return "Odd()"


DIFFERENT = [
    (1, 1.0), (1, True), (0.0, -0.0), ((1,), (True,)), (slice(1), slice(2)), (1, 2),
    (np.array([1, 2]), np.array([1, 3])), (np.array([1]), np.array([1.0])),
    (np.array([1]), np.array([[1]])), (Odd(), Odd()), ({}, {}), ((1, 2), (1,)),
    (np.zeros(1000), np.zeros(1000)), ("a", b"a"), (1.0, 1 + 0j),
]


@each(("a", "b"), DIFFERENT, ids=repr)
def test_attributes_that_differ_or_cannot_be_compared_keep_calls_apart(a, b):
    found = merged(lambda x: scale(x, by=a) + scale(x, by=b), X)
    assert found == {"DeclaredScale": 2, "Add": 1}


def test_an_object_is_equal_to_itself():
    odd = Odd()
    assert merged(lambda x: scale(x, by=odd) + scale(x, by=odd), X)["DeclaredScale"] == 1


def test_constants_of_equal_bits_are_merged():
    def function(x):
        a, b, c = (cytape.constant(v) for v in ([1.0, 2.0], [1.0, 2.0], [1.0, -2.0]))
        zeros = cytape.constant(0.0), cytape.constant(-0.0)
        return [x[:2] * a + x[:2] * b, x[:2] * c, x / zeros[0], x / zeros[1]]

    before = subgraph_of(function, X)
    after = simplest(before)
    counts = [sum(op.name == "Constant" for op in s.graph.ops) for s in (before, after)]
    assert counts == [5, 4]
    check_same(before, after, [X])


def test_stateful_ops_are_not_merged():
    assert merged(lambda x: draw(x) + draw(x), X)["DeclaredDraw"] == 2


def test_placeholders_are_not_merged():
    graph = Graph()
    with graph.as_default():
        a, b = (graph.placeholder(float, (6,)) for _ in range(2))
        y = a - b
    symbols = [graph.symbol_of(t) for t in (a, b, y)]
    fed = simplest(Subgraph(graph, tuple(symbols[:2]), (symbols[2],)))
    unfed = simplest(Subgraph(graph, (), (symbols[2],)))
    for subgraph in (fed, unfed):
        assert [op.name for op in subgraph.graph.ops].count("Placeholder") == 2


def test_ends_of_control_edges_are_not_merged():
    graph = GraphWithControls()
    with graph.as_default():
        x = graph.placeholder(float, (6,))
        a = cnp.sin(x)
        before = graph.after(a)
        b = cnp.sin(x)
        graph.enter_context(before)
        c = cnp.sin(x)
        d = cnp.sin(x)
    symbols = [graph.symbol_of(t) for t in (b, c, d)]
    after = simplest(Subgraph(graph, (graph.symbol_of(x),), tuple(symbols)))
    assert names(after) == {"Sin": 3}
    assert after.fetches[1] == after.fetches[2]


def test_a_node_that_is_fed_stands_for_no_other():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(float, (6,))
        a, b = cnp.sin(x), cnp.sin(x)
        c = a + b
    subgraph = Subgraph(graph, (graph.symbol_of(x), graph.symbol_of(a)), (graph.symbol_of(c),))
    after = simplest(subgraph)
    assert names(after) == {"Sin": 1, "Add": 1}
    check_same(subgraph, after, [X, 3 * X])


def test_many_nodes_of_one_input_are_told_apart():
    def function(x):
        return [sum(x[i % 6] for i in range(300))]

    assert merged(function, X)["GetItem"] == 6


@settings(max_examples=60, deadline=None)
@given(programs())
def test_random_programs_compute_the_same(program):
    function, arrays = program
    merged(function, *arrays)
