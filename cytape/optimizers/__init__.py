"""Optimizers: gradient steps on variables and arrays, schedules, clipping, averages."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from cytape.optimizers.gradient_clipping import (
    clip_by_global_norm,
    clip_by_norm,
    clip_by_value,
    global_norm,
)
from cytape.optimizers.limited_memory import lbfgs
from cytape.optimizers.optimizer import Optimizer
from cytape.optimizers.parameter_averages import ParameterAverage
from cytape.optimizers.rate_schedules import (
    constant_schedule,
    cosine_schedule,
    exponential_schedule,
    step_schedule,
    warmup_schedule,
)
from cytape.optimizers.training_progress import progress
from cytape.optimizers.update_rules import SGD, Adagrad, Adam, AdamW, Lion, RMSProp
from cytape.tensor.names_elsewhere import no_attribute as _no_attribute

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "Lion",
    "Optimizer",
    "ParameterAverage",
    "RMSProp",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "constant_schedule",
    "cosine_schedule",
    "exponential_schedule",
    "global_norm",
    "lbfgs",
    "progress",
    "step_schedule",
    "warmup_schedule",
]


if not _TYPE_CHECKING:  # a checker knows the names
    def __getattr__(name: str) -> None:
        raise _no_attribute("cytape.optimizers", name)


def __dir__() -> list[str]:
    return __all__
