"""Rearranged elements: `flip`, `roll`, `repeat`, `tile`, `tril`, `diag` and similar functions."""

import itertools
import math
import sys
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cytape.ops.adjoints.conform import broadcast_to
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.calls.operands import axis_in_batch, is_tensor, joined, plain, with_out
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general, nondifferentiable, structural
from cytape.ops.indexing import index_add_op
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import ndim, ravel, reshape
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.spec import symbolic_spec

__all__ = [
    "diag",
    "diagonal",
    "flip",
    "fliplr",
    "flipud",
    "repeat",
    "roll",
    "rot90",
    "tile",
    "trace",
    "tril",
    "triu",
]


# -- the same elements in another order ------------------------------------------------------------

def _rolled(results, operands, *, shift, axis):
    whole, x = results[0], operands[0]
    if np.ndim(shift) > 1:
        raise ValueError("shifts in more than one dimension")
    if axis is None:
        whole, x, axis = whole.reshape(-1), x.reshape(-1), 0
    ways = [[(slice(None), slice(None))] for _ in range(x.ndim)]  # (target, source) slices per axis
    shifts = np.broadcast(shift, normalize_axis_tuple(axis, x.ndim, allow_duplicate=True))
    total = dict.fromkeys(range(x.ndim), 0)
    for step, along in shifts:
        total[along] += int(step)
    for along, step in total.items():
        n = x.shape[along]
        step = step % n if n else 0
        if step:
            ways[along] = [(slice(step, None), slice(n - step)),
                           (slice(step), slice(n - step, None))]
    for places in itertools.product(*ways):
        yield whole[tuple(to for to, _ in places)], x[tuple(of for _, of in places)]


def _rolled_in_batch(a, shift):
    if None in a.shape:
        return NotImplemented
    rows = reshape(a, (len(a), math.prod(a.shape[1:])))
    return reshape(roll(rows, np.sum(shift), 1), a.shape)


def _tiled_in_batch(a, reps):
    reps = tuple(np.atleast_1d(reps).tolist())
    lead = (1,) * (a.ndim - 1 - len(reps))
    fewer = max(len(reps) - a.ndim + 1, 0)
    return tile(a[(slice(None), *(None,) * fewer)], (1, *lead, *reps))


def _diagonal_in_batch(v, k):
    """Return a batch of matrices of diagonals."""
    if None in v.shape:
        return NotImplemented
    n, size = v.shape[1], v.shape[1] + abs(k)
    rows, columns = np.arange(n) + max(-k, 0), np.arange(n) + max(k, 0)
    return index_add_op(v, index=(slice(None), rows, columns), shape=(
        v.shape[0], size, size))


flip_op = structural(
    "Flip", np.flip, None,
    shape_rule=shape_rules.flip,
    batch=batch_axis.along_axis,
)  # fmt: skip
fliplr_op = structural(
    "FlipLR", np.fliplr, None, batched=lambda m: flip(m, 2),
    shape_rule=lambda m: shape_rules.flip(m, 1),
)  # fmt: skip
flipud_op = structural(
    "FlipUD", np.flipud, None, batched=lambda m: flip(m, 1),
    shape_rule=lambda m: shape_rules.flip(m, 0),
)  # fmt: skip
rot90_op = structural(
    "Rot90", np.rot90, None,
    shape_rule=shape_rules.rot90,
    batch=batch_axis.along("axes"),
)  # fmt: skip
roll_op = structural(
    "Roll", np.roll, _rolled,
    batched=lambda a, shift, axis: (
        _rolled_in_batch(a, shift) if axis is None else roll(a, shift, axis_in_batch(axis, a.ndim))
    ),
    shape_rule=shape_rules.roll,
)  # fmt: skip


def flip(m, axis=None) -> Any:
    """Reverse the order of the elements along the given axes, as `numpy.flip`.

    Examples
    --------
    >>> import cytape
    >>> np.flip(cytape.constant([1.0, 2.0])).numpy()
    array([2., 1.])
    """
    return flip_op(m, axis=axis)


def fliplr(m) -> Any:
    """Reverse the order of the columns, as `numpy.fliplr`.

    Examples
    --------
    >>> import cytape
    >>> np.fliplr(cytape.constant([[1.0, 2.0]])).numpy()
    array([[2., 1.]])
    """
    return fliplr_op(m)


def flipud(m) -> Any:
    """Reverse the order of the rows, as `numpy.flipud`.

    Examples
    --------
    >>> import cytape
    >>> np.flipud(cytape.constant([[1.0], [2.0]])).numpy()
    array([[2.],
           [1.]])
    """
    return flipud_op(m)


def rot90(m, k=1, axes=(0, 1)) -> Any:
    """Rotate by quarter turns in a plane, as `numpy.rot90`.

    Examples
    --------
    >>> import cytape
    >>> np.rot90(cytape.constant([[1.0, 2.0]])).numpy()
    array([[2.],
           [1.]])
    """
    return rot90_op(m, k=k, axes=tuple(axes))


