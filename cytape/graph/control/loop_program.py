"""Functions of a loop, called with lists of its variables, and checks of their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.graph.control.element_stores import is_known
from cytape.graph.control.function_checks import (
    as_predicate,
    call,
    check_structures,
    lent,
    next_values,
)
from cytape.graph.control.tensor_array import TensorArray
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.ops.adjoints.identity_groups import may_agree
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import building_into, current_graph, unrecorded
from cytape.tensor.structures import leaves_of_operand
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import Spec, symbolic_spec

__all__ = ["Program", "settled"]

_IN_ORDER = "while_loop takes the condition first, then the body"


class Program:
    """Condition and body of a loop.

    In an eager loop a `TensorArray` is one variable; in a graph each of its tensors is.

    Parameters
    ----------
    cond, body : callable
    loop_vars : structure
    shape_invariants : structure or None
    expand : bool, optional
        Whether a `TensorArray` is taken apart.

    Attributes
    ----------
    starts : list of Tensor or TensorArray
        The start values.
    """

    def __init__(
        self, cond: Callable, body: Callable, loop_vars: Any, shape_invariants: Any,
        expand: bool = False,
    ) -> None:
        self._functions = cond, body
        self._loop_vars, self._invariants, self._expand = loop_vars, shape_invariants, expand
        leaves_of_operand(loop_vars)  # registers its dataclasses
        self._unpacked = isinstance(loop_vars, (list, tuple)) and not hasattr(loop_vars, "_fields")
        self._places = nest.paths(loop_vars, "loop_vars", expand)
        self.starts: list[Any] = [
            leaf if isinstance(leaf, TensorArray) else convert_to_tensor(leaf)
            for leaf in nest.flatten(loop_vars, expand)
        ]
        self._specs = self._invariant_specs()

    def _invariant_specs(self) -> list[Spec | None]:
        """Return the specs of the variables in all iterations, None for a `TensorArray`."""
        given: list[Any] = [None] * len(self.starts)
        if self._invariants is not None:
            try:
                given = nest.flatten_up_to(self._loop_vars, self._invariants, self._expand)
            except ValueError as error:
                raise ValueError(
                    f"shape_invariants must be structured as loop_vars: {error}") from None
        specs: list[Spec | None] = []
        for place, start, invariant in zip(self._places, self.starts, given, strict=True):
            if isinstance(start, TensorArray):
                specs.append(None)
                continue
            spec = start.spec
            if isinstance(invariant, Spec):
                spec = invariant
            elif invariant is not None:
                spec = symbolic_spec(_checked_shape(place, invariant), start.dtype)
            if spec.dtype != start.dtype or not _allows(spec.shape, start.shape):
                raise ValueError(
                    f"the shape invariant of {place}, {spec!r}, does not allow for its start "
                    f"value, {start.dtype} of shape {start.shape}"
                )
            specs.append(spec)
        return specs

    def in_graph(self, variables: list) -> Program:
        """Return the loop with all variables as tensors, starting from given values."""
        cond, body = self._functions
        loop_vars = self.packed(variables)
        leaves = nest.flatten(loop_vars)
        if any(leaf is None for leaf in leaves):
            loop_vars = self._settled(loop_vars, leaves)
        return Program(cond, body, loop_vars, self._invariants, expand=True)

    def _settled(self, loop_vars: Any, leaves: list) -> Any:
        """Set the element shapes of TensorArrays by a first trace of the body."""
        trial = FunctionGraph("while_body", current_graph())
        with unrecorded(), building_into(trial):
            arguments = []
            for leaf in leaves:
                tensor = None if leaf is None else convert_to_tensor(leaf)
                arguments.append(
                    None if tensor is None else trial.argument(tensor.shape, tensor.dtype))
            results = self._results(nest.pack_sequence_as(loop_vars, lent(arguments)))
        loop_vars = settled(loop_vars, results, "loop_vars")
        places = nest.paths(loop_vars, "loop_vars")
        for place, leaf in zip(places, nest.flatten(loop_vars), strict=True):
            if leaf is None:
                raise ValueError(
                    f"{place} needs to know the shape of its elements before the loop: pass "
                    "TensorArray an element_shape without None, or write an element before"
                )
        return loop_vars

    @property
    def body(self) -> Callable:
        """The user's function of an iteration."""
        return self._functions[1]

    def packed(self, variables: list) -> Any:
        """Return variables packed in the structure of the loop's."""
        return nest.pack_sequence_as(self._loop_vars, variables, self._expand)

    def arguments(self, graph: FunctionGraph) -> list[Tensor]:
        """Add placeholders for the variables to the graph of a function."""
        return graph.arguments(spec for spec in self._specs if spec is not None)

    def _call(self, called: str, f: Callable, structure: Any) -> Any:
        return call(called, f, *structure) if self._unpacked else call(called, f, structure)

    def goes_on(self, variables: list) -> Tensor:
        """Call the condition."""
        result = self._call("cond", self._functions[0], self.packed(variables))
        if isinstance(result, (list, tuple, dict)):
            raise TypeError(
                f"cond must return a boolean scalar, got a {type(result).__name__}: {_IN_ORDER}")
        return as_predicate("the result of cond", result)

    def _results(self, structure: Any) -> Any:
        results = self._call("body", self._functions[1], structure)
        if _is_predicate(results) and not (
                len(self.starts) == 1 and self.starts[0].dtype == np.bool_):
            raise TypeError(
                f"body must return the next values of {len(self.starts)} loop variables, got a "
                f"boolean scalar: {_IN_ORDER}")
        if self._unpacked:
            kind = type(self._loop_vars)
            results = kind(results) if isinstance(results, (list, tuple)) else kind([results])
        for leaf in nest.flatten(results, expand=False):
            if isinstance(leaf, TensorArray):
                leaf.use()
        check_structures("loop_vars and the results of body", self._loop_vars, results)
        return results

    def step(self, variables: list) -> list:
        """Call the body."""
        results = nest.flatten(self._results(self.packed(variables)), self._expand)
        tensors = [i for i, spec in enumerate(self._specs) if spec is not None]
        checked = next_values(
            "body", [self._places[i] for i in tensors], [results[i] for i in tensors],
            [spec for spec in self._specs if spec is not None],
            "pass shape_invariants with {} for it")
        for i, tensor in zip(tensors, checked, strict=True):
            results[i] = tensor
        return results


