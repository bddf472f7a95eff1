"""Groups of elementwise ops: what is fused, what is not, and that nothing else changes."""

import numpy as np
import pytest
from hypothesis import given, settings

import cytape
import cytape.numpy as cnp
from cytape.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes.fusion import fused
from cytape.graph.passes.merging import with_repeats_merged
from cytape.graph.run.interpreter import run
from cytape.ops.engine.op_kinds import nondifferentiable
from tests.graph.passes.graphs import (
    GraphWithControls,
    check_same,
    names,
    programs,
    results,
    subgraph_of,
    with_gradients,
)

X = np.linspace(-1, 1, 70)
ROWS = np.linspace(-1, 1, 210).reshape(3, 70)
LOG = []


def _note(x, what):
    LOG.append(what)
    return x


note = nondifferentiable("DeclaredFusionNote", _note, shape_rule=lambda x, what: x)
note.stateful = True


def groups(function, *arrays, rtol=0.0, least=65):
    """The ops that remain, and of each fused one how many there are in it."""
    before = subgraph_of(function, *arrays)
    after = fused(before, least)
    check_same(before, after, arrays, rtol)
    again = fused(after, least)
    assert names(again) == names(after)
    sizes = [len(op.calls) for op in after.graph.ops if op.name == "Fused"]
    counts = names(after)
    counts.pop("Fused", None)
    return counts, sizes


def test_a_chain_becomes_one_op():
    assert groups(lambda x: cnp.exp(-x * x) * 0.5, X) == ({}, [4])


def test_branches_that_meet_become_one_op():
    assert groups(lambda x: cnp.sin(x) * cnp.exp(x) + cnp.tanh(x), X) == ({}, [5])


def test_what_reads_the_same_is_done_together():
    assert groups(lambda x: [cnp.sin(x), cnp.exp(x)], X) == ({}, [2])


@pytest.mark.parametrize("dtype", "?bBhHiIlLqQefdgFDG")
def test_comparisons_of_any_dtype(dtype):
    x = np.arange(70).astype(dtype)
    chain = groups(lambda x: (x > 0) & (x < 5), x)
    selection = groups(lambda x, y: cnp.where((x > 0) & (x < 5), y, 0.0), x, X)
    # What a group computes besides booleans is float32 or float64.
    assert chain[1] == ([3] if dtype in "fd" else [])
    assert sum(selection[0].values()) + sum(selection[1]) == 4


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float16", "longdouble", "complex64"])
def test_functions_that_compare_what_is_not_fused(dtype):
    x, labels = cytape.constant(np.ones(5000)), cytape.constant(np.ones(5000, dtype))
    f = cytape.function(lambda x, n: cnp.where((n > 0) & (n < 5), x, 0.0).sum())
    for _ in range(3):
        with cytape.GradientTape() as tape:
            tape.watch(x)
            y = f(x, labels)
        assert float(y) == 5000.0
        assert tape.gradient(y, x).numpy().tolist() == [1.0] * 5000


@pytest.mark.parametrize("function", [
    lambda x: cnp.maximum(x, 2.0), lambda x: cnp.clip(x, -1.0, 2.0), cnp.abs])
def test_gradients_of_half_precision_that_compare(function):
    x = cytape.constant(np.linspace(-5, 5, 5000).astype("float16"))
    expected = cytape.grad(lambda x: cnp.sum(function(x)))(x)
    f = cytape.function(cytape.grad(lambda x: cnp.sum(function(x))))
    for _ in range(3):
        np.testing.assert_array_equal(f(x), expected)


def test_what_has_nothing_in_common_is_not_fused():
    found, sizes = groups(lambda x, y: [cnp.sin(x), cnp.exp(y)], X, X)
    assert (found, sizes) == ({"Sin": 1, "Exp": 1}, [])


def test_small_tensors_and_single_ops_are_left_alone():
    assert groups(lambda x: cnp.exp(-x), X[:64]) == ({"Negative": 1, "Exp": 1}, [])
    assert groups(lambda x: cnp.exp(-x), X[:65]) == ({}, [2])
    assert groups(lambda x: cnp.exp(-x), X[:5], least=5) == ({}, [2])
    assert groups(cnp.exp, X) == ({"Exp": 1}, [])


def test_scalars_are_operands_and_their_own_ops_are_not_part_of_a_group():
    found, sizes = groups(lambda x, a: x * cnp.sin(a) + a, X, np.array(0.5))
    assert (found, sizes) == ({"Sin": 1}, [2])


def test_broadcast_scalars_are_read_where_they_are():
    def function(x, a):
        return cnp.sin(x) * cnp.broadcast_to(a, x.shape)

    assert groups(function, X, np.array(0.5)) == ({}, [2])


