"""Seeds of backward passes: users' output gradients, checked and cast."""

from __future__ import annotations

from typing import Any

import numpy as np

from cytape.errors import InvalidGradientError
from cytape.ops.adjoints.conform import broadcast_to
from cytape.ops.creation import astype
from cytape.ops.shapes.shape_rules import may_fit
from cytape.tensor import nest
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.tensor import Tensor, tensor_of
from cytape.tensor.values.spec import UnknownShape


def convert_output_gradients(targets: list[Tensor], output_gradients: Any) -> list | None:
    """Flatten output gradients and cast each to the dtype of its target."""
    if output_gradients is None:
        return None
    flat = nest.flatten(output_gradients)
    if len(flat) != len(targets):
        raise InvalidGradientError(
            f"output_gradients has {len(flat)} entries for {len(targets)} targets"
        )
    return [
        _convert_output_gradient(position, target, gradient)
        for position, (target, gradient) in enumerate(zip(targets, flat, strict=True))
    ]


def _convert_output_gradient(position: int, target: Tensor, gradient: Any) -> Any:
    if gradient is None or not target.spec.trainable:
        return None
    if not isinstance(gradient, IndexedSlices):
        try:
            gradient = convert_to_tensor(gradient)
        except (TypeError, ValueError) as error:
            raise InvalidGradientError(
                f"output_gradients[{position}] cannot be converted to a tensor: {error}"
            ) from error
    if gradient.shape != target.shape and not may_fit(gradient.shape, target.shape):
        raise InvalidGradientError(
            f"output_gradients[{position}] has shape {gradient.shape}, its target {target.shape}"
        )
    if gradient.dtype == target.dtype:
        return gradient
    if not np.can_cast(gradient.dtype, target.dtype, "same_kind"):
        raise InvalidGradientError(
            f"output_gradients[{position}] is {gradient.dtype}, its target {target.dtype}"
        )
    return astype(densify(gradient), target.dtype, copy=False)


def zeros(shape: tuple, dtype: np.dtype) -> Tensor:
    """Make a tensor of zeros."""
    if isinstance(shape, UnknownShape):
        return broadcast_to(tensor_of(np.zeros((), dtype)), shape)
    return tensor_of(np.zeros(shape, dtype))


def densify(gradient: Tensor | IndexedSlices) -> Tensor:
    """Return a gradient as a dense tensor."""
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices._densify(gradient, expected=True)
    return gradient
