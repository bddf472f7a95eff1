"""Distributions of random numbers: `normal`, `gamma`, `zipf`, … of `cytape.numpy.random`.

A distribution is one row: an op that draws, and a formula that turns the draw into a number of the
distribution. The formula is differentiable in the parameters, the draw being held fixed. Parameters
that the op takes itself have no derivative: they must not be recorded.

The numbers are those of NumPy's global generator, which `seed` sets, arrays of arrays. In a graph
each call is a node, which draws once in a run, in the order of the calls. A graph or call with a
seed draws from a stream of its own (`Stream`).
"""

import re

import numpy as np

from cytape.ops.elementwise import exp, expm1, sqrt, where
from cytape.ops.elementwise import power as power_of
from cytape.ops.python import draws


def distribution(
    name, parameters, doc, example, op, formula=None, fixed="", not_negative=None,
    is_vector=False, takes_dtype=False,
):
    """Return the function of a distribution.

    Parameters
    ----------
    name, parameters : str
        NumPy's, the parameters with their defaults.
    doc, example : str
        Words for the docstring, and arguments for its example.
    op : Op
        Draws the numbers.
    formula : callable, optional
        Of a draw and the parameters. Without it the draw is the result.
    fixed : str, optional
        Parameters that the op takes, which come first.
    not_negative : str, optional
        Parameters to check. Without it NumPy checks all of them.
    is_vector : bool, optional
        Whether each draw is a vector as long as the last parameter.
    takes_dtype : bool, optional
        Whether the function has a parameter `dtype`.
    """
    names = [parameter.partition("=")[0] for parameter in parameters.split(", ") if parameter]
    fixed, checked = fixed.split(), (not_negative or "").split()

    def call(values, size, seed, dtype=np.float64):
        if fixed:
            draws.refuse_recorded(name, **dict(zip(fixed, values, strict=False)))
        for parameter in checked:
            draws.require_not_negative(parameter, values[names.index(parameter)])
        values = draws.as_parameters(*values)
        if names and not_negative is None:
            draws.require_valid(name, *values)
        options = {} if op in draws.COUNTS else {
            "dtype": np.dtype(dtype) if takes_dtype else draws.dtype_of(*values)}
        drawn = draws.draw_of(
            op, *values[:len(fixed)], beside=values[len(fixed):], size=size, seed=seed,
            is_vector=is_vector, **options)
        return formula(drawn, *values) if formula else drawn

    # From text, for NumPy's names and defaults, and Python's errors for arguments that do not fit.
    before, given = parameters and f"{parameters}, ", "".join(f"{name}, " for name in names)
    dtype, is_default, passed = (
        ", dtype=np.float64", "dtype is np.float64 and ", ", dtype") if takes_dtype else 3 * ("",)
    text = (f"lambda call: lambda {before}size=None{dtype}, *, seed=None: "
            f"np.random.{name}({given}size) if {is_default}draws.is_numpys(seed, {given}) "
            f"else call([{given}], size, seed{passed})")
    function = eval(compile(text, __file__, "eval"))(call)  # warnings skip lines of this package
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _docstring(
        name, names, fixed, doc, example, takes_dtype, op in draws.COUNTS,
        "(3, 2)" if is_vector else "(3,)")
    return draws.drawing_function(function)


def _docstring(name, names, fixed, doc, example, takes_dtype, is_counts, shape):
    said = {
        ", ".join(fixed): "Without a derivative: must not be recorded.",
        ", ".join(names[len(fixed):]): "Differentiable, the draw being held fixed."}
    parameters = "".join(f"{names} : float or Tensor\n        {text}\n    "
                         for names, text in said.items() if names)
    dtype = "dtype : {numpy.float64, numpy.float32}\n    " * takes_dtype
    of_integers = "\n        Of integers." * is_counts
    arguments = ", ".join(filter(None, [example, "size=3"]))
    return f"""Draw {doc}, as `numpy.random.{name}`.

    Parameters
    ----------
    {parameters}size : int or tuple of int, optional
        The shape; by default that of the parameters when broadcast.
    {dtype}seed : int, optional
        Of this call; by default NumPy's generator goes on, or, in a graph with a seed, a stream
        that begins where that says.

    Returns
    -------
    ndarray or Tensor{of_integers}

    Raises
    ------
    ValueError
        If a parameter is out of range, the shapes do not fit, or the seed is negative or no
        integer.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.{name}({arguments}).shape
    {shape}
    """


