"""The Poisson distribution: the methods of `cytape.scipy.stats.poisson`."""

from typing import Any

from cytape.scipy.stats import poisson as distribution


def __getattr__(name: str) -> Any:
    return getattr(distribution, name)
