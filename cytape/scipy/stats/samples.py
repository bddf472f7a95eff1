"""Functions of one or two samples: correlation, regression, densities, transforms, distances."""

from collections import namedtuple
from typing import Any

import numpy as np
import scipy.stats as stats

from cytape.autodiff.custom.custom_gradient import stop_gradient
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.elementwise import exp, expm1, log, log1p, maximum, minimum, sqrt, where
from cytape.ops.special import boxcox as _boxcox
from cytape.ops.special import exprel, logsumexp
from cytape.ops.submodules.solving import slogdet, solve
from cytape.scipy.stats.bounded import beta
from cytape.scipy.stats.distribution import either
from cytape.scipy.stats.real_line import t
from cytape.tensor import convert_to_tensor

__all__ = [
    "boxcox", "energy_distance", "gaussian_kde", "linregress", "pearsonr", "wasserstein_distance",
    "yeojohnson"]

PearsonRResult = namedtuple("PearsonRResult", "statistic pvalue")
LinregressResult = type(stats.linregress([0.0, 1.0, 2.0], [0.0, 1.0, 3.0]))
_TINY = 1e-20  # as in SciPy, for a correlation of 1


def _paired(x, y, axis):
    """Return samples of one shape, their means, deviations and number."""
    x, y = np.broadcast_arrays(x, y)
    if axis is None:
        x, y, axis = x.reshape(-1), y.reshape(-1), 0
    means = [np.mean(a, axis, keepdims=True) for a in (x, y)]
    return axis, means, [a - mean for a, mean in zip((x, y), means, strict=True)], x.shape[axis]


def _moments(deviations, axis):
    """Return the variances and the correlation of deviations, which are scaled to their largest."""
    scales = [stop_gradient(np.max(abs(d), axis, keepdims=True)) for d in deviations]
    u, v = (d / scale for d, scale in zip(deviations, scales, strict=True))
    xx, xy, yy = [np.mean(product, axis) for product in (u * u, u * v, v * v)]
    r = maximum(minimum(xy / sqrt(xx * yy), 1.0), -1.0)
    return [part * np.squeeze(scale, axis)**2 for part, scale in zip((xx, yy), scales, strict=True)
            ] + [r]


def pvalue_of(statistic, distribution, alternative, *args):
    """Return the p-value of a statistic whose distribution is symmetric."""
    if alternative not in ("two-sided", "less", "greater"):
        stats.pearsonr([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], alternative=alternative)  # raises
    if alternative == "two-sided":
        return 2 * distribution.sf(abs(statistic), *args)
    return getattr(distribution, "cdf" if alternative == "less" else "sf")(statistic, *args)


def pearsonr(
        x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None,
        axis: int | None = 0) -> Any:
    """Return the correlation and its p-value, as `scipy.stats.pearsonr`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy import stats
    >>> slope = cytape.grad(lambda x: stats.pearsonr(x, [1.0, 2.0, 4.0]).statistic)
    >>> slope(np.array([1.0, 2.0, 3.0])).round(3)
    array([ 0.055, -0.109,  0.055])
    """
    x, y = joined(x), joined(y)
    if not is_tensor(x) and not is_tensor(y):
        return stats.pearsonr(x, y, alternative=alternative, method=method, axis=axis)
    if method is not None:
        raise ValueError(f"scipy.stats.pearsonr takes tensors with method=None, got {method!r}")
    axis, _, deviations, n = _paired(x, y, axis)
    r = _moments(deviations, axis)[-1]
    if n == 2:
        return PearsonRResult(np.round(r), np.ones_like(r))
    shape = n / 2 - 1
    return PearsonRResult(r, pvalue_of(r, beta, alternative, shape, shape, -1, 2))


def linregress(x: Any, y: Any, alternative: str = "two-sided", *, axis: int | None = 0) -> Any:
    """Return the regression line and its errors, as `scipy.stats.linregress`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy import stats
    >>> slope = cytape.grad(lambda y: stats.linregress([0.0, 1.0, 2.0], y).slope)
    >>> slope(np.array([1.0, 2.0, 4.0])).round(6)
    array([-0.5,  0. ,  0.5])
    """
    x, y = joined(x), joined(y)
    if not is_tensor(x) and not is_tensor(y):
        return stats.linregress(x, y, alternative, axis=axis)
    axis, (x_mean, y_mean), deviations, n = _paired(x, y, axis)
    xx, yy, r = _moments(deviations, axis)
    df = n - 2
    slope = r * sqrt(yy / xx)
    x_mean, y_mean = np.squeeze(x_mean, axis), np.squeeze(y_mean, axis)
    statistic = r * sqrt(df / ((1 - r + _TINY) * (1 + r + _TINY)))
    error = sqrt((1 - r * r) * yy / xx / df)
    return LinregressResult(
        slope, y_mean - slope * x_mean, r, pvalue_of(statistic, t, alternative, df), error,
        intercept_stderr=error * sqrt(xx + x_mean * x_mean))


