"""Groups of elementwise ops: what is fused, and what is not."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.passes.fusion import fused
from tests.graph.passes.graphs import fused_groups, names, simplest, subgraph_of, with_gradients

X = np.linspace(-1, 1, 70)
ROWS = np.linspace(-1, 1, 210).reshape(3, 70)


def test_a_chain_becomes_one_op():
    assert fused_groups(lambda x: cnp.exp(-x * x) * 0.5, X) == ({}, [4])


def test_branches_that_meet_become_one_op():
    assert fused_groups(lambda x: cnp.sin(x) * cnp.exp(x) + cnp.tanh(x), X) == ({}, [5])


def test_what_reads_the_same_is_done_together():
    assert fused_groups(lambda x: [cnp.sin(x), cnp.exp(x)], X) == ({}, [2])


@pytest.mark.parametrize("dtype", "?bBhHiIlLqQefdgFDG")
def test_comparisons_of_any_dtype(dtype):
    x = np.arange(70).astype(dtype)
    chain = fused_groups(lambda x: (x > 0) & (x < 5), x)
    selection = fused_groups(lambda x, y: cnp.where((x > 0) & (x < 5), y, 0.0), x, X)
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
    found, sizes = fused_groups(lambda x, y: [cnp.sin(x), cnp.exp(y)], X, X)
    assert (found, sizes) == ({"Sin": 1, "Exp": 1}, [])


def test_small_tensors_and_single_ops_are_left_alone():
    assert fused_groups(lambda x: cnp.exp(-x), X[:64]) == ({"Negative": 1, "Exp": 1}, [])
    assert fused_groups(lambda x: cnp.exp(-x), X[:65]) == ({}, [2])
    assert fused_groups(lambda x: cnp.exp(-x), X[:5], least=5) == ({}, [2])
    assert fused_groups(cnp.exp, X) == ({"Exp": 1}, [])


def test_scalars_are_operands_and_their_own_ops_are_not_part_of_a_group():
    found, sizes = fused_groups(lambda x, a: x * cnp.sin(a) + a, X, np.array(0.5))
    assert (found, sizes) == ({"Sin": 1}, [2])


def test_broadcast_scalars_are_read_where_they_are():
    def function(x, a):
        return cnp.sin(x) * cnp.broadcast_to(a, x.shape)

    assert fused_groups(function, X, np.array(0.5)) == ({}, [2])


def test_rows_and_columns_are_operands():
    column = np.array([[1.0], [2.0], [3.0]])
    assert fused_groups(lambda x, row, c: cnp.tanh(x + row) * c, ROWS, X, column) == ({}, [3])


def test_rows_too_short_to_be_worth_it_are_not():
    short = np.ones((70, 3))
    found, sizes = fused_groups(lambda x, row: cnp.tanh(x + row), short, np.arange(3.0))
    assert (found, sizes) == ({"Add": 1, "Tanh": 1}, [])


def test_shapes_and_dtypes_are_groups_of_their_own():
    def function(x, y):
        return [cnp.exp(cnp.sin(x)), cnp.exp(cnp.sin(y))]

    assert fused_groups(function, X, ROWS) == ({}, [2, 2])
    assert fused_groups(function, X, X.astype("f")) == ({}, [2, 2])


def test_float32_is_fused():
    assert fused_groups(lambda x: cnp.exp(-x * x) * 0.5, X.astype("f")) == ({}, [4])


def test_comparisons_and_selections_are_fused():
    def function(x):
        wanted = (x > 0.1) | ~(x > -0.5)
        return [cnp.where(wanted, cnp.sin(x), 0.0) * wanted, wanted]

    assert fused_groups(function, X) == ({}, [7])


def test_a_scalar_may_be_compared_first():
    def function(x, a):
        return cnp.where(cnp.less(a, x), x, a)

    assert fused_groups(function, X, np.array(0.5)) == ({}, [2])


def test_booleans_alone_are_not_fused():
    known = X > 0
    assert fused_groups(lambda x: ~(x | ~x), known) == ({"Invert": 2, "BitwiseOr": 1}, [])


def test_integers_and_other_dtypes_are_not_fused():
    found, sizes = fused_groups(lambda x: [x * x + x], np.arange(70))
    assert (found, sizes) == ({"Multiply": 1, "Add": 1}, [])
    found, sizes = fused_groups(lambda x: [x * x + x], X * 1j)
    assert (found, sizes) == ({"Multiply": 1, "Add": 1}, [])


def test_a_sum_over_everything_ends_a_group():
    assert fused_groups(lambda x: cnp.sum(x * x), X, rtol=1e-15) == ({}, [2])
    assert fused_groups(lambda x: cnp.sum(x * x), ROWS, rtol=1e-15) == ({}, [2])
    assert fused_groups(lambda x: cnp.sum(x * x, keepdims=True), ROWS, rtol=1e-15) == ({}, [2])


@pytest.mark.parametrize(
    "options", [{"axis": 0}, {"axis": 0, "keepdims": True}, {"dtype": "float32"}], ids=str)
def test_other_sums_are_left_alone(options):
    found, sizes = fused_groups(lambda x: cnp.sum(cnp.exp(-x), **options), ROWS)
    assert (found, sizes) == ({"Sum": 1}, [2])


def test_sums_of_sums_and_of_what_is_fed_are_left_alone():
    assert fused_groups(lambda x: cnp.sum(x) + 1.0, X)[0] == {"Sum": 1, "Add": 1}


def test_what_uses_a_sum_is_in_another_group():
    def function(x):
        y = cnp.exp(x)
        return cnp.sin(y / cnp.sum(y))

    assert fused_groups(function, X, rtol=1e-15) == ({}, [2, 2])


def test_no_path_leaves_a_group_and_comes_back():
    def function(x):
        y = cnp.sin(x)
        z = cnp.exp(y)
        return [z, cnp.flip(y) * z]  # the flip is of what the group computes

    assert fused_groups(function, X) == ({"Flip": 1, "Multiply": 1}, [2])


def test_what_is_used_late_is_computed_late():
    def function(x):
        y, early = cnp.sin(x), cnp.exp(x)
        return cnp.flip(y) * early

    assert fused_groups(function, X) == ({"Sin": 1, "Flip": 1}, [2])


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
    assert fast_calls(fused(simplest(subgraph_of(function, X)), 65)) == expected


def test_a_faster_sine_or_cosine_is_worth_an_op_of_its_own():
    after = fused(subgraph_of(with_gradients(lambda x: cnp.sum(cnp.sin(x))), X))
    assert names(after) == {"Sin": 1, "Sum": 1, "BroadcastTo": 1, "Multiply": 1, "Fused": 1}
    small = fused(subgraph_of(with_gradients(lambda x: cnp.sum(cnp.sin(x))), X[:64]))
    assert "Fused" not in names(small)


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
