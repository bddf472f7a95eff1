"""Sums in memory: of gradients that meet, and of gradients over the axes that were broadcast."""

import itertools
from functools import partial

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.tensor.tensor import tensor_of
from tests import ways
from tests.cases import each

FLOATS = ["float16", "float32", "float64", "longdouble", "complex64", "complex128"]
SIZES = [1, 8, 9, 33, 512, 513, 2048, 2049, 8192, 8193, 20_000]


def whole_numbers(shape, dtype="float64", seed=0):
    """Small ones, whose sums are exact in every dtype."""
    return np.asarray(np.random.default_rng(seed).integers(-2, 3, shape)).astype(dtype)


def unaligned(x):
    return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)


LAYOUTS = {
    "contiguous": lambda x: x, "fortran": np.asfortranarray,
    "backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "every other": lambda x: np.repeat(x, 2, axis=0)[::2], "unaligned": unaligned}


# -- over broadcast axes ---------------------------------------------------------------------------


@each("dtype", FLOATS)
@each("shape, short", [
    (shape, short)
    for shape in [(5,), (4, 3), (2, 3, 4), (30, 40), (3, 50, 7), (90, 110), (2, 0)]
    for n in range(len(shape) + 1)
    for kept in itertools.product([False, True], repeat=n)
    for short in [tuple(k if keep else 1 for k, keep in zip(shape[len(shape) - n:], kept,
                                        strict=True))]
])
def test_gradients_of_broadcast_operands_are_summed(shape, short, dtype):
    seed = whole_numbers(shape, dtype)
    lead = len(shape) - len(short)
    axes = (*range(lead), *(lead + i for i, n in enumerate(short) if n == 1))
    expected = np.add.reduce(seed, axis=axes, keepdims=True).reshape(short)
    x, y = cytape.constant(np.ones(shape, dtype)), cytape.constant(np.ones(short, dtype))
    for function in (cnp.add, cnp.multiply, lambda x, y: y * x):
        gradient = ways.gradient(partial(function, x), y, output_gradients=seed)
        assert gradient.spec is y.spec
        np.testing.assert_array_equal(gradient.numpy(), expected)


@each(layout=LAYOUTS, short=[(), (1,), (40,), (1, 40), (30, 1), (1, 1)])
def test_terms_of_any_layout(short, layout):
    seed = tensor_of(LAYOUTS[layout](whole_numbers((30, 40))))
    x, y = cytape.constant(np.ones((30, 40))), cytape.constant(np.full(short, 2.0))
    by_x, by_y = ways.gradients(lambda x, y: x + y, x, y, output_gradients=seed)
    np.testing.assert_array_equal(by_x.numpy(), seed.numpy())
    axes = tuple(range(2 - len(short))) + tuple(
        2 - len(short) + i for i, n in enumerate(short) if n == 1)
    expected = seed.numpy().sum(axes, keepdims=True).reshape(short)
    np.testing.assert_array_equal(by_y.numpy(), expected)


@each(n_axes=[8, 9, 10, 15], short=[(), (1,), (2,), (1, 2), (2, 1)])
def test_over_any_number_of_axes(short, n_axes):
    x, y = cytape.constant(np.ones((2,) * n_axes)), cytape.constant(np.full(short, 3.0))
    for function, factor in [(cnp.add, 1), (cnp.multiply, 1), (lambda x, y: x - y, -1)]:
        gradient = ways.gradients(function, x, y)[1]
        expected = np.full(short, factor * 2.0**n_axes / np.prod(short))
        np.testing.assert_array_equal(gradient.numpy(), expected)


@each("short", [(), (1,), (1, 1000), (1000, 1)])
def test_a_sum_over_many_elements_is_accurate(short):
    x = cytape.constant(np.full((1000, 1000), 0.1, np.float32))
    scale = cytape.constant(np.ones(short, np.float32))
    gradient = ways.gradient(lambda scale: x * scale, scale).numpy()
    rtol = 1e-6 if short != (1, 1000) else 1e-5  # rows are added one by one, as NumPy does
    np.testing.assert_allclose(gradient, np.full(short, 1e5 / gradient.size), rtol)


def test_sums_are_added_to_the_gradient_that_arrived():
    """A bias that is used by several ops, in every order of them."""
    functions = [
        lambda b: whole_numbers((20, 30)) + b, lambda b: b * whole_numbers((20, 30), seed=1),
        lambda b: b * b, lambda b: b[::-1] * 2.0, lambda b: np.sum(b), lambda b: b,
        lambda b: whole_numbers((4, 20, 1)) * b]
    terms = []
    for function in functions:
        b = cytape.constant(np.arange(30.0))
        terms.append(ways.gradient(function, b).numpy())
    rng = np.random.default_rng(0)
    for _ in range(30):
        order = rng.permutation(len(functions))[: rng.integers(2, 8)]
        b = cytape.constant(np.arange(30.0))
        with ways.watching(b, persistent=True) as tape:
            y = [functions[i](b) for i in order]
            recorded = tape.gradient(y, b)
        expected = sum(terms[i] for i in order)
        for gradient in (recorded, tape.gradient(y, b), tape.gradient(y, b)):
            np.testing.assert_array_equal(gradient.numpy(), expected)


# -- of gradients that meet ------------------------------------------------------------------------


@each(dtype=FLOATS, size=SIZES)
def test_terms_of_every_size_and_dtype(size, dtype):
    x = cytape.constant(np.ones(size, dtype))
    weights = [whole_numbers(size, dtype, seed) for seed in range(3)]
    with ways.watching(x, persistent=True) as tape:
        y = [x + 1, x * weights[0], x + 2, x * weights[1], -x, x * weights[2]]
        recorded = tape.gradient(y, x)
    expected = sum(weights) + weights[0].dtype.type(1)
    for gradient in (recorded, tape.gradient(y, x)):
        assert gradient.spec is x.spec
        np.testing.assert_array_equal(gradient.numpy(), expected)


@each("n_axes", [8, 9, 11, 14])
@each("order", [*itertools.permutations(range(3))], ids=str)
def test_terms_of_any_number_of_axes(order, n_axes):
    functions = [lambda x: x + 1.0, lambda x: x * 2.0, lambda x: np.transpose(x) * 4.0]
    x = cytape.constant(np.ones((2,) * n_axes))
    np.testing.assert_array_equal(ways.gradient(
        lambda x: [functions[i](x) for i in order], x).numpy(), np.full(x.shape, 7.0))


@each(first=LAYOUTS, second=LAYOUTS, shape=[(2, 3), (20, 30), (100, 120)])
def test_terms_that_lie_differently(shape, first, second):
    seeds = [LAYOUTS[lay_out](whole_numbers(shape, seed=i))
             for i, lay_out in enumerate((first, second))]
    copies = [seed.copy() for seed in seeds]
    given = [tensor_of(seed) for seed in seeds]
    x = cytape.constant(np.ones(shape))
    with ways.watching(x, persistent=True) as tape:
        y = [x + 1.0, x + 2.0]
        z = [*y, x * 3.0]
    for targets, gradients, more in [(y, given, 0), (z, [*given, None], 3), (z, [None, *given], 0)]:
        found = tape.gradient(targets, x, output_gradients=gradients).numpy()
        expected = copies[0] + copies[1] + more if more or targets is y else (
            1 + copies[0] + 3 * copies[1])
        np.testing.assert_array_equal(found, expected)
    for seed, copy in zip(seeds, copies, strict=True):
        np.testing.assert_array_equal(seed, copy)


@each("size", [1, 9, 3000, 10_000])
def test_negative_zero_infinity_and_nan_are_added_as_numpy_does(size):
    special = np.resize([-0.0, 0.0, np.inf, -np.inf, np.nan, 1.0], size)
    other = np.resize(np.roll(special, 2), size)
    x = cytape.constant(np.ones(size))
    tape, y = ways.taped(lambda x: [x + 1.0, x + 2.0], x)
    with np.errstate(all="ignore"):
        found = tape.gradient(y, x, output_gradients=[special, other]).numpy()
        expected = special + other
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found)[found == 0], np.signbit(expected)[found == 0])
