"""Second derivatives of functions of values where some are equal: right, or an error."""

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from tests.cases import each, sampled

RNG = np.random.default_rng(3)
TURN, _ = np.linalg.qr(RNG.normal(size=(3, 3)))
POINTS = {
    "one value": np.eye(3), "two": np.diag([1.0, 1.0, 3.0]),
    "two, turned": TURN @ np.diag([2.0, 1.0, 1.0]) @ TURN.T,
    "by rounding": np.diag([1.0, 1.0 + 4e-16, 3.0]), "none": np.diag([1.0, 2.0, 4.0])}


def symmetric(a):
    return (a + np.swapaxes(a, -1, -2)) / 2


def power(a, n):
    return a if n == 1 else a @ power(a, n - 1)


# A function of the values, and the same of the matrix.
FUNCTIONS = {
    "squares": (lambda a: np.sum(np.linalg.eigvalsh(symmetric(a)) ** 2),
                lambda a: np.trace(power(symmetric(a), 2))),
    "cubes": (lambda a: np.sum(np.linalg.eigh(symmetric(a))[0] ** 3),
              lambda a: np.trace(power(symmetric(a), 3))),
    "logarithms": (lambda a: np.sum(np.log(np.linalg.eigvalsh(symmetric(a)))),
                   lambda a: np.linalg.slogdet(symmetric(a))[1]),
    "square of the sum": (lambda a: np.sum(np.linalg.eigvalsh(symmetric(a))) ** 2,
                          lambda a: np.trace(a) ** 2),
    "squares of singular values": (lambda a: np.sum(np.linalg.svdvals(a) ** 2),
                                   lambda a: np.sum(a * a)),
    "fourth powers": (lambda a: np.sum(np.linalg.svd(a, compute_uv=False) ** 4),
                      lambda a: np.sum((a.T @ a) ** 2)),
    "logarithms of singular values": (lambda a: np.sum(np.log(np.linalg.svd(a)[1])),
                                      lambda a: np.linalg.slogdet(a)[1]),
    "of hermitian": (lambda a: np.sum(np.linalg.svd(symmetric(a), hermitian=True)[1] ** 2),
                     lambda a: np.sum(symmetric(a) ** 2)),
    "squares of eigvals": (lambda a: np.sum(np.real(np.linalg.eigvals(a) ** 2)),
                           lambda a: np.trace(a @ a)),
}
MODES = {
    "hessian": cytape.hessian, "traced hessian": lambda f: cytape.function(cytape.hessian(f)),
    "hessian of a traced function": lambda f: cytape.hessian(cytape.function(f)),
    "reverse over reverse": lambda f: cytape.jacrev(cytape.grad(f)),
    "traced, reverse": lambda f: cytape.function(cytape.jacrev(cytape.grad(f))),
    "reverse over forward": lambda f: cytape.jacrev(cytape.jacfwd(f)),
    "forward over forward": lambda f: cytape.jacfwd(cytape.jacfwd(f))}


@sampled(4, function=FUNCTIONS, point=POINTS, mode=MODES)
def test_the_second_derivative_is_right_or_an_error(function, point, mode):
    f, expected = FUNCTIONS[function]
    x = POINTS[point]
    try:
        with np.errstate(all="ignore"):
            found = MODES[mode](f)(x)
    except NotDifferentiableError as error:
        assert point != "none", error
        assert "hessian" not in mode or "eigvals" in function, error
        assert "are equal (" in str(error)
        assert "np.trace(a @ a)" in str(error)
        return
    if "over forward" in mode and np.isnan(found).any():
        assert point != "none" and function in (
            "cubes", "logarithms of singular values", "of hermitian")
        return  # of functions that return vectors, too
    np.testing.assert_allclose(found, cytape.hessian(expected)(x), atol=1e-12)


@each("function", [
    lambda a: np.sum(np.linalg.eigvalsh(symmetric(a))[:2]), lambda a: np.linalg.norm(a, "nuc"),
    lambda a: np.sum(np.linalg.svdvals(a)[1:])])
