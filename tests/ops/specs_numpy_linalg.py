"""Records of functions of `numpy.linalg` that are made of products."""

import numpy as np

from cytape.ops.submodules import linear_algebra
from tests.ops.matrices import regular
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case

DTYPES = ("float64", "float32", "complex128", "complex64")


def chain(function):
    return lambda *arrays: function(arrays)


SPECS = [
    OpSpec(
        "matrix_power", linear_algebra.matrix_power, np.linalg.matrix_power,
        [case((2, 3, 3), n=n) for n in (5, -2, 1, 2, 3, -1, 8)] + [case((0, 2, 2), n=2)],
        domain=lambda rng, shape: regular(rng, shape) / 3, dtypes=DTYPES, tolerance=100,
    ),
    OpSpec("IdentityMatrices", linear_algebra.matrix_power, np.linalg.matrix_power,
           [case((2, 3, 3), n=0)], dtypes=DTYPES, differentiable=False),
    OpSpec(
        "multi_dot", chain(linear_algebra.multi_dot), chain(np.linalg.multi_dot),
        # Chains that are cheapest from the left, as which they are computed in graphs.
        [case((2, 3), (3, 4)), case((2, 3), (3, 4), (4, 5)), case((3,), (3, 2), (2,)),
         case((3,), (3, 2), (2, 4)), case((2, 3), (3, 2), (2, 4), (4, 9))],
        dtypes=DTYPES, tolerance=10,
    ),
    OpSpec(
        "linalg.cross", linear_algebra.cross, np.linalg.cross,
        [case((3,), (3,)), case((2, 3), (4, 1, 3)), case((3, 2), (3, 2), axis=0),
         case((0, 3), (3,))],
        dtypes=FLOATS_AND_COMPLEX,
    ),
    OpSpec("linalg.outer", linear_algebra.outer, np.linalg.outer, [case((3,), (2,))],
           dtypes=DTYPES),
    OpSpec("linalg.diagonal", linear_algebra.diagonal, np.linalg.diagonal,
           [case((2, 3, 4)), case((3, 3), offset=1)], dtypes=DTYPES),
    OpSpec("linalg.trace", linear_algebra.trace, np.linalg.trace,
           [case((2, 3, 4)), case((3, 3), offset=-1)], dtypes=DTYPES),
    OpSpec("linalg.matmul", linear_algebra.matmul, np.linalg.matmul, [case((2, 3, 4), (4, 2))],
           dtypes=DTYPES),
    OpSpec("linalg.matrix_transpose", linear_algebra.matrix_transpose, np.linalg.matrix_transpose,
           [case((2, 3, 4))], dtypes=DTYPES),
    OpSpec("linalg.tensordot", linear_algebra.tensordot, np.linalg.tensordot,
           [case((2, 3), (3, 4), axes=1), case((2, 3), (2, 3))], dtypes=DTYPES),
    OpSpec("linalg.vecdot", linear_algebra.vecdot, np.linalg.vecdot, [case((2, 3), (3,)),
           case((3, 2), (3, 1), axis=0)], dtypes=DTYPES),
]
