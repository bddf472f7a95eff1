"""Fused ops compute what their ops compute one by one."""

import threading

import numpy as np
import pytest

from cytape.graph.passes.fused_op import FusedOp
from cytape.ops.engine.declare import OPS
from cytape.tensor.buffer import release_kept
from cytape.tensor.spec import Spec

# Around the numbers of elements of a run worth vectors, of a block in both dtypes, and of several.
SIZES = [1, 2, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1024, 1025, 5000]


def spec_of(array):
    return Spec.of(array.shape, array.dtype)


def made(spec, operands, calls, results):
    calls = [(OPS[name], attrs, inputs, fast) for name, attrs, inputs, fast in calls]
    return FusedOp(spec, [spec_of(x) for x in operands], calls, results)


def call(name, *inputs, fast=False, **attrs):
    return name, attrs, inputs, fast


def check(spec, operands, calls, results, rtol=0.0):
    op = made(spec, operands, calls, results)
    with np.errstate(all="ignore"):
        found, expected = op.forward(*operands), op.report(*operands)
    assert len(found) == len(expected) == len(results)
    for x, y, result_spec in zip(found, expected, op.result_specs, strict=True):
        assert spec_of(x) is result_spec
        assert result_spec is spec_of(np.asarray(y))
        np.testing.assert_allclose(x, y, rtol=rtol, atol=0)
    return op


CHAIN = [
    call("Negative", 0),
    call("Multiply", 2, 0),
    call("Exp", 3),
    call("Sin", 0),
    call("Multiply", 4, 5),
    call("Add", 6, 1),
    call("Tanh", 7),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", SIZES)
def test_chains_agree_to_the_bit(size, dtype):
    x = np.random.default_rng(0).normal(size=size).astype(dtype)
    check(spec_of(x), [x, np.array(0.3, dtype)], CHAIN, [8, 3, 6])


@pytest.mark.parametrize("size", SIZES)
def test_comparisons_and_selections_agree(size):
    x = np.random.default_rng(0).normal(size=size)
    known = x > 1
    calls = [
        call("Greater", 0, 1),
        call("BitwiseOr", 3, 2),
        call("Where", 4, 0, 1),
        call("Multiply", 5, 4),
        call("LogicalNot", 3),
        call("Cast", 7, dtype=x.dtype),
        call("Where", 2, 7, 8),
    ]
    check(spec_of(x), [x, np.array(0.3), known], calls, [3, 4, 5, 6, 7, 8, 9])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [*SIZES, 1_000_003])
def test_sums_are_as_accurate_as_numpys(size, dtype):
    x = np.random.default_rng(0).uniform(size=size).astype(dtype)
    op = made(
        spec_of(x),
        [x],
        [call("Square", 0), call("Sum", 1, axis=None), call("Sum", 0, axis=None)],
        [2, 1, 3],
    )
    total, squares, plain = op.forward(x)
    np.testing.assert_array_equal(squares, x * x)
    exact = np.sum((x * x).astype(np.longdouble))
    eps = np.finfo(dtype).eps
    assert abs(total - exact) <= 4 * eps * exact
    assert abs(plain - np.sum(x.astype(np.longdouble))) <= 4 * eps * size
    assert total.shape == plain.shape == ()


def test_a_sum_of_one_block_is_numpys_to_the_bit():
    x = np.random.default_rng(0).normal(size=300)
    check(spec_of(x), [x], [call("Exp", 0), call("Sum", 1, axis=None)], [2])


@pytest.mark.parametrize(
    "shapes",
    [
        [(4, 80), (80,)],
        [(4, 80), (4, 1)],
        [(4, 80), (4, 1), (80,)],
        [(4, 1), (80,)],
        [(3, 1, 5), (5,)],
        [(2, 3, 4), (3, 1), (2, 1, 1)],
        [(1, 1), (7,)],
        [(2, 1, 600), (2, 3, 1)],
        [(5, 1, 1), (5, 2, 70)],
        [(), (2, 2)],
        [(1, 3, 1, 4), (2, 1, 5, 1)],
    ],
    ids=str,
)
def test_operands_are_broadcast(shapes):
    rng = np.random.default_rng(0)
    operands = [rng.normal(size=shape) for shape in shapes]
    spec = Spec.of(np.broadcast_shapes(*shapes), float)
    calls = [call("Add", 0, 1)]
    for i in range(2, len(shapes)):
        calls.append(call("Multiply", i, len(shapes) + i - 2))
    calls += [call("Less", len(shapes) + len(calls) - 1, 0)]
    last = len(shapes) + len(calls) - 1
    if operands[0].shape != spec.shape:
        calls.pop()
        last -= 1
    calls.append(call("Sum", last if calls[-1][0] != "Less" else last - 1, axis=None))
    check(spec, operands, calls, list(range(len(shapes), len(shapes) + len(calls))), rtol=1e-13)


def test_operands_may_lie_anyhow():
    x = np.arange(1200.0).reshape(30, 40)
    op = made(spec_of(x.T), [x.T], [call("Sqrt", 0), call("Negative", 1)], [2])
    np.testing.assert_array_equal(op.forward(x.T)[0], -np.sqrt(x.T))


