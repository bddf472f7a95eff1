"""Optimizers: gradient steps on structures of variables and arrays, their state and its files.

An optimizer is bound to the parameters of its first update. It has one array per parameter and
slot; a rule such as Adam names its slots and its loop in `update_kernels.pyx`. Enter at `update`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, ClassVar

import numpy as np

from cytape.autodiff.gradient_tape import GradientTape
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.ops.python.draws import note
from cytape.optimizers.parameter_checks import (
    as_count,
    called,
    checked,
    named_parameters,
    require_number,
    require_variables,
)
from cytape.optimizers.update_kernels import Job, run
from cytape.tensor import nest
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.names_elsewhere import no_member, unexpected
from cytape.tensor.recording.state import current_graph
from cytape.tensor.structures import leaves_of_operand, pack_parts
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import Spec
from cytape.tensor.variable import Variable

__all__ = ["Optimizer"]

COUNT = Spec.of((), np.int64)


class Optimizer:
    """Base class of optimizers; use one of its subclasses.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule: a function of the number of steps done, 0 in the first.
    weight_decay : float, optional
        Decoupled: a step multiplies parameters by ``1 - learning_rate * weight_decay`` first.
    decay_mask : callable or structure of bool, optional
        Parameters that decay, by default all: a structure like that of the parameters, or a
        function of a parameter, such as ``lambda p: p.ndim > 1``.
    clip_value : float, optional
        Elements of gradients are limited to this absolute value.
    clip_norm : float, optional
        The gradient of each parameter is scaled to at most this Euclidean norm.
    global_clip_norm : float, optional
        All gradients are scaled to at most this norm of all elements. At most one of the three
        can be given. Gradients whose norm is not finite become NaN.

    Attributes
    ----------
    learning_rate, weight_decay
        May be set between steps.
    steps : int
        The number of steps done.
    """

    slot_names: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, learning_rate: float | Callable[[int], Any], *, weight_decay: float = 0.0,
        decay_mask: Any = None, clip_value: float | None = None, clip_norm: float | None = None,
        global_clip_norm: float | None = None, **unknown: Any,
    ) -> None:
        for name in unknown:
            raise unexpected(type(self).__name__, name)
        limits = {"clip_value": clip_value, "clip_norm": clip_norm,
                  "global_clip_norm": global_clip_norm}
        for name, value in limits.items():
            if value is None:
                continue
            require_number(name, value)
            if not value > 0:
                raise ValueError(f"{name} must be positive, got {value}")
        if sum(value is not None for value in limits.values()) > 1:
            raise ValueError("pass one of clip_value, clip_norm and global_clip_norm, not several")
        self.learning_rate = learning_rate
        self.weight_decay = checked("weight_decay", weight_decay, 0.0, math.inf)
        self.steps = 0
        if not callable(learning_rate):
            self._rate()  # raises if it is invalid
        self._limits, self._decay_mask = limits, decay_mask
        self._leaves: list[Any] = []
        self._names: list[str] | None = None  # of the parameters; None: not bound
        self._slots: list[list[np.ndarray]] = []
        self._decays: list[bool] = []
        self._loaded: dict[str, Any] | None = None  # state that waits for parameters

    if not TYPE_CHECKING:  # type checkers know the attributes
        def __getattr__(self, name: str) -> Any:
            raise no_member(self, name)

        def __setattr__(self, name: str, value: Any) -> None:
            if name == "lr":
                raise no_member(self, name)
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name} of learning rate {self._rate():.3g}, {self.steps} steps>"

    # -- methods of subclasses --------------------------------------------------------------------

    def _rule(self) -> tuple[str, dict[str, float]]:
        """Return the name of the loop in C, and its constants for the present step."""
        raise NotImplementedError

    def _initial(self, slot: str) -> float:
        """Return the initial value of a slot."""
        return 0.0

    def build(self, parameters: Any) -> None:
        """Bind the optimizer to parameters, as the first `update` does.

        Parameters
        ----------
        parameters : structure of Variable or ndarray

        Raises
        ------
        TypeError
            If a parameter is no variable or array, or has another dtype than float16, float32 or
            float64.
        ValueError
            If there are none, or one twice; if an array is read-only; if the optimizer is bound to
            other parameters; if a loaded state does not fit.
        """
        names, leaves = named_parameters(parameters)
        if self._names is not None:
            self._require_same(self._names, names, leaves)
            return
        decays = self._chosen(parameters, leaves)
        slots = [[np.full(leaf.shape, self._initial(slot), np.result_type(leaf.dtype, np.float32))
                  for slot in self.slot_names] for leaf in leaves]
        self._leaves, self._names, self._slots, self._decays = leaves, names, slots, decays
        if self._loaded is not None:
            state, self._loaded = self._loaded, None
            try:
                self.load_state_dict(state)
            except ValueError:
                self._names, self._loaded = None, state
                raise

    def update(self, parameters: Any, gradients: Any) -> Any:
        """Make a step: change the parameters in place.

        In a graph (`cytape.function`, `cytape.Graph`) the step is made in each run. Parameters are
        variables there.

        Parameters
        ----------
        parameters : structure of Variable or ndarray
            In each call the same variables, or arrays of the same shapes and dtypes.
        gradients : structure of Tensor, ndarray, IndexedSlices or None
            Like the parameters. None: the parameter is not changed. Slices of `IndexedSlices`
            change the rows they belong to, and their rows of the state, and no others; slices of
            the same row are summed.

        Returns
        -------
        None or Tensor
            While a graph is built, the number of steps, which a `Session` fetches to make one.

        Raises
        ------
        TypeError, ValueError, IndexError
            As `build`; and if a gradient has another shape, or is complex, or all are None. All
            parameters are as before then.

        Examples
        --------
        >>> import numpy as np
        >>> import cytape
        >>> w = {"slope": np.array([1.0, 2.0]), "offset": cytape.Variable(0.5)}
        >>> opt = cytape.optimizers.SGD(0.1)
        >>> opt.update(w, {"slope": np.array([1.0, -1.0]), "offset": None})
        >>> w
        {'slope': array([0.9, 2.1]), 'offset': Variable(0.5)}
        """
        leaves = leaves_of_operand(parameters)
        flat = nest.flatten_up_to(parameters, gradients, expand=False)
        if len(flat) != len(leaves):
            flat = leaves_of_operand(gradients)
        if any(isinstance(gradient, Variable) and (
                not isinstance(leaf, Variable) or gradient.trainable and not leaf.trainable
                or any(gradient is x for x in self._leaves)
                and not any(leaf is x for x in self._leaves))
               for leaf, gradient in zip(leaves, flat, strict=False)):
            raise TypeError(
                "a Variable stands in the place of a gradient: write opt.update(variables, "
                "gradients), or opt.apply_gradients(zip(gradients, variables))")
        if self._names is None or not _are_same(leaves, self._leaves):
            self.build(parameters)
            self._leaves = leaves
        if all(gradient is None for gradient in flat):
            raise ValueError(
                "no parameter has a gradient: all are None. Does the loss depend on the "
                "parameters, and was it computed under the tape?")
        if (graph := current_graph()) is not None:
            return self._built(graph, leaves, flat)
        self._step(leaves, flat)
        return None

    def _step(self, leaves: list[Any], gradients: list[Any]) -> None:
        note(self)
        jobs, decays = [], []
        weight_decay = checked("weight_decay", self.weight_decay, 0.0, math.inf)
        for leaf, gradient, slots, decay, name in zip(
                leaves, gradients, self._slots, self._decays, self._names or (), strict=True):
            if gradient is not None:
                jobs.append(Job(leaf, gradient, slots, called(name)))
                decays.append(weight_decay * decay)
        loop, constants = self._rule()
        rate = self._rate()
        constants["rate"] = rate * constants.get("rate", 1.0)
        run(
            loop, jobs, constants, [rate * decay for decay in decays], self._scales(jobs),
            self._limits["clip_value"] or math.inf)
        self.steps += 1

    def _rate(self) -> float:
        rate = self.learning_rate
        rate = rate(self.steps) if callable(rate) else rate
        try:
            rate = float(rate)
        except TypeError:
            raise TypeError(
                f"the learning rate must be a number or a function of the step, got {rate!r}; "
                "parameters are passed to update, as in opt.update(parameters, gradients)"
            ) from None
        if not 0 <= rate < math.inf:
            raise ValueError(
                f"the learning rate must be finite and at least 0, got {rate} for step {self.steps}"
            )
        return rate

    def _scales(self, jobs: list[Any]) -> list[float]:
        """Return the factor of each gradient."""
        limit = self._limits["clip_norm"]
        if limit is not None:
            return [_scale(limit, job.norm()) for job in jobs]
        limit = self._limits["global_clip_norm"]
        if limit is None:
            return [1.0] * len(jobs)
        norm = math.hypot(*[job.norm() for job in jobs])
        return [_scale(limit, norm)] * len(jobs)

    def _built(self, graph: Any, leaves: list[Any], gradients: list[Any]) -> Tensor:
        """Add a step to the graph that is being built."""
        require_variables(self._names or [], leaves)
        inputs: list[Any] = []
        kinds = []
        for gradient in gradients:
            if isinstance(gradient, IndexedSlices) and isinstance(gradient.values, IndexedSlices):
                gradient = gradient.to_tensor()
            parts = [] if gradient is None else [gradient]
            if isinstance(gradient, IndexedSlices):
                parts = [gradient.values, gradient.indices]
            kinds.append(len(parts))
            inputs += parts
        return graph.build(  # also where all gradients are constants
            optimizer_step_op, *inputs, optimizer=self, kinds=tuple(kinds), assigned=tuple(leaves))

    def apply_gradients(self, pairs: Iterable[tuple[Any, Any]]) -> Any:
        """Make a step, given pairs of a gradient and its variable, in TensorFlow's form.

        In each call the same variables must be given, in the same order.

        Examples
        --------
        >>> import cytape
        >>> v = cytape.Variable(2.0)
        >>> with cytape.GradientTape() as tape:
        ...     loss = v * v
        >>> opt = cytape.optimizers.SGD(0.25)
        >>> opt.apply_gradients([(tape.gradient(loss, v), v)])
        >>> v
        Variable(1.)
        """
        pairs = list(pairs)
        if any([not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in pairs]):
            raise TypeError("apply_gradients takes pairs: write zip(gradients, variables)")
        return self.update(
            [variable for _, variable in pairs], [gradient for gradient, _ in pairs])

    def minimize(self, loss: Callable[[], Any], variables: Any) -> Any:
        """Make a step on the gradient of a function without arguments, and return its value.

        Parameters
        ----------
        loss : callable
            Returns one number, computed from the variables, say a mean over examples.
        variables : structure of Variable
            For arrays call `update`, with the gradients of `cytape.value_and_grad`.

        Examples
        --------
        >>> import cytape
        >>> v = cytape.Variable(2.0)
        >>> cytape.optimizers.SGD(0.25).minimize(lambda: v * v, v)
        Tensor(4.)
        >>> v
        Variable(1.)
        """
        if not callable(loss):
            raise TypeError(
                f"the loss must be a function without arguments, got {type(loss).__name__}: write "
                "opt.minimize(lambda: ..., variables), or take the gradient of a tape and call "
                "opt.update(variables, gradients)")
        leaves = leaves_of_operand(variables)
        for leaf in leaves:
            if not isinstance(leaf, Variable):
                raise TypeError(
                    f"minimize takes variables, got {type(leaf).__name__}: pass those of an object "
                    "in a list; for arrays call cytape.value_and_grad and update")
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(leaves)
            value = loss()
        if value is None:
            raise ValueError(f"{loss!r} returned None: was the return statement forgotten?")
        if isinstance(value, Tensor) and value.spec.known and value.size != 1:
            raise ValueError(f"the loss must be one number, got shape {value.shape}: take the mean")
        self.update(variables, pack_parts(variables, tape.gradient(value, leaves)))
        return value

    # -- state ------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state: the kind, the number of steps, and copies of the slots, by name.

        Examples
        --------
        >>> import numpy as np
        >>> import cytape
        >>> opt = cytape.optimizers.SGD(0.1, momentum=0.9)
        >>> opt.update({"w": np.zeros(2)}, {"w": np.ones(2)})
        >>> opt.state_dict()
        {'kind': 'SGD', 'steps': 1, "velocity['w']": array([1., 1.])}
        """
        state: dict[str, Any] = {"kind": type(self).__name__, "steps": self.steps}
        for name, slots in zip(self._names or (), self._slots, strict=True):
            for slot, array in zip(self.slot_names, slots, strict=True):
                state[slot + name] = array.copy()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned.

        Before the first `update` or `build` the arrays are kept, and checked there.

        Raises
        ------
        ValueError
            If it is the state of an optimizer of another kind, of other parameters, or has arrays
            of another shape or dtype. Nothing is changed then.
        """
        if missing := [key for key in ("kind", "steps") if key not in state]:
            raise ValueError(f"the state of an optimizer has the keys 'kind' and 'steps'; "
                             f"{' and '.join(map(repr, missing))} missing")
        if (kind := str(state["kind"])) != type(self).__name__:
            raise ValueError(f"the state is that of {kind}, not of {type(self).__name__}")
        steps = as_count("steps", state["steps"])
        if self._names is None:
            self._loaded, self.steps = dict(state), steps
            return
        expected = {slot + name: array for name, slots in zip(self._names, self._slots, strict=True)
                    for slot, array in zip(self.slot_names, slots, strict=True)}
        given = {key: np.asarray(value) for key, value in state.items()
                 if key not in ("kind", "steps")}
        if expected.keys() != given.keys():
            raise ValueError(
                f"the state is that of other parameters: without {_listed(expected, given)}, and "
                f"with {_listed(given, expected)}")
        for key, array in expected.items():
            if (given[key].shape, given[key].dtype) != (array.shape, array.dtype):
                raise ValueError(
                    f"{key} has shape {array.shape} and dtype {array.dtype}, in the state "
                    f"{given[key].shape} and {given[key].dtype}")
        for key, array in expected.items():
            array[...] = given[key]
        self.steps = steps

    def save(self, file: str | PathLike[str] | IO[bytes]) -> None:
        """Write the state to a file of the format of `numpy.savez`, under exactly this name."""
        if isinstance(file, (str, PathLike)):
            with open(file, "wb") as stream:
                np.savez(stream, **self.state_dict())
        else:
            np.savez(file, **self.state_dict())

    def load(self, file: str | PathLike[str] | IO[bytes]) -> None:
        """Read the state from a file; errors are those of `load_state_dict` and `numpy.load`."""
        with np.load(file, allow_pickle=False) as state:
            self.load_state_dict(dict(state))

    def restorer(self) -> Callable[[], None]:
        """Return a function that restores the present state, for repeated calls."""
        arrays = [array for slots in self._slots for array in slots]
        return restorer_of(self, arrays + [x for x in self._leaves if isinstance(x, np.ndarray)])

    # -- checks -----------------------------------------------------------------------------------

    def _require_same(self, before: list[str], names: list[str], leaves: list[Any]) -> None:
        if len(leaves) != len(self._leaves):
            raise ValueError(
                f"the optimizer is bound to {len(self._leaves)} parameters, got {len(leaves)}: use "
                "an optimizer for each structure of parameters")
        for old, name, leaf, bound in zip(before, names, leaves, self._leaves, strict=True):
            if leaf is bound:
                continue
            if isinstance(leaf, Variable) or isinstance(bound, Variable):
                raise ValueError(
                    f"{called(name)} is not the variable that the optimizer is bound to: use an "
                    "optimizer for each structure of parameters")
            if name != old:
                raise ValueError(f"the optimizer is bound to {called(old)}, got {called(name)} "
                                 "instead: use an optimizer for each structure of parameters")
            if (leaf.shape, leaf.dtype) != (bound.shape, bound.dtype):
                raise ValueError(
                    f"{called(name)} has shape {leaf.shape} and dtype {leaf.dtype}, before it "
                    f"was {bound.shape} and {bound.dtype}")

    def _chosen(self, parameters: Any, leaves: list[Any]) -> list[bool]:
        """Return whether each parameter decays."""
        if self._decay_mask is None:
            return [True] * len(leaves)
        if callable(self._decay_mask):
            chosen = [self._decay_mask(leaf) for leaf in leaves]
        else:
            chosen = nest.flatten_up_to(parameters, self._decay_mask, expand=False)
            if len(chosen) != len(leaves):  # objects of registered classes
                chosen = leaves_of_operand(self._decay_mask)
            if len(chosen) != len(leaves):
                raise ValueError(
                    f"decay_mask has {len(chosen)} entries for {len(leaves)} parameters")
        for choice in chosen:
            if not isinstance(choice, (bool, np.bool_)):
                raise TypeError(f"decay_mask must give True or False for each parameter, got "
                                f"{choice!r}")
        return list(map(bool, chosen))


def restorer_of(owner: Any, arrays: list[np.ndarray]) -> Callable[[], None]:
    """Return a function that restores the attributes of an object, and arrays that it changes."""
    state, copies = dict(vars(owner)), [array.copy() for array in arrays]

    def restore() -> None:
        vars(owner).clear()
        vars(owner).update(state)
        for array, values in zip(arrays, copies, strict=True):
            array[...] = values

    return restore


def _scale(limit: float, norm: float) -> float:
    if not math.isfinite(norm):  # hypot is infinite for inf and NaN
        return math.nan
    return limit / norm if norm > limit else 1.0


def _are_same(leaves: list[Any], others: list[Any]) -> bool:
    return len(leaves) == len(others) and all(map(operator.is_, leaves, others))


def _listed(names: Iterable[str], others: Iterable[str]) -> str:
    found = sorted(set(names) - set(others))
    return (", ".join(found[:5]) + (", ..." if len(found) > 5 else "")) or "none"


def _run_step(*arrays: Any, optimizer: Optimizer, kinds: tuple[int, ...], assigned: Any) -> Any:
    remaining = iter(arrays)
    gradients: list[Any] = []
    for variable, kind in zip(assigned, kinds, strict=True):
        parts = [next(remaining) for _ in range(kind)]
        gradients.append(IndexedSlices(parts[0], parts[1], variable.shape) if kind == 2
                         else parts[0] if parts else None)
    optimizer._step(list(assigned), gradients)
    return np.array(optimizer.steps)


optimizer_step_op = nondifferentiable(
    "OptimizerStep", _run_step, stateful=True,
    shape_rule=lambda *specs, optimizer, kinds, assigned: COUNT)