def test_a_broadcast_scalar_that_is_fetched_is_made():
    def function(x, a):
        wide = cnp.broadcast_to(a, x.shape)
        return [cnp.sin(x) * wide, wide]

    assert groups(function, X, np.array(0.5)) == ({"BroadcastTo": 1}, [2])


def test_rows_and_columns_are_operands():
    column = np.array([[1.0], [2.0], [3.0]])
    assert groups(lambda x, row, c: cnp.tanh(x + row) * c, ROWS, X, column) == ({}, [3])


def test_rows_too_short_to_be_worth_it_are_not():
    short = np.ones((70, 3))
    found, sizes = groups(lambda x, row: cnp.tanh(x + row), short, np.arange(3.0))
    assert (found, sizes) == ({"Add": 1, "Tanh": 1}, [])


def test_shapes_and_dtypes_are_groups_of_their_own():
    def function(x, y):
        return [cnp.exp(cnp.sin(x)), cnp.exp(cnp.sin(y))]

    assert groups(function, X, ROWS) == ({}, [2, 2])
    assert groups(function, X, X.astype("f")) == ({}, [2, 2])


def test_float32_is_fused():
    assert groups(lambda x: cnp.exp(-x * x) * 0.5, X.astype("f")) == ({}, [4])


def test_comparisons_and_selections_are_fused():
    def function(x):
        wanted = (x > 0.1) | ~(x > -0.5)
        return [cnp.where(wanted, cnp.sin(x), 0.0) * wanted, wanted]

    assert groups(function, X) == ({}, [7])


def test_a_scalar_may_be_compared_first():
    def function(x, a):
        return cnp.where(cnp.less(a, x), x, a)

    assert groups(function, X, np.array(0.5)) == ({}, [2])


def test_booleans_alone_are_not_fused():
    known = X > 0
    assert groups(lambda x: ~(x | ~x), known) == ({"Invert": 2, "BitwiseOr": 1}, [])


def test_integers_and_other_dtypes_are_not_fused():
    found, sizes = groups(lambda x: [x * x + x], np.arange(70))
    assert (found, sizes) == ({"Multiply": 1, "Add": 1}, [])
    found, sizes = groups(lambda x: [x * x + x], X * 1j)
    assert (found, sizes) == ({"Multiply": 1, "Add": 1}, [])


def test_a_sum_over_everything_ends_a_group():
    assert groups(lambda x: cnp.sum(x * x), X, rtol=1e-15) == ({}, [2])
    assert groups(lambda x: cnp.sum(x * x), ROWS, rtol=1e-15) == ({}, [2])
    assert groups(lambda x: cnp.sum(x * x, keepdims=True), ROWS, rtol=1e-15) == ({}, [2])


@pytest.mark.parametrize(
    "options", [{"axis": 0}, {"axis": 0, "keepdims": True}, {"dtype": "float32"}], ids=str)
def test_other_sums_are_left_alone(options):
    found, sizes = groups(lambda x: cnp.sum(cnp.exp(-x), **options), ROWS)
    assert (found, sizes) == ({"Sum": 1}, [2])


def test_sums_of_sums_and_of_what_is_fed_are_left_alone():
    assert groups(lambda x: cnp.sum(x) + 1.0, X)[0] == {"Sum": 1, "Add": 1}


def test_what_uses_a_sum_is_in_another_group():
    def function(x):
        y = cnp.exp(x)
        return cnp.sin(y / cnp.sum(y))

    assert groups(function, X, rtol=1e-15) == ({}, [2, 2])


def test_no_path_leaves_a_group_and_comes_back():
    def function(x):
        y = cnp.sin(x)
        z = cnp.exp(y)
        return [z, cnp.flip(y) * z]  # the flip is of what the group computes

    assert groups(function, X) == ({"Flip": 1, "Multiply": 1}, [2])


def test_what_is_used_late_is_computed_late():
    def function(x):
        y, early = cnp.sin(x), cnp.exp(x)
        return cnp.flip(y) * early

    assert groups(function, X) == ({"Sin": 1, "Flip": 1}, [2])


def test_values_and_gradients_are_one_pass_over_memory():
    def function(x):
        y = cnp.exp(-x * x) * cnp.sin(x) + cnp.log(1 + x * x)
        return cnp.sum(y * y)

    found, sizes = groups(with_gradients(function), X, rtol=1e-13)
    assert found == {}
    assert len(sizes) == 1


def test_equal_groups_share_their_op():
    def function(x):
        for _ in range(3):
            x = cnp.flip(cnp.exp(-x) * x)
        return x

    after = fused(subgraph_of(function, X), 65)
    assert len({id(op) for op in after.graph.ops if op.name == "Fused"}) == 1
    assert names(after) == {"Fused": 3, "Flip": 3}