def without_derivatives(name, parameters, doc, example, is_vector=False):
    """Return the function of a distribution whose draws have no derivative in any parameter."""
    names = parameters.split(", ")
    op = draws.drawing(_op_name(name), name, len(names), casts=True, is_vector=is_vector,
                       derivatives=draws.without_derivative(name, *names))
    return distribution(name, parameters, doc, example, op, fixed=parameters.replace(",", ""),
                        is_vector=is_vector)


def counts(name, parameters, doc, example, not_negative=None, is_vector=False):
    """Return the function of a distribution of integers."""
    names = re.findall(r"[a-z]+", parameters)
    op = draws.drawing_counts(_op_name(name), name, *names, is_vector=is_vector)
    return distribution(name, parameters, doc, example, op, fixed=" ".join(names),
                        not_negative=not_negative, is_vector=is_vector)


def _op_name(name):
    return f"Random{name.title().replace('_', '')}"


def _moved(drawn, loc, scale):
    return drawn if draws.is_number(loc, 0) and draws.is_number(scale, 1) else loc + scale * drawn


def _scaled(drawn, scale):
    return drawn if draws.is_number(scale, 1) else scale * drawn


def _between(u, low, high):
    return u if draws.is_number(low, 0) and draws.is_number(high, 1) else low + (high - low) * u


def _triangular(u, left, mode, right):
    width = right - left
    below = u <= (mode - left) / width
    # Each root is taken where it is chosen: beyond it may be one of 0, whose slope is infinite.
    rising = sqrt(where(below, u * ((mode - left) * width), 1))
    falling = sqrt(where(below, 1, (1 - u) * ((right - mode) * width)))
    return where(below, left + rising, right - falling)


# -- differentiable in their parameters ------------------------------------------------------------

random = distribution("random", "", "uniformly from [0, 1)", "", draws.uniform_op, takes_dtype=True)
uniform = distribution(
    "uniform", "low=0.0, high=1.0", "uniformly from [low, high)", "2.0, 3.0",
    draws.uniform_op, _between, not_negative="")
standard_normal = distribution(
    "standard_normal", "", "from the normal distribution of mean 0 and variance 1", "",
    draws.normal_op, takes_dtype=True)
normal = distribution(
    "normal", "loc=0.0, scale=1.0",
    "from a normal distribution of mean `loc` and standard deviation `scale`", "1.0, 2.0",
    draws.normal_op, _moved, not_negative="scale")
lognormal = distribution(
    "lognormal", "mean=0.0, sigma=1.0",
    "the exponential of a normal distribution of this mean and standard deviation", "1.0, 2.0",
    draws.normal_op, lambda *drawn: exp(_moved(*drawn)), not_negative="sigma")
standard_exponential = distribution(
    "standard_exponential", "", "from the exponential distribution of mean 1", "",
    draws.exponential_op, takes_dtype=True)
exponential = distribution(
    "exponential", "scale=1.0", "from an exponential distribution of mean `scale`", "2.0",
    draws.exponential_op, _scaled, not_negative="scale")
pareto = distribution(
    "pareto", "a", "exp(e / a) - 1, where e is from the standard exponential distribution", "2.0",
    draws.exponential_op, lambda e, a: expm1(e / a))
power = distribution(
    "power", "a",
    "(1 - exp(-e)) ** (1 / a), where e is from the standard exponential distribution", "2.0",
    draws.exponential_op, lambda e, a: power_of(-expm1(-e), 1 / a))
weibull = distribution(
    "weibull", "a", "e ** (1 / a), where e is from the standard exponential distribution", "2.0",
    draws.exponential_op, lambda e, a: power_of(e, 1 / a))
