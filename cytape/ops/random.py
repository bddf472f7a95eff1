"""Random numbers as ops, which draw anew whenever they run.

They are NumPy's: drawn from its global generator, which `seed` sets back, arrays of arrays. In a
graph each call is a node of its own, which draws once in a run, in the order of the calls. If the
graph or the call has a seed, it has a stream of its own (`Stream`), which begins where they say.

Location and scale may be tensors and are differentiated, the draw being held fixed. In other
parameters (of `gamma`, `poisson`, `binomial`) a draw has no derivative: none may be recorded.
"""

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cytape.ops.engine.arguments import is_tensor, values_of
from cytape.ops.indexing import take
from cytape.ops.shapes import shape_rules
from cytape.ops.shared.draws import (
    MAX_SEED,
    as_parameters,
    binomial_op,
    draw,
    draw_of,
    draw_shaped,
    drawing_functions,
    dtype_of,
    exponential_op,
    gamma_op,
    integers_op,
    is_number,
    is_numpys,
    normal_op,
    numpys_stream,
    outline_and_size,
    poisson_op,
    positions_op,
    refuse_recorded,
    seed,
    uniform_op,
    weighted_positions_op,
)
from cytape.tensor.making import convert_to_tensor

__all__ = [
    "binomial", "choice", "exponential", "gamma", "integers", "normal", "permutation", "poisson",
    "random", "seed", "standard_exponential", "standard_gamma", "standard_normal", "uniform",
]  # fmt: skip


def random(size=None, dtype=np.float64, *, seed=None):
    """Draw uniformly from [0, 1), as `numpy.random.Generator.random`.

    Parameters
    ----------
    size : int or tuple of int, optional
        The shape; by default a single number.
    dtype : {numpy.float64, numpy.float32}
    seed : int, optional
        Of this call; by default NumPy's generator goes on, or, in a graph with a seed, a stream
        that begins where that says.

    Returns
    -------
    ndarray or Tensor

    Raises
    ------
    ValueError
        If the seed is negative or no integer.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.random((2, 3)).shape
    (2, 3)
    """
    if dtype is np.float64 and is_numpys(seed):
        return np.random.random(size)  # noqa: NPY002
    return draw_shaped(uniform_op, (), size, np.dtype(dtype), seed)


def uniform(low=0.0, high=1.0, size=None, *, seed=None):
    """Draw uniformly from [low, high), as `numpy.random.Generator.uniform`.

    Parameters
    ----------
    low, high : float or Tensor
        Differentiable.
    size : int or tuple of int, optional
        The shape; by default that of the bounds when broadcast.
    seed : int, optional
        As for `random`.

    Returns
    -------
    ndarray or Tensor

    Raises
    ------
    ValueError
        If the seed is negative or no integer, or the shapes do not fit.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> bool(np.all(random.uniform(2.0, 3.0, size=100) >= 2.0))
    True
    """
    if is_numpys(seed, low, high):
        return np.random.uniform(low, high, size)  # noqa: NPY002
    low, high = as_parameters(low, high)
    drawn = draw_shaped(uniform_op, (low, high), size, dtype_of(low, high), seed)
    if is_number(low, 0) and is_number(high, 1):
        return drawn
    return low + (high - low) * drawn


def standard_normal(size=None, dtype=np.float64, *, seed=None):
    """Draw from the normal distribution of mean 0 and variance 1.

    See `numpy.random.Generator.standard_normal`.

    Parameters
    ----------
    size, dtype, seed
        As for `random`.

    Returns
    -------
    ndarray or Tensor

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.standard_normal(3, dtype=np.float32).dtype
    dtype('float32')
    """
    if dtype is np.float64 and is_numpys(seed):
        return np.random.standard_normal(size)  # noqa: NPY002
    return draw_shaped(normal_op, (), size, np.dtype(dtype), seed)


def normal(loc=0.0, scale=1.0, size=None, *, seed=None):
    """Draw from a normal distribution, as `numpy.random.Generator.normal`.

    Parameters
    ----------
    loc, scale : float or Tensor
        Mean and standard deviation, differentiable.
    size : int or tuple of int, optional
        The shape; by default that of the parameters when broadcast.
    seed : int, optional
        As for `random`.

    Returns
    -------
    ndarray or Tensor

    Raises
    ------
    ValueError
        If the seed is negative or no integer, or the shapes do not fit.

    Examples
    --------
    >>> import cytape
    >>> from cytape.numpy import random
    >>> float(cytape.grad(lambda loc: random.normal(loc, 2.0))(1.0))
    1.0
    """
    if is_numpys(seed, loc, scale):
        return np.random.normal(loc, scale, size)  # noqa: NPY002
    loc, scale = as_parameters(loc, scale=scale)
    drawn = draw_shaped(normal_op, (loc, scale), size, dtype_of(loc, scale), seed)
    if is_number(loc, 0) and is_number(scale, 1):
        return drawn
    return loc + scale * drawn


