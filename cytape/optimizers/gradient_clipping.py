"""Limits on gradients: by value, by the norm of each, by the norm of all.

The functions take structures of arrays, tensors, IndexedSlices and None, also in graphs, and are
differentiable. The options of `Optimizer` of the same names do this within the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cytape.numpy as cnp
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.structures import leaves_of_operand, pack_parts
from cytape.tensor.tensor import Tensor

__all__ = ["clip_by_global_norm", "clip_by_norm", "clip_by_value", "global_norm"]


def clip_by_value(gradients: Any, low: float, high: float) -> Any:
    """Return gradients with elements limited to an interval; `IndexedSlices` become dense.

    Examples
    --------
    >>> from cytape.optimizers import clip_by_value
    >>> import numpy as np
    >>> clip_by_value({"w": np.array([-3.0, 0.5]), "b": None}, -1.0, 1.0)
    {'w': array([-1. ,  0.5]), 'b': None}
    """
    if not low <= high:
        raise ValueError(f"low must be at most high, got {low} and {high}")
    return _mapped(gradients, lambda gradient: cnp.clip(_dense(gradient), low, high))


def clip_by_norm(gradients: Any, limit: float) -> Any:
    """Return gradients, each scaled to at most a Euclidean norm.

    Examples
    --------
    >>> from cytape.optimizers import clip_by_norm
    >>> import numpy as np
    >>> clip_by_norm([np.array([3.0, 4.0]), np.array([0.5])], 1.0)
    [array([0.6, 0.8]), array([0.5])]
    """
    _require_positive(limit)
    return _mapped(gradients, lambda gradient: _scaled(gradient, _norm(gradient), limit))


def global_norm(gradients: Any) -> Any:
    """Return the Euclidean norm of all elements of gradients, in float64.

    Examples
    --------
    >>> from cytape.optimizers import global_norm
    >>> import numpy as np
    >>> float(global_norm([np.array([3.0]), None, np.array([[4.0]])]))
    5.0
    """
    norms = [_norm(gradient) for gradient in leaves_of_operand(gradients) if gradient is not None]
    if not norms:
        raise ValueError("there are no gradients: all are None")
    return _norm(cnp.stack(norms))


def clip_by_global_norm(gradients: Any, limit: float) -> tuple[Any, Any]:
    """Return gradients scaled to at most a norm of all elements, and the norm before.

    If the norm is not finite, all gradients become NaN.

    Examples
    --------
    >>> from cytape.optimizers import clip_by_global_norm
    >>> import numpy as np
    >>> clipped, norm = clip_by_global_norm([np.array([3.0]), np.array([4.0])], 1.0)
    >>> clipped, float(norm)
    ([array([0.6]), array([0.8])], 5.0)
    """
    _require_positive(limit)
    norm = global_norm(gradients)
    return _mapped(gradients, lambda gradient: _scaled(gradient, norm, limit)), norm


def _mapped(gradients: Any, function: Any) -> Any:
    return pack_parts(gradients, [
        None if gradient is None else function(gradient)
        for gradient in leaves_of_operand(gradients)])


def _dense(gradient: Any) -> Any:
    return gradient.to_tensor() if isinstance(gradient, IndexedSlices) else gradient


def _norm(gradient: Any) -> Any:
    gradient = cnp.ravel(_dense(gradient))  # slices of one index add up
    gradient = gradient.astype(np.result_type(gradient.dtype, np.float64))
    # Squares overflow. A power of two has no gradient, and the norm does not depend on it.
    largest = cnp.max(cnp.abs(gradient), initial=0.0)
    scale = cnp.exp2(cnp.floor(cnp.log2(
        cnp.where((largest > 0) & (largest < np.inf), largest, 1.0))))
    return scale * cnp.linalg.norm(gradient / scale)


def _scaled(gradient: Any, norm: Any, limit: float) -> Any:
    factor = cnp.where(cnp.isfinite(norm), limit / cnp.maximum(norm, limit), np.nan)
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(
            _scaled_values(gradient.values, factor), gradient.indices, gradient.dense_shape)
    return _scaled_values(gradient, factor)


def _scaled_values(values: Any, factor: Any) -> Any:
    if isinstance(values, IndexedSlices):
        return IndexedSlices(
            _scaled_values(values.values, factor), values.indices, values.dense_shape)
    if not isinstance(values, (np.ndarray, Tensor)):
        values = np.asarray(values)
    dtype = values.dtype if values.dtype.kind in "fc" else np.float64
    return cnp.multiply(values, cnp.asarray(factor).astype(dtype))


def _require_positive(limit: float) -> None:
    if isinstance(limit, dict) or np.ndim(limit):
        raise TypeError(
            f"the limit of a norm must be a number, got {type(limit).__name__}: the gradients come "
            "first, as in clip_by_norm(gradients, 1.0)")
    if not limit > 0:
        raise ValueError(f"the limit of a norm must be positive, got {limit}")
