"""Ops that a TensorArray is made of, where its elements are the rows of one tensor.

Writing is an update of rows, linear in both operands. Whether a row may be written is for `mark_op`
to say, on a mask of those that are; `confirmed_op` has whoever reads rows depend on that. No rule
of a derivative reads the mask, so that loops need not keep it.

An array that grows has room for a power of two of rows, and so is copied seldom.
"""

from __future__ import annotations

import numpy as np

from cytape.ops.engine.declare import general, multilinear, nondifferentiable
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.multilinear_op import MultilinearOp
from cytape.ops.shared.conform import fill_like
from cytape.tensor.spec import symbolic_spec

__all__ = [
    "blank_like_op",
    "blank_op",
    "capacity",
    "confirmed_op",
    "grown_op",
    "mark_op",
    "out_of_range",
    "positions_op",
    "shrunk_op",
    "update_rows_op",
    "written_before",
]


def capacity(size: int) -> int:
    """Return the number of rows that an array of a size has room for.

    Examples
    --------
    >>> [capacity(size) for size in (0, 1, 2, 3, 5, 8)]
    [0, 1, 2, 4, 8, 8]
    """
    return 1 << (size - 1).bit_length() if size > 0 else 0


def out_of_range(index: int, size: int) -> IndexError:
    """Return the error of an index that an array does not have."""
    return IndexError(
        f"TensorArray: index {index} is out of range for size {size} (one with dynamic_size=True "
        "grows when it is written to)"
    )


def written_before(index: int) -> ValueError:
    """Return the error of a second write."""
    return ValueError(
        f"TensorArray: index {index} is written a second time; write elsewhere, or to the array as "
        "it was before"
    )


def _marked(written, index):
    marked = written.copy()
    for i in np.ravel(index).tolist():
        if not 0 <= i < len(marked):
            raise out_of_range(i, len(marked))
        if marked[i]:
            raise written_before(i)
        marked[i] = True
    return marked


def _confirmed(x, written, index=None, size=None):
    for i in () if index is None else np.ravel(index).tolist():
        if not 0 <= i < size:
            raise out_of_range(i, int(size))
    return x


def _at(index, axis):
    return (slice(None),) * axis + (index,)


def _updated(x, rows, index, *, axis):
    updated = np.array(x)
    updated[_at(index, axis)] = rows
    return updated


def _update_vjp(op, g):
    index = _at(op.inputs[2], op.attrs["axis"])
    rows = g[index]
    return update_rows_op(g, fill_like(rows, 0), op.inputs[2], **op.attrs), rows, None


def _grown(x, size, new_size, *, axis):
    n = capacity(max(int(size), int(new_size))) - x.shape[axis]
    return x if n <= 0 else np.pad(x, [(0, n if i == axis else 0) for i in range(x.ndim)])


def _open(x, *_, axis):
    return symbolic_spec(tuple([None if i == axis else n for i, n in enumerate(x.shape)]), x.dtype)


def _later(op):
    return {"axis": op.attrs["axis"] + 1}


update_rows_op: GeneralOp = general(
    "UpdateRows", _updated, _update_vjp,
    lambda op, t, rows, _: update_rows_op(t, rows, op.inputs[2], **op.attrs), saved_inputs=(2,),
    batched=lambda op, t, rows, _: update_rows_op(t, rows, op.inputs[2], **_later(op)),
    shape_rule=lambda x, rows, index, *, axis: x)
mark_op = nondifferentiable("MarkWritten", _marked, shape_rule=lambda written, index: written)
confirmed_op = general(
    "Confirmed", _confirmed, lambda op, g: (g, *[None] * (len(op.input_specs) - 1)),
    lambda op, t, *_: t, saved_inputs=(), batched=lambda op, t, *_: t,
    shape_rule=lambda x, *_: x)
grown_op: MultilinearOp = multilinear(
    "Grown", _grown, lambda op, g, size, new_size: shrunk_op(g, size, new_size, **op.attrs),
    batched=lambda op, _, t, size, new_size: grown_op(t, size, new_size, **_later(op)),
    shape_rule=_open)
shrunk_op: MultilinearOp = multilinear(
    "Shrunk", lambda x, size, new_size, *, axis: x[_at(slice(capacity(int(size))), axis)],
    lambda op, g, size, new_size: grown_op(g, size, new_size, **op.attrs),
    batched=lambda op, _, t, size, new_size: shrunk_op(t, size, new_size, **_later(op)),
    shape_rule=_open)
blank_op = nondifferentiable(
    "Blank", lambda size, *, shape, dtype: np.zeros((int(size), *shape), dtype),
    shape_rule=lambda size, *, shape, dtype: symbolic_spec((None, *shape), dtype))
blank_like_op = nondifferentiable(
    "BlankLike", lambda row, size: np.zeros((int(size), *row.shape), row.dtype),
    shape_rule=lambda row, size: symbolic_spec(
        None if row.shape is None else (None, *row.shape), row.dtype))
positions_op = nondifferentiable(
    "Positions", lambda x: np.arange(len(x)), shape_rule=lambda x: symbolic_spec(
        None if x.shape is None else x.shape[:1], np.int64))
