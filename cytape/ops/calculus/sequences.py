"""Sequences, differentiable in their ends: `linspace`, `logspace`, `geomspace`, `arange`."""

from typing import Any

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops import cumulative, reductions
from cytape.ops.adjoints.conform import sum_to
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, operand, values_of, wide
from cytape.ops.comparisons import real_sign
from cytape.ops.constants import ones_like
from cytape.ops.creation import astype
from cytape.ops.elementwise import power, where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general, linear
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import expand_dims, moveaxis, ndim
from cytape.tensor import Tensor, convert_to_tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["arange", "geomspace", "linspace", "logspace"]

_NUMBERS = (int, float, complex)


def _parts_of_stop(num, endpoint):
    """Return the weight of the second end in each element."""
    return np.arange(num) / max(num - 1 if endpoint else num, 1)


def _real_dtype(dtype):
    return dtype if dtype.kind == "f" else np.empty(0, dtype).real.dtype


def _linspace_back(op, g):
    start, stop = op.input_specs
    num, endpoint = op.attrs["num"], op.attrs["endpoint"]
    steps = np.arange(num, dtype=wide(_real_dtype(g.dtype)))
    if g.ndim > 1:
        steps = steps.reshape(-1, *(1,) * (g.ndim - 1))
    of_stop = reductions.sum(g * steps, 0) / max(num - 1 if endpoint else num, 1)
    return sum_to(reductions.sum(g, 0) - of_stop, start), sum_to(of_stop, stop)


def _linspace_spec(start, stop, *, num, endpoint):
    shape = shape_rules.broadcast(start.shape, stop.shape, what="linspace")
    dtype = np.linspace(np.ones((), start.dtype), np.ones((), stop.dtype), 1).dtype
    return symbolic_spec((num, *shape), dtype)


def _in_batch(call):
    """Make sequences, whose first axis is that of their elements."""
    return moveaxis(batch_axis.aligned(call), 1, 0)


linspace_op = linear(
    "LinSpace", lambda start, stop, *, num, endpoint: np.linspace(start, stop, num, endpoint),
    transpose=_linspace_back, shape_rule=_linspace_spec, batch=_in_batch)


def _ends(*ends):
    """Return the ends as tensors and arrays; Python numbers are weak."""
    if all([type(x) is Tensor for x in ends]) and len({x.dtype for x in ends}) == 1:
        return ends
    ends = [x if type(x) in _NUMBERS else operand(x) for x in ends]
    dtype = np.result_type(*[x if type(x) in _NUMBERS else x.dtype for x in ends])
    return [np.asarray(x, dtype) if type(x) in _NUMBERS else x for x in ends]


def _with_axis_at(y, axis):
    """Move the axis of the sequence from the front to its position."""
    return moveaxis(y, 0, axis) if axis != 0 else y


@numpy_function(np.linspace, "start", "stop")
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *,
             device=None) -> Any:
    """Return evenly spaced numbers between two ends, as `numpy.linspace`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda stop: np.linspace(0.0, stop, 3)[1])(2.0)
    np.float64(0.5)
    """
    if device is not None:
        np.linspace(0, 1, 1, device=device)  # raises NumPy's error
    start, stop = together(*_ends(start, stop))
    num = _count(num)
    y = _with_axis_at(linspace_op(start, stop, num=num, endpoint=bool(endpoint)), axis)
    if dtype is not None:
        if np.issubdtype(dtype, np.integer):
            y = np.floor(y)
        y = astype(y, dtype, copy=False)
    if not retstep:
        return y
    pieces = num - 1 if endpoint else num
    return y, (stop - start) / pieces if pieces > 0 else (stop - start) * np.nan


def _count(num):
    return num if type(num) is int and num >= 0 else np.linspace(0, 1, num).size  # or an error


@numpy_function(np.logspace, "start", "stop", "base")
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0) -> Any:
    """Return numbers with evenly spaced logarithms, as `numpy.logspace`.

    Examples
    --------
    >>> import cytape
    >>> np.logspace(cytape.constant(0.0), 2.0, 3).numpy()
    array([  1.,  10., 100.])
    """
    if type(base) not in _NUMBERS:
        base = operand(base)
    if ndim(base):
        start, stop = map(operand, (start, stop))
    start, stop, base = together(*_ends(start, stop), base)
    if ndim(base):
        n_axes = max(map(ndim, (start, stop, base)))
        start, stop, base = (
            expand_dims(x, tuple(range(n_axes - ndim(x)))) if ndim(x) < n_axes else x
            for x in (start, stop, base))
        base = expand_dims(base, axis)
    y = power(base, linspace(start, stop, num, endpoint, axis=axis)
              if is_tensor(start) or is_tensor(stop)
              else np.linspace(start, stop, num, endpoint, axis=axis))
    return y if dtype is None else astype(y, dtype, copy=False)


def _power(x, parts):
    """Return powers; no factor 1 / x at exponent 0, which would be infinite for subnormal x."""
    return power(where(parts == 0, 1, x), parts)


