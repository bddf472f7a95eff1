"""Arguments that the functions of `scipy.ndimage` share: boundary modes, axes, output dtypes."""

import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cytape.errors import SymbolicTensorError
from cytape.ops.calls.operands import is_tensor
from cytape.ops.choosing.padding import runs_of_positions
from cytape.ops.creation import astype
from cytape.ops.engine.op_kinds import linear
from cytape.ops.rearranging import pad_op
from cytape.tensor.values.spec import symbolic_spec

# Modes of numpy.pad, by those of ndimage; None stands for zeros.
PADDING = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge",
    "wrap": "wrap", "grid-wrap": "wrap", "constant": None, "grid-constant": None,
}  # fmt: skip


def extended(x, widths, mode):
    """Extend an image beyond its boundary."""
    if not any(map(any, widths)):
        return x
    padding = PADDING[mode]
    return pad_op(x, pad_width=widths) if padding is None else np.pad(x, widths, padding)


def _folded(g, *, widths, mode):
    """Add what an extended image has beyond its boundary to the elements it was copied from."""
    for axis, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        lines = np.moveaxis(g, axis, 0)
        n = len(lines) - before - after
        total = np.array(lines[before:before + n])
        if PADDING[mode] is not None:
            positions = np.pad(np.arange(n), (before, after), PADDING[mode])
            for end in slice(before), slice(before + n, None):
                for run, taken in runs_of_positions(positions[end].tolist()):
                    part, into = lines[end][run], total[taken]
                    into += part.sum(0) if len(into) < len(part) else part
        g = np.moveaxis(total, 0, axis)
    return g


fold_op = linear(
    "ScipyNdimageFold", _folded,
    transpose=lambda op, g: extended(g, op.attrs["widths"], op.attrs["mode"]),
    batched=lambda g, widths, mode: fold_op(g, widths=((0, 0), *widths), mode=mode),
    shape_rule=lambda g, *, widths, mode: symbolic_spec(tuple([
        None if n is None else n - before - after
        for n, (before, after) in zip(g.shape, widths, strict=True)]), g.dtype))


def one_for_each(value, n):
    """Return a sequence of a parameter for each axis, or raise SciPy's error."""
    if isinstance(value, str) or not np.iterable(value) or is_tensor(value) and np.ndim(value) == 0:
        return [value] * n
    values = list(value)
    if len(values) != n:
        raise RuntimeError("sequence argument must have length equal to input rank")
    return values


def filtered_axes(axes, n_axes):
    """Return the axes of a filter, or raise SciPy's errors."""
    if axes is None:
        return tuple(range(n_axes))
    try:
        return normalize_axis_tuple(axes, n_axes)
    except np.exceptions.AxisError as error:
        raise ValueError(f"specified axis: {axes} is out of range") from error
    except ValueError as error:
        raise ValueError("axes must be unique") from error
    except TypeError as error:
        raise ValueError("axes must be an integer, iterable of integers, or None") from error


def computed(function, x, output, is_complex=False, rounds=False):
    """Call a function of an image in floating point; return its result in the dtype `output`.

    None stands for the dtype of the image, as in SciPy, which computes in double precision.
    Integers are truncated, or rounded and clipped if `rounds` holds.
    """
    if is_tensor(output) or isinstance(output, np.ndarray):
        raise TypeError("output: expected a dtype if another argument is a tensor, got an array. "
                        "Write the returned tensor to it")
    dtype = x.dtype if output is None else np.dtype(output)
    if is_complex and dtype.kind != "c":
        if isinstance(output, str):
            raise RuntimeError("output must have complex dtype")
        dtype = np.promote_types(dtype, np.complex64)
    computing = np.result_type(x.dtype if x.dtype.kind in "fc" else np.float64, dtype)
    result = function(x if x.dtype == computing else astype(x, computing))
    if rounds and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        result = np.clip(np.trunc(result + np.copysign(0.5, result)), limits.min, limits.max)
    return result if result.dtype == dtype else astype(result, dtype)


def filtered(function, x, output, is_complex=False):
    """Call a filter of an image, as `computed` does; an empty one, which has no windows, stays."""
    return computed((lambda x: x + 0) if 0 in x.shape else function, x, output, is_complex)


def known_shape(x, function):
    """Return the shape of an image, which the function needs."""
    if x.shape is None or None in x.shape:
        raise SymbolicTensorError(
            f"{function} needs to know the extents of the image: give the placeholder a shape, or "
            "reshape the tensor to a known one")
    return x.shape


def is_zero(cval):
    """Return whether elements beyond the boundary certainly are 0."""
    return isinstance(cval, (int, float, complex, np.number)) and cval == 0


def integer(value):
    """Return a number as an integer."""
    return operator.index(value)
