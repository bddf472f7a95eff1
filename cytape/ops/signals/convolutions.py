"""Convolution and correlation by `scipy.signal`, in any number of dimensions.

All are one bilinear op, the convolution by one of SciPy's methods. Overlaps that the mode "same"
omits get a gradient of 0.
"""

import functools
from typing import Any

import numpy as np
import scipy.signal as signal
from numpy.lib.array_utils import normalize_axis_tuple

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, operand
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import multilinear
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.rearranging import flip, pad_op
from cytape.ops.reductions import sum
from cytape.ops.shaping import ndim, ravel
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve", "oaconvolve"]

_BY_AXES = {"fftconvolve": signal.fftconvolve, "oaconvolve": signal.oaconvolve}
_PADDING = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _convolve(x, y, *, mode, method, axes):
    if method in _BY_AXES:
        return _BY_AXES[method](x, y, mode, axes)
    if method == "convolve2d":
        return signal.convolve2d(x, y, mode)
    return signal.convolve(x, y, mode, method)


def _convolved(shapes, method, axes):
    """Return the axes along which arrays are convolved; they broadcast along the others."""
    return tuple([axis for axis in axes if method not in _BY_AXES or (
        all(shape[axis] != 1 for shape in shapes))])


def _extents(shapes, mode, axes):
    """Return the extents of all overlaps, and of those in a mode, None where unknown."""
    full, kept = [], []
    for axis, (n, m) in enumerate(zip(*shapes, strict=True)):
        is_known = n is not None and m is not None
        if axis in axes:
            full.append(n + m - 1 if is_known else None)
            kept.append(full[-1] if mode == "full" else abs(n - m) + 1 if is_known else None)
        else:
            full.append(m if n == 1 else n)
            kept.append(full[-1])
    return full, shapes[0] if mode == "same" else kept


def _spec(x, y, *, mode, method, axes):
    shapes = x.shape, y.shape
    convolved = _convolved(shapes, method, axes)
    ones = np.ones([2 if axis in convolved else 1 for axis in range(x.ndim)])
    example = _convolve(ones.astype(x.dtype), ones.astype(y.dtype), mode=mode, method=method,
                        axes=axes)
    _, kept = _extents(shapes, mode, convolved)
    return symbolic_spec(tuple(kept), example.dtype)


