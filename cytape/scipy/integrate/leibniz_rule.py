"""Integrals of functions of SciPy's, differentiable by Leibniz's rule.

The derivative in an argument is the integral of the integrand's derivative, to the same tolerances;
that in a limit is the integrand there.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

import cytape.numpy as cnp
from cytape.autodiff.custom.bound_rule import bound, noting, restored
from cytape.autodiff.gradient_tape import GradientTape, noting_detached
from cytape.autodiff.wrapped_calls import copied, followed, record, values_at_call
from cytape.errors import DetachedError
from cytape.graph.batching.branch_paths import (
    along,
    conditions,
    groups_of,
    manner_of,
    note_manner,
)
from cytape.graph.batching.vmap import vmap
from cytape.graph.tracing.kept_traces import Unknown, identity_of, kept, require_of_tracing
from cytape.ops.calls.operands import is_tensor
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.creation import identity_op
from cytape.ops.engine.custom_op import GradientsIfNeeded
from cytape.ops.python.python_ops import LEAVES_CYTAPE
from cytape.scipy.integrate.graph_calls import call_in_graph, reads_others
from cytape.tensor import convert_to_tensor, nest
from cytape.tensor.recording.state import how_left
from cytape.tensor.tensor import data_of
from cytape.tensor.values.spec import symbolic_spec
from cytape.tensor.values.user_warnings import warn

ARRAYS = float, np.ndarray


class Integrand:
    """User's function of x and `args`, with the tensors among the leaves of `args` separate.

    Parameters
    ----------
    name : str
    function : callable
        Derivatives, which are taken later, call it as it is now.
    args : tuple
    """

    def __init__(self, name: str, function: Callable, args: tuple) -> None:
        leaves = nest.flatten(args)
        self.moving = [i for i, leaf in enumerate(leaves) if is_tensor(leaf)]
        self.tensors = [leaves[i] for i in self.moving]
        self._now, self._given = function, leaves
        self.function = bound(f"the function of {name}", function)
        self.leaves = [None if is_tensor(leaf) else copied(leaf) for leaf in leaves]
        self._args = nest.pack_sequence_as(args, self.leaves)  # keeps no tensors

    def _packed(self, tensors: Sequence, leaves: list) -> tuple:
        leaves = list(leaves)
        for i, x in zip(self.moving, tensors, strict=True):
            leaves[i] = x
        return nest.pack_sequence_as(self._args, leaves)

    def of_arrays(self, arrays: Sequence) -> tuple:
        """Return the user's function and its arguments after x, for SciPy's call."""
        return self._now, self._packed(arrays, self._given)

    def packed(self, tensors: Sequence) -> tuple:
        """Return the arguments after x, given the tensors."""
        return self._packed(tensors, self.leaves)

    def __call__(self, x: Any, *tensors: Any) -> Any:
        """Return the value, given the tensors."""
        return self.function(x, *self.packed(tensors))


class Component(dict):
    """Component of the gradient of an integrand, by points; computed at further points.

    Parameters
    ----------
    gradient : callable
        Returns all components at a point.
    i : int
    known : iterable of (float, float)
    """

    def __init__(self, gradient: Callable, i: int, known: Iterable) -> None:
        super().__init__(known)
        self._gradient, self._i = gradient, i

    def __missing__(self, x: float) -> float:
        value = self[x] = float(self._gradient(x)[self._i])
        return value


class Tails:
    """Ranges up to an infinite limit in which an integrand underflows to 0.

    There its derivative, which is not finite if the reason is an infinite denominator, is 0.
    """

    def __init__(
        self, name: str, function: Callable, arrays: list, points: list, limits: list,
    ) -> None:
        self._name, self._function, self._limits = name, function, limits
        self._value = lambda x: float(np.asarray(function(x, *arrays)))
        self._points = points
        self._ends: tuple[float, ...] = ()

    def finite(self, x: float, gradient: Any) -> Any:
        """Return the gradient at a point where it is not finite."""
        with np.errstate(all="ignore"):
            if not self._ends:
                inner = [x for x in self._points if self._value(x)]
                self._ends = (min(inner) if inner and -np.inf in self._limits else -np.inf,
                              max(inner) if inner and np.inf in self._limits else np.inf)
            value = self._value(x)
        if value == 0 and not self._ends[0] <= x <= self._ends[1]:
            return np.zeros_like(gradient)
        if np.isfinite(value):
            warn(f"{self._name}: the derivative of the integrand is not finite at {x:.6g}, where "
                 f"its value is {value:.6g}", RuntimeWarning)
        return gradient


class Rule:
    """A function of SciPy that integrates, with its options.

    Parameters
    ----------
    call : callable
        Takes the integrand and both limits; returns SciPy's results.
    weight : callable
        Factor of the integrand at a limit.
    is_scalar : bool
        Whether the integrand must be a number.
    """

    def __init__(self, name: str, call: Callable, weight: Callable, is_scalar: bool) -> None:
        self.name, self._call, self._weight, self._is_scalar = name, call, weight, is_scalar

    def integrate(self, function: Callable, a: Any, b: Any, tensors: list) -> tuple:
        """Return SciPy's results, with the integral recorded; `function` is of x and tensors."""
        args: Sequence = [data_of(x)[()] for x in tensors]
        f, args = function.of_arrays(args) if isinstance(function, Integrand) else (function, args)
        points: list = []
        note = points.append

        def of_arrays(x: Any) -> Any:
            note(x)
            value = f(x, *args)
            if isinstance(value, ARRAYS):
                return value
            try:
                return np.asarray(value)[()] if is_tensor(value) else value
            except LEAVES_CYTAPE as error:
                raise reads_others(self.name, error) from None  # its advice is wrong here

        value, *others = self._call(of_arrays, *map(_number, (a, b)))
        inputs = [convert_to_tensor(x) for x in (a, b)] + tensors
        value = record(
            self.name, convert_to_tensor(value), inputs,
            partial(self._backward, function, (is_tensor(a), is_tensor(b)), points,
                    values_at_call(inputs)))
        return value, *others

    def _backward(
        self, function: Callable, moving: tuple, points: list, given: list, g: Any,
    ) -> GradientsIfNeeded:
        a, b, *tensors = given

        def gradients(needs: tuple) -> list:
            found: list = [None, None]
            for i, sign in (0, -1.0), (1, 1.0):
                if needs[i] and moving[i]:
                    found[i] = sign * cnp.sum(g * self._at(function, given[i], tensors))
            flat = self._of_tensors(function, points, given, g)
            for x in tensors:
                size = x.size if x.spec.trainable else 0
                part = cnp.reshape(flat[:size], x.shape) if size else None
                found.append(part if part is None else cnp.asarray(part, x.dtype))
                flat = flat[size:]
            return [x if x is None else convert_to_tensor(x) for x in found]

        return GradientsIfNeeded(gradients)

    def _at(self, function: Callable, limit: Any, tensors: list) -> Any:
        if np.isinf(data_of(limit)):
            return 0.0
        return self._weight(limit) * cnp.asarray(function(limit, *tensors))

    def _of_tensors(self, function: Callable, points: list, given: list, g: Any) -> Any:
        """Return the gradients in the tensors, one after the other as a vector."""
        a, b, *tensors = given
        size = sum([x.size for x in tensors if x.spec.trainable])
        if not size:
            return np.zeros(0)
        if not self._is_scalar:
            return self.integrate(
                lambda x, g, *tensors: _gradient(self.name, function, x, tensors, g), a, b,
                [g, *tensors])[0]
        limits = [*map(_number, (a, b))]
        columns = self._components(function, points, tensors, size, limits)
        if not followed([*given, g]):
            return data_of(g) * np.array([
                self._call(column.__getitem__, *limits)[0] for column in columns])

        def component(i: int, x: Any, *tensors: Any) -> Any:
            if any(map(is_tensor, (x, *tensors))):
                return _gradient(self.name, function, x, tensors, 1.0)[i]
            return columns[i][x]

        return g * cnp.stack([
            self.integrate(partial(component, i), a, b, tensors)[0] for i in range(size)])

    def _components(
        self, function: Callable, points: list, tensors: list, size: int, limits: list,
    ) -> list[Component]:
        """Return components of the gradient, known at the points of the integral if possible."""
        found: Any = [()] * size
        arrays = [data_of(x) for x in tensors]
        tails = Tails(self.name, function, arrays, points, limits)
        try:
            rows = self._at_points(function, np.array(points), arrays)
            if not math.isfinite(rows.sum()):
                for i in np.nonzero(~np.isfinite(rows).all(1))[0]:
                    rows[i] = tails.finite(points[i], rows[i])
            found = rows.T.tolist()
        except Exception as error:
            require_of_tracing(error)

        further: dict = {}

        def gradient(x: float) -> Any:
            if x not in further:
                with np.errstate(all="ignore"):
                    found = np.asarray(_gradient(self.name, function, x, arrays, 1.0))
                further[x] = found if np.all(np.isfinite(found)) else tails.finite(x, found)
            return further[x]

        return [Component(gradient, i, zip(points, values, strict=bool(values)))
                for i, values in enumerate(found)]

    def _at_points(self, function: Callable, points: np.ndarray, arrays: list) -> np.ndarray:
        """Return the gradients at points, one per row, of points with the same branches at once."""
        identity = identity_of(
            restored(function.function), function.leaves, function.moving,
        ) if isinstance(function, Integrand) else None

        def call(plain: Callable, path: tuple, points: np.ndarray) -> Any:
            return kept(partial(plain, self.name, function, path), identity, [
                path, *[x.shape for x in arrays]])(points, arrays)

        with np.errstate(all="ignore"):
            if manner_of(identity) == "together":
                try:
                    return np.array(call(_gradients, (), points))
                except Exception as error:
                    require_of_tracing(error)
                    note_manner(identity, "groups")
            if manner_of(identity) == "one by one":
                raise Unknown
            note_manner(identity, "one by one")  # if the following fails
            groups = groups_of(lambda path, i: call(_conditions, path, points[i]), len(points))
            if groups is None:
                raise Unknown
            parts = [call(_gradients, path, points[i]) for path, i in groups]
            note_manner(identity, "groups")
            return np.concatenate(parts)[np.argsort(np.concatenate([i for _, i in groups]))]


