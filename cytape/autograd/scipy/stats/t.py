"""Student's t distribution: the methods of `cytape.scipy.stats.t`."""

from typing import Any

from cytape.scipy.stats import t as distribution


def __getattr__(name: str) -> Any:
    return getattr(distribution, name)
