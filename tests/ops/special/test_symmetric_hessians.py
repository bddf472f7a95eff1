"""Hessians of functions of two and three arguments at special points, by two modes."""

import itertools

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import NotDifferentiableError
from tests.cases import each

scipys = pytest.importorskip("scipy.special")

GRID = [0.0, 0.5, -0.5, 1.0, 2.0]
STEPS = [1e-6, 1e-4]
LEFT_OUT = {  # docs/explanation/kinks.md
    "power": lambda x, y: x == 0, "pow": lambda x, y: x == 0, "float_power": lambda x, y: x == 0,
    "powm1": lambda x, y: x == 0, "huber": lambda delta, r: abs(r) == delta,
    "tklmbda": lambda x, lmbda: abs(x) * lmbda == 1,  # the end of the distribution
    # SciPy's search stops too early for differences
    "nctdtrinc": lambda df, p, t: (t == 0) | (p == 0)}


def functions():
    """Return names and functions, with the ufunc that each of them differentiates."""
    import cytape.scipy.special as special
    for ours, theirs in ((special, scipys), (cnp, np)):
        for name in dir(ours):
            ufunc, f = getattr(theirs, name, None), getattr(ours, name)
            if isinstance(ufunc, np.ufunc) and ufunc is not f and (
                    ufunc.nin in (2, 3) and ufunc.nout == 1 and ufunc.signature is None):
                yield f"{ours.__name__}.{name}", f, ufunc


def points_of(name, ufunc):
    points = np.array(list(itertools.product(GRID, repeat=ufunc.nin))).T
    try:
        values = ufunc(*points)
    except TypeError:  # of integers
        return points[:, :0]
    if values.dtype.kind != "f":
        return points[:, :0]
    kept = np.isfinite(values)
    if name in LEFT_OUT:
        kept &= ~LEFT_OUT[name](*points)
    return points[:, kept]


def has_second_derivative(f, points, place):
    def slope(*xs):
        return cytape.grad(lambda *xs: cnp.sum(f(*xs)), place)(*xs)

    try:
        if slope(*points) is None:
            return False
        cytape.grad(lambda *xs: cnp.sum(slope(*xs)), place)(*points)
        return True
    except NotDifferentiableError:
        return False


def second_derivatives(f, points, places):
    """Return Hessians by reverse over reverse and forward over reverse, and two of differences."""
    n = len(places)

    def gradients(*xs):
        return cytape.grad(lambda *xs: cnp.sum(f(*xs)), places)(*xs)

    reverse, forward, *differences = np.zeros((4, n, n, points.shape[1]))
    for i, place in enumerate(places):
        rows = cytape.grad(lambda *xs: cnp.sum(gradients(*xs)[i]), places)(*points)  # noqa: B023
        reverse[i] = [0 * points[0] if row is None else row for row in rows]
        axis = np.eye(len(points))[place][:, None] + 0 * points
        forward[:, i] = cytape.jvp(gradients, tuple(points), tuple(axis))[1]
        for table, step in zip(differences, STEPS, strict=True):
            above, below = gradients(*points + step * axis), gradients(*points - step * axis)
            table[:, i] = np.subtract(above, below) / (2 * step)
    return reverse, forward, *differences


@pytest.mark.filterwarnings("ignore")
@each("label, f, ufunc", list(functions()))
def test_modes_and_differences_agree(label, f, ufunc):
    points = points_of(label.rpartition(".")[2], ufunc)
    places = [i for i in range(ufunc.nin) if points.size and has_second_derivative(f, points, i)]
    if not places:
        return
    reverse, forward, fine, coarse = second_derivatives(f, points, places)
    stable = np.where(np.abs(fine - coarse) < 1e-3 * (1 + np.abs(fine)), fine, np.nan)
    for found, tolerance in ((reverse.swapaxes(0, 1), 1e-8), (forward, 1e-8), (stable, 2e-3)):
        wrong = np.abs(reverse - found) > tolerance * (1 + np.abs(reverse))
        wrong &= np.isfinite(reverse) & np.isfinite(found)
        at = wrong.any((0, 1))
        assert not at.any(), (label, points[:, at].T, reverse[..., at], found[..., at])
