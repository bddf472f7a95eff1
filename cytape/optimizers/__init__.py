"""Optimizers: gradient steps on variables and arrays, schedules, clipping, averages."""

from cytape.optimizers.optimizer import *  # noqa: F403
from cytape.optimizers.optimizer import __all__ as _of_optimizer
from cytape.optimizers.update_rules import *  # noqa: F403
from cytape.optimizers.update_rules import __all__ as _of_rules

__all__ = sorted([*_of_optimizer, *_of_rules])  # noqa: PLE0605
