"""Distributions of matrices, of directions and of counts with random probabilities."""

import inspect
import math

import numpy as np
import scipy.stats as stats

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.elementwise import exp, log, where
from cytape.ops.special import gammaln, xlogy
from cytape.ops.special.bessel_functions import log_ive
from cytape.ops.submodules.solving import inv, slogdet, solve
from cytape.scipy.stats.distribution import HALF_LOG_2PI, LOG_2, Frozen, frozen, named
from cytape.scipy.stats.multivariate import is_known

__all__ = [
    "dirichlet_multinomial", "invwishart", "matrix_normal", "normal_inverse_gamma",
    "vonmises_fisher", "wishart"]

_LOG_2PI = 2 * HALF_LOG_2PI


def _number(x):
    """Return the value, a scalar if it has no axes: SciPy takes no array for it."""
    x = x.numpy() if is_tensor(x) else x
    return x[()] if type(x) is np.ndarray else x


class Joint:
    """Distribution of SciPy whose density is differentiable in all arguments.

    Parameters
    ----------
    name : str
        In `scipy.stats`. Operands with known values are checked by its method, and other methods
        are its own.
    log_density : callable
        Of the arguments of its method ``logpdf`` or ``logpmf``.
    check : callable, optional
        Checks known values instead of SciPy's method.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.stats import wishart
    >>> cytape.grad(lambda df: wishart.logpdf(2.0, df, 1.5))(4.0).round(6)
    np.float64(-0.414125)
    """

    def __init__(self, name, log_density, check=None):
        """Make methods for the density and its logarithm."""
        self.name, self.scipys = name, getattr(stats, name)
        density = "pdf" if hasattr(self.scipys, "logpdf") else "pmf"
        scipys = getattr(self.scipys, f"log{density}")
        check = check or (lambda _, *given: scipys(*given))
        signature = inspect.signature(scipys)

        def log_method(*args, **kwds):
            bound = signature.bind(*args, **kwds)
            bound.apply_defaults()
            given = {name: joined(x) for name, x in bound.arguments.items()}
            if not any(map(is_tensor, given.values())):
                return scipys(*args, **kwds)
            if is_known(*given.values()):
                with np.errstate(all="ignore"):
                    check(self.scipys, *map(_number, given.values()))  # raises errors
            return np.squeeze(log_density(*together(*[
                np.asarray(x) if isinstance(x, (list, tuple)) else x for x in given.values()])))

        def method(*args, **kwds):
            value = log_method(*args, **kwds)
            return exp(value) if is_tensor(value) else getattr(self.scipys, density)(*args, **kwds)

        self.methods = {f"log{density}": log_method, density: method}
        for name, function in self.methods.items():
            function.__name__, function.__doc__ = name, getattr(self.scipys, name).__doc__
            setattr(self, name, function)

    def __getattr__(self, name):
        """Return a method of SciPy's distribution."""
        return getattr(object.__getattribute__(self, "scipys"), name)

    def __call__(self, *args, **kwds):
        """Freeze the distribution: SciPy's frozen one, with methods that take tensors."""
        if any(map(is_tensor, (*args, *kwds.values()))):
            return Frozen(self, args, kwds)
        return frozen(self, self.methods, args, kwds)

    def __reduce__(self):
        """Pickle by name."""
        return named, (self.name,)


def _matrix(x, n):
    """Return a matrix; a number is a multiple of the unit matrix, a vector a diagonal."""
    return x * np.eye(n) if np.ndim(x) < 2 else x


def _matrices(x, scale):
    """Return matrices in the leading axis, and the scale matrix, of one size."""
    n = max(np.shape(scale)[0] if np.ndim(scale) else 1, np.shape(x)[0] if np.ndim(x) > 1 else 1)
    if np.ndim(x) == 3:
        x = np.moveaxis(x, -1, 0)
    elif np.ndim(x) == 1 and n == 1:
        x = x[:, None, None]
    else:
        x = _matrix(x, n)[None]
    return n, x, _matrix(scale, n)


def _trace_of_quotient(matrix, other):
    """Return the trace of inv(matrix) @ other."""
    return np.sum(inv(matrix) * other, (-2, -1))  # of a symmetric matrix


def _log_multigamma(df, n):
    return 0.25 * n * (n - 1) * math.log(math.pi) + np.sum(gammaln(0.5 * (df - np.arange(n))))


def _check_wishart(scipys, x, df, scale):
    """Raise SciPy's errors; its density would take longer than ours."""
    n, _, scale = scipys._process_parameters(df, scale)
    np.linalg.cholesky(np.moveaxis(scipys._process_quantiles(x, n), -1, 0))
    np.linalg.cholesky(scale)


def _wishart(x, df, scale):
    n, x, scale = _matrices(x, scale)
    return (0.5 * (df - n - 1) * slogdet(x).logabsdet - 0.5 * _trace_of_quotient(scale, x)
            - 0.5 * df * (n * LOG_2 + slogdet(scale).logabsdet) - _log_multigamma(df, n))


def _inverse_wishart(x, df, scale):
    n, x, scale = _matrices(x, scale)
    return (0.5 * df * (slogdet(scale).logabsdet - n * LOG_2)
            - 0.5 * _trace_of_quotient(x, scale)
            - 0.5 * (df + n + 1) * slogdet(x).logabsdet - _log_multigamma(df, n))


def _matrix_normal(x, mean, rowcov, colcov):
    rows, columns = np.shape(x)[-2:]
    rowcov, colcov = _matrix(rowcov, rows), _matrix(colcov, columns)
    deviation = x if mean is None else x - mean
    whitened = solve(rowcov + 0 * deviation[..., :1], deviation)
    whitened = np.swapaxes(
        solve(colcov + 0 * np.swapaxes(whitened, -1, -2)[..., :1], np.swapaxes(
            whitened, -1, -2)), -1, -2)
    return -0.5 * (
        rows * columns * _LOG_2PI + columns * slogdet(rowcov).logabsdet
        + rows * slogdet(colcov).logabsdet + np.sum(deviation * whitened, (-2, -1)))


def _dirichlet_multinomial(x, alpha, n):
    total = np.sum(alpha, -1)
    value = (gammaln(total) + gammaln(n + 1) - gammaln(n + total) + np.sum(
        gammaln(x + alpha) - gammaln(alpha) - gammaln(x + 1), -1))
    return where(np.sum(x, -1) == n, value, -np.inf)


def _directions(x, mu, kappa):
    half = 0.5 * np.shape(mu)[-1]
    return (xlogy(half - 1, kappa) - half * _LOG_2PI - log_ive(half - 1, kappa) - kappa
            + kappa * (x @ mu))


def _normal_inverse_gamma(x, s2, mu, lmbda, a, b):
    is_valid = (lmbda > 0) & (a > 0) & (b > 0)
    is_inside = s2 > 0
    s2 = where(is_inside, s2, 1)
    value = (0.5 * (log(lmbda) - _LOG_2PI) - (a + 1.5) * log(s2) + xlogy(a, b) - gammaln(a)
             - (2 * b + lmbda * (x - mu)**2) / (2 * s2))
    return where(is_valid, where(is_inside, value, -np.inf), np.nan)


wishart = Joint("wishart", _wishart, _check_wishart)
invwishart = Joint("invwishart", _inverse_wishart, _check_wishart)
matrix_normal = Joint("matrix_normal", _matrix_normal)
dirichlet_multinomial = Joint("dirichlet_multinomial", _dirichlet_multinomial)
vonmises_fisher = Joint("vonmises_fisher", _directions)
normal_inverse_gamma = Joint("normal_inverse_gamma", _normal_inverse_gamma)
