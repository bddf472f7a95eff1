"""Distributions of vectors: multivariate normal and t, Dirichlet and multinomial.

Parameters with known values are checked by SciPy, which raises its errors.
"""

import functools
import math

import numpy as np
import scipy.stats as stats

from cytape.ops import reductions
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.elementwise import exp, log, log1p, minimum, where
from cytape.ops.joining import concatenate
from cytape.ops.rearranging import tril
from cytape.ops.special import betaln, gammaln, xlogy
from cytape.ops.submodules.solving import inv, slogdet
from cytape.scipy.stats.distribution import Frozen, frozen, named
from cytape.tensor import convert_to_tensor

__all__ = ["dirichlet", "multinomial", "multivariate_normal", "multivariate_t"]

_LOG_2PI = math.log(2 * math.pi)


def is_known(*operands):
    return all(not is_tensor(x) or x.graph is None for x in operands)


def _value(x):
    return x.numpy() if is_tensor(x) else x


def _is_regular(mean, cov, n):
    """Return whether SciPy certainly takes the parameters, and finds a covariance of full rank.

    SciPy itself decides about the others; its object takes longer than the density.
    """
    if mean.shape != (n,) or cov.shape != (n, n) or not np.isfinite(mean.sum() + cov.sum()):
        return False
    eigenvalues = np.linalg.eigvalsh(cov)
    least = 1e-8 if cov.dtype == np.float64 else 1e-3  # of the largest; SciPy's are 2e-10 and 1e-4
    return eigenvalues[0] > least * eigenvalues[-1]


def _points(x, n):
    """Return points as rows."""
    x = convert_to_tensor(x)
    return x.reshape((-1, n) if x.ndim < 2 else x.shape)


def _distance(deviation, matrix):
    """Return squares of distances; the products with the inverse take less than a solution."""
    return reductions.sum(deviation @ inv(matrix) * deviation, -1)


def _whitened(numpys, distribution, whitening, x):
    """Return the log density of SciPy's frozen normal distribution of full rank."""
    x = joined(x)
    if not is_tensor(x):
        return numpys(x)
    n = distribution.dim
    normal = (_points(x, n) - distribution.mean) @ whitening
    constant = n * _LOG_2PI + distribution.cov_object.log_pdet
    return np.squeeze(-0.5 * (constant + reductions.sum(normal * normal, -1)))


