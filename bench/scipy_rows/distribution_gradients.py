"""Gradients of the methods of distributions, over SciPy's call of the method.

``python -m bench.scipy_rows.distribution_gradients [names]``

The gradient of the sum, forward and backward pass, in the variable and in all parameters with a
derivative, which are arrays of as many elements. Prints the methods above the limit; of named
distributions, or methods as ``norm.logpdf``, all. Slow methods have arrays of fewer elements.
"""

import argparse

import numpy as np
from scipy import stats
from scipy.stats._distr_params import distcont, distdiscrete

import cytape
from bench.scipy_rows.special_gradients import print_above
from bench.timing import Effort, Program, best_seconds
from cytape.errors import DetachedError, NotDifferentiableError
from cytape.scipy import stats as ours

SIZES = (1_000, 100_000)
MOST_SECONDS = 0.05  # of SciPy's call, for smaller arrays
METHODS = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf")
SHAPES = {**dict(distdiscrete[::-1]), **dict(distcont[::-1])}


def methods():
    """Return the names of differentiable methods; `poisson_binom` takes a list of parameters."""
    return [f"{name}.{method}" for name in sorted(SHAPES)
            if name in ours.__dict__ and name != "poisson_binom" for method in METHODS
            if method in ours.__dict__[name].methods and not (
                method == "ppf" and ours.__dict__[name].is_discrete)]


def given(name, n):
    """Return the variable and the parameters, arrays of n elements."""
    rng = np.random.default_rng(0)
    distribution, _, method = name.partition(".")
    shapes = SHAPES[distribution]
    if not any(type(shape) is float for shape in shapes):  # counts may be the only parameters
        shapes = list(map(float, shapes))
    p = rng.uniform(0.05, 0.95, n)
    few = getattr(stats, distribution).ppf(p[:200], *shapes)  # may be slow
    is_discrete = ours.__dict__[distribution].is_discrete
    loc, scale = (0,), () if is_discrete else (1.2,)
    x = p if method == "ppf" else np.resize(few, n) * (1 if is_discrete else 1.2)
    return [x, *[np.full(n, given) for given in (*shapes, *loc, *scale)]]


def programs(name, n):
    """Return SciPy's call and the gradient."""
    distribution, _, method = name.partition(".")
    arrays = given(name, n)
    function = getattr(ours.__dict__[distribution], method)

    def gradient(watched, operands):
        with cytape.GradientTape() as tape:
            tape.watch(watched)
            y = function(*operands)
        return tape.gradient(y, watched)

    def has_derivative(i):
        ones = [cytape.constant(x[:1]) for x in arrays]
        try:
            return gradient(ones[i], ones) is not None
        except (DetachedError, NotDifferentiableError, TypeError):
            return False

    # Whole numbers and parameters without a derivative stay arrays.
    moving = [i for i, x in enumerate(arrays) if x.dtype.kind == "f" and has_derivative(i)]
    operands = [cytape.constant(x) if i in moving else x for i, x in enumerate(arrays)]
    scipys = getattr(getattr(stats, distribution), method)
    return [Program(lambda _: scipys(*arrays)),
            Program(lambda _: gradient([operands[i] for i in moving], operands))]


def row(name, effort, sizes):
    """Return the sizes, and the seconds of SciPy's call and of the gradient."""
    few = best_seconds(programs(name, 100)[:1], Effort(2, 0.0))[0] / 100
    small = SIZES[0] if few * SIZES[0] < MOST_SECONDS else 100
    few = best_seconds(programs(name, small)[:1], Effort(2, 0.0))[0] / small
    return [(n, *best_seconds(programs(name, n), effort)) for n in dict.fromkeys(
        max(small, min(n, int(MOST_SECONDS / few))) for n in sizes)]


def main():
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one round of small arrays")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = [name for name in methods() if not options.names
             or {name, name.partition(".")[0]} & set(options.names)]
    effort = Effort(1, 0.0) if options.smoke else Effort(3, 0.003)
    with np.errstate(all="ignore"):
        print_above("methods", names, bool(options.names), (
            row(name, effort, SIZES[:1] if options.smoke else SIZES) for name in names))


if __name__ == "__main__":
    main()