def _number(limit: Any) -> Any:
    return float(data_of(limit)) if is_tensor(limit) else limit


def _gradients(name: str, function: Callable, path: tuple, points: Any, tensors: list) -> Any:
    return vmap(
        lambda x: along(path, _gradient, name, function, x, tuple(tensors), 1.0))(points)


def _conditions(name: str, function: Callable, path: tuple, points: Any, tensors: list) -> Any:
    tensors = list(map(convert_to_tensor, tensors))  # as for derivatives
    return conditions(path, lambda x: function(x, *tensors), points)


def _gradient(name: str, function: Callable, x: Any, tensors: Sequence, seed: Any) -> Any:
    sources = [identity_op(convert_to_tensor(t)) for t in tensors]
    moving = [t for t in sources if t.spec.trainable]
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(moving)
        detached = noting_detached(tape)
        value = cnp.asarray(function(x, *sources))
    found: list = [None] * len(moving)
    if is_tensor(value):
        seed = cnp.asarray(seed, value.dtype) + cnp.zeros(value.shape, value.dtype)
        found = tape.gradient(value, moving, [convert_to_tensor(seed)])
    if detached and any(x is None for x in found):
        raise DetachedError(
            f"{name}: the derivative of the integrand was lost: a value left its tensor "
            f"by {how_left(detached)}. Compute with the tensors themselves")
    return cnp.concatenate([
        cnp.zeros(t.size) if x is None else cnp.ravel(x)
        for t, x in zip(moving, found, strict=True)])


def with_tensors(
    name: str, function: Callable, args: Any, limits: tuple, integrate: Callable,
    is_complex: bool = False,
) -> Any:
    """Call `integrate` with an integrand, both limits and the tensors in `args`.

    Returns None if there are no tensors.
    """
    args = args if isinstance(args, tuple) else (args,)
    given = [x for x in (*limits, *nest.flatten(args)) if is_tensor(x)]
    if not given:
        return None

    def call(users: Sequence, limits: tuple, args: tuple) -> tuple:
        integrand = Integrand(name, users[0], args)
        return noting([integrand.function], integrate, integrand, *limits,
                      list(map(convert_to_tensor, integrand.tensors)))

    graph = graph_for(given)
    if graph is None:
        return call((function,), limits, args)
    spec = symbolic_spec((), np.dtype(complex if is_complex else float))
    return tuple(call_in_graph(
        graph, name, lambda *given: call(*given)[:2], (function,), (limits, args),
        [spec] * 2))
