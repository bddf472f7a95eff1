"""Ops that update a part of an array, as functions of array and values: set, add, extrema."""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cytape.ops.adjoints import batched_indexing
from cytape.ops.adjoints.conform import broadcast_to, fill_like, identity_op, sum_to
from cytape.ops.calls.late import upper
from cytape.ops.calls.operands import is_tensor
from cytape.ops.creation import astype
from cytape.ops.engine.op_kinds import enter, nondifferentiable
from cytape.ops.indexing import get_item_op, getitem, index_add, template_of
from cytape.ops.joining import concatenate
from cytape.ops.shapes.index_shapes import filled_in, indexed_shape, set_item
from cytape.ops.shapes.shape_rules import shape_of
from cytape.ops.shaping import ravel, reshape, reshape_unknown, squeeze
from cytape.ops.updates.update_op import UpdateOp
from cytape.tensor import convert_to_tensor
from cytape.tensor.making import constant
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["accumulate_into", "add_into", "as_cast", "set_item_op", "set_part"]


# -- the ops ---------------------------------------------------------------------------------------


def _set(x, part, *values, index):
    result = np.array(x, order="C")
    result[filled_in(index, values)] = part
    return result


def _cleared(x, *values, index):
    return _set(x, 0, *values, index=index)


def _set_vjp(op, g):
    (of_x, of_part, *others), (_, _, *values) = op.needs, op.inputs
    index, spec = op.attrs["index"], op.input_specs[1]
    # The part first: afterwards `g` may be overwritten.
    part = sum_to(take_item_op(g, *values, index=index), spec) if of_part else None
    cleared = clear_item_op(g, *values, index=index) if of_x else None
    return cleared, part, *[None] * len(others)


set_item_op = enter(UpdateOp("SetItem", _set, "set", vjp=_set_vjp, shape_rule=set_item)).described(
    batch=batched_indexing.written)
clear_item_op = enter(UpdateOp(
    "ClearItem", _cleared, "clear",
    vjp=lambda op, g: clear_item_op(g, *op.inputs[1:], **op.attrs),
    shape_rule=lambda x, *_, index: x)).described(batch=batched_indexing.cleared)
# As x[index], but a copy in plans, too, so that the array can be overwritten.
take_item_op = enter(UpdateOp(
    "TakeItem", lambda x, *values, index: x[filled_in(index, values)].copy(), "take",
    vjp=get_item_op.vjp, shape_rule=get_item_op.shape_rule)).described(batch=batched_indexing.taken)


def _written_by(x, *values, index):
    """Return for each element the number of the last value written to it, or -1."""
    written = np.full(x.shape, -1)
    part = written[filled_in(index, values)]
    written[filled_in(index, values)] = np.arange(part.size).reshape(part.shape)
    return written


def _places(x, *values, index):
    return np.arange(x.size).reshape(x.shape)[filled_in(index, values)].ravel()


def _shows_memory(places, result, *, order, is_raveled):
    """Return whether NumPy's reshape of an array with this memory layout is a view."""
    if not places.size:
        return np.False_
    memory = np.empty(places.max() + 1, np.bool_)
    first = (0,) * places.ndim
    strides = [
        int(places[(*first[:axis], 1, *first[axis + 1:])] - places[first]) if extent > 1 else 0
        for axis, extent in enumerate(places.shape)]
    view = as_strided(memory[places[first]:], places.shape, strides)
    shown = view.ravel() if is_raveled else view.reshape(result.shape, order=order)
    return np.bool_(np.may_share_memory(memory, shown))


written_by_op = nondifferentiable(
    "WrittenBy", _written_by, shape_rule=lambda x, *_, index: symbolic_spec(x.shape, np.intp))
places_op = nondifferentiable(
    "PlacesOf", _places, shape_rule=lambda x, *_, index: symbolic_spec((None,), np.intp))
shows_memory_op = nondifferentiable(
    "ShowsMemory", _shows_memory, shape_rule=lambda *_, **__: symbolic_spec((), np.bool_))


# -- x[index] = part -------------------------------------------------------------------------------


def _parts(index):
    return index if isinstance(index, tuple) else (index,)


def _is_array(part, is_mask=False):
    return isinstance(part, np.ndarray) and part.ndim > 0 and (part.dtype == bool) == is_mask


def _is_whole(part):
    return part is Ellipsis or isinstance(part, slice) and part == slice(None)


def _is_number(tensor):
    return tensor.ndim == 0 and tensor.dtype.kind in "iu"


def as_cast(values, dtype):
    """Return values as a tensor of a dtype, cast as in NumPy's assignments."""
    if is_tensor(values):
        return astype(convert_to_tensor(values), dtype, copy=False)
    return convert_to_tensor(plain_array(values, dtype))


def _fitted(x, index, part):
    """Return values as a tensor of the array's dtype, without excess axes of length one."""
    part = as_cast(part, x.dtype)
    shape_of(part.spec, "x[index] = part")
    ndim = len(indexed_shape(shape_of(x.spec, "x[index] = part"), filled_in(*index)))
    if part.ndim > ndim:  # as NumPy allows for axes of length one
        excess = tuple(range(part.ndim - ndim))
        if any(part.shape[axis] not in (1, None) for axis in excess):
            raise ValueError(
                f"could not broadcast input array from shape {part.shape} into an index of "
                f"{ndim} axes")
        part = squeeze(part, excess)
    return part


def _described(x, index):
    """Return an index with strings in place of symbolic tensors, these, and their specs."""
    template, tensors = template_of(index)
    return template, tensors, [convert_to_tensor(value).spec for value in tensors]


