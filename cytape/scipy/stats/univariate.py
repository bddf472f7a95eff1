"""Distributions of one variable, each declared by its log density and distribution functions.

A declaration has functions of the standardised variable and of the shape parameters; location,
scale, the support and invalid parameters are handled for all distributions alike. Logarithms of
probabilities are computed directly where the probabilities underflow. Gradients are 0 outside of
the support, and NaN for invalid parameters.
"""

import math

import numpy as np
import scipy.stats as stats

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.comparisons import floor
from cytape.ops.elementwise import exp, log, log1p, where
from cytape.ops.special import (
    betainc,
    betaincc,
    betaln,
    gammainc,
    gammaincc,
    gammaln,
    log_ndtr,
    ndtr,
    stdtr,
    xlog1py,
    xlogy,
)
from cytape.ops.special.error_functions import t_log_density
from cytape.ops.special.incomplete_functions import beta_density, gamma_density

__all__ = ["beta", "chi2", "gamma", "norm", "poisson", "t"]

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_ROOT_2PI = math.sqrt(2 * math.pi)


def _log(p, q):
    """Return the logarithm of a probability, given that of the complement."""
    is_small = p < 0.5
    with np.errstate(divide="ignore"):
        return where(is_small, log(where(is_small, p, 1)), log1p(-where(is_small, 0, q)))


def _is_float64(x):
    return x.dtype == np.float64 if type(x) is np.ndarray else type(x) in (float, int, np.float64)


class Distribution:
    """Distribution of SciPy whose densities and probabilities are differentiable.

    Parameters
    ----------
    scipys : scipy.stats.rv_continuous or rv_discrete
        Other methods are this one's.
    logpdf, cdf, sf : callable
        Functions of the standardised variable and the shape parameters. Those of a discrete
        distribution get integers.
    logcdf, logsf : callable, optional
        The default is the logarithm of `cdf` or `sf`, of the smaller one.
    pdf : callable, optional
        Density, say with finite derivatives at the ends of the support. The default is
        ``exp(logpdf)``.
    support : tuple of float, optional
    inside : float, optional
        A point of the support.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.stats import norm
    >>> cytape.grad(norm.logpdf, argnums=(1, 2))(3.0, 1.0, 2.0)
    (np.float64(0.5), np.float64(0.0))
    """

    def __init__(
            self, scipys, logpdf, cdf, sf, logcdf=None, logsf=None, pdf=None,
            support=(-np.inf, np.inf), inside=0.5):
        """Make a distribution of its functions."""
        self.scipys = scipys
        self.is_discrete = isinstance(scipys, stats.rv_discrete)
        self.support, self.inside = support, inside
        density = "pmf" if self.is_discrete else "pdf"
        functions = {  # with the values below the support, and above it
            density: (pdf or (lambda *z: exp(logpdf(*z))), 0, 0),
            f"log{density}": (logpdf, -np.inf, -np.inf),
            "cdf": (cdf, 0, 1), "sf": (sf, 1, 0),
            "logcdf": (logcdf or (lambda *z: _log(cdf(*z), sf(*z))), -np.inf, 0),
            "logsf": (logsf or (lambda *z: _log(sf(*z), cdf(*z))), 0, -np.inf)}
        for name, facts in functions.items():
            setattr(self, name, self._method(name, *facts))

    def __getattr__(self, name):
        """Return a method of SciPy's distribution."""
        return getattr(self.scipys, name)

    def __call__(self, *args, **kwds):
        """Freeze the distribution, as SciPy does; a frozen one takes no tensors."""
        return self.scipys(*args, **kwds)

    def _method(self, name, function, below, above):
        is_density = name.endswith(("pdf", "pmf"))
        numpys = getattr(self.scipys, name)

        def method(x, *args, **kwds):
            shapes, loc, scale = self.scipys._parse_args(*args, **kwds)
            x, loc, scale, *shapes = map(joined, (x, loc, scale, *shapes))
            if any(map(is_tensor, (x, loc, scale, *shapes))):
                x, loc, scale, *shapes = together(x, loc, scale, *shapes)
            elif shapes or not all(map(_is_float64, (x, loc, scale))):
                return numpys(x, *args, **kwds)  # which takes longer than the formulas
            z, scale, shapes = self._standardised(x, loc, scale, shapes)
            low, high = self.support
            if math.isfinite(low):
                is_below, is_above = z < low, z > high
                if self.is_discrete:
                    whole = floor(z)
                    is_below = is_below | (is_density & (z > whole))
                    z = whole
                value = function(where(is_below | is_above, self.inside, z), *shapes)
            else:
                value = function(z, *shapes)
            if is_density and not self.is_discrete:
                value = value - log(scale) if name == "logpdf" else value / scale
            if math.isfinite(low):
                value = where(is_below, below, where(is_above, above, value))
            return value

        method.__name__ = name
        method.__doc__ = numpys.__doc__
        return method

    def _standardised(self, x, loc, scale, shapes):
        """Return the standardised variable, and parameters with NaN for invalid ones."""
        valid = scale > 0
        for shape in shapes:
            valid = valid & (shape >= 0 if self.is_discrete else shape > 0)
        if valid is not True and (is_tensor(valid) or not np.all(valid)):
            scale, *shapes = [  # by a product, which makes gradients NaN, too
                given * where(valid, np.ones_like(given), np.nan) for given in (scale, *shapes)]
        return (x - loc) / scale, scale, shapes


norm = Distribution(
    stats.norm, lambda z: -0.5 * z * z - _HALF_LOG_2PI, ndtr, lambda z: ndtr(-z),
    log_ndtr, lambda z: log_ndtr(-z), lambda z: exp(-0.5 * z * z) / _ROOT_2PI)
t = Distribution(
    stats.t, t_log_density, lambda z, df: stdtr(df, z), lambda z, df: stdtr(df, -z))
gamma = Distribution(
    stats.gamma, lambda z, a: xlogy(a - 1, z) - z - gammaln(a), lambda z, a: gammainc(a, z),
    lambda z, a: gammaincc(a, z), pdf=lambda z, a: gamma_density(a, z), support=(0, np.inf))
chi2 = Distribution(
    stats.chi2,
    lambda z, df: xlogy(0.5 * df - 1, 0.5 * z) - 0.5 * z - gammaln(0.5 * df) - math.log(2),
    lambda z, df: gammainc(0.5 * df, 0.5 * z), lambda z, df: gammaincc(0.5 * df, 0.5 * z),
    pdf=lambda z, df: 0.5 * gamma_density(0.5 * df, 0.5 * z), support=(0, np.inf))
beta = Distribution(
    stats.beta, lambda z, a, b: xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b),
    lambda z, a, b: betainc(a, b, z), lambda z, a, b: betaincc(a, b, z),
    pdf=lambda z, a, b: beta_density(a, b, z), support=(0, 1))
poisson = Distribution(
    stats.poisson, lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu,
    lambda k, mu: gammaincc(k + 1, mu), lambda k, mu: gammainc(k + 1, mu),
    pdf=lambda k, mu: gamma_density(k + 1, mu), support=(0, np.inf), inside=1)
