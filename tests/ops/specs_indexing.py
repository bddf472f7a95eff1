"""Records of the ops that read and write parts of a tensor."""

import numpy as np

import cytape
from cytape.ops import indexing
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case

INDICES = [
    1, -1, slice(None, None, -1), slice(3, 0, -2), slice(1, 1), Ellipsis, None, (0, 2, 1),
    (slice(1, 3), None, Ellipsis, 0), np.array([0, 3, 3, -1]), np.array([[0, 1], [1, 0]]),
    np.array([], int), np.array([True, False, True, False]),
    (slice(None), np.array([[True, False], [False, True], [True, True]])),
    (np.array([0, 0]), np.array([1, 1])), (np.array([[0], [0]]), slice(None), np.array([1, 1, 0])),
    (slice(None), np.array([2, 2, 0]), 0), (0, slice(None), np.array([1, 1])),
    (np.array([True, True, False, False]), np.array([0, 0])), np.array(True)]
GATHERS = [
    ((5, 2), [0, 3, 3], 0, "raise"), ((5, 2), [[0, 3], [3, -1]], 0, "raise"), ((5,), 2, 0, "raise"),
    ((5, 2), [], 0, "raise"), ((2, 3, 2), [[0, 2], [2, 1]], 1, "raise"),
    ((2, 3), [4, -7, 0, 1], 1, "wrap"), ((2, 3), [4, -7, 0, 1], 0, "clip")]


def index_add(values, *, index, shape):
    total = np.zeros(shape, values.dtype)
    np.add.at(total, index, values)
    return total


def scatter_add(values, indices, *, axis, mode, size):
    positions = np.take(np.arange(size), indices, mode=mode)
    shape = values.shape[:axis] + (size,) + values.shape[axis + indices.ndim :]
    total = np.zeros(shape, values.dtype)
    np.add.at(total, (slice(None),) * axis + (positions,), values)
    return total


SPECS = [
    OpSpec("gather", cytape.gather, lambda x, i: x[i], [case((3, 2), np.array([1, 0, 1]))]),
    OpSpec(
        "GetItem", lambda x, *, index: indexing.getitem(x, index), lambda x, *, index: x[index],
        [case((4, 3, 2), index=index) for index in [
            *INDICES, True, (Ellipsis, np.array([0, 0])), (np.array([0, 1]), None, [1, 1])]]
        + [case((), index=()), case((), index=None), case((0, 3), index=slice(None))],
        dtypes=FLOATS_AND_COMPLEX,
    ),
    OpSpec(
        "IndexAdd", indexing.index_add_op, index_add,
        [case(np.zeros((4, 3, 2))[index].shape, index=index, shape=(4, 3, 2)) for index in INDICES],
        dtypes=FLOATS_AND_COMPLEX,
    ),
    OpSpec(
        "Gather", indexing.gather_op, lambda x, indices, **kwargs: np.take(x, indices, **kwargs),
        [
            case(shape, np.array(indices, int), axis=axis, mode=mode)
            for shape, indices, axis, mode in GATHERS
        ],
        dtypes=FLOATS_AND_COMPLEX,
    ),
    OpSpec(
        "ScatterAdd", indexing.scatter_add_op, scatter_add,
        [
            case(
                np.take(np.zeros(shape), np.array(indices, int), axis, mode=mode).shape,
                np.array(indices, int), axis=axis, mode=mode, size=shape[axis],
            )
            for shape, indices, axis, mode in GATHERS
        ],
        dtypes=FLOATS_AND_COMPLEX,
    ),
    OpSpec(
        "TakeAlongAxis", indexing.take_along_axis, np.take_along_axis,
        [
            case((3, 4), np.array([[0], [3], [1]]), axis=1),
            case((3, 4), np.array([[0, 0, 2, 2]]), axis=0),
            case((3, 4), np.array([0, 0, 11]), axis=None),
            case((1, 4), np.array([[1, 1], [0, 3]]), axis=-1),
        ],
    ),
    OpSpec(
        "Compress", lambda a, condition, axis: indexing.compress(condition, a, axis),
        lambda a, condition, axis: np.compress(condition, a, axis),
        [
            case((3, 4), condition=[False, True], axis=0),
            case((3, 4), condition=np.array([True, False, True, True]), axis=-1),
            case((3, 4), condition=[True, False, True], axis=None),
        ],
    ),
    OpSpec(
        "Extract", lambda a, condition: indexing.extract(condition, a),
        lambda a, condition: np.extract(condition, a),
        [case((2, 3), condition=np.array([[True, False, True], [False, False, True]]))],
    ),
]
