"""Shape rules of ops that join or split tensors."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cytape.errors import SymbolicTensorError
from cytape.ops.shapes.shape_rules import differ, empty_of, may_fit, product, shape_of, total
from cytape.tensor.values.spec import spec_like, symbolic_spec

__all__ = ["concatenate", "split", "stack", "unstack"]


def _joined_dtype(specs, dtype):
    return np.result_type(*[spec.dtype for spec in specs]) if dtype is None else np.dtype(dtype)


def concatenate(first, *others, axis=0, dtype=None, **_):
    """Infer the spec of a concatenation along an axis."""
    specs = first, *others
    shapes = [shape_of(spec, "concatenate") for spec in specs]
    dtype = _joined_dtype(specs, dtype)
    if axis is None:
        return symbolic_spec([total(map(product, shapes))], dtype)
    if not shapes[0]:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    np.concatenate([empty_of(shapes[0])], axis)  # raises for an invalid axis
    axis = normalize_axis_index(axis, len(shapes[0]))
    result = list(shapes[0])
    for shape in shapes[1:]:
        if len(shape) != len(result) or any(
            differ(n, m) for i, (n, m) in enumerate(zip(shape, result, strict=True)) if i != axis
        ):
            given = " and ".join(map(str, shapes))
            raise ValueError(
                f"concatenate along axis {axis}: shapes {given} differ along another axis"
            )
        result = [m if n is None else n for n, m in zip(shape, result, strict=True)]
    result[axis] = total(shape[axis] for shape in shapes)
    return symbolic_spec(result, dtype)


def stack(first, *others, axis=0, dtype=None, **_):
    """Infer the spec of a stack along a new axis."""
    specs = first, *others
    shapes = [shape_of(spec, "stack") for spec in specs]
    result = list(shapes[0])
    for shape in shapes[1:]:
        if not may_fit(shape, result):
            raise ValueError(
                f"stack: all shapes must be the same, got {' and '.join(map(str, shapes))}"
            )
        result = [m if n is None else n for n, m in zip(shape, result, strict=True)]
    result.insert(normalize_axis_index(axis, len(result) + 1), len(specs))
    return symbolic_spec(result, _joined_dtype(specs, dtype))


def split(a, *likes, sizes=None, axis):
    """Infer the specs of parts along an axis: their number, their sizes, or tensors like them."""
    if likes:
        return tuple(spec_like(like, a.dtype) for like in likes)
    shape = shape_of(a, "split")
    axis = normalize_axis_index(axis, len(shape))
    if isinstance(sizes, (int, np.integer)):
        n, extent = int(sizes), shape[axis]
        sizes = (None,) * n if extent is None else [
            len(part) for part in np.array_split(range(extent), n)]
    return tuple(symbolic_spec((*shape[:axis], n, *shape[axis + 1 :]), a.dtype) for n in sizes)


def unstack(x, *, axis, count=None):
    """Infer the specs of the slices along an axis."""
    shape = shape_of(x, "unstack")
    axis = normalize_axis_index(axis, len(shape))
    count = shape[axis] if count is None else count
    if count is None:
        raise SymbolicTensorError(
            f"unstack along axis {axis} of shape {shape}: into how many parts is not known"
        )
    return (symbolic_spec(shape[:axis] + shape[axis + 1 :], x.dtype),) * count
