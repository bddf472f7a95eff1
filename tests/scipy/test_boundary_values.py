"""`solve_bvp`: SciPy's values, implicit derivatives in arguments and ends, failed solutions."""

import threading

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, GraphError, NotDifferentiableError
from cytape.testing import check_grads

scipys = pytest.importorskip("scipy.integrate")
ours = pytest.importorskip("cytape.scipy.integrate")

MESH, RATES = np.linspace(0, 1, 5), np.array([1.3, 90.0])


def growth(x, y, given):
    return np.vstack([y[1], given["rate"] * y[0]])


def ends(ya, yb, given):
    return [ya[0], yb[0] - given["end"]]


def solved(rate, end, mesh=MESH, **options):
    return ours.solve_bvp(
        growth, ends, mesh, np.ones((2, 5)), tol=1e-7, args=({"rate": rate, "end": end},),
        **options)


def slope(rate, end):  # of y'' = rate y, y(0) = 0, y(1) = end
    return solved(rate, end).y[1, 0]


def exact_slope(rate, end):
    return cnp.sqrt(rate) * end / cnp.sinh(cnp.sqrt(rate))


def frequency(q):  # y'' = -p^2 q y, y(0) = y(1) = 0: p = pi / sqrt(q)
    return ours.solve_bvp(
        lambda x, y, p, q: [y[1], -p[0] ** 2 * q * y[0]],
        lambda ya, yb, p, q: [ya[0], yb[0], ya[1] - p[0]], MESH,
        [np.sin(3 * MESH), 3 * np.cos(3 * MESH)], p=[3.0], tol=1e-7, args=(q,)).p[0]


def test_values_are_scipys():
    given = {"rate": 2.0, "end": 3.0}
    expected = scipys.solve_bvp(
        lambda x, y: growth(x, y, given), lambda ya, yb: ends(ya, yb, given), MESH,
        np.ones((2, 5)), tol=1e-7)
    for end in (3.0, cytape.constant(3.0)):
        found = solved(2.0, end)
        for name in ("x", "y", "yp", "rms_residuals", "niter", "status"):
            np.testing.assert_allclose(found[name], expected[name], 1e-12)
        np.testing.assert_allclose(found.sol([0.1, 0.9]), expected.sol([0.1, 0.9]), 1e-12)


def test_derivatives_in_arguments():
    check_grads(slope, [1.3, 2.0], order=1)
    np.testing.assert_allclose(
        cytape.hessian(slope, argnums=(0, 1))(1.3, 2.0),
        cytape.hessian(exact_slope, argnums=(0, 1))(1.3, 2.0), 1e-5, 1e-9)


def test_derivatives_in_an_unknown_parameter():
    np.testing.assert_allclose(cytape.grad(frequency)(4.0), -np.pi / 16, 1e-6)
    np.testing.assert_allclose(
        cytape.grad(cytape.grad(frequency))(4.0), 3 * np.pi / 128, 1e-6)


def test_derivatives_in_the_ends_of_the_interval_and_in_a_point():
    def f(a, b, x):
        return solved(2.0, 3.0, mesh=[a, *(a + (b - a) * MESH[1:-1]), b]).sol(x)[0]

    def exact(a, b, x):
        return 3 * cnp.sinh(np.sqrt(2) * (x - a)) / cnp.sinh(np.sqrt(2) * (b - a))

    np.testing.assert_allclose(
        cytape.grad(f, argnums=(0, 1, 2))(0.1, 1.2, 0.4),
        cytape.grad(exact, argnums=(0, 1, 2))(0.1, 1.2, 0.4), 1e-6)


def test_traced_and_forward():
    expected = cytape.grad(exact_slope)(1.3, 2.0)
    for f in (cytape.grad(slope), cytape.function(cytape.grad(slope)),
              cytape.grad(cytape.function(slope)),
              lambda *given: cytape.jvp(slope, given, (1.0, 0.0))[1]):
        np.testing.assert_allclose(f(1.3, 2.0), expected, 1e-6)


def test_a_gradient_in_another_thread():
    rate = cytape.Variable(1.3)
    with cytape.GradientTape() as tape:
        value = slope(rate, 2.0)
    found = []
    thread = threading.Thread(target=lambda: found.append(tape.gradient(value, rate)))
    thread.start()
    thread.join()
    np.testing.assert_allclose(found, cytape.grad(slope)(1.3, 2.0), 1e-9)


def test_members_of_vmap_with_meshes_of_their_own():
    assert len({solved(rate, 1.0).x.size for rate in RATES}) == 2
    for f in (slope, cytape.grad(slope)):
        expected = [f(rate, 1.0) for rate in RATES]
        np.testing.assert_allclose(cytape.vmap(lambda rate: f(rate, 1.0))(RATES), expected)  # noqa: B023


def test_errors():
    def failed(end):  # the tolerance needs more nodes
        return solved(900.0, end, max_nodes=6)

    with pytest.raises(NotDifferentiableError, match="solve_bvp failed.*maximum number"):
        cytape.grad(lambda end: failed(end).y[1, 0])(1.0)
    assert not failed(cytape.constant(1.0)).success
    with pytest.raises(RuntimeError, match="solve_bvp failed"):
        cytape.function(lambda end: failed(end).y)(cytape.constant(1.0))
    with pytest.raises(GraphError, match=r"must have one shape.*y\[:, -1\]"):  # meshes
        cytape.vmap(lambda rate: solved(rate, 1.0).y)(RATES)
    with pytest.raises(DetachedError, match="`args`"):
        cytape.grad(lambda k: ours.solve_bvp(
            lambda x, y: cnp.stack([y[1], k * y[0]]), lambda ya, yb: cnp.stack([ya[0], yb[0] - 1]),
            MESH, np.ones((2, 5))).y[0, 2])(1.0)
    with pytest.raises(TypeError, match="no singular term"):
        solved(1.0, cytape.constant(1.0), S=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="strictly increasing"):
        solved(1.0, cytape.constant(1.0), mesh=MESH[::-1])
