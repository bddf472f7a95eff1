"""The op that runs a body again and again, and its derivatives: calls of that op once more.

The gradient takes two loops. The first goes forward once more and keeps those loop variables of
each iteration that are needed; the second goes backward over what was kept. Neither keeps what is
the same in all iterations. Both are ordinary calls of the op, and so have derivatives themselves.

What a body does besides must not happen again: where it draws random numbers or looks at variables
that it changes, these values are outputs of the call, and the derivatives are told them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cytape.graph.control.control_ops import LoopOp, stacked
from cytape.graph.tracing.bodies import (
    MOST_OUTPUTS,
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
    with_outputs,
    zeros,
)
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import symbolic_gradients, symbolic_tangents
from cytape.ops.engine.declare import enter
from cytape.ops.engine.general_op import NotSaved
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.spec import Spec, symbolic_spec
from cytape.tensor.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable

__all__ = ["Loop"]


@dataclass
class Loop:
    """A call of the op to be.

    Attributes
    ----------
    body : ConcreteFunction
        From loop variables, slices of stacks, and what is the same in all iterations, to the next
        loop variables and what is to be stacked.
    limit : Tensor
        The greatest number of iterations, int64.
    variables : list of Tensor
        The start values of the loop variables.
    stacks : list of Tensor
    same : list of Tensor
        What else the body takes.
    condition : ConcreteFunction or None
        From some loop variables, the first, and what is the same, to whether to go on. None: there
        are as many iterations as the limit says.
    same_for_condition : list of Tensor
        What else the condition takes.
    reverse : bool
        Whether stacks are gone through, and made, from the last slice to the first.
    assigned : tuple of Variable or None
        The variables that the functions change. None: every call counts for its results alone.
    """

    body: ConcreteFunction
    limit: Tensor
    variables: list[Tensor]
    stacks: list[Tensor]
    same: list[Tensor]
    condition: ConcreteFunction | None = None
    same_for_condition: Sequence[Tensor] = ()
    reverse: bool = False
    assigned: tuple[Variable, ...] | None = None

    def call(self) -> list[Tensor]:
        """Run it; return how many iterations there were, the loop variables, and stacks."""
        operands = Operands(())
        operands.tensors = [self.limit, *self.variables, *self.stacks]
        attrs = {
            "body": self.body, "condition": self.condition,
            "n_variables": len(self.variables), "n_stacks": len(self.stacks),
            "body_inputs": operands.positions(self.same),
            "condition_inputs": operands.positions(self.same_for_condition),
            "reverse": self.reverse, "ragged_stacks": (), "ragged_kept": (),
        }
        for function in (self.body, self.condition):
            if function is not None:
                function.release_captures()
        if self.assigned is None:
            return loop_op(*operands.tensors, **attrs)
        return stateful_loop_op(*operands.tensors, **attrs, assigned=self.assigned)

    @classmethod
    def repeated(
        cls, inputs: list[Tensor], outputs: list, attrs: dict, stateful: bool
    ) -> Loop:
        """Return what takes the same iterations as a call did, without doing anything besides."""
        body, n = attrs["body"], attrs["n_variables"]
        first_same = 1 + n + attrs["n_stacks"]
        stacks, same = inputs[1 + n : first_same], [inputs[i] for i in attrs["body_inputs"]]
        if stateful:
            n_given = len(given_symbols(body.graph))
            body = _given_before_same(repeatable(body), len(same), n_given)
            stacks = [*stacks, *outputs[len(outputs) - n_given :]]
        return cls(body, outputs[0], inputs[1 : 1 + n], stacks, same, reverse=attrs["reverse"])

    @property
    def arguments(self) -> list[Tensor]:
        """What the body takes, as it stands outside the loop."""
        return [*self.variables, *self.stacks, *self.same]


def _given_before_same(body: ConcreteFunction, n_same: int, n_given: int) -> ConcreteFunction:
    symbols = body.input_symbols
    n = len(symbols) - n_same - n_given
    ordered = [*symbols[:n], *symbols[n + n_same :], *symbols[n : n + n_same]]
    return ConcreteFunction(body.name, body.graph, ordered, body.outputs)


def _forward(
    *arrays: Any,
    body: ConcreteFunction,
    condition: ConcreteFunction | None,
    n_variables: int,
    n_stacks: int,
    body_inputs: tuple[int, ...],
    condition_inputs: tuple[int, ...],
    reverse: bool,
    ragged_stacks: tuple[int, ...] = (),
    ragged_kept: tuple[int, ...] = (),
    assigned: Any = (),
) -> list[Any]:
    limit, variables = int(arrays[0]), list(arrays[1 : 1 + n_variables])
    stacks = arrays[1 + n_variables : 1 + n_variables + n_stacks]
    same = [arrays[i] for i in body_inputs]
    same_for_condition = [arrays[i] for i in condition_inputs]
    count, kept = 0, []
    while count < limit and (
        condition is None
        or computed(condition, _leading(condition, variables, same_for_condition))[0]
    ):
        place = limit - 1 - count if reverse else count
        results = computed(body, [*variables, *[stack[place] for stack in stacks], *same])
        variables = results[:n_variables]
        kept.append(results[n_variables:])
        count += 1
    if reverse:
        kept.reverse()
    specs = [body.graph.spec_of(symbol) for symbol in body.output_symbols[n_variables:]]
    return [np.asarray(count, np.int64), *variables, *[
        stacked([np.asarray(row[i]) for row in kept], spec) for i, spec in enumerate(specs)]]


def _leading(condition: ConcreteFunction, variables: list, same: list) -> list:
    return [*variables[: len(condition.input_symbols) - len(same)], *same]


def _shape_rule(*specs: Spec, body: ConcreteFunction, n_variables: int, **attrs: Any) -> list[Spec]:
    def spec_of(symbol: int, *leading: int | None) -> Spec:
        spec = body.graph.spec_of(symbol)
        return symbolic_spec(
            None if spec.shape is None else (*leading, *spec.shape), spec.dtype)

    return [
        Spec.of((), np.int64),
        *map(spec_of, body.input_symbols[:n_variables]),
        *[spec_of(symbol, None) for symbol in body.output_symbols[n_variables:]],
    ]


def _view(op: Any) -> Loop:
    inputs = list(map(convert_to_tensor, op.inputs))
    outputs = [None if type(x) is NotSaved else convert_to_tensor(x) for x in op.outputs]
    return Loop.repeated(inputs, outputs, op.attrs, op.op.stateful)


def _vjp(op: Any, *gradients: Tensor | None) -> list[Tensor | None]:
    loop = _view(op)
    body, source, n = loop.body, loop.body.graph, len(loop.variables)
    first_same = n + len(loop.stacks)
    n_own_stacks = op.attrs["n_stacks"]
    positions = [*range(1, 1 + n), *range(1 + n, 1 + n + n_own_stacks),
                 *[None] * (len(loop.stacks) - n_own_stacks), *op.attrs["body_inputs"]]
    trainable = [source.spec_of(symbol).trainable for symbol in body.input_symbols]
    carried = [i for i in range(n) if trainable[i]]
    wanted = [i for i in range(n, len(positions))
              if trainable[i] and positions[i] is not None and op.needs[positions[i]]]
    kept = [i for i in range(n, len(body.output_symbols)) if gradients[1 + i] is not None]

    graph = FunctionGraph(f"{body.name}_grad", current_graph())
    with unrecorded(), building_into(graph):
        inputs = like(graph, source, body.input_symbols)
        seeds = like(graph, source, [body.input_symbols[i] for i in carried])
        more_seeds = like(graph, source, [body.output_symbols[i] for i in kept])
        outputs = inlined(body, graph, inputs)
        found = symbolic_gradients(
            graph, [graph.symbol_of(outputs[i]) for i in carried + kept],
            [graph.symbol_of(inputs[i]) for i in carried + wanted], seeds + more_seeds)
        next_seeds = [zeros(inputs[i]) if gradient is None else dense(gradient)
                      for i, gradient in zip(carried, found, strict=False)]
        of_wanted = {i: gradient for i, gradient in zip(wanted, found[len(carried) :], strict=True)
                     if gradient is not None}
        summed = [i for i in of_wanted if i >= first_same]
        sliced = [i for i in of_wanted if i < first_same]
        sums = like(graph, source, [body.input_symbols[i] for i in summed])
        results = [
            *next_seeds,
            *[total + dense(of_wanted[i]) for total, i in zip(sums, summed, strict=True)],
            *[dense(of_wanted[i]) for i in sliced],
        ]
        # In the order that a loop passes its arguments in: what is sliced stands before the rest.
        slices, same = inputs[:first_same] + more_seeds, inputs[first_same:]
        arriving = [convert_to_tensor(gradients[1 + i]) for i in kept]
        actual = [*loop.arguments[:first_same], *arriving, *loop.same]
        backward, passed, used = closed(graph, seeds + sums, slices + same, actual, results)
    n_slices = sum(i < len(slices) for i in used)
    kept_variables = [i for i in used if i < n]
    if kept_variables:
        forward = with_outputs(
            body, [*body.outputs[:n], *[body.inputs[i] for i in kept_variables]])
        history = Loop(forward, loop.limit, loop.variables, loop.stacks, loop.same,
                       reverse=loop.reverse).call()
        passed[: len(kept_variables)] = history[1 + n :]
    start = [zeros(loop.variables[i]) if gradients[1 + i] is None
             else convert_to_tensor(gradients[1 + i]) for i in carried]
    results = Loop(
        backward, loop.limit, start + [zeros(loop.arguments[i]) for i in summed],
        passed[:n_slices], passed[n_slices:], reverse=not loop.reverse).call()[1:]
    by_position: list[Tensor | None] = [None] * len(op.inputs)
    for i, gradient in zip(carried + summed + sliced, results, strict=True):
        by_position[positions[i]] = added(by_position[positions[i]], gradient)
    return by_position


def _jvp(op: Any, *tangents: Tensor | None) -> list[Tensor | None]:
    loop = _view(op)
    body, source, n = loop.body, loop.body.graph, len(loop.variables)
    first_same = n + len(loop.stacks)
    n_own_stacks = op.attrs["n_stacks"]
    given = [*tangents[1 : 1 + n + n_own_stacks], *[None] * (len(loop.stacks) - n_own_stacks),
             *[tangents[i] for i in op.attrs["body_inputs"]]]
    carried = [i for i in range(n) if source.spec_of(body.input_symbols[i]).trainable]
    moving = [i for i in range(n, len(given)) if given[i] is not None]
    sliced = [i for i in moving if i < first_same]
    same_moving = [i for i in moving if i >= first_same]

    graph = FunctionGraph(f"{body.name}_jvp", current_graph())
    with unrecorded(), building_into(graph):
        inputs = like(graph, source, body.input_symbols)
        of_variables = like(graph, source, [body.input_symbols[i] for i in carried])
        of_slices = like(graph, source, [body.input_symbols[i] for i in sliced])
        of_same = like(graph, source, [body.input_symbols[i] for i in same_moving])
        outputs = inlined(body, graph, inputs)
        found = symbolic_tangents(
            graph, [graph.symbol_of(inputs[i]) for i in carried + sliced + same_moving],
            of_variables + of_slices + of_same, list(map(graph.symbol_of, outputs)))
        next_tangents = [zeros(outputs[i]) if found[i] is None else dense(found[i])
                         for i in carried]
        kept = [i for i in range(n, len(outputs)) if found[i] is not None]
        results = [*outputs[:n], *next_tangents, *[dense(found[i]) for i in kept]]
        slices, same = inputs[n:first_same] + of_slices, inputs[first_same:] + of_same
        actual = [*loop.stacks, *[given[i] for i in sliced],
                  *loop.same, *[given[i] for i in same_moving]]
        forward, passed, used = closed(
            graph, inputs[:n] + of_variables, slices + same, actual, results)
    n_slices = sum(i < len(slices) for i in used)
    start = [zeros(loop.variables[i]) if given[i] is None else convert_to_tensor(given[i])
             for i in carried]
    _, *values = Loop(
        forward, loop.limit, loop.variables + start, passed[:n_slices], passed[n_slices:],
        reverse=loop.reverse).call()
    by_output: list[Tensor | None] = [None] * len(op.output_specs)
    for i, tangent in zip(carried + kept, values[n:], strict=True):
        by_output[1 + i] = tangent
    return by_output


_RULES: dict[str, Any] = {
    "optional_gradients": range(64),
    "optional_tangents": range(1 << 30),
    "shape_rule": _shape_rule,
}
loop_op = enter(LoopOp("While", _forward, _vjp, _jvp, saved_outputs=(0,), **_RULES))
stateful_loop_op = enter(
    LoopOp("StatefulWhile", _forward, _vjp, _jvp, saved_outputs=range(MOST_OUTPUTS), **_RULES))
stateful_loop_op.stateful = True
REPEATED[stateful_loop_op] = lambda inputs, outputs, attrs: Loop.repeated(
    inputs, outputs, attrs, True).call()
