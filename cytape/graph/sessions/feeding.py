"""Fed values: conversion to arrays, and checks against the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cytape.tensor.references import TensorReference
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.plain_arrays import plain_array

if TYPE_CHECKING:
    from cytape.graph.model.graph import Graph

_KINDS = "biufc"  # each converts to later ones, unsigned and signed integers to each other


def checked_feeds(graph: Graph, feed_dict: Any) -> dict[int, np.ndarray]:
    """Return the fed arrays, by symbol.

    Parameters
    ----------
    graph : Graph
    feed_dict : mapping or iterable of pairs, or None
        Values for tensors, which are given as themselves, by name or by reference.

    Raises
    ------
    ValueError
        If a value has not the shape of its tensor, or a tensor is fed twice.
    TypeError
        If a conversion to the dtype of the tensor would round a value.
    """
    feeds: dict[int, np.ndarray] = {}
    for key, value in _pairs(feed_dict):
        tensor = key.deref() if isinstance(key, TensorReference) else key
        tensor = graph.as_graph_element(tensor, allow_operation=False)
        symbol = graph.symbol_of(tensor)
        if symbol in feeds:
            raise ValueError(f"tensor {tensor.name!r} is fed twice")
        feeds[symbol] = _checked_value(tensor, value)
    return feeds


def _pairs(feed_dict: Any) -> Iterable[tuple[Any, Any]]:
    if feed_dict is None:
        return ()
    if isinstance(feed_dict, Mapping):
        return feed_dict.items()
    pairs = list(feed_dict)
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise TypeError(
            "feed a mapping from tensors (or their names) to values, or a list of pairs of both, "
            f"not {feed_dict!r}"
        )
    return pairs


def _checked_value(tensor: Tensor, value: Any) -> np.ndarray:
    array = value.numpy() if isinstance(value, Tensor) else plain_array(value)
    if not _fits(tensor.shape, array.shape):
        raise ValueError(
            f"tensor {tensor.name!r} has shape {tuple(tensor.shape)}, cannot be fed a value of "
            f"shape {array.shape}"
        )
    if array.dtype == tensor.dtype:
        return array
    if not _converts(array, tensor.dtype):
        raise TypeError(
            f"tensor {tensor.name!r} is {tensor.dtype}, cannot be fed a value of dtype "
            f"{array.dtype}; convert it with astype"
        )
    converted = array.astype(tensor.dtype)
    if tensor.dtype.kind in "iu" and not np.array_equal(converted, array):
        raise TypeError(f"tensor {tensor.name!r} is {tensor.dtype}: its feed is out of range")
    return converted


def _fits(expected: tuple[int | None, ...] | None, shape: tuple[int, ...]) -> bool:
    return expected is None or (
        len(expected) == len(shape)
        and all(own in (None, extent) for own, extent in zip(expected, shape, strict=True))
    )


def _converts(array: np.ndarray, dtype: np.dtype) -> bool:
    if array.dtype.kind in _KINDS and dtype.kind in _KINDS:
        rank = _KINDS.replace("u", "").index
        return rank(array.dtype.kind.replace("u", "i")) <= rank(dtype.kind.replace("u", "i"))
    return np.can_cast(array.dtype, dtype, "same_kind")
