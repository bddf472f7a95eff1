"""Records of the ops that move elements about."""

import numpy as np

from cytape.ops import rearranging as ops
from cytape.ops.adjoints.deferred_derivatives import transposed_moves_op
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case


def record(name, function, cases, **options):
    return OpSpec(name, getattr(ops, function), getattr(np, function), cases,
                  dtypes=FLOATS_AND_COMPLEX, **options)


def composed(function, cases):
    """Make a record of a function that is made of ops, under its own name."""
    return record(function, function, cases)


def diagonals(shape, offset=0, axis1=0, axis2=1):
    return case(shape, offset=offset, axis1=axis1, axis2=axis2)


def moved_back(x, of, shapes, attrs):
    """Return the adjoints of some ops, computed with NumPy."""
    return {
        "Tile": lambda: x.reshape(2, 2, 2, 3).sum((0, 2)), "BroadcastTo": lambda: x.sum((0, 1)),
        "Concatenate": lambda: (x[:2], x[2:]), "Flip": lambda: x}[
        of]()


SPECS = [
    record("Flip", "flip", [
        case((2, 3), axis=None), case((2, 3), axis=1), case((2, 3), axis=(0, -1)),
        case((), axis=None), case((0, 2), axis=0),
    ]),
    record("FlipLR", "fliplr", [case((2, 3))]),
    record("FlipUD", "flipud", [case((2, 3)), case((2,))]),
    record("Rot90", "rot90", [*[case((2, 3), k=k, axes=(0, 1)) for k in (1, 2, 3, -1, 4)],
                              case((2, 3, 4), k=1, axes=(2, 0))]),
    record("Roll", "roll", [case((2, 3), shift=1, axis=None), case((2, 3), shift=-4, axis=1),
                            case((2, 3), shift=[1, 2], axis=(0, 1)), case((), shift=1, axis=None),
                            case((2, 3), shift=[1, 2], axis=1)]),
    record("Tile", "tile", [case((2, 3), reps=2), case((2, 3), reps=(2, 1, 3)), case((), reps=3),
                            case((2,), reps=()), case((2,), reps=0), case((2, 1, 2), reps=(3, 2))]),
    record("Repeat", "repeat", [case((2, 3), repeats=2, axis=0), case((2, 3), repeats=3, axis=-1),
                                case((2, 3), repeats=0, axis=1), case((2,), repeats=[2], axis=0)]),
    composed("repeat", [case((2, 3), repeats=2), case((2, 3), repeats=[0, 2, 1], axis=-1),
                        case((3,), repeats=np.array([1, 0, 2])), case((), repeats=3),
                        case((3,), np.array([1, 0, 2])), case((2, 3), repeats=1.5)]),
    record("Tril", "tril", [case((3, 4), k=0), case((2, 3, 3), k=-1), case((3,), k=1)]),
    record("Triu", "triu", [case((3, 4), k=0), case((2, 3, 3), k=-1), case((3,), k=1)]),
    record("Diagonal", "diagonal", [
        diagonals((3, 4)), diagonals((3, 4), 1), diagonals((3, 4), -2), diagonals((3, 4), 5),
        diagonals((2, 3, 4), 1, 1, 2), diagonals((2, 3, 4), -1, -1, 0),
    ]),
    OpSpec("Diag", ops.diag_op, np.diag, [
        case((2,), k=1), case((3,), k=0), case((2,), k=-3), case((0,), k=2),
    ], dtypes=FLOATS_AND_COMPLEX),
    OpSpec("Transposed", transposed_moves_op, moved_back, [
        case((4, 6), of="Tile", shapes=((2, 3),), attrs=(("reps", (2, 2)),)),
        case((3, 2, 3), of="BroadcastTo", shapes=((3,),), attrs=(("shape", (3, 2, 3)),)),
        case((5,), of="Concatenate", shapes=((2,), (3,)),
             attrs=(("axis", 0), ("dtype", None), ("casting", "same_kind"))),
        case((2, 0), of="Flip", shapes=((2, 0),), attrs=(("axis", None),)),
    ], dtypes=FLOATS_AND_COMPLEX),
    composed("diag", [case((3,)), case((2,), k=-1), case((3, 4), k=1), case((0,))]),
    composed("trace", [case((3, 4)), case((2, 3, 4), offset=1, axis1=2, axis2=0),
                       case((3, 3), dtype=np.complex128)]),
]