def _without_zero(x):
    if np.any(x == 0):
        raise ValueError("Geometric sequence cannot include zero")
    return x


without_zero_op = general(
    "WithoutZero", _without_zero, lambda op, g: g, lambda op, t: t, saved_inputs=(),
    batched=lambda op, t: t, shape_rule=shape_rules.same, batch=batch_axis.aligned)


@numpy_function(np.geomspace, "start", "stop")
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0) -> Any:
    """Return numbers in geometric progression, as `numpy.geomspace`.

    Examples
    --------
    >>> import cytape
    >>> np.geomspace(cytape.constant(1.0), 4.0, 3).numpy()
    array([1., 2., 4.])
    """
    start, stop = together(*map(operand, (start, stop)))
    start, stop = without_zero_op(start), without_zero_op(stop)
    result_type = np.result_type(start.dtype, stop.dtype, 0.0, np.dtype(dtype))
    start, stop = astype(start, result_type, copy=False), astype(stop, result_type, copy=False)
    parts = _parts_of_stop(_count(num), endpoint).astype(np.empty(0, result_type).real.dtype)
    parts = parts.reshape(-1, *(1,) * max(ndim(start), ndim(stop)))
    direction = real_sign(start)  # factored out, so that powers are of magnitudes, as in NumPy
    y = _power(start / direction, 1 - parts) * _power(stop / direction, parts) * direction
    y = _with_axis_at(y, axis)
    return y if dtype is None else astype(y, dtype, copy=False)


def _steps(like):
    """Return the number of steps to each element of a range."""
    dtype = wide(like.dtype)
    if like.shape[0] is None:
        return cumulative.cumsum(ones_like(like, dtype)) - 1
    return np.arange(like.shape[0], dtype=dtype)


def _arange_vjp(op, g):
    of_start, of_step = op.needs
    return (reductions.sum(g) if of_start else None,
            reductions.sum(g * _steps(g)) if of_step else None)


def _arange_jvp(op, start, step):
    y = op.outputs[0]
    if step is None:
        return ones_like(y) * start
    return _steps(y) * step + (0 if start is None else start)


def _range(start, step, *, stop, dtype):
    if type(start) is np.ndarray and start.dtype.char == "d" and not start.ndim:
        start = start.item()  # NumPy is faster for Python numbers
    return np.arange(start, stop, step, dtype)


arange_op = general(
    "ARange", _range,
    vjp=_arange_vjp, jvp=_arange_jvp, saved_inputs=(), saved_outputs=(0,), optional_tangents=(0, 1),
    shape_rule=lambda start, step, *, stop, dtype: symbolic_spec((None,), _range(
        np.ones((), start.dtype), np.ones((), step.dtype), stop=1, dtype=dtype).dtype))
arange_op.rule_takes_tensors = linspace_op.rule_takes_tensors = True


def arange(*args, **options) -> Any:
    """Return evenly spaced numbers of a given step, as `numpy.arange`.

    It is differentiable in `start` and `step`. The length depends on values, so symbolic tensors
    raise an error.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.calculus.sequences import arange
    >>> arange(cytape.constant(0.5), 3.0).numpy()
    array([0.5, 1.5, 2.5])
    """
    if options or not 1 < len(args) < 4 or args[1] is None:
        start, stop, step, dtype = _bounds_of_range(args, options)
    else:
        start, stop, step, dtype = (*args, None, None)[:4]
    bounds = []
    for x in (start, stop, step):
        bounds.append(values_of(x) if is_tensor(x) else x)
        if bounds[-1] is None and x is not None:
            raise SymbolicTensorError(
                "arange: how many numbers there are depends on values, which symbolic tensors "
                "do not have yet; use linspace, or scale and shift an arange of plain numbers; "
                "for as many as a tensor x of unknown extent has, "
                "cytape.numpy.cumsum(ones(x.shape)) - 1")
    if is_tensor(start) or is_tensor(step):
        return arange_op(start, 1 if step is None else step, stop=bounds[1], dtype=dtype)
    return convert_to_tensor(np.arange(*bounds, dtype=dtype)) if is_tensor(stop) else (
        np.arange(*args, **options))


def _end_of_nothing(x):
    return None if x is None else 1.0


def _bounds_of_range(args, options):
    """Return start, stop, step and dtype of a call of `arange`; raise what NumPy raises."""
    if options or not 0 < len(args) < 4 or args[0] is None:
        # NumPy checks the arguments, for an empty range.
        np.arange(*map(_end_of_nothing, args[:3]), *args[3:], **{
            name: _end_of_nothing(x) if name in ("start", "stop", "step") else x
            for name, x in options.items()})
    given = dict(zip(("start", "stop", "step", "dtype"), args, strict=False)) | options
    if args and given.get("stop") is None:
        given["stop"] = given.pop("start")
    return given.get("start", 0), given.get("stop"), given.get("step"), given.get("dtype")
