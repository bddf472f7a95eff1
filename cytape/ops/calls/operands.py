"""Checks and conversions of arguments that the families of ops share."""

import numpy as np

from cytape.errors import DetachedError, SymbolicTensorError
from cytape.ops.shapes import shape_rules
from cytape.tensor import Tensor, convert_to_tensor
from cytape.tensor.recording.state import current_graph
from cytape.tensor.tensor import data_of
from cytape.tensor.values.plain_arrays import plain_array

MOST_AXES = 64  # NumPy's limit
SMALL = 2048  # elements; below, several ops without rules are faster than one op that calls NumPy


def is_tensor(value):
    """Return whether `value` is a tensor or a list that holds one."""
    return isinstance(value, Tensor) or (
        isinstance(value, (list, tuple)) and _holds_tensor(value, 1))


def _holds_tensor(values, depth):
    for value in values:
        if isinstance(value, Tensor):
            return True
        if isinstance(value, (list, tuple)):
            if depth == MOST_AXES:  # deeper, or a list that holds itself
                raise ValueError(
                    f"lists are nested more deeply than the {MOST_AXES} axes that an array can have"
                )
            if _holds_tensor(value, depth + 1):
                return True
    return False


def joined(value):
    """Return a tensor for a list with tensors, other objects unchanged."""
    is_list = isinstance(value, (list, tuple)) and is_tensor(value)
    return convert_to_tensor(value) if is_list else value


_INSTEAD = {
    "where": "Select with cytape.numpy.where, or give a tensor as out=",
}


def is_given(value):
    """Return whether an optional parameter of a function of NumPy's was given."""
    return value is not None and value is not np._NoValue


def only_numpy(function, inputs, **parameters):
    """Return the given ones of `parameters`, which only NumPy's functions support.

    Raise a TypeError if there are any and an input is a tensor.
    """
    given = {name: value for name, value in parameters.items() if is_given(value)}
    if given and any(map(is_tensor, (*inputs, *given.values()))):
        instead = ". ".join([_INSTEAD[name] for name in given if name in _INSTEAD])
        raise TypeError(
            f"{function}: {', '.join(given)} {'are' if len(given) > 1 else 'is'} not supported for "
            "tensors" + (f". {instead}" if instead else "")
        )
    return given


def with_out(theirs, out, *args, **arguments):
    """Call a function of NumPy that writes its result to `out`, an array or a tensor."""
    if isinstance(out, Tensor) or not any(map(is_tensor, (*args, *arguments.values()))):
        return theirs(*args, out=out, **arguments)
    result = theirs(*args, **arguments)
    if np.shape(out) != np.shape(result):
        raise ValueError(
            f"{theirs.__name__}: out has shape {np.shape(out)}, the result {np.shape(result)}")
    return written_to_array(theirs.__name__, out, result)


def written_to_array(name, out, result, where=True):
    """Return an array after a result was written to it; raise if a derivative would be lost."""
    try:
        if type(out) is np.ndarray:
            np.copyto(out, np.asarray(result), "same_kind", np.asarray(where))
            return out
        cause = None
    except (DetachedError, SymbolicTensorError) as error:
        cause = error
    raise TypeError(
        f"{name}: out must be a tensor if an operand is a recorded or symbolic tensor, got "
        f"{type(out).__name__}: an array cannot hold the derivative of a tensor. Make it with "
        "cytape.numpy.empty inside of the tape or function, or use the returned tensor") from cause


def dtypes_of_operands(ufunc, operands, dtype=None, casting="same_kind"):
    """Return the dtypes to which a ufunc casts its operands, or raise its error."""
    given = [type(x) if type(x) in (int, float, complex) else
             x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype for x in operands]
    options = {} if dtype is None else {
        "signature": (*[None] * ufunc.nin, *[np.dtype(dtype)] * ufunc.nout)}
    return ufunc.resolve_dtypes(
        (*given, *[None] * ufunc.nout), casting=casting, **options)[: ufunc.nin]


def is_written(out, keywords):
    """Return whether a ufunc call has an `out`, as a keyword or after the operands."""
    return len(out) > 0 or keywords.get("out") is not None


def without_layout(keywords):
    """Return keywords of a ufunc without those that have no effect on tensors."""
    if "order" in keywords or "subok" in keywords:  # NumPy raises errors for invalid ones
        np.positive(0, **{name: keywords[name] for name in ("order", "subok") if name in keywords})
    return {name: x for name, x in keywords.items() if not (
        name in ("order", "subok") or name == "where" and x is True
        or name == "casting" and x == "same_kind")}


def tensors_if_any(values):
    """Return `values`, all of them as tensors if any of them is one."""
    if any(map(is_tensor, values)):
        return [convert_to_tensor(value) for value in values]
    return values


def axis_in_batch(axis, ndim):
    """Return the axes of a batch of tangents, of `ndim` axes, that `axis` of one tangent means.

    The batch axis is the first. None stands for all axes of a tangent.
    """
    if axis is None or ndim == 1:  # NumPy allows axis 0 of a 0-d array
        return tuple(range(1, ndim))
    if isinstance(axis, tuple | list):
        return tuple(axis_in_batch(one, ndim) for one in axis)
    return axis + 1 if axis >= 0 else axis


def wide(dtype):
    """Return the dtype for counts or sums of many elements: single precision for half."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def operand(x):
    """Return a tensor, or a list with one, as a tensor; other objects as arrays."""
    if type(x) is np.ndarray or type(x) is Tensor:
        return x
    return convert_to_tensor(x) if is_tensor(x) else plain_array(x)


def mask_for(x, where):
    """Return the `where` of a reduction of an array or tensor, as one of them; raise if unfit."""
    mask = operand(where)
    if mask.dtype != bool:
        raise TypeError(
            f"where must hold booleans, got {mask.dtype}: write a comparison, as where=mask != 0")
    shapes = mask.shape, x.shape
    if None not in shapes and None not in (*shapes[0], *shapes[1]) and (
            np.broadcast_shapes(*shapes) != x.shape):
        raise ValueError(f"where of the shape {mask.shape} does not fit an array of {x.shape}")
    return mask


def is_small(x):
    """Return whether a tensor is eager and so small that several ops are faster than a rule."""
    return x.graph is None and current_graph() is None and x.size <= SMALL


def values_of(x):
    """Return the values of an array or tensor, for decisions; None if it is symbolic."""
    if not is_tensor(x):
        return np.asarray(x)
    x = convert_to_tensor(x)
    return None if x.graph is not None else data_of(x)


def keeps_axes(keepdims):
    """Return whether a `keepdims` parameter is given and true."""
    return keepdims is not np._NoValue and shape_rules.is_set(keepdims)


def plain(value):
    """Return the data of a tensor that is a count or an index; other objects unchanged."""
    return np.asarray(value) if is_tensor(value) else value