def settled(structure: Any, like: Any, word: str) -> Any:
    """Set unknown element shapes of TensorArrays by those of an equal structure."""
    leaves = nest.flatten(structure, expand=False)
    places = nest.paths(structure, word, False)
    for i, other in enumerate(nest.flatten(like, expand=False)):
        if not isinstance(other, TensorArray) or not leaves[i].is_open or other.is_open:
            continue
        if not is_known(other.element_shape):
            raise ValueError(
                f"{places[i]} needs the shape of its elements before a loop or a branch writes to "
                f"it. The elements written have shape {other.element_shape}, where None is an "
                "extent that only a run knows (because of reduce_retracing=True or an "
                "input_signature): write an element before, or pass TensorArray an element_shape "
                "without None"
            )
        leaves[i] = leaves[i].told(other.element_shape)
    return nest.pack_sequence_as(structure, leaves, expand=False)


def _is_predicate(x: Any) -> bool:
    if isinstance(x, (Tensor, np.ndarray, np.generic)):
        return x.dtype == np.bool_ and x.shape == ()
    return isinstance(x, bool)


def _checked_shape(place: str, shape: Any) -> tuple:
    try:
        return tuple([None if extent is None else int(extent) for extent in shape])
    except (TypeError, ValueError):
        raise TypeError(
            f"the shape invariant of {place} must be a shape, such as (None, 3), a Spec or None, "
            f"got {shape!r}"
        ) from None


def _allows(invariant: Any, shape: Any) -> bool:
    """Return whether a shape certainly satisfies an invariant."""
    return invariant is None or may_agree(invariant, shape)
