"""Distributions of random numbers: `normal`, `gamma`, `zipf`, … of `cytape.numpy.random`.

A distribution is a function with NumPy's parameters. Its decorator declares the op that draws and a
formula that transforms the draw, and gives the function `draw`. The formula is differentiable in
the parameters, with the draw held fixed. Parameters of the op itself have no derivative and must
not be recorded.

Eager calls draw from NumPy's global generator, which `seed` sets. In a graph each call is a node,
which draws once per run, in the order of the calls. A graph or call with a seed has a stream of its
own (`Stream`).
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from cytape.ops.elementwise import exp, expm1, sqrt, where
from cytape.ops.elementwise import power as power_of
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.python import draws

_Function = TypeVar("_Function", bound=Callable[..., Any])


def distribution(
    example: str, formula: Callable[..., Any] | None = None, op: Any = None, *, n_fixed: int = 0,
    not_negative: str | None = None, is_vector: bool = False, counts: bool = False,
) -> Callable[[_Function], _Function]:
    """Return a decorator for the function of a distribution.

    Parameters
    ----------
    example : str
        Arguments for the example in the docstring.
    formula : callable, optional
        Of a draw and the parameters. Without it the draw is the result.
    op : Op, optional
        Draws the numbers. By default it calls the generator's method of the function's name.
    n_fixed : int, optional
        How many parameters the op takes, the first ones. They have no derivative.
    not_negative : str, optional
        Parameters to check. Without it NumPy checks all of them.
    is_vector : bool, optional
        Whether each draw is a vector as long as the last parameter.
    counts : bool, optional
        Whether the draws are integers.
    """
    checked = (not_negative or "").split()

    def decorate(function: Any) -> Any:
        name, code = function.__name__, function.__code__
        names = [x for x in code.co_varnames[:code.co_argcount] if x not in ("size", "dtype")]
        takes_dtype = "dtype" in code.co_varnames
        fixed, moving = names[:n_fixed], names[n_fixed:]
        drawing = op or _op_of(name, fixed, is_vector, counts)

        def draw(size, seed, *values, dtype=np.float64):
            if fixed:
                draws.refuse_recorded(name, **dict(zip(fixed, values, strict=False)))
            for parameter in checked:
                draws.require_not_negative(parameter, values[names.index(parameter)])
            values = draws.as_parameters(*values)
            if names and not_negative is None:
                draws.require_valid(name, *values)
            options = {} if counts else {
                "dtype": np.dtype(dtype) if takes_dtype else draws.dtype_of(*values)}
            drawn = draws.draw_of(
                drawing, *values[:n_fixed], beside=values[n_fixed:], size=size, seed=seed,
                is_vector=is_vector, **options)
            return formula(drawn, *values) if formula else drawn

        function.__doc__ = _docstring(
            function, fixed, moving, example, takes_dtype, counts,
            "(3, 2)" if is_vector else "(3,)")
        added = ("seed", "dtype") if takes_dtype else ("seed",)
        function = numpy_function(getattr(np.random, name), *names, added=added)(function)
        function.draw = draw
        return draws.drawing_function(function)

    return decorate


def _op_of(name, fixed, is_vector, counts):
    op_name = f"Random{name.title().replace('_', '')}"
    if counts:
        return draws.drawing_counts(op_name, name, *fixed, is_vector=is_vector)
    return draws.drawing(
        op_name, name, len(fixed), casts=True, is_vector=is_vector,
        derivatives=draws.without_derivative(name, *fixed) if fixed else None)


def _docstring(function, fixed, moving, example, takes_dtype, is_counts, shape):
    name = function.__name__
    said = {
        ", ".join(fixed): "Without a derivative: must not be recorded.",
        ", ".join(moving): "Differentiable, the draw being held fixed."}
    parameters = "".join(f"{names} : float or Tensor\n        {text}\n    "
                         for names, text in said.items() if names)
    dtype = "dtype : {numpy.float64, numpy.float32}\n    " * takes_dtype
    of_integers = "\n        Of integers." * is_counts
    arguments = ", ".join(filter(None, [example, "size=3"]))
    return f"""{function.__doc__.removesuffix(".")}, as `numpy.random.{name}`.

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


def _moved(drawn, loc, scale):
    return drawn if draws.is_number(loc, 0) and draws.is_number(scale, 1) else loc + scale * drawn


def _scaled(drawn, scale):
    return drawn if draws.is_number(scale, 1) else scale * drawn


def _between(u, low, high):
    return u if draws.is_number(low, 0) and draws.is_number(high, 1) else low + (high - low) * u


