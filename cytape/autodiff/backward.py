"""The way from user-held tensors to the tape's backward pass and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from cytape.autodiff import nest
from cytape.errors import InvalidGradientError
from cytape.ops.creation import astype
from cytape.ops.gradients import tensor_vspace
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.state import Recorder
from cytape.tensor.tensor import Tensor, convert_to_tensor, tensor_of


def compute_gradients(
    recorder: Recorder,
    targets: list[Tensor],
    sources: list[Tensor],
    output_gradients: list | None = None,
    keep: bool = False,
) -> list:
    """Differentiate the sum of `targets` on a recorder; None where a source is unconnected.

    Targets and sources that cannot have gradients (integers, strings) take no part. With `keep` a
    recorder that is not persistent can be used again.
    """
    if output_gradients is None:
        output_gradients = [None] * len(targets)
    source_ids = [source.id for source in sources if source.spec.trainable]
    target_ids, seeds, targeted_sources = [], [], {}
    for target, seed in zip(targets, output_gradients, strict=True):
        if target.spec.trainable:
            target_ids.append(target.id)
            seeds.append(seed)
            if target.id in source_ids:
                targeted_sources[target.id] = target.spec
    gradients = recorder.compute_gradient(
        tensor_vspace, target_ids, source_ids, targeted_sources, seeds, keep=keep)
    if len(source_ids) == len(sources):
        return gradients
    gradient_of = dict(zip(source_ids, gradients, strict=True))
    return [gradient_of.get(source.id) for source in sources]


def convert_output_gradients(targets: list[Tensor], output_gradients: Any) -> list | None:
    """Flatten output gradients and give each the dtype of its target."""
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
    if gradient.shape != target.shape:
        raise InvalidGradientError(
            f"output_gradients[{position}] has shape {gradient.shape}, its target {target.shape}"
        )
    if gradient.dtype == target.dtype:
        return gradient
    if not np.can_cast(gradient.dtype, target.dtype, "same_kind"):
        raise InvalidGradientError(
            f"output_gradients[{position}] is {gradient.dtype}, its target {target.dtype}"
        )
    return astype(densify(gradient), target.dtype)


def zeros(shape: tuple, dtype: np.dtype) -> Tensor:
    """Make a tensor of zeros."""
    return tensor_of(np.zeros(shape, dtype))


def densify(gradient: Tensor | IndexedSlices) -> Tensor:
    """Make a gradient a dense tensor."""
    return gradient.to_tensor() if isinstance(gradient, IndexedSlices) else gradient
