"""The op that runs a body again and again, and its derivatives: calls of that op once more.

The gradient takes two loops. The first goes forward once more and keeps of each iteration what the
second reads, which goes backward over it (see `residuals`). Neither keeps what is the same in all
iterations. Both are ordinary calls of the op, and so have derivatives themselves. Where the first
stands in one graph with the loop that is differentiated, it takes that one's place when the graph
is optimised.

What a body does besides must not happen again: where it draws random numbers or looks at variables
that it changes, these values are outputs of the call, and the derivatives are told them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cytape.graph.control.checkpointed_loops import (
    Checkpoints,
    checkpointed_gradients,
    final_seeds,
)
from cytape.graph.control.checks import check_loop, is_ragged
from cytape.graph.control.control_ops import LoopOp, kept_arrays, slices_of
from cytape.graph.control.residuals import extracted, read_of, residuals
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
from cytape.ops.engine.general_op import NotSaved
from cytape.ops.engine.symbolic import in_graph
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.spec import Spec, symbolic_spec
from cytape.tensor.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable

__all__ = ["Loop", "ragged_places"]


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
    lengths : dict of int to Tensor
        How many rows the slices of stacks have, by the position of the stack, where they do not all
        have as many: these slices stand one after the other.
    ragged_kept : tuple of int
        Which of the stacks that are made are of slices that need not have as many rows.
    reverse : bool
        Whether stacks are gone through, and made, from the last slice to the first.
    assigned : tuple of Variable or None
        The variables that the functions change. None: every call counts for its results alone.
    checkpoints : Checkpoints or None
        How much of it the gradient may keep. None: all that it reads.
    """

    body: ConcreteFunction
    limit: Tensor
    variables: list[Tensor]
    stacks: list[Tensor]
    same: list[Tensor]
    condition: ConcreteFunction | None = None
    same_for_condition: Sequence[Tensor] = ()
    lengths: dict[int, Tensor] = field(default_factory=dict)
    ragged_kept: tuple[int, ...] = ()
    reverse: bool = False
    assigned: tuple[Variable, ...] | None = None
    checkpoints: Checkpoints | None = None

    def call(self) -> list[Tensor]:
        """Run it; return how many iterations there were, the loop variables, stacks and lengths.

        There are lengths for each ragged stack that is made.
        """
        operands = Operands(())
        ragged = sorted(self.lengths)
        operands.tensors = [self.limit, *self.variables, *self.stacks,
                            *[self.lengths[i] for i in ragged]]
        attrs = {
            "body": self.body, "condition": self.condition,
            "n_variables": len(self.variables), "n_stacks": len(self.stacks),
            "body_inputs": operands.positions(self.same),
            "condition_inputs": operands.positions(self.same_for_condition),
            "reverse": self.reverse, "ragged_stacks": tuple(ragged),
            "ragged_kept": self.ragged_kept, "checkpoints": self.checkpoints,
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
        first_lengths = 1 + n + attrs["n_stacks"]
        stacks, same = inputs[1 + n : first_lengths], [inputs[i] for i in attrs["body_inputs"]]
        lengths = dict(zip(attrs["ragged_stacks"], inputs[first_lengths:], strict=False))
        if stateful:
            n_given = len(given_symbols(body.graph))
            last = 1 + len(body.output_symbols)
            first = last - n_given - 1 - n
            for i, k in enumerate(attrs["ragged_kept"]):
                if k >= first:
                    lengths[len(stacks) + k - first] = outputs[last + i]
            body = _given_before_same(repeatable(body), len(same), n_given)
            stacks = [*stacks, *outputs[last - n_given : last]]
        return cls(body, outputs[0], inputs[1 : 1 + n], stacks, same, lengths=lengths,
                   ragged_kept=attrs["ragged_kept"], reverse=attrs["reverse"])

    @property
    def arguments(self) -> list[Tensor]:
        """What the body takes, as it stands outside the loop."""
        return [*self.variables, *self.stacks, *self.same]


def ragged_places(body: ConcreteFunction, n_variables: int, first: int) -> tuple[int, ...]:
    """Return which of the stacks that a body makes may be ragged, if those from some place on may.

    They are those of what has an unknown number of rows.
    """
    symbols = body.output_symbols[n_variables:]
    return tuple(i for i in range(first, len(symbols)) if is_ragged(body.graph.spec_of(symbols[i])))


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
    checkpoints: Any = None,
    assigned: Any = (),
) -> list[Any]:
    limit, variables = int(arrays[0]), list(arrays[1 : 1 + n_variables])
    slices = slices_of(list(arrays[1 + n_variables :]), n_stacks, ragged_stacks)
    same = [arrays[i] for i in body_inputs]
    same_for_condition = [arrays[i] for i in condition_inputs]
    count, kept = 0, []
    while count < limit and (
        condition is None
        or computed(condition, _leading(condition, variables, same_for_condition))[0]
    ):
        place = limit - 1 - count if reverse else count
        results = computed(body, [*variables, *[part[place] for part in slices], *same])
        variables = results[:n_variables]
        kept.append(list(map(np.asarray, results[n_variables:])))
        count += 1
    if reverse:
        kept.reverse()
    specs = [body.graph.spec_of(symbol) for symbol in body.output_symbols[n_variables:]]
    return [np.asarray(count, np.int64), *variables, *kept_arrays(kept, specs, ragged_kept)]