def _triangular(u, left, mode, right):
    width = right - left
    below = u <= (mode - left) / width
    # A root that is not selected is of 1: the slope of a root of 0 is infinite.
    rising = sqrt(where(below, u * ((mode - left) * width), 1))
    falling = sqrt(where(below, 1, (1 - u) * ((right - mode) * width)))
    return where(below, left + rising, right - falling)


# -- differentiable in their parameters ------------------------------------------------------------


@distribution("", op=draws.uniform_op)
def random(size=None, dtype=np.float64, *, seed=None) -> Any:
    """Draw uniformly from [0, 1)."""
    return random.draw(size, seed, dtype=dtype)


@distribution("2.0, 3.0", _between, draws.uniform_op, not_negative="")
def uniform(low=0.0, high=1.0, size=None, *, seed=None) -> Any:
    """Draw uniformly from [low, high)."""
    return uniform.draw(size, seed, low, high)


@distribution("", op=draws.normal_op)
def standard_normal(size=None, dtype=np.float64, *, seed=None) -> Any:
    """Draw from the normal distribution of mean 0 and variance 1."""
    return standard_normal.draw(size, seed, dtype=dtype)


@distribution("1.0, 2.0", _moved, draws.normal_op, not_negative="scale")
def normal(loc=0.0, scale=1.0, size=None, *, seed=None) -> Any:
    """Draw from a normal distribution of mean `loc` and standard deviation `scale`."""
    return normal.draw(size, seed, loc, scale)


@distribution("1.0, 2.0", lambda *drawn: exp(_moved(*drawn)), draws.normal_op, not_negative="sigma")
def lognormal(mean=0.0, sigma=1.0, size=None, *, seed=None) -> Any:
    """Draw the exponential of a normal distribution of this mean and standard deviation."""
    return lognormal.draw(size, seed, mean, sigma)


@distribution("", op=draws.exponential_op)
def standard_exponential(size=None, dtype=np.float64, *, seed=None) -> Any:
    """Draw from the exponential distribution of mean 1."""
    return standard_exponential.draw(size, seed, dtype=dtype)


@distribution("2.0", _scaled, draws.exponential_op, not_negative="scale")
def exponential(scale=1.0, size=None, *, seed=None) -> Any:
    """Draw from an exponential distribution of mean `scale`."""
    return exponential.draw(size, seed, scale)


@distribution("2.0", lambda e, a: expm1(e / a), draws.exponential_op)
def pareto(a, size=None, *, seed=None) -> Any:
    """Draw exp(e / a) - 1, where e is from the standard exponential distribution."""
    return pareto.draw(size, seed, a)


@distribution("2.0", lambda e, a: power_of(-expm1(-e), 1 / a), draws.exponential_op)
def power(a, size=None, *, seed=None) -> Any:
    """Draw (1 - exp(-e)) ** (1 / a), where e is from the standard exponential distribution."""
    return power.draw(size, seed, a)


@distribution("2.0", lambda e, a: power_of(e, 1 / a), draws.exponential_op)
def weibull(a, size=None, *, seed=None) -> Any:
    """Draw e ** (1 / a), where e is from the standard exponential distribution."""
    return weibull.draw(size, seed, a)


@distribution("2.0", op=draws.standard_gamma_op, n_fixed=1, not_negative="shape")
def standard_gamma(shape, size=None, dtype=np.float64, *, seed=None) -> Any:
    """Draw from a gamma distribution of scale 1."""
    return standard_gamma.draw(size, seed, shape, dtype=dtype)


@distribution(
    "2.0, 3.0", lambda drawn, _, scale: _scaled(drawn, scale), draws.gamma_op, n_fixed=1,
    not_negative="shape scale")
def gamma(shape, scale=1.0, size=None, *, seed=None) -> Any:
    """Draw from a gamma distribution."""
    return gamma.draw(size, seed, shape, scale)


@distribution("1.0, 2.0", _moved, not_negative="scale")
def gumbel(loc=0.0, scale=1.0, size=None, *, seed=None) -> Any:
    """Draw from a Gumbel distribution."""
    return gumbel.draw(size, seed, loc, scale)


@distribution("1.0, 2.0", _moved, not_negative="scale")
def laplace(loc=0.0, scale=1.0, size=None, *, seed=None) -> Any:
    """Draw from a Laplace distribution."""
    return laplace.draw(size, seed, loc, scale)


@distribution("1.0, 2.0", _moved, not_negative="scale")
def logistic(loc=0.0, scale=1.0, size=None, *, seed=None) -> Any:
    """Draw from a logistic distribution."""
    return logistic.draw(size, seed, loc, scale)


@distribution("2.0", _scaled, not_negative="scale")
def rayleigh(scale=1.0, size=None, *, seed=None) -> Any:
    """Draw from a Rayleigh distribution."""
    return rayleigh.draw(size, seed, scale)


