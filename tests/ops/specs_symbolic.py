"""Records of ops that only graphs need: where shapes, indices or counts are known when they run."""

import numpy as np

from cytape.ops import indexing, joining, matrix_products, rearranging, shaping
from cytape.ops.adjoints import conform, deferred_derivatives, extent_checks
from cytape.ops.choosing import padding
from cytape.ops.statistics import averages
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case, uniform

FIRST_ONLY = (True, False)


def sum_to(x, like):
    lead = x.ndim - like.ndim
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(like.shape) if n == 1 != x.shape[lead + i]
    )
    return x.sum(axis=axes, keepdims=True).reshape(like.shape)


def fit(x, like):
    axes = tuple(i for i, n in enumerate(like.shape) if n == 1)
    return np.broadcast_to(x.sum(axis=axes, keepdims=True), like.shape)


def split_like(g, *likes, axis):
    lengths = [like.shape[axis] for like in likes]
    return tuple(np.split(g, np.cumsum(lengths)[:-1], axis))


def at(index, *values):
    parts = tuple(values[int(part[1:])] if isinstance(part, str) else part for part in index)
    return tuple(int(part) if np.ndim(part) == 0 and isinstance(part, np.ndarray) else part
                 for part in parts)


def get_item(x, *values, index):
    return x[at(index, *values)]


def index_add(values, *others, index, shape=None):
    if shape is None:
        *others, like = others
        shape = like.shape
    total = np.zeros(shape, values.dtype)
    np.add.at(total, at(index, *others), values)
    return total


def scatter_add_like(values, indices, like, *, axis, mode):
    total = np.zeros(like.shape, values.dtype)
    positions = np.take(np.arange(like.shape[axis]), indices, mode=mode)
    np.add.at(total, (slice(None),) * axis + (positions,), values)
    return total


def merge_pairs(x):
    return x.reshape([n * m for n, m in zip(x.shape[::2], x.shape[1::2], strict=True)])


def gradient_of_prod(x, g, **_):
    return (g * np.prod(x, axis=0) / x,)


def positions(x):
    return np.arange(x.size).reshape(x.shape)


OF_PROD = {
    "of": "Prod", "attrs": {"axis": 0, "dtype": None, "keepdims": False}, "n_inputs": 1,
    "needs": (True,)}
ROWS = np.array([0, 2, 2])
INDEX_CASES = [
    ((3, 2), ("@0",), (ROWS,)), ((3, 2), (slice(None), "@0"), (np.array(1),)),
    ((3, 4), ("@0", "@1"), (ROWS, np.array([1, 1, 3]))),
    ((2, 3, 4), (0, slice(1, None), "@0"), (np.array([[0, 0], [3, 1]]),))]


def record(name, fn, ref, cases, **options):
    return OpSpec(name, fn, ref, cases, dtypes=FLOATS_AND_COMPLEX, **options)


