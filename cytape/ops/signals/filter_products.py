"""Products of a signal with the taps of a filter: finite responses, and sums over lags.

``fir(c, x)[n] = sum over k of c[k] x[n - k]``, and ``lags(g, x)[k] = sum over n of g[n] x[n - k]``
over all signals. They are the partial sums of one trilinear form, so that each is a transpose of
the other. Signals begin with zeros; the axis must not be negative.
"""

import numpy as np
import scipy.signal as signal

from cytape.ops.engine.op_kinds import multilinear
from cytape.ops.rearranging import flip
from cytape.tensor.values.spec import spec_like, symbolic_spec

__all__ = ["fir_op", "lags_op"]


def _fir(c, x, *, axis):
    if x.ndim == 1 and x.size:
        return np.convolve(c, x)[:x.size]
    # With two coefficients SciPy runs its loop over samples instead of a loop over signals.
    return signal.lfilter(c, np.array([1, 0], np.result_type(c, x)), x, axis)


def _reversed_fir(c, g, axis):
    return flip(fir_op(c, flip(g, axis), axis=axis), axis)


def _lags(g, x, *, axis, n_lags):
    g, x = np.moveaxis(g, axis, -1), np.moveaxis(x, axis, -1)
    n, axes = x.shape[-1], list(range(x.ndim))
    if x.ndim == 1:
        sums = [np.dot(g[k:], x[:n - k]) if k <= n else 0 for k in range(n_lags)]
    else:
        sums = [np.einsum(g[..., k:], axes, x[..., :n - k], axes, []) if k <= n else 0
                for k in range(n_lags)]
    return np.array(sums, np.result_type(g, x))


def _sums(g, x, axis, n_lags):
    return NotImplemented if n_lags is None else lags_op(g, x, axis=axis, n_lags=n_lags)


def _along_later_axis(call):
    """Filter all members at once if the coefficients are shared."""
    return NotImplemented if call.mapped[0] else call.again(
        call.inputs, axis=call.attrs["axis"] + 1)


fir_op = multilinear(
    "ScipySignalFir", _fir,
    lambda op, g, x: _sums(g, x, op.attrs["axis"], op.input_specs[0].shape[0]),
    lambda op, c, g: _reversed_fir(c, g, op.attrs["axis"]),
    shape_rule=lambda c, x, **_: spec_like(x, np.result_type(c.dtype, x.dtype)),
    batch=_along_later_axis)
lags_op = multilinear(
    "ScipySignalLags", _lags, lambda op, c, x: fir_op(c, x, axis=op.attrs["axis"]),
    lambda op, g, c: _reversed_fir(c, g, op.attrs["axis"]),
    shape_rule=lambda g, x, n_lags, **_: symbolic_spec(
        (n_lags,), np.result_type(g.dtype, x.dtype)))
