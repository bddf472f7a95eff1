"""Fit a damped oscillation to noisy data; the worked problem of the README.

SciPy minimises the squared error by its gradient. The Hessian at the minimum gives standard errors,
and the Jacobian of the fitted curve its band of uncertainty.

Run it with ``python -m examples.oscillation_fit``. It needs SciPy, and matplotlib for the picture.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import cytape

PICTURE = Path(__file__).parent / "output" / "oscillation_fit.svg"
NAMES = ("amplitude", "decay", "frequency", "phase")
TRUE = np.array([2.0, 0.3, 0.5, 0.4])
NOISE = 0.2
START = np.array([1.0, 0.1, 0.45, 0.0])


def oscillation(parameters, t):
    """Return the signal at times t."""
    amplitude, decay, frequency, phase = parameters
    return amplitude * np.exp(-decay * t) * np.cos(2 * np.pi * frequency * t + phase)


def observations(seed=0):
    """Return times and noisy signals."""
    t = np.linspace(0, 8, 60)
    return t, oscillation(TRUE, t) + np.random.default_rng(seed).normal(0, NOISE, t.size)


def loss(parameters, t, y):
    """Return half the sum of squared errors, in units of the noise: minus a log-likelihood."""
    return np.sum((oscillation(parameters, t) - y) ** 2) / (2 * NOISE**2)


def fit(t, y):
    """Return the parameters and their covariance matrix."""
    found = minimize(cytape.value_and_grad(loss), START, args=(t, y), jac=True).x
    return found, np.linalg.inv(cytape.hessian(loss)(found, t, y))


def save_picture(path, t, y, parameters, covariance):
    """Draw the data, the start, the fit and two standard errors of the fitted curve."""
    import matplotlib
    from matplotlib.figure import Figure

    fine = np.linspace(0, 8, 400)
    curve = oscillation(parameters, fine)
    slopes = cytape.jacobian(oscillation)(parameters, fine)
    error = np.sqrt(np.sum(slopes @ covariance * slopes, axis=1))
    with matplotlib.rc_context({"svg.hashsalt": "cytape"}):  # the same picture, the same file
        figure = Figure(figsize=(7.5, 3), layout="constrained")
        axes = figure.subplots()
        axes.plot(fine, oscillation(START, fine), "--", color="gray", label="start")
        axes.fill_between(fine, curve - 2 * error, curve + 2 * error, color="tab:blue", alpha=0.3,
                          linewidth=0, label="two standard errors")
        axes.plot(fine, curve, color="tab:blue", label="fit")
        axes.plot(t, y, ".", color="black", label="data")
        axes.set(xlabel="t", xlim=(0, 8))
        axes.legend(frameon=False, ncols=2)
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(short=False, picture=PICTURE):
    """Fit, print the parameters and save the picture unless `short`; return the parameters."""
    t, y = observations()
    parameters, covariance = fit(t, y)
    for name, true, found, error in zip(
            NAMES, TRUE, parameters, np.sqrt(np.diag(covariance)), strict=True):
        print(f"{name:10} {found:6.3f} ± {error:.3f}   true {true}")
    if not short:
        save_picture(picture, t, y, parameters, covariance)
        print(f"picture: {picture}")
    return parameters


if __name__ == "__main__":
    main("--short" in sys.argv)
