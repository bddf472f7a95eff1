"""The ops that plans run without Python, and the calls of them that they leave to it."""

import random

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.model.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes.fusion import fused
from cytape.graph.run.plan import Plan
from cytape.ops.engine.op_kinds import OPS
from tests.cases import each
from tests.graph.plans import assert_as_reference, symbols
from tests.graph.programs import new_graph


def stack(x):
    return np.stack([x * i for i in range(1, 6)])


IN_C = {
    "stop_gradient": lambda x: cytape.stop_gradient(x.T) * 2.0,
    "identities": lambda x: np.multiply(*cytape.identity_n(x, x.T[::-1].T)),
    "reshape": lambda x: x.reshape(4, 3) * 1.0,
    "reshape of a transpose": lambda x: x.T.reshape(2, 6),
    "squeeze": lambda x: np.squeeze(x[:1]),
    "expand_dims": lambda x: np.expand_dims(x, 1) + x,
    "transpose": lambda x: x.T @ x,
    "transpose by axes": lambda x: np.transpose(x[None], (2, 0, -2)) * 2.0,
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 3, 4)) * x,
    "product with a broadcast": lambda x: np.broadcast_to(x[0], (3, 4)) @ x.T,
    "product with a reversed one": lambda x: x[::-1] @ x[:, ::-1].T,
    "product with a vector": lambda x: x[:, 1] @ x,
    "product of a matrix and a strided vector": lambda x: x @ x[1, ::-1],
    "product of vectors": lambda x: x[0] @ x[1],
    "outer product": lambda x: x[:, 1:2] @ x[2:, ::-1],
    "outer product of repeated ones": lambda x: np.broadcast_to(x[:1, :1], (9, 1)) @ x[:1],
    "a column and a number": lambda x: x[:, 2:3] @ x[0, :1],
    "a number and a row": lambda x: x[1, 1:2] @ x[:1],
    "one matrix in a stack": lambda x: x[None] @ x.T[None],
    "stacks": lambda x: stack(x) @ stack(x.T),
    "stacks of stacks": lambda x: stack(stack(x)) @ stack(stack(x.T)),
    "stacks in another order": lambda x: (
        np.swapaxes(stack(stack(x)), 0, 1) @ np.swapaxes(stack(stack(x)), -1, -2)),
    "a stack and a matrix": lambda x: stack(x) @ x.T,
    "a matrix and a stack": lambda x: x.T @ stack(x)[:, ::-1],
    "a stack and a vector": lambda x: stack(x) @ x[0],
    "a vector and a stack": lambda x: x[:, 0] @ stack(x),
    "a stack of outer products": lambda x: stack(x)[:, :, 1:2] @ stack(x)[:, 1:2],
    "a repeated stack": lambda x: np.broadcast_to(x, (5, 3, 4)) @ stack(x.T),
    "parts": lambda x: x[1:, ::-2] + x[0, 1],
    "part of a part": lambda x: x[::2][..., 1][::-1] * 1.0,
    "sum": lambda x: np.sum(x.T, axis=0) + np.sum(x),
    "sum of several axes": lambda x: np.sum(x[None] * x, axis=(0, -1), keepdims=True),
    "mean": lambda x: np.mean(x, axis=-1),
    "max": lambda x: np.max(x, axis=0) - np.min(x.T, axis=0, keepdims=True)[..., :1],
    "max of all": lambda x: np.max(x),
    "cast": lambda x: (x > 0).astype("float64") + x.astype("float32"),
    "mixed": lambda x: x * (x > 0) + (x > 0) * x[0],
    "logic": lambda x: (x > 0) & ~(x > 1) | (x != x),
    "comparison of two dtypes": lambda x: x.astype("float32") < x,
    "three operands": lambda x: cnp.clip(x, -1.0, 0.5),
    "three operands that are broadcast": lambda x: cnp.clip(x[::-1, ::2], x[1, 1:3], x[:, :1]),
    "three operands and nothing": lambda x: cnp.clip(x[:0], x[0], 1.0),
    "empty": lambda x: np.sum(x[:0], axis=0) + x[0],
    "three operands of two dtypes": lambda x: cnp.clip(x, x[0].astype("float32"), 2.0),
}
BY_CALLS = {
    "sum of integers": lambda x: np.sum(x > 0),
    "arrays apart in an index": lambda x: x[np.array([0, 2]), None, np.array([1, 1])],
    "empty product": lambda x: x[:, :0] @ x[:0],
    "mean in another dtype": lambda x: np.mean(x, dtype="float32"),
    "stacks that broadcast against each other": lambda x: stack(x)[:, None] @ stack(x.T)[None],
}


