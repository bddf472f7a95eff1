"""The op that runs one of two bodies, and its derivatives: further calls of that op.

The gradient takes two calls. The first repeats the body that was run and returns, besides its
results, the residuals (see `residuals`); the second goes backward and reads them. If the original
call is in the same graph, optimisation merges the first one with it. Where only one body has a
residual or gradient, the other one returns zeros.
Side effects are passed on as in loops, see `while_op`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cytape.graph.control.body_checks import check_branches, is_ragged
from cytape.graph.control.control_ops import CondOp, LoopOp, output_specs
from cytape.graph.control.function_checks import open_shape
from cytape.graph.control.residuals import extracted, read_of, residuals
from cytape.graph.model.body_flow import Run
from cytape.graph.tracing.body_tools import (
    Operands,
    added,
    dense,
    given_symbols,
    repeatable,
    zeros,
)
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.derived_body import DerivedBody
from cytape.ops.adjoints.conform import broadcast_to, cast
from cytape.ops.calls.symbolic import in_graph
from cytape.ops.engine.op_kinds import ANY_OUTPUT, enter
from cytape.tensor.making import constant, convert_to_tensor
from cytape.tensor.recording.state import building_into, unrecorded
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import Spec, symbolic_spec
from cytape.tensor.variable import Variable

__all__ = ["call_branch"]


def call_branch(
    predicate: Tensor,
    branches: Sequence[ConcreteFunction],
    inputs: Sequence[Sequence[Tensor]],
    assigned: tuple[Variable, ...] | None = None,
) -> list[Tensor]:
    """Run one of two bodies.

    Parameters
    ----------
    predicate : Tensor
    branches : (ConcreteFunction, ConcreteFunction)
        For true and for false; with the same number of outputs, of the same dtypes.
    inputs : (sequence of Tensor, sequence of Tensor)
        Of each.
    assigned : tuple of Variable, optional
        The variables that the branches change. None: every call counts for its results alone.
    """
    operands = Operands([predicate])
    positions = tuple(map(operands.positions, inputs))
    for branch in branches:
        branch.release_captures()
    attrs = {"branches": tuple(branches), "positions": positions}
    if assigned is None:
        return cond_op(*operands.tensors, **attrs)
    return stateful_cond_op(*operands.tensors, **attrs, assigned=assigned)


def _shape_rule(*specs: Spec, branches: Any, positions: Any, assigned: Any = None) -> list[Spec]:
    check_branches(specs, branches, positions, assigned)
    returned = [output_specs(branch, [specs[i] for i in place])
                for branch, place in zip(branches, positions, strict=True)]
    return [common(*pair) for pair in zip(*returned, strict=True)]


def common(first: Spec, second: Spec) -> Spec:
    """Return the most specific spec that covers two specs of the same dtype.

    Examples
    --------
    >>> common(Spec.of((2, 3), float), Spec.of((2, 4), float)).shape
    (2, None)
    """
    return symbolic_spec(open_shape(first.shape, second.shape), first.dtype)


class _Part(DerivedBody):
    """The derivative of one branch, while it is built.

    Attributes
    ----------
    passed : list of Tensor
        The inputs of the branch, where it is called.
    results : dict of int to Tensor
        Results that this branch computes, by positions among all results.
    """

    def __init__(self, branch: ConcreteFunction, passed: Sequence[Tensor], suffix: str) -> None:
        super().__init__(branch, suffix)
        self.passed = list(passed)
        self.build(self.take(branch.input_symbols, passed))
        self.results: dict[int, Any] = {}

    def all_results(self, found: Iterable[int], stand_in: Callable) -> list[Tensor]:
        """Return results for some positions, zeros where there are none."""
        with unrecorded(), building_into(self.graph):
            return [
                in_graph(self.graph, dense(self.results[i]) if i in self.results
                         else zeros(stand_in(self, i)))
                for i in found]

    def extracted(
        self, inputs: Sequence[Tensor], actual: Sequence[Tensor], outputs: Sequence[Tensor],
        keep: Sequence[int] = (),
    ) -> tuple[ConcreteFunction, list[Tensor]]:
        """Return a body that also takes the graph's captured tensors, and its inputs."""
        captured = [self.graph.tensor_at(symbol) for _, symbol in self.graph.captures]
        return (
            extracted(self.graph, [*inputs, *captured], outputs, keep),
            [*actual, *[tensor for tensor, _ in self.graph.captures]])


