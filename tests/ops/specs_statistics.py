"""Records of order statistics, averages and counts."""

import numpy as np

import cytape.numpy as cnp
from cytape.ops.adjoints import line_elements
from cytape.ops.statistics import averages, bin_counts, quantiles, sorting
from tests.ops.op_specs import (
    FLOATS_AND_COMPLEX,
    SINGLE_AND_DOUBLE,
    OpSpec,
    case,
    distinct,
    integers,
    uniform,
)

LINES = np.array([[3, 0, 0], [1, 2, 2]])
ORDERS = np.array([[2, 0, 3, 1], [0, 1, 3, 2]])
KEYS = np.array([[0.5, -1.0, 2.0], [3.0, 1.0, -2.0]])
TIES = np.array([2.0, -1.0, 2.0, -1.0])
FIRST_ONLY = (True, False)
NAN = np.nan
MASK = np.array([[False, True, False, False], [True, False, False, True], [False] * 4])
HOLES = np.array([[1.0, NAN, 3.0, -2.0], [NAN, 0.5, NAN, 2.5]])


DISTINCT = distinct()


def record(name, cases, domain=DISTINCT, **options):
    return OpSpec(name, getattr(cnp, name), getattr(np, name), cases, domain=domain, **options)


def put(values, indices, size, unique):
    total = np.zeros((*values.shape[:-1], size), values.dtype)
    for place in np.ndindex(values.shape):
        total[(*place[:-1], indices[place])] += values[place]
    return total


def put_in_order(values, x, kind):
    return put(values, np.argsort(x, -1, kind), values.shape[-1], unique=True)


def put_first(values, x, equal_nan):
    return put(values, np.unique(x, True, equal_nan=equal_nan)[1], x.size, True).reshape(x.shape)


def skipping(name, cases, domain=DISTINCT, op=None, **options):
    """Make a record of a function that is given NaN where its second operand says so."""
    fn, ref = [
        lambda x, holes, module=module, **kwargs: getattr(module, name)(
            module.where(holes, NAN, x), **kwargs)
        for module in (cnp, np)
    ]
    holed = [case(*one.inputs, MASK[0] if len(one.inputs[0]) == 1 else MASK, **one.kwargs)
             for one in cases]
    return OpSpec(op or name, fn, ref, holed, domain=domain, **options)


def first_of(name, *given, **kwargs):
    """Make a function of weights that returns the counts without the edges."""
    return [
        lambda weights, module=module: getattr(module, name)(
            *given, weights=weights, **kwargs)[0]
        for module in (cnp, np)
    ]


AXES = [case((2, 3, 4)), case((2, 3, 4), axis=1), case((2, 3, 4), axis=(0, -1), keepdims=True)]
COMPLEX = {"dtypes": FLOATS_AND_COMPLEX}
POINTS = np.array([0.1, 0.9, 1.5, 2.5, 2.9, 3.0, 5.0])
QS = np.array([0.23, 0.55, 0.91])
METHODS = [
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher",
    "midpoint", "nearest"]

