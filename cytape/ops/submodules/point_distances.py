"""Distances between points, as in `scipy.spatial.distance`.

SciPy computes the distances. A metric without a rule of its own is declared by its formula, in ops,
for broadcast arrays of points. Gradients of arrays are computed in compiled loops, or by the
formula for a few rows of the table at a time, so that no array of the size of all differences
exists. Second derivatives and tangents do need that memory, except for the Euclidean distance, its
square, "cosine" and "correlation".

At equal points the derivative of a distance is 0, of every order, as at the other kinks: equal
coordinates ("cityblock", "canberra", ...), coordinates that are 0 ("canberra", "jensenshannon").
"""

from typing import Any

import numpy as np
import scipy.spatial.distance as scipys

from cytape.ops.adjoints.deferred_derivatives import composed, gradients_by_tape
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.constants import ones_like
from cytape.ops.creation import astype
from cytape.ops.cumulative import cumsum
from cytape.ops.elementwise import absolute, log, power, sqrt, where
from cytape.ops.engine.op_kinds import general, linear, nondifferentiable
from cytape.ops.joining import concatenate, stack
from cytape.ops.matrix_products import matmul
from cytape.ops.rearranging import triu
from cytape.ops.reductions import max, mean, sum
from cytape.ops.shapes.shape_rules import differ
from cytape.ops.shaping import atleast_1d, expand_dims, moveaxis, reshape, swapaxes
from cytape.ops.special_kernels.distance_slopes import METRICS, slopes
from cytape.ops.submodules.solving import inv
from cytape.ops.variance import var
from cytape.tensor import convert_to_tensor
from cytape.tensor.recording.state import building_into, unrecorded
from cytape.tensor.tensor import tensor_of
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["cdist", "distance", "jensenshannon", "pdist", "squareform"]

AT_A_TIME = 2**17  # differences of coordinates
_OPERANDS = ("w", "V", "VI")  # which have derivatives


# -- formulas --------------------------------------------------------------------------------------


# Coordinates are along the first axis, so that NumPy's loops run over many points.


def _root(x):
    """Return the square root, with derivatives of 0 at 0."""
    is_zero = x == 0
    return where(is_zero, 0.0, sqrt(where(is_zero, 1.0, x)))


def _weighted(terms, w):
    return terms if w is None else terms * w


def _sqeuclidean(x, y, w=None):
    return sum(_weighted((x - y) ** 2, w), 0)


def _cityblock(x, y, w=None):
    return sum(_weighted(absolute(x - y), w), 0)


def _chebyshev(x, y, w=None):
    return max(_weighted(absolute(x - y), None if w is None else w > 0), 0)


def _minkowski(x, y, p=2, w=None):
    if p == np.inf:
        return _chebyshev(x, y, w)
    size = absolute(x - y)
    is_zero = size == 0
    total = sum(_weighted(where(is_zero, 0.0, power(where(is_zero, 1.0, size), p)), w), 0)
    is_zero = total == 0
    return where(is_zero, 0.0, power(where(is_zero, 1.0, total), 1 / p))


def _canberra(x, y, w=None):
    scale = absolute(x) + absolute(y)
    is_zero = scale == 0
    terms = where(is_zero, 0.0, absolute(x - y) / where(is_zero, 1.0, scale))
    return sum(_weighted(terms, w), 0)


def _braycurtis(x, y, w=None, added=0.0):
    return sum(_weighted(absolute(x - y), w), 0) / (
        sum(_weighted(absolute(x + y), w), 0) + added)


def _mahalanobis(x, y, VI):
    difference = x - y
    images = matmul(swapaxes(VI, 0, 1), reshape(difference, (len(VI), -1)))
    return _root(sum(reshape(images, difference.shape) * difference, 0))


def _jensenshannon(x, y, base=None):
    x, y = x / sum(x, 0, keepdims=True), y / sum(y, 0, keepdims=True)
    middle = (x + y) / 2
    total = sum(_relative_entropy(x, middle), 0) + sum(_relative_entropy(y, middle), 0)
    return _root(total / (2 if base is None else 2 * np.log(base)))