SPECS = [
    record("SumTo like", conform.sum_to_op, sum_to, [
        case((2, 3), (3,)), case((4, 2, 3), (2, 1)), case((2, 3), ()), case((2, 3), (2, 3)),
    ], differentiable=FIRST_ONLY),
    record("BroadcastTo like", conform.broadcast_to_op,
           lambda x, like: np.broadcast_to(x, like.shape), [
        case((3,), (2, 3)), case((2, 1), (4, 2, 3)), case((), (2,)), case((2,), (2,)),
    ], differentiable=FIRST_ONLY),
    record("FitLike", conform.fit_like_op, fit, [
        case((2, 1), (1, 3)), case((2, 3), (2, 1)), case((1, 3), (2, 3)), case((2,), (2,)),
    ], differentiable=FIRST_ONLY),
    record("CheckedExtents", extent_checks.checked_extents_op, lambda x, like, **_: x, [
        case((2, 3), (3,), same=((1, 0),), least=((0, 2),), multiple=((1, 3),), error="ValueError",
             message="unequal"),
    ], differentiable=FIRST_ONLY),
    record("EnsureShape", extent_checks.ensure_shape_op, lambda x, shape: x, [
        case((2, 3), shape=(2, None)), case((), shape=()), case((0, 2), shape=(None, 2)),
    ]),
    record("WeightsInOrder", averages.axes_in_order_op,
           lambda w, a, axes: w if w.shape == a.shape else w.transpose(np.argsort(axes)), [
        case((3, 2), (2, 3), axes=(1, 0)), case((2, 3), (2, 3), axes=(1, 0)),
        case((4, 2, 3), (2, 3, 4), axes=(2, 0, 1)),
    ], differentiable=FIRST_ONLY),
    record("Reshape like", shaping.reshape_op,
           lambda x, like, order: x.reshape(like.shape, order=order), [
        case((2, 6), (3, 4), order="C"), case((2, 6), (3, 4), order="F"), case((1,), (), order="C"),
    ], differentiable=FIRST_ONLY),
    record("Reshape to values", shaping.reshape_op,
           lambda x, values, shape, order: x.reshape(values, order=order), [
        case((2, 6), np.array([3, 4]), shape=(3, 4), order="C"),
        case((2, 6), np.array([-1, 3]), shape=(4, 3), order="F"),
        case((3,), np.array(-1), shape=(3,), order="C"),
    ], differentiable=FIRST_ONLY),
    OpSpec("Count", conform.count_op, lambda x, axis, dtype, at_least: np.asarray(
        max(np.prod([x.shape[i] for i in (range(x.ndim) if axis is None else axis)]), at_least),
        dtype), [
        case((2, 3), axis=None, dtype=np.dtype(float), at_least=0),
        case((2, 3, 4), axis=(0, 2), dtype=np.dtype("float32"), at_least=0),
        case((0, 3), axis=(0,), dtype=np.dtype(float), at_least=1),
    ], differentiable=False),
    record("Split like", joining.split_op, split_like, [
        case((5, 2), (2, 2), (3, 2), axis=0), case((2, 3), (2, 0), (2, 3), axis=-1),
    ], differentiable=(True, False, False)),
    record("Split into equal parts", joining.split_op,
           lambda a, sizes, axis: tuple(np.array_split(a, sizes, axis)), [
        case((4, 2), sizes=2, axis=0), case((2, 5), sizes=3, axis=-1),
    ]),
    record("GetItem at tensors", indexing.get_item_op, get_item, [
        case(shape, *values, index=index) for shape, index, values in INDEX_CASES
    ] + [case((4,), np.array([True, False, True, True]), index=("@0",))]),
    record("IndexAdd at tensors", indexing.index_add_op, index_add, [
        case(np.zeros(shape)[at(index, *values)].shape, *values, index=index, shape=shape)
        for shape, index, values in INDEX_CASES
    ]),
    record("IndexAdd to a shape", indexing.index_add_op, index_add, [
        case(np.zeros(shape)[at(index, *values)].shape, *values, shape, index=index)
        for shape, index, values in INDEX_CASES
    ], differentiable=(True, *[False] * 4)),
    record("ScatterAdd like", indexing.scatter_add_op, scatter_add_like, [
        case((3, 2), ROWS, (4, 2), axis=0, mode="raise"),
        case((2, 3), np.array([4, -1, 0]), (2, 3), axis=1, mode="wrap"),
        case((3,), np.array([4, -1, 0]), (3,), axis=0, mode="clip"),
    ], differentiable=(True, False, False)),
    record("MergePairs", matrix_products.merge_pairs_op, merge_pairs, [
        case((2, 3)), case((2, 1, 3, 2)), case(())]),
    OpSpec("DeferredVjp", deferred_derivatives.deferred_vjp_op, gradient_of_prod, [
        case((3, 2), (2,), **OF_PROD), case((1,), (), **OF_PROD),
    ], domain=uniform(-2, 2, avoid=[0], margin=0.3)),
    OpSpec("BroadcastOutline", conform.broadcast_outline_op,
           lambda *xs: np.zeros(np.broadcast_shapes(*[x.shape for x in xs]), bool), [
        case((2, 1), (3,)), case((), (2,), (3, 1)),
    ], differentiable=False),
    OpSpec("RepeatedPositions", rearranging.repeated_positions_op,
           lambda a, repeats, axis: np.repeat(np.arange(a.shape[axis]), repeats), [
        case((3, 2), np.array([0, 2, 1]), axis=0), case((3, 2), np.array(2), axis=1),
    ], differentiable=False),
    OpSpec("PaddedPositions", padding.padded_positions_op,
           lambda x, axis, width, **kwargs: np.pad(np.arange(x.shape[axis]), width, **kwargs), [
        case((3, 2), axis=0, width=(1, 2), mode="wrap"),
        case((3, 2), axis=1, width=(0, 1), mode="reflect", reflect_type="even"),
    ], differentiable=False),
    OpSpec("PositionsAlongAxis", indexing.positions_along_axis_op,
           lambda x, indices, axis: np.take_along_axis(positions(x), indices, axis), [
        case((3, 4), np.array([[0], [3], [1]]), axis=1), case((3, 4), np.array([0, 11]), axis=None),
        case((1, 4), np.array([[1, 1], [0, 3]]), axis=-1),
    ], differentiable=False),
    OpSpec("CompressedPositions", indexing.compressed_positions_op,
           lambda x, condition, axis: np.compress(condition, positions(x), axis), [
        case((3, 4), np.array([False, True]), axis=0), case((2,), np.array([True]), axis=None),
    ], differentiable=False),
    OpSpec("ExtractedPositions", indexing.extracted_positions_op,
           lambda x, condition: np.extract(condition, positions(x)), [
        case((2, 2), np.array([[True, False], [False, True]])),
    ], differentiable=False),
]