def test_many_live_values_have_a_register_each():
    x = np.linspace(0.1, 1, 3000)
    calls = [call("Multiply", i, 0) for i in range(100)]
    calls += [call("Add", 100 + i, 99 - i) for i in range(99)]
    check(spec_of(x), [x], calls, [len(calls), 50])


def test_long_chains_use_registers_again():
    x = np.linspace(0.1, 1, 700)
    calls = [call("Sin" if i % 2 else "Cos", i) for i in range(2000)]
    assert check(spec_of(x), [x], calls, [2000]).n_registers <= 4


def test_sine_and_cosine_may_be_computed_faster():
    x = np.random.default_rng(0).normal(size=1000) * 10
    check(
        spec_of(x), [x], [call("Sin", 0, fast=True), call("Cos", 0, fast=True)], [1, 2], rtol=1e-13
    )


def test_what_nobody_reads_does_no_harm():
    x = np.linspace(0, 1, 600)
    check(spec_of(x), [x, x], [call("Exp", 0), call("Sin", 0), call("Cos", 3)], [4])


@pytest.mark.parametrize(
    ("name", "match"), [("Log", "divide by zero"), ("Sqrt", None), ("Reciprocal", "divide by zero")]
)
def test_warnings_are_numpys(name, match):
    x = np.zeros(100)
    op = made(spec_of(x), [x], [call(name, 0), call("Negative", 1)], [2])
    if match is None:
        op.forward(x)
        return
    with pytest.warns(RuntimeWarning, match=f"{match} encountered in {name.lower()}"):
        op.forward(x)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=match):
        op.forward(x)
    with np.errstate(all="ignore"):
        op.forward(x)


def test_underflow_is_reported_only_where_it_is_asked_for():
    x = np.full(100, -800.0)
    op = made(spec_of(x), [x], [call("Exp", 0), call("Negative", 1)], [2])
    op.forward(x)
    with np.errstate(under="raise"), pytest.raises(FloatingPointError, match="underflow"):
        op.forward(x)


def test_what_cannot_be_fused_is_refused():
    x, whole = np.ones(3), np.arange(3)
    with pytest.raises(ValueError, match="'MatMul' cannot be fused"):
        made(spec_of(x), [x, x], [call("MatMul", 0, 1)], [2])
    with pytest.raises(ValueError, match="cannot be fused"):
        made(spec_of(x), [x, x], [call("LeftShift", 0, 1)], [2])
    with pytest.raises(ValueError, match="'Add' cannot be fused"):
        made(spec_of(x), [x, whole], [call("Add", 0, 1)], [2])
    with pytest.raises(ValueError, match="only ops of float64 or float32"):
        made(spec_of(whole), [whole], [call("Negative", 0)], [1])
    with pytest.raises(ValueError, match="cannot be broadcast"):
        made(spec_of(x), [x, np.ones(4)], [call("Add", 0, 1)], [2])
    with pytest.raises(ValueError, match="boolean operand"):
        made(spec_of(x), [x, np.array(True)], [call("Where", 1, 0, 0)], [2])


def test_numbers_of_values_are_checked():
    x = np.ones(3)
    for inputs in [(1,), (-1,), (7,)]:
        with pytest.raises(ValueError, match="which there is not yet"):
            made(spec_of(x), [x], [call("Negative", *inputs)], [1])
    for results in [[0], [2], [1, 1]]:
        with pytest.raises(ValueError, match="one more output of a call"):
            made(spec_of(x), [x], [call("Negative", 0)], results)


def test_operands_have_to_be_what_the_op_is_made_for():
    x = np.ones(3)
    op = made(spec_of(x), [x], [call("Negative", 0)], [1])
    with pytest.raises(TypeError, match="expected 1 operands, got 2"):
        op.forward(x, x)
    with pytest.raises(ValueError, match="operand 0 should be"):
        op.forward(np.ones(4))
    with pytest.raises(ValueError, match="operand 0 should be"):
        op.forward(x.astype("f"))


def test_the_op_tells_what_it_consists_of():
    x = np.ones(3)
    op = made(spec_of(x), [x], [call("Negative", 0), call("Exp", 1)], [2])
    assert op.name == "Fused"
    assert op.__doc__ == "Elementwise ops fused: Negative, Exp"
    assert op.shape is spec_of(x)
    assert op.operand_specs == op.result_specs == (spec_of(x),)
    assert op.results == (2,)
    assert [c[0].name for c in op.calls] == ["Negative", "Exp"]


def test_nothing_is_kept_between_runs():
    x = np.linspace(-1, 1, 10_000)
    calls = [call("Exp", 0), call("Sin", 0), call("Multiply", 1, 2), call("Sum", 3, axis=None)]
    op = made(spec_of(x), [x], calls, [4])
    release_kept()
    op.forward(x)
    assert release_kept() == 0
    assert op.scratch.nbytes > 2 * 8 * op.block  # brought along by whoever runs it


@pytest.mark.threads
def test_threads_share_an_op():
    x = np.linspace(-1, 1, 100_000)
    op = made(
        spec_of(x), [x], [call("Exp", 0), call("Multiply", 1, 0), call("Sum", 2, axis=None)], [2, 3]
    )
    expected = op.forward(x)
    failures = []

    def work():
        for _ in range(20):
            for a, b in zip(op.forward(x), expected, strict=True):
                if not np.array_equal(a, b):
                    failures.append(a)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
