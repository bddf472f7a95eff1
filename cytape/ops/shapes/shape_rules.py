"""Shape rules: specs of an op's outputs from the specs of its inputs.

A rule is called with the specs of the inputs and the op's attributes, and returns the spec of the
output (several outputs: a tuple). An unknown extent is None, and so is the shape of a tensor of
unknown rank. An output that always has the shape of an input shares its shape object: `spec_like`.
"""

import math
import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cytape.errors import SymbolicTensorError
from cytape.tensor.values.spec import spec_like, symbolic_spec

MOST_AXES = 64  # of an array of NumPy

# -- extents that may be None ----------------------------------------------------------------------


def product(extents):
    """Multiply extents; None if the result is not known."""
    extents = tuple(extents)
    if 0 in extents:
        return 0
    return None if None in extents else math.prod(extents)


def total(extents):
    """Add extents; None if one of them is not known."""
    extents = tuple(extents)
    return None if None in extents else sum(extents)


def times(extent, factor):
    """Multiply an extent by a number."""
    return 0 if factor == 0 else None if extent is None else extent * factor


def differ(a, b):
    """Return whether two extents are certainly not the same."""
    return a is not None and b is not None and a != b


def may_fit(a, b):
    """Return whether two shapes may be the same; None stands for any."""
    if a is None or b is None:
        return True
    return len(a) == len(b) and not any(map(differ, a, b))


def empty_of(shape):
    """Return an array of as many axes and, if any, of no elements: NumPy checks arguments on it."""
    return np.empty((0,) * len(shape), bool)


def axes_of(axis, ndim):
    """Return the axes that the ``axis`` parameter of a reduction means, not negative."""
    np.add.reduce(np.empty((0,) * ndim), axis)  # raises NumPy's error
    if axis is None or ndim == 0:  # NumPy allows axis 0 of a 0-d array
        return tuple(range(ndim))
    return normalize_axis_tuple(axis, ndim)


def is_set(flag):
    """Return whether a flag, any integer, is true; raise for other types."""
    return bool(flag if isinstance(flag, (bool, np.bool_)) else operator.index(flag))


def shape_of(spec, what):
    """Return the shape of a spec, or raise if not even its rank is known."""
    if spec.shape is None:
        raise SymbolicTensorError(
            f"{what} needs to know how many axes its operands have: give the placeholder a shape, "
            "in which extents may be None, or reshape the tensor"
        )
    return spec.shape


def broadcast(*shapes, what="broadcasting"):
    """Return the shape that shapes broadcast to; None stands for any rank."""
    if any(shape is None for shape in shapes):
        return None
    result = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        lead = len(result) - len(shape)
        for axis, extent in enumerate(shape, lead):
            have = result[axis]
            if extent == 1 or extent == have:
                continue
            if have == 1 or have is None:
                result[axis] = extent
            elif extent is not None:
                given = " and ".join(map(str, shapes))
                raise ValueError(f"{what}: shapes {given} cannot be broadcast to each other")
    return tuple(result)


def example(forward, *specs, **attrs):
    """Return the result dtype of an elementwise function, from a call with ones."""
    with np.errstate(all="ignore"):
        return np.asarray(forward(*[np.ones((), spec.dtype) for spec in specs], **attrs)).dtype


# -- outputs like inputs ---------------------------------------------------------------------------


def same(x, **_):
    """Infer the spec of the (first) input."""
    return x


def real_part(x):
    """Infer the spec of a real output in the shape of the input."""
    return spec_like(x, np.empty(0, x.dtype).real.dtype)


def cast(x, dtype):
    """Infer the spec of a cast."""
    return spec_like(x, np.dtype(dtype))


def like_second(x, like):
    """Infer the spec of the first input in the shape of another."""
    return spec_like(like, x.dtype)


def truth(*_, **__):
    """Infer the spec of one truth value."""
    return symbolic_spec((), bool)


def elementwise(forward):
    """Return the rule of an elementwise function that is not a ufunc."""

    def rule(*specs, **attrs):
        shaped = specs[0]
        if len(specs) > 1:
            shaped = broadcast_specs(specs, forward.__name__)
        return spec_like(shaped, example(forward, *specs, **attrs))

    return rule