def standard_exponential(size=None, dtype=np.float64, *, seed=None):
    """Draw from the exponential distribution of mean 1.

    See `numpy.random.Generator.standard_exponential`.

    Parameters
    ----------
    size, dtype, seed
        As for `random`.

    Returns
    -------
    ndarray or Tensor

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.standard_exponential(3).shape
    (3,)
    """
    if dtype is np.float64 and is_numpys(seed):
        return np.random.standard_exponential(size)  # noqa: NPY002
    return draw_shaped(exponential_op, (), size, np.dtype(dtype), seed)


def exponential(scale=1.0, size=None, *, seed=None):
    """Draw from an exponential distribution, as `numpy.random.Generator.exponential`.

    Parameters
    ----------
    scale : float or Tensor
        The mean, differentiable.
    size : int or tuple of int, optional
        The shape; by default that of the scale.
    seed : int, optional
        As for `random`.

    Returns
    -------
    ndarray or Tensor

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.exponential(2.0, size=(2, 2)).shape
    (2, 2)
    """
    if is_numpys(seed, scale):
        return np.random.exponential(scale, size)  # noqa: NPY002
    (scale,) = as_parameters(scale=scale)
    drawn = draw_shaped(exponential_op, (scale,), size, dtype_of(scale), seed)
    return drawn if is_number(scale, 1) else scale * drawn


def standard_gamma(shape, size=None, dtype=np.float64, *, seed=None):
    """Draw from gamma distributions of scale 1, as `numpy.random.Generator.standard_gamma`.

    Parameters
    ----------
    shape : float or Tensor
        The parameter of that name, which must not be recorded.
    size, dtype, seed
        As for `random`; the size is by default that of the parameter.

    Returns
    -------
    ndarray or Tensor

    Raises
    ------
    ValueError
        If the parameter is negative, or the seed is negative or no integer.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.standard_gamma([1.0, 2.0]).shape
    (2,)
    """
    if dtype is np.float64 and is_numpys(seed, shape):
        return np.random.standard_gamma(shape, size)  # noqa: NPY002
    refuse_recorded("standard_gamma", shape=shape)
    (shape,) = as_parameters(shape=shape)
    return draw_of(gamma_op, shape, size=size, dtype=np.dtype(dtype), seed=seed)


def gamma(shape, scale=1.0, size=None, *, seed=None):
    """Draw from gamma distributions, as `numpy.random.Generator.gamma`.

    Parameters
    ----------
    shape : float or Tensor
        The parameter of that name, which must not be recorded.
    scale : float or Tensor
        Differentiable.
    size : int or tuple of int, optional
        The shape of the result; by default that of the parameters when broadcast.
    seed : int, optional
        As for `random`.

    Returns
    -------
    ndarray or Tensor

    Raises
    ------
    ValueError
        If a parameter is negative, or the seed is negative or no integer.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.gamma(2.0, 3.0, size=4).shape
    (4,)
    """
    if is_numpys(seed, shape, scale):
        return np.random.gamma(shape, scale, size)  # noqa: NPY002
    refuse_recorded("gamma", shape=shape)
    shape, scale = as_parameters(shape=shape, scale=scale)
    dtype = dtype_of(shape, scale)
    drawn = draw_of(gamma_op, shape, beside=(scale,), size=size, dtype=dtype, seed=seed)
    return drawn if is_number(scale, 1) else scale * drawn


def poisson(lam=1.0, size=None, *, seed=None):
    """Draw from Poisson distributions, as `numpy.random.Generator.poisson`.

    Parameters
    ----------
    lam : float or Tensor
        The mean, which must not be recorded.
    size : int or tuple of int, optional
        The shape; by default that of the mean.
    seed : int, optional
        As for `random`.

    Returns
    -------
    ndarray or Tensor
        Of integers.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.poisson(4.0, size=3).dtype
    dtype('int64')
    """
    if is_numpys(seed, lam):
        return np.random.poisson(lam, size)  # noqa: NPY002
    refuse_recorded("poisson", lam=lam)
    (lam,) = as_parameters(lam=lam)
    return draw_of(poisson_op, lam, size=size, seed=seed)


