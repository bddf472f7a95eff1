"""The op that runs a body repeatedly, and its derivatives: further calls of that op.

The gradient takes two loops. The first repeats the forward pass and keeps the residuals of each
iteration (see `residuals`); the second goes backward and reads them. Neither keeps loop-invariant
values. Both are ordinary calls of the op, and so have derivatives themselves. If the original loop
is in the same graph, optimisation merges the first one with it.

Side effects of a body must not be repeated: random draws, and values of variables that the body
changes, are outputs of the call, and inputs of the derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cytape.graph.control.body_checks import LoopAttributes, is_ragged, loop_specs
from cytape.graph.control.body_gradients import (
    BodyGradient,
    body_gradient,
    body_tangents,
    reached_by_gradients,
    reached_by_tangents,
)
from cytape.graph.control.checkpointed_while import Checkpoints, checkpointed_gradients, final_seeds
from cytape.graph.control.control_ops import LoopOp
from cytape.graph.control.row_counts import shared_lengths
from cytape.graph.tracing.body_tools import (
    Operands,
    added,
    derived,
    given_symbols,
    repeatable,
    zeros,
)
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.ops.adjoints.extent_checks import ensure_shape
from cytape.ops.calls.op_call import NotSaved
from cytape.ops.calls.symbolic import SymbolicGraph
from cytape.ops.engine.op_kinds import ANY_OUTPUT, enter
from cytape.ops.shaping import reshape
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import Spec
from cytape.tensor.variable import Variable

__all__ = ["Loop", "ragged_places"]


@dataclass
class Loop:
    """A prepared call of the op.

    Attributes
    ----------
    body : ConcreteFunction
        From loop variables, slices of stacks, and loop-invariant inputs, to the next loop variables
        and the results to stack.
    limit : Tensor
        The greatest number of iterations, int64.
    variables : list of Tensor
        The start values of the loop variables.
    stacks : list of Tensor
    same : list of Tensor
        Loop-invariant inputs of the body.
    condition : ConcreteFunction or None
        From some loop variables, the first ones, and loop-invariant inputs, to whether to go on.
        None: the number of iterations is the limit.
    same_for_condition : list of Tensor
        Loop-invariant inputs of the condition.
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
        Limits for the states to store, see `LoopOp`; None: store none.
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
        """Call the op; return the number of iterations, the loop variables, stacks and lengths.

        There are lengths for each ragged stack that is made; then the stored states.
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
        """Return a call with the same iterations as another one, without its side effects."""
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
            body = _given_before_same(body, len(same), n_given)
            stacks = [*stacks, *outputs[last - n_given : last]]
        return cls(body, outputs[0], inputs[1 : 1 + n], stacks, same, lengths=lengths,
                   ragged_kept=attrs["ragged_kept"], reverse=attrs["reverse"])

    @property
    def arguments(self) -> list[Tensor]:
        """The outer tensors that the body reads."""
        return [*self.variables, *self.stacks, *self.same]


def ragged_places(body: ConcreteFunction, n_variables: int, first: int) -> tuple[int, ...]:
    """Return the positions of ragged stacks among a body's stacks, from a position on.

    These are the stacks of results with an unknown number of rows.
    """
    symbols = body.output_symbols[n_variables:]
    return tuple(i for i in range(first, len(symbols)) if is_ragged(body.graph.spec_of(symbols[i])))


@derived
def _given_before_same(body: ConcreteFunction, n_same: int, n_given: int) -> ConcreteFunction:
    body = repeatable(body)
    symbols = body.input_symbols
    n = len(symbols) - n_same - n_given
    ordered = [*symbols[:n], *symbols[n + n_same :], *symbols[n : n + n_same]]
    return ConcreteFunction(body.name, body.graph, ordered, body.outputs)


def _given(graph: SymbolicGraph, node: int) -> list[int]:
    """List the outputs that a repetition of a loop reads; shared lengths count once."""
    outputs, attrs = graph.outputs_of(node), graph.attrs[node]
    body = attrs["body"]
    last = 1 + len(body.output_symbols)
    lengths = shared_lengths(body, attrs["n_variables"], attrs["ragged_kept"], outputs[last:])
    return [*outputs[:last], *dict.fromkeys(lengths.values())]


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
    gradient = body_gradient(body, n, len(loop.stacks), carried, wanted, kept)
    same = [*loop.same, *gradient.captured]
    made, lengths = _forward_again(op, loop, gradient, same)
    stacks = [*made, *[(x, loop.lengths.get(k)) for k, x in enumerate(loop.stacks)],
              *[(convert_to_tensor(gradients[1 + i]), lengths.get(i - n)) for i in kept]]
    read = [stacks[i] for i in gradient.stacks_read]
    start = final_seeds(loop, op.outputs[1:], gradients[1:], carried)
    results = Loop(
        gradient.backward, loop.limit, start + [zeros(loop.arguments[i]) for i in gradient.summed],
        [stack for stack, _ in read], [same[i] for i in gradient.same_read],
        lengths={i: x for i, (_, x) in enumerate(read) if x is not None},
        ragged_kept=tuple(
            place for place, i in enumerate(gradient.sliced) if i - n in loop.lengths),
        reverse=not loop.reverse).call()[1:]
    by_position: list[Tensor | None] = [None] * len(op.inputs)
    for i, result in zip(
            [*carried, *gradient.summed, *gradient.sliced], results, strict=False):
        position = positions[i]
        result = _of_shape(result, inputs[position].spec)
        by_position[position] = added(by_position[position], result)
    return by_position


def _forward_again(
    op: Any, loop: Loop, gradient: BodyGradient, same: list[Tensor]
) -> tuple[list[tuple[Tensor, Tensor | None]], dict[int, Tensor]]:
    """Repeat a loop to get the residuals of its gradient.

    Returns
    -------
    residuals : list of (Tensor, Tensor or None)
        Stacks, and the lengths of ragged ones.
    lengths : dict of int to Tensor
        Of the stacks that the loop made.
    """
    n, n_outputs = len(loop.variables), len(loop.body.output_symbols)
    n_kept = n_outputs - n
    if gradient.forward is None:
        given = list(map(convert_to_tensor, op.outputs[1 + n_outputs :][: len(loop.ragged_kept)]))
        return [], shared_lengths(loop.body, n, loop.ragged_kept, given)
    forward = gradient.forward
    again = Loop(forward, loop.limit, loop.variables, loop.stacks, same, lengths=loop.lengths,
                 reverse=loop.reverse,
                 ragged_kept=loop.ragged_kept + ragged_places(forward, n, n_kept))
    history = again.call()[1 + n :]
    n_stacks = n_kept + gradient.n_residuals
    lengths = shared_lengths(forward, n, again.ragged_kept, history[n_stacks:], history[:n_stacks])
    return [(history[i], lengths.get(i)) for i in range(n_kept, n_stacks)], lengths


def _of_shape(gradient: Tensor, spec: Spec) -> Tensor:
    """Return a gradient in the shape of its operand, also for a loop without iterations."""
    shape: Any = gradient.shape
    if shape is None or None in tuple(shape)[1:]:
        gradient = reshape(gradient, spec.extents)
    return ensure_shape(gradient, spec.shape)


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
    body, n = loop.body, len(loop.variables)
    first_same = n + len(loop.stacks)
    n_own_stacks = op.attrs["n_stacks"]
    given = [*tangents[1 : 1 + n + n_own_stacks], *[None] * (len(loop.stacks) - n_own_stacks),
             *[tangents[i] for i in op.attrs["body_inputs"]]]
    moving = [i for i in range(n, len(given)) if given[i] is not None]
    carried = reached_by_tangents(
        body, [i for i in range(n) if given[i] is not None], moving, n)
    tangents_of = body_tangents(body, n, len(loop.stacks), carried, moving)
    sliced = [i for i in moving if i < first_same]
    stacks = [*[(x, loop.lengths.get(k)) for k, x in enumerate(loop.stacks)],
              *[(given[i], loop.lengths.get(i - n)) for i in sliced]]
    same = [*loop.same, *[given[i] for i in moving if i >= first_same]]
    read = [stacks[i] for i in tangents_of.used if i < len(stacks)]
    start = [zeros(loop.variables[i]) if given[i] is None else convert_to_tensor(given[i])
             for i in carried]
    kept = tangents_of.kept
    _, *values = Loop(
        tangents_of.forward, loop.limit, loop.variables + start, [stack for stack, _ in read],
        [*[same[i - len(stacks)] for i in tangents_of.used if i >= len(stacks)],
         *tangents_of.captured],
        lengths={place: x for place, (_, x) in enumerate(read) if x is not None},
        ragged_kept=tuple(place for place, i in enumerate(kept) if i - n in loop.ragged_kept),
        reverse=loop.reverse).call()
    by_output: list[Tensor | None] = [None] * len(op.output_specs)
    for i, tangent in zip([*carried, *kept], values[n:], strict=False):
        by_output[1 + i] = tangent
    return by_output


_RULES: dict[str, Any] = {
    "optional_gradients": ANY_OUTPUT,
    "optional_tangents": range(1 << 30),
    "saved_outputs": range(1 << 30),
    "shape_rule": loop_specs,
}
loop_op = enter(LoopOp("While", _vjp, _jvp, **_RULES))
stateful_loop_op = enter(LoopOp("StatefulWhile", _vjp, _jvp, **_RULES)).described(
    stateful=True, given=_given,
    repeated=lambda inputs, outputs, attrs: Loop.repeated(inputs, outputs, attrs, True).call(),
    runs=lambda attrs: [LoopAttributes(**attrs).run()])
snapshots_op = enter(LoopOp(
    "WhileSnapshots", saved_inputs=(), differentiable=False, shape_rule=loop_specs))
