"""Ops that move elements about: in another order, repeated, padded, along a diagonal."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cytape.ops.deferred import deferred_vjp
from cytape.ops.engine.arguments import axis_in_batch, is_tensor, only_numpy, plain
from cytape.ops.engine.declare import general, linear, nondifferentiable
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import ndim, ravel, reshape
from cytape.ops.shared.conform import sum_to, widely
from cytape.tensor import convert_to_tensor
from cytape.tensor.spec import symbolic_spec
from cytape.tensor.tensor import plain_array

__all__ = [
    "diag",
    "diagonal",
    "flip",
    "fliplr",
    "flipud",
    "pad",
    "repeat",
    "roll",
    "rot90",
    "tile",
    "trace",
    "tril",
    "triu",
]


# -- the same elements in another order ------------------------------------------------------------

flip_op = linear(
    "Flip",
    forward=np.flip,
    transpose=lambda op, g: flip(g, op.attrs["axis"]),
    batched=lambda m, axis: flip(m, axis_in_batch(axis, m.ndim)),
    shape_rule=shape_rules.flip,
)
fliplr_op = linear(
    "FlipLR", np.fliplr, transpose=lambda op, g: fliplr(g), batched=lambda m: flip(m, 2),
    shape_rule=lambda m: shape_rules.flip(m, 1),
)  # fmt: skip
flipud_op = linear(
    "FlipUD", np.flipud, transpose=lambda op, g: flipud(g), batched=lambda m: flip(m, 1),
    shape_rule=lambda m: shape_rules.flip(m, 0),
)  # fmt: skip
rot90_op = linear(
    "Rot90",
    forward=np.rot90,
    transpose=lambda op, g: rot90(g, -op.attrs["k"], op.attrs["axes"]),
    batched=lambda m, k, axes: rot90(m, k, axis_in_batch(axes, m.ndim)),
    shape_rule=shape_rules.rot90,
)
roll_op = linear(
    "Roll",
    forward=np.roll,
    transpose=lambda op, g: roll(g, np.negative(op.attrs["shift"]), op.attrs["axis"]),
    batched=lambda a, shift, axis: (
        NotImplemented if axis is None else roll(a, shift, axis_in_batch(axis, a.ndim))
    ),
    shape_rule=shape_rules.roll,
)


def flip(m, axis=None):
    """Reverse the order of the elements along the given axes, as `numpy.flip`.

    Examples
    --------
    >>> import cytape
    >>> np.flip(cytape.constant([1.0, 2.0])).numpy()
    array([2., 1.])
    """
    return flip_op(m, axis=axis)


def fliplr(m):
    """Reverse the order of the columns, as `numpy.fliplr`.

    Examples
    --------
    >>> import cytape
    >>> np.fliplr(cytape.constant([[1.0, 2.0]])).numpy()
    array([[2., 1.]])
    """
    return fliplr_op(m)


def flipud(m):
    """Reverse the order of the rows, as `numpy.flipud`.

    Examples
    --------
    >>> import cytape
    >>> np.flipud(cytape.constant([[1.0], [2.0]])).numpy()
    array([[2.],
           [1.]])
    """
    return flipud_op(m)


def rot90(m, k=1, axes=(0, 1)):
    """Rotate by quarter turns in a plane, as `numpy.rot90`.

    Examples
    --------
    >>> import cytape
    >>> np.rot90(cytape.constant([[1.0, 2.0]])).numpy()
    array([[2.],
           [1.]])
    """
    return rot90_op(m, k=k, axes=tuple(axes))


def roll(a, shift, axis=None):
    """Shift the elements round, as `numpy.roll`.

    Examples
    --------
    >>> import cytape
    >>> np.roll(cytape.constant([1.0, 2.0, 3.0]), 1).numpy()
    array([3., 1., 2.])
    """
    return roll_op(a, shift=np.asarray(plain(shift)).tolist(), axis=axis)


# -- elements repeated -----------------------------------------------------------------------------


def _tile_back(op, g):
    """Sum over the repeats: each axis of `g` is one of repeats and one of the input's elements."""
    if not op.input_specs[0].known:
        return deferred_vjp(op, g)
    shape = op.input_specs[0].shape
    reps = np.atleast_1d(op.attrs["reps"]).tolist()
    reps = [1] * (g.ndim - len(reps)) + reps
    lengths = [1] * (g.ndim - len(shape)) + list(shape)
    pairs = tuple(n for pair in zip(reps, lengths, strict=True) for n in pair)
    axes = tuple(range(0, 2 * g.ndim, 2))
    return reshape(widely(lambda g: g.sum(axis=axes), reshape(g, pairs)), shape)


def _repeat_back(op, g):
    if not op.input_specs[0].known:
        return deferred_vjp(op, g)
    shape, axis = op.input_specs[0].shape, op.attrs["axis"]
    axis = normalize_axis_index(axis, len(shape))
    repeats = int(np.asarray(op.attrs["repeats"]).item())
    pairs = (*shape[: axis + 1], repeats, *shape[axis + 1 :])
    return widely(lambda g: g.sum(axis=axis + 1), reshape(g, pairs))


