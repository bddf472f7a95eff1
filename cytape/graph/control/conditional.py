"""The op that runs one of two bodies, and its derivatives: calls of that op once more.

A derivative runs the body again that was run, from the inputs of the call. What a body does besides
must not happen again: where it draws random numbers or looks at variables that it changes, these
values are outputs of the call, and the derivative is told them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from cytape.graph.control.checks import check_branches
from cytape.graph.control.control_ops import CondOp
from cytape.graph.tracing.bodies import (
    REPEATED,
    Operands,
    added,
    closed,
    computed,
    dense,
    given_symbols,
    inlined,
    like,
    repeatable,
    zeros,
)
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import symbolic_gradients, symbolic_tangents
from cytape.ops.engine.declare import enter
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.spec import Spec, symbolic_spec
from cytape.tensor.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor
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

    Returns
    -------
    list of Tensor
    """
    operands = Operands([predicate])
    positions = tuple(map(operands.positions, inputs))
    for branch in branches:
        branch.release_captures()
    attrs = {"branches": tuple(branches), "positions": positions}
    if assigned is None:
        return cond_op(*operands.tensors, **attrs)
    return stateful_cond_op(*operands.tensors, **attrs, assigned=assigned)


def _forward(*arrays: Any, branches: Any, positions: Any, assigned: Any = ()) -> list[Any]:
    which = 0 if arrays[0] else 1
    return computed(branches[which], [arrays[i] for i in positions[which]])


def _shape_rule(*specs: Spec, branches: Any, positions: Any, assigned: Any = None) -> list[Spec]:
    check_branches(specs, branches, positions, assigned)
    specs_of = [map(branch.graph.spec_of, branch.output_symbols) for branch in branches]
    return [common(*pair) for pair in zip(*specs_of, strict=True)]


def common(first: Spec, second: Spec) -> Spec:
    """Return the spec that covers two of the same dtype.

    Examples
    --------
    >>> common(Spec.of((2, 3), float), Spec.of((2, 4), float)).shape
    (2, None)
    """
    if first.shape is None or second.shape is None or len(first.shape) != len(second.shape):
        return symbolic_spec(None, first.dtype)
    shape = tuple(a if a == b else None for a, b in zip(first.shape, second.shape, strict=True))
    return symbolic_spec(shape, first.dtype)


class _Part:
    """The derivative of one branch, while it is traced.

    Attributes
    ----------
    arguments, actual : list of Tensor
        What it may use, and what will be passed for that.
    results : dict of int to Tensor
        What it finds, by positions among the results of the whole.
    """

    def __init__(self, branch: ConcreteFunction, inputs: Sequence[Tensor], suffix: str) -> None:
        self.branch = branch
        self.graph = FunctionGraph(f"{branch.name}_{suffix}", current_graph())
        self.arguments: list[Tensor] = []
        self.actual: list[Tensor] = []
        self.inputs = self.take(branch.graph, branch.input_symbols, inputs)
        self.results: dict[int, Any] = {}

    def take(self, source: Any, symbols: Iterable[int], actual: Iterable[Tensor]) -> list[Tensor]:
        """Add arguments."""
        arguments = like(self.graph, source, symbols)
        self.arguments += arguments
        self.actual += actual
        return arguments

    def symbols(self, tensors: Iterable[Tensor]) -> list[int]:
        return list(map(self.graph.symbol_of, tensors))

    def building(self) -> AbstractContextManager[Any]:
        stack = ExitStack()
        stack.enter_context(unrecorded())
        stack.enter_context(building_into(self.graph))
        return stack


def _repeatable_branches(op: Any, inputs: Sequence[Tensor]) -> tuple[list, list]:
    """Return the branches as they can be run again, and the inputs of each."""
    branches, positions = op.attrs["branches"], op.attrs["positions"]
    passed = [[inputs[i] for i in place] for place in positions]
    if not op.op.stateful:
        return list(branches), passed
    outputs = list(map(convert_to_tensor, op.outputs))
    return _with_given(branches, passed, outputs)


def _with_given(branches: Sequence, inputs: Sequence, outputs: list[Tensor]) -> tuple[list, list]:
    counts = [len(given_symbols(branch.graph)) for branch in branches]
    first = len(outputs) - sum(counts)
    given = [outputs[first : first + counts[0]], outputs[first + counts[0] :]]
    return (
        list(map(repeatable, branches)),
        [[*own, *more] for own, more in zip(inputs, given, strict=True)],
    )


