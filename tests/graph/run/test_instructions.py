"""The loops that plans have of their own: to the bit what NumPy computes."""

import numpy as np
import pytest

import cytape.numpy as ops
from cytape.graph.model.graph import Graph
from tests.cases import each
from tests.graph.plans import plan_of

ODD = [0.0, -0.0, 1.0, -1.5, 1e-310, -1e308, 1e308, np.inf, -np.inf, np.nan, 0.1, 3.0, 7.0]
SIZES = [(), (1,), (2,), (7,), (8,), (64,), (65,), (200,)]


def drawn(seed, shape, dtype):
    with np.errstate(all="ignore"):
        return np.random.default_rng(seed).choice(np.array(ODD, dtype), shape)


def same_bits(result, expected):
    result, expected = result.numpy(), np.asarray(expected)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), nan)
    assert result[~nan].tobytes() == expected[~nan].tobytes()


@each(dtype=["float64", "float32"], shape=SIZES, scalar=[None, 0, 1])
@each("name", ["add", "subtract", "multiply", "divide"])
def test_arithmetic(name, scalar, shape, dtype):
    shapes = [() if position == scalar else shape for position in range(2)]
    graph = Graph()
    inputs = [graph.placeholder(dtype, shape) for shape in shapes]
    arrays = [drawn(i, shape, dtype) for i, shape in enumerate(shapes)]
    with np.errstate(all="ignore"):
        result = plan_of(graph, inputs, [getattr(ops, name)(*inputs)]).run(arrays)
        same_bits(result[0], getattr(np, name)(*arrays))


@each(dtype=["float64", "float32"], shape=SIZES, name=["negative", "square"])
def test_functions_of_one_operand(name, shape, dtype):
    graph = Graph()
    x = graph.placeholder(dtype, shape)
    array = drawn(0, shape, dtype)
    with np.errstate(all="ignore"):
        same_bits(plan_of(graph, [x], [getattr(ops, name)(x)]).run([array])[0],
                  getattr(np, name)(array))


INTEGERS = [0, 1, -1, 3, -7, 2**31 - 1, -2**63, 2**63 - 1]


@each(shape=[(), (7,), (3, 4)], dtype=["int64", "int32", "uint8"], name=[
    "add", "subtract", "multiply", "less", "less_equal", "greater", "greater_equal", "equal",
    "not_equal", "maximum", "bitwise_and", "floor_divide", "remainder"])
def test_integers(name, dtype, shape):
    rng = np.random.default_rng(0)
    graph = Graph()
    inputs = [graph.placeholder(dtype, s) for s in (shape, ())]
    plan = plan_of(graph, inputs, [getattr(ops, name)(*inputs)])
    assert plan.n_calls == 0
    for _ in range(20):
        arrays = [rng.choice(np.array(INTEGERS).astype(dtype), s) for s in (shape, ())]
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(plan.run(arrays)[0], getattr(np, name)(*arrays))


def test_powers_of_integers_may_raise():
    graph = Graph()
    inputs = [graph.placeholder("int64", ()) for _ in range(2)]
    plan = plan_of(graph, inputs, [ops.power(*inputs)])
    assert plan.n_calls == 1
    assert plan.run([np.array(3), np.array(4)])[0].item() == 81
    with pytest.raises(ValueError, match="negative"):
        plan.run([np.array(3), np.array(-4)])


def test_integers_report_division_by_zero():
    graph = Graph()
    x = graph.placeholder("int64", (3,))
    plan = plan_of(graph, [x], [7 // x])
    assert plan.n_calls == 0
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in floor_divide"):
        assert plan.run([np.array([2, 0, 1])])[0].tolist() == [3, 0, 7]


@each("types", [
    ("float64", "float64"), ("float32", "float32"), ("int64", "float64"), ("bool", "int64"),
    ("int32", "int64"), ("float32", "float64"), ("bool", "bool")])
@each("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
def test_comparisons(name, types):
    graph = Graph()
    inputs = [graph.placeholder(dtype, ()) for dtype in types]
    plan = plan_of(graph, inputs, [getattr(ops, name)(*inputs)])
    assert plan.n_calls == 0
    values = [[x for x in ODD if np.dtype(dtype).kind == "f" or np.isfinite(x) and abs(x) < 9]
              for dtype in types]
    with np.errstate(all="raise"):  # a NaN is nothing to report
        for x in values[0]:
            for y in values[1]:
                with np.errstate(all="ignore"):
                    arrays = [np.array(x).astype(types[0]), np.array(y).astype(types[1])]
                assert plan.run(arrays)[0].item() == getattr(np, name)(*arrays)


def test_signed_and_unsigned_integers_are_compared_as_numpy_does():
    graph = Graph()
    inputs = [graph.placeholder("int64", ()), graph.placeholder("uint64", ())]
    plan = plan_of(graph, inputs, [inputs[0] < inputs[1]])
    assert plan.run([np.array(-1), np.array(2**63, "uint64")])[0].item() is True


@each("name", ["logical_and", "logical_or", "logical_xor", "logical_not"])
@each("dtype", ["bool", "int64", "float64"])
def test_logic(name, dtype):
    graph = Graph()
    n = getattr(np, name).nin
    inputs = [graph.placeholder(dtype, (4,)) for _ in range(n)]
    arrays = [np.array([0, 1, 0, 1]).astype(dtype), np.array([0, 0, 1, 1]).astype(dtype)][:n]
    plan = plan_of(graph, inputs, [getattr(ops, name)(*inputs)])
    assert plan.n_calls == 0
    np.testing.assert_array_equal(plan.run(arrays)[0], getattr(np, name)(*arrays))


@each("to", ["float64", "float32", "int64", "int32", "bool"])
@each("dtype", ["bool", "int32", "int64", "float64", "float32"])
@each("view", [np.s_[...], np.s_[::-1], np.s_[::2, 1:]])
def test_conversions(view, dtype, to):
    graph = Graph()
    x = graph.placeholder(dtype, (6, 5))
    array = np.random.default_rng(0).integers(-3, 3, (6, 5)).astype(dtype)
    plan = plan_of(graph, [x], [x[view].astype(to)])
    assert plan.n_calls == 0
    same_bits(plan.run([array])[0], array[view].astype(to))


@each("dtype", ["float64", "float32", "int64"])
@each("shapes", [[(), (), ()], [(7,), (7,), (7,)], [(7,), (), (7,)],
                                    [(3, 1), (4,), (3, 4)], [(0,), (0,), ()]])
def test_selection(shapes, dtype):
    graph = Graph()
    inputs = [graph.placeholder(t, shape)
              for t, shape in zip(["bool", dtype, dtype], shapes, strict=True)]
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-1, 1, x.shape).astype(x.dtype) for x in inputs]
    plan = plan_of(graph, inputs, [ops.where(*inputs)])
    assert plan.n_calls == 0
    np.testing.assert_array_equal(plan.run(arrays)[0].numpy(), np.where(*arrays))