def _leading(condition: ConcreteFunction, variables: list, same: list) -> list:
    return [*variables[: len(condition.input_symbols) - len(same)], *same]


def _shape_rule(
    *specs: Spec,
    body: ConcreteFunction,
    condition: ConcreteFunction | None,
    n_variables: int,
    n_stacks: int,
    body_inputs: tuple[int, ...],
    condition_inputs: tuple[int, ...],
    reverse: bool,
    ragged_stacks: tuple[int, ...] = (),
    ragged_kept: tuple[int, ...] = (),
    assigned: Any = None,
    **_: Any,
) -> list[Spec]:
    check_loop(specs, body, condition, n_variables, n_stacks, body_inputs, condition_inputs,
               reverse, ragged_stacks, ragged_kept, assigned)
    stacks = []
    for i, symbol in enumerate(body.output_symbols[n_variables:]):
        spec = body.graph.spec_of(symbol)
        shape: Any = spec.shape
        if shape is not None:
            shape = (None, *tuple(shape)[1 if i in ragged_kept else 0 :])
        stacks.append(symbolic_spec(shape, spec.dtype))
    return [
        Spec.of((), np.int64),
        *[_own_spec(body.graph.spec_of(symbol)) for symbol in body.input_symbols[:n_variables]],
        *stacks,
        *[symbolic_spec((None,), np.int64) for _ in ragged_kept],
    ]


