"""Functions of matrices: SciPy's values, derivatives, complex results of real matrices."""

import warnings

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

linalg = pytest.importorskip("scipy.linalg")
ours = pytest.importorskip("cytape.scipy.linalg")

A = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 0.2], [0.5, 0.2, 6.0]])
C = A + 0.5j * np.triu(A, 1)
SIGNED = np.array([[1.0, 2.0, 0.1], [0.3, -3.0, 0.4], [0.2, 0.1, 2.0]])
FUNCTIONS = {
    "expm": A / 4, "logm": A, "sqrtm": A, "signm": SIGNED, "cosm": A / 4, "sinm": A / 4,
    "tanm": A / 8, "coshm": A / 4, "sinhm": A / 4, "tanhm": A / 4}


@each(name=FUNCTIONS, imaginary=[0, 0.2j])
def test_functions(name, imaginary):
    a = FUNCTIONS[name] + imaginary * np.triu(A)
    expected = getattr(linalg, name)(a)
    found = getattr(ours, name)(cytape.constant(a))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, 1e-12, 1e-14)
    check_grads(getattr(ours, name), [a], order=1 if imaginary else 2)


@each("name", ["expm", "logm", "sqrtm", "cosm"])
def test_all_ways(name):
    def plain(a):
        w, v = np.linalg.eigh((a + a.T) / 2)
        f = {"expm": np.exp, "logm": np.log, "sqrtm": np.sqrt, "cosm": np.cos}[name]
        return np.sum(((v * f(w)) @ v.T) ** 3)

    ways.check(lambda a: np.sum(getattr(ours, name)((a + a.T) / 2) ** 3), plain, A / 3,
               ways=ways.OF_KNOWN_EXTENTS, rtol=1e-7, atol=1e-8)


def test_powers_in_the_matrix_and_in_the_exponent():
    np.testing.assert_allclose(
        ours.fractional_matrix_power(cytape.constant(A), 0.3),
        linalg.fractional_matrix_power(A, 0.3), 1e-13)
    check_grads(lambda a: ours.fractional_matrix_power(a, -0.4), [A])
    check_grads(ours.fractional_matrix_power, [A, 0.3])


def test_the_derivative_of_the_exponential():
    for x, y in zip(ours.expm_frechet(cytape.constant(A), C), linalg.expm_frechet(A, C),
                    strict=True):
        np.testing.assert_allclose(x, y, 1e-11)
    check_grads(lambda a, e: ours.expm_frechet(a, e, compute_expm=False), [A / 4, C])
    with pytest.raises(ValueError, match="implementation"):
        ours.expm_frechet(cytape.constant(A), A, "x")


def test_the_exponential_is_differentiated_to_third_order():
    f = cytape.grad(cytape.grad(cytape.grad(lambda x: ours.expm(x * A / 5)[0, 1])))
    step = 1e-4
    second = [linalg.expm(x * A / 5) @ A @ A / 25 for x in (1 - step, 1 + step)]
    np.testing.assert_allclose(f(1.0), (second[1] - second[0])[0, 1] / (2 * step), 1e-6)


@pytest.mark.filterwarnings("ignore:(logm result|The logm input matrix) may be")
def test_gradients_of_logarithms_of_scaled_matrices():
    def f(a):
        return np.sum(np.sin(A) * np.real(ours.logm(a)))

    expected = cytape.grad(f)(A)
    for scale in (1e-150, 1e-3, 1e150):
        np.testing.assert_allclose(cytape.grad(f)(A * scale) * scale, expected, 1e-12)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.all(np.isnan(cytape.grad(f)(np.diag([0.0, 1.0, 2.0]))))


@each("name", ["sqrtm", "logm"])
def test_complex_results_of_real_matrices(name):
    f, a = getattr(ours, name), np.diag([1.0, -2.0]) + 0.1
    assert f(cytape.constant(a)).dtype == np.complex128
    check_grads(lambda a: np.abs(f(a)), [a], order=1)
    with pytest.raises(ValueError, match=f"{name} of this real matrix is complex.*a \\+ 0j"):
        cytape.function(f)(a)
    np.testing.assert_allclose(
        cytape.function(lambda a: f(a + 0j))(a), getattr(linalg, name)(a), 1e-12)


def test_repeated_eigenvalues():
    for function in (ours.logm, ours.sqrtm, ours.expm):
        check_grads(function, [np.array([[2.0, 1.0], [0.0, 2.0]])], order=1)


def test_errors_are_scipys():
    with pytest.raises(np.linalg.LinAlgError):
        ours.expm(cytape.constant([1.0, 2.0]))


@each("dtype", ["f4", "f8", "F", "D"])
def test_dtypes_of_logarithms_and_powers(dtype):
    a = np.array([[2.0, 0.25], [0.5, 3.0]], dtype)
    for name, options in ("logm", ()), ("fractional_matrix_power", (0.5,)):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of the precision of single numbers
            expected = getattr(linalg, name)(a, *options)
            f = cytape.function(lambda a: getattr(ours, name)(a, *options))  # noqa: B023
            found = f(a)
            slope = cytape.function(cytape.grad(lambda a: np.sum(f(a)).real))(a)  # noqa: B023
        np.testing.assert_allclose(found, expected, 1e-6)
        assert found.dtype == expected.dtype and slope.dtype == a.dtype


@each("name", ["logm", "sqrtm", "signm"])
def test_pairs_are_refused(name):
    with pytest.raises(TypeError, match="does not take disp=False"):
        getattr(ours, name)(cytape.constant(A), disp=False)


@each("name", ["expm", "sqrtm", "cholesky"])
def test_numbers_are_matrices_of_one_element(name):
    for x in np.array(0.3), np.array([0.3]):
        np.testing.assert_allclose(
            getattr(ours, name)(cytape.constant(x)), getattr(linalg, name)([[0.3]]))
        gradient = cytape.grad(lambda x, name=name: getattr(ours, name)(x)[0, 0])
        np.testing.assert_allclose(gradient(x), np.reshape(gradient(np.full((1, 1), 0.3)), x.shape))


@each("name", ["cosm", "lu_factor"])
def test_matrices_have_two_axes(name):
    with pytest.raises(np.linalg.LinAlgError, match="at least two-dimensional"):
        getattr(ours, name)(cytape.constant(0.3))


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")
@each(name=["sqrtm", "signm", "logm"], factor=[1.0, -1.0], dtype=["f4", "f8", "c8"])
def test_dtypes_of_results(name, factor, dtype):
    a = np.array([[4.0, 1.0], [0.5, 9.0]], dtype) * np.array(factor, dtype)
    expected = getattr(linalg, name)(a)
    found = getattr(ours, name)(cytape.constant(a))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, 1e-5, 1e-6)
    if expected.dtype.kind == a.dtype.kind:
        traced = cytape.function(getattr(ours, name))(cytape.constant(a))
        assert traced.dtype == expected.dtype


@each("name", ["expm", "sqrtm", "cosm"])
def test_derivatives_of_batches_without_members(name):
    a = np.zeros((0, 3, 3))
    assert cytape.grad(lambda a: np.sum(getattr(ours, name)(a)))(a).shape == a.shape
    assert cytape.jvp(getattr(ours, name), (a,), (a,))[1].shape == a.shape
