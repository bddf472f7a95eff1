"""Fit a Weibull model of accelerated failure times to remission times with censoring.

The data are the remission times in weeks of 42 children with leukaemia, half of them treated with
6-mercaptopurine (Freireich et al., Blood 21, 1963); some were in remission when the study ended.
The log-likelihood is a sum of `weibull_min.logpdf` for events and `weibull_min.logsf` for censored
times. `cytape.scipy.optimize.minimize` differentiates it; the Hessian gives standard errors.

Run it with ``python -m examples.survival_fit``. The picture needs matplotlib.
"""

import sys
from pathlib import Path

import numpy as np

import cytape
from cytape.scipy.optimize import minimize
from cytape.scipy.stats import norm, weibull_min

PICTURE = Path(__file__).parent / "output" / "survival_fit.png"
TREATED = np.array([6, 6, 6, 7, 10, 13, 16, 22, 23, 6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35.0])
TREATED_EVENTS = np.arange(21) < 9
CONTROL = np.array([1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23.0])
TIMES = np.concatenate([TREATED, CONTROL])
IS_EVENT = np.concatenate([TREATED_EVENTS, np.ones(21, bool)])
IS_TREATED = np.repeat([1.0, 0.0], 21)
NAMES = ["log time scale", "effect of treatment", "log shape"]


def distribution(parameters, is_treated):
    """Return the distribution of times: the treatment multiplies them by exp(effect)."""
    log_scale, effect, log_shape = parameters
    return weibull_min(np.exp(log_shape), scale=np.exp(log_scale + effect * is_treated))


def loss(parameters):
    """Return the negative log-likelihood."""
    times = distribution(parameters, IS_TREATED)
    return -np.sum(np.where(IS_EVENT, times.logpdf(TIMES), times.logsf(TIMES)))


def fit():
    """Return the estimates and their standard errors."""
    found = minimize(loss, np.array([2.0, 0.0, 0.0]), method="BFGS")
    covariance = np.linalg.inv(cytape.hessian(loss)(found.x))
    return found.x, np.sqrt(np.diag(covariance))


def kaplan_meier(times, is_event):
    """Return the times of events and the estimated probability of survival after each."""
    at = np.unique(times[is_event])
    n_events = np.sum((times == at[:, None]) & is_event, axis=1)
    at_risk = np.sum(times >= at[:, None], axis=1)
    return at, np.cumprod(1 - n_events / at_risk)


def draw(parameters, path):
    """Save Kaplan-Meier curves and the fitted survival functions."""
    from matplotlib.figure import Figure  # only the picture needs matplotlib

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    t = np.linspace(0.01, 36, 300)
    for name, treated, colour in (("treated", 1.0, "tab:blue"), ("control", 0.0, "tab:orange")):
        chosen = IS_TREATED == treated
        at, survival = kaplan_meier(TIMES[chosen], IS_EVENT[chosen])
        axes.step([0, *at, TIMES[chosen].max()], [1, *survival, survival[-1]], where="post",
                  color=colour, label=f"{name}, Kaplan-Meier")
        axes.plot(t, distribution(parameters, treated).sf(t), "--", color=colour,
                  label=f"{name}, Weibull")
        censored = TIMES[chosen & ~IS_EVENT]
        axes.plot(censored, np.append(1, survival)[np.searchsorted(at, censored, "right")], "|",
                  color=colour, markersize=9)
    axes.set(xlabel="weeks", ylabel="probability of remission", ylim=(0, 1.02), xlim=(0, 36))
    axes.legend()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)


def main(short=False):
    """Fit, print the estimates with standard errors, and save the picture unless `short`."""
    estimates, errors = fit()
    print(f"{'':22}{'estimate':>9}{'std. error':>12}{'p-value':>10}")
    for name, estimate, error in zip(NAMES, estimates, errors, strict=True):
        print(f"{name:22}{estimate:9.4f}{error:12.4f}{2 * norm.sf(abs(estimate / error)):10.1e}")
    print(f"treatment multiplies times by {np.exp(estimates[1]):.2f}")
    if not short:
        draw(estimates, PICTURE)
        print(f"picture: {PICTURE}")
    return estimates, errors


if __name__ == "__main__":
    main("--short" in sys.argv)
