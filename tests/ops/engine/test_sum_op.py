"""Sum and mean in C: NumPy's results and errors, and gradients that repeat without copies."""

import itertools
import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.tensor.tensor import tensor_of
from tests.cases import each, sampled
from tests.ways import gradient, taped, watching

NAMES = ["sum", "mean"]
SHAPES = [(), (1,), (3,), (0,), (2, 3), (3, 0), (1, 4), (2, 3, 4), (5, 1, 7), (130,), (40, 50),
          (9, 11, 100), (100, 200)]
DTYPES = ["float16", "float32", "float64", "longdouble", "complex64", "complex128", "int8",
          "int64", "uint16", "bool"]


def draw(shape, dtype="float64", seed=0):
    real, imaginary = 10 * np.random.default_rng(seed).normal(size=(2, *shape))
    if np.dtype(dtype).kind in "iub":
        return np.asarray(np.abs(real)).astype(dtype)
    return np.asarray(real + 1j * imaginary if np.dtype(dtype).kind == "c" else real).astype(dtype)


def axes_of(ndim):
    yield None
    for n in range(ndim + 1):
        yield from itertools.combinations(range(ndim), n)
    yield from range(-ndim, ndim)
    if ndim > 1:
        yield (-1, 0)
        yield (1, -ndim)