@each("mode", ["hessian", "traced hessian", "reverse over reverse"])
def test_constant_gradients_need_no_second_derivative_in_the_values(function, mode):
    x = np.diag([1.0, 1.0, 3.0]) if "svd" not in function.__code__.co_names else (
        np.diag([3.0, 1.0, 1.0]))
    found = np.asarray(MODES[mode](function)(x)).reshape(9, 9)
    step, t = 1e-4, RNG.normal(size=(3, 3))
    gradient = cytape.grad(function)
    # Differences of gradients split the values, whose sum does not tell.
    expected = (gradient(x + step * t) - gradient(x - step * t)) / (2 * step)
    np.testing.assert_allclose(found @ t.ravel(), expected.ravel(), atol=1e-6)


@each("complex_part", [0, 1j])
def test_stacks_of_which_some_have_equal_values(complex_part):
    a = RNG.normal(size=(3, 3)) + complex_part * RNG.normal(size=(3, 3))
    x = np.stack([np.eye(3), (a + a.T.conj()) / 2, np.diag([2.0, 1.0, 2.0])])
    t = RNG.normal(size=x.shape) + complex_part * RNG.normal(size=x.shape)
    t = (t + np.swapaxes(t, -1, -2).conj()) / 2
    gradient = cytape.grad(lambda a: np.sum(np.linalg.eigvalsh(a) ** 3))
    for way in (lambda f: f, cytape.function):
        found = way(lambda x, t: cytape.jvp(gradient, (x,), (t,))[1])(x, t)
        np.testing.assert_allclose(found, 3 * (x @ t + t @ x), atol=1e-12)


def test_values_move_as_they_split():
    t = np.array([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(
        cytape.jvp(np.linalg.eigvalsh, (np.eye(2),), (t,))[1], [-1, 1], atol=1e-15)
    np.testing.assert_allclose(
        cytape.jvp(np.linalg.svdvals, (np.eye(2),), (t,))[1], [1, -1], atol=1e-15)
    along = cytape.jvp(lambda t: cytape.jvp(np.linalg.eigvalsh, (np.eye(2),), (t,))[1], (t,), (t,))
    np.testing.assert_allclose(along, [[-1, 1]] * 2, atol=1e-15)


def test_unused_values_do_no_harm_to_other_results():
    lines = np.array([-1.0, 0.0, 1.0]), np.array([1.0, 2.0, 4.0])  # singular values are equal
    for mode in ("reverse over reverse", "reverse over forward", "forward over forward"):
        np.testing.assert_allclose(
            MODES[mode](lambda y: np.sum(np.polyfit(lines[0], y, 1) ** 3))(lines[1]),
            cytape.hessian(lambda y: np.sum(np.polyfit(lines[0], y, 1) ** 3))(lines[1]))


def test_singular_values_of_zero_raise():
    for x in (np.diag([2.0, 1.0, 0.0]), np.zeros((3, 2))):
        for mode in ("hessian", "reverse over reverse", "reverse over forward"):
            with pytest.raises(NotDifferentiableError, match="singular values"):
                MODES[mode](lambda a: np.sum(np.linalg.svdvals(a) ** 2))(x)


def test_third_derivatives_raise_only_where_values_are_equal():
    third = cytape.jacfwd(cytape.hessian(lambda a: np.sum(np.linalg.eigvalsh(symmetric(a)) ** 3)))
    expected = cytape.jacfwd(cytape.hessian(lambda a: np.trace(power(symmetric(a), 3))))
    np.testing.assert_allclose(third(POINTS["none"]), expected(POINTS["none"]), atol=1e-11)
    with pytest.raises(NotDifferentiableError, match="are equal"):
        third(np.eye(3))


def test_members_of_a_batch():
    x = np.stack(list(POINTS.values()))
    found = cytape.vmap(cytape.hessian(lambda a: np.sum(np.linalg.svdvals(a) ** 2)))(x)
    np.testing.assert_allclose(np.reshape(found, (-1, 9, 9)), [2 * np.eye(9)] * 5, atol=1e-12)
