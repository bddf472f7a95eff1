"""``python -m bench.scipy_rows.optimisation``: minima, roots and distances beside SciPy's.

Prints the measured values with their limits; ``--smoke`` runs everything once, on smaller problems.
The exit code is 1 if a limit is exceeded.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time

import numpy as np
import scipy.optimize
import scipy.spatial.distance
from scipy.optimize._numdiff import approx_derivative

import cytape
import cytape.numpy as cnp
from bench.timing import Effort, Program, best_seconds
from cytape.scipy.optimize import implicit_systems, minimize, root
from cytape.scipy.spatial.distance import cdist

METRICS = ("euclidean", "sqeuclidean", "cosine", "cityblock", "chebyshev", "canberra", "braycurtis")


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def differences(x):
    return scipy.optimize.approx_fprime(x, rosenbrock)


def second_differences(x):
    return approx_derivative(differences, x)


def discretised(x, a):
    """Return the residual of a boundary value problem."""
    neighbours = cnp.concatenate([[0.0], x[:-1]]) + cnp.concatenate([x[1:], [1.0]])
    return 2 * x - neighbours + a * cnp.exp(x) / x.size**2


def milliseconds(calls, effort):
    return [1e3 * seconds for seconds in best_seconds(
        [Program(lambda _, call=call: call()) for call in calls], effort)]


def of_minima(n, effort):
    start = np.tile([0.7, 1.3], n // 2)
    for method, options in (
            ("BFGS", {}), ("trust-exact", {"jac": differences, "hess": second_differences})):
        ours, theirs = milliseconds([
            lambda: minimize(rosenbrock, start, method=method),  # noqa: B023
            lambda: scipy.optimize.minimize(
                rosenbrock, start, method=method, **options)], effort)  # noqa: B023
        yield f"minimize Rosenbrock, n = {n}, {method}", ours, None, "ms"
        yield f"SciPy with finite differences, {method}", theirs, None, "ms"
        yield f"ratio, {method}", ours / theirs, 0.1, "x"
    exact, = milliseconds([lambda: scipy.optimize.minimize(
        scipy.optimize.rosen, start, method="BFGS", jac=scipy.optimize.rosen_der)], effort)
    yield "SciPy with a gradient by hand, BFGS", exact, None, "ms"


def of_roots(n, effort):
    def norm(a):
        return cnp.sum(root(discretised, np.zeros(n), (a,), "newton").x ** 2)

    counts, factorise = [], implicit_systems.lapack.dgetrf

    def counted(*args, **options):
        counts.append(1)
        return factorise(*args, **options)

    implicit_systems.lapack.dgetrf = counted
    try:
        steps = root(discretised, np.zeros(n), (1.0,), "newton").njev
        del counts[:]
        cytape.grad(norm)(1.0)
        gradient = len(counts)
        del counts[:]
        cytape.hessian(norm)(1.0)
    finally:
        implicit_systems.lapack.dgetrf = factorise
    yield f"root of {n} unknowns: steps of Newton's method", steps, None, ""
    yield "factorisations for the root and its gradient", gradient, steps, ""
    yield "factorisations for the root, gradient and Hessian", len(counts), steps, ""
    solve, slope = milliseconds([
        lambda: root(discretised, np.zeros(n), (1.0,), "newton"),
        lambda: cytape.grad(norm)(1.0)], effort)
    yield "root", solve, None, "ms"
    yield "root and gradient", slope, None, "ms"


def of_distances(n, effort):
    points = np.random.default_rng(0).uniform(0.1, 1, (n, 20))
    weights = np.ones((n, n))
    for metric in METRICS:
        x = cytape.constant(points)
        with cytape.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = cdist(x, points, metric)
        theirs, ours = milliseconds([
            lambda: scipy.spatial.distance.cdist(points, points, metric),  # noqa: B023
            lambda: tape.gradient(y, x, output_gradients=weights)], effort)  # noqa: B023
        limit = 3.0 if metric in METRICS[:3] else 4.0
        yield f"gradient of cdist over SciPy's cdist, {metric}", ours / theirs, limit, "x"


def main(arguments=()):
    smoke = "--smoke" in arguments
    effort = Effort(1, 0.0) if smoke else Effort(3, 0.1)
    start, exceeded = time.perf_counter(), False
    for make, size in ((of_minima, 100), (of_roots, 1000), (of_distances, 500)):
        for name, value, limit, unit in make(size // 5 if smoke else size, effort):
            bound = "" if limit is None else f"limit {limit:g}{unit}"
            exceeded |= limit is not None and value > limit
            print(f"{name:52} {value:9.3g} {unit:3} {bound}")
    print(f"{time.perf_counter() - start:.0f} s")
    return int(exceeded and not smoke)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
