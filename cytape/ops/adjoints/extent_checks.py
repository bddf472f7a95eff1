"""Conditions on extents, checked immediately, or when the graph runs if they are unknown."""

import numpy as np
from numpy.linalg import LinAlgError

from cytape.errors import GraphError
from cytape.ops.adjoints.identity_groups import may_agree
from cytape.ops.engine.op_kinds import linear, passing
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["ensure_shape", "with_extents", "with_shape_of"]

_ERRORS = {error.__name__: error for error in (
    IndexError, LinAlgError, RuntimeError, TypeError, ValueError)}


def with_extents(x, error, message, *, like=None, same=(), least=(), multiple=()):
    """Return `x` if some conditions on its extents hold, or raise.

    If a graph does not know the extents, it returns the output of an op that checks them.

    Parameters
    ----------
    x : Tensor or array_like
    error : type
        ValueError, TypeError, IndexError, RuntimeError or LinAlgError.
    message : str
    like : Tensor or array_like, optional
        Another array.
    same : tuple of (int, int) or None
        Axes, of `x` and of `like`, that must be as long as each other; None: all of both.
    least, multiple : tuple of (int, int)
        Axes of `x`, and numbers that they must have at least, or be multiples of.

    Examples
    --------
    >>> with_extents(np.ones(4), ValueError, "odd", multiple=((0, 2),)).shape
    (4,)
    >>> with_extents(np.ones(3), ValueError, "odd", multiple=((0, 2),))
    Traceback (most recent call last):
        ...
    ValueError: odd
    """
    like = x if like is None else like
    conditions = {"same": same if same is None else tuple(same), "least": tuple(least),
                  "multiple": tuple(multiple), "error": error.__name__, "message": message}
    if _known_to_hold(_shape(x), _shape(like), **conditions):
        return x
    return checked_extents_op(convert_to_tensor(x), convert_to_tensor(like), **conditions)


def with_shape_of(like, x, error, message):
    """Return `x` if it has the shape of another array, or raise, as `with_extents`."""
    return with_extents(x, error, message, like=like, same=None)


def _shape(x):
    return x.shape if hasattr(x, "shape") else np.shape(x)


def _known_to_hold(shape, other, *, same, least, multiple, error, message):
    """Return whether all conditions are known to hold; raise if one does not."""
    def extent(shape, axis):
        return None if shape is None else shape[axis]

    if same is not None:
        pairs = [(extent(shape, i), extent(other, j)) for i, j in same]
    elif shape is None or other is None:
        pairs = [(None, None)]
    else:
        pairs = [(len(shape), len(other)), *zip(shape, other, strict=False)]
    holds = [
        *[None if n is None or m is None else n == m for n, m in pairs],
        *[None if (n := extent(shape, i)) is None else n >= number for i, number in least],
        *[None if (n := extent(shape, i)) is None else n % number == 0 for i, number in multiple]]
    if False in holds:
        raise _ERRORS[error](message)
    return None not in holds


def _checked(x, like, **conditions):
    _known_to_hold(x.shape, like.shape, **conditions)
    return x


def _checked_in_batch(call):
    same = call.attrs["same"]
    if same is None:  # all axes
        if any(spec.shape is None for spec in call.input_specs):
            return NotImplemented
        same = tuple([(i, i) for i in range(call.input_specs[0].ndim)])
    if not call.mapped[0]:
        return NotImplemented
    later = {name: tuple([(i + 1, n) for i, n in call.attrs[name]])
             for name in ("least", "multiple")}
    later["same"] = tuple([(i + 1, j + call.mapped[1]) for i, j in same])
    return call.again(call.inputs, **later)


checked_extents_op = passing(
    "CheckedExtents", _checked, shape_rule=_checked, batch=_checked_in_batch, makes_views=True)


def ensure_shape(x, shape, message=None):
    """Return a symbolic tensor with the extents that the caller knows.

    Parameters
    ----------
    x : Tensor
    shape : sequence of (int or None), or None
        None: nothing is known, of one extent or of all.
    message : str, optional
        Of the ValueError where an extent differs; ``{}`` stands for that extent. By default, a
        GraphError names both shapes.

    Examples
    --------
    >>> import cytape
    >>> with cytape.Graph().as_default():
    ...     x = cytape.placeholder(float, (None, 2))
    ...     ensure_shape(x, (3, None)).shape
    (3, 2)
    """
    if shape is None or _ensured_spec(x.spec, shape, message) is x.spec:
        return x
    return ensure_shape_op(
        x, shape=tuple(shape), **({} if message is None else {"message": message}))


def _ensured(x, shape, message=None):
    actual = np.shape(x)
    if may_agree(actual, shape):
        return x
    if message is None:
        raise GraphError(f"a value of shape {shape} was expected, got one of {actual}")
    raise ValueError(message.format(*[
        n for n, m in zip(actual, shape, strict=True) if None not in (n, m) and n != m]))


def _ensured_spec(x, shape, message=None):
    _ensured(x, shape, message)
    own = (None,) * len(shape) if x.shape is None else tuple(x.shape)
    known = tuple([m if n is None else n for n, m in zip(own, shape, strict=True)])
    return x if x.shape is not None and known == own else symbolic_spec(known, x.dtype)


ensure_shape_op = linear(
    "EnsureShape", _ensured, lambda op, g: g,
    batched=lambda x, *, shape, **message: ensure_shape_op(x, shape=(None, *shape), **message),
    shape_rule=_ensured_spec, lowering="SHOWN")