def test_what_is_kept_or_waits_or_is_waited_for_is_not_fused():
    graph = GraphWithControls()
    with graph.as_default():
        x = graph.placeholder(float, (70,))
        a = cnp.sin(x)
        before = graph.after(a)
        b = cnp.exp(x)
        graph.enter_context(before)
        c = cnp.cos(x)
        d = cnp.tanh(x * c) + b
    symbols = [graph.symbol_of(t) for t in (x, c, d)]
    subgraph = Subgraph(graph, (symbols[0],), (symbols[2],), (graph.node_of(symbols[1]),))
    after = fused(subgraph, 65)
    assert names(after) == {"Sin": 1, "Exp": 1, "Cos": 1, "Fused": 1}
    check_same(subgraph, after, [X])
    node = next(i for i, op in enumerate(after.graph.ops) if op.name == "Exp")
    assert [after.graph.ops[n].name for n in after.graph.control_inputs_of(node)] == ["Sin"]


def test_stateful_ops_stay_in_their_order():
    def function(x):
        a = note(cnp.exp(-x), what=0)
        b = note(x, what=1)
        c = note(cnp.sin(a) + b, what=2)
        return [cnp.exp(cnp.tanh(c)), cnp.exp(cnp.sin(b))]

    before = subgraph_of(function, X)
    after = fused(before, 65)
    assert names(after)["DeclaredFusionNote"] == 3
    LOG.clear()
    results(after, [X])
    assert LOG == [0, 1, 2]
    check_same(before, after, [X])


def test_a_group_that_is_needed_early_does_not_bring_stateful_ops_forward():
    def function(x):
        first = cnp.exp(x)
        early = cnp.flip(first)
        a, b = note(x, what="a"), note(x, what="b")
        return [early, cnp.sin(b) * first, a]

    before = subgraph_of(function, X)
    after = fused(before, 65)
    assert names(after) == {"Fused": 1, "Flip": 1, "DeclaredFusionNote": 2}
    LOG.clear()
    results(after, [X])
    assert LOG == ["a", "b"]
    check_same(before, after, [X])


def test_the_order_of_stateful_ops_keeps_groups_apart():
    def function(x):
        first = cnp.exp(-x)
        a, b = note(first, what="a"), note(x, what="b")
        return [cnp.sin(b) * first, a]

    before = subgraph_of(function, X)
    after = fused(before, 65)
    assert names(after) == {"Fused": 2, "DeclaredFusionNote": 2}
    LOG.clear()
    results(after, [X])
    assert LOG == ["a", "b"]
    check_same(before, after, [X])


def waiting(build):
    """A graph of what `build` makes of x and a function that builds what waits for a tensor."""
    graph = GraphWithControls()

    def after(tensor, function, x):
        before = graph.after(tensor)
        result = function(x)
        graph.enter_context(before)
        return result

    subgraph = subgraph_of(lambda x: build(x, after), X, graph=graph)
    rewritten = fused(subgraph, 65)
    check_same(subgraph, rewritten, [X])
    node = next(i for i, op in enumerate(rewritten.graph.ops) if op.name == "Cos")
    assert [rewritten.graph.ops[n].name for n in rewritten.graph.control_inputs_of(node)] == [
        "Flip"
    ]
    return names(rewritten)


def test_a_group_that_is_needed_early_is_after_what_it_waits_for():
    def build(x, after):
        first = cnp.exp(x)
        early = cnp.roll(first, 1)
        late = after(cnp.flip(x), cnp.cos, x)
        return [early, late * first]

    assert waiting(build) == {"Fused": 1, "Roll": 1, "Flip": 1, "Cos": 1}


def test_control_inputs_keep_groups_apart():
    def build(x, after):
        first = cnp.exp(-x)
        late = after(cnp.flip(first), cnp.cos, x)
        return cnp.tanh(late * first)

    assert waiting(build) == {"Fused": 2, "Flip": 1, "Cos": 1}


def test_what_is_fed_is_not_computed():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(float, (70,))
        y = cnp.exp(x)
        z = cnp.sin(cnp.tanh(y) * y)
    subgraph = Subgraph(graph, (graph.symbol_of(y),), (graph.symbol_of(z), graph.symbol_of(y)))
    after = fused(subgraph, 65)
    assert [len(op.calls) for op in after.graph.ops if op.name == "Fused"] == [3]
    check_same(subgraph, after, [X])


def fast_calls(after):
    """Name the sines and cosines that may be computed by the faster loop."""
    fused_ops = [op for op in after.graph.ops if op.name == "Fused"]
    return sorted(call[0].name for op in fused_ops for call in op.calls if call[3])