def _relative_entropy(x, y):
    is_zero = x == 0
    return where(is_zero, 0.0, x * log(where(is_zero, 1.0, x) / where(is_zero, 1.0, y)))


FORMULAS = {
    "euclidean": lambda x, y, w: _root(_sqeuclidean(x, y, w)), "sqeuclidean": _sqeuclidean,
    "cityblock": _cityblock, "chebyshev": _chebyshev, "minkowski": _minkowski,
    "canberra": _canberra, "braycurtis": _braycurtis, "mahalanobis": _mahalanobis,
    "jensenshannon": _jensenshannon}


# -- tables ----------------------------------------------------------------------------------------


def _table_spec(x, y, *_, **__):
    return symbolic_spec((x.shape[0], y.shape[0]), np.float64)


def _pairs_spec(x, *_, **__):
    n = x.shape[0]
    return symbolic_spec((None if n is None else n * (n - 1) // 2,), np.float64)


def _slopes(op, factor):
    """Return the factor times the derivative of each distance in its square, times 2."""
    distances = op.outputs[0]
    if op.attrs["squared"]:
        return 2 * factor
    # NaN where the square overflowed
    divisors = where(distances == 0, np.inf, where(distances == np.inf, np.nan, distances))
    return factor / divisors


def _middle(points):
    """Return a point to subtract from all points, for less rounding; the mean of some."""
    return sum(points, 0) / (points.shape[0] or 1)


def _pull(weights, x, y):
    """Return the weighted sums of the differences to all points."""
    middle = _middle(y)
    return (x - middle) * sum(weights, 1, keepdims=True) - matmul(weights, y - middle)


def _euclidean_vjp(op, g):
    x, y = op.inputs
    weights = _slopes(op, g)
    return (_pull(weights, x, y) if op.needs[0] else None,
            _pull(swapaxes(weights, 0, 1), y, x) if op.needs[1] else None)


def _products(x, t):
    return sum(x * t, 1, keepdims=True)


def _euclidean_jvp(op, tx, ty):
    x, y = op.inputs
    middle = _middle(y)
    x, y = x - middle, y - middle
    change = 0.0
    if tx is not None:
        change = change + _products(x, tx) - matmul(tx, swapaxes(y, 0, 1))
    if ty is not None:
        change = change + swapaxes(_products(y, ty), 0, 1) - matmul(x, swapaxes(ty, 0, 1))
    return _slopes(op, change)


def _name(squared):
    return "sqeuclidean" if squared else "euclidean"


euclidean_op = general(
    "ScipyDistanceEuclidean", lambda x, y, squared: scipys.cdist(x, y, _name(squared)),
    vjp=_euclidean_vjp, jvp=_euclidean_jvp, saved_outputs=(0,), optional_tangents=(0, 1),
    shape_rule=_table_spec)


def _pairs_vjp(op, g):
    x, = op.inputs
    return _pull(square_op(_slopes(op, g)), x, x)


def _pairs_jvp(op, t):
    x, = op.inputs
    x = x - _middle(x)
    products = matmul(x, swapaxes(t, 0, 1))
    own = reshape(_products(x, t), (-1,))
    change = own + expand_dims(own, 1) - products - swapaxes(products, 0, 1)
    return _slopes(op, condense_op(change, checks=False))


euclidean_pairs_op = general(
    "ScipyDistanceEuclideanPairs", lambda x, squared: scipys.pdist(x, _name(squared)),
    vjp=_pairs_vjp, jvp=_pairs_jvp, saved_outputs=(0,), shape_rule=_pairs_spec)


def _given(operands, metric, names, options):
    return {"metric": metric, **dict(zip(names, operands, strict=True)), **dict(options)}


def _by_formula(x, y, *operands, metric, names, options, **more):
    operands = [value if name == "VI" else reshape(value, (-1, 1, 1))
                for name, value in zip(names, operands, strict=True)]
    return FORMULAS[metric](
        expand_dims(swapaxes(x, 0, 1), 2), expand_dims(swapaxes(y, 0, 1), 1),
        **dict(zip(names, operands, strict=True)), **dict(options), **more)


def _pairs_by_formula(x, *operands, **attrs):
    more = {}
    if attrs["metric"] == "braycurtis":  # not 0 / 0 for a point of zeros and itself
        places = cumsum(ones_like(x[:, 0]))
        more["added"] = places == expand_dims(places, 1)
    return condense_op(_by_formula(x, x, *operands, **attrs, **more), checks=False)


def _gradients(inputs, needs, attrs, g):
    """Return the gradients of a table of arrays, if need be computed for a few rows at a time."""
    metric, options = attrs["metric"], dict(attrs["options"])
    if options.get("p") == np.inf:
        metric = "chebyshev"
    if metric in METRICS and not any(needs[2:]):
        return (*slopes(inputs[0], inputs[1], g, metric, *inputs[2:], p=options.get("p", 2)),
                *inputs[2:])
    x, *others = inputs
    n_rows = np.maximum(1, AT_A_TIME // np.maximum(1, others[0].size))
    of_x, of_others = [], None
    with building_into(None), unrecorded():
        others = list(map(tensor_of, others))
        for start in range(0, len(x) or 1, n_rows):
            rows = slice(start, start + n_rows)
            first, *rest = gradients_by_tape(
                lambda *inputs: _by_formula(*inputs, **attrs),
                [tensor_of(x[rows]), *others], [True] * len(inputs), [tensor_of(g[rows])])
            of_x.append(first.numpy())
            rest = [gradient.numpy() for gradient in rest]
            of_others = rest if of_others is None else [
                total + gradient for total, gradient in zip(of_others, rest, strict=True)]
    return [np.concatenate(of_x), *of_others]


def _gradients_of_pairs(op, g):
    x, *operands = op.inputs
    own, other, *rest = _gradients(
        [x, x, *operands], (True, *op.needs), op.attrs, np.triu(scipys.squareform(g)))
    return [own + other, *rest]


table_op = composed(
    "ScipyDistanceTable",
    lambda x, y, *operands, **attrs: scipys.cdist(x, y, **_given(operands, **attrs)),
    _by_formula, _table_spec,
    vjp_of_arrays=lambda op, g: _gradients(op.inputs, op.needs, op.attrs, g))
pairs_op = composed(
    "ScipyDistancePairs",
    lambda x, *operands, **attrs: scipys.pdist(x, **_given(operands, **attrs)),
    _pairs_by_formula, _pairs_spec, vjp_of_arrays=_gradients_of_pairs)


def _angles(x, y, metric):
    if metric == "correlation":
        x, y = x - mean(x, 1, keepdims=True), y - mean(y, 1, keepdims=True)
    scales = [sqrt(sum(points**2, 1, keepdims=True)) for points in (x, y)]
    return 1 - matmul(x / scales[0], swapaxes(y / scales[1], 0, 1))


angles_op = composed(
    "ScipyDistanceAngles", lambda x, y, metric: scipys.cdist(x, y, metric), _angles, _table_spec)
discrete_op = nondifferentiable(
    "ScipyDistanceDiscrete", lambda x, y, metric, options: scipys.cdist(
        x, y, metric, **dict(options)), shape_rule=_table_spec)


# -- functions -------------------------------------------------------------------------------------


def distance(metric, u, v, kwargs):
    """Return the distance of two points, by a metric's name and keyword arguments."""
    u, v = map(_points, together(joined(u), joined(v)))
    if u.ndim != 1 or v.ndim != 1:
        getattr(scipys, metric)(np.zeros(u.shape), np.zeros(v.shape), **kwargs)  # raises
    return _table(metric, u[None], v[None], kwargs)[0, 0]


def jensenshannon(p, q, base, axis, keepdims):
    """Return the Jensen-Shannon distances along an axis."""
    p, q = (moveaxis(_points(x), axis, 0) for x in together(joined(p), joined(q)))
    distances = _jensenshannon(p, q, base)
    return expand_dims(distances, axis) if keepdims else distances


def _metric(metric):
    """Return SciPy's name of a metric, or raise SciPy's error; None for a user's function."""
    if callable(metric) and metric.__name__ not in scipys._METRIC_ALIAS:
        return None
    name = metric.__name__ if callable(metric) else metric
    if not isinstance(name, str) or name.lower().removeprefix("test_") not in scipys._METRIC_ALIAS:
        scipys.cdist(np.zeros((1, 1)), np.zeros((1, 1)), metric)
    return scipys._METRIC_ALIAS[name.lower().removeprefix("test_")].canonical_name


def _points(x):
    x = convert_to_tensor(x)
    if x.dtype.kind == "c":
        raise TypeError(
            f"expected real points, weights and variances, got a tensor of {x.dtype}: give the "
            "real and imaginary parts as two coordinates")
    return astype(x, np.float64)


def cdist(XA, XB, metric="euclidean", *, out=None, **kwargs) -> Any:
    """Return the distances between two collections of points, as `scipy.spatial.distance.cdist`.

    They are differentiable in the points, and in the weights `w`, the variances `V` and the matrix
    `VI`. At equal points the derivative is 0. Metrics of booleans, and "hamming", have no
    derivative. A function is called for each pair of points.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.spatial.distance import cdist
    >>> cytape.grad(lambda x: np.sum(cdist(x, [[0.0, 0.0]])))(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    XA, XB = joined(XA), joined(XB)
    if not any(map(is_tensor, (XA, XB, *kwargs.values()))):
        return scipys.cdist(XA, XB, metric, out=out, **kwargs)
    if out is not None:
        raise TypeError("cdist of tensors does not take out")
    name = _metric(metric)
    XA, XB = map(_points, together(XA, XB))
    if name is None:
        return _by_function(
            metric, [(i, XB[j]) for i in XA for j in range(len(XB))], (len(XA), len(XB)), kwargs)
    return _table(name, XA, XB, kwargs)


def _by_function(metric, pairs, shape, kwargs):
    return reshape(stack([convert_to_tensor(metric(x, y, **kwargs)) for x, y in pairs]), shape)


def _table(name, x, y, kwargs):
    """Return a table of distances; without y those of all pairs."""
    given = {key: value for key, value in kwargs.items() if value is not None}
    operands = [key for key in _OPERANDS if key in given]
    options = tuple([(key, value) for key, value in given.items() if key not in operands])
    of_pairs = y is None
    _check_sides(x, x if of_pairs else y, given)
    if name == "seuclidean":
        scale = sqrt(given["V"] if operands else var(x if of_pairs else concatenate([x, y]), 0,
                                                     ddof=1))
        x, y, name, given = x / scale, None if of_pairs else y / scale, "euclidean", {}
    if name == "minkowski" and given.get("p", 2) == 2 and not operands:
        name, given = "euclidean", {}
    if name in ("euclidean", "sqeuclidean") and not given:
        squared = name == "sqeuclidean"
        return euclidean_pairs_op(x, squared=squared) if of_pairs else (
            euclidean_op(x, y, squared=squared))
    if name in ("cosine", "correlation") and given:
        raise TypeError(f"the metric {name!r} of tensors does not take {', '.join(given)}")
    if name not in FORMULAS:
        other = x if of_pairs else y
        table = angles_op(x, other, metric=name) if name in ("cosine", "correlation") else (
            discrete_op(x, other, metric=name, options=options))
        return condense_op(table, checks=False) if of_pairs else table
    values = [_points(given[key]) for key in operands]
    if name == "mahalanobis" and not operands:
        operands, values = ["VI"], [_inverse_covariance(
            x if of_pairs else concatenate([x, y]))]
    op, points = (pairs_op, [x]) if of_pairs else (table_op, [x, y])
    return op(*points, *values, metric=name, names=tuple(operands), options=options)


def _check_sides(x, y, given):
    """Raise SciPy's error for points of other dimensions, and one for those of weights."""
    if x.ndim != 2 or y.ndim != 2 or differ(x.shape[1], y.shape[1]):
        scipys.cdist(np.zeros(x.shape), np.zeros(y.shape))  # raises
    n = x.shape[1]
    for key, shape in {"w": (n,), "V": (n,), "VI": (n, n)}.items():
        if key in given and n is not None and np.shape(given[key]) != shape:
            raise ValueError(f"{key} must have the shape {shape} for points of {n} coordinates, "
                             f"got {np.shape(given[key])}")


def _inverse_covariance(points):
    if points.spec.known and points.shape[0] <= points.shape[1]:
        scipys.pdist(np.zeros(points.shape), "mahalanobis")  # raises
    centred = points - mean(points, 0)
    return inv(matmul(swapaxes(centred, 0, 1), centred) / (len(points) - 1))


def pdist(X, metric="euclidean", *, out=None, **kwargs) -> Any:
    """Return the distances between all pairs of points, as `scipy.spatial.distance.pdist`.

    Derivatives are those of `cdist`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.spatial.distance import pdist
    >>> cytape.grad(lambda x: np.sum(pdist(x)))(np.array([[0.0], [1.0], [3.0]]))
    array([[-2.],
           [ 0.],
           [ 2.]])
    """
    X = joined(X)
    if not any(map(is_tensor, (X, *kwargs.values()))):
        return scipys.pdist(X, metric, out=out, **kwargs)
    if out is not None:
        raise TypeError("pdist of tensors does not take out")
    X, name = _points(X), _metric(metric)
    if X.ndim != 2:
        scipys.pdist(np.zeros(X.shape))  # raises
    if X.shape[0] == 0:
        if not kwargs:
            scipys.pdist(np.zeros(X.shape), metric)  # raises if the metric needs points
        return reshape(X, (-1,))
    if name is None:
        pairs = [(X[i], X[j]) for i in range(len(X)) for j in range(i + 1, len(X))]
        return _by_function(metric, pairs, (len(pairs),), kwargs)
    return _table(name, X, None, kwargs)


square_op = linear(
    "ScipyDistanceSquare", lambda x: scipys.squareform(x, "tomatrix"),
    transpose=lambda op, g: condense_op(g + swapaxes(g, 0, 1), checks=False),
    shape_rule=lambda x: symbolic_spec(_square_shape(x.size if x.known else None), x.dtype))
condense_op = linear(
    "ScipyDistanceCondense", lambda x, checks: scipys.squareform(x, "tovector", checks),
    transpose=lambda op, g: triu(square_op(g)),
    shape_rule=lambda x, checks: symbolic_spec(
        (None if x.shape[0] is None else x.shape[0] * (x.shape[0] - 1) // 2,), x.dtype))


def _square_shape(size):
    if size is None:
        return None, None
    n = int(np.ceil(np.sqrt(size * 2)))
    return (n, n) if size else (1, 1)


def squareform(X, force="no", checks=True) -> Any:
    """Convert a vector of distances to a matrix, or back, as `scipy.spatial.distance.squareform`.

    Of a matrix the elements above the diagonal are read, which have the gradient.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.spatial.distance import squareform
    >>> cytape.grad(lambda x: np.sum(squareform(x)))(np.ones(3))
    array([2., 2., 2.])
    """
    X = joined(X)
    if not is_tensor(X):
        return scipys.squareform(X, force, checks)
    X = atleast_1d(X)  # noqa: N806
    if X.ndim == 1 and force.lower() != "tovector":
        return square_op(X)
    if X.ndim == 2 and force.lower() != "tomatrix":
        return condense_op(X, checks=checks)
    return scipys.squareform(np.zeros(X.shape), force, checks)  # raises