def broadcast_specs(specs, what):
    """Return a spec of the shape that specs broadcast to, and of any dtype."""
    result = specs[0]
    for spec in specs[1:]:
        if spec.extents is not result.extents and spec.shape != ():
            if result.shape == () or (spec.known and spec.shape == result.shape):
                result = spec
            else:
                result = symbolic_spec(broadcast(result.shape, spec.shape, what=what), spec.dtype)
    return result


def where(condition, x, y):
    """Infer the spec of a selection from two inputs."""
    shaped = broadcast_specs((condition, x, y), "where")
    return spec_like(shaped, np.result_type(x.dtype, y.dtype))


def both_parts(ufunc):
    """Return the rule of a ufunc of one operand and two results."""
    return lambda x: tuple([
        spec_like(x, dtype) for dtype in ufunc.resolve_dtypes((x.dtype, None, None))[1:]])


def constant_like(x, *, shape=None, dtype=None, **_):
    """Infer the spec of a constant in the shape of the input, or in another."""
    dtype = x.dtype if dtype is None else np.dtype(dtype)
    return spec_like(x, dtype) if shape is None else symbolic_spec(as_shape(shape), dtype)


def as_shape(shape):
    """Return a shape, which may be one number, as a tuple of integers."""
    try:
        if not isinstance(shape, bool):
            return (operator.index(shape),)
    except SymbolicTensorError as error:
        raise no_number(shape) from error
    except TypeError:
        pass
    if not hasattr(shape, "__getitem__") or isinstance(shape, dict):
        raise TypeError(f"expected a sequence of integers or a single integer, got {shape!r}")
    try:
        extents = [n if n is None else operator.index(n) for n in shape]
    except SymbolicTensorError as error:
        raise no_number(shape) from error
    if any(n is True or n is False for n in shape):
        raise TypeError("an integer is required")
    return tuple(extents)


def no_number(shape):
    """Return the error for a shape that holds symbolic tensors, where numbers are needed."""
    return SymbolicTensorError(
        f"shape {shape}: an extent that is known only when the graph runs cannot be given as a "
        "tensor here. Take the whole shape of a tensor x that has it: cytape.numpy.zeros(x.shape), "
        "ones(x.shape) or full; random.normal(size=x.shape) for random numbers; "
        "cumsum(ones(x.shape)) - 1 for arange(n); diag(ones(x.shape)) for eye(n)")


# -- shapes ----------------------------------------------------------------------------------------


def known_extents(shape, what):
    """Return a requested shape as a tuple of integers, or raise if it has a None."""
    shape = as_shape(shape)
    if None in shape:
        raise SymbolicTensorError(
            f"{what} shape {shape}: an extent that is known only when the graph runs is None in "
            "tensor.shape. To reshape pass cytape.numpy.size(tensor, axis) for it, which is a "
            "tensor; to make or broadcast an array pass the whole shape, as in zeros(x.shape)"
        )
    return shape


def broadcast_to(x, shape):
    """Infer the spec of a broadcast to a shape."""
    shape = known_extents(shape, "broadcast_to")
    if x.shape is not None:
        lead = len(shape) - len(x.shape)
        if lead < 0 or any(
            n != 1 and differ(n, m) for n, m in zip(x.shape, shape[lead:], strict=True)
        ):
            raise ValueError(f"shape {x.shape} cannot be broadcast to shape {shape}")
    return symbolic_spec(shape, x.dtype)


def to_shape(x, like=None, *, shape=None):
    """Infer the spec of a sum to a shape, or to that of another input."""
    if like is not None:
        return like_second(x, like)
    return symbolic_spec(known_extents(shape, "sum to"), x.dtype)


def reshape(x, shape, order="C", **_):
    """Infer the spec of a reshape."""
    shape = known_extents(shape, "reshape to")
    size = None if x.shape is None else product(x.shape)
    if any(n < 0 for n in shape):  # NumPy takes any negative number for -1
        rest = product(n for n in shape if n >= 0)
        fits = sum(n < 0 for n in shape) == 1 and (
            size is None or rest is None or (rest and not size % rest))
        extent = size // rest if fits and size is not None and rest else None
        result = tuple([extent if n < 0 else n for n in shape])
    else:
        fits, result = not differ(size, product(shape)), shape
    if not fits:
        raise ValueError(f"cannot reshape a tensor of shape {x.shape} into shape {shape}")
    return symbolic_spec(result, x.dtype)


