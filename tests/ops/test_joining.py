"""Special cases of joining and splitting: mixed arguments, unused parts, bad arguments."""

import time

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops import joining as ops
from tests.cases import each
from tests.resident import needs_rollup, resident_bytes
from tests.tables import table
from tests.ways import taped, watching

JOINS = ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"]
SPLITS = ["split", "array_split", "hsplit", "vsplit", "dsplit"]


@each("name", JOINS)
def test_join_takes_tensors_variables_arrays_and_lists(name):
    arrays = [np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0]), [7.0, 8.0]]
    tensor, variable = cytape.constant(arrays[0]), cytape.Variable(arrays[1])
    with watching(tensor) as tape:
        joined = getattr(np, name)([tensor, variable, *arrays[2:]])
        y = (joined * np.arange(8.0).reshape(joined.shape)).sum()
    np.testing.assert_array_equal(joined.numpy(), getattr(np, name)(arrays))
    order = getattr(np, name)([[0, 1], [2, 3], [4, 5], [6, 7]]).ravel().argsort()
    first, second = tape.gradient(y, [tensor, variable])
    np.testing.assert_array_equal(np.concatenate([first.numpy(), second.numpy()]), order[:4])


def test_the_rows_of_a_tensor_are_joined_as_those_of_an_array():
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(ops.hstack(cytape.constant(x)).numpy(), np.hstack(x))


def test_one_tensor_used_twice_gets_both_gradients():
    assert cytape.grad(lambda x: np.concatenate([x, x, 2 * x]).sum())(np.ones(2)).tolist() == [4, 4]


def test_float32_and_float64_join_and_each_gradient_keeps_its_dtype():
    x, y = cytape.constant(np.ones(2, np.float32)), cytape.constant(np.ones(2))
    tape, z = taped(lambda x, y: ops.concatenate([x, y]), x, y)
    assert z.dtype == np.float64
    assert [g.dtype for g in tape.gradient(z, [x, y])] == [np.float32, np.float64]


def test_dtype_and_casting_are_numpys():
    x = cytape.constant([1.0, 2.0])
    assert ops.concatenate([x, x], dtype=np.float32).dtype == np.float32


@each("name", SPLITS)
def test_split_gives_a_list_of_tensors(name):
    x = np.arange(8.0).reshape(2, 2, 2)
    parts = getattr(np, name)(cytape.constant(x), 2)
    assert type(parts) is list
    for part, expected in zip(parts, getattr(np, name)(x, 2), strict=True):
        assert isinstance(part, cytape.Tensor)
        np.testing.assert_array_equal(part.numpy(), expected)


def test_a_part_that_is_not_used_has_gradient_zero():
    x = cytape.constant([1.0, 2.0, 3.0, 4.0])
    with watching(x, persistent=True) as tape:
        first, _, last = np.split(x, [1, 3])
        y = first * 2 + last**2
        rows = np.unstack(x)
        z = rows[1] * rows[2]
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [2, 0, 0, 8])
    np.testing.assert_array_equal(tape.gradient(z, x).numpy(), [0, 3, 2, 0])


def test_parts_that_overlap_get_both_gradients():
    x = cytape.constant([1.0, 2.0, 3.0, 4.0])
    with watching(x) as tape:
        parts = np.split(x, [3, 1])
        y = np.concatenate(parts)
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3, 2, 3, 4])
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [1, 2, 2, 1])


def test_unstack_along_an_axis_of_nothing():
    assert ops.unstack(cytape.constant(np.zeros((2, 0))), axis=1) == ()
    assert [part.shape for part in ops.unstack(cytape.constant(np.zeros((2, 0))))] == [(0,), (0,)]


@each(sections=[
    1, 2, 3, [1], [1, 3], (2, 2, 5), [-1], [-4, 9], [0, 0], [], 2.0, np.int64(3), np.array([2, 4]),
    [np.int64(1), 2], True], axis=[0, 1, -1, np.int64(1)])
def test_splits_as_numpys(sections, axis):
    x = np.arange(36.0).reshape(6, 6)
    for function in np.split, np.array_split:
        expected = function(x, sections, axis)
        for found in function(cytape.constant(x), sections, axis), cytape.function(
                lambda x, function=function: function(x, sections, axis))(cytape.constant(x)):
            assert len(found) == len(expected)
            for part, like in zip(found, expected, strict=True):
                np.testing.assert_array_equal(part, like, strict=True)


@each("sections, error", [
    (4, ValueError), (0, (ValueError, ZeroDivisionError)), (-1, ValueError), ([1.0], TypeError),
    ([True, 1.0], TypeError), ("a", TypeError)])
def test_numbers_of_parts_that_are_none(sections, error):
    np.split(cytape.constant(np.zeros(6)), [1, 1])  # which is equal to [True, 1.0]
    for x in np.zeros(6), cytape.constant(np.zeros(6)):
        with pytest.raises(error):
            np.split(x, sections)


LISTS = {
    "stack": lambda x: cnp.stack(list(x)),
    "concatenate": lambda x: cnp.concatenate([e[None] for e in x]),
    "concatenate along axis 1": lambda x: cnp.concatenate([e[None, None] for e in x], 1),
    "concatenate with empty operands": lambda x: cnp.concatenate(
        [part for i in range(len(x)) for part in (x[i:i + 1], x[:0])]),
    "split": lambda x: cnp.split(x, len(x)),
    "split with empty parts": lambda x: cnp.array_split(x, 2 * len(x)), "unstack": cnp.unstack,
    "sum of a list": lambda x: cnp.sum(cnp.array(list(x))), "block": lambda x: cnp.block(list(x)),
}


@each("name", LISTS)
def test_the_first_call_with_a_length_takes_time_in_proportion_to_it(name):
    def seconds(n):
        start = time.process_time()  # whatever else the machine does
        with cytape.GradientTape() as tape:
            x = cytape.constant(np.ones(n))
            tape.watch(x)
            y = LISTS[name](x)
        tape.gradient(y, x)
        return time.process_time() - start

    few, many = (min(seconds(n + i) for i in range(3)) for n in (1000, 8000))
    assert many < 24 * few


def test_targets_that_are_sources_take_time_in_proportion_to_their_number():
    def seconds(n):
        xs = [cytape.constant(1.0) for _ in range(n)]
        start = time.process_time()
        with cytape.GradientTape() as tape:
            tape.watch(xs)
        assert tape.gradient(xs, xs)[-1] == 1
        return time.process_time() - start

    few, many = (min(seconds(n) for _ in range(3)) for n in (1000, 8000))
    assert many < 24 * few


@needs_rollup
@pytest.mark.parametrize("name", table(
    ["concatenate with empty operands", "split"],
    [name for name in LISTS if name not in ("concatenate with empty operands", "split")]))
def test_lists_of_many_lengths_leave_little_behind(name):
    x = cytape.constant(np.ones(3000))
    LISTS[name](x)
    before = resident_bytes()
    for n in range(2000, 2060):
        LISTS[name](x[:n])
    assert resident_bytes() - before < 8 << 20
