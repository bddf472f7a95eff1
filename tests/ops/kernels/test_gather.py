"""Slices taken along an axis, against numpy.take, lines of one number, slopes between points."""

import numpy as np

from cytape.ops.kernels.gather import are_alike, of_pieces, slopes_at, taken
from tests.cases import each

RNG = np.random.default_rng(0)
SHAPES = [((7,), 0), ((7, 3), 0), ((4, 5), 1), ((3, 4, 5), 1), ((3, 1), 0), ((3, 0), 0)]


@each("dtype", ["float64", "float32", "float16", "complex128", "longdouble", "int8", "bool"])
@each("mode", ["raise", "wrap", "clip"])
@each("shape, axis", SHAPES)
@each("n", [(), (9,), (2, 3), (0,)])
@each("first", [0, -1])
def test_as_numpy_takes(dtype, mode, shape, axis, n, first):
    x = RNG.integers(0, 100, shape).astype(dtype)
    ends = (first * shape[axis], shape[axis]) if mode == "raise" else (first * 30, 30)
    places = np.asarray(RNG.integers(*ends, n))
    found, expected = taken(x, places, axis, mode), np.take(x, places, axis, mode=mode)
    if expected.ndim == 0:
        assert found is None
    else:
        np.testing.assert_array_equal(found, expected, strict=True)


@each("mode", ["raise", "wrap", "clip"])
def test_of_one_number_one_is_shown(mode):
    found = taken(np.broadcast_to(2.5, (4, 3)), np.array([[-1, 3, -4]]), 0, mode)
    np.testing.assert_array_equal(found, np.full((1, 3, 3), 2.5), strict=True)
    assert not any(found.strides)


@each("x, places, axis, mode", [
    (np.ones(4), np.array([0, 4]), 0, "raise"), (np.ones(4), np.array([-5]), 0, "raise"),
    (np.ones((2, 4)), np.array([1, 4]), 1, "raise"),
    *[(np.broadcast_to(1.0, 4), np.array([0, place, 1]), 0, "raise")
      for place in (4, -5, np.iinfo(np.intp).max, np.iinfo(np.intp).min)],
    *[(np.broadcast_to(1.0, 0), np.array([0]), 0, mode) for mode in ("raise", "wrap", "clip")],
    *[(np.ones(shape), np.array([0]), 0, mode)
      for shape in ((0,), (0, 2)) for mode in ("raise", "wrap", "clip")],
    (np.ones(8)[::2], np.array([0]), 0, "raise"), (np.ones(4), np.array([0], np.int32), 0, "raise"),
    (np.ones(4, ">f8"), np.array([0]), 0, "raise"), (np.ones(4, "O"), np.array([0]), 0, "raise"),
    (np.ones(4), [0], 0, "raise"), ([1.0], np.array([0]), 0, "raise"),
    (np.ones(4), np.array([0]), 1, "raise"), (np.ones(4), np.array([0]), 0, "bogus"),
    (np.ones(4), np.array([0, 0, 1])[::2], 0, "raise"),
])
def test_arguments_left_to_numpy(x, places, axis, mode):
    assert taken(x, places, axis, mode) is None


@each("lines, expected", [
    (np.ones(5), True), (np.ones((3, 5), np.complex64), True),
    (np.arange(3.0)[:, None] + [0, 0], True),
    (np.broadcast_to(np.arange(3.0)[:, None], (3, 4)), True), (np.ones((3, 1)), True),
    (np.array([2.0, 2.0, 3.0]), False), (np.array([[1.0, 1.0], [1.0, 2.0]]), False),
    (np.array([0.0, -0.0]), False), (np.broadcast_to(np.arange(4.0), (3, 4)), False),
    (np.array(1.0), False), (np.ones((3, 0)), True), (np.ones(8)[::2], False),
    (np.full(3, np.nan), True)])
def test_lines_of_one_number(lines, expected):
    assert are_alike(lines) is expected


@each("xp, fp", [
    ([0.0, 1.0, 3.0], [2.0, 4.0, 1.0]), ([0.0, 1.0, 1.0, 2.0, 2.0], [0.0, 1.0, 5.0, 6.0, 8.0]),
    ([0.5], [3.0]), ([-np.inf, 0.0, np.inf], [1.0, 2.0, 4.0])])
def test_slopes_are_those_of_the_pieces_right_of_points(xp, fp):
    xp, fp = np.array(xp), np.array(fp)
    x = np.array([[-1.0, 0.0, 0.5, 1.0], [1.5, 2.0, 3.0, 3.5], [np.inf, -np.inf, np.nan, 0.25]])
    with np.errstate(all="ignore"):
        pieces = np.where(np.diff(xp) == 0, 0, np.diff(fp) / np.diff(xp))
    padded = np.array([0.0, *pieces, pieces[-1] if len(pieces) else 0])  # and behind the last
    expected = np.where(x > xp[-1], 0, padded[xp.searchsorted(x, "right")])
    np.testing.assert_array_equal(slopes_at(x, xp, fp), expected, strict=True)
    values = np.array([*pieces, np.nan])  # the last one is not read
    np.testing.assert_array_equal(of_pieces(values, x, xp), expected, strict=True)
    assert slopes_at(x[:, ::2], xp, fp) is None is of_pieces(fp, x[:, ::2], xp)
    assert slopes_at(x, xp, fp.astype(complex)) is None is of_pieces(fp.astype(complex), x, xp)
