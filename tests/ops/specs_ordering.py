"""Records of functions with orders and positions as results."""

import numpy as np

from cytape.ops import ordering as ops
from tests.ops.op_specs import OpSpec, case, distinct, integers


def record(name, function, cases, wrap=lambda function: function):
    return OpSpec(name, wrap(getattr(ops, function)), wrap(getattr(np, function)), cases,
                  domain=distinct(), dtypes=("float64",), differentiable=False)


def of_keys(function):
    return lambda *keys, **kwargs: function(keys, **kwargs)


SPECS = [
    record("ArgSort", "argsort", [case((3, 4)), case((3, 4), axis=0), case((2, 3), axis=None),
                                  case((0,)), case((3,), kind="stable")]),
    record("ArgPartition", "argpartition", [case((5,), kth=2), case((2, 3), kth=1, axis=0),
                                            case((2, 3), kth=1, axis=None)]),
    record("LexSort", "lexsort", [case((4,), (4,)), case((2, 3), (2, 3), axis=0)], of_keys),
    OpSpec("LexSort", ops.lexsort, np.lexsort, [case((3, 4))], dtypes=("float64",),
           differentiable=False),
    record("Digitize", "digitize", [case((3, 4), np.array([-0.5, 0.1, 2.0])),
                                    case((3,), np.array([0.0, 1.0]), right=True)]),
    record("SearchSorted", "searchsorted", [
        case(np.array([0.0, 1.0, 2.0]), (3, 2)), case(np.array([0.0, 1.0]), (), side="right"),
        case(np.array([1.0, 0.0]), (2,), sorter=np.array([1, 0])),
    ]),
    record("Nonzero", "nonzero", [case((4,)), case((3, 4)), case((0, 2))]),
    *[record(name, function, [case((2, 3)), case((2, 3), axis=1, keepdims=True), case((4,))])
      for name, function in [("NanArgMax", "nanargmax"), ("NanArgMin", "nanargmin")]],
    OpSpec("UnravelIndex", ops.unravel_index, np.unravel_index, [
        case((3, 4), shape=(4, 3)), case((), shape=(2, 3, 2), order="F"),
        case((0,), shape=12)],
        integers(0, 12), ("float64",), differentiable=False),
    OpSpec("RavelMultiIndex", lambda x, y, **options: ops.ravel_multi_index((x, y), **options),
           lambda x, y, **options: np.ravel_multi_index((x, y), **options), [
        case((3, 1), (2,), dims=(4, 5)), case((), 2, dims=(4, 3), mode="wrap", order="F")],
        integers(0, 4), ("float64",), differentiable=False),
]
