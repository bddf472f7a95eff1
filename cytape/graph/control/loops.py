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
from typing import Any, NamedTuple

import numpy as np

from cytape.graph.control.checkpointed_loops import (
    Checkpoints,
    checkpointed_gradients,
    final_seeds,
)
from cytape.graph.control.checks import LoopAttributes, is_ragged, loop_specs
from cytape.graph.control.control_ops import (
    LoopOp,
    Snapshots,
    kept_arrays,
    output_specs,
    slices_of,
)
from cytape.graph.control.residuals import extracted, read_of, residuals, stackable
from cytape.graph.control.row_counts import shared_lengths
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
    reached_by_gradients,
    reached_by_tangents,
    repeatable,
    zeros,
)
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.lost_counts import RUNS
from cytape.graph.tracing.replay import symbolic_gradients, symbolic_tangents
from cytape.ops.engine.declare import ANY_OUTPUT, enter
from cytape.ops.engine.general_op import NotSaved
from cytape.ops.engine.symbolic import in_graph
from cytape.ops.shared.conform import reshape_like
from cytape.ops.shared.extents import ensure_shape
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.spec import Spec
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
    snapshots : tuple or None
        What to store of its states, see `LoopOp`; None: nothing.
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
    snapshots: tuple | None = None

    def call(self) -> list[Tensor]:
        """Run it; return how many iterations there were, the loop variables, stacks and lengths.

        There are lengths for each ragged stack that is made; then there is what is stored.
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
        if self.snapshots is not None:
            return snapshots_op(*operands.tensors, **attrs, snapshots=self.snapshots)
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
            shared = shared_lengths(body, n, attrs["ragged_kept"], outputs[last:])
            lengths.update({len(stacks) + k - first: x for k, x in shared.items() if k >= first})
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


def _forward(*arrays: Any, **attrs: Any) -> list[Any]:
    call = LoopAttributes(**attrs)
    body, condition, n = call.body, call.condition, call.n_variables
    limit, variables = int(arrays[0]), list(arrays[1 : 1 + n])
    slices = slices_of(list(arrays[1 + n :]), call.n_stacks, call.ragged_stacks)
    same = [arrays[i] for i in call.body_inputs]
    same_for_condition = [arrays[i] for i in call.condition_inputs]
    count, kept = 0, []
    snapshots = Snapshots(limit, list(map(np.asarray, variables)), **attrs)
    while count < limit and (
        condition is None
        or computed(condition, _leading(condition, variables, same_for_condition))[0]
    ):
        if snapshots.has_slot_for(count):
            snapshots.store(list(map(np.asarray, variables)))
        place = limit - 1 - count if call.reverse else count
        results = computed(body, [*variables, *[part[place] for part in slices], *same])
        variables = results[:n]
        kept.append(list(map(np.asarray, results[n:])))
        count += 1
    if call.reverse:
        kept.reverse()
    specs = output_specs(body, [] if count else [
        *[convert_to_tensor(x).spec for x in variables], *[part.spec() for part in slices],
        *[convert_to_tensor(x).spec for x in same]])[n:]
    return [np.asarray(count, np.int64), *variables, *kept_arrays(kept, specs, call.ragged_kept),
            *snapshots.arrays()]


def _leading(condition: ConcreteFunction, variables: list, same: list) -> list:
    return [*variables[: len(condition.input_symbols) - len(same)], *same]


def _view(op: Any) -> Loop:
    inputs = list(map(convert_to_tensor, op.inputs))
    outputs = [None if type(x) is NotSaved else convert_to_tensor(x) for x in op.outputs]
    return Loop.repeated(inputs, outputs, op.attrs, op.op.stateful)


def _vjp(op: Any, *gradients: Tensor | None) -> list[Tensor | None]:
    loop, inputs = _view(op), list(map(convert_to_tensor, op.inputs))
    body, n = loop.body, len(loop.variables)
    n_own_stacks = op.attrs["n_stacks"]
    positions = [*range(1, 1 + n), *range(1 + n, 1 + n + n_own_stacks),
                 *[None] * (len(loop.stacks) - n_own_stacks), *op.attrs["body_inputs"]]
    trainable = [body.graph.spec_of(symbol).trainable for symbol in body.input_symbols]
    kept = [i for i in range(n, len(body.output_symbols)) if gradients[1 + i] is not None]
    carried = reached_by_gradients(
        body, [i for i in range(n) if trainable[i] and gradients[1 + i] is not None], kept, n)
    wanted = [i for i in range(n, len(positions))
              if trainable[i] and positions[i] is not None and op.needs[positions[i]]]
    if op.attrs["checkpoints"] is not None and not kept and not n_own_stacks and not loop.lengths:
        return _checkpointed_vjp(op, loop, gradients, positions, carried, wanted)
    gradient = _BodyGradient(loop, carried, wanted, kept)
    told, lengths_of_kept = gradient.history(op.outputs)
    arrived = [
        _Told(seed, [seed], [convert_to_tensor(gradients[1 + i])], [lengths_of_kept.get(i - n)])
        for seed, i in zip(gradient.seeds_of_kept, kept, strict=True)]
    results = gradient.go_back(
        told + arrived, final_seeds(loop, op.outputs[1:], gradients[1:], carried))
    by_position: list[Tensor | None] = [None] * len(op.inputs)
    for i, result in zip(carried + gradient.summed + gradient.sliced, results, strict=False):
        position = positions[i]
        result = _of_shape(result, inputs[position].spec)
        by_position[position] = added(by_position[position], result)
    return by_position


def _of_shape(gradient: Tensor, spec: Spec) -> Tensor:
    """Return a gradient with the extents of its operand, which a loop without iterations loses."""
    gradient = ensure_shape(gradient, spec.shape)
    shape: Any = gradient.shape
    if shape is not None and None not in tuple(shape)[1:]:
        return gradient
    return reshape_like(gradient, spec.extents)


class _Told(NamedTuple):
    """What the backward part of a body's gradient is told, a slice of a stack in each iteration.

    Attributes
    ----------
    tensor : Tensor
    arguments : list of Tensor
        What says it: the tensor itself, or its elements and its shape.
    stacks : list of Tensor
        Of these.
    lengths : list of Tensor or None
        Of the slices of each stack, if they differ.
    """

    tensor: Tensor
    arguments: list[Tensor]
    stacks: list[Tensor]
    lengths: list[Tensor | None]


class _BodyGradient:
    """The gradient of a loop's body, in one graph with the body.

    Parameters
    ----------
    loop : Loop
    carried, wanted, kept : list of int
        Which loop variables, and which other inputs, need gradients; for which outputs besides the
        loop variables there are any.

    Attributes
    ----------
    seeds_of_kept : list of Tensor
        Stand for these.
    summed, sliced : list of int
        Of which inputs that are the same in all iterations, and of which slices, there are results.
    """

    def __init__(
        self, loop: Loop, carried: list[int], wanted: list[int], kept: list[int]
    ) -> None:
        self.loop, body, source, n = loop, loop.body, loop.body.graph, len(loop.variables)
        first_same = n + len(loop.stacks)
        self.graph = graph = FunctionGraph(f"{body.name}_grad", current_graph())
        with unrecorded(), building_into(graph):
            inputs = like(graph, source, body.input_symbols)
            seeds = like(graph, source, [body.input_symbols[i] for i in carried])
            self.seeds_of_kept = like(graph, source, [body.output_symbols[i] for i in kept])
            self.outputs = inlined(body, graph, inputs)
            first_backward = graph.n_nodes
            found = symbolic_gradients(
                graph, [graph.symbol_of(self.outputs[i]) for i in carried + kept],
                [graph.symbol_of(inputs[i]) for i in carried + wanted], seeds + self.seeds_of_kept)
            next_seeds = [zeros(inputs[i]) if gradient is None else dense(gradient)
                          for i, gradient in zip(carried, found, strict=False)]
            of_wanted = {i: ensure_shape(dense(gradient), inputs[i].shape)
                         for i, gradient in zip(wanted, found[len(carried) :], strict=True)
                         if gradient is not None}
            self.summed = [i for i in of_wanted if i >= first_same]
            self.sliced = [i for i in of_wanted if i < first_same]
            sums = like(graph, source, [body.input_symbols[i] for i in self.summed])
            self.results = [in_graph(graph, x) for x in (
                *next_seeds,
                *[total + of_wanted[i] for total, i in zip(sums, self.summed, strict=True)],
                *[of_wanted[i] for i in self.sliced])]
            self._carried = seeds + sums
            slices = inputs[n:first_same]
            told = residuals(
                graph, inputs[:first_same], self._carried + self.seeds_of_kept, first_backward,
                self.results, slices + self.seeds_of_kept)
            self._told = list(zip(told, stackable(graph, told), strict=True))
        self._moving, self._slices = inputs[:first_same], slices
        # What the parts take from outside is the same in all iterations, too.
        self._has_captures = bool(graph.captures)
        self._same = inputs[first_same:] + [
            graph.tensor_at(symbol) for _, symbol in graph.captures]
        self._actual_same = [*loop.same, *[tensor for tensor, _ in graph.captures]]

    def history(self, outputs: Sequence[Any]) -> tuple[list[_Told], dict[int, Tensor]]:
        """Go forward once more, if that leaves anything.

        Parameters
        ----------
        outputs : sequence of Tensor
            Of the loop.

        Returns
        -------
        told : list of _Told
            All that the backward part is told, but for the gradients of what was kept.
        lengths : dict of int to Tensor
            Of what the loop kept.
        """
        loop, n = self.loop, len(self.loop.variables)
        n_kept = len(self.outputs) - n
        told = [_Told(x, [x], [loop.stacks[k]], [loop.lengths.get(k)])
                for k, x in enumerate(self._slices)]
        by_symbol = {self.graph.symbol_of(x): x for _, parts in self._told for x in parts}
        places = {symbol: n_kept + i for i, symbol in enumerate(by_symbol)}
        arguments = list(by_symbol.values())
        if not arguments:
            return told, shared_lengths(loop.body, n, loop.ragged_kept, list(map(
                convert_to_tensor, outputs[1 + n + n_kept :][:len(loop.ragged_kept)])))
        forward = extracted(
            self.graph, self._moving + self._same,
            [in_graph(self.graph, x) for x in self.outputs] + arguments)
        if not self._has_captures:
            forward.history_of = loop.body
        again = Loop(forward, loop.limit, loop.variables, loop.stacks, self._actual_same,
                     lengths=loop.lengths, reverse=loop.reverse,
                     ragged_kept=loop.ragged_kept + ragged_places(forward, n, n_kept))
        history = again.call()[1 + n :]
        n_stacks = n_kept + len(arguments)
        lengths = shared_lengths(
            forward, n, again.ragged_kept, history[n_stacks:], history[:n_stacks])
        of_residuals = []
        for x, parts in self._told:
            at = [places[self.graph.symbol_of(part)] for part in parts]
            of_residuals.append(
                _Told(x, parts, [history[i] for i in at], [lengths.get(i) for i in at]))
        return of_residuals + told, lengths

    def go_back(self, told: list[_Told], start: list[Tensor]) -> list[Tensor]:
        """Go backward over what there is to be told; return all results.

        Parameters
        ----------
        told : list of _Told
        start : list of Tensor
            The gradients of the last values of loop variables.
        """
        loop, graph = self.loop, self.graph
        used = read_of(graph, self.results, [x.tensor for x in told] + self._same, self._carried)
        stacks = list({graph.symbol_of(stack[0]): stack for i in used if i < len(told)
                       for stack in zip(*told[i][1:], strict=True)}.values())
        same = [i - len(told) for i in used if i >= len(told)]
        backward = extracted(
            graph,
            [*self._carried, *[argument for argument, _, _ in stacks],
             *[self._same[i] for i in same]],
            self.results, graph.stateful,
            {x.tensor: x.arguments for x in told if x.arguments[0] is not x.tensor})
        return Loop(
            backward, loop.limit, start + [zeros(loop.arguments[i]) for i in self.summed],
            [stack for _, stack, _ in stacks], [self._actual_same[i] for i in same],
            lengths={i: x for i, (_, _, x) in enumerate(stacks) if x is not None},
            ragged_kept=tuple(place for place, i in enumerate(self.sliced)
                              if i - len(loop.variables) in loop.lengths),
            reverse=not loop.reverse).call()[1:]


def _checkpointed_vjp(
    op: Any, loop: Loop, gradients: Sequence[Tensor | None], positions: Sequence[Any],
    carried: Sequence[int], wanted: Sequence[int],
) -> list[Tensor | None]:
    n, first_same = len(loop.variables), len(loop.variables) + len(loop.stacks)
    found = checkpointed_gradients(
        loop, Checkpoints(*op.attrs["checkpoints"]), op.outputs[1 : 1 + n], gradients[1 : 1 + n],
        carried, [i - first_same for i in wanted])
    by_position: list[Tensor | None] = [None] * len(op.inputs)
    for i, gradient in zip([*carried, *wanted], found, strict=True):
        by_position[positions[i]] = added(by_position[positions[i]], gradient)
    return by_position


def _jvp(op: Any, *tangents: Tensor | None) -> list[Tensor | None]:
    loop = _view(op)
    body, source, n = loop.body, loop.body.graph, len(loop.variables)
    first_same = n + len(loop.stacks)
    n_own_stacks = op.attrs["n_stacks"]
    given = [*tangents[1 : 1 + n + n_own_stacks], *[None] * (len(loop.stacks) - n_own_stacks),
             *[tangents[i] for i in op.attrs["body_inputs"]]]
    moving = [i for i in range(n, len(given)) if given[i] is not None]
    carried = reached_by_tangents(
        body, [i for i in range(n) if given[i] is not None], moving, n)
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
    "optional_gradients": ANY_OUTPUT,
    "optional_tangents": range(1 << 30),
    "saved_outputs": range(1 << 30),
    "shape_rule": loop_specs,
}
loop_op = enter(LoopOp("While", _forward, _vjp, _jvp, **_RULES))
stateful_loop_op = enter(LoopOp("StatefulWhile", _forward, _vjp, _jvp, **_RULES))
stateful_loop_op.stateful = True
snapshots_op = enter(LoopOp(
    "WhileSnapshots", _forward, saved_inputs=(), differentiable=False, shape_rule=loop_specs))
REPEATED[stateful_loop_op] = lambda inputs, outputs, attrs: Loop.repeated(
    inputs, outputs, attrs, True).call()
RUNS[stateful_loop_op] = lambda attrs: [LoopAttributes(**attrs).run()]
