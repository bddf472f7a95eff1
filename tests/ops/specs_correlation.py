"""Record of the cross-correlation of stacks of signals."""

import numpy as np

from cytape.ops.submodules.stack_correlation import stack_correlation_op
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case


def correlated(x, y, before, after):
    """Add up one shift after the other."""
    x = np.pad(x, [(0, 0), (0, 0), *zip(before, after, strict=True)])
    lengths = [m - n + 1 for m, n in zip(x.shape[2:], y.shape[2:], strict=True)]
    z = np.zeros((x.shape[0], y.shape[0], *lengths), np.result_type(x, y))
    for k in np.ndindex(y.shape[2:]):
        part = x[(..., *[slice(i, i + n) for i, n in zip(k, lengths, strict=True)])]
        z += np.einsum("pd...,qd->pq...", part, y[(..., *k)])
    return z


SPECS = [OpSpec(
    "StackCorrelation", stack_correlation_op, correlated,
    [case((2, 3, 6), (4, 3, 2), before=(0,), after=(0,)),
     case((1, 2, 5, 4), (3, 2, 2, 3), before=(1, 0), after=(0, 2)),
     case((2, 1, 3), (1, 1, 3), before=(0,), after=(0,)),
     case((2, 1, 2), (1, 1, 3), before=(2,), after=(1,))],
    dtypes=FLOATS_AND_COMPLEX)]
