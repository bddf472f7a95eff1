"""Random samples that are not rows of `distributions`: integers, choices, vectors, bytes."""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cytape.errors import SymbolicTensorError
from cytape.ops.calls.operands import is_tensor, operand, values_of
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.indexing import take
from cytape.ops.matrix_products import matmul
from cytape.ops.python import draws
from cytape.ops.sampling.distributions import random, standard_normal
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import matrix_transpose, ndim, shape
from cytape.ops.submodules.factorizations import cholesky
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import current_graph
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.user_warnings import warn


@draws.drawing_function
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
    low, high = draws.as_parameters(*((0, low) if high is None else (low, high)))
    if draws.is_numpys(seed, low, high):
        return draws.numpys_stream.integers(low, high, size, dtype, endpoint)
    if values_of(low) is not None and values_of(high) is not None:  # raises NumPy's errors
        np.random.default_rng(0).integers(values_of(low), values_of(high), None, dtype, endpoint)
    if isinstance(high, int) and high > draws.MAX_SEED:
        high, endpoint = np.uint64(high - 1 + endpoint), True
    given = {"dtype": np.dtype(dtype), "endpoint": endpoint}
    return draws.draw_of(draws.integers_op, low, high, size=size, seed=seed, **given)


def _population(x, axis):
    """Return the size of the population (None: unknown), and the tensor or None."""
    if isinstance(x, int | np.integer):
        return int(x), None
    x = convert_to_tensor(x)
    extents = shape_rules.shape_of(x.spec, "a random choice")
    return extents[normalize_axis_index(axis, len(extents))], x


@draws.drawing_function
def permutation(x, axis=0, *, seed=None) -> Any:
    """Permute slices along an axis at random, as `numpy.random.Generator.permutation`.

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
    if axis == 0 and draws.is_numpys(seed, x):
        return np.random.permutation(x)  # noqa: NPY002
    return choice(x, None, False, axis=axis, seed=seed, _all=True)


@draws.drawing_function
def choice(a, size=None, replace=True, p=None, axis=0, *, seed=None, _all=False) -> Any:
    """Choose slices along an axis at random, as `numpy.random.Generator.choice`.

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
    if not _all and axis == 0 and draws.is_numpys(seed, a, p) and np.ndim(a) < 2:
        return np.random.choice(a, size, replace, p)  # noqa: NPY002
    draws.refuse_recorded("choice", p=p)
    (p,) = draws.as_parameters(p)
    population, x = _population(a, axis)
    inputs = () if population is not None else (x,)
    if not _all:
        outline, size = ((), ()) if size is None else draws.outline_and_size(size)
        inputs = (*inputs, *outline)
    op = draws.positions_op
    if is_tensor(p):
        op, inputs, p = draws.weighted_positions_op, (p, *inputs), None
    positions = draws.draw(
        op, *inputs, population=population, axis=axis, size=size, replace=replace,
        p=None if p is None else np.asarray(p), seed=seed,
    )  # fmt: skip
    if x is None or is_tensor(a) or is_tensor(positions):
        return positions if x is None else take(x, positions, axis)
    return np.take(a, positions, axis)


@draws.drawing_function
@numpy_function(np.random.multivariate_normal, "mean", "cov", added=["seed"])
def multivariate_normal(mean, cov, size=None, check_valid="warn", tol=1e-8, *, seed=None) -> Any:
    """Draw vectors as `numpy.random.multivariate_normal`, differentiable in mean and covariance.

    A covariance that is a tensor, or any with a seed, is factored by Cholesky, whose derivative has
    no poles at equal eigenvalues. NumPy factors by singular values, so its numbers differ.

    Examples
    --------
    >>> import cytape
    >>> from cytape.numpy import random
    >>> random.multivariate_normal(cytape.constant([1.0, 2.0]), np.eye(2), 3).shape
    (3, 2)
    """
    mean, cov = operand(mean), operand(cov)
    if ndim(mean) != 1 or ndim(cov) != 2 or shape(cov) != 2 * shape(mean):
        raise ValueError(
            "mean must be a vector and cov a square matrix of that length, got the shapes "
            f"{shape(mean)} and {shape(cov)}")
    if not is_tensor(cov):  # NumPy's errors and warnings
        np.random.RandomState(0).multivariate_normal(  # noqa: NPY002
            np.zeros(len(cov)), cov, None, check_valid, tol)
    if is_tensor(cov) or seed is not None:
        factor = matrix_transpose(cholesky(cov))
    else:
        _, variances, vectors = np.linalg.svd(cov)
        factor = np.sqrt(variances)[:, None] * vectors
    rows = () if size is None else shape_rules.as_shape(size)
    drawn = standard_normal((*rows, shape(mean)[0]), seed=seed)
    return mean + matmul(drawn, factor)


# -- older names -----------------------------------------------------------------------------------


@draws.drawing_function
def rand(*extents, seed=None) -> Any:
    """Draw uniformly from [0, 1), as `numpy.random.rand`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.rand(2, 3).shape
    (2, 3)
    """
    return random(extents or None, seed=seed)


@draws.drawing_function
def randn(*extents, seed=None) -> Any:
    """Draw from the standard normal distribution, as `numpy.random.randn`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.randn(2, 3).shape
    (2, 3)
    """
    return standard_normal(extents or None, seed=seed)


@draws.drawing_function
def random_sample(size=None, *, seed=None) -> Any:
    """Draw uniformly from [0, 1), as `numpy.random.random_sample`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.random_sample((2, 3)).shape
    (2, 3)
    """
    return random(size, seed=seed)


ranf = sample = random_sample
draws.drawing_functions |= {"ranf": ranf, "sample": sample}


@draws.drawing_function
@numpy_function(np.random.randint, "low", "high", added=["seed"])
def randint(low, high=None, size=None, dtype=int, *, seed=None) -> Any:
    """Draw integers below `high`, as `numpy.random.randint`.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.randint(5, size=3).dtype
    dtype('int64')
    """
    return integers(low, high, size, dtype, seed=seed)


@draws.drawing_function
@numpy_function(np.random.random_integers, "low", "high", added=["seed"])
def random_integers(low, high=None, size=None, *, seed=None) -> Any:
    """Draw integers up to `high`, as `numpy.random.random_integers`, which is deprecated.

    Examples
    --------
    >>> import warnings
    >>> from cytape.numpy import random
    >>> with warnings.catch_warnings(action="ignore"):
    ...     random.random_integers(5, size=3).shape
    (3,)
    """
    low, high = (1, low) if high is None else (low, high)
    warn(f"This function is deprecated. Please call randint({low}, {high} + 1) instead",
         DeprecationWarning)
    return integers(low, high, size, int, endpoint=True, seed=seed)


@draws.drawing_function
def bytes(length) -> Any:
    """Draw bytes, as `numpy.random.bytes`; not in a traced function, since no tensor holds bytes.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> len(random.bytes(10))
    10
    """
    _refuse_in_trace(
        "bytes", "cytape.numpy.random.integers(256, size=length, dtype=numpy.uint8)")
    return np.random.bytes(length)  # noqa: NPY002


@draws.drawing_function
def shuffle(x, *, seed=None) -> Any:
    """Permute slices along the first axis at random, in place, as `numpy.random.shuffle`.

    A tensor is assigned to: its views change, too, and elements keep their derivatives.

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
