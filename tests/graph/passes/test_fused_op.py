"""Fused ops compute what their ops compute one by one."""

import numpy as np
import pytest

from tests.cases import each
from tests.graph.passes.fused import SIZES, call, check, made, spec_of

CHAIN = [
    call("Negative", 0), call("Multiply", 2, 0), call("Exp", 3), call("Sin", 0),
    call("Multiply", 4, 5), call("Add", 6, 1), call("Tanh", 7),
]


@each(dtype=["float64", "float32"], size=SIZES)
def test_chains_agree_to_the_bit(size, dtype):
    x = np.random.default_rng(0).normal(size=size).astype(dtype)
    check(spec_of(x), [x, np.array(0.3, dtype)], CHAIN, [8, 3, 6])


@each("size", SIZES)
def test_comparisons_and_selections_agree(size):
    x = np.random.default_rng(0).normal(size=size)
    known = x > 1
    calls = [
        call("Greater", 0, 1), call("BitwiseOr", 3, 2), call("Where", 4, 0, 1),
        call("Multiply", 5, 4), call("LogicalNot", 3), call("Cast", 7, dtype=x.dtype),
        call("Where", 2, 7, 8),
    ]
    check(spec_of(x), [x, np.array(0.3), known], calls, [3, 4, 5, 6, 7, 8, 9])


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
        spec_of(x), [x], [call("Sin", 0, fast=True), call("Cos", 0, fast=True)], [1, 2], rtol=1e-13)


def test_unread_values_do_no_harm():
    x = np.linspace(0, 1, 600)
    check(spec_of(x), [x, x], [call("Exp", 0), call("Sin", 0), call("Cos", 3)], [4])


@each(
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


def test_ops_that_cannot_be_fused_are_refused():
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
    with pytest.raises(ValueError, match="an operand that is summed"):
        made(spec_of(x), [x[:1]], [call("Sum", 0)], [1])


def test_numbers_of_values_are_checked():
    x = np.ones(3)
    for inputs in [(1,), (-1,), (7,)]:
        with pytest.raises(ValueError, match="which there is not yet"):
            made(spec_of(x), [x], [call("Negative", *inputs)], [1])
    for results in [[0], [2], [1, 1]]:
        with pytest.raises(ValueError, match="one more output of a call"):
            made(spec_of(x), [x], [call("Negative", 0)], results)


def test_operands_must_have_the_specs_of_the_op():
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
