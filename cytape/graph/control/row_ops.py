"""Ops of a TensorArray whose elements are the rows of one tensor.

Writing is an update of rows, linear in both operands. `mark_op` checks, on the mask of written
rows, whether a row may be written; `confirmed_op` makes readers of rows depend on that check.

Derivatives of loops keep the values that rules read in each iteration. So no rule reads the mask,
or takes the number of rows from an array: that number is an operand.

A growing array has room for a power of two of rows, so it is rarely copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cytape.graph.nested.row_program import out_of_range, written_before
from cytape.ops.adjoints.line_elements import added_at
from cytape.ops.engine import batch_axis
from cytape.ops.engine.batch_axis import BatchedCall, Rule
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.multilinear_op import MultilinearOp
from cytape.ops.engine.op_kinds import general, multilinear, nondifferentiable, passing
from cytape.ops.indexing import get_item_op
from cytape.ops.rearranging import index_along
from cytape.ops.shaping import moveaxis
from cytape.ops.updates.part_updates import clear_item_op, set_item_op
from cytape.tensor.values.spec import symbolic_spec

__all__ = [
    "blank_like_op",
    "blank_op",
    "capacity",
    "capacity_op",
    "checked_op",
    "cleared_op",
    "confirmed_op",
    "mark_op",
    "placed_op",
    "positions_op",
    "resized_op",
    "taken_op",
    "update_rows_op",
]


def capacity(size: int) -> int:
    """Return the number of rows with room in an array of a size.

    Examples
    --------
    >>> [capacity(size) for size in (0, 1, 2, 3, 5, 8)]
    [0, 1, 2, 4, 8, 8]
    """
    return 1 << (size - 1).bit_length() if size > 0 else 0


def _marked(written, index):
    marked = written.copy()
    for i in np.ravel(index).tolist():
        if not 0 <= i < len(marked):
            raise out_of_range(i, len(marked))
        if marked[i]:
            raise written_before(i)
        marked[i] = True
    return marked


def _checked(index, size):
    for i in np.ravel(index).tolist():
        if not 0 <= i < size:
            raise out_of_range(i, int(size))
    return index


def _taken(x, index, n_rows, *, axis):
    return x[index_along(axis, index)]


def _placed(rows, index, n_rows, *, axis, extent=None):
    shape = rows.shape[:axis] + (int(n_rows),) + rows.shape[axis + index.ndim :]
    if index.ndim:
        # A row may have been read several times.
        return added_at(shape, index_along(axis, index), rows)
    placed = np.zeros(shape, rows.dtype)
    placed[index_along(axis, index)] = rows
    return placed


def _cleared(x, index, *, axis):
    cleared = np.array(x)
    cleared[index_along(axis, index)] = 0
    return cleared


def _updated(x, rows, index, n_rows, *, axis):
    updated = np.array(x)
    expected = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    if rows.shape != expected:  # no broadcasting
        raise ValueError(
            f"TensorArray: expected {index.size} elements of shape {x.shape[axis + 1 :]} to write, "
            f"got an array of shape {rows.shape}"
        )
    updated[index_along(axis, index)] = rows
    return updated


def _update_vjp(op, g):
    index, n_rows = op.inputs[2:]
    row = taken_op(g, index, n_rows, **op.attrs)  # first: afterwards `g` may be overwritten
    return cleared_op(g, index, **op.attrs), row, None, None


def _update_tangent(op, t, rows, axis):
    index, n_rows = op.inputs[2:]
    if rows is None:
        return cleared_op(t, index, axis=axis)
    if t is None:
        return placed_op(rows, index, n_rows, axis=axis, extent=_extent(op))
    return update_rows_op(t, rows, index, n_rows, axis=axis)


def _resized(x, n_rows, new_n_rows, *, axis):
    n = int(new_n_rows) - x.shape[axis]
    if n <= 0:
        return x[index_along(axis, slice(int(new_n_rows)))]
    return np.pad(x, [(0, n if i == axis else 0) for i in range(x.ndim)])


def _with_axis(shape, axis, *extents):
    return None if shape is None else (*shape[:axis], *extents, *shape[axis + 1 :])


def _placed_spec(rows, index, n_rows, *, axis, extent=None):
    after = axis + index.ndim
    return symbolic_spec((*rows.shape[:axis], extent, *rows.shape[after:]), rows.dtype)


def _extent(op):
    shape = op.input_specs[0].shape
    return None if shape is None else shape[op.attrs["axis"]]


def _in_batch(op: Any, n_arrays: int) -> Rule:
    """Make the rule of an op on rows; members with rows of their own have an index op do it.

    The number of the row is the input after `n_arrays` arrays.
    """

    def rule(call: BatchedCall) -> Any:
        axis, inputs = call.attrs["axis"], batch_axis.repeated(call)
        if not call.mapped[n_arrays] and n_arrays == 1:
            return batch_axis.along_axis(call)
        if inputs is None:
            return NotImplemented
        if not call.mapped[n_arrays]:
            return call.again([*inputs[:n_arrays], *call.inputs[n_arrays:]], axis=axis + 1)
        if call.extent is None:
            return NotImplemented
        x, *rows = inputs[:n_arrays]
        n = call.input_specs[n_arrays].ndim
        before, behind = tuple(range(1, 1 + axis)), tuple(range(1 + n, 1 + n + axis))
        found = op(
            moveaxis(x, axis + 1, 1), *[moveaxis(one, before, behind) for one in rows],
            batch_axis.counted(call.extent, n), inputs[n_arrays], index=("@0", "@1"))
        return moveaxis(found, behind, before) if op is get_item_op else (
            moveaxis(found, 1, axis + 1))

    return rule


taken_op: MultilinearOp = multilinear(
    "TakeRows", _taken, lambda op, g, *at: placed_op(
        g, *at, **op.attrs, extent=_extent(op)),
    shape_rule=lambda x, index, n_rows, *, axis: symbolic_spec(
        _with_axis(x.shape, axis, *index.shape), x.dtype),
    batch=_in_batch(get_item_op, 1), lowering="ROWS_READ")
placed_op: MultilinearOp = multilinear(
    "PlaceRows", _placed, lambda op, g, *at: taken_op(g, *at, axis=op.attrs["axis"]),
    batch=batch_axis.along_axis, shape_rule=_placed_spec, lowering="ROWS_ADDED")
cleared_op: MultilinearOp = multilinear(
    "ClearRows", _cleared, lambda op, g, index: cleared_op(g, index, **op.attrs),
    batch=_in_batch(clear_item_op, 1), shape_rule=lambda x, index, *, axis: x,
    lowering="ROWS_CLEARED")
update_rows_op: GeneralOp = general(
    "UpdateRows", _updated, _update_vjp,
    lambda op, t, rows, *_: _update_tangent(op, t, rows, op.attrs["axis"]),
    saved_inputs=(2, 3), optional_tangents=(0, 1),
    batched=lambda op, t, rows, *_: _update_tangent(op, t, rows, op.attrs["axis"] + 1),
    shape_rule=lambda x, *_, axis: x, batch=_in_batch(set_item_op, 2), lowering="ROWS_WRITTEN")
resized_op: MultilinearOp = multilinear(
    "Resized", _resized, lambda op, g, n, new_n: resized_op(g, new_n, n, **op.attrs),
    shape_rule=lambda x, *_, axis: symbolic_spec(_with_axis(x.shape, axis, None), x.dtype),
    batch=batch_axis.along_axis)
mark_op = nondifferentiable(
    "MarkWritten", _marked, shape_rule=lambda written, index: written, lowering="ROWS_MARKED")
confirmed_op = passing(
    "Confirmed", lambda x, written: x, shape_rule=lambda x, written: x)
checked_op = nondifferentiable(
    "Checked", _checked, shape_rule=lambda index, size: index, lowering="ROWS_CHECKED")
capacity_op = nondifferentiable(
    "Capacity", lambda size: np.asarray(capacity(int(size))),
    shape_rule=lambda size: symbolic_spec((), np.int64))
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