SPECS = [
    OpSpec("TakeAlong", line_elements.take_along_op,
           lambda x, indices, unique: np.take_along_axis(x, indices, -1), [
        case((2, 4), LINES, unique=False), case((2, 4), ORDERS, unique=True),
        case((3,), np.array([1, 1]), unique=False),
    ], differentiable=FIRST_ONLY, **COMPLEX),
    OpSpec("PutAlong", line_elements.put_along_op, put, [
        case((2, 3), LINES, size=4, unique=False), case((2, 4), ORDERS, size=4, unique=True),
        case((2,), np.array([1, 1]), size=3, unique=False),
    ], differentiable=FIRST_ONLY, **COMPLEX),
    OpSpec("PutAlong like", line_elements.put_along_op,
           lambda values, indices, like, unique: put(values, indices, like.shape[-1], unique), [
        case((2, 3), LINES, (2, 4), unique=False), case((2, 4), ORDERS, (2, 4), unique=True),
    ], differentiable=(True, False, False), **COMPLEX),
    OpSpec("Sort", sorting.sort_op, lambda x, kind: np.sort(x, kind=kind), [
        case((3, 4), kind=None), case((5,), kind="stable"), case((2, 0), kind=None),
    ], domain=distinct(), **COMPLEX),
    OpSpec("InOrder", sorting.in_order_op,
           lambda t, x, kind: np.take_along_axis(t, np.argsort(x, -1, kind), -1), [
        case((2, 3), KEYS, kind=None), case((4,), TIES, kind="stable"), case((0,), (0,), kind=None),
    ], differentiable=FIRST_ONLY, **COMPLEX),
    OpSpec("OutOfOrder", sorting.out_of_order_op, put_in_order, [
        case((2, 3), KEYS, kind=None), case((4,), TIES, kind="stable"), case((0,), (0,), kind=None),
    ], differentiable=FIRST_ONLY, **COMPLEX),
    OpSpec("SortComplex", sorting.sort_complex_op, np.sort_complex, [case((4,)), case((2, 3))],
           domain=distinct(), dtypes=("float64", "float32", "complex128")),
    record("sort", [case((3, 4)), case((3, 4), axis=0), case((2, 3), axis=None), case((0,)),
                    case((4,), kind="stable"), case((4,), stable=True)], **COMPLEX),
    # Each of these leaves one order of the elements.
    record("partition", [case((5,), kth=(1, 3)), case((3, 4), kth=1, axis=0),
                         case((2, 3), kth=(1, 3, -2), axis=None)], **COMPLEX),
    record("sort_complex", [case((4,))], dtypes=("float64", "float32", "complex128")),
    record("unique", [case((4,)), case((2, 3)),
                      case((3, 2), axis=0)], **COMPLEX),
    OpSpec("Unique", sorting.unique_op, np.unique, [
        case((4,), equal_nan=True), case((2, 3), equal_nan=False)], domain=distinct(), **COMPLEX),
    OpSpec("FromFirst", sorting.from_first_op,
           lambda t, x, equal_nan, count: t.reshape(-1)[np.unique(x, True, equal_nan=equal_nan)[1]],
    [
        case((4,), TIES, equal_nan=True, count=2),
        case((2, 2), TIES.reshape(2, 2), equal_nan=True, count=None),
        case((5,), HOLES.reshape(-1)[:5], equal_nan=False, count=5),
    ], differentiable=FIRST_ONLY, **COMPLEX),
    OpSpec("ToFirst", sorting.to_first_op, put_first, [
        case((2,), TIES, equal_nan=True), case((5,), HOLES.reshape(-1)[:5], equal_nan=False),
        case((6,), HOLES, equal_nan=True),
    ], differentiable=FIRST_ONLY, **COMPLEX),
    OpSpec("unique_values", cnp.unique_values, lambda x: np.sort(np.unique_values(x)),
           [case((4,)), case((2, 2))], domain=distinct()),
    OpSpec("UniquePositions", sorting.unique_positions_op,
           lambda ar, axis, equal_nan: np.unique(ar, True, True, True, axis)[1:],
           [case((2, 3), axis=None, equal_nan=True), case((3, 2), axis=0, equal_nan=True)],
           domain=distinct(), differentiable=False),
    # Quantiles: q away from the positions of elements, where they have kinks in q.
    OpSpec("Quantile", quantiles.quantile_op,
           lambda x, q, method, **_: np.quantile(x, q, -1, method=method), [
        case((2, 5), QS, method="linear", skip_nan=False, function="quantile"),
        case((5,), np.array(0.33), method="hazen", skip_nan=False, function="quantile"),
        case((2, 5), QS, method="midpoint", skip_nan=False, function="quantile"),
    ], domain=distinct(), dtypes=("float64",)),
    *[record("quantile", [case((6,), QS, method=method), case((2, 6), QS, axis=1, method=method)],
             dtypes=("float64",), differentiable=(
                 True, method in quantiles._CONTINUOUS)) for method in METHODS],
    record("quantile", [
        case((5, 3), 0.3, axis=0), case((2, 3, 4), np.array(0.6), axis=(0, 2), keepdims=True),
        case((2, 3), np.array([[0.33, 0.77], [0.13, 0.22]]), axis=1), case((4,), 0.5),
        case((1,), 0.3),
    ]),
    record("quantile", [
        case(np.array([1.0, 2.0, 4.0, 9.0]), (2,)), case(np.array([1.0, 2.0, 4.0, 9.0]), ()),
    ], domain=uniform(0.4, 0.6), dtypes=("float64",), differentiable=(True, True)),
    record("quantile", [
        case((4,), 0.4, weights=np.array([1.0, 2.0, 0.5, 1.0]), method="inverted_cdf"),
        case((3, 4), QS, weights=np.array([1.0, 2.0, 0.5, 1.0]), method="inverted_cdf", axis=1),
    ], dtypes=("float64",), differentiable=FIRST_ONLY),
    record("percentile", [case((5,), 31), case((2, 5), np.array([23.0, 57.0]), axis=-1)],
           differentiable=FIRST_ONLY),
    record("median", [case((5,)), case((4,)), *AXES], **COMPLEX), skipping("nanmedian", AXES),
    skipping("nanquantile", [case((4,), q=0.3), case((3, 4), q=QS, axis=1)], dtypes=("float64",)),
    skipping("nanpercentile", [case((4,), q=31), case((3, 4), q=20.0, axis=1, keepdims=True)]),
    OpSpec("QuantileNeighbours", quantiles.neighbours_op,
           lambda x, q, y, method, skip_nan: quantiles._neighbours(
               x, q, y, method=method, skip_nan=skip_nan),
           [case((2, 5), QS, (3, 2), method="linear", skip_nan=False)],
           domain=distinct(), differentiable=False, dtypes=("float64",)),
    OpSpec("NeighboursOfNumber",
           lambda x, y, **options: quantiles.neighbours_of_number_op(
               x, np.array(0.4), y, **options),
           lambda x, y, method, skip_nan: quantiles._neighbours_of_number(
               x, np.array(0.4), y, method=method, skip_nan=skip_nan),
           [case((2, 5), (2,), method="linear", skip_nan=False)],
           domain=distinct(), differentiable=False, dtypes=("float64",)),
    OpSpec("CountsOfLines", quantiles.line_counts_op,
           lambda x, skip_nan: (~np.isnan(x)).sum(-1, keepdims=True).astype(float),
           [case((2, 3), skip_nan=False), case(HOLES, skip_nan=True)], differentiable=False,
           dtypes=("float64",)),
    OpSpec("WeightedQuantilePositions", quantiles.weighted_positions_op,
           lambda x, q, weights, skip_nan: np.stack([
               (x == y[..., None]).argmax(-1) for y in np.quantile(
                   x, q, -1, weights=weights, method="inverted_cdf")], -1),
           [case((2, 3), QS, np.ones((2, 3)), skip_nan=False)], domain=distinct(),
           differentiable=False, dtypes=("float64",)),
    # The numbers that are not NaN.
    *[skipping(name, [*AXES, case((4,))], domain=uniform(-2, 2, avoid=[0]), **COMPLEX)
      for name in ("nansum", "nanprod", "nanmean")],
    *[skipping(name, [*AXES, case((4,))], op=op)
      for name, op in [("nanmax", "NanMax"), ("nanmin", "NanMin")]],
    *[skipping(name, [*AXES, case((4,), ddof=1)], **COMPLEX) for name in ("nanvar", "nanstd")],
    *[skipping(name, [case((3, 4)), case((3, 4), axis=1)], domain=uniform(-2, 2, avoid=[0]),
               **COMPLEX) for name in ("nancumsum", "nancumprod")],
    # Averages.
    record("ptp", [case((4,)), case((2, 3), axis=1), case((2, 3, 4), axis=(0, 2), keepdims=True)]),
    record("average", [case((2, 3)), case((2, 3), axis=1), case((2, 3), axis=0, keepdims=True)],
           **COMPLEX),
    OpSpec("average", lambda a, w, **kwargs: cnp.average(a, weights=w, **kwargs),
           lambda a, w, **kwargs: np.average(a, weights=w, **kwargs), [
        case((2, 3), (2, 3)), case((2, 3), (3,), axis=1), case((2, 3, 4), (4, 2), axis=(2, 0)),
        case((2, 3), (2, 3), axis=0, keepdims=True), case((3,), (3,), returned=True),
    ], domain=uniform(0.5, 2)),
    OpSpec("Gram", averages.gram_op, lambda x: x @ np.conj(x).mT,
           [case((2, 3)), case((3, 1)), case((2, 3, 2)), case((0, 2))], **COMPLEX),
    record("cov", [case((2, 4)), case((4,)), case((2, 4), (2, 4)), case((4, 2), rowvar=False),
                   case((2, 4), bias=True), case((2, 4), ddof=0)],
           dtypes=("float64", "float32", "complex128")),
    OpSpec("cov", lambda m, w, **kwargs: cnp.cov(m, aweights=w, **kwargs),
           lambda m, w, **kwargs: np.cov(m, aweights=w, **kwargs), [
        case((2, 4), (4,)), case((2, 4), (4,), fweights=np.array([1, 2, 1, 3])),
        case((2, 4), (4,), ddof=0),
    ], domain=uniform(0.5, 2), dtypes=("float64",)),
    record("corrcoef", [case((2, 4)), case((4,), (4,)), case((4, 3), rowvar=False)],
           domain=uniform(-2, 2), dtypes=("float64", "float32")),
    # Counts.
    OpSpec("BinCount", bin_counts.bincount_op, np.bincount, [case((5,), minlength=0)],
           domain=integers(0, 4), dtypes=("int64",), differentiable=False),
    OpSpec("WeightedBinCount", bin_counts.weighted_bincount_op,
           lambda weights, x, minlength: np.bincount(x, weights, minlength), [
        case((4,), np.array([1, 0, 3, 1]), minlength=0),
        case((2,), np.array([1, 0]), minlength=5),
    ], differentiable=FIRST_ONLY),
    OpSpec("bincount", lambda w: cnp.bincount([1, 0, 3, 1], w),
           lambda w: np.bincount([1, 0, 3, 1], w), [case((4,))], dtypes=("float64",)),
    OpSpec("BinsOfElements", bin_counts.bins_op,
           lambda a, edges: np.where((a < edges[0]) | (a > edges[-1]), len(edges) - 1, np.clip(
               np.searchsorted(edges, a, "right") - 1, 0, len(edges) - 2)),
           [case(POINTS, np.array([0.5, 1.5, 3.0])), case((4,), np.array([-1.0, 0.0, 1.0]))],
           dtypes=("float64",), differentiable=False),
    OpSpec("AddToBins", bin_counts.add_to_bins_op,
           lambda weights, bins, n: np.stack([weights[bins == i].sum() for i in range(n)]),
           [case((4,), np.array([1, 0, 3, 1]), n=3)], differentiable=FIRST_ONLY, **COMPLEX),
    OpSpec("histogram", *first_of("histogram", POINTS, 3), [case((7,))], **COMPLEX),
    OpSpec("histogram", *first_of("histogram", POINTS, [0.5, 1.5, 3.0], density=True),
           [case((7,))], domain=uniform(0.5, 2), dtypes=("float64",)),
    OpSpec("histogram2d", *first_of("histogram2d", POINTS, POINTS[::-1], [2, 3]), [case((7,))],
           dtypes=("float64", "float32")),
    OpSpec("histogramdd", *first_of("histogramdd", (POINTS, POINTS[::-1]), 2, density=True),
           [case((7,))], domain=uniform(0.5, 2), dtypes=SINGLE_AND_DOUBLE),
]
