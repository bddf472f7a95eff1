"""Gradients of extrema: elements that tie share them equally."""

import numpy as np

from cytape.ops.engine.arguments import wide
from cytape.ops.engine.declare import multilinear
from cytape.ops.kernels.ties import shared_among_ties
from cytape.tensor.spec import spec_like


def _shared(g, x, y, *, axis, least):
    total = shared_among_ties(g, x, y, axis, least)
    if total is None:
        chosen = np.equal(x, y).astype(wide(x.dtype))
        n = chosen.sum(axis, keepdims=True)
        total = g * (chosen / (np.maximum(n, least) if least else n))
    return total


def _sum_back(op, t, x, y):
    terms = t * shares(x, y, **op.attrs)
    return np.reshape(np.sum(terms, op.attrs["axis"], keepdims=True), op.input_specs[0].extents)


def _batch(op, _, t, x, y):
    if np.ndim(t) == 1:  # a number for each direction
        t = np.reshape(t, (-1,) + (1,) * np.ndim(x))
    return t * shares(x, y, **op.attrs)


# Of a gradient g, and of extrema y that broadcast against x.
share_op = multilinear(
    "ShareAmongTies", _shared, _sum_back, None, None, batched=_batch,
    shape_rule=lambda g, x, y, **_: spec_like(x, np.result_type(g.dtype, wide(x.dtype))),
)


def shares(x, y, *, axis, least):
    """Return 1/k at each of the k elements that equal the extremum, 0 at all others."""
    return share_op(np.ones_like(y, wide(y.dtype)), x, y, axis=axis, least=least)