@pytest.mark.parametrize("n_calls, function", [
    *[pytest.param(0, function, id=name) for name, function in IN_C.items()],
    *[pytest.param(1, function, id=name) for name, function in BY_CALLS.items()],
])
@pytest.mark.parametrize("scale", [1, 20])
def test_ops(n_calls, function, scale):
    graph, x = new_graph((3, 4))
    array = np.random.default_rng(0).normal(size=(3, 4)) * scale
    plan = assert_as_reference(graph, [x], [function(x)], [array])
    assert plan.n_calls == n_calls


def test_large_products_of_all_layouts():
    graph = Graph()
    x = graph.placeholder("float32", (70, 80))
    y = graph.placeholder("float32", (80, 70))
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-3, 3, shape).astype(np.float32) for shape in [(70, 80), (80, 70)]]
    fetches = [x @ y, y.T @ x.T, x[::2] @ y[:, ::3], x @ x.T, x[:, ::2] @ y[::2],
               x.T @ y.T[:, ::-1]]
    plan = assert_as_reference(graph, [x, y], fetches, arrays)
    assert plan.n_calls == 0


def test_complex_and_half_precision():
    for dtype in ("complex128", "complex64", "float16"):
        graph = Graph()
        x = graph.placeholder(dtype, (5, 3))
        array = np.random.default_rng(0).integers(-2, 3, (5, 3)).astype(dtype)
        fetches = [np.sum(x * x[0], axis=0), x.T + 1.0, np.sin(x[::-1]), OPS["ComplexSign"](x, x)]
        plan = assert_as_reference(graph, [x], fetches, [array])
        assert plan.n_calls == 0


@each("x, y", [
    (np.array([b"aaaa", b"bb"]), np.array([b"cccccccc", b"d"])),
    (np.array([1, 2], "M8[D]"), np.array([1, 2], "M8[s]")),
])
def test_selections_among_items_of_different_dtypes(x, y):
    condition = np.array([True, False])
    function = cytape.function(np.where)
    for _ in range(2):
        result = function(*map(cytape.constant, (condition, x, y))).numpy()
        np.testing.assert_array_equal(result, np.where(condition, x, y))


# ---- groups of elementwise ops

def group(rng, values, n_calls):
    """Append what random elementwise ops make of arrays of one shape."""
    for _ in range(n_calls):
        x, y, z = rng.choice(values), rng.choice(values), rng.choice(values)
        values.append(rng.choice([
            lambda x, y, z: x + y, lambda x, y, z: x * y, lambda x, y, z: cnp.tanh(x),
            lambda x, y, z: cnp.sin(x), lambda x, y, z: cnp.where(x < y, z, x),
            lambda x, y, z: x - 0.5, lambda x, y, z: (x < y) * z])(x, y, z))


def test_groups_may_overwrite_operands_without_other_readers():
    rng, saved = random.Random(0), 0
    identity = np.eye(70)
    for _ in range(60):
        graph = Graph()
        feeds = [graph.placeholder("float64", (20, 70)) for _ in range(2)]
        values = [x @ identity for x in feeds]
        group(rng, values, rng.randint(2, 12))
        fetches = [x @ identity for x in rng.sample(values[2:], min(3, len(values) - 2))]
        arrays = [np.random.RandomState(i).standard_normal((20, 70)) for i in range(2)]
        before = Subgraph(graph, symbols(graph, feeds), symbols(graph, fetches))
        expected = Plan(before).run(arrays)
        plan = Plan(fused(before, 65))
        for _ in range(2):
            for result, other in zip(plan.run(arrays), expected, strict=True):
                assert np.array_equal(result, other)
        saved += plan.peak_bytes <= Plan(before).peak_bytes + 20_000
    assert saved > 50


def test_a_group_takes_no_memory_but_that_of_its_operand():
    graph, x = new_graph((100, 1000))
    z = cnp.tanh(x @ np.eye(1000)) * 2.0 + 1.0
    subgraph = Subgraph(graph, symbols(graph, [x]), symbols(graph, [cnp.sum(z @ np.ones(1000))]))
    for one in (subgraph, fused(subgraph)):
        assert 800_000 <= Plan(one).peak_bytes < 850_000