tile_op = linear("Tile", forward=np.tile, transpose=_tile_back, shape_rule=shape_rules.tile)
repeat_op = linear(
    "Repeat",
    forward=np.repeat,
    transpose=_repeat_back,
    batched=lambda a, repeats, axis: repeat(a, repeats, axis_in_batch(axis, a.ndim)),
    shape_rule=shape_rules.repeat,
)


repeated_positions_op = nondifferentiable(
    "RepeatedPositions",
    lambda a, repeats, *, axis: np.repeat(np.arange(a.shape[axis]), repeats),
    shape_rule=lambda a, repeats, *, axis: symbolic_spec((None,), np.intp),
)


def _repeat_dynamically(a, repeats, axis):
    if axis is None or ndim(a) == 0:
        a, axis = ravel(convert_to_tensor(a)), axis or 0
    axis = normalize_axis_index(axis, ndim(a))
    return convert_to_tensor(a)[_along(axis, repeated_positions_op(a, repeats, axis=axis))]


def tile(A, reps):  # noqa: N803 (NumPy's name)
    """Repeat as a whole along each axis, as `numpy.tile`.

    Examples
    --------
    >>> import cytape
    >>> np.tile(cytape.constant([1.0, 2.0]), 2).numpy()
    array([1., 2., 1., 2.])
    """
    return tile_op(A, reps=plain(reps))


def repeat(a, repeats, axis=None):
    """Repeat each element after itself, as `numpy.repeat`.

    Examples
    --------
    >>> import cytape
    >>> np.repeat(cytape.constant([1.0, 2.0]), 2).numpy()
    array([1., 1., 2., 2.])
    """
    if is_tensor(repeats) and repeats.graph is not None:
        return _repeat_dynamically(a, repeats, axis)
    repeats = plain(repeats)
    if not is_tensor(a):
        return np.repeat(a, repeats, axis)
    plain_array(repeats)  # which refuses masked arrays
    if axis is None or ndim(a) == 0:
        a, axis = ravel(a), axis or 0
    if np.size(repeats) == 1:
        return repeat_op(a, repeats=repeats, axis=axis)
    axis = normalize_axis_index(axis, a.ndim)
    n = len(repeats) if a.shape[axis] is None else a.shape[axis]
    return a[_along(axis, np.repeat(np.arange(n), repeats))]


def _along(axis, index):
    """Return the index that applies `index` to one axis."""
    return (slice(None),) * axis + (index,)


# -- elements added and left out -------------------------------------------------------------------

# Modes in which each padded element is a copy of one element of the array.
_COPYING_MODES = ("edge", "reflect", "symmetric", "wrap")


def _pad_vjp(op, g):
    widths, shape = op.attrs["pad_width"], op.input_specs[0].shape
    if None in shape:
        return g[tuple(slice(before, -after if after else None) for before, after in widths)]
    return g[tuple(slice(before, before + n) for (before, _), n in zip(widths, shape, strict=True))]


pad_op = general(
    "Pad",
    forward=np.pad,
    vjp=_pad_vjp,
    jvp=lambda op, t: pad_op(t, pad_width=op.attrs["pad_width"]),
    saved_inputs=(),
    batched=lambda op, t: pad_op(t, pad_width=np.vstack([(0, 0), op.attrs["pad_width"]])),
    shape_rule=shape_rules.pad,
)


def _padded_positions(x, *, axis, width, mode, **kwargs):
    return np.pad(np.arange(x.shape[axis]), width, mode, **kwargs)


padded_positions_op = nondifferentiable(
    "PaddedPositions",
    _padded_positions,
    shape_rule=lambda x, *, axis, width, **_: symbolic_spec(
        (shape_rules.total((x.shape[axis], *width)),), np.intp
    ),
)


def pad(array, pad_width, mode="constant", **kwargs):
    """Add elements at the ends of the axes, as `numpy.pad`.

    The modes "constant", "edge", "reflect" (even), "symmetric" (even) and "wrap" take tensors.

    Examples
    --------
    >>> import cytape
    >>> np.pad(cytape.constant([1.0, 2.0]), 1, mode="edge").numpy()
    array([1., 1., 2., 2.])
    """
    if not is_tensor(array):
        return np.pad(array, pad_width, mode, **kwargs)
    if ndim(array) == 0:
        return convert_to_tensor(array)
    widths = _pad_widths(pad_width, array.ndim)
    if mode == "constant":
        return pad_op(array, pad_width=widths, **kwargs)
    if mode not in _COPYING_MODES or kwargs.get("reflect_type", "even") != "even":
        raise ValueError(
            f"pad: mode {mode!r}{f' with {kwargs}' if kwargs else ''} is not supported for "
            f"tensors, which can be padded in the modes constant, {', '.join(_COPYING_MODES)}"
        )
    for axis, (n, width) in enumerate(zip(array.shape, widths, strict=True)):
        if n is None:
            width = tuple(width.tolist())
            positions = padded_positions_op(array, axis=axis, width=width, mode=mode, **kwargs)
        else:
            positions = np.pad(np.arange(n), width, mode, **kwargs)
        array = array[_along(axis, positions)]
    return array