class gaussian_kde(stats.gaussian_kde):  # noqa: N801
    """Kernel density estimate, as `scipy.stats.gaussian_kde`; the data may be a tensor, too.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy import stats
    >>> data = np.array([1.0, 2.0, 4.0])
    >>> cytape.grad(lambda x: stats.gaussian_kde(data)(x)[0])(2.0).round(4)
    np.float64(-0.0136)
    >>> cytape.grad(lambda data: stats.gaussian_kde(data).logpdf(2.0)[0])(data).round(4)
    array([ 0.3562,  0.0289, -0.3219])
    """

    def __init__(self, dataset, bw_method=None, weights=None):
        """Hold samples as columns, weights and the covariance of the kernel."""
        dataset, weights = joined(dataset), joined(weights)
        self._has_tensors = any(map(is_tensor, (dataset, bw_method, weights)))
        if not self._has_tensors:
            super().__init__(dataset, bw_method, weights)
            return
        dataset = convert_to_tensor(dataset)
        self.dataset = dataset.reshape(1, -1) if dataset.ndim < 2 else dataset
        self.d, self.n = self.dataset.shape
        if self.d > self.n or self.n < 2:
            stats.gaussian_kde(np.zeros((self.d, self.n)))  # raises errors
        if weights is None:
            weights = np.ones(self.n)
        self._weights = weights / np.sum(weights)
        self._neff = 1 / np.sum(self._weights**2)
        if is_tensor(bw_method):
            self.covariance_factor = lambda: bw_method
            self._compute_covariance()
        else:
            self.set_bandwidth(bw_method)

    def _compute_covariance(self):
        if not self._has_tensors:
            super()._compute_covariance()
            return
        self.factor = self.covariance_factor()
        weighted = self._weights * self.dataset
        centred = self.dataset - np.sum(weighted, 1, keepdims=True)
        covariance = (self._weights * centred) @ centred.T / (1 - np.sum(self._weights**2))
        self.covariance = covariance * self.factor**2

    def logpdf(self, x):
        """Return the logarithm of the density, as SciPy's method does."""
        if not self._has_tensors and not is_tensor(x):
            return super().logpdf(x)
        x = convert_to_tensor(joined(x))
        x = x.reshape(1, -1) if x.ndim < 2 else x
        if x.shape[0] != self.d:
            if x.shape != (1, self.d):
                raise ValueError(
                    f"points have dimension {x.shape[0]}, dataset has dimension {self.d}")
            x = x.reshape(self.d, 1)
        root = np.linalg.cholesky(self.covariance)
        points, data = solve(root, x), solve(root, self.dataset)
        distance = np.sum((points[:, :, None] - data[:, None, :])**2, 0)
        return logsumexp(log(self.weights) - 0.5 * distance, 1) - 0.5 * (
            slogdet(self.covariance).logabsdet + self.d * np.log(2 * np.pi))

    def evaluate(self, points):
        """Return the density, as SciPy's method does."""
        if not self._has_tensors and not is_tensor(points):
            return super().evaluate(points)
        return exp(self.logpdf(points))

    __call__ = evaluate


def boxcox(x: Any, lmbda: Any = None, alpha: Any = None, optimizer: Any = None) -> Any:
    """Return the transform of Box and Cox, as `scipy.stats.boxcox`; of tensors for a given `lmbda`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy import stats
    >>> cytape.grad(lambda x: stats.boxcox(x, 2.0)[1])(np.array([1.0, 3.0]))
    array([0., 3.])
    """
    if lmbda is None or not (is_tensor(x) or is_tensor(lmbda)):
        return stats.boxcox(x, lmbda, alpha, optimizer)
    return _boxcox(joined(x), lmbda)


def yeojohnson(x: Any, lmbda: Any = None) -> Any:
    """Return the transform of Yeo and Johnson, as `scipy.stats.yeojohnson`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy import stats
    >>> cytape.grad(lambda x: stats.yeojohnson(x, 2.0)[1])(np.array([1.0, 3.0]))
    array([0., 4.])
    """
    if lmbda is None or not (is_tensor(x) or is_tensor(lmbda)):
        return stats.yeojohnson(x, lmbda)
    x = joined(x)
    is_left = x < 0

    def transformed(log_z, power):
        if not is_tensor(power) and np.all(power):
            return expm1(power * log_z) / power
        return log_z * exprel(power * log_z)

    return either(
        is_left, lambda: -transformed(log1p(where(is_left, -x, 0)), 2 - lmbda),
        lambda: transformed(log1p(where(is_left, 0, x)), lmbda))


def _steps(u_values, v_values, u_weights, v_weights):
    """Return the differences of two distribution functions, and the widths of these steps."""
    values = np.concatenate([u_values, v_values])
    weights = [np.ones_like(x) if w is None else w
               for x, w in ((u_values, u_weights), (v_values, v_weights))]
    order = np.argsort(stop_gradient(values))
    jumps = np.concatenate([weights[0] / np.sum(weights[0]), -weights[1] / np.sum(weights[1])])
    return np.cumsum(convert_to_tensor(jumps)[order])[:-1], np.diff(values[order])


def _distance(name, function):
    scipys = getattr(stats, name)

    def distance(u_values, v_values, u_weights=None, v_weights=None):
        given = list(map(joined, (u_values, v_values, u_weights, v_weights)))
        if not any(map(is_tensor, given)):
            return scipys(*given)
        return function(*_steps(*[
            x if x is None or is_tensor(x) else np.asarray(x, float) for x in given]))

    distance.__name__, distance.__doc__ = name, f"Forward to `scipy.stats.{name}`."
    return distance


wasserstein_distance = _distance(
    "wasserstein_distance", lambda steps, widths: np.sum(abs(steps) * widths))


def _energy(steps, widths):
    square = 2 * np.sum(steps * steps * widths)
    return sqrt(where(square == 0, 1.0, square)) * where(square == 0, 0.0, 1.0)


energy_distance = _distance(
    "energy_distance", _energy)
