"""Random draws that have no derivative in their parameters: NumPy makes them by other algorithms.

They are numbers of NumPy's method, drawn anew in each run of a graph. A parameter that is being
recorded is an error, in a graph when its derivative is asked for. (Those that are integers have no
derivative anywhere; traces that are differentiated warn of them.)
"""

import numpy as np

from cytape.ops.shared.draws import (
    COUNTS,
    as_parameters,
    draw_of,
    drawing,
    drawing_counts,
    drawing_functions,
    dtype_of,
    is_numpys,
    refuse_recorded,
    require_valid,
    without_derivative,
)

__all__ = [
    "beta", "chisquare", "dirichlet", "f", "geometric", "hypergeometric", "logseries",
    "multinomial", "negative_binomial", "noncentral_chisquare", "noncentral_f", "standard_t",
    "vonmises", "wald", "zipf",
]  # fmt: skip

_OPS: dict = {}  # of the functions, by name


def _continuous(function, *parameters, is_vector=False):
    _OPS[function] = drawing(
        _name(function), function, len(parameters), casts=True, is_vector=is_vector,
        derivatives=without_derivative(function, *parameters))


def _discrete(function, *parameters, is_vector=False):
    _OPS[function] = drawing_counts(
        _name(function), function, *parameters, is_vector=is_vector)


def _name(function):
    return f"Random{function.title().replace('_', '')}"


_continuous("beta", "a", "b")
_continuous("chisquare", "df")
_continuous("dirichlet", "alpha", is_vector=True)
_continuous("f", "dfnum", "dfden")
_discrete("geometric", "p")
_discrete("hypergeometric", "ngood", "nbad", "nsample")
_discrete("logseries", "p")
_discrete("multinomial", "n", "pvals", is_vector=True)
_discrete("negative_binomial", "n", "p")
_continuous("noncentral_chisquare", "df", "nonc")
_continuous("noncentral_f", "dfnum", "dfden", "nonc")
_continuous("standard_t", "df")
_continuous("vonmises", "mu", "kappa")
_continuous("wald", "mean", "scale")
_discrete("zipf", "a")


def _drawn(function, size, seed, is_vector=False, **parameters):
    values = parameters.values()
    if is_numpys(seed, *values):
        return getattr(np.random, function)(*values, size)
    refuse_recorded(function, **parameters)
    values = as_parameters(*values)
    require_valid(function, *values)
    op = _OPS[function]
    dtype = {} if op in COUNTS else {"dtype": dtype_of(*values)}
    return draw_of(op, *values, size=size, seed=seed, is_vector=is_vector, **dtype)


def beta(a, b, size=None, *, seed=None):
    """Draw as `numpy.random.beta`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.beta(2.0, 3.0, size=3).shape
    (3,)
    """
    return _drawn("beta", size, seed, a=a, b=b)


def chisquare(df, size=None, *, seed=None):
    """Draw as `numpy.random.chisquare`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.chisquare(2.0, size=3).shape
    (3,)
    """
    return _drawn("chisquare", size, seed, df=df)


def dirichlet(alpha, size=None, *, seed=None):
    """Draw as `numpy.random.dirichlet`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.dirichlet([1.0, 2.0], size=3).shape
    (3, 2)
    """
    return _drawn("dirichlet", size, seed, is_vector=True, alpha=alpha)


def f(dfnum, dfden, size=None, *, seed=None):
    """Draw as `numpy.random.f`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.f(2.0, 3.0, size=3).shape
    (3,)
    """
    return _drawn("f", size, seed, dfnum=dfnum, dfden=dfden)


def geometric(p, size=None, *, seed=None):
    """Draw as `numpy.random.geometric`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.geometric(0.5, size=3).shape
    (3,)
    """
    return _drawn("geometric", size, seed, p=p)


def hypergeometric(ngood, nbad, nsample, size=None, *, seed=None):
    """Draw as `numpy.random.hypergeometric`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.hypergeometric(5, 4, 3, size=3).shape
    (3,)
    """
    return _drawn("hypergeometric", size, seed, ngood=ngood, nbad=nbad, nsample=nsample)


def logseries(p, size=None, *, seed=None):
    """Draw as `numpy.random.logseries`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.logseries(0.5, size=3).shape
    (3,)
    """
    return _drawn("logseries", size, seed, p=p)


def multinomial(n, pvals, size=None, *, seed=None):
    """Draw as `numpy.random.multinomial`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.multinomial(9, [0.25, 0.75], size=3).shape
    (3, 2)
    """
    return _drawn("multinomial", size, seed, is_vector=True, n=n, pvals=pvals)


def negative_binomial(n, p, size=None, *, seed=None):
    """Draw as `numpy.random.negative_binomial`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.negative_binomial(3, 0.5, size=3).shape
    (3,)
    """
    return _drawn("negative_binomial", size, seed, n=n, p=p)


def noncentral_chisquare(df, nonc, size=None, *, seed=None):
    """Draw as `numpy.random.noncentral_chisquare`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.noncentral_chisquare(2.0, 3.0, size=3).shape
    (3,)
    """
    return _drawn("noncentral_chisquare", size, seed, df=df, nonc=nonc)


def noncentral_f(dfnum, dfden, nonc, size=None, *, seed=None):
    """Draw as `numpy.random.noncentral_f`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.noncentral_f(2.0, 3.0, 1.0, size=3).shape
    (3,)
    """
    return _drawn("noncentral_f", size, seed, dfnum=dfnum, dfden=dfden, nonc=nonc)


def standard_t(df, size=None, *, seed=None):
    """Draw as `numpy.random.standard_t`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.standard_t(3.0, size=3).shape
    (3,)
    """
    return _drawn("standard_t", size, seed, df=df)


def vonmises(mu, kappa, size=None, *, seed=None):
    """Draw as `numpy.random.vonmises`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.vonmises(0.5, 2.0, size=3).shape
    (3,)
    """
    return _drawn("vonmises", size, seed, mu=mu, kappa=kappa)


def wald(mean, scale, size=None, *, seed=None):
    """Draw as `numpy.random.wald`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.wald(1.0, 2.0, size=3).shape
    (3,)
    """
    return _drawn("wald", size, seed, mean=mean, scale=scale)


def zipf(a, size=None, *, seed=None):
    """Draw as `numpy.random.zipf`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.zipf(2.0, size=3).shape
    (3,)
    """
    return _drawn("zipf", size, seed, a=a)


drawing_functions += [globals()[name] for name in __all__]
