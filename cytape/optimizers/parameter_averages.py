"""Averages of parameters over training steps, to be evaluated in place of the last values."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cytape.optimizers.optimizer import named_parameters
from cytape.tensor.structures import pack_parts
from cytape.tensor.variable import Variable

__all__ = ["ParameterAverage"]


class ParameterAverage:
    """Running average of the values of parameters.

    Parameters
    ----------
    decay : float, optional
        Between 0 and 1: an exponential average, ``average = decay * average + (1 - decay) *
        value``, divided by ``1 - decay**n`` after n updates. By default the mean of all values,
        the average of Polyak and Ruppert.

    Examples
    --------
    >>> import cytape
    >>> w, average = cytape.Variable(0.0), cytape.optimizers.ParameterAverage()
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = w.assign(value)
    ...     average.update(w)
    >>> with average.swapped(w):
    ...     float(w)
    3.0
    >>> float(w)
    6.0
    """

    def __init__(self, decay: float | None = None) -> None:
        if decay is not None and not 0 < decay < 1:
            raise ValueError(f"decay must be between 0 and 1, got {decay}")
        self.decay = decay
        self.updates = 0
        self._means: list[np.ndarray] = []

    def update(self, parameters: Any) -> None:
        """Add the present values.

        Parameters
        ----------
        parameters : structure of Variable or ndarray
            Of the same shapes in each call.
        """
        leaves = self._leaves(parameters)
        if not self._means:
            self._means = [np.zeros(leaf.shape, np.result_type(leaf.dtype, np.float32))
                           for leaf in leaves]
        self.updates += 1
        weight = 1 / self.updates
        if self.decay is not None:
            weight = (1 - self.decay) / (1 - self.decay**self.updates)
        for mean, leaf in zip(self._means, leaves, strict=True):
            mean += weight * (_value(leaf) - mean)

    def values(self, parameters: Any) -> Any:
        """Return the averages as arrays, in the structure of the parameters."""
        leaves = self._leaves(parameters)
        self._require_updates()
        return pack_parts(parameters, [
            mean.astype(leaf.dtype) for mean, leaf in zip(self._means, leaves, strict=True)])

    @contextmanager
    def swapped(self, parameters: Any) -> Iterator[None]:
        """Give the parameters the averages for a block, and their own values after it."""
        leaves = self._leaves(parameters)
        self._require_updates()
        before = [_value(leaf).copy() for leaf in leaves]
        try:
            for leaf, mean in zip(leaves, self._means, strict=True):
                _assign(leaf, mean)
            yield
        finally:
            for leaf, value in zip(leaves, before, strict=True):
                _assign(leaf, value)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of updates and copies of the averages, for `numpy.savez`."""
        means = {f"mean[{i}]": mean.copy() for i, mean in enumerate(self._means)}
        return {"updates": self.updates, **means}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned.

        Raises
        ------
        ValueError
            If keys are missing, or the averages have other shapes than the present ones.
        """
        keys = [f"mean[{i}]" for i in range(len(state) - 1)]
        if {"updates", *keys} != state.keys():
            raise ValueError(f"expected the keys 'updates', 'mean[0]', ..., got {sorted(state)}")
        means = [np.array(state[key]) for key in keys]
        shapes = [mean.shape for mean in means], [mean.shape for mean in self._means]
        if self._means and shapes[0] != shapes[1]:
            raise ValueError(f"the averages have the shapes {shapes[1]}, in the state {shapes[0]}")
        self.updates, self._means = operator.index(np.asarray(state["updates"])[()]), means

    def _leaves(self, parameters: Any) -> list[Any]:
        _, leaves = named_parameters(parameters)
        shapes = [leaf.shape for leaf in leaves]
        if self._means and shapes != [mean.shape for mean in self._means]:
            raise ValueError(f"the averages are those of parameters of the shapes "
                             f"{[mean.shape for mean in self._means]}, got {shapes}")
        return leaves

    def _require_updates(self) -> None:
        if not self.updates:
            raise ValueError("there are no averages yet: call update after each step")


def _value(leaf: Any) -> np.ndarray:
    return leaf.numpy() if isinstance(leaf, Variable) else leaf


def _assign(leaf: Any, value: np.ndarray) -> None:
    if isinstance(leaf, Variable):
        leaf.assign(value.astype(leaf.dtype, copy=False))
    else:
        leaf[...] = value
