"""Look-ups in tables of embeddings, and scaled dot-product attention."""

import math
from typing import Any

import numpy as np

from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.comparisons import any as any_of
from cytape.ops.comparisons import logical_and
from cytape.ops.constants import ones_like
from cytape.ops.elementwise import where
from cytape.ops.indexing import gather
from cytape.ops.matrix_products import matmul
from cytape.ops.neural.neural_ops import dropout, floating, softmax
from cytape.ops.rearranging import tril
from cytape.ops.shaping import shape, swapaxes

__all__ = ["embedding_lookup", "scaled_dot_product_attention"]


def embedding_lookup(params, ids) -> Any:
    """Return the rows of a table at integers of any shape; `cytape.gather` by TensorFlow's name.

    The gradient in the table is an `IndexedSlices`, which optimizers apply to its rows alone.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> table = cytape.Variable([[1.0, 2.0], [3.0, 4.0]])
    >>> with cytape.GradientTape() as tape:
    ...     loss = np.sum(cytape.nn.embedding_lookup(table, [1, 1]))
    >>> tape.gradient(loss, table).indices
    Tensor([1, 1], dtype=int64)
    """
    ids = joined(ids) if is_tensor(ids) else np.asarray(ids)
    if ids.dtype.kind not in "iu":
        if ids.size or ids.dtype.kind != "f":  # an empty list is an array of floats
            raise TypeError(f"ids must be integers, got {ids.dtype}")
        ids = ids.astype(np.intp)
    return gather(joined(params), ids)


def scaled_dot_product_attention(
    query, key, value, mask=None, is_causal=False, dropout_rate=0.0, scale=None, seed=None
) -> Any:
    """Return means of values, weighted by the softmax of products of queries and keys.

    Parameters
    ----------
    query : array_like
        Of shape (..., queries, depth).
    key : array_like
        Of shape (..., keys, depth).
    value : array_like
        Of shape (..., keys, depth of values).
    mask : array_like, optional
        Broadcast to (..., queries, keys): booleans, true where a query may see a key, or numbers
        that are added to the products.
    is_causal : bool, optional
        Whether query i sees the keys 0 to i only.
    dropout_rate : float, optional
        As for `dropout`, of the weights.
    scale : float, optional
        Factor of the products, by default ``1 / sqrt(depth)``.
    seed : int, optional
        As for `dropout`.

    Returns
    -------
    Tensor or ndarray
        Of shape (..., queries, depth of values); zeros for a query that sees no key, be it that
        -inf is added to the products.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> x = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> cytape.nn.scaled_dot_product_attention(x, x, x, is_causal=True).round(3)
    array([[1.  , 0.  ],
           [0.33, 0.67]])
    """
    query, key, value = floating(query), floating(key), floating(value)
    if scale is None:
        depth = shape(query)[-1]
        if depth is None:
            raise ValueError(f"the depth of queries must be known, got shape {shape(query)}; or "
                             "pass scale")
        scale = 1 / math.sqrt(depth)
    products = matmul(query * scale, swapaxes(key, -1, -2))
    seen = _causal(products) if is_causal else None
    if mask is not None:
        mask = joined(mask) if is_tensor(mask) else np.asarray(mask)
        if mask.dtype.kind == "b":
            seen = mask if seen is None else logical_and(mask, seen)
        else:
            products = products + mask
    if seen is not None:
        products = where(seen, products, -np.inf)
    if mask is not None:  # where a query sees nothing, the softmax would be NaN
        sees = any_of(products != -np.inf, -1, keepdims=True)
        products = where(sees, products, 0)
    weights = dropout(softmax(products), dropout_rate, seed)
    result = matmul(weights, value)
    return result if mask is None else where(sees, result, 0)


def _causal(products):
    """Return which keys each query sees."""
    extents = shape(products)[-2:]
    if None in extents:
        return tril(ones_like(products)) > 0
    return np.greater_equal.outer(*map(np.arange, extents))
