"""More random draws, differentiable in their parameters, and other names of NumPy's.

Each is a function of its parameters and of a draw in which they do not occur, as NumPy computes it:
the numbers are NumPy's, and the derivatives those of that function, the draw being held fixed.
"""

import warnings

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops.elementwise import exp, expm1, sqrt, where
from cytape.ops.elementwise import power as power_of
from cytape.ops.engine.arguments import is_tensor, operand
from cytape.ops.linalg import matmul
from cytape.ops.random import integers, normal, permutation, random, standard_normal
from cytape.ops.shapes.shape_rules import as_shape
from cytape.ops.shaping import matrix_transpose, ndim, shape
from cytape.ops.shared.draws import (
    as_parameters,
    draw_shaped,
    drawing,
    drawing_functions,
    dtype_of,
    exponential_op,
    is_numpys,
    require_valid,
    uniform_op,
)
from cytape.ops.submodules.factorizations import cholesky
from cytape.tensor.state import current_graph
from cytape.tensor.tensor import Tensor

__all__ = [
    "bytes", "gumbel", "laplace", "logistic", "lognormal", "multivariate_normal", "pareto", "power",
    "rand", "randint", "randn", "random_integers", "random_sample", "ranf", "rayleigh", "sample",
    "shuffle", "standard_cauchy", "triangular", "weibull",
]  # fmt: skip


def _by_location_and_scale(name):
    op = drawing(f"Random{name.title()}", name, casts=True)

    def function(loc=0.0, scale=1.0, size=None, *, seed=None):
        if is_numpys(seed, loc, scale):
            return getattr(np.random, name)(loc, scale, size)
        loc, scale = as_parameters(loc, scale=scale)
        return loc + scale * draw_shaped(op, (loc, scale), size, dtype_of(loc, scale), seed)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Draw as `numpy.random.{name}`, differentiable in location and scale.

    Examples
    --------
    >>> import cytape
    >>> from cytape.numpy import random
    >>> float(cytape.grad(lambda loc: random.{name}(loc, 2.0))(1.0))
    1.0
    """
    return function


gumbel = _by_location_and_scale("gumbel")
laplace = _by_location_and_scale("laplace")
logistic = _by_location_and_scale("logistic")
rayleigh_op = drawing("RandomRayleigh", "rayleigh", casts=True)
cauchy_op = drawing("RandomStandardCauchy", "standard_cauchy", casts=True)


def rayleigh(scale=1.0, size=None, *, seed=None):
    """Draw as `numpy.random.rayleigh`, differentiable in the scale.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.rayleigh(2.0, size=3).shape
    (3,)
    """
    if is_numpys(seed, scale):
        return np.random.rayleigh(scale, size)  # noqa: NPY002
    (scale,) = as_parameters(scale=scale)
    return scale * draw_shaped(rayleigh_op, (scale,), size, dtype_of(scale), seed)


def standard_cauchy(size=None, *, seed=None):
    """Draw as `numpy.random.standard_cauchy`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.standard_cauchy(3).shape
    (3,)
    """
    if is_numpys(seed):
        return np.random.standard_cauchy(size)  # noqa: NPY002
    return draw_shaped(cauchy_op, (), size, np.dtype(float), seed)


def triangular(left, mode, right, size=None, *, seed=None):
    """Draw as `numpy.random.triangular`, differentiable in all parameters.

    It is the inverse of the distribution function at a draw from [0, 1).

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.triangular(0.0, 1.0, 4.0, size=3).shape
    (3,)
    """
    if is_numpys(seed, left, mode, right):
        return np.random.triangular(left, mode, right, size)  # noqa: NPY002
    parameters = left, mode, right = as_parameters(left, mode, right)
    require_valid("triangular", *parameters)
    u = draw_shaped(uniform_op, parameters, size, dtype_of(*parameters), seed)
    width = right - left
    below = u <= (mode - left) / width
    # Each root is taken where it is chosen: beyond it may be one of 0, whose slope is infinite.
    rising = sqrt(where(below, u * ((mode - left) * width), 1))
    falling = sqrt(where(below, 1, (1 - u) * ((right - mode) * width)))
    return where(below, left + rising, right - falling)


def lognormal(mean=0.0, sigma=1.0, size=None, *, seed=None):
    """Draw as `numpy.random.lognormal`, differentiable in both parameters.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.lognormal(size=3).shape
    (3,)
    """
    if is_numpys(seed, mean, sigma):
        return np.random.lognormal(mean, sigma, size)  # noqa: NPY002
    mean, sigma = as_parameters(mean, sigma=sigma)
    return exp(normal(mean, sigma, size, seed=seed))


def _of_exponential(name, transform, formula):
    def function(a, size=None, *, seed=None):
        if is_numpys(seed, a):
            return getattr(np.random, name)(a, size)
        (a,) = as_parameters(a)
        require_valid(name, a)
        return transform(draw_shaped(exponential_op, (a,), size, dtype_of(a), seed), a)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Draw as `numpy.random.{name}`, differentiable in the parameter.

    It is {formula}, where e is a draw from the standard exponential distribution.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.{name}(2.0, size=3).shape
    (3,)
    """
    return function


pareto = _of_exponential("pareto", lambda e, a: expm1(e / a), "exp(e / a) - 1")
power = _of_exponential(
    "power", lambda e, a: power_of(-expm1(-e), 1 / a), "(1 - exp(-e)) ** (1 / a)")
