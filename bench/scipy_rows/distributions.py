"""Gradients of distributions and of incomplete functions, over SciPy's functions at 1,000 elements.

Gradients are in the variable and in all parameters; so are those "over ours", of the same function
on tensors without a gradient. Run as ``python -m bench.scipy_rows.distributions``.
"""

import sys

import numpy as np
import scipy.special
import scipy.stats

import cytape
from bench.timing import Effort, Program, best_seconds
from cytape.scipy import special, stats

N = 1000
LIMIT = 4.0


def rows(rng):
    """Return names, SciPy's functions, ours, and arguments."""
    x, p = rng.gamma(3.0, size=N), rng.uniform(0.01, 0.99, N)
    a, b, z = rng.uniform(0.5, 8, N), rng.uniform(0.5, 8, N), rng.normal(size=N)
    calls = [(special, scipy.special, name, args) for name, args in (
        ("gammainc", (a, x)), ("betainc", (a, b, p)), ("stdtr", (a, z)), ("stdtr", (30 + a, z)),
        ("gammaincinv", (a, p)), ("betaincinv", (a, b, p)), ("fdtr", (a, b, x)))]
    named = [(f"special.{name}", getattr(theirs, name), getattr(ours, name), args)
             for ours, theirs, name, args in calls]
    for name, method, args in (
            ("norm", "logpdf", (z, b, a)), ("norm", "logsf", (z, b, a)), ("norm", "ppf", (p, b, a)),
            ("t", "logpdf", (z, a, b, a)), ("t", "cdf", (z, a, b, a)),
            ("gamma", "logpdf", (x, a, 0 * b, b)), ("gamma", "cdf", (x, a, 0 * b, b)),
            ("beta", "logpdf", (p, a, b)), ("beta", "ppf", (p, a, b)),
            ("weibull_min", "logpdf", (x, a, 0 * b, b)), ("weibull_min", "logsf", (x, a, 0 * b, b)),
            ("lognorm", "logcdf", (x, a, 0 * b, b)), ("poisson", "logpmf", (np.floor(x), a)),
            ("nbinom", "logpmf", (np.floor(x), a, p)), ("truncnorm", "logpdf", (0 * z, -a, b)),
            ("vonmises", "cdf", (z, a))):
        named.append((
            f"{name}.{method}", getattr(getattr(scipy.stats, name), method),
            getattr(getattr(stats, name), method), args))
    return named


def main(smoke=False):
    """Print a row per function."""
    rng = np.random.default_rng(0)
    effort = Effort(1, 0.002) if smoke else Effort(5, 0.05)
    print(f"{'gradient, 1,000 elements':26}{'SciPy (us)':>12}{'gradient (us)':>15}"
          f"{'over SciPy':>12}{'over ours':>11}{'limit':>7}")
    for name, theirs, ours, args in rows(rng):
        tensors = [cytape.constant(x) for x in args]

        def gradient(_, ours=ours, tensors=tensors):
            with cytape.GradientTape() as tape:
                tape.watch(tensors)
                y = ours(*tensors)
            return tape.gradient(y, tensors)

        with np.errstate(all="ignore"):
            forward, plain, backward = best_seconds([
                Program(lambda _, theirs=theirs, args=args: theirs(*args)),
                Program(lambda _, ours=ours, tensors=tensors: ours(*tensors)),
                Program(gradient)], effort)
        print(f"{name:26}{1e6 * forward:12.0f}{1e6 * backward:15.0f}{backward / forward:11.1f}x"
              f"{backward / plain:10.1f}x{LIMIT:6.0f}x")


if __name__ == "__main__":
    main("--smoke" in sys.argv)
