"""Operands that lie in memory in different ways: results are NumPy's to the bit, warnings too."""

import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.tensor.tensor import tensor_of
from tests.cases import each, sampled
from tests.tables import table

DTYPES = table(["float64", "complex64"], ["float16", "float32", "complex128"])
LAYOUTS = {
    "contiguous": lambda x: x, "fortran": np.asfortranarray,
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2] if x.ndim else x,
    "every other column": lambda x: np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x,
    "backwards": lambda x: np.flip(np.flip(x).copy()),
    "inner axis backwards": lambda x: x[..., ::-1].copy()[..., ::-1] if x.ndim else x,
    "unaligned": lambda x: unaligned(x),
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape) if x.ndim else x}
PAIRS = [
    ((), ()), ((), (3,)), ((3,), ()), ((1,), (3,)), ((4, 3), (3,)), ((3,), (4, 3)),
    ((4, 1), (1, 3)), ((4, 1), (3,)), ((2, 1, 3), (4, 1)), ((2, 3, 4), (2, 3, 4)),
    ((2, 3, 4), (3, 1)), ((1, 1, 1), (2, 3, 4)), ((1, 1), (1,)), ((0, 3), (3,)), ((0, 1), (1, 3)),
    ((5, 0), ()), ((1, 0), (4, 1)), ((2, 1, 2, 1, 2), (2, 1, 2, 1)), ((600,), (1,)),
    ((100, 100), (100,)), ((100, 1), (1, 100)), ((9000,), ()), ((130, 70), (130, 70))]


def unaligned(x):
    raw = np.frombuffer(b"\0" + np.ascontiguousarray(x).tobytes(), np.uint8)
    return raw[1:].view(x.dtype).reshape(x.shape)


def draw(shape, dtype, seed=0):
    real, imaginary = np.random.default_rng(seed).uniform(-2, 2, (2, *shape))
    values = real + 1j * imaginary if np.dtype(dtype).kind == "c" else real
    return np.asarray(values).astype(dtype)


def check_bits(result, expected):
    expected = np.asarray(expected)
    assert type(result) is cytape.Tensor
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    if expected.dtype.kind == "c":  # NumPy fuses products or not, depending on where things lie
        eps = np.finfo(expected.dtype).eps
        np.testing.assert_allclose(result.numpy(), expected, 4 * eps, eps)
    else:
        assert result.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@each("left, right", PAIRS)
