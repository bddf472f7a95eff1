"""Approximate the posterior of a hierarchical model by a full-rank Gaussian.

The data are the effects of coaching in eight schools with their standard errors (Rubin, Journal of
Educational Statistics 6, 1981). Unknown are the mean effect, the logarithm of its spread, and the
standardised effects of the schools. Draws of the Gaussian are reparametrised, as m + L z of normal
z, so the evidence lower bound is differentiable in m and L. The result is compared with the exact
posterior, by sums over a grid.

Run it with ``python -m examples.variational_inference``. The picture needs matplotlib.
"""

import sys
from pathlib import Path

import numpy as np

import cytape
from cytape.scipy.stats import halfnorm, norm

PICTURE = Path(__file__).parent / "output" / "variational_inference.png"
EFFECTS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
N = 2 + len(EFFECTS)
LOWER = np.tril_indices(N)
DIAGONAL = np.flatnonzero(LOWER[0] == LOWER[1])


def log_joint(draws):
    """Return the log density of parameters and data, for parameters along the last axis."""
    mean, log_spread, standard = draws[..., 0], draws[..., 1], draws[..., 2:]
    spread = np.exp(log_spread)
    effects = mean[..., None] + spread[..., None] * standard
    return (norm.logpdf(mean, 0, 20) + halfnorm.logpdf(spread, 0, 10) + log_spread
            + np.sum(norm.logpdf(standard), -1)
            + np.sum(norm.logpdf(EFFECTS, effects, ERRORS), -1))


def factor(entries):
    """Return the lower triangular factor; its diagonal is stored as logarithms."""
    entries = cytape.convert_to_tensor(entries)
    entries = entries.at[DIAGONAL].set(np.exp(entries[DIAGONAL]))
    return cytape.constant(np.zeros((N, N))).at[LOWER].set(entries)


def bound(means, entries, noise):
    """Return the evidence lower bound, up to a constant, by draws made of normal noise."""
    draws = means + noise @ factor(entries).T
    return np.mean(log_joint(draws)) + np.sum(entries[DIAGONAL])


def fit(n_steps, n_draws=32, seed=0):
    """Maximise the bound by Adam with a falling rate; return means, factor entries and bounds."""
    rng = np.random.default_rng(seed)
    parameters = [np.zeros(N), np.zeros(len(LOWER[0]))]
    adam = cytape.optimizers.Adam(
        lambda done: 0.05 * min(1, 2 * (1 - (done + 1) / n_steps)), beta_2=0.99)
    step = cytape.function(cytape.value_and_grad(bound, argnums=(0, 1)))
    bounds = []
    for _ in range(n_steps):
        value, gradients = step(*parameters, rng.normal(size=(n_draws, N)))
        bounds.append(float(value))
        adam.update(parameters, [-gradient for gradient in gradients])  # uphill
    return *parameters, np.array(bounds)


def posterior_of_mean():
    """Return a grid of means and their exact posterior density, by sums over a grid of spreads."""
    mean, log_spread = np.linspace(-15, 30, 400), np.linspace(-6, 4, 400)[:, None]
    spread = np.exp(log_spread)
    log_density = (norm.logpdf(mean, 0, 20) + halfnorm.logpdf(spread, 0, 10) + log_spread + sum(
        norm.logpdf(y, mean, np.hypot(spread, error))
        for y, error in zip(EFFECTS, ERRORS, strict=True)))
    density = np.exp(log_density - log_density.max()).sum(0)
    return mean, density / (density.sum() * (mean[1] - mean[0]))


def draw(means, entries, bounds, path):
    """Save the course of the bound, the mean effect's posterior and the effects of the schools."""
    from matplotlib.figure import Figure  # only the picture needs matplotlib

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    left.plot(np.arange(50, len(bounds) + 1), np.convolve(bounds, np.full(50, 1 / 50), "valid"))
    left.set(xlabel="step", ylabel="evidence lower bound, mean of 50")
    lower = np.asarray(factor(entries))
    grid, density = posterior_of_mean()
    middle.plot(grid, density, label="exact")
    middle.plot(grid, norm.pdf(grid, means[0], np.linalg.norm(lower[0])), "--", label="Gaussian")
    middle.set(xlabel="mean effect", ylabel="posterior density", ylim=(0, 1.35 * density.max()))
    middle.legend(loc="upper left")
    draws = means + np.random.default_rng(1).normal(size=(4000, N)) @ lower.T
    schools = draws[:, :1] + np.exp(draws[:, 1:2]) * draws[:, 2:]
    right.errorbar(np.arange(8), EFFECTS, ERRORS, fmt="o", label="data")
    right.errorbar(np.arange(8) + 0.25, schools.mean(0), schools.std(0), fmt="s", label="posterior")
    right.set(xlabel="school", ylabel="effect of coaching")
    right.legend()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)


def main(short=False):
    """Fit, print the mean effect, and save the picture unless `short`."""
    means, entries, bounds = fit(300 if short else 3000)
    spread = np.linalg.norm(np.asarray(factor(entries))[0])
    grid, density = posterior_of_mean()
    exact = np.average(grid, weights=density)
    exact_spread = np.sqrt(np.average((grid - exact)**2, weights=density))
    print(f"mean effect: {means[0]:.2f} +- {spread:.2f} (exact {exact:.2f} +- {exact_spread:.2f})")
    if not short:
        draw(means, entries, bounds, PICTURE)
        print(f"picture: {PICTURE}")
    return (means[0], spread), (exact, exact_spread), bounds


if __name__ == "__main__":
    main("--short" in sys.argv)