standard_gamma = distribution(
    "standard_gamma", "shape", "from a gamma distribution of scale 1", "2.0",
    draws.gamma_op, fixed="shape", not_negative="shape", takes_dtype=True)
gamma = distribution(
    "gamma", "shape, scale=1.0", "from a gamma distribution", "2.0, 3.0",
    draws.gamma_op, lambda drawn, _, scale: _scaled(drawn, scale), fixed="shape",
    not_negative="shape scale")
gumbel = distribution(
    "gumbel", "loc=0.0, scale=1.0", "from a Gumbel distribution", "1.0, 2.0",
    draws.drawing("RandomGumbel", "gumbel", casts=True), _moved, not_negative="scale")
laplace = distribution(
    "laplace", "loc=0.0, scale=1.0", "from a Laplace distribution", "1.0, 2.0",
    draws.drawing("RandomLaplace", "laplace", casts=True), _moved, not_negative="scale")
logistic = distribution(
    "logistic", "loc=0.0, scale=1.0", "from a logistic distribution", "1.0, 2.0",
    draws.drawing("RandomLogistic", "logistic", casts=True), _moved, not_negative="scale")
rayleigh = distribution(
    "rayleigh", "scale=1.0", "from a Rayleigh distribution", "2.0",
    draws.drawing("RandomRayleigh", "rayleigh", casts=True), _scaled, not_negative="scale")
standard_cauchy = distribution(
    "standard_cauchy", "", "from the Cauchy distribution of location 0 and scale 1", "",
    draws.drawing("RandomStandardCauchy", "standard_cauchy", casts=True))
triangular = distribution(
    "triangular", "left, mode, right",
    "from a triangular distribution, whose distribution function is inverted", "0.0, 1.0, 4.0",
    draws.uniform_op, _triangular)

# -- without derivatives: NumPy draws them by algorithms that reject and repeat --------------------

beta = without_derivatives("beta", "a, b", "from a beta distribution", "2.0, 3.0")
chisquare = without_derivatives("chisquare", "df", "from a chi-square distribution", "2.0")
dirichlet = without_derivatives(
    "dirichlet", "alpha", "vectors from a Dirichlet distribution", "[1.0, 2.0]", is_vector=True)
f = without_derivatives("f", "dfnum, dfden", "from an F distribution", "2.0, 3.0")
noncentral_chisquare = without_derivatives(
    "noncentral_chisquare", "df, nonc", "from a noncentral chi-square distribution", "2.0, 3.0")
noncentral_f = without_derivatives(
    "noncentral_f", "dfnum, dfden, nonc", "from a noncentral F distribution", "2.0, 3.0, 1.0")
standard_t = without_derivatives("standard_t", "df", "from Student's t distribution", "3.0")
vonmises = without_derivatives("vonmises", "mu, kappa", "from a von Mises distribution", "0.5, 2.0")
wald = without_derivatives("wald", "mean, scale", "from a Wald distribution", "1.0, 2.0")

# -- integers, without derivatives; traces that are differentiated warn of them --------------------

poisson = counts(
    "poisson", "lam=1.0", "from a Poisson distribution of mean `lam`", "4.0", not_negative="lam")
binomial = counts(
    "binomial", "n, p", "from a binomial distribution: successes in `n` trials", "10, 0.5",
    not_negative="n p")
geometric = counts(
    "geometric", "p", "from a geometric distribution: trials up to the first success", "0.5")
hypergeometric = counts(
    "hypergeometric", "ngood, nbad, nsample", "from a hypergeometric distribution", "5, 4, 3")
logseries = counts("logseries", "p", "from a logarithmic series distribution", "0.5")
multinomial = counts(
    "multinomial", "n, pvals", "vectors from a multinomial distribution", "9, [0.25, 0.75]",
    is_vector=True)
negative_binomial = counts(
    "negative_binomial", "n, p", "from a negative binomial distribution", "3, 0.5")
zipf = counts("zipf", "a", "from a Zipf distribution", "2.0")
