"""Groups of elementwise ops: what is fused, and what is not."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.graph.passes.fusion import fused
from tests.cases import each
from tests.graph.passes.graphs import fused_groups, names, simplest, subgraph_of, with_gradients

X = np.linspace(-1, 1, 70)
ROWS = np.linspace(-1, 1, 210).reshape(3, 70)


def exp_of_sines(x, y):
    return [cnp.exp(cnp.sin(x)), cnp.exp(cnp.sin(y))]


def broadcast(x, a):
    return cnp.sin(x) * cnp.broadcast_to(a, x.shape)


def selected(x):
    wanted = (x > 0.1) | ~(x > -0.5)
    return [cnp.where(wanted, cnp.sin(x), 0.0) * wanted, wanted]


def flipped(x):
    y = cnp.sin(x)
    z = cnp.exp(y)
    return [z, cnp.flip(y) * z]  # the flip is of what the group computes


def normalised(x):
    y = cnp.exp(x)
    return cnp.sin(y / cnp.sum(y))


HALF, COLUMN = np.array(0.5), np.array([[1.0], [2.0], [3.0]])
# A function, arrays, and the ops that remain and sizes of the groups that are found.
FOUND = {
    "a chain is one op": (lambda x: cnp.exp(-x * x) * 0.5, [X], {}, [4]),
    "of float32 too": (lambda x: cnp.exp(-x * x) * 0.5, [X.astype("f")], {}, [4]),
    "branches that meet are one": (
        lambda x: cnp.sin(x) * cnp.exp(x) + cnp.tanh(x), [X], {}, [5]),
    "what reads the same is": (lambda x: [cnp.sin(x), cnp.exp(x)], [X], {}, [2]),
    "what has nothing in common is not": (
        lambda x, y: [cnp.sin(x), cnp.exp(y)], [X, X], {"Sin": 1, "Exp": 1}, []),
    "small tensors are left alone": (
        lambda x: cnp.exp(-x), [X[:64]], {"Negative": 1, "Exp": 1}, []),
    "larger ones are not": (lambda x: cnp.exp(-x), [X[:65]], {}, [2]),
    "single ops are": (cnp.exp, [X], {"Exp": 1}, []),
    "scalars are operands, their ops not in a group": (
        lambda x, a: x * cnp.sin(a) + a, [X, HALF], {"Sin": 1}, [2]),
    "broadcast scalars are read where they are": (broadcast, [X, HALF], {}, [2]),
    "rows and columns are operands": (
        lambda x, row, c: cnp.tanh(x + row) * c, [ROWS, X, COLUMN], {}, [3]),
    "rows too short to be worth it are not": (
        lambda x, row: cnp.tanh(x + row), [np.ones((70, 3)), np.arange(3.0)],
        {"Add": 1, "Tanh": 1}, []),
    "shapes are groups of their own": (exp_of_sines, [X, ROWS], {}, [2, 2]),
    "dtypes are": (exp_of_sines, [X, X.astype("f")], {}, [2, 2]),
    "comparisons and selections are fused": (selected, [X], {}, [7]),
    "a scalar may be compared first": (
        lambda x, a: cnp.where(cnp.less(a, x), x, a), [X, HALF], {}, [2]),
    "booleans alone are not fused": (
        lambda known: ~(known | ~known), [X > 0], {"Invert": 2, "BitwiseOr": 1}, []),
    "integers are not": (
        lambda x: [x * x + x], [np.arange(70)], {"Multiply": 1, "Add": 1}, []),
    "complex numbers are not": (lambda x: [x * x + x], [X * 1j], {"Multiply": 1, "Add": 1}, []),
    "a sum over everything ends a group": (lambda x: cnp.sum(x * x), [X], {}, [2]),
    "a sum of rows does": (lambda x: cnp.sum(x * x), [ROWS], {}, [2]),
    "a sum that keeps axes does": (lambda x: cnp.sum(x * x, keepdims=True), [ROWS], {}, [2]),
    **{f"sums of {options} are left alone": (
        lambda x, options=options: cnp.sum(cnp.exp(-x), **options), [ROWS], {"Sum": 1}, [2])
       for options in ({"axis": 0}, {"axis": 0, "keepdims": True}, {"dtype": "float32"})},
    "what uses a sum is in another group": (normalised, [X], {}, [2, 2]),
    "no path leaves a group and comes back": (flipped, [X], {"Flip": 1, "Multiply": 1}, [2]),
    "what is used late is computed late": (
        lambda x: cnp.flip(cnp.sin(x)) * cnp.exp(x), [X], {"Sin": 1, "Flip": 1}, [2]),
}


@each("name", FOUND)
def test_groups_that_become_one_op(name):
    function, arrays, counts, sizes = FOUND[name]
    assert fused_groups(function, *arrays, rtol=1e-15) == (counts, sizes)


def test_the_least_size_of_a_group_may_be_given():
    assert fused_groups(lambda x: cnp.exp(-x), X[:5], least=5) == ({}, [2])


@each("dtype", "?bBhHiIlLqQefdgFDG")
def test_comparisons_of_any_dtype(dtype):
    x = np.arange(70).astype(dtype)
    chain = fused_groups(lambda x: (x > 0) & (x < 5), x)
    selection = fused_groups(lambda x, y: cnp.where((x > 0) & (x < 5), y, 0.0), x, X)
    # Values of a group are booleans, float32 or float64.
    assert chain[1] == ([3] if dtype in "fd" else [])
    assert sum(selection[0].values()) + sum(selection[1]) == 4


@each("dtype", ["int64", "uint8", "float16", "longdouble", "complex64"])
def test_functions_that_compare_what_is_not_fused(dtype):
    x, labels = cytape.constant(np.ones(5000)), cytape.constant(np.ones(5000, dtype))
    f = cytape.function(lambda x, n: cnp.where((n > 0) & (n < 5), x, 0.0).sum())
    for _ in range(3):
        with cytape.GradientTape() as tape:
            tape.watch(x)
            y = f(x, labels)
        assert float(y) == 5000.0
        assert tape.gradient(y, x).numpy().tolist() == [1.0] * 5000


@each("function", [lambda x: cnp.maximum(x, 2.0), lambda x: cnp.clip(x, -1.0, 2.0), cnp.abs])
def test_gradients_of_half_precision_that_compare(function):
    x = cytape.constant(np.linspace(-5, 5, 5000).astype("float16"))
    expected = cytape.grad(lambda x: cnp.sum(function(x)))(x)
    f = cytape.function(cytape.grad(lambda x: cnp.sum(function(x))))
    for _ in range(3):
        np.testing.assert_array_equal(f(x), expected)


def test_sums_of_sums_and_of_what_is_fed_are_left_alone():
    assert fused_groups(lambda x: cnp.sum(x) + 1.0, X)[0] == {"Sum": 1, "Add": 1}


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


@each(("function", "expected"), [
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


@each("size", [64, 65, 500, 5000])
def test_results_of_programs_are_those_of_numpy_to_the_bit(size):
    x = np.linspace(-100, 100, size)
    expected = np.sin(x) + np.cos(x)
    f = cytape.function(both)
    with cytape.Graph().as_default() as graph:
        fed = cytape.placeholder("float64", x.shape)
        y = both(fed)
        gradient = cytape.gradients(cnp.sum(y * y), fed)
    session = cytape.Session(graph)
    for _ in range(3):  # traced, optimised, and run again
        np.testing.assert_array_equal(f(x), expected)
        np.testing.assert_array_equal(session.run(y, {fed: x}), expected)
        found, _ = session.run([y, gradient], {fed: x})
        np.testing.assert_array_equal(found, expected)
