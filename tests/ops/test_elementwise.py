"""Elementwise functions at special points, and with NumPy's keywords."""

import inspect

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.adjoints.complex_parts import imag_op
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import gradients, watching

inf, nan = np.inf, np.nan


SPECIAL_GRADIENTS = [
    # function, inputs, gradient in each input
    ("sqrt", [0.0], [inf]), ("cbrt", [0.0], [inf]), ("log", [0.0], [inf]),
    ("reciprocal", [0.0], [-inf]), ("exp", [-inf], [0.0]), ("tanh", [inf], [0.0]),
    ("arctan", [inf], [0.0]), ("power", [0.0, 2.0], [0.0, 0.0]), ("power", [0.0, 1.0], [1.0, 0.0]),
    ("power", [0.0, 0.0], [0.0, 0.0]), ("power", [3.0, 0.0], [0.0, np.log(3.0)]),
    ("power", [-2.0, 3.0], [12.0, nan]), ("power", [0.0, 0.5], [inf, 0.0]),
    ("float_power", [0.0, 2.0], [0.0, 0.0]), ("hypot", [0.0, 0.0], [0.0, 0.0]),
    ("hypot", [1e200, 0.0], [1.0, 0.0]), ("arctan2", [0.0, 0.0], [0.0, 0.0]),
    ("arcsinh", [1e200], [1e-200]), ("arcsinh", [-1e200], [1e-200]),
    ("arctan2", [0.0, 1e-200], [1e200, 0.0]), ("absolute", [0.0], [0.0]),
    ("absolute", [-inf], [-1.0]), ("fabs", [-0.0], [0.0]), ("copysign", [-2.0, -0.0], [1.0, None]),
    ("heaviside", [0.0, 0.5], [None, 1.0]), ("heaviside", [-0.0, np.inf], [None, 1.0]),
    ("heaviside", [2.0, np.inf], [None, 0.0]), ("sinc", [0.0], [0.0]),
    ("logaddexp", [-inf, -inf], [1.0, 1.0]), ("logaddexp", [0.0, -inf], [1.0, 0.0]),
    ("logaddexp", [inf, 0.0], [1.0, 0.0]), ("logaddexp", [1000.0, 1000.0], [0.5, 0.5]),
    ("logaddexp", [nan, 0.0], [nan, nan]), ("logaddexp2", [-inf, -inf], [1.0, 1.0]),
    ("maximum", [1.0, 1.0], [0.5, 0.5]), ("minimum", [1.0, 1.0], [0.5, 0.5]),
    ("fmax", [1.0, 1.0], [0.5, 0.5]), ("fmin", [1.0, 1.0], [0.5, 0.5]),
    ("maximum", [inf, inf], [0.5, 0.5]), ("minimum", [0.0, -0.0], [0.5, 0.5]),
    ("maximum", [0.0, nan], [0.0, 1.0]), ("maximum", [nan, 0.0], [1.0, 0.0]),
    ("minimum", [0.0, nan], [0.0, 1.0]), ("minimum", [nan, 0.0], [1.0, 0.0]),
    ("fmax", [0.0, nan], [1.0, 0.0]), ("fmax", [nan, 0.0], [0.0, 1.0]),
    ("fmin", [nan, 0.0], [0.0, 1.0]), ("fmin", [0.0, nan], [1.0, 0.0]),
    ("clip", [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]), ("clip", [1.0, 0.0, 1.0], [1.0, 0.0, 0.0]),
    ("clip", [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0]), ("clip", [inf, 0.0, 1.0], [0.0, 0.0, 1.0]),
    ("clip", [nan, 0.0, 1.0], [1.0, 0.0, 0.0]), ("clip", [1.0, 3.0, 1.0], [0.0, 0.0, 1.0]),
    ("clip", [3.0, 3.0, 1.0], [0.0, 0.0, 1.0]), ("clip", [1.0, 1.0, 1.0], [1.0, 0.0, 0.0]),
    ("nan_to_num", [nan], [0.0]), ("nan_to_num", [inf], [0.0]), ("nan_to_num", [2.0], [1.0]),
    ("remainder", [-1.0, 3.0], [1.0, 1.0]), ("fmod", [-4.0, 3.0], [1.0, 1.0]),
]