class MultivariateNormal:
    """Multivariate normal distribution, as `scipy.stats.multivariate_normal`.

    The derivative in the covariance is that of its elements as independent numbers, which is
    symmetric. A singular covariance keeps its rank: the derivative is that of the pseudoinverse and
    the pseudodeterminant.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.stats import multivariate_normal
    >>> cytape.grad(multivariate_normal.logpdf)(np.array([1.0, 2.0]), np.zeros(2), np.eye(2))
    array([-1., -2.])
    """

    scipys = stats.multivariate_normal

    def __getattr__(self, name):
        """Return a method of SciPy's distribution."""
        return getattr(stats.multivariate_normal, name)

    def __call__(self, mean=None, cov=1, allow_singular=False, seed=None):
        """Freeze the distribution: SciPy's frozen one, with methods that take tensors."""
        options = {"allow_singular": allow_singular}
        if is_tensor(mean) or is_tensor(cov):
            return Frozen(self, (mean, cov), options)
        result = frozen(self, ("pdf", "logpdf"), (mean, cov), options, seed=seed)
        if np.all(result.cov_object.rank == result.dim):
            result.logpdf = functools.partial(
                _whitened, result.logpdf, result, result.cov_object.whiten(np.eye(result.dim)))
        return result

    def __reduce__(self):
        """Pickle by name."""
        return named, ("multivariate_normal",)

    def logpdf(self, x, mean=None, cov=1, allow_singular=False):
        """Return the logarithm of the density, as SciPy's method does."""
        x, mean, cov = map(joined, (x, mean, cov))
        if not any(map(is_tensor, (x, mean, cov))):
            return stats.multivariate_normal.logpdf(x, mean, cov, allow_singular)
        if isinstance(cov, stats.Covariance) and not is_tensor(mean):
            return self(mean, cov, allow_singular).logpdf(x)
        x, mean, cov = together(x, mean, cov)
        n, mean, cov, rank, projection = self._parameters(mean, cov, allow_singular)
        deviation = _points(x, n) - mean
        inside = None
        if rank < n:
            projected = deviation @ projection
            far = deviation - projected
            inside = reductions.sum(far * far, -1) <= 1e-12 * reductions.sum(deviation**2, -1)
            deviation = projected
        result = -0.5 * (
            rank * _LOG_2PI + slogdet(cov).logabsdet + _distance(deviation, cov))
        result = result if inside is None else where(inside, result, -np.inf)
        return np.squeeze(result)

    def pdf(self, x, mean=None, cov=1, allow_singular=False):
        """Return the density, as SciPy's method does."""
        if not any(map(is_tensor, (x, mean, cov))):
            return stats.multivariate_normal.pdf(x, mean, cov, allow_singular)
        return exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean=None, cov=1, allow_singular=True):
        """Return the entropy, as SciPy's method does; it allows singular covariances."""
        mean, cov = joined(mean), joined(cov)
        if not is_tensor(mean) and not is_tensor(cov):
            return stats.multivariate_normal.entropy(mean, cov)
        _, _, cov, rank, _ = self._parameters(*together(mean, cov), True)
        return 0.5 * (rank * (_LOG_2PI + 1) + slogdet(cov).logabsdet)

    def _parameters(self, mean, cov, allow_singular):
        """Return the dimension, mean, a regular covariance, the rank, and its projection.

        A singular covariance is regular with the projection on its null space added.
        """
        cov = convert_to_tensor(cov)
        shapes = (() if mean is None else np.shape(mean)), cov.shape
        if None in shapes[0]:
            mean = mean.reshape(cov.shape[-1:]) if cov.ndim == 2 else mean
        n = np.size(mean) if mean is not None else cov.shape[-1] if cov.ndim else 1
        if cov.ndim < 2:
            cov = cov * np.eye(n)
        cov = cov.reshape(cov.shape if cov.ndim == 2 else (n, n))
        mean = np.zeros(n) if mean is None else convert_to_tensor(mean).reshape(-1)
        if not is_known(mean, cov):
            return n, mean, cov, n, None
        known = cov.numpy()
        if known.shape == (n, n) and not np.allclose(known, known.T, equal_nan=True):
            cov = tril(cov) + tril(cov, -1).T  # SciPy reads this triangle
            known = cov.numpy()
        if _is_regular(_value(mean), known, n):
            return n, mean, cov, n, None
        rank = stats.multivariate_normal(_value(mean), known, allow_singular).cov_object.rank
        if rank == n:
            return n, mean, cov, n, None
        vectors = np.linalg.eigh(known)[1][:, n - rank:]
        projection = vectors @ vectors.T
        return n, mean, projection @ cov @ projection + (np.eye(n) - projection), rank, projection


class MultivariateT(MultivariateNormal):
    """Multivariate t distribution, as `scipy.stats.multivariate_t`.

    From df = 1e15 on it is computed as at 1e15, where it is the normal distribution.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.stats import multivariate_t
    >>> cytape.grad(multivariate_t.logpdf)(np.array([1.0, 2.0]), np.zeros(2), np.eye(2), 5.0)
    array([-0.7, -1.4])
    """

    scipys = stats.multivariate_t

    def __getattr__(self, name):
        """Return a method of SciPy's distribution."""
        return getattr(stats.multivariate_t, name)

    def __call__(self, loc=None, shape=1, df=1, allow_singular=False, seed=None):
        """Freeze the distribution: SciPy's frozen one, with methods that take tensors."""
        return frozen(
            self, ("logpdf", "pdf"), (loc, shape, df), {}, allow_singular=allow_singular, seed=seed)

    def __reduce__(self):
        """Pickle by name."""
        return named, ("multivariate_t",)

    def logpdf(self, x, loc=None, shape=1, df=1):
        """Return the logarithm of the density, as SciPy's method does."""
        if not any(map(is_tensor, map(joined, (x, loc, shape, df)))):
            return stats.multivariate_t.logpdf(x, loc, shape, df)
        return self._log_density(x, loc, shape, df, True)

    def _log_density(self, x, loc, shape, df, allow_singular):
        x, loc, shape, df = together(*map(joined, (x, loc, shape, df)))
        n, loc, shape, _, projection = self._parameters(loc, shape, allow_singular)
        if is_known(df) and not _value(df) > 0:
            stats.multivariate_t(df=_value(df))  # raises SciPy's error
        df = minimum(where(df > 0, df, np.nan), 1e15)
        deviation = _points(x, n) - loc
        if projection is not None:
            deviation = deviation @ projection
        distance = _distance(deviation, shape)
        half = 0.5 * n
        # Differences of gammaln would cancel for a large df.
        gammas = gammaln(half) - betaln(0.5 * df, half) - half * log(math.pi * df)
        return np.squeeze(
            gammas - 0.5 * slogdet(shape).logabsdet - (0.5 * df + half) * log1p(distance / df))

    def pdf(self, x, loc=None, shape=1, df=1, allow_singular=False):
        """Return the density, as SciPy's method does."""
        if not any(map(is_tensor, (x, loc, shape, df))):
            return stats.multivariate_t.pdf(x, loc, shape, df, allow_singular)
        return exp(self._log_density(x, loc, shape, df, allow_singular))

    def entropy(self, loc=None, shape=1, df=1):
        """Return SciPy's entropy, which has no derivatives."""
        return stats.multivariate_t.entropy(loc, shape, df)


