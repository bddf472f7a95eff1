"""Records of norms and the condition number."""

import numpy as np

from cytape.ops.submodules import norms
from tests.ops.matrices import regular
from tests.ops.op_specs import FLOATS, SINGLE_AND_DOUBLE, OpSpec, case, uniform

NONZERO = uniform(-2, 2, avoid=[0], margin=0.3)
DTYPES = (*SINGLE_AND_DOUBLE, "complex128", "complex64")

SPECS = [
    OpSpec(
        "VectorNorm", norms.vector_norm_op, np.linalg.vector_norm,
        [
            case(shape, ord=ord, axis=axis, keepdims=keepdims)
            for ord in (1, 2, 3, 0.5)
            for keepdims in (False, True)
            for shape, axis in [((3,), (0,)), ((2, 3), (1,)), ((2, 3, 2), (0, 2))]
        ],
        domain=NONZERO, dtypes=DTYPES,
    ),
    OpSpec(
        "VectorNormInRange", lambda norm: norms.in_range_op(
            np.ones((2, 3)), norm, ord=2, axis=(1,), keepdims=False)[1],
        lambda norm: norm, [case((2,))], domain=uniform(1, 2)),
    OpSpec(
        "norm", norms.norm, np.linalg.norm,
        [
            case((3,)), case((2, 3)), case((2, 3, 2)), case((2, 3), axis=1),
            case((2, 3, 2), axis=(0, -1)), case((2, 3, 2), axis=(0, -1), ord="fro", keepdims=True),
            case((2, 3), ord="f"), case((3,), ord=2), case((2, 3), ord=-2, axis=1),
            case((2, 3), ord=1, axis=1), case((3,), ord=np.inf), case((3,), ord=-np.inf),
            case((2, 3), ord=3, axis=0, keepdims=True), case((2, 3), ord=1), case((2, 3), ord=-1),
            case((2, 3), ord=np.inf), case((2, 3, 2), ord=-np.inf, axis=(2, 0)),
            case((0, 3), ord=1), case((0, 3), ord="nuc"), case((0,), ord=np.inf),
        ],
        domain=NONZERO, dtypes=(*SINGLE_AND_DOUBLE, "complex128"),
    ),
    OpSpec(
        "norm", norms.norm, np.linalg.norm,
        [
            case(shape, ord=ord, axis=axis, keepdims=keepdims)
            for ord in (2, -2, "nuc")
            for shape, axis, keepdims in [
                ((3, 3), None, False), ((4, 2, 3), (0, 2), True), ((3, 2, 2), (-1, 0), False)
            ]
        ],
        domain=lambda rng, shape: regular(rng, shape) + rng.uniform(-2, 2, shape),
        dtypes=(*SINGLE_AND_DOUBLE, "complex128"),
    ),
    OpSpec(
        "norm", norms.norm, np.linalg.norm, [case((2, 3), ord=0, axis=1), case((3,), ord=0)],
        dtypes=FLOATS, differentiable=False,
    ),
    OpSpec(
        "vector_norm", norms.vector_norm, np.linalg.vector_norm,
        [case((2, 3)), case((2, 3, 2), axis=(0, 2), ord=3), case((2, 3), axis=1, keepdims=True),
         case((2, 3), ord=np.inf), case((2, 3, 2), ord=-np.inf, axis=(1, 2), keepdims=True),
         case((2, 3), ord=1), case((3,), ord=-1)],
        domain=NONZERO, dtypes=DTYPES,
    ),
    OpSpec(
        "matrix_norm", norms.matrix_norm, np.linalg.matrix_norm,
        [case((2, 3, 3)), case((2, 3, 3), ord="nuc", keepdims=True), case((2, 3), ord=1),
         case((3, 3), ord=2)],
        domain=regular, dtypes=DTYPES,
    ),
    OpSpec(
        "cond", norms.cond, np.linalg.cond,
        [case((4, 3)), case((2, 3, 3), p=-2), case((2, 3, 3), p=1), case((3, 3), p="fro"),
         case((3, 3), p=-np.inf), case((3, 3), p="nuc")],
        domain=regular, dtypes=DTYPES,
    ),
]
