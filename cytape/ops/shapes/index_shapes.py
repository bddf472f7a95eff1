"""Shape rules of ops that read and write parts of a tensor."""

import numpy as np

from cytape.ops.shapes.shape_rules import broadcast, differ, shape_of
from cytape.tensor.values.spec import spec_like, symbolic_spec

__all__ = [
    "filled_in", "gather", "get_item", "index_add", "indexed_shape", "scatter_add", "set_item",
]  # fmt: skip


def filled_in(index, values):
    """Return an index with values (arrays or specs) in place of its strings.

    "@0" stands for the first operand of an op that is part of its index.
    """
    if not values:
        return index
    if isinstance(index, tuple):
        return tuple([_filled_part(part, values) for part in index])
    return _filled_part(index, values)


def _filled_part(part, values):
    if isinstance(part, slice):
        return slice(*[_filled_part(x, values) for x in (part.start, part.stop, part.step)])
    if not isinstance(part, str):
        return part
    value = values[int(part[1:])]
    whole = isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu"
    return int(value) if whole else value


def _true_count(part):
    return int(np.count_nonzero(part)) if isinstance(part, np.ndarray) else None


def indexed_shape(shape, index):
    """Return the shape of ``x[index]``; specs may stand for arrays in the index."""
    parts = [
        np.array(part) if isinstance(part, bool | np.bool_) else part
        for part in (index if isinstance(index, tuple) else (index,))
    ]
    taken = 0
    for part in parts:
        if part is None or part is Ellipsis:
            continue
        taken += part.ndim if _is_mask(part) else 1
    if taken > len(shape):
        raise IndexError(f"too many indices for shape {shape}: {taken} are given")
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    result, axis = [], 0
    advanced, place, last = [], None, None
    for position, part in enumerate(parts):
        if part is Ellipsis:
            count = len(shape) - taken
            result += shape[axis : axis + count]
            axis += count
        elif part is None:
            result.append(1)
        elif isinstance(part, slice):
            result.append(_slice_extent(shape[axis], part))
            axis += 1
        else:
            if place is None:
                place = len(result)
            elif last != position - 1:
                place = 0  # axes of separated advanced indices come first
            last = position
            if _is_mask(part):
                for n, m in zip(part.shape, shape[axis : axis + part.ndim], strict=True):
                    if differ(n, m):
                        raise IndexError(
                            f"a boolean index of shape {part.shape} does not fit shape {shape}"
                        )
                advanced.append((_true_count(part),))
                axis += part.ndim
            else:
                _check_bounds(part, shape[axis], axis)
                advanced.append(() if isinstance(part, int | np.integer) else part.shape)
                axis += 1
    if place is not None:
        result[place:place] = broadcast(*advanced, what="an index")
    return tuple(result)


def _is_mask(part):
    return hasattr(part, "dtype") and part.dtype == bool


def _check_bounds(part, extent, axis):
    if isinstance(part, int | np.integer) and extent is not None and not -extent <= part < extent:
        raise IndexError(f"index {part} is out of bounds for axis {axis} with size {extent}")


def _slice_extent(extent, part):
    bounds = (part.start, part.stop, part.step)
    if bounds in ((None, None, None), (None, None, 1), (None, None, -1), (0, None, None)):
        return extent
    if extent is None or not all(n is None or isinstance(n, int) for n in bounds):
        return None
    return len(range(*part.indices(extent)))


def get_item(x, *others, index):
    """Infer the spec of a part, given the specs of operands that are part of the index."""
    for spec in others:
        if spec.dtype.kind not in "iub":
            raise IndexError(
                f"tensors in an index must be of integers or booleans, not {spec.dtype}"
            )
        shape_of(spec, "x[index]")
    shape = shape_of(x, "x[index]")
    parts = index if isinstance(index, tuple) else (index,)
    if not others and None not in shape and any(
            isinstance(part, np.ndarray | bool | np.bool_) for part in parts):
        outline = np.broadcast_to(np.empty((), bool), shape)
        return symbolic_spec(outline[index].shape, x.dtype)  # NumPy checks the bounds
    return symbolic_spec(indexed_shape(shape, filled_in(index, others)), x.dtype)


def set_item(x, part, *others, index):
    """Infer the spec of an array with other values in a part of it."""
    if x.shape is not None and part.shape is not None:
        item, given = get_item(x, *others, index=index).shape, part.shape
        excess = max(len(given) - len(item), 0)
        if not {*given[:excess]} <= {1, None} or any(
            n != 1 and differ(n, m)
            for n, m in zip(reversed(given), reversed(item), strict=False)
        ):
            raise ValueError(
                f"could not broadcast input array from shape {given} into shape {item}"
            )
    return x


def index_add(values, *others, index, shape=None):
    """Infer the spec of zeros that values are added into; without a shape, that of the last."""
    if shape is None:
        return spec_like(others[-1], values.dtype)
    given, place = values.shape, indexed_shape(tuple(map(int, shape)), filled_in(index, others))
    if given is not None and (len(given) > len(place) or any(
            n not in (1, m, None) and m is not None
            for n, m in zip(given[::-1], place[::-1], strict=False))):
        raise ValueError(f"values of shape {given} cannot be added to x[index] of shape {place}")
    return symbolic_spec(shape, values.dtype)


def gather(params, indices, *, axis, mode):
    """Infer the spec of slices along an axis."""
    shape = shape_of(params, "take")
    return symbolic_spec(
        (*shape[:axis], *shape_of(indices, "take"), *shape[axis + 1 :]), params.dtype
    )


def scatter_add(values, indices, like=None, *, axis, mode, size=None):
    """Infer the spec of zeros that slices along an axis are added into."""
    if like is not None:
        return spec_like(like, values.dtype)
    shape = shape_of(values, "scatter_add")
    after = axis + len(shape_of(indices, "scatter_add"))
    return symbolic_spec((*shape[:axis], size, *shape[after:]), values.dtype)
