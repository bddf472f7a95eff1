"""Fit a Gaussian process to noisy observations, by the gradient of its marginal likelihood.

The logarithms of the amplitude, the length scale and the noise maximise the likelihood of the
observations. It is computed by one Cholesky factor (`cho_factor`), which its gradient reuses, and
maximised by L-BFGS of SciPy. The picture has the mean of the function and a band of two standard
deviations, to which the noise of observations is not added.

Run it with ``python -m examples.gaussian_process``. It needs SciPy, and matplotlib for the picture.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import cytape
from cytape.scipy.linalg import cho_factor, cho_solve

PICTURE = Path(__file__).parent / "output" / "gaussian_process.png"
TRUE = {"amplitude": 1.5, "length": 0.8, "noise": 0.2}


def kernel(x, y, amplitude, length):
    """Return the covariances of the function's values at x and at y."""
    return amplitude**2 * np.exp(-0.5 * ((x[:, None] - y[None, :]) / length) ** 2)


def observations(n, seed=0):
    """Draw a function from the true process, and return where it was observed, with noise."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 10, n))
    covariance = kernel(x, x, TRUE["amplitude"], TRUE["length"]) + TRUE["noise"] ** 2 * np.eye(n)
    return x, np.linalg.cholesky(covariance) @ rng.normal(size=n)


def negative_log_likelihood(logarithms, x, y):
    """Return the negative logarithm of the density of y; the parameters are logarithms."""
    amplitude, length, noise = np.exp(logarithms)
    covariance = kernel(x, x, amplitude, length) + (noise**2 + 1e-10) * np.eye(len(x))
    factor, lower = cho_factor(covariance, lower=True)
    fit = y @ cho_solve((factor, lower), y)
    return fit / 2 + np.sum(np.log(np.diagonal(factor))) + len(x) / 2 * np.log(2 * np.pi)


def fitted(x, y, start=(1.0, 2.0, 0.5)):
    """Return the result of L-BFGS, from a start that is far off."""
    value_and_gradient = cytape.function(cytape.value_and_grad(
        lambda logarithms: negative_log_likelihood(logarithms, x, y)))
    return minimize(lambda p: tuple(map(np.asarray, value_and_gradient(p))), np.log(start),
                    jac=True, method="L-BFGS-B")


def prediction(parameters, x, y, at):
    """Return means and standard deviations of the function at new points."""
    amplitude, length, noise = parameters
    factor = cho_factor(kernel(x, x, amplitude, length) + noise**2 * np.eye(len(x)))
    across = kernel(x, at, amplitude, length)
    variance = amplitude**2 - np.sum(across * cho_solve(factor, across), axis=0)
    return across.T @ cho_solve(factor, y), np.sqrt(np.maximum(variance, 0))


def draw(parameters, x, y, path):
    from matplotlib.figure import Figure  # only the picture needs matplotlib

    at = np.linspace(0, 10, 400)
    mean, deviation = prediction(parameters, x, y, at)
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(at, mean - 2 * deviation, mean + 2 * deviation, color="tab:blue", alpha=0.2,
                      label="two standard deviations of the function, without noise")
    axes.plot(at, mean, color="tab:blue", label="mean")
    axes.plot(x, y, ".", color="black", markersize=4, label="observations")
    axes.set_xlabel("x")
    axes.set_title("Gaussian process, hyperparameters by maximum likelihood")
    figure.legend(loc="outside lower center", ncols=3)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)


def main(short=False):
    """Fit the process, print the parameters and save the picture; return the fitted parameters."""
    x, y = observations(40 if short else 200)
    result = fitted(x, y)
    parameters = np.exp(result.x)
    print(f"{'':12}{'true':>8}{'fitted':>9}")
    for (name, true), found in zip(TRUE.items(), parameters, strict=True):
        print(f"{name:12}{true:8.2f}{found:9.3f}")
    print(f"{result.nfev} evaluations; negative log-likelihood {result.fun:.2f}")
    if not short:
        draw(parameters, x, y, PICTURE)
        print(f"picture: {PICTURE}")
    return parameters


if __name__ == "__main__":
    main("--short" in sys.argv)
