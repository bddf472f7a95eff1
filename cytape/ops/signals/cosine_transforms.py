"""Cosine, sine and Hankel transforms of `scipy.fft`.

The matrices of types 1 and 4 are symmetric and those of types 2 and 3 are transposes of each other,
up to the weight of an element at an end (Strang, "The discrete cosine transform" (1999)). The
weights are 1 if `orthogonalize` holds.
"""

from typing import Any

import numpy as np
import scipy.fft
from numpy.lib.array_utils import normalize_axis_index

from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import linear
from cytape.ops.shaping import ndim
from cytape.ops.signals.fourier_transforms import (
    checked,
    lengths_and_axes,
    named,
    other_norm,
)
from cytape.ops.submodules.cut_or_pad import cut_or_pad_op
from cytape.ops.submodules.matrix_parts import real_dtype
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.spec import spec_like

__all__ = ["dct", "dctn", "dst", "dstn", "fht", "idct", "idctn", "idst", "idstn", "ifht"]


def _transformed(x, *, kind, type, axis, norm, orthogonalize):
    function = scipy.fft.dct if kind == "dct" else scipy.fft.dst
    return function(x, type, None, axis, norm, orthogonalize=orthogonalize)


def _weighted(op, x, factor):
    """Multiply the elements at the ends that the transform counts differently from the others."""
    attrs = op.attrs
    if attrs["orthogonalize"] or attrs["type"] == 4 or attrs["kind"] == "dst" and (
            attrs["type"] == 1):
        return x
    n, axis = op.input_specs[0].shape[attrs["axis"]], attrs["axis"]
    weights = np.ones(n, real_dtype(x.dtype))
    if attrs["type"] == 1:
        weights[[0, -1]] = factor
    else:
        weights[0 if attrs["kind"] == "dct" else -1] = factor
    return x * weights.reshape(-1, *[1] * (op.input_specs[0].ndim - 1 - axis))


def _transpose(op, g):
    attrs = op.attrs
    if attrs["axis"] is None or op.input_specs[0].shape[attrs["axis"]] is None:
        return NotImplemented
    other = {2: 3, 3: 2}.get(attrs["type"], attrs["type"])
    if attrs["type"] in (1, 2):
        g = _weighted(op, g, 2)
    g = transform_op(g, **{**attrs, "type": other})
    return _weighted(op, g, 0.5) if attrs["type"] in (1, 3) else g


def _spec(x, *, kind, type, norm, **_):
    function = scipy.fft.dct if kind == "dct" else scipy.fft.dst
    return spec_like(x, function(np.zeros(2, x.dtype), type, norm=norm).dtype)


transform_op = linear(
    "ScipyFftCosineSine", _transformed, transpose=_transpose, shape_rule=_spec,
    batch=batch_axis.along_axis)


def _along(x, kind, type, n, axis, norm, orthogonalize):
    axis = normalize_axis_index(axis, ndim(x))
    if n is not None and n < 1:
        raise ValueError(f"invalid number of data points ({n}) specified")
    if n is not None and x.shape[axis] != n:
        x = cut_or_pad_op(x, axis=axis, n=n)
    if orthogonalize is None or x.dtype.kind == "c":  # SciPy ignores it for complex numbers
        orthogonalize = norm == "ortho"
    return transform_op(
        x, kind=kind, type=type, axis=axis, norm=norm, orthogonalize=bool(orthogonalize))


def _type_and_norm(is_inverse, type, norm):
    if type not in (1, 2, 3, 4):
        raise ValueError("Type must be 1, 2, 3 or 4")
    inverse_norm = other_norm(norm)
    return ({2: 3, 3: 2}.get(type, type), inverse_norm) if is_inverse else (type, norm)


def _one_axis(name):
    kind, is_inverse = name.removeprefix("i"), name.startswith("i")

    def transform(x, type=2, n=None, axis=-1, norm=None, overwrite_x=False, workers=None,
                  orthogonalize=None):
        checked(workers)
        if orthogonalize is None:
            orthogonalize = norm == "ortho"
        type, norm = _type_and_norm(is_inverse, type, norm)
        return _along(convert_to_tensor(x), kind, type, n, axis, norm, orthogonalize)

    return named(name, transform)


def _several_axes(name):
    kind, is_inverse = name.removeprefix("i").removesuffix("n"), name.startswith("i")

    def transform(x, type=2, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *,
                  orthogonalize=None):
        checked(workers)
        if orthogonalize is None:
            orthogonalize = norm == "ortho"
        type, norm = _type_and_norm(is_inverse, type, norm)
        x = convert_to_tensor(x)
        for n, axis in lengths_and_axes(x, s, axes, scipy.fft.dctn):
            x = _along(x, kind, type, n, axis, norm, orthogonalize)
        return x

    return named(name, transform)


dct, idct, dst, idst = map(_one_axis, ["dct", "idct", "dst", "idst"])
dctn, idctn, dstn, idstn = map(_several_axes, ["dctn", "idctn", "dstn", "idstn"])

# The matrix of a Hankel transform is symmetric: circulant with its rows reversed, between the same
# diagonal factors.
def _hankel(a, *, inverse, **options):
    return (scipy.fft.ifht if inverse else scipy.fft.fht)(a, **options)


hankel_op = linear(
    "ScipyFftHankel", _hankel,
    transpose=lambda op, g: hankel_op(g, **op.attrs),
    shape_rule=lambda a, **options: spec_like(a, _hankel(np.ones(2, a.dtype), **options).dtype),
    batch=batch_axis.stacked)


@numpy_function(scipy.fft.fht)
def fht(a, dln, mu, offset=0.0, bias=0.0) -> Any:
    """Return the fast Hankel transform, as `scipy.fft.fht`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.fft import fht
    >>> cytape.grad(lambda a: np.sum(fht(a, dln=0.1, mu=0.5)))(np.ones(8)).shape
    (8,)
    """
    return hankel_op(a, inverse=False, dln=dln, mu=mu, offset=offset, bias=bias)


@numpy_function(scipy.fft.ifht)
def ifht(A, dln, mu, offset=0.0, bias=0.0) -> Any:  # noqa: N803 (SciPy's name)
    """Return the inverse of `fht`, as `scipy.fft.ifht`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.fft import fht, ifht
    >>> float(ifht(fht(cytape.constant(np.ones(8)), 0.1, 0.5), 0.1, 0.5)[0].numpy().round(9))
    1.0
    """
    return hankel_op(A, inverse=True, dln=dln, mu=mu, offset=offset, bias=bias)
