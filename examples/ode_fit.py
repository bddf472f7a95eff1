"""Fit the Lotka-Volterra equations to noisy counts of prey and predators.

The four rates and both initial populations are found by least squares. Gradients of the misfit
come from the adjoint equation, which `cytape.scipy.integrate.solve_ivp` solves along the solution.

Run it with ``python -m examples.ode_fit``. It needs SciPy, and matplotlib for the picture it saves.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import cytape
import cytape.numpy as cnp
from cytape.scipy.integrate import solve_ivp

PICTURE = Path(__file__).parent / "output" / "ode_fit.png"
TRUTH = np.array([1.1, 0.4, 0.4, 0.1, 10.0, 5.0])
NAMES = ("births of prey", "losses of prey", "deaths of predators", "gains of predators",
         "prey at first", "predators at first")
END = 20.0


def change(t, populations, births, losses, deaths, gains):
    """Return the rates of change of prey and predators."""
    prey, predators = populations
    return [(births - losses * predators) * prey, (gains * prey - deaths) * predators]


def populations(parameters, times, rtol=1e-7):
    """Return both populations at some times, in rows."""
    rates, start = parameters[:4], parameters[4:]
    return solve_ivp(
        change, (0.0, END), start, t_eval=times, args=tuple(rates), rtol=rtol, atol=rtol).y


def observe(n_times=60, noise=0.08, seed=0):
    """Return times and counts with relative errors."""
    times = np.linspace(0.5, END, n_times)
    errors = np.random.default_rng(seed).normal(0, noise, (2, n_times))
    return times, populations(TRUTH, times) * np.exp(errors)


def misfit(logarithms, times, counts):
    """Return the mean squared relative error; logarithms keep the parameters positive."""
    model = populations(cnp.exp(logarithms), times)
    return cnp.mean((cnp.log(model) - np.log(counts)) ** 2)


def fit(times, counts, start):
    """Return the fitted parameters, and the result of the optimiser."""
    loss = cytape.value_and_grad(misfit)
    result = minimize(
        lambda x: loss(x, times, counts), np.log(start), jac=True, method="BFGS",
        options={"gtol": 1e-7})
    return np.exp(result.x), result


def save_picture(times, counts, start, fitted):
    """Draw the data, and the populations before and after the fit."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fine = np.linspace(0, END, 400)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
    for axis, parameters, title in zip(
            axes, (start, fitted), ("first guess", "fitted"), strict=True):
        for model, data, name, colour in zip(
                populations(parameters, fine), counts, ("prey", "predators"),
                ("tab:green", "tab:red"), strict=True):
            axis.plot(fine, model, color=colour, label=name)
            axis.plot(times, data, ".", color=colour, alpha=0.5, label=f"{name}, observed")
        axis.set(title=title, xlabel="time", ylim=(0, 1.6 * counts.max()))
    axes[0].set_ylabel("population")
    axes[0].legend(frameon=False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110)
    plt.close(figure)


def main(short=False):
    """Fit, print and draw; return the fitted parameters."""
    times, counts = observe(20 if short else 60)
    start = TRUTH * [0.9, 1.15, 1.2, 0.85, 0.8, 1.3]
    fitted, result = fit(times, counts, start)
    print(f"relative error of the data {misfit(np.log(start), times, counts) ** 0.5:.3f} before, "
          f"{result.fun**0.5:.3f} after {result.nit} steps, {result.nfev} gradients")
    for name, true, found in zip(NAMES, TRUTH, fitted, strict=True):
        print(f"{name:20} {found:8.4f}   true {true:6.2f}")
    if not short:
        save_picture(times, counts, start, fitted)
        print(f"picture: {PICTURE}")
    return fitted


if __name__ == "__main__":
    main("--short" in sys.argv)
