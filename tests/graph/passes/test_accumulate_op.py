"""Sums whose terms are added to parts: what NumPy gets on arrays with zeros elsewhere."""

import functools
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

from cytape.graph.passes.accumulate_op import AccumulateOp
from cytape.graph.passes.accumulation import accumulated
from cytape.graph.run.plan import Plan
from cytape.ops.engine.op_kinds import OPS
from cytape.tensor.values.spec import Spec
from tests.cases import each
from tests.graph.passes.graphs import subgraph_of


def made(shape, operands, indices, dtype=None):
    dtype = operands[0].dtype if dtype is None else dtype
    return AccumulateOp(
        Spec.of(shape, dtype), [Spec.of(x.shape, x.dtype) for x in operands], indices)


def check(shape, operands, indices):
    op = made(shape, operands, indices)
    expected = np.zeros(shape, operands[0].dtype)
    for x, index in zip(operands, indices, strict=True):
        term = np.zeros_like(expected)
        term[... if index is None else index] = x
        expected = expected + term
    np.testing.assert_array_equal(op.forward(*operands), expected)
    np.testing.assert_array_equal(planned(shape, operands, indices), expected)


def planned(shape, operands, indices):
    """Return the sum as a plan computes it, which adds each term to its part."""

    def total(*tensors):
        return functools.reduce(operator.add, [
            np.broadcast_to(x, shape) if index is None
            else OPS["IndexAdd"](x, index=index, shape=shape)
            for x, index in zip(tensors, indices, strict=True)])

    subgraph = accumulated(subgraph_of(total, *operands))
    return Plan(subgraph).run(operands)[0].numpy()


@each("dtype", ["float64", "float32", "complex128", "float16", "longdouble"])
def test_parts_of_a_vector(dtype):
    x = np.arange(1, 6).astype(dtype)
    check((9,), [x, x, x, x[0]], [slice(0, 5), slice(None, None, 2), slice(8, 3, -1), -1])


def test_a_first_term_that_is_everywhere():
    x = np.linspace(0, 1, 12).reshape(3, 4)
    check((3, 4), [x, x[0], x[:, 0], x], [None, 1, (slice(None), 2), None])


def test_broadcast_terms():
    x = np.linspace(0, 1, 4)
    check((3, 4), [np.array(2.0), x, x[:3, None], x[:1]], [None, None, None, slice(1, 3)])


def test_terms_without_elements():
    check((3, 4), [np.zeros((0, 4)), np.ones((3, 4))], [slice(2, 2), None])
    check((0, 4), [np.zeros((0, 4))], [None])


def test_terms_may_lie_anyhow():
    x = np.linspace(0, 1, 12).reshape(3, 4)
    check((4, 3), [x.T, x.T[::2]], [None, slice(2)])


def test_large_sums():
    x = np.random.default_rng(0).normal(size=50_000)
    check((50_000,), [x[1:], x[:-1], x], [slice(1, None), slice(-1), None])


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_parts(data):
    shape = data.draw(array_shapes(max_dims=4, max_side=4))
    rng = np.random.default_rng(0)
    indices = data.draw(st.lists(basic_indices(shape, allow_newaxis=True), min_size=1, max_size=4))
    # A new axis alone: None is no index to this op.
    indices = [(None,) if index is None else index for index in indices]
    operands = [rng.normal(size=np.ones(shape)[index].shape) for index in indices]
    check(shape, operands, indices)


def test_warnings_are_numpys():
    x = np.full(3, 1e308)
    with pytest.warns(RuntimeWarning, match="overflow encountered in add"):
        planned((3,), [x, x], [None, slice(0, 3)])


def test_terms_have_to_fit():
    with pytest.raises(ValueError, match="cannot be added"):
        made((3,), [np.ones(2)], [None])
    with pytest.raises(ValueError, match="cannot be added"):
        made((3,), [np.ones(3)], [np.array([0, 0, 1])])
    with pytest.raises(ValueError, match="cannot be added"):
        made((3,), [np.ones((2, 3))], [None])
    with pytest.raises(ValueError, match="cannot be added"):
        made((3,), [np.ones(3, "f")], [None], dtype=float)
    with pytest.raises(ValueError, match="cannot be added"):
        made((3,), [np.ones(3, int)], [None])
    with pytest.raises(ValueError, match="cannot be added"):
        made((3,), [np.ones(())], [5])


def test_the_op_tells_what_it_adds():
    op = made((3,), [np.ones(3), np.ones(2)], [None, slice(2)])
    assert op.name == "Accumulate"
    assert op.spec is Spec.of((3,), float)
    assert op.indices == (None, slice(2))
    assert op.operand_specs == (Spec.of((3,), float), Spec.of((2,), float))
    assert op.__doc__ == "Sum of 2 terms, each added to where it belongs."