@each(("name", "inputs", "expected"), SPECIAL_GRADIENTS)
def test_gradient_at_special_point(name, inputs, expected):
    with np.errstate(all="ignore"):
        actual = gradients(getattr(cnp, name), *inputs)
    for gradient, value in zip(actual, expected, strict=True):
        if value is None:
            assert gradient is None
        else:
            np.testing.assert_allclose(gradient, value, rtol=1e-12)


@each("reduce", [np.logaddexp.reduce, np.logaddexp2.reduce])
def test_probabilities_of_zero_are_summed_without_a_warning(reduce):
    """In whatever way the gradient is computed: a warning is an error here."""
    def total(x):
        return reduce(x - np.inf)

    x = np.array([1.0, 2.0])
    for gradient in (cytape.grad(total), cytape.function(cytape.grad(total)),
                     cytape.grad(cytape.function(total))):
        np.testing.assert_array_equal(gradient(x), [1.0, 1.0])
    np.testing.assert_array_equal(cytape.hessian(total)(x), np.zeros((2, 2)))


@each(("f", "x", "expected"), [
    (lambda x: cnp.sqrt(cnp.maximum(x, 0.0)), [-1.0, 4.0], [0.0, 0.25]),
    (lambda x: cnp.sqrt(cnp.clip(x, 0.0, 1.0)), [-1.0, 0.25, 2.0], [0.0, 1.0, 0.0]),
    (lambda x: cnp.where(x > 0, cnp.log(cnp.where(x > 0, x, 1.0)), 0.0), [0.0, 2.0], [0, 0.5]),
    (lambda x: cnp.where(x > 0, cnp.log(x), 0.0), [-1.0, 2.0], [0.0, 0.5])])
def test_unselected_elements_get_no_gradient(f, x, expected):
    with np.errstate(all="ignore"):
        (gradient,) = gradients(f, np.array(x))
    np.testing.assert_array_equal(gradient, expected)


@each("x", [0.0, 1e-8, 0.05, 0.0999, 0.1001, -0.3, 1.0, 7.5])
def test_sinc_has_accurate_derivatives_near_zero(x):
    t = np.pi * x
    first = (np.cos(t) - np.sinc(x)) / x if abs(x) > 0.01 else -(np.pi**2) * x / 3
    np.testing.assert_allclose(gradients(cnp.sinc, x)[0], first, rtol=1e-11, atol=1e-15)
    second = cytape.grad(cytape.grad(cnp.sinc))(x)
    if abs(x) > 0.01:
        expected = -(np.pi**2) * np.sinc(x) - 2 * first / x
        np.testing.assert_allclose(second, expected, rtol=1e-8, atol=1e-10)
    else:
        np.testing.assert_allclose(second, -(np.pi**2) / 3, rtol=1e-8)


def test_D_2_18_where_takes_the_gradient_of_the_branch_taken():
    f = lambda x: cnp.where(x < 10, x, x * x)  # noqa: E731
    assert gradients(f, 5.0) == [1.0]
    assert gradients(f, 50.0) == [100.0]


@each("n", [0, 1, 2, 3])
def test_integer_powers_at_zero_to_any_order(n):
    f = lambda x: x**n  # noqa: E731
    for order in range(4):
        expected = float(np.prod(range(n - order + 1, n + 1))) * 0.0 ** max(n - order, 0)
        assert nth_derivative(f, order, 0.0) == (expected if order <= n else 0.0)


def nth_derivative(f, order, x):
    for _ in range(order):
        f = cytape.grad(f)
    return f(x)


