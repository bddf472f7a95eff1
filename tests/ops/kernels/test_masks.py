"""Compression by masks of all elements, and its transpose."""

import numpy as np

import cytape
from cytape.ops.engine.index_op import get_item
from cytape.ops.kernels.scatter import added
from tests.cases import each

RNG = np.random.default_rng(0)
MASKS = {
    "some": RNG.random(50) < 0.5, "none": np.zeros(50, bool), "all": np.ones(50, bool),
    "the first": np.arange(50) == 0, "the last": np.arange(50) == 49,
    "rows": RNG.random((5, 10)) < 0.5, "nothing": np.zeros(0, bool), "a number's": np.array(True)}


@each(dtype=["float64", "float32", "float16", "int64", "int32", "bool", "complex64",
                "complex128"], name=MASKS)
def test_as_numpy_chooses(dtype, name):
    mask = MASKS[name]
    x = RNG.integers(-9, 9, mask.shape).astype(dtype)
    for given in (x, np.asfortranarray(x), np.broadcast_to(x.dtype.type(3), mask.shape)):
        np.testing.assert_array_equal(get_item(given, index=mask), given[mask], strict=True)


@each(dtype=["float64", "float32", "float16", "complex64", "complex128"], name=MASKS)
def test_terms_are_put_back(dtype, name):
    mask = MASKS[name]
    terms = RNG.normal(size=np.count_nonzero(mask)).astype(dtype)
    terms[:1] = -0.0
    alike = np.broadcast_to(terms.dtype.type(3), terms.shape)
    for given in (terms, np.repeat(terms, 2)[::2], alike):
        expected = np.zeros(mask.shape, dtype)
        expected[mask] = given
        found = added(mask.shape, mask, given)
        if found is not None:
            np.testing.assert_array_equal(found, expected, strict=True)
            np.testing.assert_array_equal(np.signbit(found.real), np.signbit(expected.real))
    assert dtype not in ("float64", "float32") or added(mask.shape, mask, terms) is not None


def test_numbers_of_terms_that_do_not_fit_are_left_to_numpy():
    assert added((3,), np.array([True, False, True]), np.ones(3)) is None
    assert added((3, 2), np.array([True, False, True]), np.ones((2, 2))) is None


@each("mask", [np.arange(6) % 2 == 0, np.arange(6).reshape(2, 3) > 2, np.array([True, False])])
def test_gradients_of_what_masks_choose(mask):
    x = np.arange(1.0, 7).reshape((2, 3) if mask.shape in ((2, 3), (2,)) else 6)
    expected = np.where(mask if mask.shape == x.shape else mask[:, None], 2 * x, 0)
    gradient = cytape.grad(lambda x: np.sum(x[mask] ** 2))
    for f in (gradient, cytape.function(gradient)):
        np.testing.assert_array_equal(f(x), expected)


@each("transform", [lambda f: f, cytape.function])
def test_masks_and_places_are_what_they_were_when_a_gradient_is_asked_for(transform):
    for index in (np.array([True, False, True]), np.array([0, 2])):
        x, kept = cytape.constant([1.0, 2.0, 3.0]), index.copy()
        with cytape.GradientTape() as tape:
            tape.watch(x)
            y = transform(lambda x, at=kept: x[at])(x)
        kept[...] = kept[::-1] if kept.dtype == bool else 1
        kept[0] = False
        np.testing.assert_array_equal(tape.gradient(y, x), [1, 0, 1])


def test_masks_may_be_bytes():
    mask = np.array([255, 0, 255, 0, 2], np.uint8).view(bool)
    x = np.arange(1.0, 6.0)
    np.testing.assert_array_equal(cytape.constant(x)[mask], [1.0, 3.0, 5.0])
    np.testing.assert_array_equal(
        cytape.grad(lambda x: np.sum(x[mask] ** 2))(x), [2.0, 0.0, 6.0, 0.0, 10.0])
