"""Convolution and correlation of sequences.

Both are bilinear. The op "convolve" computes a given mode; overlaps that the modes "same" and
"valid" omit get a gradient of 0.
"""

from typing import Any

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import operand, wide
from cytape.ops.elementwise import conj, where
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import multilinear
from cytape.ops.rearranging import flip, pad_op
from cytape.ops.reductions import sum
from cytape.ops.shaping import ndim, reshape, shape
from cytape.tensor import Tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["convolve", "correlate"]


BLOCK = 2048  # elements: those of two operands of doubles fit into the first cache


def _start(n, m, mode):
    """Return the first overlap, and the number of overlaps, in a mode of `convolve`."""
    if mode == "full":
        return 0, n + m - 1
    if mode == "same":
        return (min(n, m) - 1) // 2, max(n, m)
    return min(n, m) - 1, max(n, m) - min(n, m) + 1


def _all_overlaps(op, g):
    """Pad a gradient with zeros for the omitted overlaps."""
    if op.attrs["mode"] == "full":
        return g
    (n,), (m,) = op.input_specs[0].shape, op.input_specs[1].shape
    if n is None or m is None:
        return None
    start, count = _start(n, m, op.attrs["mode"])
    return g if count == n + m - 1 else np.pad(g, (start, n + m - 1 - start - count))


def _shorter(op):
    """Return the position of the shorter operand in the mode "valid", if it is known."""
    (n,), (m,) = op.input_specs[0].shape, op.input_specs[1].shape
    return None if op.attrs["mode"] != "valid" or None in (n, m) else int(m <= n)


def _back(op, position, product, g, other):
    """Return the gradient of an operand: a correlation of g with the other operand."""
    if type(g) is np.ndarray:
        product = ARRAY_PRODUCTS[product]
    shorter = _shorter(op)
    if shorter is not None:
        return product(g, other, mode="valid" if shorter == position else "full")
    g = _all_overlaps(op, g)
    return NotImplemented if g is None else product(g, other, mode="valid")


def _correlate(a, v, mode):
    """Return `numpy.correlate` of `a` and the conjugate of `v`."""
    v = v.conj() if v.dtype.kind == "c" else v
    return _long_overlaps(a, v) if mode == "valid" and min(a.size, v.size) > BLOCK else (
        np.correlate(a, v, mode))


def _long_overlaps(a, v):
    """Return the correlation in the mode "valid", by blocks that fit into the cache.

    For the gradient of a short operand, where NumPy reads both long arrays once per element.
    """
    if a.size < v.size:
        return _long_overlaps(v, a)[::-1].conj()
    dtype = np.result_type(a, v)
    # Partial sums in half precision would be rounded or overflow, unlike NumPy's.
    a, v = (x.astype(wide(dtype), copy=False) for x in (a, v))
    total = np.zeros(a.size - v.size + 1, a.dtype)
    with np.errstate(all="ignore"):  # NumPy does not warn
        for start in range(0, v.size, BLOCK):
            part = v[start : start + BLOCK]
            total += np.correlate(a[start : start + part.size + total.size - 1], part, "valid")
        return total.astype(dtype, copy=False)


def _convolve(a, v, mode):
    """Return `numpy.convolve` of arrays, without its conversions."""
    if mode == "same" or not (a.size and v.size):
        return np.convolve(a, v, mode)  # or its error
    if v.size > a.size:
        a, v = v, a
    return _correlate(a, v[::-1], mode)


def _swapped(v, a, mode):
    return correlate_op(a, v, mode=mode)


def _convolve_spec(a, v, *, mode):
    (n,), (m,) = a.shape, v.shape
    known = n is not None and m is not None
    extent = _start(n, m, mode)[1] if known else None
    return symbolic_spec((extent,), np.result_type(a.dtype, v.dtype))


# Up to this number of products, batches are convolved by gathered windows; beyond it NumPy's loop,
# called for one member after the other, is faster.
MOST_PRODUCTS = 512