weibull = _of_exponential("weibull", lambda e, a: power_of(e, 1 / a), "e ** (1 / a)")


def multivariate_normal(mean, cov, size=None, check_valid="warn", tol=1e-8, *, seed=None):
    """Draw vectors as `numpy.random.multivariate_normal`, differentiable in mean and covariance.

    A covariance that is a tensor, and any beside a seed, is factored by Cholesky, whose derivative
    has no poles where eigenvalues are equal: the numbers are others than NumPy's then, which takes
    singular values.

    Examples
    --------
    >>> import cytape
    >>> from cytape.numpy import random
    >>> random.multivariate_normal(cytape.constant([1.0, 2.0]), np.eye(2), 3).shape
    (3, 2)
    """
    if is_numpys(seed, mean, cov):
        return np.random.multivariate_normal(mean, cov, size, check_valid, tol)  # noqa: NPY002
    mean, cov = operand(mean), operand(cov)
    if ndim(mean) != 1 or ndim(cov) != 2 or shape(cov) != 2 * shape(mean):
        raise ValueError(
            "mean must be a vector and cov a square matrix of that length, got the shapes "
            f"{shape(mean)} and {shape(cov)}")
    if not is_tensor(cov):  # raises or warns as it is to do
        np.random.RandomState(0).multivariate_normal(  # noqa: NPY002
            np.zeros(len(cov)), cov, None, check_valid, tol)
    if is_tensor(cov) or seed is not None:
        factor = matrix_transpose(cholesky(cov))
    else:
        _, variances, vectors = np.linalg.svd(cov)
        factor = np.sqrt(variances)[:, None] * vectors
    drawn = standard_normal((*(() if size is None else as_shape(size)), shape(mean)[0]), seed=seed)
    return mean + matmul(drawn, factor)


# -- older names -----------------------------------------------------------------------------------


def rand(*extents, seed=None):
    """Draw uniformly from [0, 1), as `numpy.random.rand`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.rand(2, 3).shape
    (2, 3)
    """
    return random(extents or None, seed=seed)


def randn(*extents, seed=None):
    """Draw from the standard normal distribution, as `numpy.random.randn`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.randn(2, 3).shape
    (2, 3)
    """
    return standard_normal(extents or None, seed=seed)


def random_sample(size=None, *, seed=None):
    """Draw uniformly from [0, 1), as `numpy.random.random_sample`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.random_sample((2, 3)).shape
    (2, 3)
    """
    return random(size, seed=seed)


ranf = sample = random_sample


def randint(low, high=None, size=None, dtype=int, *, seed=None):
    """Draw integers below `high`, as `numpy.random.randint`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.randint(5, size=3).dtype
    dtype('int64')
    """
    if is_numpys(seed, low, high):
        return np.random.randint(low, high, size, dtype)  # noqa: NPY002
    return integers(low, high, size, dtype, seed=seed)


def random_integers(low, high=None, size=None, *, seed=None):
    """Draw integers up to `high`, as `numpy.random.random_integers`, which is deprecated.

    Examples
    --------
    >>> import warnings
    >>> from cytape.numpy import random
    >>> with warnings.catch_warnings(action="ignore"):
    ...     random.random_integers(5, size=3).shape
    (3,)
    """
    if is_numpys(seed, low, high):
        return np.random.random_integers(low, high, size)  # noqa: NPY002
    low, high = (1, low) if high is None else (low, high)
    warnings.warn(
        f"This function is deprecated. Please call randint({low}, {high} + 1) instead",
        DeprecationWarning, stacklevel=2)
    return integers(low, high, size, int, endpoint=True, seed=seed)


def bytes(length):
    """Draw bytes, as `numpy.random.bytes`; not while a function is traced: no tensor holds bytes.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> len(random.bytes(10))
    10
    """
    _refuse_in_trace(
        "bytes", "cytape.numpy.random.integers(256, size=length, dtype=numpy.uint8)")
    return np.random.bytes(length)  # noqa: NPY002


def shuffle(x, *, seed=None):
    """Put what lies along the first axis in random order, in place, as `numpy.random.shuffle`.

    A tensor is assigned to: its views see that, and gradients follow the elements.

    Examples
    --------
    >>> import cytape
    >>> from cytape.numpy import random
    >>> x = cytape.constant([1.0, 2.0, 3.0])
    >>> random.shuffle(x)
    >>> sorted(x.tolist())
    [1.0, 2.0, 3.0]
    """
    if isinstance(x, Tensor):
        if ndim(x) == 0:
            np.random.shuffle(np.zeros(()))  # raises NumPy's error  # noqa: NPY002
        x[...] = permutation(x, seed=seed)
        return
    _refuse_in_trace(
        f"shuffle of a {type(x).__name__}", "x = cytape.numpy.random.permutation(x)")
    (np.random if seed is None else np.random.default_rng(seed)).shuffle(x)


def _refuse_in_trace(what, instead):
    graph = current_graph()
    if graph is not None and not getattr(graph, "runs_once", False):
        raise SymbolicTensorError(
            f"cytape.numpy.random.{what} draws at once: while a graph is built or a function is "
            f"traced, and not in each run. Write {instead}")


drawing_functions += [globals()[name] for name in __all__]
