"""The loop that selects: bits are moved, not numbers, and every stride is a way of its own."""

import itertools

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.tensor.tensor import tensor_of
from tests.cases import each, sampled
from tests.ways import gradients

SIZES = [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 100, 1001, 9000]
WAYS = {
    "whole": lambda x: x, "every other": lambda x: np.repeat(x, 2)[::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape), "a number": lambda x: x[0]}


def arrays(n, dtype):
    rng = np.random.default_rng(n)
    x, y = (rng.normal(size=n).astype(dtype) for _ in range(2))
    return rng.integers(0, 2, n).astype(bool), x, y


@sampled(4, dtype=["float16", "float32", "float64", "complex64", "complex128", "longdouble"],
         n=SIZES)
def test_all_strides(n, dtype):
    c, x, y = arrays(n, dtype)
    for ways in itertools.product(WAYS.values(), repeat=3):
        a, b, d = (np.asarray(way(array)) for way, array in zip(ways, (c, x, y), strict=True))
        found = cnp.where(tensor_of(a), tensor_of(b), tensor_of(d))
        np.testing.assert_array_equal(found.numpy(), np.where(a, b, d))


@each("n", [4, 40, 9000])
@each("dtype, bits", [("float64", "uint64"), ("float32", "uint32")])
def test_every_bit_is_as_it_was(n, dtype, bits):
    """Signs of zeros, and what NaNs carry; a signalling one is not an operation."""
    special = np.array([0x7FF0000000000001, 0xFFF8000000000123, 1 << 63, 1], "uint64")
    if bits == "uint32":
        special = np.array([0x7F800001, 0xFFC00123, 1 << 31, 1], "uint32")
    x = np.resize(special, n).view(dtype)
    c = np.random.default_rng(0).random(n) < 0.5
    with np.errstate(all="raise"):
        for operands in [(x, np.zeros(n, dtype)), (np.zeros(n, dtype), x)]:
            found = cnp.where(c, *map(tensor_of, operands)).numpy()
            expected = np.where(c, *(operand.view(bits) for operand in operands))
            np.testing.assert_array_equal(found.view(bits), expected)


@each("dtype", ["float64", "float32", "float16", "complex128", "int8", "int16", "int64", "bool"])
def test_in_plans_for_elements_of_every_size(dtype):
    c, x, y = np.random.default_rng(0).integers(0, 2, (3, 6, 4)).astype(bool)
    x, y = x.astype(dtype), y.astype(dtype)
    function = cytape.function(
        lambda c, x, y: [cnp.where(c, x, y[:1]), cnp.where(c.T[:, ::2], x.T[:, ::2], y[0, 0])])
    for _ in range(3):
        found = function(cytape.constant(c), cytape.constant(x), cytape.constant(y))
        np.testing.assert_array_equal(found[0].numpy(), np.where(c, x, y[:1]))
        np.testing.assert_array_equal(found[1].numpy(), np.where(c.T[:, ::2], x.T[:, ::2], y[0, 0]))
        assert all(tensor.dtype == dtype for tensor in found)


@each("n", [8, 100, 5000])
def test_in_programs(n):
    """The derivative of maximum selects, in registers."""
    x, y = (cytape.constant(array) for array in arrays(n, "float64")[1:])
    by_x, by_y = gradients(cnp.maximum, x, y)
    np.testing.assert_array_equal(by_x.numpy(), x.numpy() > y.numpy())
    np.testing.assert_array_equal(by_y.numpy(), x.numpy() <= y.numpy())