def _repeatable_branches(
    inputs: Sequence[Tensor], outputs: Sequence, attrs: dict, stateful: bool = True
) -> tuple[list[ConcreteFunction], list[list[Tensor]]]:
    """Return the branches without side effects, and the inputs of each."""
    branches = list(attrs["branches"])
    passed = [[inputs[i] for i in place] for place in attrs["positions"]]
    if not stateful:
        return branches, passed
    counts = [len(given_symbols(branch.graph)) for branch in branches]
    given = iter(outputs[len(outputs) - sum(counts) :])
    for own, count in zip(passed, counts, strict=True):
        own += map(convert_to_tensor, itertools.islice(given, count))
    return list(map(repeatable, branches)), passed


def _vjp(op: Any, *gradients: Tensor | None) -> list[Tensor | None]:
    inputs = list(map(convert_to_tensor, op.inputs))
    branches, passed = _repeatable_branches(
        inputs, op.outputs, op.attrs, op.op.stateful)
    arrived = [i for i, gradient in enumerate(gradients) if gradient is not None]
    parts, all_seeds = [], []
    for branch, own, positions in zip(branches, passed, op.attrs["positions"], strict=True):
        part = _Part(branch, own, "_grad")
        seeds = part.take([branch.output_symbols[i] for i in arrived],
                          [convert_to_tensor(gradients[i]) for i in arrived])
        wanted = [i for i, position in enumerate(positions) if op.needs[position]]
        found = part.gradients(
            [part.outputs[i] for i in arrived], [part.inputs[i] for i in wanted], seeds)
        with unrecorded(), building_into(part.graph):
            for i, gradient in zip(wanted, found, strict=True):
                if gradient is not None:
                    part.results[positions[i]] = added(part.results.get(positions[i]), gradient)
        parts.append(part)
        all_seeds.append(seeds)

    def stand_in(part: _Part, position: int) -> Tensor:
        return part.take_like([inputs[position]])[0]

    found = sorted(set(parts[0].results) | set(parts[1].results))
    if not found:
        return [None] * len(inputs)
    results = [part.all_results(found, stand_in) for part in parts]
    needed = []
    for part, other, seeds, own_results in zip(
            parts, reversed(parts), all_seeds, results, strict=True):
        needed.append(residuals(
            part.graph, part.inputs, seeds, part.first_of_derivative, own_results, part.inputs,
            functools.partial(_is_kept, part, other)))
    kept = _kept(inputs[0], parts, needed)
    bodies, all_passed = [], []
    for part, own_needed, own_kept, own_results in zip(parts, needed, kept, results, strict=True):
        arguments, actual = own_needed + part.arguments, own_kept + part.actual
        used = read_of(part.graph, own_results, arguments)
        body, given = part.extracted([arguments[i] for i in used], [actual[i] for i in used],
                                     own_results, part.graph.stateful)
        bodies.append(body)
        all_passed.append(given)
    by_position = dict(zip(found, call_branch(inputs[0], bodies, all_passed), strict=True))
    return [by_position.get(i) for i in range(len(inputs))]


