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


@each("dtype", ["float64", "float32"])
@each("shape", SIZES)
@each("scalar", [None, 0, 1])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_arithmetic(name, scalar, shape, dtype):
    shapes = [() if position == scalar else shape for position in range(2)]
    graph = Graph()
    inputs = [graph.placeholder(dtype, shape) for shape in shapes]
    arrays = [drawn(i, shape, dtype) for i, shape in enumerate(shapes)]
    with np.errstate(all="ignore"):
        result = plan_of(graph, inputs, [getattr(ops, name)(*inputs)]).run(arrays)
        same_bits(result[0], getattr(np, name)(*arrays))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("name", ["negative", "square"])
def test_functions_of_one_operand(name, shape, dtype):
    graph = Graph()
    x = graph.placeholder(dtype, shape)
    array = drawn(0, shape, dtype)
    with np.errstate(all="ignore"):
        same_bits(plan_of(graph, [x], [getattr(ops, name)(x)]).run([array])[0],
                  getattr(np, name)(array))


@pytest.mark.parametrize("to", ["float64", "float32"])
@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float64", "float32"])
@pytest.mark.parametrize("view", [np.s_[...], np.s_[::-1], np.s_[::2, 1:]])
def test_conversions(view, dtype, to):
    graph = Graph()
    x = graph.placeholder(dtype, (6, 5))
    array = np.random.default_rng(0).integers(-3, 3, (6, 5)).astype(dtype)
    plan = plan_of(graph, [x], [x[view].astype(to)])
    assert plan.n_calls == 0
    same_bits(plan.run([array])[0], array[view].astype(to))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("shapes", [[(), (), ()], [(7,), (7,), (7,)], [(7,), (), (7,)],
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
