"""Systems of equations, inverses and determinants: what the op table does not state."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.submodules.solving import solve_op
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import taped, watching

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
A = np.array([[2.0, 1.0], [0.5, 3.0]])


def test_sides_that_do_not_fit():
    with pytest.raises(ValueError, match="mismatch"):
        np.linalg.solve(cytape.constant(A), np.ones((3, 1)))
    with pytest.raises(ValueError, match="2 rows do not fit .* 3 rows"):
        cytape.function(lambda a: np.linalg.solve(a, np.ones((3, 1))))(A)


@each(b=[np.ones(2), np.ones((2, 3)), np.ones((4, 2, 3))], mode=["eager", "function"])
def test_right_hand_sides_are_vectors_only_if_they_have_one_axis(b, mode):
    run = cytape.function if mode == "function" else lambda f: f
    found = run(np.linalg.solve)(cytape.constant(A), cytape.constant(b))
    np.testing.assert_allclose(found, np.linalg.solve(A, b), rtol=1e-14)


@each(("a", "b"), [("float32", "float64"), ("complex64", "float32"), ("float64", "complex128"),
                   ("int64", "float32"), ("float64", "int8")])
def test_gradients_of_mixed_dtypes_have_their_own(a, b):
    x, y = cytape.constant(A.astype(a)), cytape.constant(np.ones(2, b))
    with watching([t for t in (x, y) if t.dtype.kind in "fc"]) as tape:
        z = cnp.real(np.linalg.solve(x, y)).sum()
    for t, gradient in zip((x, y), tape.gradient(z, [x, y]), strict=True):
        if t.dtype.kind in "fc":
            assert (gradient.dtype, gradient.shape) == (t.dtype, t.shape)
            expected = np.linalg.solve(A.astype(a).T, np.ones(2))
            if t is x:
                expected = -np.outer(expected, np.linalg.solve(A.astype(a), np.ones(2)))
            np.testing.assert_allclose(gradient, expected, rtol=1e-5)
        else:
            assert gradient is None


def test_only_the_operand_that_is_watched_has_a_gradient():
    a, b = cytape.constant(A), cytape.constant(np.ones(2))
    for source in (a, b):
        tape, y = taped(lambda source: np.linalg.solve(a, b), source)
        found = tape.gradient(y, [a, b])
        assert [g is not None for g in found] == [source is a, source is b]


@each(rank=[0, 1, 2], dtype=["float64", "complex128"])
def test_the_determinant_of_a_singular_matrix_has_its_gradient(rank, dtype):
    rng = np.random.default_rng(rank)
    u, v = rng.normal(size=(2, 3, 3)).astype(dtype)
    a = u[:, :rank] @ v[:rank]
    if rank == 2 and dtype == "float64":
        a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [5.0, 7.0, 9.0]])
    check_grads(np.linalg.det, [a], order=1)
    stack = np.stack([a, np.eye(3, dtype=dtype)])
    check_grads(np.linalg.det, [stack], order=1)


def test_the_cofactors_of_an_exactly_singular_matrix():
    np.testing.assert_allclose(cytape.grad(np.linalg.det)(SINGULAR), [[4, -2], [-2, 1]], rtol=1e-14)
    np.testing.assert_array_equal(cytape.grad(np.linalg.det)(np.zeros((1, 1))), [[1.0]])


def test_the_sign_of_a_determinant_is_a_step_where_it_is_real():
    gradient = cytape.grad(lambda a: np.linalg.slogdet(a).sign + 0 * np.sum(a))(A)
    np.testing.assert_array_equal(gradient, np.zeros((2, 2)))
    _, tangent = cytape.jvp(lambda a: np.linalg.slogdet(a).sign + 0 * np.sum(a), (A,), (A,))
    assert tangent == 0


def test_results_keep_numpys_names():
    found = np.linalg.slogdet(cytape.constant(A))
    assert type(found) is type(np.linalg.slogdet(A))
    assert float(found.logabsdet) == np.linalg.slogdet(A).logabsdet
    assert type(cytape.function(np.linalg.slogdet)(A)) is type(found)


@each("a", [(6, 2, 3), (2, 3, 6)])
def test_tensors_as_matrices_of_unknown_extents(a):
    ind = 1 if a[0] == 6 else 2
    x = np.random.default_rng(0).normal(size=a)
    f = cytape.function(lambda x: np.linalg.tensorinv(x, ind),
                        input_signature=[cytape.Spec.of((None,) * 3, float)])
    np.testing.assert_allclose(f(x), np.linalg.tensorinv(x, ind), rtol=1e-12)


def test_third_order():
    """By central differences of the second."""
    x = np.array([[2.0, 0.3], [0.1, 1.0]])
    for f in (np.linalg.inv, np.linalg.det, lambda a: np.linalg.solve(a, np.ones(2))):
        check_grads(lambda a, f=f: cytape.grad(lambda a: np.sum(f(a) ** 2))(a), [x], order=2,
                    atol=1e-4)


@each(n=[64, 65, 150], dtype=["float32", "float64", "complex128"], stack=[(), (2,)])
@each("triangle", ["lower", "upper"])
def test_triangular_systems_are_solved_by_halves(n, dtype, stack, triangle):
    rng = np.random.default_rng(n)
    a = (rng.normal(size=(*stack, n, n)) / n + np.eye(n)).astype(dtype)
    a = np.tril(a) if triangle == "lower" else np.triu(a)
    b = rng.normal(size=(*stack, n, 7)).astype(dtype)
    found = solve_op(a, b, triangle=triangle)
    assert found.dtype == dtype
    np.testing.assert_allclose(
        found, np.linalg.solve(a, b), *[1e-5 if dtype == "float32" else 1e-13] * 2)


@each("mode", ["reduced", "r", "complete"])
def test_large_factors_have_the_gradients_of_small_ones(mode):
    """Blocks on the diagonal are factored apart from each other."""
    rng = np.random.default_rng(0)
    small, weights = rng.normal(size=(2, 3, 35, 35))
    large, large_weights = np.zeros((2, 105, 105))
    for k in range(3):
        block = slice(35 * k, 35 * (k + 1))
        large[block, block], large_weights[block, block] = small[k], weights[k]

    def loss(a, weights):
        return np.sum(np.asarray(weights) * (
            np.linalg.qr(a, mode) if mode == "r" else np.linalg.qr(a, mode)[1]))

    expected = cytape.grad(loss)(small, weights) if mode != "r" else np.stack(
        [cytape.grad(loss)(a, w) for a, w in zip(small, weights, strict=True)])
    found = cytape.grad(loss)(large, large_weights)
    for k in range(3):
        block = slice(35 * k, 35 * (k + 1))
        np.testing.assert_allclose(found[block, block], expected[k], 1e-8, 1e-8)


def test_small_determinants_have_the_gradient_of_large_ones():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(60, 60)) / 8
    large = np.eye(70)
    large[:60, :60] = a
    for function in np.linalg.det, lambda a: np.linalg.slogdet(a)[1]:
        np.testing.assert_allclose(
            cytape.grad(function)(a), cytape.grad(function)(large)[:60, :60], rtol=1e-9)