HOLOMORPHIC = {
    "arcsin": lambda z: 1 / np.sqrt(1 - z * z), "arccos": lambda z: -1 / np.sqrt(1 - z * z),
    "arctan": lambda z: 1 / (1 + z * z), "arcsinh": lambda z: 1 / np.sqrt(1 + z * z),
    "arccosh": lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1)),
    "arctanh": lambda z: 1 / (1 - z * z), "sqrt": lambda z: 0.5 / np.sqrt(z),
    "log": lambda z: 1 / z}


@each(name=HOLOMORPHIC, z=[2 + 1j, -2 + 1j, -2 - 1j, 2 - 1j, 0.3 + 2j, -0.3 - 2j])
def test_gradient_is_the_conjugate_derivative_in_every_quadrant(name, z):
    (gradient,) = gradients(getattr(cnp, name), z)
    np.testing.assert_allclose(gradient, np.conj(HOLOMORPHIC[name](z)), rtol=1e-12)
    check_grads(getattr(cnp, name), [z], order=1)


def test_magnitude_and_angle_of_complex_zero():
    assert gradients(cnp.abs, 0j) == [0]
    assert gradients(cnp.angle, 0j) == [0]


def test_python_scalars_are_weak():
    x = cytape.constant(np.ones(3, np.float32))
    for value in (2 * x, x**2, x / 3, cnp.maximum(x, 0.5), cnp.where(x > 0, x, 0.0),
                  cnp.logaddexp(x, 0.0), cnp.clip(x, 0, 1), cnp.hypot(3.0, x)):
        assert value.dtype == np.float32


def test_where_of_a_condition_alone_gives_indices():
    condition = np.array([[True, False], [False, True]])
    for given in (condition, cytape.constant(condition), condition.tolist()):
        rows, columns = cnp.where(given)
        assert rows.tolist() == columns.tolist() == [0, 1]


def test_where_of_a_watched_condition_alone():
    x = cytape.constant([0.0, 3.0])
    with watching(x):
        (index,) = cnp.where(x)
    assert index.tolist() == [1]


def test_where_wants_both_operands_or_none():
    x = cytape.constant([1.0])
    with pytest.raises(ValueError, match="both or neither"):
        cnp.where(x > 0, x)


@each("function", [cnp.sin, imag_op])
def test_help_says_what_numpy_says(function):
    theirs = inspect.getdoc(function.forward).partition("\n\nParameters")[0]
    assert function.__doc__.startswith(theirs)
    assert "result is a tensor" in function.__doc__


def test_a_quotient_by_a_number_whose_reciprocal_overflows():
    for dtype in (np.float64, np.float32):
        y = np.full(9, np.finfo(dtype).smallest_subnormal)
        for gradient in gradients(lambda y: np.sum(0 / y), y):
            np.testing.assert_array_equal(gradient, np.zeros(9, dtype))


@each(traced=[False, True], dtype=["float32", "float64"])
def test_the_gradient_of_a_remainder_is_the_quotient_of_numpy(dtype, traced):
    greatest, least = float(np.finfo(dtype).max), float(np.finfo(dtype).tiny)
    x, y = np.array([
        (0.9 * greatest, -0.8 * greatest), (-0.9 * greatest, 0.8 * greatest),
        (-greatest, 0.3 * greatest), (greatest, greatest), (greatest, -least), (greatest, 1.0),
        (5.0, np.inf), (5.0, -np.inf), (-5.0, np.inf), (7.0, 3.0), (-7.0, 3.0), (1.0, 0.1),
        (8 * least, -3 * least), (-least, 1.0),
    ], dtype).T
    gradient = cytape.grad(lambda y, x: np.sum(np.remainder(x, y)))
    with np.errstate(over="ignore", invalid="ignore"):
        found = (cytape.function(gradient) if traced else gradient)(y, x)
        np.testing.assert_array_equal(found, -np.floor_divide(x, y))


def test_the_derivative_of_expm1_does_not_cancel():
    np.testing.assert_allclose(cytape.grad(cnp.expm1)(-30.0), np.exp(-30.0), 1e-15)