def _pad_widths(pad_width, ndim):
    """Return one row (before, after) for each axis from any of the forms that NumPy takes."""
    if isinstance(pad_width, dict):
        widths = np.zeros((ndim, 2), int)
        for axis, width in pad_width.items():
            widths[axis] = width
        pad_width = widths
    return np.broadcast_to(pad_width, (ndim, 2)).copy()


# A vector is the rows of a square to tril and triu, hence the sum.
tril_op = linear(
    "Tril",
    forward=np.tril,
    transpose=lambda op, g: sum_to(tril(g, op.attrs["k"]), op.input_specs[0]),
    batched=lambda m, k: tril(m, k) if m.ndim > 2 else NotImplemented,
    shape_rule=shape_rules.triangle,
)
triu_op = linear(
    "Triu",
    forward=np.triu,
    transpose=lambda op, g: sum_to(triu(g, op.attrs["k"]), op.input_specs[0]),
    batched=lambda m, k: triu(m, k) if m.ndim > 2 else NotImplemented,
    shape_rule=shape_rules.triangle,
)


def tril(m, k=0):
    """Set the elements above a diagonal to zero, as `numpy.tril`.

    Examples
    --------
    >>> import cytape
    >>> np.tril(cytape.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([[1., 0.],
           [3., 4.]])
    """
    return tril_op(m, k=k)


def triu(m, k=0):
    """Set the elements below a diagonal to zero, as `numpy.triu`.

    Examples
    --------
    >>> import cytape
    >>> np.triu(cytape.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([[1., 2.],
           [0., 4.]])
    """
    return triu_op(m, k=k)


def _embed_diagonal(elements, *, shape, offset, axis1, axis2):
    if None in shape:  # a square that just holds it
        shape = (elements.shape[-1] + abs(offset),) * 2
    result = np.zeros(shape, elements.dtype)
    matrices = np.moveaxis(result, (axis1, axis2), (-2, -1))
    rows = np.arange(elements.shape[-1])
    matrices[..., rows + max(-offset, 0), rows + max(offset, 0)] = elements
    return result


def _diagonal_of_embedded(op, g):
    return diagonal(g, *(op.attrs[name] for name in ("offset", "axis1", "axis2")))


def _embedded(op, g):
    if not op.input_specs[0].known:
        return deferred_vjp(op, g)
    return embed_diagonal_op(g, shape=op.input_specs[0].shape, **op.attrs)


diagonal_op = linear(
    "Diagonal",
    forward=np.diagonal,
    transpose=_embedded,
    batched=lambda x, offset, axis1, axis2: diagonal(
        x, offset, *axis_in_batch((axis1, axis2), x.ndim)
    ),
    shape_rule=shape_rules.diagonal,
)
embed_diagonal_op = linear(
    "EmbedDiagonal", forward=_embed_diagonal, transpose=_diagonal_of_embedded,
    shape_rule=lambda elements, *, shape, **_: symbolic_spec(shape, elements.dtype),
)  # fmt: skip


def diagonal(a, offset=0, axis1=0, axis2=1):
    """Return the diagonals of matrices, as `numpy.diagonal`.

    Examples
    --------
    >>> import cytape
    >>> np.diagonal(cytape.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([1., 4.])
    """
    return diagonal_op(a, offset=offset, axis1=axis1, axis2=axis2)


def diag(v, k=0):
    """Return the diagonal of a matrix, or the matrix of a diagonal, as `numpy.diag`.

    Examples
    --------
    >>> import cytape
    >>> np.diag(cytape.constant([1.0, 2.0])).numpy()
    array([[1., 0.],
           [0., 2.]])
    """
    if not is_tensor(v):
        return np.diag(v, k)
    if ndim(v) == 1:
        n = None if v.size is None else v.size + abs(k)
        return embed_diagonal_op(v, shape=(n, n), offset=k, axis1=0, axis2=1)
    if v.ndim == 2:
        return diagonal(v, k)
    raise ValueError("Input must be 1- or 2-d.")


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """Sum along diagonals, as `numpy.trace`.

    Examples
    --------
    >>> import cytape
    >>> float(np.trace(cytape.constant([[1.0, 2.0], [3.0, 4.0]])))
    5.0
    """
    options = only_numpy("trace", [a], out=out)
    return diagonal(a, offset, axis1, axis2).sum(axis=-1, dtype=dtype, **options)


NUMPY_FUNCTIONS = {
    np.diag: diag,
    np.diagonal: diagonal,
    np.flip: flip,
    np.fliplr: fliplr,
    np.flipud: flipud,
    np.pad: pad,
    np.repeat: repeat,
    np.roll: roll,
    np.rot90: rot90,
    np.tile: tile,
    np.trace: trace,
    np.tril: tril,
    np.triu: triu,
}