def test_broadcast_operands(left, right, dtype):
    a, b = draw(left, dtype), draw(right, dtype, 1)
    for ufunc in (np.add, np.subtract, np.multiply, np.divide, np.less, np.equal):
        expected = ufunc(a, b)
        check_bits(ufunc(cytape.constant(a), cytape.constant(b)), expected)
        check_bits(ufunc(cytape.constant(a), b), expected)
        check_bits(ufunc(a, cytape.Variable(b)), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@each(left=LAYOUTS, right=LAYOUTS)
def test_operands_of_any_layout(left, right, dtype):
    for shapes in [((6, 5, 4), (6, 5, 4)), ((6, 5, 4), (5, 1)), ((4,), (6, 5, 4)), ((6,), (6,))]:
        a, b = (LAYOUTS[lay_out](draw(shape, dtype, seed))
                for seed, (lay_out, shape) in enumerate(zip((left, right), shapes, strict=True)))
        for ufunc in (np.add, np.multiply, np.not_equal):
            check_bits(ufunc(tensor_of(a), tensor_of(b)), ufunc(a, b))
            check_bits(ufunc(a, tensor_of(b)), ufunc(a, b))


@pytest.mark.parametrize("dtype", DTYPES)
@each(layout=LAYOUTS, shape=[(), (3,), (5, 4), (1, 4), (0, 4), (3, 4, 5), (100, 120)])
def test_one_operand_of_any_layout(shape, layout, dtype):
    x = LAYOUTS[layout](draw(shape, dtype))
    for ufunc in (np.negative, np.square, np.absolute, np.conjugate, np.isfinite):
        check_bits(ufunc(tensor_of(x)), ufunc(x))


@each("n_axes", [7, 8, 9, 12])
def test_any_number_of_axes(n_axes):
    x = draw((2,) * n_axes, "float64")
    row, column = x[..., :1], x[:1]
    for a, b in [(x, row), (row, column), (x.T, x), (x, x[..., ::-1]), (x, x[0])]:
        check_bits(tensor_of(a) * tensor_of(b), a * b)
        check_bits(-tensor_of(a), -a)


@each("shape", [
    (1,) * 63 + (3,), (3,) + (1,) * 63, (1,) * 31 + (3, 3) + (1,) * 31,
    (2,) * 6 + (1,) * 57 + (2,)])
def test_as_many_axes_as_numpy_has(shape):
    x = draw((int(np.prod(shape)),), "float64").reshape(shape)
    result = cytape.constant(x) * tensor_of(x.T)
    check_bits(result, x * x.T)
    check_bits(result[..., ::-1], (x * x.T)[..., ::-1])
    np.testing.assert_allclose(np.sum(result, axis=(0, -1)).numpy(), np.sum(x * x.T, axis=(0, -1)))
    check_gradients(lambda x, y: x * y + np.sum(x, axis=(1, 63), keepdims=True), x, x.T.copy())
    check_gradients(lambda x, y: x[0] * y, x, x[..., :1])


def test_axes_of_one_element_are_no_obstacle():
    x = draw((1, 3, 1, 1, 4, 1, 1, 1), "float64")
    y = draw((5, 1, 1, 1, 1, 1, 2, 1), "float64", 1)
    check_bits(cytape.constant(x) + cytape.constant(y), x + y)
    check_bits(tensor_of(x.T) + cytape.constant(x), x.T + x)


def test_an_operand_that_shows_elements_repeatedly():
    windows = np.lib.stride_tricks.sliding_window_view(draw((50,), "float64"), 7)
    check_bits(tensor_of(windows) * tensor_of(windows[::-1]), windows * windows[::-1])


@each("name", ["sin", "cos", "exp", "tanh", "log1p", "sqrt", "cbrt", "arctan"])
@each("dtype", ["float32", "float64"])
@each("layout", ["contiguous", "every other row", "backwards", "repeated"])
def test_functions_that_numpy_vectorises(name, dtype, layout):
    x = LAYOUTS[layout](np.abs(draw((300, 70), dtype)))
    check_bits(getattr(cnp, name)(tensor_of(x)), getattr(np, name)(x))


@each("left, right", [((2, 3), (2,)), ((3,), (4,)), ((2, 1, 3), (2, 2))])
def test_shapes_that_do_not_fit_are_numpys_error(left, right):
    with pytest.raises(ValueError) as expected:
        np.ones(left) + np.ones(right)
    for other in (np.ones(right), cytape.constant(np.ones(right))):
        with pytest.raises(ValueError) as found:
            cytape.constant(np.ones(left)) + other
        assert str(found.value) == str(expected.value)


def complaints(function, *operands, **how):
    with warnings.catch_warnings(record=True) as caught, np.errstate(**how):
        warnings.simplefilter("always")
        try:
            function(*operands)
        except FloatingPointError as error:
            return str(error)
    return [(w.category, str(w.message)) for w in caught]


@each("how", [{}, {"all": "raise"}, {"all": "ignore"}])
@each("function", [
    lambda a, b: a / (b - b), lambda a, b: (a - a) / (b - b),
    lambda a, b: (a * 1e200) * (b * 1e200), lambda a, b: a + b,
], ids=["division by zero", "invalid", "overflow", "none"])
def test_trouble_is_reported_as_numpy_is_set_up_to(function, how):
    how = how and {**how, "under": "ignore"}
    ones = np.ones((300, 50))
    for a, b in [(ones, ones[0]), (ones.T, np.ones((50, 1))), (ones[::2], ones[::2]), (ones, ones)]:
        expected = complaints(function, a, b, **how)
        assert complaints(function, tensor_of(a), tensor_of(b), **how) == expected
        assert complaints(function, tensor_of(a), b, **how) == expected


def test_the_operands_stay_as_they_are():
    a, b = draw((50, 60), "float64"), draw((60,), "float64", 1)
    copies = a.copy(), b.copy()
    x, y = tensor_of(a), tensor_of(b)
    (x.T * y[:50])[::2] + x[0, :50] * y[:50]
    for array, copy in zip((a, b), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


# -- the way back ----------------------------------------------------------------------------------


def both_ways(function, *arrays, seed=None):
    """The gradients as C code computes them, and as recorded ops do."""
    tensors = [tensor_of(array) for array in arrays]
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(tensors)
        y = function(*tensors)
        seed = draw((y.size,), y.dtype, 9).reshape(y.shape) if seed is None else seed
        recorded = tape.gradient(y, tensors, output_gradients=seed)
    return tape.gradient(y, tensors, output_gradients=seed), recorded


def check_gradients(function, *arrays, **options):
    for ours, theirs in zip(*both_ways(function, *arrays, **options), strict=True):
        assert ours.spec is theirs.spec
        rtol = 100 * np.finfo(ours.dtype).eps
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol, rtol * max(ours.size, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@each("left, right", PAIRS)
def test_gradients_of_broadcast_operands(left, right, dtype):
    a, b = draw(left, dtype), draw(right, dtype, 1)
    if dtype == "float16" and max(a.size, b.size) > 1000:
        pytest.skip("the sum of so many is anybody's guess")
    for function in (cnp.multiply, lambda x, y: x - y * y, lambda x, y: (x + y) * x):
        check_gradients(function, a, b)


@sampled(4, left=LAYOUTS, right=LAYOUTS, shapes=[
    ((6, 5, 4), (6, 5, 4)), ((6, 5, 4), (5, 1)), ((4,), (6, 5, 4)), ((40, 30), (40, 1)),
    ((8, 64), (1, 1)), ((1, 1), (8, 64)), ((8, 64), ()), ((120, 100), (100,))])
def test_gradients_of_operands_of_any_layout(shapes, left, right):
    a = LAYOUTS[left](draw(shapes[0], "float64"))
    b = LAYOUTS[right](draw(shapes[1], "float64", 1))
    check_gradients(lambda x, y: x * y / (y * y + 1.0) + x, a, b)


@each("layout", LAYOUTS)
def test_an_output_gradient_of_any_layout(layout):
    a, row = draw((12, 30), "float64"), draw((30,), "float64", 1)
    seed = LAYOUTS[layout](draw((12, 30), "float64", 2))
    for function in (cnp.multiply, cnp.add, cnp.maximum, lambda x, y: cnp.sin(x) + y):
        for given in (seed, tensor_of(seed)):
            check_gradients(function, a, row, seed=given)
            check_gradients(function, a.T.copy().T, row, seed=given)


@each("n_axes", [8, 9, 13])
@each("other", [
    lambda n: (), lambda n: (1,) * n, lambda n: (2,), lambda n: (2,) * (n - 1),
    lambda n: (1, 2) * (n // 2), lambda n: (2,) * n,
], ids=["0-d", "one element", "row", "all but one", "every other", "all"])
def test_gradients_of_operands_with_any_number_of_axes(other, n_axes):
    a, b = draw((2,) * n_axes, "float64"), draw(other(n_axes), "float64", 1)
    for function in (cnp.add, cnp.multiply, lambda x, y: (x + 1.0) * y + (x + y) * 2.0):
        check_gradients(function, a, b)
        check_gradients(function, a.T, b)


@each(layout=["contiguous", "unaligned", "backwards"], shape=[(), (1,), (1, 1), (1, 1, 1)])
def test_gradients_of_an_operand_of_one_element(shape, layout):
    number = LAYOUTS[layout](draw(shape, "float64"))
    for other in (draw((64, 8), "float64", 1), draw((64, 8), "float64", 1).T):
        check_gradients(cnp.logaddexp, other, number)
        check_gradients(cnp.multiply, number, other)
