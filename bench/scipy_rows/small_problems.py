"""``python -m bench.scipy_rows.small_problems``: gradients of what SciPy solves in little time.

Prints the gradient over SciPy's call (with a Jacobian by hand where it takes one), with the traces
of users' functions that later calls use, and without; ``--smoke`` runs everything once.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys

import numpy as np
import scipy.integrate
import scipy.optimize

import cytape
import cytape.numpy as cnp
from bench.timing import Effort, Program, best_seconds
from cytape.graph.tracing import kept_traces
from cytape.scipy.integrate import quad, solve_ivp
from cytape.scipy.optimize import curve_fit, root

START, RATES = np.array([10.0, 5.0]), np.array([1.5, 1.0, 3.0, 1.0])
POINTS = np.linspace(0, 1, 20)
DATA = 2 * np.exp(-1.3 * POINTS) + 0.01 * np.sin(20 * POINTS)
CONSTANTS = np.array([3.0, 1.0])


def predation(t, y, rates):
    return [(rates[0] - rates[1] * y[1]) * y[0], (rates[3] * y[0] - rates[2]) * y[1]]


def damped(x, rate):
    return cnp.exp(-rate * x)


def model(x, a, b):
    return a * np.exp(-b * x)


def slope_of_model(x, a, b):
    return np.stack([np.exp(-b * x), -a * x * np.exp(-b * x)], 1)


def equations(x, c):
    return [x[0] ** 2 + x[1] - c[0], x[0] - x[1] ** 3 + c[1]]


def jacobian(x, c):
    return np.array([[2 * x[0], 1], [1, -3 * x[1] ** 2]])


def pairs():
    """Yield names, functions of one argument with a gradient, the argument and SciPy's call."""
    for span in (0.3, 1.0):
        yield (f"solve_ivp, span {span}",
               lambda r: solve_ivp(predation, (0, span), START, args=(r,)).y[0, -1],  # noqa: B023
               RATES, lambda: scipy.integrate.solve_ivp(
                   predation, (0, span), START, args=(RATES,)))  # noqa: B023
    yield ("quad", lambda r: quad(damped, 0, 2.0, (r,))[0], 1.0,
           lambda: scipy.integrate.quad(lambda x: np.exp(-x), 0, 2.0))
    yield ("root", lambda c: cnp.sum(root(equations, [1.0, 1.0], (c,)).x), CONSTANTS,
           lambda: scipy.optimize.root(equations, [1.0, 1.0], (CONSTANTS,), jac=jacobian))
    yield ("curve_fit", lambda y: cnp.sum(curve_fit(model, POINTS, y)[0]), DATA,
           lambda: scipy.optimize.curve_fit(model, POINTS, DATA, jac=slope_of_model))


def main(arguments=()):
    """Print the ratios of all problems."""
    effort = Effort(1, 0.0) if "--smoke" in arguments else Effort(5, 0.05)
    calls_before = kept_traces.CALLS_BEFORE
    for name, function, x, theirs in pairs():
        ratios = []
        for calls in (calls_before, sys.maxsize):
            kept_traces.CALLS_BEFORE = calls
            gradient = cytape.grad(function)
            try:
                for _ in range(calls_before + 2):
                    gradient(x)
                ours, scipys = best_seconds(
                    [Program(lambda _, call=call: call())
                     for call in (lambda: gradient(x), theirs)], effort)  # noqa: B023
            finally:
                kept_traces.CALLS_BEFORE = calls_before
            ratios.append(ours / scipys)
        print(f"gradient of {name:20} {ratios[0]:6.1f}x with traces, {ratios[1]:6.1f}x without")


if __name__ == "__main__":
    main(sys.argv[1:])
