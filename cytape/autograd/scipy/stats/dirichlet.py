"""The Dirichlet distribution: the methods of `cytape.scipy.stats.dirichlet`."""

from typing import Any

from cytape.scipy.stats import dirichlet as distribution


def __getattr__(name: str) -> Any:
    return getattr(distribution, name)
