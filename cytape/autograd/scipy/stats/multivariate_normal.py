"""The multivariate normal distribution: `cytape.scipy.stats.multivariate_normal`."""

from typing import Any

from cytape.scipy.stats import multivariate_normal as distribution


def __getattr__(name: str) -> Any:
    return getattr(distribution, name)
