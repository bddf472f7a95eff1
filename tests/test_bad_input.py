"""Input that is wrong or at the edge: NumPy's own result or exception wherever it has one."""

import numpy as np
import pytest

import cytape
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.cases import each

V23 = np.arange(1.0, 7.0).reshape(2, 3)
V3 = np.array([0.5, -1.0, 2.0])


def outcome(function, *args):
    """Return what a function returns or the exception that it raises."""
    with np.errstate(all="ignore"):
        try:
            return function(*args)
        except Exception as error:
            return error


def check_like_numpy(function, *args):
    """Compare a function of arrays with the same of tensors and of variables, on a tape."""
    expected = outcome(function, *args)
    for convert in (cytape.constant, cytape.Variable):
        tensors = [convert(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        sources = [t for t in tensors if isinstance(t, cytape.Tensor) and t.dtype.kind in "fc"]
        with cytape.GradientTape() as tape:
            tape.watch(sources)
            result = outcome(function, *tensors)
        if isinstance(expected, Exception):
            assert isinstance(result, type(expected)), result
        else:
            assert isinstance(result, cytape.Tensor), result
            np.testing.assert_array_equal(result.numpy(), expected)
            assert result.shape == np.shape(expected)
            assert result.dtype == np.asarray(expected).dtype
            with np.errstate(all="ignore"):
                gradients = tape.gradient(result, sources)
            for gradient, source in zip(gradients, sources, strict=True):
                if gradient is not None:
                    assert (gradient.shape, gradient.dtype) == (source.shape, source.dtype)
    check_tapes_work()


def check_tapes_work():
    v = cytape.Variable(3.0)
    tape, y = ways.taped(lambda: v * v)
    assert float(tape.gradient(y, v)) == 6.0


@each(
    ("function", "args"),
    [
        (np.add, (V23, np.ones(2))),
        (np.multiply, (V23, np.ones((3, 2)))),
        (np.matmul, (V23, V23)),
        (np.matmul, (V3, np.float64(2.0))),
        (np.dot, (V23, V23)),
        (np.where, (V23 > 1, V23, np.ones(5))),
        (lambda a, b: np.concatenate([a, b]), (V23, V3)),
        (lambda a, b: np.stack([a, b]), (V23, V3)),
        (lambda a: np.reshape(a, (4, 2)), (V23,)),
        (lambda a: np.broadcast_to(a, (2, 2)), (V23,)),
        (lambda a: np.sum(a, axis=2), (V23,)),
        (lambda a: np.sum(a, axis=(0, 0)), (V23,)),
        (lambda a: np.mean(a, axis=-3), (V23,)),
        (lambda a: np.squeeze(a, 0), (V23,)),
        (lambda a: np.expand_dims(a, 5), (V23,)),
        (lambda a: np.transpose(a, (0, 0)), (V23,)),
        (lambda a: np.split(a, 4), (V23,)),
        (lambda a: a[5], (V23,)),
        (lambda a: a[0, 0, 0], (V23,)),
        (lambda a: a[[0, 7]], (V23,)),
        (lambda a: a[np.array([True, False, True])], (V23,)),
        (lambda a: a["text"], (V23,)),
        (lambda a: a[1.5], (V23,)),
        (lambda a: np.take(a, [9], axis=1), (V23,)),
        (lambda a: len(a), (np.array(1.0),)),
        (lambda a: iter(a), (np.array(1.0),)),
        (lambda a: float(a), (V3,)),
        (lambda a: bool(a), (V3,)),
        (lambda a: int(a), (V3,)),
        (lambda a: a.item(), (V3,)),
        (lambda a: a.no_such_method(), (V3,)),
        (lambda a: hash(a), (V3,)),
    ],
)
def test_where_numpy_raises_so_do_tensors(function, args):
    assert isinstance(outcome(function, *args), Exception)
    check_like_numpy(function, *args)


@each(
    ("function", "args"),
    [
        # dtypes
        (np.add, (V3, np.arange(3))),
        (np.add, (V3.astype(np.float32), V3)),
        (np.multiply, (V3.astype(np.float32), 2.0)),
        (np.multiply, (V3.astype(np.float32), np.float64(2.0))),
        (np.multiply, (V3.astype(np.float16), 2)),
        (np.multiply, (V3, 2j)),
        (np.add, (V3, np.array([True, False, True]))),
        (np.divide, (np.arange(3), np.arange(1, 4))),
        (np.power, (np.arange(3), 2)),
        (np.sum, (np.array([True, True]),)),
        (np.mean, (np.arange(4),)),
        (np.sqrt, (np.arange(4),)),
        # not a number
        (np.log, (np.array([-1.0, 0.0, np.inf, np.nan]),)),
        (np.sqrt, (np.array([-1.0, 0.0, np.inf]),)),
        (np.divide, (np.array([1.0, 0.0, -1.0]), np.zeros(3))),
        (np.power, (np.array([0.0, -1.0, np.nan]), np.array([0.0, 0.5, 0.0]))),
        (np.maximum, (np.array([np.nan, 1.0]), np.array([1.0, np.nan]))),
        (np.max, (np.array([1.0, np.nan, 2.0]),)),
        (np.sum, (np.array([np.inf, -np.inf]),)),
        (np.mean, (np.array([np.nan, 1.0]),)),
        (np.exp, (np.array([1e3, -1e3]),)),
        (np.tanh, (np.array([np.inf, -np.inf, np.nan]),)),
        # nothing
        (np.add, (np.zeros((0, 3)), V3)),
        (np.sum, (np.zeros((0, 3)),)),
        (lambda a: np.sum(a, axis=0), (np.zeros((0, 3)),)),
        (lambda a: np.prod(a, axis=1), (np.zeros((2, 0)),)),
        (np.max, (np.zeros(0),)),
        (lambda a: np.max(a, axis=1), (np.zeros((0, 3)),)),
        (np.matmul, (np.zeros((2, 0)), np.zeros((0, 3)))),
        (np.exp, (np.zeros(0),)),
        (lambda a: np.concatenate([a, a]), (np.zeros((0, 3)),)),
        (lambda a: a[1:1], (V3,)),
        (lambda a: a[[]], (V3,)),
        (lambda a: a[np.zeros(3, bool)], (V3,)),
        (lambda a: np.reshape(a, (3, 0)), (np.zeros((0, 3)),)),
        (np.transpose, (np.zeros((0, 3)),)),
        # a single number
        (np.add, (np.array(1.0), V3)),
        (np.sum, (np.array(2.0),)),
        (np.matmul, (V3, V3)),
        (np.dot, (np.array(2.0), V3)),
        (np.transpose, (np.array(1.0),)),
        (lambda a: np.reshape(a, (1, 1)), (np.array(1.0),)),
        (lambda a: a[()], (np.array(1.0),)),
        (lambda a: a[None], (np.array(1.0),)),
        (lambda a: a[..., None], (np.array(1.0),)),
        (lambda a: np.max(a, axis=()), (V3,)),
        (lambda a: a + 1, (np.array(1.0),)),
        # memory layout
        (np.sum, (np.asfortranarray(V23),)),
        (lambda a: np.tanh(a) @ V3, (V23[:, ::-1],)),
        (np.exp, (V23.astype(">f8"),)),
    ],
)
def test_where_numpy_has_a_result_tensors_have_the_same(function, args):
    check_like_numpy(function, *args)


@each("convert", [cytape.constant, cytape.Variable, cytape.convert_to_tensor])
@each(
    ("data", "error"),
    [
        ([[1.0, 2.0], [3.0]], ValueError),
        (None, TypeError),
        (object(), TypeError),
        (np.array([1.0, None]), TypeError),
        (np.array([object()]), TypeError),
        ({"a": 1.0}, TypeError),
        ([1.0, None], TypeError),
        (np.zeros(2, [("a", float)]), TypeError),
    ],
)
def test_data_that_is_no_array_of_numbers(convert, data, error):
    with pytest.raises(error):
        convert(data)


@each(other=[None, object(), {"a": 1.0}, [[1.0], [1.0, 2.0]]], flip=[False, True])
def test_arithmetic_with_what_is_no_number(other, flip):
    v = cytape.Variable(V3)
    before = live_tensors()
    with cytape.GradientTape():
        with pytest.raises((TypeError, ValueError)):
            other + v if flip else v + other
    assert live_tensors() == before
    check_tapes_work()


def test_variables_tensors_arrays_and_lists_mix():
    v = cytape.Variable(V3)
    t = cytape.constant(V23)
    with cytape.GradientTape() as tape:
        tape.watch(t)
        results = [
            V23 * v,
            v * V23,
            t * v,
            v * t,
            v * [1.0, 2.0, 3.0],
            [1.0, 2.0, 3.0] * v,
            V3[0] * v,
            np.float32(2) * v,
            v * 2,
            True * v,
            V23 @ v,
            v @ V3,
            np.add(V23, v),
            np.stack([v, V3, t[0]]),
        ]
        total = sum(np.sum(result) for result in results)
    expected = [
        V23 * V3,
        V23 * V3,
        V23 * V3,
        V23 * V3,
        V3 * [1, 2, 3],
        V3 * [1, 2, 3],
        V3[0] * V3,
        2 * V3,
        2 * V3,
        V3,
        V23 @ V3,
        V3 @ V3,
        V23 + V3,
        np.stack([V3, V3, V23[0]]),
    ]
    for result, array in zip(results, expected, strict=True):
        assert isinstance(result, cytape.Tensor)
        np.testing.assert_allclose(result.numpy(), array)
    by_v, by_t = tape.gradient(total, [v, t])
    columns = V23.sum(axis=0)
    by_hand = 4 * columns + 2 * np.array([1, 2, 3]) + V3[0] + 2 + 2 + 1 + columns + V3 + 2 + 1
    np.testing.assert_allclose(by_v.numpy(), by_hand)
    expected_by_t = np.broadcast_to(2 * V3, (2, 3)).copy()
    expected_by_t[0] += 1
    np.testing.assert_allclose(by_t.numpy(), expected_by_t)


@each("special", [np.nan, np.inf, -np.inf])
def test_special_values_pass_through_gradients(special):
    x = cytape.constant([1.0, special, 2.0])
    gradient = ways.gradient(lambda x: np.sum(x * x), x).numpy()
    np.testing.assert_array_equal(gradient, [2.0, 2 * special, 4.0])


def test_special_output_gradients():
    x = cytape.constant([1.0, 2.0])
    gradient = ways.gradient(lambda x: x * 3.0, x, output_gradients=np.array([np.nan, np.inf]))
    np.testing.assert_array_equal(gradient.numpy(), [np.nan, np.inf])


def test_in_place_operations_on_foreign_arrays_never_detach():
    v = cytape.Variable(V3)
    array = np.zeros((2, 3))
    with cytape.GradientTape() as tape:
        y = v * v
        with pytest.raises(cytape.errors.DetachedError, match=r"numpy\(\)"):
            array[0] = y
        with pytest.raises(cytape.errors.DetachedError):
            np.asarray(y)
        with pytest.raises(TypeError):
            np.add(array, y, out=array)
        total = np.sum(y)
    np.testing.assert_array_equal(tape.gradient(total, v).numpy(), 2 * V3)
    assert not array.any()


def test_a_failed_op_leaves_the_tape_as_it_was():
    v = cytape.Variable(V3)
    with cytape.GradientTape() as tape:
        y = v * v
        before = live_tensors()
        for _ in range(3):
            with pytest.raises(ValueError):
                y + np.ones(2)
            with pytest.raises(IndexError):
                y[7]
            with pytest.raises(TypeError):
                np.sum(y, axis="text")
        assert live_tensors() == before
        z = np.sum(y)
    np.testing.assert_array_equal(tape.gradient(z, v).numpy(), 2 * V3)


def test_assigning_the_wrong_thing_leaves_the_variable_as_it_was():
    v = cytape.Variable(V3)
    for wrong in (np.ones(2), np.ones((1, 3)), 1.0):
        with pytest.raises(ValueError, match="shape"):
            v.assign(wrong)
    with pytest.raises((TypeError, ValueError)):
        v.assign([None, 1.0, 2.0])
    with pytest.raises(ValueError):
        v.assign_add(np.ones(2))
    np.testing.assert_array_equal(v.numpy(), V3)
    check_tapes_work()