def binomial(n, p, size=None, *, seed=None):
    """Draw from binomial distributions, as `numpy.random.Generator.binomial`.

    Parameters
    ----------
    n : int or Tensor
        The number of trials.
    p : float or Tensor
        The probability of success, which must not be recorded.
    size : int or tuple of int, optional
        The shape; by default that of the parameters when broadcast.
    seed : int, optional
        As for `random`.

    Returns
    -------
    ndarray or Tensor
        Of integers.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the seed is negative or no integer.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> bool(np.all(random.binomial(10, 0.5, size=20) <= 10))
    True
    """
    if is_numpys(seed, n, p):
        return np.random.binomial(n, p, size)  # noqa: NPY002
    refuse_recorded("binomial", n=n, p=p)
    n, p = as_parameters(n=n, p=p)
    return draw_of(binomial_op, n, p, size=size, seed=seed)


def integers(low, high=None, size=None, dtype=np.int64, endpoint=False, *, seed=None):
    """Draw integers uniformly, as `numpy.random.Generator.integers`.

    Parameters
    ----------
    low, high : int or array of int or Tensor
        From `low` up to `high`, or from 0 up to `low` if it is the only one.
    size : int or tuple of int, optional
        The shape; by default that of the bounds when broadcast.
    dtype : dtype, optional
    endpoint : bool, optional
        Whether `high` may be drawn, too.
    seed : int, optional
        As for `random`.

    Returns
    -------
    ndarray or Tensor

    Raises
    ------
    ValueError
        If there is nothing to draw from, or the seed is negative or no integer.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> bool(np.all(random.integers(3, size=10) < 3))
    True
    """
    low, high = as_parameters(*((0, low) if high is None else (low, high)))
    if is_numpys(seed, low, high):
        return numpys_stream.integers(low, high, size, dtype, endpoint)
    if values_of(low) is not None and values_of(high) is not None:  # raises what is to raise
        np.random.default_rng(0).integers(values_of(low), values_of(high), None, dtype, endpoint)
    if isinstance(high, int) and high > MAX_SEED:
        high, endpoint = np.uint64(high - 1 + endpoint), True
    given = {"dtype": np.dtype(dtype), "endpoint": endpoint}
    return draw_of(integers_op, low, high, size=size, seed=seed, **given)


def _population(x, axis):
    """Return how many there are to choose from (None: not known), and the tensor or None."""
    if isinstance(x, int | np.integer):
        return int(x), None
    x = convert_to_tensor(x)
    extents = shape_rules.shape_of(x.spec, "a random choice")
    return extents[normalize_axis_index(axis, len(extents))], x


def permutation(x, axis=0, *, seed=None):
    """Put what lies along an axis in random order, as `numpy.random.Generator.permutation`.

    Parameters
    ----------
    x : int, array_like or Tensor
        An integer stands for the numbers below it. Differentiable.
    axis : int, optional
    seed : int, optional
        As for `random`.

    Returns
    -------
    ndarray or Tensor

    Examples
    --------
    >>> from cytape.numpy import random
    >>> sorted(random.permutation(4).tolist())
    [0, 1, 2, 3]
    """
    if axis == 0 and is_numpys(seed, x):
        return np.random.permutation(x)  # noqa: NPY002
    return choice(x, None, False, axis=axis, seed=seed, _all=True)


def choice(a, size=None, replace=True, p=None, axis=0, *, seed=None, _all=False):
    """Choose among what lies along an axis, as `numpy.random.Generator.choice`.

    Parameters
    ----------
    a : int, array_like or Tensor
        An integer stands for the numbers below it. Differentiable.
    size : int or tuple of int, optional
        How many; by default a single one.
    replace : bool, optional
        Whether one may be chosen several times.
    p : array_like or Tensor, optional
        The probabilities, which must not be recorded.
    axis : int, optional
    seed : int, optional
        As for `random`.

    Returns
    -------
    ndarray or Tensor

    Raises
    ------
    ValueError
        If the probabilities do not fit, or the seed is negative or no integer.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.choice([0.5, 1.5], size=10).shape
    (10,)
    """
    if not _all and axis == 0 and is_numpys(seed, a, p) and np.ndim(a) < 2:
        return np.random.choice(a, size, replace, p)  # noqa: NPY002
    refuse_recorded("choice", p=p)
    (p,) = as_parameters(p)
    population, x = _population(a, axis)
    inputs = () if population is not None else (x,)
    if not _all:
        outline, size = ((), ()) if size is None else outline_and_size(size)
        inputs = (*inputs, *outline)
    op = positions_op
    if is_tensor(p):
        op, inputs, p = weighted_positions_op, (p, *inputs), None
    positions = draw(
        op, *inputs, population=population, axis=axis, size=size, replace=replace,
        p=None if p is None else np.asarray(p), seed=seed,
    )  # fmt: skip
    if x is None or is_tensor(a) or is_tensor(positions):
        return positions if x is None else take(x, positions, axis)
    return np.take(a, positions, axis)


drawing_functions += [globals()[name] for name in __all__ if name != "seed"]
