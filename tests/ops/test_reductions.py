"""Special cases of the reductions: ties, nothing to reduce, bad arguments."""

import functools
import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as ops
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import gradient, hessian_times, taped

REDUCTIONS = ["sum", "mean", "prod", "max", "min", "var", "std"]


@each("function", [ops.max, ops.min])
def test_ties_share_the_gradient_equally(function):
    np.testing.assert_array_equal(gradient(function, [2.0, 2.0, 2.0, 2.0]), np.full(4, 0.25))
    x = np.array([[1.0, 1.0, 0.0], [3.0, 2.0, 3.0]]) * (1 if function is ops.max else -1)
    np.testing.assert_array_equal(gradient(lambda t: function(t, axis=1), x), [[0.5, 0.5, 0], [
        0.5, 0, 0.5]])
    np.testing.assert_array_equal(gradient(function, x), [[0, 0, 0], [0.5, 0, 0.5]])


def test_second_derivative_of_max_is_zero():
    x = [1.0, 3.0, 3.0]
    square = hessian_times(lambda t: ops.max(t) ** 2, x, [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(square, [0, 1, 1])


@pytest.mark.filterwarnings("ignore")
@each("name", ["mean", "var", "std"])
def test_mean_of_nothing_is_nan_and_has_an_empty_gradient(name):
    function = getattr(ops, name)
    assert np.isnan(function(cytape.constant([])).numpy())
    assert gradient(function, np.zeros((0, 3))).shape == (0, 3)


WHERE = np.array([[True, False, True], [False, False, False]])
X = np.array([[0.3, -0.4, 0.8], [1.5, 2.5, -0.6]])


@each("name", ["sum", "prod", "max", "min"])
def test_a_recorded_start_beside_a_plain_array(name):
    def f(initial, mask=WHERE):
        return getattr(ops, name)(X, axis=1, initial=initial, where=mask)

    check_grads(f, [np.float64(0.2)], order=2)
    check_grads(cytape.function(f), [np.float64(0.2)], order=2)
    np.testing.assert_array_equal(f(0.2, cytape.constant(WHERE)), f(0.2))
    assert f(cytape.constant(np.float32(0.2))).dtype == np.float64


def test_an_extremum_shares_the_gradient_with_the_start_that_it_equals():
    dx, start = cytape.grad(lambda x, initial: np.max(x, initial=initial), (0, 1))(
        np.array([1.0, 2.0, 2.0]), 2.0)
    np.testing.assert_array_equal(dx, [0.0, 0.25, 0.25])
    assert start == 0.5


def test_omitted_elements_may_be_nan_or_infinite():
    x = np.array([1.0, np.nan, np.inf, 3.0])
    for name in ("sum", "prod", "mean", "var", "std"):
        f = getattr(ops, name)
        gradient = cytape.grad(lambda x: f(x, where=np.isfinite(x)))(x)  # noqa: B023
        np.testing.assert_array_equal(gradient[1:3], 0)
        np.testing.assert_allclose(gradient[[0, 3]], cytape.grad(f)(x[[0, 3]]))


@each("f, error, words", [
    (lambda x: np.sum(x, where=[1.0, 0.0, 1.0]), TypeError, "booleans, got float64"),
    (lambda x: np.mean(x, where=[True, False]), ValueError, "broadcast|does not fit"),
    (lambda x: np.sum(x, where=np.ones((2, 3), bool)), ValueError, r"\(2, 3\) does not fit"),
    (lambda x: np.prod(x, initial=np.ones(2)), ValueError, "single number"),
    (lambda x: np.sum(x, initial=1j), TypeError, "initial must be real .* got complex128"),
    (lambda x: np.max(x, initial=1j), TypeError, "initial must be real"),
    (lambda x: np.max(x, where=[True, False, True]), ValueError, "initial"),
    (lambda x: np.max(x[:0]), ValueError, "identity")])
def test_a_mask_or_a_start_that_does_not_fit(f, error, words):
    with pytest.raises(error, match=words):
        f(cytape.constant(np.ones(3)))


def test_a_mean_of_nothing_is_numpys():
    with np.errstate(invalid="ignore"), pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        found = np.mean(cytape.constant(X), axis=1, where=WHERE)
    np.testing.assert_array_equal(np.isnan(found), [False, True])


@each("name", ["sum", "mean", "prod", "var", "std"])
def test_dtype_of_the_result_is_asked_for_and_the_gradient_keeps_its_own(name):
    x = cytape.constant(np.array([1.5, 2.5, 4.0], np.float32))
    tape, y = taped(lambda x: getattr(ops, name)(x, dtype=np.float64), x)
    assert y.dtype == np.float64
    assert tape.gradient(y, x).dtype == np.float32


@each(function=[ops.max, ops.min], axis=[None, 0, 1, (0, 1)])
def test_few_extrema_of_many_elements_share_the_gradient(function, axis):
    x = np.random.default_rng(0).permutation(200).reshape(10, 20) * 1.0
    x[:, 3] = x[:, 7]  # ties in every row
    x[[2, 5], 9] = 1000 if function is ops.max else -1000
    where = x == function(x, axis=axis, keepdims=True)
    share = where / where.sum(axis, keepdims=True)
    np.testing.assert_array_equal(gradient(lambda t: function(t, axis=axis), x), share)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_nan_among_many_elements_passes_through_max():
    x = np.arange(100.0)
    x[50] = np.nan
    assert np.isnan(gradient(ops.max, x)).all()


@each("name", ["sum", "prod", "mean", "var", "std", "cumsum", "cumprod", "cumulative_prod",
               "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nancumprod"])
@each("dtype", [float, complex, np.float32])
@each("x", [np.array([1 + 0.5j, 0.3 - 0.2j, 2 + 1j, 0.7 - 0.3j]), np.array([1.0, 0.3, 2.0, 0.7])])
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_results_of_another_dtype_and_their_derivatives(name, dtype, x):
    """NumPy drops imaginary parts before it multiplies; of a variance it does so in the mean."""
    function, expected = getattr(ops, name), getattr(np, name)(x, dtype=dtype)
    for way in (lambda f: f, cytape.function):
        found = way(lambda x: function(x, dtype=dtype))(cytape.constant(x)).numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype is np.float32 else 1e-12)
    if dtype is not np.float32:
        check_grads(lambda x: function(x, dtype=dtype), [x], order=1)


@each("name", ["max", "min", "nanmax", "nanmin"])
def test_where_may_be_true_without_a_start(name):
    x = np.array([[1.0, 3.0], [2.0, 0.5]])
    for module in (np, ops):
        found = getattr(module, name)(cytape.constant(x), axis=0, where=True)
        np.testing.assert_array_equal(found.numpy(), getattr(np, name)(x, axis=0, where=True))


@each("name", ["nanmean", "nanvar", "nanstd"])
def test_inexact_numbers_are_not_averaged_as_integers(name):
    with pytest.raises(TypeError, match="If a is inexact, then dtype must be inexact"):
        getattr(ops, name)(cytape.constant([1.5, 2.0]), dtype=int)


@each("name", ["max", "min", "ptp"])
@each("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_slopes_where_the_extremum_is_nan_are_nan_without_a_warning(name, dtype):
    x = np.array([[1.0, np.nan, 3.0], [1.0, 3.0, 3.0]], dtype)
    slope = cytape.elementwise_grad(lambda x: np.real(getattr(np, name)(x, axis=1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = slope(x)
        np.testing.assert_array_equal(cytape.function(slope)(x), expected, strict=True)
    assert np.isnan(expected[0]).all() and not np.isnan(expected[1]).any()


@each("name", ["max", "min"])
def test_extrema_of_nothing_where_extents_are_not_known_are_where_they_begin(name):
    signature = [cytape.Spec.of((None, 4), float), cytape.Spec.of((), float)]

    @functools.partial(cytape.function, input_signature=signature)
    def f(x, initial):
        tape, y = taped(lambda initial: getattr(ops, name)(x, axis=0, initial=initial), initial)
        return y, tape.gradient(y, initial)

    beyond = 1.0 if name == "max" else -1.0
    for values, start in [(np.zeros((0, 4)), 0.5), (np.zeros((2, 4)), beyond)]:
        y, slope = f(values, start)
        np.testing.assert_array_equal(y, np.full(4, start))
        assert slope == 4
