"""The gamma distribution: the methods of `cytape.scipy.stats.gamma`."""

from typing import Any

from cytape.scipy.stats import gamma as distribution


def __getattr__(name: str) -> Any:
    return getattr(distribution, name)