def _joined(predicate: Tensor, parts: list[_Part], stand_in: Callable) -> dict[int, Tensor]:
    """Run the derivative of the branch that ran; what the other has alone is zero in this one."""
    found = sorted(set(parts[0].results) | set(parts[1].results))
    if not found:
        return {}
    bodies, inputs = [], []
    for part in parts:
        with part.building():
            results = [
                dense(part.results[i]) if i in part.results else zeros(stand_in(part, i))
                for i in found
            ]
            body, passed, _ = closed(part.graph, (), part.arguments, part.actual, results)
        bodies.append(body)
        inputs.append(passed)
    return dict(zip(found, call_branch(predicate, bodies, inputs), strict=True))


def _vjp(op: Any, *gradients: Tensor | None) -> list[Tensor | None]:
    inputs = list(map(convert_to_tensor, op.inputs))
    branches, passed = _repeatable_branches(op, inputs)
    arrived = [i for i, gradient in enumerate(gradients) if gradient is not None]
    parts = []
    for branch, own, positions in zip(branches, passed, op.attrs["positions"], strict=True):
        part = _Part(branch, own, "grad")
        with part.building():
            seeds = part.take(branch.graph, [branch.output_symbols[i] for i in arrived],
                              [convert_to_tensor(gradients[i]) for i in arrived])
            outputs = inlined(branch, part.graph, part.inputs)
            wanted = [i for i, position in enumerate(positions) if op.needs[position]]
            found = symbolic_gradients(
                part.graph, part.symbols([outputs[i] for i in arrived]),
                part.symbols([part.inputs[i] for i in wanted]), seeds)
            for i, gradient in zip(wanted, found, strict=True):
                if gradient is not None:
                    part.results[positions[i]] = added(part.results.get(positions[i]), gradient)
        parts.append(part)

    def stand_in(part: _Part, position: int) -> Tensor:
        spec = inputs[position].spec
        argument = part.graph.argument(
            None if spec.shape is None else tuple(spec.shape), spec.dtype)
        part.arguments.append(argument)
        part.actual.append(inputs[position])
        return argument

    joined = _joined(inputs[0], parts, stand_in)
    return [joined.get(i) for i in range(len(inputs))]


def _jvp(op: Any, *tangents: Tensor | None) -> list[Tensor | None]:
    inputs = list(map(convert_to_tensor, op.inputs))
    branches, passed = _repeatable_branches(op, inputs)
    parts, all_outputs = [], {}
    for branch, own, positions in zip(branches, passed, op.attrs["positions"], strict=True):
        part = _Part(branch, own, "jvp")
        with part.building():
            moving = [i for i, position in enumerate(positions) if tangents[position] is not None]
            own_tangents = part.take(
                branch.graph, [branch.input_symbols[i] for i in moving],
                [convert_to_tensor(tangents[positions[i]]) for i in moving])
            outputs = all_outputs[part] = inlined(branch, part.graph, part.inputs)
            found = symbolic_tangents(
                part.graph, part.symbols([part.inputs[i] for i in moving]), own_tangents,
                part.symbols(outputs))
            part.results = {i: t for i, t in enumerate(found) if t is not None}
        parts.append(part)
    joined = _joined(inputs[0], parts, lambda part, i: all_outputs[part][i])
    return [joined.get(i) for i in range(len(op.output_specs))]


def _repeated(inputs: list[Tensor], outputs: list[Tensor], attrs: dict) -> list[Tensor]:
    branches, passed = _with_given(
        attrs["branches"], [[inputs[i] for i in place] for place in attrs["positions"]], outputs)
    return call_branch(inputs[0], branches, passed)


_OPTIONAL: dict[str, Any] = {"optional_gradients": range(64), "optional_tangents": range(1 << 30)}
cond_op = enter(CondOp("Cond", _forward, _vjp, _jvp, shape_rule=_shape_rule, **_OPTIONAL))
stateful_cond_op = enter(
    CondOp("StatefulCond", _forward, _vjp, _jvp, shape_rule=_shape_rule,
           saved_outputs=range(1 << 30), **_OPTIONAL))
stateful_cond_op.stateful = True
REPEATED[stateful_cond_op] = _repeated
