"""The chi-squared distribution: the methods of `cytape.scipy.stats.chi2`."""

from typing import Any

from cytape.scipy.stats import chi2 as distribution


def __getattr__(name: str) -> Any:
    return getattr(distribution, name)