@distribution("")
def standard_cauchy(size=None, *, seed=None) -> Any:
    """Draw from the Cauchy distribution of location 0 and scale 1."""
    return standard_cauchy.draw(size, seed)


@distribution("0.0, 1.0, 4.0", _triangular, draws.uniform_op)
def triangular(left, mode, right, size=None, *, seed=None) -> Any:
    """Draw from a triangular distribution, whose distribution function is inverted."""
    return triangular.draw(size, seed, left, mode, right)


# -- without derivatives: NumPy draws them by rejection --------------------------------------------


@distribution("2.0, 3.0", n_fixed=2)
def beta(a, b, size=None, *, seed=None) -> Any:
    """Draw from a beta distribution."""
    return beta.draw(size, seed, a, b)


@distribution("2.0", n_fixed=1)
def chisquare(df, size=None, *, seed=None) -> Any:
    """Draw from a chi-square distribution."""
    return chisquare.draw(size, seed, df)


@distribution("[1.0, 2.0]", n_fixed=1, is_vector=True)
def dirichlet(alpha, size=None, *, seed=None) -> Any:
    """Draw vectors from a Dirichlet distribution."""
    return dirichlet.draw(size, seed, alpha)


@distribution("2.0, 3.0", n_fixed=2)
def f(dfnum, dfden, size=None, *, seed=None) -> Any:
    """Draw from an F distribution."""
    return f.draw(size, seed, dfnum, dfden)


@distribution("2.0, 3.0", n_fixed=2)
def noncentral_chisquare(df, nonc, size=None, *, seed=None) -> Any:
    """Draw from a noncentral chi-square distribution."""
    return noncentral_chisquare.draw(size, seed, df, nonc)


@distribution("2.0, 3.0, 1.0", n_fixed=3)
def noncentral_f(dfnum, dfden, nonc, size=None, *, seed=None) -> Any:
    """Draw from a noncentral F distribution."""
    return noncentral_f.draw(size, seed, dfnum, dfden, nonc)


@distribution("3.0", n_fixed=1)
def standard_t(df, size=None, *, seed=None) -> Any:
    """Draw from Student's t distribution."""
    return standard_t.draw(size, seed, df)


@distribution("0.5, 2.0", n_fixed=2)
def vonmises(mu, kappa, size=None, *, seed=None) -> Any:
    """Draw from a von Mises distribution."""
    return vonmises.draw(size, seed, mu, kappa)


@distribution("1.0, 2.0", n_fixed=2)
def wald(mean, scale, size=None, *, seed=None) -> Any:
    """Draw from a Wald distribution."""
    return wald.draw(size, seed, mean, scale)


# -- integers, without derivatives; traces that are differentiated warn of them --------------------


@distribution("4.0", n_fixed=1, not_negative="lam", counts=True)
def poisson(lam=1.0, size=None, *, seed=None) -> Any:
    """Draw from a Poisson distribution of mean `lam`."""
    return poisson.draw(size, seed, lam)


@distribution("10, 0.5", n_fixed=2, not_negative="n p", counts=True)
def binomial(n, p, size=None, *, seed=None) -> Any:
    """Draw from a binomial distribution: successes in `n` trials."""
    return binomial.draw(size, seed, n, p)


@distribution("0.5", n_fixed=1, counts=True)
def geometric(p, size=None, *, seed=None) -> Any:
    """Draw from a geometric distribution: trials up to the first success."""
    return geometric.draw(size, seed, p)


@distribution("5, 4, 3", n_fixed=3, counts=True)
def hypergeometric(ngood, nbad, nsample, size=None, *, seed=None) -> Any:
    """Draw from a hypergeometric distribution."""
    return hypergeometric.draw(size, seed, ngood, nbad, nsample)


@distribution("0.5", n_fixed=1, counts=True)
def logseries(p, size=None, *, seed=None) -> Any:
    """Draw from a logarithmic series distribution."""
    return logseries.draw(size, seed, p)


@distribution("9, [0.25, 0.75]", n_fixed=2, is_vector=True, counts=True)
def multinomial(n, pvals, size=None, *, seed=None) -> Any:
    """Draw vectors from a multinomial distribution."""
    return multinomial.draw(size, seed, n, pvals)


@distribution("3, 0.5", n_fixed=2, counts=True)
def negative_binomial(n, p, size=None, *, seed=None) -> Any:
    """Draw from a negative binomial distribution."""
    return negative_binomial.draw(size, seed, n, p)


@distribution("2.0", n_fixed=1, counts=True)
def zipf(a, size=None, *, seed=None) -> Any:
    """Draw from a Zipf distribution."""
    return zipf.draw(size, seed, a)