def _in_batch(call):
    """Multiply the windows of the longer sequence with the shorter."""
    specs, inputs = call.input_specs, call.inputs
    if call.op is correlate_op:
        inputs = [inputs[0], flip(inputs[1], -1)]
    if not all(spec.known for spec in specs) or type(inputs[0]) is np.ndarray:
        return NotImplemented  # NumPy's loop is as fast for arrays
    long, short = (0, 1) if specs[0].size >= specs[1].size else (1, 0)
    n, m = specs[long].size, specs[short].size
    before, after = {
        "full": (m - 1, m - 1), "same": (m - 1 - (m - 1) // 2, (m - 1) // 2), "valid": (0, 0),
    }[call.attrs["mode"]]
    count = before + n + after - m + 1
    if count * m > MOST_PRODUCTS:
        return NotImplemented
    x = pad_op(inputs[long], pad_width=((0, 0),) * call.mapped[long] + ((before, after),))
    places = np.arange(count)[:, None] + np.arange(m)
    inside = (places >= before) & (places < before + n)
    # `where` excludes infinities; False is a zero of any dtype, and integer sums keep their dtype.
    products = x[..., places] * where(inside, flip(inputs[short], -1)[..., None, :], False)
    return sum(products, -1, products.dtype)


def _n_products(a, v, out):
    """Return the number of products; for the mode "same", an upper bound."""
    return min(a[0], v[0]) * min(max(a[0], v[0]), out[0])


convolve_op = multilinear(
    "Convolve", _convolve, lambda op, g, v: _back(op, 0, correlate_op, g, v),
    lambda op, a, g: _back(op, 1, correlate_op, g, a), shape_rule=_convolve_spec, batch=_in_batch,
    is_product=True, work=_n_products)
# Convolution with the reversed v, not its conjugate: the op must be linear.
correlate_op = multilinear(
    "Correlate", _correlate, lambda op, g, v: _back(op, 0, convolve_op, g, v),
    lambda op, a, g: _back(op, 1, _swapped, g, a), shape_rule=_convolve_spec, batch=_in_batch,
    is_product=True, work=_n_products)
ARRAY_PRODUCTS = {  # for arrays, without the op's call
    convolve_op: _convolve, correlate_op: _correlate,
    _swapped: lambda v, a, mode: _correlate(a, v, mode)}


def _operands(a, v, name):
    if type(a) is type(v) is Tensor and a.graph is v.graph is None and a.ndim == v.ndim == 1 and (
            a.shape[0] and v.shape[0]):
        return a, v
    a, v = together(*map(operand, (a, v)))
    a, v = (reshape(x, (1,)) if ndim(x) == 0 else x for x in (a, v))
    for x, which in ((a, "first"), (v, "second")):
        if ndim(x) != 1:
            raise ValueError(f"{name}: the {which} operand has {ndim(x)} axes, not one")
        if shape(x)[0] == 0:
            raise ValueError(f"{'a' if which == 'first' else 'v'} cannot be empty")
    return a, v


def _mode(mode):
    if mode in ("valid", "same", "full"):
        return mode
    if mode in (0, 1, 2):
        return ("valid", "same", "full")[mode]
    np.convolve([1.0], [1.0], mode)  # raises NumPy's error
    return mode


@numpy_function(np.convolve, "a", "v")
def convolve(a, v, mode="full") -> Any:
    """Convolve two sequences, as `numpy.convolve`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.convolve(x, [1.0, 2.0], "valid")[0])(np.ones(3))
    array([2., 1., 0.])
    """
    return convolve_op(*_operands(a, v, "convolve"), mode=_mode(mode))


@numpy_function(np.correlate, "a", "v")
def correlate(a, v, mode="valid") -> Any:
    """Correlate two sequences, as `numpy.correlate`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.correlate(x, [1.0, 2.0])[0])(np.ones(3))
    array([1., 2., 0.])
    """
    if not ndim(a) or not ndim(v):
        raise ValueError("correlate: both operands must have one axis, and one of them is a number")
    a, v = _operands(a, v, "correlate")
    v = conj(v) if v.dtype.kind == "c" else v
    mode = _mode(mode)
    (n,), (m,) = shape(a), shape(v)
    if mode == "same" and (n is None or m is None or m > n):
        if n is None or m is None:
            raise SymbolicTensorError(
                "correlate: in mode 'same' the lengths of both operands must be known: give the "
                "placeholder a shape, or reshape the tensor to a known one")
        start = n + m - 1 - _start(n, m, mode)[0] - m
        return correlate_op(a, v, mode="full")[start:start + m]
    return correlate_op(a, v, mode=mode)
