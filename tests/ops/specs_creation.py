"""Records of conversions and of tensors made after others."""

import numpy as np

from cytape.ops import constants
from cytape.ops import creation as ops
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case, uniform


def cast(x, dtype):
    return x.astype(dtype)


SPECS = [
    OpSpec("Cast", ops.cast_op, cast, [
        case((2, 3), dtype=np.dtype("float64")), case((), dtype=np.dtype("complex128")),
    ]),
    OpSpec("Cast", ops.cast_op, cast, [
        case((2, 3), dtype=np.dtype(name)) for name in ("float64", "float32", "float16")
    ], dtypes=["float32"]),
    OpSpec("CastToDiscrete", ops.cast_to_discrete_op, cast, [
        case((2, 3), dtype=np.dtype(name)) for name in ("int64", "int8", "bool")
    ], differentiable=False),
    OpSpec("astype", lambda x, dtype: ops.astype(x, dtype),
           lambda x, dtype: np.astype(x, dtype), [
        case((2, 3), dtype=np.float64), case((2, 3), dtype="complex128"),
    ]),
    OpSpec("Identity", ops.identity_op, lambda x: x, [case((2, 3)), case(()), case((0,))],
           dtypes=FLOATS_AND_COMPLEX),
    OpSpec("copy", ops.copy, np.copy, [case((2, 3)), case((), order="F")]),
    OpSpec("array", lambda x, y: ops.array([[x, 1.0], (y, x)]),
           lambda x, y: np.array([[x, 1.0], (y, x)]), [case((), ())]),
    OpSpec("array", lambda x, y: ops.array([x, [1.0, 2.0], [0, y]]),
           lambda x, y: np.array([x, [1.0, 2.0], [0, y]]), [case((2,), ())]),
    OpSpec("array", ops.array, np.array, [
        case((2, 3)), case((2,), dtype=np.complex128), case((2,), ndmin=3), case((), ndmin=0),
    ]),
    OpSpec("full_like", lambda x, **kwargs: constants.full_like(np.ones((2, 3)), x, **kwargs),
           lambda x, **kwargs: np.full_like(np.ones((2, 3)), x, **kwargs), [
        case(()), case((3,)), case((2, 1)), case((), shape=4), case((), dtype=np.complex128),
    ]),
    OpSpec("Full", lambda x, **kwargs: constants.full((2, 3), x, **kwargs),
           lambda x, **kwargs: np.full((2, 3), x, **kwargs), [
        case(()), case((3,)), case((), dtype=np.complex128),
    ]),
    OpSpec("ZerosLike", constants.zeros_like, np.zeros_like, [
        case((2, 3)), case((2, 3), dtype=int, shape=(4,)), case(()),
    ], differentiable=False),
    OpSpec("OnesLike", constants.ones_like, np.ones_like, [
        case((2, 3)), case((2, 3), dtype=int, shape=(4,)), case(()),
    ], differentiable=False),
    OpSpec("EmptyLike", constants.empty_like, np.empty_like, [case((0, 3))], differentiable=False),
    OpSpec("FullLike", constants.full_like, np.full_like, [
        case((2, 3), fill_value=2.5), case((2, 3), fill_value=2.5, dtype=int),
        case((), fill_value=np.ones((2, 2)), shape=(2, 2)),
    ], domain=uniform(-2, 2), differentiable=False),
]
