"""Linear recurrences along the last axis, y[k] = a[k] * y[k-1] + b[k], in either direction.

Derivatives of cumulative products, of folds by ufuncs, and of the recurrences themselves are such
recurrences. The first element of `a` is not read. A 0 in `a` begins a new sequence.
"""

import numpy as np

from cytape.ops.calls.operands import wide
from cytape.ops.constants import zeros_like
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general
from cytape.ops.joining import concatenate
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.special_kernels.recurrence_loops import linear_recurrence
from cytape.tensor.values.spec import spec_like


def before(y):
    """Shift by one along the last axis: each element is replaced by its predecessor, or 0."""
    return concatenate([zeros_like(y[..., :1]), y[..., :-1]], axis=-1)


def after(y):
    """Shift by one along the last axis: each element is replaced by its successor, or 0."""
    return concatenate([y[..., 1:], zeros_like(y[..., :1])], axis=-1)


def _recurrence(a, b, *, backwards=False):
    dtype = np.result_type(a, b)
    common = wide(dtype) if dtype.kind in "fc" else np.float64
    return linear_recurrence(
        a.astype(common, copy=False), b.astype(common, copy=False), backwards,
    ).astype(dtype, copy=False)


def _vjp(op, g):
    a, y, backwards = conj_if_complex(op.inputs[0]), op.outputs[0], op.attrs.get("backwards", False)
    total = recurrence_op(a, g, backwards=not backwards)
    of_factors = before(total) * conj_if_complex(y) if backwards else (
        total * conj_if_complex(before(y)))
    return of_factors, total


def _jvp(op, ta, tb):
    backwards = op.attrs.get("backwards", False)
    if ta is not None:
        moved = after(ta * op.outputs[0]) if backwards else ta * before(op.outputs[0])
        tb = moved if tb is None else tb + moved
    return recurrence_op(op.inputs[0], tb, backwards=backwards)


recurrence_op = general(
    "LinearRecurrence",
    _recurrence,
    vjp=_vjp,
    jvp=_jvp,
    saved_inputs=(0,),
    saved_outputs=(0,),
    shape_rule=lambda a, b, **_: spec_like(b, np.result_type(a.dtype, b.dtype)),
    batch=batch_axis.stacked,
)
