"""Attributes that are computed on first access, without a lock."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING:
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property):
        """`functools.cached_property` that takes no lock, as from Python 3.12 on.

        Two threads may both compute the value; both get the one that is stored first. A child
        process that is forked while a thread computes a value does not wait for that thread.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = self.func(instance)
            return instance.__dict__.setdefault(self.attrname, value)