def _kept(
    predicate: Tensor, parts: Sequence[_Part], needed: Sequence[Sequence[Tensor]]
) -> list[list[Tensor]]:
    """Repeat the branch to get the residuals; return those of each branch."""
    slots: list[list[Any]] = [[x, None] for x in needed[0]]
    places: list[list[int]] = [list(range(len(slots))), []]
    for x in needed[1]:  # shares an output with an equal residual of the other branch, if any
        kind = _kind(parts[1], parts[0], x)
        place = next((i for i, (other, own) in enumerate(slots[: len(needed[0])]) if own is None
                      and _kind(parts[0], parts[1], other) == kind), len(slots))
        if place == len(slots):
            slots.append([None, x])
        slots[place][1] = x
        places[1].append(place)
    if not slots:
        return [[], []]
    bodies, passed = [], []
    for i, part in enumerate(parts):
        with unrecorded(), building_into(part.graph):
            more = [in_graph(part.graph, _nothing(part, parts[1 - i], pair[1 - i])
                             if pair[i] is None else pair[i]) for pair in slots]
        body, given = part.extracted(part.inputs, part.passed, part.outputs + more)
        if not part.graph.captures:
            body.history_of = part.body
        bodies.append(body)
        passed.append(given)
    history = call_branch(predicate, bodies, passed)[len(parts[0].outputs) :]
    return [[history[place] for place in of_part] for of_part in places]


def _is_kept(part: _Part, other: _Part, x: Tensor) -> bool:
    return _kind(part, other, x) is not None


def _kind(part: _Part, other: _Part, x: Tensor) -> Any:
    """Return dtype and shape of a residual, None if branches cannot share the output."""
    spec = x.spec
    if spec.known:
        return spec
    for argument, passed in zip(part.inputs, part.passed, strict=True):
        if argument.spec.extents is spec.extents and any(passed is y for y in other.passed):
            return passed.id, spec.dtype
    made_by = part.graph.ops[part.graph.node_of(part.graph.symbol_of(x))]
    if isinstance(made_by, (LoopOp, CondOp)) and is_ragged(spec):  # rows of iterations
        return tuple(spec.shape), spec.dtype
    return None


def _nothing(part: _Part, other: _Part, x: Tensor) -> Tensor:
    """Return zeros for a residual of the other branch."""
    spec, zero = x.spec, constant(0, x.dtype)
    if not spec.known:
        for argument, passed in zip(other.inputs, other.passed, strict=True):
            place = next((i for i, y in enumerate(part.passed) if y is passed), None)
            if argument.spec.extents is spec.extents and place is not None:
                return zeros(cast(part.inputs[place], x.dtype))
    return broadcast_to(zero, [extent or 0 for extent in spec.shape])


def _jvp(op: Any, *tangents: Tensor | None) -> list[Tensor | None]:
    inputs = list(map(convert_to_tensor, op.inputs))
    branches, passed = _repeatable_branches(
        inputs, op.outputs, op.attrs, op.op.stateful)
    parts = []
    for branch, own, positions in zip(branches, passed, op.attrs["positions"], strict=True):
        part = _Part(branch, own, "_jvp")
        moving = [i for i, position in enumerate(positions) if tangents[position] is not None]
        own_tangents = part.take(
            [branch.input_symbols[i] for i in moving],
            [convert_to_tensor(tangents[positions[i]]) for i in moving])
        found = part.tangents([part.inputs[i] for i in moving], own_tangents, part.outputs)
        part.results = {i: t for i, t in enumerate(found) if t is not None}
        parts.append(part)
    moved = sorted(set(parts[0].results) | set(parts[1].results))
    if not moved:
        return [None] * len(op.output_specs)
    bodies, all_passed = [], []
    for part in parts:
        body, given = part.closed(part.all_results(moved, lambda part, i: part.outputs[i]))
        bodies.append(body)
        all_passed.append(given)
    by_output = dict(zip(moved, call_branch(inputs[0], bodies, all_passed), strict=True))
    return [by_output.get(i) for i in range(len(op.output_specs))]


_OPTIONAL: dict[str, Any] = {
    "optional_gradients": ANY_OUTPUT, "optional_tangents": range(1 << 30)}
cond_op = enter(CondOp("Cond", _vjp, _jvp, shape_rule=_shape_rule, **_OPTIONAL))
stateful_cond_op = enter(
    CondOp("StatefulCond", _vjp, _jvp, shape_rule=_shape_rule,
           saved_outputs=range(1 << 30), **_OPTIONAL)).described(
    stateful=True,
    repeated=lambda inputs, outputs, attrs: call_branch(
        inputs[0], *_repeatable_branches(inputs, outputs, attrs)),
    runs=lambda attrs: list(map(Run, attrs["branches"], attrs["positions"])))