def squeeze(x, axis):
    """Infer the spec of `squeeze`."""
    shape = x.shape
    if shape is None or (axis is None and None in shape):  # it may be 1 or not
        return symbolic_spec(None, x.dtype)
    if axis is None:
        axes = [i for i, n in enumerate(shape) if n == 1]
    else:
        np.squeeze(np.broadcast_to(True, [1 if n is None else n for n in shape]), axis)  # may raise
        axes = axes_of(axis, len(shape))
    return symbolic_spec([n for i, n in enumerate(shape) if i not in axes], x.dtype)


def expand_dims(x, axis):
    """Infer the spec of `expand_dims`."""
    shape = x.shape
    if shape is None:
        return symbolic_spec(None, x.dtype)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    axes = normalize_axis_tuple(axes, len(shape) + len(axes))
    rest = iter(shape)
    return symbolic_spec(
        [1 if i in axes else next(rest) for i in range(len(shape) + len(axes))], x.dtype
    )


def at_least(ndim):
    """Return the rule of `atleast_1d` and similar functions."""

    def rule(x):
        shape = shape_of(x, f"atleast_{ndim}d")
        if len(shape) >= ndim:
            return x
        before, after = {1: [(1, 0)], 2: [(2, 0), (1, 0)], 3: [(3, 0), (1, 1), (0, 1)]}[ndim][
            len(shape)
        ]
        return symbolic_spec((1,) * before + shape + (1,) * after, x.dtype)

    return rule


def transpose(x, axes):
    """Infer the spec of a transpose."""
    return _in_order_of(np.transpose, x, axes)


def swap_axes(x, axis1, axis2):
    """Infer the spec of `swapaxes`."""
    return _in_order_of(np.swapaxes, x, axis1, axis2)


def rot90(x, k, axes):
    """Infer the spec of `rot90`."""
    return _in_order_of(np.rot90, x, k, axes)


def _in_order_of(function, x, *arguments):
    """Return the spec with its axes in the order that a function of NumPy gives them."""
    shape = shape_of(x, function.__name__)
    order = order_of_axes(function, len(shape), *arguments)
    return symbolic_spec([shape[i] for i in order], x.dtype)


def order_of_axes(function, n_axes, *arguments):
    """Return the numbers of axes in the order that a function of NumPy gives them."""
    strides = range(n_axes)
    numbered = np.lib.stride_tricks.as_strided(np.empty(0, bool), n_axes * (0,), strides)
    return tuple(map(abs, function(numbered, *arguments).strides))


def flip(x, axis=None, **_):
    """Infer the spec of the input; raise for an invalid axis."""
    if x.shape is not None:
        np.flip(empty_of(x.shape), axis)
    return x


def roll(x, shift, axis):
    """Infer the spec of the input; raise for an invalid axis."""
    if x.shape is not None:
        np.roll(empty_of(x.shape), shift, axis)
    return x


def tile(x, reps):
    """Infer the spec of `tile`."""
    shape = shape_of(x, "tile")
    reps = np.atleast_1d(reps).tolist() if not isinstance(reps, tuple | list) else list(reps)
    ndim = max(len(shape), len(reps))
    reps = [1] * (ndim - len(reps)) + reps
    shape = (1,) * (ndim - len(shape)) + shape
    return symbolic_spec([*map(times, shape, reps)], x.dtype)


def repeat(x, repeats, axis):
    """Infer the spec of `repeat` with one count."""
    shape = list(shape_of(x, "repeat"))
    np.repeat(empty_of(shape), 1, axis)  # raises for an invalid axis
    shape[axis] = times(shape[axis], int(np.asarray(repeats).item()))
    return symbolic_spec(shape, x.dtype)


def pad(x, pad_width, **_):
    """Infer the spec of `pad`."""
    shape = shape_of(x, "pad")
    return symbolic_spec(
        [total((n, *width)) for n, width in zip(shape, pad_width, strict=True)], x.dtype
    )


def triangle(x, k):
    """Infer the spec of a triangle of a matrix; a vector becomes the rows of a square matrix."""
    shape = shape_of(x, "tril and triu")
    return symbolic_spec(shape * 2, x.dtype) if len(shape) == 1 else x


def diagonal(x, offset, axis1, axis2):
    """Infer the spec of diagonals of matrices."""
    shape = shape_of(x, "diagonal")
    np.diagonal(empty_of(shape), offset, axis1, axis2)  # raises for invalid axes
    rows, columns = axis1 % len(shape), axis2 % len(shape)
    length = None
    if shape[rows] is not None and shape[columns] is not None:
        length = max(min(shape[rows] + min(offset, 0), shape[columns] - max(offset, 0)), 0)
    rest = [n for i, n in enumerate(shape) if i not in (rows, columns)]
    return symbolic_spec([*rest, length], x.dtype)


