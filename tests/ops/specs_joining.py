"""Records of the ops that join and split."""

import numpy as np

from cytape.ops import joining as ops
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case


def joined(function):
    """Make a function of separate arrays from one of a list of arrays."""
    return lambda *arrays, **kwargs: function(list(arrays), **kwargs)


def parts(function):
    """Make a function that returns a tuple from one that returns a list."""
    return lambda *arguments, **kwargs: tuple(function(*arguments, **kwargs))


def record(name, function, cases, wrap=lambda function: function, **options):
    return OpSpec(name, wrap(getattr(ops, function)), wrap(getattr(np, function)), cases,
                  dtypes=FLOATS_AND_COMPLEX, **options)


def composed(function, cases, wrap=lambda function: function):
    return record(function, function, cases, wrap)


MIXED = case((3,), np.array([1.0, 2.0, 3.0]))

SPECS = [
    record("Concatenate", "concatenate", [
        case((2, 3), (4, 3), (0, 3), axis=0), case((2, 3), (2, 1), axis=-1), case((2,), axis=0),
        case((2, 3), (), (4,), axis=None), case((2,), np.ones(3), axis=0),
    ], joined),
    record("Stack", "stack", [
        case((2, 3), (2, 3), axis=0), case((2, 3), (2, 3), (2, 3), axis=-1), case((), (), axis=0),
        case((2,), axis=1), case((0,), (0,), axis=0),
    ], joined),
    composed("vstack", [MIXED, case((2, 3), (3,)), case((), ())], joined),
    composed("hstack", [MIXED, case((2, 3), (2, 1)), case((), (2,))], joined),
    composed("dstack", [MIXED, case((2, 3), (2, 3)), case((), ())], joined),
    composed("column_stack", [MIXED, case((2, 3), (2,)), case((), ())], joined),
    composed("append", [case((2, 3), (4,)), case((2, 3), (1, 3), axis=0), case((2,), 3.0)]),
    OpSpec("Split", ops.split_op, lambda a, sizes, axis: tuple(
        np.split(a, np.cumsum(sizes)[:-1], axis)), [
        case((5, 2), sizes=(2, 0, 3), axis=0), case((2, 3), sizes=(1, 2), axis=-1),
        case((3,), sizes=(3,), axis=0),
    ]),
    OpSpec("Unstack", ops.unstack_op, lambda x, axis: tuple(np.moveaxis(x, axis, 0)), [
        case((3, 2), axis=0), case((2, 3), axis=-1), case((2,), axis=0), case((1,), axis=0),
    ]),
    composed("split", [
        case((6, 2), 3), case((6,), [2, 3]), case((2, 4), 2, axis=-1), case((4,), [3, 9]),
        case((4,), [-1]), case((5,), [3, 1]), case((4,), []), case((4,), np.array([1, 3])),
    ], parts),
    composed("array_split", [case((5, 2), 3), case((3,), 5), case((2, 3), 2, axis=1)], parts),
    composed("hsplit", [case((4,), 2), case((2, 4), [1])], parts),
    composed("vsplit", [case((4, 1), 2)], parts),
    composed("dsplit", [case((1, 2, 4), [1, 2])], parts),
    composed("unstack", [case((3, 2)), case((2, 3), axis=1)]),
]
