"""Sums into zeros at places that come again: against numpy.add.at, to the bit."""

import numpy as np

import cytape
from cytape.ops.kernels.scatter import added
from tests.cases import each

RNG = np.random.default_rng(0)
ALL = slice(None)
# name: shape, index
INDICES = {
    "a line": ((7,), RNG.integers(0, 7, 40)), "from the end": ((7,), RNG.integers(-7, 7, (5, 6))),
    "short rows": ((7, 3), RNG.integers(0, 7, 40)), "long rows": ((9, 50), RNG.integers(-4, 5, 30)),
    "rows of rows": ((4, 5, 40), (ALL, RNG.integers(0, 5, 8))),
    "columns": ((5, 6), (ALL, RNG.integers(0, 6, 20))),
    "two arrays": ((5, 6, 2), (RNG.integers(-5, 5, 30), RNG.integers(0, 6, 30))),
    "arrays that are broadcast": ((5, 6), (RNG.integers(0, 5, (4, 1)), RNG.integers(0, 6, 3))),
    "a whole slice at the end": ((5, 6), (RNG.integers(0, 5, 8), ALL)),
    "small integers": ((7,), RNG.integers(0, 7, 40).astype(np.int8)),
    "bytes the other way round": ((7,), RNG.integers(0, 7, 40).astype(">i8")),
    "unsigned ones": ((7,), RNG.integers(0, 7, 40).astype(np.uint32))}
DTYPES = ["float64", "float32", "longdouble", "complex64", "complex128"]


def by_numpy(shape, index, terms):
    total = np.zeros(shape, terms.dtype)
    np.add.at(total, index, terms)
    return total


@each(dtype=DTYPES, name=INDICES)
def test_as_numpy_adds(name, dtype):
    shape, index = INDICES[name]
    terms = RNG.normal(size=np.zeros(shape)[index].shape).astype(dtype)
    if terms.dtype.kind == "c":
        terms = terms * (1 - 2j)
    terms.reshape(-1)[:3] = -0.0
    for given in (terms, np.broadcast_to(terms.reshape(-1)[5], terms.shape),
                  np.asfortranarray(terms), np.repeat(terms, 2, axis=-1)[..., ::2]):
        found = added(shape, index, given)
        expected = by_numpy(shape, index, given)
        assert found.dtype == terms.dtype
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found.real), np.signbit(expected.real))


@each(dtype=["float64", "float32", "complex128"], most=[3, 255, 256])
@each("shape", [(100_000,), (2, 60_000)])
def test_one_number_at_many_places(dtype, most, shape):
    """Places are counted first; some come more often than a byte can count."""
    places = np.concatenate([RNG.integers(-shape[-1], shape[-1], 1000), np.full(most, 7)])
    index = (ALL,) * (len(shape) - 1) + (places,)
    terms = np.broadcast_to(np.asarray(0.1, dtype), (*shape[:-1], len(places)))
    np.testing.assert_array_equal(added(shape, index, terms), by_numpy(shape, index, terms))
    assert added(shape, (*index[:-1], np.append(places[1:], shape[-1])), terms) is None
    nothing = added(shape, (*index[:-1], places[:0]), terms[..., :0])
    np.testing.assert_array_equal(nothing, np.zeros(shape, dtype), strict=True)


def test_one_number_in_another_byte_order():
    terms = np.broadcast_to(np.asarray(3.0, ">f8"), 5)
    found = added((4,), np.array([0, 1, 1, 3, -1]), terms)
    np.testing.assert_array_equal(found, [3, 6, 0, 6])


@each("shape, index", [
    ((4,), np.array([0, 4])), ((4,), np.array([-5])), ((4, 2), (np.array([0]), np.array([2]))),
    ((4,), slice(1, 3)), ((4, 4), (slice(1, 3), np.array([0]))),
    ((4, 4, 4), (np.array([0]), ALL, np.array([1]))), ((4,), (np.array([0]), ALL)),
    ((4,), np.array([True, False, True, False])), ((4,), np.array([1], np.uint64))])
def test_arguments_left_to_numpy(shape, index):
    assert added(shape, index, np.zeros(1)) is None


def test_integers_are_left_to_numpy():
    for dtype in ("int64", "bool", "O"):
        assert added((3,), np.array([0, 1]), np.ones(2, dtype)) is None


@each("columns", [1, 100])
def test_gradients_of_rows_that_are_taken_twice(columns):
    x = cytape.constant(RNG.normal(size=(6, columns)))
    rows = np.array([1, 4, 1, -1, 1])
    gradient = cytape.grad(lambda x: (x[rows] ** 2).sum())(x)
    times = np.bincount(rows % 6, minlength=6)[:, None]
    np.testing.assert_allclose(gradient, 2 * times * x.numpy(), rtol=1e-15)


@each(dtype=["float64", "complex128", "complex64", "clongdouble"], width=[0, 1, 3, 16, 64])
def test_gradients_of_rows_of_any_width(dtype, width):
    x, rows = np.ones((3, width), dtype), np.array([0, 2, 2])
    gradient = cytape.grad(lambda x: np.sum(np.real(x[rows])))(x)
    expected = np.zeros_like(x)
    np.add.at(expected, rows, 1)
    np.testing.assert_array_equal(gradient, expected)
    assert not np.any(np.imag(gradient))