def set_part(x, index, part):
    """Return an array with a part set to values; at repeated places the last one counts."""
    template, tensors, specs = _described(x, index)
    part = _fitted(x, (template, specs), part)
    if not all(map(_is_number, tensors)) or tensors and _may_repeat(x, template):
        return _set_by_number(x, template, tensors, part)
    if tensors:
        return _set_at_numbers(x, template, tensors, part)
    if any(map(_is_array, _parts(template))):
        if not x.spec.known:
            return _set_by_number(x, template, [], part)
        places = _positions(x, template)
        if len(np.unique(places)) < places.size:
            numbers = np.full(x.size, -1)
            numbers[places.ravel()] = np.arange(places.size)
            last = numbers[numbers >= 0]
            return set_item_op(
                x, ravel(broadcast_to(part, places.shape))[last],
                index=np.unravel_index(places.ravel()[last], x.shape))
    return set_item_op(x, part, index=template)


def _may_repeat(x, index):
    """Return whether an index may repeat places, for any values of its strings."""
    if not any(map(_is_array, _parts(index))):
        return False
    if not x.spec.known:
        return True
    places = _positions(x, tuple([
        slice(1) if isinstance(one, (str, slice)) else one for one in _parts(index)]))
    return len(np.unique(places)) < places.size


def _positions(x, index):
    return np.arange(x.size).reshape(x.shape)[index]


def _within(x, template, tensors, part):
    """Return values broadcast to the shape that the index selects."""
    return broadcast_to(part, get_item_op(x, *tensors, index=template).spec.extents)


def _set_by_number(x, template, tensors, part):
    """Select for each element the last value written to it, or itself."""
    numbers = written_by_op(x, *tensors, index=template)
    flat = ravel(_within(x, template, tensors, part))
    with_nothing = concatenate([flat, constant(np.zeros(1, flat.dtype))])  # for number -1
    return np.where(numbers >= 0, getitem(with_nothing, numbers), x)


def _set_at_numbers(x, template, tensors, part):
    """Set a part at scalar tensors, or slices with scalar tensors as bounds."""
    parts = _parts(template)
    axis = next(i for i, one in enumerate(parts) if one is Ellipsis or not _is_whole(one))
    if not isinstance(parts[axis], str) or any(
            one is None or isinstance(one, np.ndarray) for one in parts):
        return set_item_op(x, part, *tensors, index=template)
    lead = parts[:axis]
    number = tensors[int(parts[axis][1:])]
    rest = tuple([tensors[int(one[1:])] if isinstance(one, str) else one
                  for one in parts[axis + 1 :]])
    row = get_item_op(x, number, index=(*lead, "@0"))
    if not all(_is_whole(one) for one in rest):
        if any(isinstance(bound, str) for one in rest if isinstance(one, slice)
               for bound in (one.start, one.stop, one.step)):
            return set_item_op(x, part, *tensors, index=template)
        row = set_part(row, (*lead, *rest), part)
    else:
        row = broadcast_to(part, row.spec.extents)
    return upper("with_row_in_graph")(x, row, number, axis)


# -- x[index] op= part -----------------------------------------------------------------------------


def add_into(x, index, part):
    """Return an array with values added to a part; at repeated places all count."""
    template, tensors, specs = _described(x, index)
    part = _within(x, template, tensors, _fitted(x, (template, specs), part))
    return x + index_add(part, x.spec, template, *tensors)


def accumulate_into(x, index, part, ufunc, neutral, reduce):
    """Return an array with a part combined with values, in order at repeated places.

    Parameters
    ----------
    x : Tensor
    index : object
    part : array_like
    ufunc : callable
    neutral : number or None
        What changes nothing.
    reduce : callable or None
        Combines many along an axis.
    """
    template, tensors, specs = _described(x, index)
    part = _fitted(x, (template, specs), part)
    if all(map(_is_number, tensors)) and not _may_repeat(x, template):
        return set_part(x, index, ufunc(getitem(x, index), part))
    part = ravel(_within(x, template, tensors, part))
    if tensors or not x.spec.known:
        return _accumulated(
            x, places_op(x, *tensors, index=template), part, neutral, reduce, ufunc)
    places = _positions(x, template).ravel()
    remaining = np.arange(places.size)
    while remaining.size:  # first values at each place
        _, first = np.unique(places[remaining], return_index=True)
        turn = remaining[np.sort(first)]
        at = np.unravel_index(places[turn], x.shape)
        x = set_item_op(x, ufunc(getitem(x, at), part[turn]), index=at)
        remaining = np.setdiff1d(remaining, turn, assume_unique=True)
    return x


def _accumulated(x, places, part, neutral, reduce, ufunc):
    """Combine values at places that may repeat: one row per value, neutral at other places."""
    if reduce is None:
        raise TypeError(
            f"at[...].{ufunc.__name__} in a graph takes an index of numbers, slices, and arrays of "
            "different positions where all extents are known; not tensors of several positions, "
            "and not arrays beside a tensor")
    flat = ravel(x)
    columns = places_op(flat, index=slice(None))
    is_place = reshape(places, (-1, 1)) == reshape(columns, (1, -1))
    rows = np.where(is_place, reshape(part, (-1, 1)), constant(neutral(x.dtype), x.dtype))
    total = reduce(concatenate([reshape(flat, (1, -1)), rows]), axis=0)
    return identity_op(reshape(total, x.shape)) if x.spec.known else np.where(
        fill_like(x, 1) > 0, reshape_unknown(total, x.spec.extents), x)
