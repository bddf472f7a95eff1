"""The beta distribution: the methods of `cytape.scipy.stats.beta`."""

from typing import Any

from cytape.scipy.stats import beta as distribution


def __getattr__(name: str) -> Any:
    return getattr(distribution, name)
