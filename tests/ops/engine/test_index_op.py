"""x[index] in C: what it selects, what it copies, and where the gradient goes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

import cytape
import cytape.numpy as cnp
from cytape.ops.engine.index_op import index_in_batch
from cytape.tensor.tensor import tensor_of
from tests.cases import each
from tests.ways import gradient, taped, watching

SLICES = [
    slice(None), slice(1, None), slice(None, -1), slice(None, None, -1), slice(None, None, 2),
    slice(-1, None, -2), slice(2, 1), slice(-10, 10), slice(10, -10, -3)]
PARTS = [0, -1, None, Ellipsis, *SLICES]
COPIED = 16 * 1024  # bytes up to which a result is a copy


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


def gradients(function, x, seed):
    """Compare the derivatives of the C code with those of recorded ops."""
    with watching(x, persistent=True) as tape:
        y = function(x)
        recorded = tape.gradient(y, x, output_gradients=seed)
    return tape.gradient(y, x, output_gradients=seed), recorded


def check(array, index, lay_out=lambda x: x):
    expected = lay_out(array)[index]
    x = tensor_of(lay_out(array))
    result = x[index]
    assert type(result) is cytape.Tensor
    assert (result.shape, result.dtype) == (expected.shape, array.dtype)
    np.testing.assert_array_equal(result.numpy(), expected)
    if array.dtype.kind in "fc":
        seed = np.arange(1.0, 1 + expected.size).reshape(expected.shape).astype(array.dtype)
        scattered = np.zeros(x.shape, array.dtype)
        scattered[index] += seed
        for slope in gradients(lambda x: x[index], x, seed):
            assert slope.spec is x.spec
            np.testing.assert_array_equal(slope.numpy(), scattered)


def indices(n_axes):
    for n_parts in range(n_axes + 2):
        for parts in itertools.product(PARTS, repeat=n_parts):
            if (parts.count(Ellipsis) < 2 and parts.count(None) < 2
                    and n_parts - parts.count(None) - parts.count(Ellipsis) <= n_axes):
                yield parts


@each("shape", [(), (1,), (4,), (0,)])
def test_every_basic_index_of_few_axes(shape):
    array = numbers(*shape)
    for index in indices(len(shape)):
        if not shape or shape[0] or not {0, -1} & {part for part in index if type(part) is int}:
            check(array, index)
            if len(index) == 1:
                check(array, index[0])


@each("lay_out", [lambda x: x, np.transpose, np.flip, lambda x: x[::2]])
def test_every_basic_index_of_two_axes(lay_out):
    array = numbers(4, 4)
    for index in indices(2):
        check(array, index, lay_out)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_basic_indices_of_any_number_of_axes(data):
    shape = data.draw(array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4))
    index = data.draw(basic_indices(shape, allow_newaxis=True, max_dims=7))
    lay_out = data.draw(st.sampled_from([lambda x: x, np.transpose, np.flip]))
    array = np.arange(float(np.prod(shape))).reshape(shape)
    if lay_out is np.transpose:
        array = np.arange(array.size * 1.0).reshape(shape[::-1])
    check(array, index, lay_out)


@each("dtype", [
    "bool", "int8", "int64", "float16", "float32", "float64", "longdouble", "complex64",
    "complex128", "datetime64[s]", "U3", "S5"])
def test_elements_of_any_size(dtype):
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for index in [1, (0, 1, 2), np.s_[::-1, :, 1:3], np.s_[..., None, ::2], np.s_[:, 1], ()]:
        check(array, index)


@each("n_axes", [8, 9, 11])
def test_any_number_of_axes(n_axes):
    array = numbers(*(2,) * n_axes)
    for index in [0, (..., 1), np.s_[::-1], (None, 1), np.s_[None, ..., None], (0,) * n_axes, ...]:
        check(array, index)
        check(array, index, np.transpose)


def test_new_axes_beyond_the_eighth():
    check(numbers(2, 3), (None,) * 6 + (1,))
    check(numbers(2, 3), (None,) * 7 + (slice(1),))
    check(numbers(2, 3), (None,) * 12 + (1, 1))


def test_an_operand_that_is_not_aligned():
    array = np.frombuffer(b"\0" + numbers(60).tobytes(), np.uint8)[1:].view(float).reshape(5, 12)
    for index in [1, np.s_[::2, ::-1], np.s_[:, 3], ...]:
        check(array, index)


# -- other kinds of index --------------------------------------------------------------------------


@each("index", [
    True, False, np.True_, (True, 1), (slice(None), np.False_), np.int64(1), np.uint8(2),
    (np.int32(-1), 2), slice(np.int64(1), None), (0, slice(None, np.int8(2))), [0, 2], ([1], [2]),
    (slice(None), [0, 0]), np.array([True, False, True]), (..., [2, 1]), (None, [0], None),
    np.array(1), (np.array(0), slice(None)), [], [[0, 1], [2, 0]], ([0, 2], [1, 1]), (True, 0),
    (slice(None), [True, False, True, True]), (np.array(1), [0, 1]), np.uint8([1, 1]),
    slice(np.int64(0), np.int64(2)), (..., None, -1, None),
], ids=repr)
def test_booleans_arrays_and_numpys_integers(index):
    array = numbers(3, 4)
    x = cytape.constant(array)
    result = x[index]
    np.testing.assert_array_equal(result.numpy(), array[index])
    scattered = np.zeros_like(array)
    np.add.at(scattered, index, 1)
    for slope in gradients(lambda x: x[index], x, np.ones(result.shape)):
        np.testing.assert_array_equal(slope.numpy(), scattered)


@each("index", [
    4, -5, (0, 3), (0, -4), (slice(None), 3), (..., 3), (0, 0, 0), (..., ...), 10**30, -(10**30),
    (0, 10**30), (0, None, 1, 1), slice(None, None, 0), (0, slice(0, 0, 0)), slice(0.5), 1.5, "a",
    (0, "a"), slice("a", None), {}, (None, None, 7), np.int64(9), (1, np.uint64(3)),
    [0.5], np.array([9]), np.ones((2, 2), bool),
], ids=repr)
def test_a_bad_index_is_numpys_error(index):
    array = numbers(4, 3)
    with pytest.raises((IndexError, TypeError, ValueError)) as expected:
        array[index]
    with pytest.raises(expected.type):
        cytape.constant(array)[index]


@each("index", [0, -1, (0, 0), (..., 0)])
def test_nothing_can_be_taken_from_an_empty_axis(index):
    with pytest.raises(IndexError):
        cytape.constant(np.zeros((0, 0)))[index]
    with pytest.raises(IndexError):
        cytape.constant(np.zeros(()))[index]


def test_bounds_as_large_as_they_may_be():
    huge = 2**63 - 1
    for index in [slice(huge), slice(-huge - 1, huge), slice(None, None, huge),
                  slice(None, None, -huge), slice(10**30), slice(10**30, -(10**30), -(10**30))]:
        check(numbers(5), index)


# -- memory ----------------------------------------------------------------------------------------


@each("rows, shared", [(1, False), (COPIED // 800, False), (21, True)])
def test_a_large_result_is_a_view_a_small_one_a_copy(rows, shared):
    x = cytape.constant(numbers(100, 100))
    for index in (slice(rows), slice(rows, 0, -1), slice(0, 2 * rows, 2)):
        result = x[index].numpy()
        assert np.shares_memory(result, x.numpy()) == shared
        np.testing.assert_array_equal(result, x.numpy()[index])


@each("size", [COPIED // 8, COPIED // 8 + 1])
def test_the_border_lies_at_16_kibibytes(size):
    x = cytape.constant(numbers(2 * size))
    assert np.shares_memory(x[:size].numpy(), x.numpy()) == (8 * size > COPIED)
    check(x.numpy(), slice(size))
    check(x.numpy(), slice(None, None, 2))


def test_a_result_outlives_what_it_was_taken_from():
    for size in (3, 5000):
        x = cytape.constant(np.arange(2.0 * size)) + 0.0
        part = x[::2]
        del x
        others = [cytape.constant(np.zeros(2 * size)) + 0.0 for _ in range(5)]
        del others
        np.testing.assert_array_equal(part.numpy(), np.arange(0.0, 2 * size, 2))


def test_elements_that_are_shown_repeatedly():
    array = np.broadcast_to(numbers(4), (3, 4))
    x = tensor_of(array)
    np.testing.assert_array_equal(x[1:, ::-1].numpy(), array[1:, ::-1])
    for slope in gradients(lambda x: x[1:, ::-1], x, np.ones((2, 4))):
        np.testing.assert_array_equal(slope.numpy(), [[0] * 4, [1] * 4, [1] * 4])


# -- gradients that meet ---------------------------------------------------------------------------


@each(dtype=["float16", "float32", "float64", "complex64"], size=[5, 40, 600, 3000, 10_000])
def test_parts_of_one_tensor_add_up(size, dtype):
    x = cytape.constant(np.ones(size, dtype))
    found, recorded = gradients(
        lambda x: [x[:-1], x[1:], x[::2] * 2.0, x[::-1], x[3], x[...], x[None, 1:3]], x, None)
    expected = np.zeros(size)
    expected[:-1] += 1
    expected[1:] += 1
    expected[::2] += 2
    expected += 2
    expected[3] += 1
    expected[1:3] += 1
    for slope in (found, recorded):
        assert slope.spec is x.spec
        np.testing.assert_array_equal(slope.numpy(), expected)


@each("n", [10, 1000])
def test_rows_taken_one_by_one(n):
    x, weights = cytape.constant(numbers(n, 6)), numbers(n, 6)
    with watching(x, persistent=True) as tape:
        y = sum(np.sum(row * weight) for row, weight in zip(x, weights, strict=True))
    for _ in range(2):
        np.testing.assert_array_equal(tape.gradient(y, x).numpy(), weights)


@each("order", [*itertools.permutations(["part", "whole", "sum", "gather"])], ids=" ".join)
@each("shape", [(4, 2), (40, 20), (120, 80)])
def test_parts_meet_gradients_of_other_kinds(shape, order):
    terms = {
        "part": lambda x: np.sum(x[1:] * x[:-1]), "whole": lambda x: np.sum(x * x),
        "sum": lambda x: np.sum(x), "gather": lambda x: np.sum(cytape.gather(x, [0, 0, 3]))}
    x = cytape.constant(numbers(*shape))
    found, recorded = gradients(lambda x: [terms[name](x) for name in order], x, None)
    array = x.numpy()
    expected = 2 * array + 1
    expected[1:] += array[:-1]
    expected[:-1] += array[1:]
    expected[0] += 2
    expected[3] += 1
    for slope in (found, recorded):
        np.testing.assert_allclose(cytape.convert_to_tensor(slope).numpy(), expected, 1e-12)


@each("size", [4, 400, 4000, 40_000])
def test_returned_gradients_are_not_added_to(size):
    x = cytape.constant(np.ones(size))
    seeds = [cytape.constant(np.full(size, 3.0)), cytape.constant(np.full(size // 2, 5.0))]
    with watching(x, persistent=True) as tape:
        z = cnp.positive(x)
        y = [cnp.positive(z), z[::2]]
    by_z, by_x = tape.gradient(y, [z, x], output_gradients=seeds)
    (again,) = tape.gradient(y, [z], output_gradients=seeds)
    expected = np.where(np.arange(size) % 2, 3.0, 8.0)
    for slope in (by_z, by_x, again):
        np.testing.assert_array_equal(slope.numpy(), expected)
    np.testing.assert_array_equal(seeds[0].numpy(), np.full(size, 3.0))
    np.testing.assert_array_equal(seeds[1].numpy(), np.full(size // 2, 5.0))


def test_a_gradient_that_lies_strided():
    x, seed = cytape.constant(numbers(30, 40)), numbers(10, 20)
    for lay_out in (np.asfortranarray, lambda s: s[::-1].copy()[::-1], lambda s: s):
        for slope in gradients(lambda x: x[::3, ::2], x, tensor_of(lay_out(seed))):
            np.testing.assert_array_equal(slope.numpy()[::3, ::2], seed)
            assert np.count_nonzero(slope.numpy()) == seed.size


def test_the_second_derivative():
    x = cytape.constant(numbers(6))
    outer, first = taped(lambda x: gradient(lambda x: np.sum(x[1:] ** 3 * x[:-1]), x), x)
    a = x.numpy()
    expected = np.append(0, 6 * a[1:] * a[:-1] + 3 * a[1:] ** 2)
    expected[:-1] += 3 * a[1:] ** 2
    np.testing.assert_allclose(outer.gradient(first, x).numpy(), expected)


def test_a_variable():
    v = cytape.Variable(numbers(4, 5))
    with cytape.GradientTape() as tape:
        y = v[1, ::2]
        v.assign(np.zeros((4, 5)))
        z = v[1, 0]
    assert float(z) == 0
    gradient = tape.gradient([y, z], v).numpy()
    expected = np.zeros((4, 5))
    expected[1, ::2] = 1
    expected[1, 0] = 2
    np.testing.assert_array_equal(gradient, expected)


def test_an_index_does_the_same_to_each_element_of_a_batch_unless_arrays_are_apart():
    array = np.array([0, 1])
    for index in [
        0, (0, slice(None), 1), None, (Ellipsis, array), (array, 0), (array, array), True,
    ]:
        parts = index if isinstance(index, tuple) else (index,)
        assert index_in_batch(index) == (slice(None), *parts)
    for index in [(array, slice(None), 0), (0, slice(None), array), (array, None, array),
                  (array, Ellipsis, array)]:
        assert index_in_batch(index) is None
