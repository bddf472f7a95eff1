"""Averages of parameters over training steps, to be evaluated in place of the last values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cytape.errors import TapeStateError
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.ops.python.draws import note
from cytape.optimizers.optimizer import COUNT, restorer_of
from cytape.optimizers.parameter_checks import (
    as_count,
    called,
    named_parameters,
    require_variables,
)
from cytape.tensor.recording.state import current_graph
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
        self._names: list[str] | None = None  # of the parameters; unknown after loading
        self._leaves: list[Any] = []  # variables of the first update

    def update(self, parameters: Any) -> Any:
        """Add the present values; in a graph (`cytape.function`) those of each run.

        Parameters
        ----------
        parameters : structure of Variable or ndarray
            Of the same shapes in each call. In a graph they are variables.

        Returns
        -------
        None or Tensor
            While a graph is built, the number of updates, which a `Session` fetches to make one.
        """
        names, leaves = self._named(parameters)
        self._names = names
        self._leaves = self._leaves or [x if isinstance(x, Variable) else None for x in leaves]
        if (graph := current_graph()) is not None:
            require_variables(names, leaves)
            return graph.build(average_update_op, *leaves, average=self)
        self._add(list(map(_value, leaves)))
        return None

    def restorer(self) -> Callable[[], None]:
        """Return a function that restores the present state, for repeated calls."""
        return restorer_of(self, self._means)

    def _add(self, values: list[np.ndarray]) -> None:
        note(self)
        if not self._means:
            self._means = [np.zeros(value.shape, np.result_type(value.dtype, np.float32))
                           for value in values]
        self.updates += 1
        weight = 1 / self.updates
        if self.decay is not None:
            weight = (1 - self.decay) / (1 - self.decay**self.updates)
        for mean, value in zip(self._means, values, strict=True):
            mean += weight * (value - mean)

    def values(self, parameters: Any) -> Any:
        """Return the averages as arrays, in the structure of the parameters."""
        leaves = self._leaves_to_average(parameters)
        return pack_parts(parameters, [
            mean.astype(leaf.dtype) for mean, leaf in zip(self._means, leaves, strict=True)])

    @contextmanager
    def swapped(self, parameters: Any) -> Iterator[None]:
        """Give the parameters the averages for a block, and their own values after it."""
        leaves = self._leaves_to_average(parameters)
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
        self.updates, self._means = as_count("updates", state["updates"]), means

    def _named(self, parameters: Any) -> tuple[list[str], list[Any]]:
        names, leaves = named_parameters(parameters)
        if self._names not in (None, names):
            raise ValueError(
                f"the averages are those of the parameters {self._names}, got {names}")
        for name, leaf, bound in zip(names, leaves, self._leaves, strict=False):
            if leaf is not bound and any(leaf is other for other in self._leaves):
                raise ValueError(
                    f"{called(name)} is a variable whose average is at another place: pass "
                    "the parameters in the order of the first update")
        shapes = [leaf.shape for leaf in leaves]
        if self._means and shapes != [mean.shape for mean in self._means]:
            raise ValueError(f"the averages are those of parameters of the shapes "
                             f"{[mean.shape for mean in self._means]}, got {shapes}")
        return names, leaves

    def _leaves_to_average(self, parameters: Any) -> list[Any]:
        if current_graph() is not None:
            raise TapeStateError(
                "a graph would keep the present averages as constants: call values and swapped "
                "outside of functions and graphs; functions may be called within swapped")
        leaves = self._named(parameters)[1]
        if not self.updates:
            raise ValueError("there are no averages yet: call update after each step")
        return leaves


def _value(leaf: Any) -> np.ndarray:
    return leaf.numpy() if isinstance(leaf, Variable) else leaf


def _assign(leaf: Any, value: np.ndarray) -> None:
    if isinstance(leaf, Variable):
        leaf.assign(value.astype(leaf.dtype, copy=False))
    else:
        leaf[...] = value


def _run_update(*values: np.ndarray, average: ParameterAverage) -> Any:
    average._add(list(values))
    return np.array(average.updates)


average_update_op = nondifferentiable(
    "ParameterAverageUpdate", _run_update, stateful=True,
    shape_rule=lambda *specs, average: COUNT)
