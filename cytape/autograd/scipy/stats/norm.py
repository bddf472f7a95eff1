"""The normal distribution: the methods of `cytape.scipy.stats.norm`."""

from typing import Any

from cytape.scipy.stats import norm as distribution


def __getattr__(name: str) -> Any:
    return getattr(distribution, name)