# -- reductions ------------------------------------------------------------------------------------


def reduced_shape(x, axis, keepdims):
    """Return the shape of a reduction's result; None if the rank is unknown."""
    shape = x.shape
    if keepdims is not False and keepdims is not True:
        keepdims = is_set(keepdims)
    if shape is None:
        axes_of(axis, MOST_AXES)
        return () if axis is None and not keepdims else None
    axes = axes_of(axis, len(shape))
    if keepdims:
        return tuple([1 if i in axes else n for i, n in enumerate(shape)])
    return tuple([n for i, n in enumerate(shape) if i not in axes])


def reduction(forward, *keys):
    """Return the rule of a reduction, whose attributes `keys` (and dtype) decide the dtype."""

    def rule(x, axis=None, keepdims=False, **attrs):
        shape = reduced_shape(x, axis, keepdims)
        options = {key: attrs[key] for key in ("dtype", *keys) if attrs.get(key) is not None}
        return symbolic_spec(shape, _reduced_dtype(forward, x, options))

    return rule


def _reduced_dtype(forward, x, options):
    if x.trainable and not options:
        return x.dtype
    return np.asarray(forward(np.ones(2, x.dtype), **options)).dtype


def spread(x, axis=None, keepdims=False, dtype=None, ddof=0, **_):
    """Infer the spec of a variance or standard deviation, which are real."""
    if dtype is not None:
        dtype = np.asarray(np.var(np.ones(2, x.dtype), dtype=dtype)).dtype
    else:
        dtype = np.ones(0, x.dtype).real.dtype if x.trainable else np.dtype(float)
    return symbolic_spec(reduced_shape(x, axis, keepdims), dtype)


def to_integers(x, axis=None, keepdims=False, **_):
    """Infer the spec of positions or counts."""
    return symbolic_spec(reduced_shape(x, axis, keepdims), np.intp)


def to_truth(x, axis=None, keepdims=False, **_):
    """Infer the spec of truth values."""
    return symbolic_spec(reduced_shape(x, axis, keepdims), bool)


def accumulation(forward):
    """Return the rule of a cumulative sum or product."""

    def rule(x, axis=0, dtype=None, **_):
        shape = shape_of(x, forward.__name__)
        np.cumsum(empty_of(shape or (0,)), axis)  # raises for an invalid axis
        if dtype is None and x.trainable:
            return x
        return spec_like(x, forward(np.ones(1, x.dtype), dtype=dtype).dtype)

    return rule


def vector_norm(x, *, ord, axis, keepdims):
    """Infer the spec of norms."""
    dtype = np.ones(0, x.dtype).real.dtype if x.trainable else np.dtype(float)
    return symbolic_spec(reduced_shape(x, axis, keepdims), dtype)


# -- products --------------------------------------------------------------------------------------


def matmul(a, b, **_):
    """Infer the spec of a product of matrices or vectors, or of stacks of them."""
    left, right = shape_of(a, "matmul"), shape_of(b, "matmul")
    dtype = a.dtype if a.dtype is b.dtype else np.result_type(a.dtype, b.dtype)
    mistake = f"matmul of tensors of shapes {left} and {right}: they do not fit"
    if not left or not right or differ(left[-1], right[-2 if len(right) > 1 else 0]):
        raise ValueError(mistake)
    try:
        lead = broadcast(left[:-2], right[:-2])
    except ValueError:
        raise ValueError(mistake) from None
    return symbolic_spec(
        (*lead, *left[-2:-1], *(right[-1:] if len(right) > 1 else ())), dtype
    )


def tensordot(a, b, *, axes):
    """Infer the spec of sums of products over given axes."""
    left, right = shape_of(a, "tensordot"), shape_of(b, "tensordot")
    if len(axes[0]) != len(axes[1]) or any(
        differ(left[i], right[j]) for i, j in zip(*axes, strict=True)
    ):
        raise ValueError(f"tensordot of shapes {left} and {right}: shape-mismatch for sum")
    free = [n for i, n in enumerate(left) if i not in axes[0]]
    free += [n for i, n in enumerate(right) if i not in axes[1]]
    return symbolic_spec(free, np.result_type(a.dtype, b.dtype))