def _own_spec(spec: Spec) -> Spec:
    return symbolic_spec(spec.shape, spec.dtype)


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
    if op.attrs["checkpoints"] is not None and not kept and not n_own_stacks and not loop.lengths:
        return _checkpointed_vjp(op, loop, gradients, positions, wanted)

    graph = FunctionGraph(f"{body.name}_grad", current_graph())
    with unrecorded(), building_into(graph):
        inputs = like(graph, source, body.input_symbols)
        seeds = like(graph, source, [body.input_symbols[i] for i in carried])
        more_seeds = like(graph, source, [body.output_symbols[i] for i in kept])
        outputs = inlined(body, graph, inputs)
        first_backward = graph.n_nodes
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
        results = [in_graph(graph, x) for x in (
            *next_seeds,
            *[total + dense(of_wanted[i]) for total, i in zip(sums, summed, strict=True)],
            *[dense(of_wanted[i]) for i in sliced])]
        told = residuals(graph, inputs[:first_same], seeds + sums + more_seeds,
                         first_backward, results, inputs[n:first_same] + more_seeds)
        # What the parts take from outside is the same in all iterations, too.
        captured = [graph.tensor_at(symbol) for _, symbol in graph.captures]
        same, actual_same = inputs[first_same:] + captured, [
            *loop.same, *[tensor for tensor, _ in graph.captures]]
    kept_arrived = [convert_to_tensor(gradients[1 + i]) for i in kept]
    all_kept = len(body.output_symbols) - n
    history: list[Tensor] = []
    if told:
        forward = extracted(
            graph, inputs[:first_same] + same, [in_graph(graph, x) for x in outputs] + told)
        if not captured:
            forward.history_of = body
        again = Loop(forward, loop.limit, loop.variables, loop.stacks, actual_same,
                     lengths=loop.lengths, reverse=loop.reverse,
                     ragged_kept=loop.ragged_kept + ragged_places(forward, n, all_kept))
        history = again.call()
        ragged = dict(zip(again.ragged_kept, history[1 + len(forward.output_symbols) :],
                          strict=True))
    else:
        ragged = dict(zip(loop.ragged_kept, op.outputs[1 + n + all_kept :], strict=False))
    # Stacks: the residuals, the slices that the loop took itself, and gradients of what it kept.
    parts = told + inputs[n:first_same] + more_seeds
    stacks = [*history[1 + n + all_kept : 1 + n + all_kept + len(told)], *loop.stacks,
              *kept_arrived]
    lengths = {i: ragged[all_kept + i] for i in range(len(told)) if all_kept + i in ragged}
    lengths |= {len(told) + i: x for i, x in loop.lengths.items()}
    lengths |= {len(told) + len(loop.stacks) + i: convert_to_tensor(ragged[k - n])
                for i, k in enumerate(kept) if k - n in ragged}
    used = read_of(graph, results, parts + same, seeds + sums)
    used_parts = [i for i in used if i < len(parts)]
    used_same = [i - len(parts) for i in used if i >= len(parts)]
    backward = extracted(
        graph, [*seeds, *sums, *[parts[i] for i in used_parts], *[same[i] for i in used_same]],
        results, graph.stateful)
    start = final_seeds(loop, op.outputs[1:], gradients[1:], carried)
    results = Loop(
        backward, loop.limit, start + [zeros(loop.arguments[i]) for i in summed],
        [stacks[i] for i in used_parts], [actual_same[i] for i in used_same],
        lengths={place: lengths[i] for place, i in enumerate(used_parts) if i in lengths},
        ragged_kept=tuple(place for place, i in enumerate(sliced) if i - n in loop.lengths),
        reverse=not loop.reverse).call()[1:]
    by_position: list[Tensor | None] = [None] * len(op.inputs)
    for i, gradient in zip(carried + summed + sliced, results, strict=False):
        by_position[positions[i]] = added(by_position[positions[i]], gradient)
    return by_position


def _checkpointed_vjp(
    op: Any, loop: Loop, gradients: Sequence[Tensor | None], positions: Sequence[Any],
    wanted: Sequence[int],
) -> list[Tensor | None]:
    n, first_same = len(loop.variables), len(loop.variables) + len(loop.stacks)

    def call(limit: Tensor, variables: list, stacks: list, same: list) -> list[Tensor]:
        return Loop(loop.body, limit, variables, stacks, same,
                    ragged_kept=loop.ragged_kept).call()[1 : 1 + n]

    found = checkpointed_gradients(
        loop, call, Checkpoints(*op.attrs["checkpoints"]), op.outputs[1 : 1 + n],
        gradients[1 : 1 + n],
        [i - first_same for i in wanted])
    by_position: list[Tensor | None] = [None] * len(op.inputs)
    for i, gradient in zip([*range(n), *wanted], found, strict=True):
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
    lengths = {i: loop.lengths[k] for i, k in enumerate([*range(len(loop.stacks)),
                                                         *[i - n for i in sliced]])
               if k in loop.lengths}
    _, *values = Loop(
        forward, loop.limit, loop.variables + start, passed[:n_slices], passed[n_slices:],
        lengths={place: lengths[i] for place, i in enumerate(used[:n_slices]) if i in lengths},
        ragged_kept=tuple(place for place, i in enumerate(kept) if i - n in loop.ragged_kept),
        reverse=loop.reverse).call()
    by_output: list[Tensor | None] = [None] * len(op.output_specs)
    for i, tangent in zip(carried + kept, values[n:], strict=False):
        by_output[1 + i] = tangent
    return by_output


_RULES: dict[str, Any] = {
    "optional_gradients": range(64),
    "optional_tangents": range(1 << 30),
    "saved_outputs": range(1 << 30),
    "shape_rule": _shape_rule,
}
loop_op = enter(LoopOp("While", _forward, _vjp, _jvp, **_RULES))
stateful_loop_op = enter(
    LoopOp("StatefulWhile", _forward, _vjp, _jvp, **_RULES))
stateful_loop_op.stateful = True
REPEATED[stateful_loop_op] = lambda inputs, outputs, attrs: Loop.repeated(
    inputs, outputs, attrs, True).call()