def _gradient(op, position, g, other):
    mode, method = op.attrs["mode"], op.attrs["method"]
    shapes = [spec.shape for spec in op.input_specs]
    mine, theirs = shapes[position], shapes[1 - position]
    if None in (*mine, *theirs):
        return NotImplemented
    axes = _convolved(shapes, method, op.attrs["axes"])
    if mode == "same":
        full, kept = _extents(shapes, mode, axes)
        g = pad_op(g, pad_width=tuple([
            ((n - k) // 2, n - k - (n - k) // 2) for n, k in zip(full, kept, strict=True)]))
    is_longer = all(mine[i] >= theirs[i] for i in axes)
    result = g * other if not axes else convolve_op(
        g, flip(other, axes), axes=axes, method=method,
        mode="full" if mode == "valid" and is_longer else "valid")
    repeated = tuple([i for i, n in enumerate(mine) if i not in axes and n == 1 != theirs[i]])
    return sum(result, repeated, keepdims=True) if repeated else result


def _in_batch(call):
    """Broadcast along the batch axis, which the methods by Fourier transforms can do."""
    if call.attrs["method"] not in _BY_AXES:
        return NotImplemented
    inputs = [x if mapped else x[None]
              for x, mapped in zip(call.inputs, call.mapped, strict=True)]
    if call.attrs["mode"] == "same":  # SciPy returns the shape of the first array
        inputs[0] = batch_axis.repeated_at(call, 0)
    if inputs[0] is None:
        return NotImplemented
    return call.again(inputs, axes=tuple([axis + 1 for axis in call.attrs["axes"]]))


convolve_op = multilinear(
    "ScipySignalConvolve", _convolve, lambda op, g, y: _gradient(op, 0, g, y),
    lambda op, x, g: _gradient(op, 1, g, x), shape_rule=_spec, batch=_in_batch)


def without_influence(result, *operands):
    """Return an array as a tensor whose derivatives in some operands are 0."""
    return functools.reduce(
        lambda result, x: result + sum(ravel(x)[:0]), operands, convert_to_tensor(result))


def _called(theirs, in1, in2, mode, method, axes=None, reverse=False):
    """Call the op, or raise SciPy's errors for the number of axes, modes and methods."""
    in1, in2 = together(*map(operand, (in1, in2)))
    if 0 in (*in1.shape, *in2.shape):
        options = {} if axes is None else {"axes": axes}
        return without_influence(theirs(
            *[np.zeros(x.shape, x.dtype) for x in (in1, in2)], mode, **options), in1, in2)
    n_axes = ndim(in1)
    if n_axes != ndim(in2) or not n_axes or mode not in ("full", "same", "valid") or (
            axes is not None):
        options = {"axes": axes} if method in _BY_AXES else {}
        theirs(np.ones((1,) * n_axes), np.ones((1,) * ndim(in2)), mode, **options)
        if not n_axes:
            return in1 * (conj_if_complex(in2) if reverse else in2)
    axes = normalize_axis_tuple(range(n_axes) if axes is None else axes, n_axes)
    if reverse:
        in2 = conj_if_complex(flip(in2, axes))
    return convolve_op(in1, in2, mode=mode, method=method, axes=axes)


@numpy_function(signal.convolve, "in1", "in2")
def convolve(in1, in2, mode="full", method="auto") -> Any:
    """Convolve two arrays, as `scipy.signal.convolve`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import convolve
    >>> cytape.grad(lambda x: convolve(x, [1.0, 2.0], "valid")[0])(np.ones(3))
    array([2., 1., 0.])
    """
    if method not in ("auto", "direct", "fft"):
        signal.convolve(np.ones(1), np.ones(1), mode, method)
    return _called(signal.convolve, in1, in2, mode, method)


@numpy_function(signal.correlate, "in1", "in2")
def correlate(in1, in2, mode="full", method="auto") -> Any:
    """Correlate two arrays, as `scipy.signal.correlate`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import correlate
    >>> cytape.grad(lambda x: correlate(x, [1.0, 2.0], "valid")[0])(np.ones(3))
    array([1., 2., 0.])
    """
    if method not in ("auto", "direct", "fft"):
        signal.correlate(np.ones(1), np.ones(1), mode, method)
    return _called(signal.correlate, in1, in2, mode, method, reverse=True)


@numpy_function(signal.fftconvolve, "in1", "in2")
def fftconvolve(in1, in2, mode="full", axes=None) -> Any:
    """Convolve two arrays by Fourier transforms, as `scipy.signal.fftconvolve`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import fftconvolve
    >>> cytape.grad(lambda x: fftconvolve(x, [1.0, 2.0], "valid")[0])(np.ones(3)).round(9) + 0.0
    array([2., 1., 0.])
    """
    return _called(signal.fftconvolve, in1, in2, mode, "fftconvolve", axes)


@numpy_function(signal.oaconvolve, "in1", "in2")
def oaconvolve(in1, in2, mode="full", axes=None) -> Any:
    """Convolve a long array with a short one by overlapping blocks, as `scipy.signal.oaconvolve`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import oaconvolve
    >>> cytape.grad(lambda x: oaconvolve(x, [1.0, 2.0], "valid")[0])(np.ones(3)).round(9) + 0.0
    array([2., 1., 0.])
    """
    return _called(signal.oaconvolve, in1, in2, mode, "oaconvolve", axes)


def _plane(theirs, in1, in2, mode, boundary, fillvalue, reverse):
    in1, in2 = together(*map(operand, (in1, in2)))
    if 0 in (*in1.shape, *in2.shape):
        return _called(theirs, in1, in2, mode, "convolve2d")
    fill = convert_to_tensor(fillvalue).reshape(()) if is_tensor(fillvalue) else None
    is_zero = boundary == "fill" and fill is None and not np.ndim(fillvalue) and fillvalue == 0
    if not is_zero:
        example = fillvalue if fill is None else np.zeros((), fill.dtype)
        theirs(*[np.ones((1,) * ndim(x), x.dtype) for x in (in1, in2)], mode, boundary, example)
    if mode == "full" and not is_zero or mode == "same" and (not is_zero or reverse):
        if None in (*in1.shape, *in2.shape):
            raise SymbolicTensorError(
                f"{theirs.__name__}: the extents of both matrices must be known for boundary="
                f"{boundary!r} and mode={mode!r}: give the placeholder a shape, or reshape the "
                "tensor to a known one")
        ends = [(m - 1, m - 1) if mode == "full" else
                ((m - 1) // 2, m // 2)[::1 if reverse else -1] for m in in2.shape]
        if fill is not None and boundary == "fill":
            fill = fill.astype(np.result_type(in1.dtype, in2.dtype))
            outside = np.pad(np.zeros(in1.shape, bool), ends, constant_values=True)
            in1 = np.pad(in1, ends) + fill * outside
        else:
            in1 = np.pad(in1, ends, _PADDING[boundary],
                         **({"constant_values": fillvalue} if boundary == "fill" else {}))
        mode = "valid"
    elif mode == "valid" and reverse and in2.dtype.kind == "c" and all(
            m is not None and n is not None and m >= n
            for n, m in zip(in1.shape, in2.shape, strict=True)) and in1.shape != in2.shape:
        # SciPy conjugates the first array if it exchanges the two.
        in1, in2 = conj_if_complex(in1), conj_if_complex(in2)
    return _called(theirs, in1, in2, mode, "convolve2d", reverse=reverse)


@numpy_function(signal.convolve2d, "in1", "in2", "fillvalue")
def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0) -> Any:
    """Convolve two matrices, as `scipy.signal.convolve2d`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import convolve2d
    >>> cytape.grad(lambda x: convolve2d(x, [[1.0, 2.0]], "valid")[0, 0])(np.ones((1, 3)))
    array([[2., 1., 0.]])
    """
    return _plane(signal.convolve2d, in1, in2, mode, boundary, fillvalue, False)


@numpy_function(signal.correlate2d, "in1", "in2", "fillvalue")
def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0) -> Any:
    """Correlate two matrices, as `scipy.signal.correlate2d`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import correlate2d
    >>> cytape.grad(lambda x: correlate2d(x, [[1.0, 2.0]], "valid")[0, 0])(np.ones((1, 3)))
    array([[1., 2., 0.]])
    """
    return _plane(signal.correlate2d, in1, in2, mode, boundary, fillvalue, True)