class Dirichlet:
    """Dirichlet distribution, as `scipy.stats.dirichlet`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.stats import dirichlet
    >>> cytape.grad(dirichlet.logpdf)(np.array([0.5, 0.5]), np.array([2.0, 3.0]))
    array([2., 4.])
    """

    scipys = stats.dirichlet

    def __getattr__(self, name):
        """Return a method of SciPy's distribution."""
        return getattr(stats.dirichlet, name)

    def __call__(self, alpha, seed=None):
        """Freeze the distribution: SciPy's frozen one, with methods that take tensors."""
        return frozen(self, ("pdf", "logpdf"), (joined(alpha),), {}, seed=seed)

    def __reduce__(self):
        """Pickle by name."""
        return named, ("dirichlet",)

    def logpdf(self, x, alpha):
        """Return the logarithm of the density, as SciPy's method does."""
        x, alpha = joined(x), joined(alpha)
        if is_known(x, alpha):
            value = stats.dirichlet.logpdf(_value(x), _value(alpha))
            if not is_tensor(x) and not is_tensor(alpha):
                return value
        x, alpha = map(convert_to_tensor, together(x, alpha))
        if None in (x.shape[0], alpha.shape[0]):
            raise ValueError(
                f"dirichlet takes points and alpha with a known number of components, got shapes "
                f"{x.shape} and {alpha.shape}: give the placeholder or signature the extent")
        if x.shape[0] != alpha.shape[0]:
            x = concatenate([x, 1 - reductions.sum(x, 0, keepdims=True)])
        weights = alpha.reshape((-1,) + (1,) * (x.ndim - 1)) - 1
        return (reductions.sum(xlogy(weights, x), 0)
                + gammaln(reductions.sum(alpha)) - reductions.sum(gammaln(alpha)))

    def pdf(self, x, alpha):
        """Return the density, as SciPy's method does."""
        if not is_tensor(x) and not is_tensor(alpha):
            return stats.dirichlet.pdf(x, alpha)
        return exp(self.logpdf(x, alpha))


class Multinomial:
    """Multinomial distribution, as `scipy.stats.multinomial`.

    The last probability is one minus the sum of the others, as in SciPy; its own derivative is 0.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.stats import multinomial
    >>> cytape.grad(lambda p: multinomial.logpmf([1, 3], 4, p))(np.array([0.5, 0.5]))
    array([-4.,  0.])
    """

    scipys = stats.multinomial

    def __getattr__(self, name):
        """Return a method of SciPy's distribution."""
        return getattr(stats.multinomial, name)

    def __call__(self, n, p, seed=None):
        """Freeze the distribution: SciPy's frozen one, with methods that take tensors."""
        return frozen(self, ("pmf", "logpmf"), (n, joined(p)), {}, seed=seed)

    def __reduce__(self):
        """Pickle by name."""
        return named, ("multinomial",)

    def logpmf(self, x, n, p):
        """Return the logarithm of the probability, as SciPy's method does."""
        x, n, p = map(joined, (x, n, p))
        if not any(map(is_tensor, (x, n, p))):
            return stats.multinomial.logpmf(x, n, p)
        x, n, p = map(convert_to_tensor, together(x, n, p))
        others = p[..., :-1]
        p = concatenate([others, 1 - reductions.sum(others, -1, keepdims=True)], -1)
        counts, total = x.astype(p.dtype), n.astype(p.dtype)
        value = gammaln(total + 1) + reductions.sum(xlogy(counts, p) - gammaln(counts + 1), -1)
        is_possible = (np.all(x >= 0, -1) & np.all(np.floor(counts) == counts, -1)
                       & (reductions.sum(counts, -1) == total))
        is_valid = np.all((p >= 0) & (p <= 1), -1) & (n >= 0)
        return where(is_valid, where(is_possible, value, -np.inf), np.nan)

    def pmf(self, x, n, p):
        """Return the probability, as SciPy's method does."""
        if not any(map(is_tensor, (x, n, p))):
            return stats.multinomial.pmf(x, n, p)
        return exp(self.logpmf(x, n, p))


dirichlet = Dirichlet()
multinomial = Multinomial()
multivariate_normal = MultivariateNormal()
multivariate_t = MultivariateT()