def quietly(function, *args, **kwargs):
    """The result, or the error, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            return type(error), str(error)
    return result, [str(warning.message) for warning in caught]


@sampled(4, name=NAMES, dtype=DTYPES, shape=SHAPES)
def test_results_are_numpys(shape, dtype, name):
    x = draw(shape, dtype)
    for axis in axes_of(len(shape)):
        for keepdims in (False, True):
            expected, complaints = quietly(getattr(np, name), x, axis=axis, keepdims=keepdims)
            for function in (getattr(np, name), getattr(cnp, name)):
                result, ours = quietly(function, cytape.constant(x), axis=axis, keepdims=keepdims)
                assert ours == complaints
                assert type(result) is cytape.Tensor
                assert (result.shape, result.dtype) == (np.shape(expected), expected.dtype)
                # NumPy divides complex64 in double precision.
                rtol = 4e-7 if (dtype, name) == ("complex64", "mean") else 0
                np.testing.assert_allclose(result.numpy(), expected, rtol)


@each(name=NAMES, dtype=["float32", "float64", "complex128"])
@each("lay_out", [
    np.transpose, np.flip, lambda x: x[::2], lambda x: x[..., ::-1], np.asfortranarray,
    lambda x: np.broadcast_to(x, (2, *x.shape)),
    lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape),
], ids=["transposed", "backwards", "every other", "inner axis", "fortran", "repeated", "unaligned"])
def test_strided_operands(lay_out, dtype, name):
    for shape in [(3,), (4, 5), (6, 7, 8), (70, 90)]:
        x = lay_out(draw(shape, dtype))
        for axis in axes_of(x.ndim):
            expected = getattr(np, name)(x, axis=axis)
            result = getattr(np, name)(tensor_of(x), axis=axis)
            assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
            rtol = 100 * np.finfo(dtype).eps
            np.testing.assert_allclose(result.numpy(), expected, rtol, rtol * 10 * x.size)


@each(name=NAMES, n_axes=[8, 9, 12])
def test_any_number_of_axes(n_axes, name):
    x = draw((2,) * n_axes)
    for axis in (None, 0, -1, (0, n_axes - 1), tuple(range(1, n_axes)), ()):
        for keepdims in (False, True):
            arguments = {"axis": axis, "keepdims": keepdims}
            expected = getattr(np, name)(x, **arguments)
            t = cytape.constant(x)
            result = getattr(np, name)(t, **arguments)
            np.testing.assert_allclose(result.numpy(), expected, 1e-12)
            check_gradient(t, name, **arguments)


@each("name", NAMES)
@each("arguments", [
    {"axis": 2}, {"axis": -3}, {"axis": (0, 0)}, {"axis": (0, -2)}, {"axis": (0, 5)},
    {"axis": [0]}, {"axis": 1.0}, {"axis": "a"}, {"axis": True}, {"axis": np.int64(1)},
    {"axis": (np.int8(0), 1)}, {"axis": np.array(1)}, {"axis": 10**30}, {"keepdims": 1},
    {"keepdims": 0}, {"axis": 0, "keepdims": 1}, {"axis": 1, "keepdims": 2}, {"dtype": "float32"},
    {"dtype": np.float64, "axis": 0}, {"dtype": complex}, {"dtype": "int64", "axis": 1},
    {"axis": 0, "keepdims": np.True_}, {"axis": 0, "keepdims": "yes"},
    {"axis": (), "keepdims": True},
], ids=repr)
def test_arguments_of_every_kind(arguments, name):
    x = draw((2, 3))
    expected = quietly(getattr(np, name), x, **arguments)
    found = quietly(getattr(np, name), cytape.constant(x), **arguments)
    if isinstance(expected[0], type):
        assert isinstance(found[0], type)
        assert issubclass(found[0], expected[0])
    else:
        assert (found[0].shape, found[0].dtype) == (np.shape(expected[0]), expected[0].dtype)
        np.testing.assert_array_equal(found[0].numpy(), expected[0])
        assert found[1] == expected[1]


@each(name=NAMES, axis=[0, -1, 1, (0,), (0, 1), ()])
def test_the_axes_of_a_number(axis, name):
    expected = quietly(getattr(np, name), np.array(2.0), axis=axis)
    found = quietly(getattr(np, name), cytape.constant(2.0), axis=axis)
    assert found[0] == expected[0]
    assert found[1] == expected[1]


@each("name", NAMES)
def test_negative_zeros_and_special_values(name):
    for x in ([-0.0], [-0.0, -0.0], [[-0.0], [0.0]], [np.inf, 1.0], [np.nan, 1.0], -0.0):
        x = np.array(x)
        for axis in (None, (), *range(x.ndim)):
            expected = np.asarray(getattr(np, name)(x, axis=axis))
            result = getattr(np, name)(cytape.constant(x), axis=axis).numpy()
            assert result.tobytes() == expected.tobytes()


@each(name=NAMES, x=[
    [np.inf, -np.inf], [[1e308, 1e308], [1.0, 2.0]], np.array([3e38, 3e38], "float32"),
    np.array([60000.0, 60000.0], "float16")])
def test_trouble_is_reported_as_by_numpy(x, name):
    x = np.array(x)
    for how in ("warn", "ignore", "raise"):
        for axis in (None, -1):
            with np.errstate(all=how):
                expected = quietly(getattr(np, name), x, axis=axis)
                found = quietly(getattr(np, name), cytape.constant(x), axis=axis)
            assert found[1] == expected[1]
            np.testing.assert_array_equal(*[
                np.asarray(r.numpy() if isinstance(r, cytape.Tensor) else r).astype(str)
                for r in (found[0], expected[0])])


def test_trouble_of_another_op_is_not_the_sums():
    with np.errstate(all="ignore"):
        cytape.constant([1.0]) / 0.0
        x = cytape.constant(np.full(1000, 800.0))
        gradient(cnp.exp, x)
    assert float(np.sum(cytape.constant([1.0, 2.0]))) == 3.0


def test_a_sum_of_many_small_numbers_is_accurate():
    x = cytape.constant(np.full(1_000_000, 0.1, np.float32))
    np.testing.assert_allclose(float(np.sum(x)), 1e5, 1e-6)
    np.testing.assert_allclose(float(np.mean(x)), 0.1, 1e-6)


@each(name=NAMES, dtype=["int64", "bool", "uint8"])
def test_integers_have_no_gradient(dtype, name):
    n, x = cytape.constant(draw((3,), dtype)), cytape.constant(1.0)
    tape, y = taped(lambda x: getattr(np, name)(n) * x, x)
    by_n, by_x = tape.gradient(y, [n, x])
    assert by_n is None
    assert float(by_x) == getattr(np, name)(n.numpy())


# -- gradients -------------------------------------------------------------------------------------


def check_gradient(x, name, seed=None, **arguments):
    """Against the same by recorded ops, and by NumPy."""
    with watching(x, persistent=True) as tape:
        y = getattr(cnp, name)(x, **arguments)
        seed = draw(y.shape, y.dtype, 3) if seed is None else seed
        recorded = tape.gradient(y, x, output_gradients=seed)
    axis = arguments.get("axis")
    kept = np.sum(np.ones(x.shape), axis=axis, keepdims=True).shape
    values = seed.numpy() if isinstance(seed, cytape.Tensor) else seed
    expected = np.broadcast_to(values.reshape(kept), x.shape)
    if name == "mean" and x.shape:
        expected = expected * np.prod(kept) / max(np.prod(x.shape), 1)
    for slope in (recorded, tape.gradient(y, x, output_gradients=seed)):
        assert slope.spec is x.spec
        rtol = 4 * np.finfo(x.dtype).eps
        np.testing.assert_allclose(slope.numpy(), expected, rtol)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
@sampled(4, name=NAMES,
         dtype=["float16", "float32", "float64", "longdouble", "complex64"],
         shape=SHAPES)
def test_gradients(shape, dtype, name):
    x = cytape.constant(draw(shape, dtype))
    for axis in axes_of(len(shape)):
        for keepdims in (False, True):
            check_gradient(x, name, axis=axis, keepdims=keepdims)


@each("name", NAMES)
@each("lay_out", [
    lambda s: s[::-1].copy()[::-1], np.asfortranarray, lambda s: np.repeat(s, 2, axis=0)[::2],
    lambda s: np.frombuffer(b"\0" + s.tobytes(), np.uint8)[1:].view(s.dtype).reshape(s.shape),
    lambda s: np.broadcast_to(s[:1], s.shape),
], ids=["backwards", "fortran", "every other", "unaligned", "repeated"])
def test_an_output_gradient_of_any_layout(lay_out, name):
    for shape, axis in [((2, 3), 0), ((4, 50, 60), 1), ((50, 60, 4), -1), ((2, 3), ())]:
        x = cytape.constant(draw(shape))
        seed = lay_out(draw(np.sum(x.numpy(), axis=axis).shape))
        for given in (seed, tensor_of(seed)):
            check_gradient(x, name, given, axis=axis)


CONSUMED = {
    "nothing": lambda x: x, "product": lambda x: x * x,
    "product with an array": lambda x: x * np.arange(1.0, 1 + x.size).reshape(x.shape),
    "sum of both": lambda x: x + x, "difference": lambda x: x - x * 2.0,
    "broadcast": lambda x: x + np.ones((2, *x.shape)), "a row": lambda x: x * x[0],
    "a slice": lambda x: x[1:], "backwards": lambda x: x[::-1] * x,
    "matrix product": lambda x: x @ np.transpose(x), "transpose": lambda x: np.transpose(x) * 3.0,
    "sum": lambda x: np.sum(x, axis=0), "mean": lambda x: np.mean(x, axis=-1, keepdims=True) * x,
    "reshape": lambda x: np.reshape(x, (-1,)) * 2.0, "function": lambda x: cnp.sin(x),
    "maximum": lambda x: cnp.maximum(x, 0.0), "gather": lambda x: cytape.gather(x, [0, 0]),
    "concatenation": lambda x: np.concatenate([x, x * x])}


@each(name=NAMES, before=CONSUMED, shape=[(2, 3), (10, 20), (70, 50)])
def test_the_gradient_goes_on_through_any_op(shape, before, name):
    function = CONSUMED[before]
    x = cytape.constant(draw(shape))
    for axis, keepdims in [(None, False), (0, False), (-1, True)]:
        with watching(x, persistent=True) as tape:
            y = getattr(cnp, name)(function(x), axis=axis, keepdims=keepdims)
            z = [y * y, np.sum(x)]
            recorded = tape.gradient(z, x)
        found = tape.gradient(z, x)
        np.testing.assert_allclose(found.numpy(), recorded.numpy(), 1e-9, 1e-9)
        np.testing.assert_array_equal(tape.gradient(z, x).numpy(), found.numpy())


@each("size", [8, 100, 5000, 50_000])
def test_the_gradient_of_a_sum_is_not_written_to(size):
    """It shows one element many times."""
    x = cytape.constant(np.ones(size))
    with watching(x, persistent=True) as tape:
        z = cnp.positive(x)
        total = np.sum(z)
        y = [total, np.sum(x), x * 2.0, np.sum(x), cnp.negative(x) * 3.0]
    by_total, by_z, by_x = tape.gradient(y, [total, z, x])
    np.testing.assert_array_equal(by_total.numpy(), 1.0)
    np.testing.assert_array_equal(by_z.numpy(), np.ones(size))
    np.testing.assert_array_equal(by_x.numpy(), np.full(size, 1.0 + 1 + 2 + 1 - 3))
    tape.gradient(y, [z, x])
    np.testing.assert_array_equal(by_z.numpy(), np.ones(size))


@each("name", NAMES)
def test_the_seed_is_left_alone(name):
    x = cytape.constant(np.ones((50, 60)))
    for shape, axis in [((60,), 0), ((50,), 1), ((), None)]:
        seed = cytape.constant(np.full(shape, 3.0))
        gradient(lambda x, axis=axis: getattr(np, name)(x * x, axis=axis), x, output_gradients=seed)
        np.testing.assert_array_equal(seed.numpy(), np.full(shape, 3.0))


def test_a_variable_may_change_after_it_was_summed():
    v = cytape.Variable(np.ones((3, 4)))
    with cytape.GradientTape() as tape:
        y = np.sum(v, axis=0)
        v.assign(np.zeros((3, 4)))
        z = np.mean(v)
    assert (float(y[0]), float(z)) == (3.0, 0.0)
    np.testing.assert_allclose(tape.gradient([y, z], v).numpy(), np.full((3, 4), 1 + 1 / 12))


@each("axis", [None, 0, 1, 2, (0, 2)])
def test_strided_data_are_summed_as_numpy_sums_them(axis):
    array = np.random.default_rng(0).normal(size=(13, 17, 19))
    for view in (array.transpose(2, 0, 1), array[:, ::-1], array[::2, :, ::3]):
        expected = view.sum(axis=axis)
        np.testing.assert_array_equal(tensor_of(view).sum(axis=axis).numpy(), expected)