def roll(a, shift, axis=None) -> Any:
    """Shift the elements cyclically, as `numpy.roll`.

    Examples
    --------
    >>> import cytape
    >>> np.roll(cytape.constant([1.0, 2.0, 3.0]), 1).numpy()
    array([3., 1., 2.])
    """
    shift = np.asarray(plain(shift)).tolist()
    return roll_op(a, shift=tuple(shift) if isinstance(shift, list) else shift, axis=axis)


# -- elements repeated -----------------------------------------------------------------------------


def _tiled(results, operands, *, reps):
    """Yield the piece of a tile: each axis is split into repeats and the input's elements."""
    whole, x = results[0], operands[0]
    lengths = (1,) * (whole.ndim - x.ndim) + x.shape
    if whole.size:
        pairs = [(n // length, length) for n, length in zip(whole.shape, lengths, strict=True)]
        yield (whole.reshape([n for pair in pairs for n in pair]),
               x.reshape([n for _, length in pairs for n in (1, length)]))


def _repeated(results, operands, *, repeats, axis):
    whole, x = results[0], operands[0]
    if np.ndim(repeats) > 1:
        raise ValueError("repeats in more than one dimension")
    axis = normalize_axis_index(axis, x.ndim)
    if whole.size:
        n = whole.shape[axis] // x.shape[axis]
        copies = whole.reshape(*x.shape[: axis + 1], n, *x.shape[axis + 1 :])
        if n > 8:
            yield copies, np.expand_dims(x, axis + 1)
            return
        for i in range(n):  # one piece per repeat: long inner loops
            yield copies[(slice(None),) * (axis + 1) + (i,)], x


tile_op = structural(
    "Tile", np.tile, _tiled, batched=lambda A, reps: _tiled_in_batch(A, reps),
    shape_rule=shape_rules.tile,
)  # fmt: skip
repeat_op = structural(
    "Repeat", np.repeat, _repeated,
    shape_rule=shape_rules.repeat,
    batch=batch_axis.along_axis,
)  # fmt: skip


repeated_positions_op = nondifferentiable(
    "RepeatedPositions",
    lambda a, repeats, *, axis: np.repeat(np.arange(a.shape[axis]), repeats),
    shape_rule=lambda a, repeats, *, axis: symbolic_spec((None,), np.intp),
)


def _repeat_dynamically(a, repeats, axis):
    if axis is None or ndim(a) == 0:
        a, axis = ravel(convert_to_tensor(a)), 0 if axis is None else axis
    axis = normalize_axis_index(axis, ndim(a))
    return convert_to_tensor(a)[index_along(axis, repeated_positions_op(a, repeats, axis=axis))]


def tile(A, reps) -> Any:  # noqa: N803 (NumPy's name)
    """Repeat the whole array along each axis, as `numpy.tile`.

    Examples
    --------
    >>> import cytape
    >>> np.tile(cytape.constant([1.0, 2.0]), 2).numpy()
    array([1., 2., 1., 2.])
    """
    reps = plain(reps)
    if type(reps) is not int:
        reps = tuple(map(index, reps)) if np.ndim(reps) else index(reps)
    return tile_op(A, reps=reps)


def repeat(a, repeats, axis=None) -> Any:
    """Repeat each element after itself, as `numpy.repeat`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> np.repeat(cytape.constant([1.0, 2.0]), 2).numpy()
    array([1., 1., 2., 2.])
    """
    repeats = joined(repeats)
    if is_tensor(repeats) and repeats.graph is not None:
        return _repeat_dynamically(a, repeats, axis)
    repeats = plain(repeats)
    if not is_tensor(a):
        return np.repeat(a, repeats, axis)
    plain_array(repeats)  # which refuses masked arrays
    if axis is None or ndim(a) == 0:
        a, axis = ravel(a), 0 if axis is None else axis
    if np.size(repeats) == 1:
        if np.asarray(repeats).dtype.kind in "iu" and np.ndim(repeats) < 2:
            repeats = int(np.asarray(repeats).item())
        return repeat_op(a, repeats=repeats, axis=axis)
    a = convert_to_tensor(a)
    axis = normalize_axis_index(axis, a.ndim)
    n = a.shape[axis]
    if n is None:
        n = len(repeats)
        a = with_extents(
            a, ValueError, f"the axis {axis} does not have the {n} elements that `repeats` names",
            like=np.asarray(repeats), same=[(axis, 0)])
    return a[index_along(axis, np.repeat(np.arange(n), repeats))]


def index_along(axis, index):
    """Return the index that applies `index` to one axis."""
    return (slice(None),) * axis + (index,)


# -- elements added and left out -------------------------------------------------------------------

def _inside(results, operands, *, pad_width):
    if any(min(width) < 0 for width in pad_width):
        raise ValueError("a width is negative")
    within = zip(pad_width, operands[0].shape, strict=True)
    yield results[0][tuple(slice(before, before + n) for (before, _), n in within)], operands[0]


def _pad_vjp(op, g):
    widths, shape = op.attrs["pad_width"], op.input_specs[0].shape
    if None in shape:
        return g[tuple(slice(before, -after if after else None) for before, after in widths)]
    return g[tuple(slice(before, before + n) for (before, _), n in zip(widths, shape, strict=True))]


pad_op = structural(
    "Pad", lambda x, pad_width: np.pad(x, pad_width), _inside, transpose=_pad_vjp,
    batched=lambda x, pad_width: pad_op(x, pad_width=((0, 0), *pad_width)),
    shape_rule=shape_rules.pad,
)  # fmt: skip
def _pad_with_in_batch(call):
    (x,), (spec,) = call.inputs, call.input_specs
    width, values = (
        np.broadcast_to(call.attrs[name], (spec.ndim, 2)).tolist()
        for name in ("pad_width", "constant_values"))
    return call.again([x], pad_width=((0, 0), *map(tuple, width)),
                      constant_values=((0, 0), *map(tuple, values)))


pad_with_op = general(  # with numbers other than zero
    "PadWith",
    forward=np.pad,
    vjp=_pad_vjp,
    jvp=lambda op, t: pad_op(t, pad_width=op.attrs["pad_width"]),
    saved_inputs=(),
    batched=lambda op, t: pad_op(t, pad_width=((0, 0), *op.attrs["pad_width"])),
    shape_rule=shape_rules.pad,
    batch=_pad_with_in_batch,
)


def _rows_of_triangle(columns):
    """Yield the pieces of a triangle: the kept columns of each row."""

    def pieces(results, operands, *, k):
        whole, x = results[0], np.broadcast_to(operands[0], results[0].shape)
        if k != int(k) or abs(k) > sys.maxsize:
            raise ValueError("k must be an integer in NumPy's range")
        k = int(k)
        for row in range(whole.shape[-2]):
            kept = columns(row, k)
            yield whole[..., row, kept], x[..., row, kept]

    return pieces


def _triangles(of, m, k):
    """Return the triangles of a batch; `tril` and `triu` make a square matrix of a vector."""
    if m.ndim > 2:
        return of(m, k)
    if None in m.shape:
        return NotImplemented
    return of(broadcast_to(m[:, None], (*m.shape, m.shape[1])), k)


tril_op = structural(
    "Tril", np.tril, _rows_of_triangle(lambda row, k: slice(max(row + k + 1, 0))),
    batched=lambda m, k: _triangles(tril, m, k),
    shape_rule=shape_rules.triangle,
)  # fmt: skip
triu_op = structural(
    "Triu", np.triu, _rows_of_triangle(lambda row, k: slice(max(row + k, 0), None)),
    batched=lambda m, k: _triangles(triu, m, k),
    shape_rule=shape_rules.triangle,
)  # fmt: skip


def tril(m, k=0) -> Any:
    """Set the elements above a diagonal to zero, as `numpy.tril`.

    Examples
    --------
    >>> import cytape
    >>> np.tril(cytape.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([[1., 0.],
           [3., 4.]])
    """
    return tril_op(m, k=k)


def triu(m, k=0) -> Any:
    """Set the elements below a diagonal to zero, as `numpy.triu`.

    Examples
    --------
    >>> import cytape
    >>> np.triu(cytape.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([[1., 2.],
           [0., 4.]])
    """
    return triu_op(m, k=k)


diagonal_op = structural(
    "Diagonal", lambda x, **attrs: np.asarray(x).diagonal(**attrs), None,
    shape_rule=shape_rules.diagonal,
    batch=batch_axis.along("axis1", "axis2"),
)  # fmt: skip
# A matrix from its diagonal.
diag_op = structural(
    "Diag", lambda v, k: np.diag(v, k),
    lambda results, operands, *, k: [(np.diagonal(results[0], k), operands[0])],
    batched=lambda v, k: _diagonal_in_batch(v, k),
    shape_rule=lambda v, k: symbolic_spec((shape_rules.total((v.shape[0], abs(k))),) * 2, v.dtype),
)  # fmt: skip


def diagonal(a, offset=0, axis1=0, axis2=1) -> Any:
    """Return the diagonals of matrices, as `numpy.diagonal`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> np.diagonal(cytape.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([1., 4.])
    """
    return diagonal_op(a, offset=index(offset), axis1=axis1, axis2=axis2)


@numpy_function(np.diag)
def diag(v, k=0) -> Any:
    """Return the diagonal of a matrix, or the matrix of a diagonal, as `numpy.diag`.

    Examples
    --------
    >>> import cytape
    >>> np.diag(cytape.constant([1.0, 2.0])).numpy()
    array([[1., 0.],
           [0., 2.]])
    """
    v = convert_to_tensor(v)
    if ndim(v) == 1:
        return diag_op(v, k=k)
    if v.ndim == 2:
        return diagonal(v, k)
    raise ValueError("Input must be 1- or 2-d.")


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None) -> Any:
    """Sum along diagonals, as `numpy.trace`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> float(np.trace(cytape.constant([[1.0, 2.0], [3.0, 4.0]])))
    5.0
    """
    if out is not None:
        return with_out(np.trace, out, a, offset=offset, axis1=axis1, axis2=axis2, dtype=dtype)
    return diagonal(a, offset, axis1, axis2).sum(axis=-1, dtype=dtype)
