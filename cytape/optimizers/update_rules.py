"""Optimizers: one class per update rule.

Each rule is written in its docstring. g is the gradient after clipping, and rate the learning rate
of the step. The loops are in `update_kernels.pyx`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from cytape.optimizers.optimizer import Optimizer
from cytape.optimizers.parameter_checks import checked

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Lion", "RMSProp"]


class SGD(Optimizer):
    """Gradient descent, with momentum if that is not 0.

    ``velocity = momentum * velocity + g`` and ``p -= rate * velocity``; with `nesterov`
    ``p -= rate * (g + momentum * velocity)``.

    Parameters
    ----------
    learning_rate : float or callable
    momentum : float, optional
        At least 0 and below 1.
    nesterov : bool, optional
    **options
        `weight_decay`, `decay_mask`, `clip_value`, `clip_norm` and `global_clip_norm` of
        `Optimizer`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> w, opt = np.array([3.0, -2.0]), cytape.optimizers.SGD(0.1, momentum=0.9, nesterov=True)
    >>> for _ in range(100):
    ...     opt.update(w, cytape.grad(lambda w: np.sum(w**2))(w))
    >>> bool(np.abs(w).max() < 1e-3)
    True
    """

    def __init__(self, learning_rate: float | Callable[[int], Any] = 0.01,
                 momentum: float = 0.0, nesterov: bool = False,
                 **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.momentum = checked("momentum", momentum, 0.0, 1.0)
        self.nesterov = bool(nesterov)
        if nesterov and not momentum:
            raise ValueError("nesterov=True needs a momentum above 0")
        if momentum:
            self.slot_names = ("velocity",)  # type: ignore[misc]

    def _rule(self) -> tuple[str, dict[str, float]]:
        if not _has_velocity(self):
            return "descent", {}
        return "momentum", {"a": self.momentum, "b": float(self.nesterov)}


def _has_velocity(optimizer: SGD | RMSProp) -> bool:
    """Return whether the optimizer was made with a momentum."""
    has_velocity = "velocity" in optimizer.slot_names
    if optimizer.momentum and not has_velocity:
        raise ValueError("momentum was 0 when the optimizer was made, so it has no velocity: make "
                         "another optimizer")
    return has_velocity


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients.

    ``total += g**2`` and ``p -= rate * g / (sqrt(total) + epsilon)``.

    Parameters
    ----------
    learning_rate : float or callable
    initial_total : float, optional
        At least 0.
    epsilon : float, optional
    **options
        `weight_decay`, `decay_mask`, `clip_value`, `clip_norm` and `global_clip_norm` of
        `Optimizer`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> w, opt = np.array([3.0, -2.0]), cytape.optimizers.Adagrad(1.0)
    >>> for _ in range(100):
    ...     opt.update(w, cytape.grad(lambda w: np.sum(w**2))(w))
    >>> bool(np.abs(w).max() < 1e-2)
    True
    """

    slot_names: ClassVar[tuple[str, ...]] = ("total",)

    def __init__(self, learning_rate: float | Callable[[int], Any] = 0.01,
                 initial_total: float = 0.1,
                 epsilon: float = 1e-7, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.initial_total = checked("initial_total", initial_total, 0.0, math.inf)
        self.epsilon = checked("epsilon", epsilon, 0.0, math.inf)

    def _initial(self, slot: str) -> float:
        return self.initial_total

    def _rule(self) -> tuple[str, dict[str, float]]:
        return "adagrad", {"d": self.epsilon}


class RMSProp(Optimizer):
    """Steps divided by the root of a running mean of squared gradients.

    ``square = rho * square + (1 - rho) * g**2`` and ``p -= rate * g / (sqrt(square) + epsilon)``;
    with momentum ``velocity = momentum * velocity + g / (sqrt(square) + epsilon)`` and
    ``p -= rate * velocity``.

    Parameters
    ----------
    learning_rate : float or callable
    rho, momentum : float, optional
        At least 0 and below 1.
    epsilon : float, optional
    **options
        `weight_decay`, `decay_mask`, `clip_value`, `clip_norm` and `global_clip_norm` of
        `Optimizer`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> w, opt = np.array([3.0, -2.0]), cytape.optimizers.RMSProp(0.01)
    >>> for _ in range(400):
    ...     opt.update(w, cytape.grad(lambda w: np.sum(w**2))(w))
    >>> bool(np.abs(w).max() < 1e-2)
    True
    """

    slot_names: ClassVar[tuple[str, ...]] = ("square",)

    def __init__(self, learning_rate: float | Callable[[int], Any] = 0.001,
                 rho: float = 0.9, momentum: float = 0.0,
                 epsilon: float = 1e-7, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.rho = checked("rho", rho, 0.0, 1.0)
        self.momentum = checked("momentum", momentum, 0.0, 1.0)
        self.epsilon = checked("epsilon", epsilon, 0.0, math.inf)
        if momentum:
            self.slot_names = ("square", "velocity")  # type: ignore[misc]

    def _rule(self) -> tuple[str, dict[str, float]]:
        loop = "rmsprop_momentum" if _has_velocity(self) else "rmsprop"
        return loop, {"a": self.momentum, "b": self.rho, "d": self.epsilon}


class Adam(Optimizer):
    """Running means of gradients over the root of running means of their squares.

    ``mean = beta_1 * mean + (1 - beta_1) * g`` and ``square = beta_2 * square + (1 - beta_2) *
    g**2``; ``p -= rate * m / (sqrt(v) + epsilon)`` with ``m = mean / (1 - beta_1**t)`` and ``v =
    square / (1 - beta_2**t)`` in step t = 1, 2, ...

    Parameters
    ----------
    learning_rate : float or callable
    beta_1, beta_2 : float, optional
        At least 0 and below 1.
    epsilon : float, optional
    **options
        `weight_decay`, `decay_mask`, `clip_value`, `clip_norm` and `global_clip_norm` of
        `Optimizer`.

    Notes
    -----
    Rows without a slice in an `IndexedSlices` keep their means and squares, which do not decay.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> w, opt = cytape.Variable([3.0, -2.0]), cytape.optimizers.Adam(0.1)
    >>> losses = [opt.minimize(lambda: np.sum(w**2), w) for _ in range(200)]
    >>> float(losses[-1]) < 1e-3
    True
    """

    slot_names: ClassVar[tuple[str, ...]] = ("mean", "square")

    def __init__(self, learning_rate: float | Callable[[int], Any] = 0.001,
                 beta_1: float = 0.9, beta_2: float = 0.999,
                 epsilon: float = 1e-8, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1 = checked("beta_1", beta_1, 0.0, 1.0)
        self.beta_2 = checked("beta_2", beta_2, 0.0, 1.0)
        self.epsilon = checked("epsilon", epsilon, 0.0, math.inf)

    def _rule(self) -> tuple[str, dict[str, float]]:
        t = self.steps + 1
        return "adam", {
            "a": self.beta_1, "b": self.beta_2, "d": self.epsilon,
            "rate": 1 / (1 - self.beta_1**t), "c": 1 / math.sqrt(1 - self.beta_2**t)}


class AdamW(Adam):
    """Adam with a weight decay of 0.01, unless another one is given.

    Parameters are those of `Adam`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> w, opt = np.array([3.0, -2.0]), cytape.optimizers.AdamW(0.1)
    >>> for _ in range(200):
    ...     opt.update(w, cytape.grad(lambda w: np.sum(w**2))(w))
    >>> bool(np.abs(w).max() < 1e-2)
    True
    """

    def __init__(self, learning_rate: float | Callable[[int], Any] = 0.001,
                 beta_1: float = 0.9, beta_2: float = 0.999,
                 epsilon: float = 1e-8, weight_decay: float = 0.01, **options: Any) -> None:
        super().__init__(
            learning_rate, beta_1, beta_2, epsilon, weight_decay=weight_decay, **options)


class Lion(Optimizer):
    """Steps along the sign of a running mean of gradients.

    ``p -= rate * sign(beta_1 * mean + (1 - beta_1) * g)`` and ``mean = beta_2 * mean + (1 - beta_2)
    * g``.

    Parameters
    ----------
    learning_rate : float or callable
        A third to a tenth of Adam's.
    beta_1, beta_2 : float, optional
        At least 0 and below 1.
    **options
        `weight_decay`, `decay_mask`, `clip_value`, `clip_norm` and `global_clip_norm` of
        `Optimizer`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> w, opt = np.array([3.0, -2.0]), cytape.optimizers.Lion(0.01)
    >>> opt.update(w, cytape.grad(lambda w: np.sum(w**2))(w))
    >>> w
    array([ 2.99, -1.99])
    """

    slot_names: ClassVar[tuple[str, ...]] = ("mean",)

    def __init__(self, learning_rate: float | Callable[[int], Any] = 0.0001,
                 beta_1: float = 0.9, beta_2: float = 0.99,
                 **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1 = checked("beta_1", beta_1, 0.0, 1.0)
        self.beta_2 = checked("beta_2", beta_2, 0.0, 1.0)

    def _rule(self) -> tuple[str, dict[str, float]]:
        return "lion", {"a": self.beta_1, "b": self.beta_2}
