"""Sums of sparse gradients, and their conversion to dense tensors."""

import math

import numpy as np

from cytape.ops.adjoints.identity_groups import add_n_op
from cytape.ops.creation import astype
from cytape.ops.indexing import gather, scatter_add
from cytape.ops.joining import concatenate
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.values.spec import UnknownShape
from cytape.tensor.values.user_warnings import warn

__all__ = ["aggregate_indexed_slices", "densify"]

MANY_ELEMENTS = 100_000_000


def densify(slices, expected=False):
    """Return the dense tensor of `slices`, which may be nested.

    Slices of the same index are summed. The result is differentiable with respect to the values.
    Warns if it is very large, unless `expected`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.sparse_sums import densify
    >>> densify(cytape.IndexedSlices(
    ...     cytape.constant([1.0, 2.0]), cytape.constant([0, 2]), dense_shape=(4,))).numpy()
    array([1., 0., 2., 0.])
    """
    shape = slices.dense_shape
    if shape is None or (None in shape and not isinstance(shape, UnknownShape)):
        raise ValueError(
            f"IndexedSlices of dense_shape {shape} cannot be made dense: pass the whole shape"
        )
    if not expected and (None in shape or math.prod(shape) >= MANY_ELEMENTS):
        count = "an unknown number of" if None in shape else math.prod(shape)
        warn(
            f"IndexedSlices of {count} elements are being made a dense tensor, which may take "
            "much memory"
        )
    slices = _flatten(slices)
    return scatter_add(slices.values, slices.indices, slices.dense_shape)


def aggregate_indexed_slices(gradients):
    """Return the sum of gradients, which stays sparse where all of them are sparse.

    Parameters
    ----------
    gradients : sequence of Tensor, IndexedSlices or None
        None stands for no contribution.

    Returns
    -------
    Tensor, IndexedSlices or None
        None if nothing contributes, a lone contribution as it is, the concatenation of several
        `IndexedSlices`, and the dense sum as soon as one contribution is dense.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.sparse_sums import aggregate_indexed_slices
    >>> one = cytape.IndexedSlices(cytape.constant([1.0]), cytape.constant([0]), (3,))
    >>> two = cytape.IndexedSlices(cytape.constant([2.0]), cytape.constant([2]), (3,))
    >>> aggregate_indexed_slices([one, None, two]).indices.numpy()
    array([0, 2])
    """
    gradients = [gradient for gradient in gradients if gradient is not None]
    if not gradients:
        return None
    if len(gradients) == 1:
        return gradients[0]
    if all(isinstance(gradient, IndexedSlices) for gradient in gradients):
        return _concatenate([_flatten(slices) for slices in gradients])
    return add_n_op(*map(_dense, gradients))


def _dense(gradient):
    return densify(gradient) if isinstance(gradient, IndexedSlices) else gradient


def _flatten(slices):
    """Return `slices` with dense values; nested slices compose their indices."""
    if not isinstance(slices.values, IndexedSlices):
        return slices
    inner = _flatten(slices.values)
    return IndexedSlices(inner.values, gather(slices.indices, inner.indices), slices.dense_shape)


def _concatenate(gradients):
    # TensorFlow leaves one index dtype alone; one fixed dtype makes the result predictable.
    return IndexedSlices(
        concatenate([slices.values for slices in gradients]),
        concatenate([astype(slices.indices, np.int64, copy=False) for slices in gradients]),
        next((s.dense_shape for s in gradients if s.dense_shape is not None), None),
    )