# Strided operands whose rows are longer than a block, and one whose rows are not.
STRIDED = {
    "reversed": lambda x: x[:, ::-1], "rows reversed": lambda x: x[::-1],
    "columns": lambda x: x[:, 5:2005], "every other": lambda x: x[:, ::2],
    "every other row": lambda x: x[::2], "transposed": lambda x: x.T,
    "stack transposed": lambda x: np.transpose(x.reshape(3, 5, 800), (1, 0, 2)),
    "broadcast": lambda x: np.broadcast_to(x[1:2, ::-1], (3, 4000)),
    "one reversed row of several": lambda x: x[1, ::-1] + 0.0 * x,
}
READ_BY = {
    "chain": lambda v: np.exp(v) * v + 1.0,
    "sum": lambda v: np.sum(v * v) + np.sum(v),
    "sine": lambda v: np.sin(v) * np.cos(v),
    "where": lambda v: np.where(v > 0.1, v, -v * 2.0),
    "comparison": lambda v: (v < 0.3) * (v + 1.0),
    "contiguous besides": lambda v: v * (v + np.arange(float(v.shape[-1])).astype(v.dtype)),
}


@each(dtype=["float64", "float32"], reader=READ_BY, view=STRIDED)
def test_groups_read_strided_operands(view, reader, dtype):
    def f(x):
        return READ_BY[reader](STRIDED[view](x))

    x = np.random.default_rng(0).standard_normal((3, 4000)).astype(dtype)
    traced, expected = cytape.function(f), f(cytape.constant(x)).numpy()
    for _ in range(3):
        # NumPy's loops may round strided operands otherwise than contiguous ones.
        np.testing.assert_allclose(
            traced(cytape.constant(x)).numpy(), expected, rtol=100 * np.finfo(dtype).eps)


@each("view", ["reversed", "rows reversed", "every other", "broadcast"])
def test_groups_copy_strided_operands_block_by_block(view):
    graph, x = new_graph((3, 4000))
    total = np.sum(np.exp(STRIDED[view](x)) * 2.0)
    subgraph = Subgraph(graph, symbols(graph, [x]), symbols(graph, [total]))
    assert Plan(fused(subgraph)).peak_bytes < 3 * 8 * 4000


@each("dtype", ["complex64", "complex128", "float32", "float64"])
@each("turn", [lambda x: x, lambda x: x[::-1, ::2], lambda x: x.T])
def test_parts_of_numbers_need_no_python(dtype, turn):
    array = np.linspace(1, 2, 12).reshape(3, 4).astype(dtype)
    if array.dtype.kind == "c":
        array *= 1 + 2j
    graph = Graph()
    x = graph.placeholder(dtype, (3, 4))
    y = turn(x)
    results = [np.real(y), np.imag(y), np.real(y) * np.imag(y)]
    plan = assert_as_reference(graph, [x], results, [array])
    assert plan.n_calls == 0


@each("of", ["bool", "int32", "int64", "float32", "float64", "complex64"])
@each("to", ["complex64", "complex128"])
def test_casts_to_complex_numbers_need_no_python(of, to):
    array = np.array([0, 1, 3, 1]).astype(of)
    graph = Graph()
    x = graph.placeholder(of, (4,))
    z = graph.placeholder(to, (4,))
    results = [x.astype(to), x * z] if np.result_type(of, to) == to else [x.astype(to)]
    plan = assert_as_reference(graph, [x, z], results, [array, np.full(4, 2 - 1j, to)])
    assert plan.n_calls == 0


def test_complex_numbers_made_real_are_left_to_numpy():
    graph = Graph()
    x = graph.placeholder("complex128", (4,))
    with pytest.warns(np.exceptions.ComplexWarning):
        assert assert_as_reference(graph, [x], [x.astype(float)], [np.ones(4, complex)]).n_calls


@each("dtype", ["bool", "int32", "float16", "float64", "complex128"])
@each("shape", [(), (3, 4), (40, 50), (0, 3)])
def test_zeros_and_ones_like_something(dtype, shape):
    graph = Graph()
    x = graph.placeholder(dtype, shape)
    results = [np.zeros_like(x), np.ones_like(x), np.ones_like(x, "float32").T[..., None] + 1.0]
    plan = assert_as_reference(graph, [x], results, [np.ones(shape, dtype)])
    assert plan.n_calls == 0