def both(x):
    return cnp.sin(x) + cnp.cos(x)


def test_sines_and_cosines_of_derivatives_may_be_computed_faster():
    after = fused(subgraph_of(with_gradients(lambda x: cnp.sum(cnp.sin(x))), X), 65)
    (op,) = (op for op in after.graph.ops if op.name == "Fused")
    assert {call[0].name: call[3] for call in op.calls} == {
        "Sin": False,
        "Sum": False,
        "Cos": True,
        "Multiply": False,
    }


def gradient_then_cosine(x):
    _, gradient = with_gradients(cnp.sin)(x)
    return [gradient, cnp.cos(x)]


def tangent(x):
    with cytape.ForwardAccumulator(x, np.ones(x.shape)) as accumulator:
        y = cnp.sin(x)
    return [y, accumulator.jvp(y)]


def of_a_function_inside(x):
    return [cytape.function(cytape.grad(lambda x: cnp.sum(cnp.sin(x))))(x), cnp.sin(2.0 * x)]


@pytest.mark.parametrize(("function", "expected"), [
    (both, []), (lambda x: [cnp.cos(x), cnp.sin(x)], []),
    (with_gradients(lambda x: cnp.sum(both(x))), []),  # each is the program's own, too
    (gradient_then_cosine, []), (tangent, ["Cos"]), (of_a_function_inside, ["Cos"]),
    (lambda x: cytape.gradients(cnp.sin(x), x), ["Cos"]),
    (lambda x: cytape.gradients(cytape.gradients(cnp.sin(x), x), x), ["Sin"]),
])
def test_no_sine_or_cosine_of_the_program_itself_is(function, expected):
    assert fast_calls(fused(with_repeats_merged(subgraph_of(function, X)), 65)) == expected


@pytest.mark.parametrize("size", [64, 65, 500, 5000])
def test_what_a_program_computes_is_numpys_to_the_bit(size):
    x = np.linspace(-100, 100, size)
    expected = np.sin(x) + np.cos(x)
    f = cytape.function(both)
    with cytape.Graph().as_default() as graph:
        fed = cytape.placeholder("float64", x.shape)
        y = both(fed)
        gradient = cytape.gradients(cnp.sum(y * y), fed)
    session = cytape.Session(graph)
    for _ in range(3):  # the trace, what it is optimised to, and that once more
        np.testing.assert_array_equal(f(x), expected)
        np.testing.assert_array_equal(session.run(y, {fed: x}), expected)
        found, _ = session.run([y, gradient], {fed: x})
        np.testing.assert_array_equal(found, expected)


def test_a_faster_sine_or_cosine_is_worth_an_op_of_its_own():
    after = fused(subgraph_of(with_gradients(lambda x: cnp.sum(cnp.sin(x))), X))
    assert names(after) == {"Sin": 1, "Sum": 1, "BroadcastTo": 1, "Multiply": 1, "Fused": 1}
    small = fused(subgraph_of(with_gradients(lambda x: cnp.sum(cnp.sin(x))), X[:64]))
    assert "Fused" not in names(small)


def test_warnings_are_those_of_the_single_ops():
    before = subgraph_of(lambda x: cnp.log(-cnp.square(x)), np.zeros(70))
    after = fused(before, 65)
    for subgraph in (before, after):
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
            run(subgraph.graph, subgraph.fetches, {subgraph.feeds[0]: np.zeros(70)})


def test_a_fused_op_is_where_its_first_op_was():
    before = subgraph_of(lambda x: cnp.exp(-x), X)
    after = fused(before, 65)
    node = after.graph.node_of(after.fetches[0])
    assert after.graph.location_of(node)[0] == __file__


@settings(max_examples=60, deadline=None)
@given(programs())
def test_random_programs_compute_the_same(program):
    function, arrays = program
    rtol = 1e-12 if arrays[0].dtype == np.float64 else 1e-4
    before = subgraph_of(function, *arrays)
    for least in (1, 65):
        after = fused(before, least)
        check_same(before, after, arrays, rtol, any_condition=True)
        check_same(before, fused(after, least), arrays, rtol, any_condition=True)


@pytest.mark.parametrize("n", [5000, 1 << 20])
def test_a_mask_is_in_the_loop_that_reads_it(n):
    graph = Graph()
    with graph.as_default():
        x, y = cytape.placeholder(float, (n,)), cytape.placeholder(float, (n,))
        chosen = cnp.cumsum(y)
        z = cnp.where(x > 0.0, chosen, x * 2.0)
    of = Subgraph(graph, (graph.symbol_of(x), graph.symbol_of(y)), (graph.symbol_of(z),))
    names = [op.name for op in fused(of).graph.ops]
    assert "Greater" not in names
    assert names.count("Fused") == 1
