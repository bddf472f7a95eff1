"""Batch axes of the arguments and results of a function: `in_axes` and `out_axes`."""

from __future__ import annotations

import operator
from typing import Any

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.identity_groups import may_agree
from cytape.ops.shaping import moveaxis
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.structures import leaves_of_operand
from cytape.tensor.tensor import Tensor

__all__ = ["axes_of", "checked_axes", "extent_of", "members_first", "members_moved"]


def checked_axes(axes: Any, name: str) -> Any:
    """Return axes; raise if they are not integers, None, or structures of these."""
    for axis in leaves_of_operand(axes):
        if axis is None:
            continue
        try:
            operator.index(axis)
        except TypeError:
            raise TypeError(
                f"{name} must be an integer, None, or a structure of these, got {axes!r}"
                + ("; to map f over x, write vmap(f)(x)" if name == "in_axes" else "")) from None
        if isinstance(axis, bool):
            raise TypeError(f"{name} must be an integer or None, got {axis}")
    return axes


def axes_of(structure: Any, axes: Any, name: str, word: str) -> list:
    """Return the axis of each leaf of a structure; one axis may be for all leaves of a part."""
    try:
        parts = nest.flatten_up_to(axes, structure)
    except ValueError as error:
        raise ValueError(
            f"{name} must have the structure of the {word}, or be a prefix of it: "
            f"{error}") from None
    return [axis for axis, part in zip(nest.flatten(axes), parts, strict=True)
            for _ in nest.flatten(part)]


def members_first(leaf: Any, axis: int, place: str) -> Tensor:
    """Return an argument with its batch axis moved to the front."""
    cause, x = None, None
    try:
        x = convert_to_tensor(leaf)
    except (TypeError, ValueError) as error:
        cause = error
    if x is None or x.dtype.kind not in "biufc":
        raise TypeError(
            f"{place} is a {type(leaf).__name__}, which has no axis to map: in_axes must be None "
            "there") from cause
    if x.shape is None:
        raise SymbolicTensorError(f"{place} needs a known number of axes, it has shape {x.shape}")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(
            f"{place} has no axis {axis} to map, its shape is {x.shape}"
            + ("" if x.ndim else ": in_axes must be None for arguments that are not batches"))
    return x if axis % x.ndim == 0 else moveaxis(x, axis, 0)


def extent_of(tensors: list[Tensor], places: list[str]) -> int | None:
    """Return the number of members, None if it is known only at run time."""
    if not tensors:
        raise ValueError("in_axes is None for all arguments: at least one of them must have a "
                         "batch axis")
    extent, known = None, ""
    for x, place in zip(tensors, places, strict=True):
        n = x.shape[0]
        if not may_agree((n,), (extent,)):
            raise ValueError(
                f"mapped axes must have the same length, got {extent} for {known} and {n} for "
                f"{place}: give arguments that all members share None, as in in_axes=(None, 0)")
        if n is not None and extent is None:
            extent, known = n, place
    return extent


def members_moved(x: Tensor, axis: Any) -> Tensor:
    """Return a result with its batch axis moved from the front to another position."""
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(
            f"out_axes is {axis}, but with its batch axis the result has {x.ndim} axes")
    return x if axis % x.ndim == 0 else moveaxis(x, 0, axis)
