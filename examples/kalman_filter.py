"""Fit a state space model to the flow of the Nile by maximum likelihood, with a Kalman filter.

The annual flow at Aswan is a level, which moves by a random step each year, plus noise (Durbin and
Koopman, "Time Series Analysis by State Space Methods" (2012), chapter 2). The filter is a plain
loop over the years; its log-likelihood has exact gradients for L-BFGS, and an exact Hessian for the
standard errors. It prints both variances and saves a picture of data, level and a band of 90 %.

Run it with ``python -m examples.kalman_filter``: some seconds. The picture needs matplotlib.
"""

import sys
from pathlib import Path

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.scipy.optimize import minimize

PICTURE = Path(__file__).parent / "output" / "kalman_filter.png"
FIRST_YEAR = 1871
# Annual flow in 10^8 m^3: Cobb, "The problem of the Nile", Biometrika 65 (1978), as in R's `Nile`.
FLOWS = np.array([
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180,
    799, 958, 1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833,
    701, 916, 692, 1020, 1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845,
    864, 862, 698, 845, 744, 796, 1040, 759, 781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649,
    846, 812, 742, 801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050, 918, 986, 797, 923, 975, 815,
    1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740], float)


def run_filter(log_variances, flows):
    """Return the log-likelihood, and mean and variance of the level in each year."""
    noise, step = cnp.exp(log_variances[0]), cnp.exp(log_variances[1])
    mean, variance = flows[0], noise  # the first flow only says where the level is
    log_likelihood, means, variances = 0.0, [mean], [variance]
    for flow in flows[1:]:
        predicted = variance + step
        total = predicted + noise
        error = flow - mean
        log_likelihood = log_likelihood - (cnp.log(2 * np.pi * total) + error**2 / total) / 2
        gain = predicted / total
        mean, variance = mean + gain * error, predicted * (1 - gain)
        means.append(mean)
        variances.append(variance)
    return log_likelihood, cnp.stack(means), cnp.stack(variances)


def fit(flows):
    """Return the logarithms of the variances, their standard errors, and the log-likelihood."""
    def loss(log_variances):
        return -run_filter(log_variances, flows)[0]

    start = np.log(np.full(2, np.var(flows) / 2))
    found = minimize(loss, start, method="L-BFGS-B")
    if not found.success:
        raise RuntimeError(found.message)
    errors = np.sqrt(np.diagonal(np.linalg.inv(cytape.hessian(loss)(found.x))))
    return found.x, errors, -found.fun


def draw(flows, means, variances, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    years = FIRST_YEAR + np.arange(len(flows))
    half = 1.645 * np.sqrt(variances)
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.plot(years, flows, "o", markersize=3, color="tab:gray", label="annual flow")
    axes.fill_between(years, means - half, means + half, alpha=0.3, label="90 % band of the level")
    axes.plot(years, means, label="filtered level")
    axes.set(xlabel="year", ylabel="flow of the Nile at Aswan, $10^8$ m$^3$")
    axes.legend()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(short=False, path=PICTURE):
    flows = FLOWS[:30] if short else FLOWS
    log_variances, errors, log_likelihood = fit(flows)
    for name, value, error in zip(("noise", "steps of the level"), log_variances, errors,
                                  strict=True):
        print(f"variance of the {name}: {np.exp(value):.0f}, times or divided by "
              f"{np.exp(error):.2f} (one standard error)")
    print(f"log-likelihood {log_likelihood:.4f}")
    _, means, variances = run_filter(log_variances, flows)
    draw(flows, means, variances, path)
    print(f"picture saved to {path}")
    return log_variances, errors, log_likelihood


if __name__ == "__main__":
    main("--short" in sys.argv)
