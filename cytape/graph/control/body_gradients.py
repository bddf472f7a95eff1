"""Derivatives of the body of a loop, as bodies of the loops for its gradient and tangents.

They are derived from the body alone and stored with it: the gradient of an outer loop
differentiates the loops in its body again, and so do higher orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cytape.graph.control.residuals import extracted, read_of, residuals, stackable
from cytape.graph.tracing.body_tools import closed, dense, derived, zeros
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.derived_body import DerivedBody
from cytape.ops.adjoints.extent_checks import ensure_shape
from cytape.ops.calls.symbolic import in_graph
from cytape.tensor.recording.state import building_into, unrecorded
from cytape.tensor.tensor import Tensor

__all__ = [
    "BodyGradient",
    "BodyTangents",
    "body_gradient",
    "body_tangents",
    "reached_by_gradients",
    "reached_by_tangents",
]


@derived
def reached_by_gradients(
    body: ConcreteFunction, variables: Sequence[int], outputs: Sequence[int], n_variables: int
) -> tuple[int, ...]:
    """List the loop variables that gradients reach in some iteration.

    The others have no gradient rather than zeros, since zero times an infinite slope is NaN.

    Parameters
    ----------
    body : ConcreteFunction
        From loop variables, and more, to the next loop variables, and more.
    variables : sequence of int
        The loop variables of whose last values there are gradients.
    outputs : sequence of int
        The other outputs that have gradients.
    n_variables : int
    """
    def step(part: DerivedBody, reached: Sequence[int]) -> list[Any]:
        seeds = part.take([body.output_symbols[i] for i in reached])
        return part.gradients(
            [part.outputs[i] for i in reached], part.inputs[:n_variables], seeds)

    return _found_in_steps(body, variables, outputs, n_variables, step)


@derived
def reached_by_tangents(
    body: ConcreteFunction, variables: Sequence[int], inputs: Sequence[int], n_variables: int
) -> tuple[int, ...]:
    """List the loop variables that tangents reach in some iteration.

    Parameters
    ----------
    body : ConcreteFunction
    variables, inputs : sequence of int
        The loop variables whose start values have tangents, and the other inputs that have some.
    n_variables : int
    """
    def step(part: DerivedBody, reached: Sequence[int]) -> list[Any]:
        tangents = part.take([body.input_symbols[i] for i in reached])
        return part.tangents(
            [part.inputs[i] for i in reached], tangents, part.outputs[:n_variables])

    return _found_in_steps(body, variables, inputs, n_variables, step)


def _found_in_steps(
    body: ConcreteFunction, variables: Sequence[int], others: Sequence[int], n_variables: int,
    step: Callable[[DerivedBody, Sequence[int]], list[Any]],
) -> tuple[int, ...]:
    n_trainable = sum(body.graph.spec_of(symbol).trainable
                      for symbol in body.input_symbols[:n_variables])
    reached, last = set(variables), [*variables, *others]
    while last and len(reached) < n_trainable:
        part = DerivedBody(body)
        part.build(part.take(body.input_symbols))
        last = [i for i, x in enumerate(step(part, last)) if x is not None and i not in reached]
        reached.update(last)
    return tuple(sorted(reached))


@dataclass
class BodyGradient:
    """The gradient of a body: a body for a second forward pass, and one for the backward pass.

    Attributes
    ----------
    forward : ConcreteFunction or None
        From the inputs of the body and captured tensors to the outputs of the body, then residuals.
        None if there are no residuals.
    backward : ConcreteFunction
        From the gradients of loop variables, sums, slices of stacks, and loop-invariant inputs, to
        the next gradients, the next sums, and the gradients of slices.
    n_residuals : int
    summed, sliced : list of int
        The inputs of the body with gradients among the results: invariant ones, and slices.
    stacks_read : list of int
        The stacks that the backward body reads, among residuals, the body's own stacks, and the
        gradients of stacks that the loop made.
    same_read : list of int
        The inputs that it reads, among invariant inputs and captured tensors.
    captured : list of Tensor
        Tensors from outside that the gradient reads.
    """

    forward: ConcreteFunction | None
    backward: ConcreteFunction
    n_residuals: int
    summed: list[int]
    sliced: list[int]
    stacks_read: list[int]
    same_read: list[int]
    captured: list[Tensor]


@derived
def body_gradient(
    body: ConcreteFunction, n_variables: int, n_stacks: int, carried: Sequence[int],
    wanted: Sequence[int], kept: Sequence[int],
) -> BodyGradient:
    """Return the gradient of a body.

    Parameters
    ----------
    body : ConcreteFunction
    n_variables, n_stacks : int
        How many of its inputs are loop variables, and then slices of stacks.
    carried, wanted, kept : sequence of int
        The loop variables, the other inputs, and the other outputs with gradients.
    """
    first_same = n_variables + n_stacks
    part = DerivedBody(body, "_grad")
    graph = part.graph
    with unrecorded(), building_into(part.graph):
        inputs = part.take(body.input_symbols)
        seeds = part.take([body.input_symbols[i] for i in carried])
        seeds_of_kept = part.take([body.output_symbols[i] for i in kept])
        part.build(inputs)
        outputs = [in_graph(graph, x) for x in part.outputs]
        found = part.gradients(
            [outputs[i] for i in (*carried, *kept)], [inputs[i] for i in (*carried, *wanted)],
            seeds + seeds_of_kept)
        next_seeds = [zeros(inputs[i]) if gradient is None else dense(gradient)
                      for i, gradient in zip(carried, found, strict=False)]
        of_wanted = {i: ensure_shape(dense(gradient), inputs[i].shape)
                     for i, gradient in zip(wanted, found[len(carried) :], strict=True)
                     if gradient is not None}
        summed = [i for i in of_wanted if i >= first_same]
        sliced = [i for i in of_wanted if i < first_same]
        sums = part.take([body.input_symbols[i] for i in summed])
        results = [in_graph(graph, x) for x in (
            *next_seeds, *[total + of_wanted[i] for total, i in zip(sums, summed, strict=True)],
            *[of_wanted[i] for i in sliced])]
        moving, slices = inputs[:first_same], inputs[n_variables:first_same]
        needed = residuals(graph, moving, seeds + sums + seeds_of_kept, part.first_of_derivative,
                           results, slices + seeds_of_kept)
        parts = stackable(graph, needed)
    # Captured tensors are loop-invariant, too.
    same = inputs[first_same:] + [graph.tensor_at(symbol) for _, symbol in graph.captures]
    captured = [tensor for tensor, _ in graph.captures]
    residual_parts = list(
        {graph.symbol_of(x): x for parts_of_x in parts for x in parts_of_x}.values())
    forward = None
    if residual_parts:
        forward = extracted(graph, moving + same, outputs + residual_parts)
        if not captured:
            forward.history_of = body
    sources = [*zip(needed, parts, strict=True), *[(x, [x]) for x in slices + seeds_of_kept]]
    used = read_of(graph, results, [x for x, _ in sources] + same, seeds + sums)
    read = {graph.symbol_of(x): x for i in used if i < len(sources) for x in sources[i][1]}
    place_of = {graph.symbol_of(x): i
                for i, x in enumerate(residual_parts + slices + seeds_of_kept)}
    same_read = [i - len(sources) for i in used if i >= len(sources)]
    backward = extracted(
        graph, [*seeds, *sums, *read.values(), *[same[i] for i in same_read]], results,
        graph.stateful, {x: parts_of_x for x, parts_of_x in sources if parts_of_x[0] is not x})
    return BodyGradient(forward, backward, len(residual_parts), summed, sliced,
                        [place_of[symbol] for symbol in read], same_read, captured)


@dataclass
class BodyTangents:
    """A body that computes the tangents of another one's outputs, too.

    Attributes
    ----------
    forward : ConcreteFunction
        From loop variables, the tangents of some, slices of stacks and of their tangents, and
        invariant inputs, to the next loop variables, their tangents, and those of kept outputs.
    kept : list of int
        The outputs besides the loop variables that have tangents.
    used : list of int
        The other inputs that it reads, among stacks, their tangents, invariant inputs, and their
        tangents.
    captured : list of Tensor
        Tensors from outside that the tangents read.
    """

    forward: ConcreteFunction
    kept: list[int]
    used: list[int]
    captured: list[Tensor]


@derived
def body_tangents(
    body: ConcreteFunction, n_variables: int, n_stacks: int, carried: Sequence[int],
    moving: Sequence[int],
) -> BodyTangents:
    """Return a body with its tangents.

    Parameters
    ----------
    body, n_variables, n_stacks
        As for `body_gradient`.
    carried, moving : sequence of int
        Which loop variables, and which other inputs, have tangents.
    """
    n, first_same = n_variables, n_variables + n_stacks
    sliced, same_moving = [[i for i in moving if (i < first_same) == is_slice]
                           for is_slice in (True, False)]
    part = DerivedBody(body, "_jvp")
    with unrecorded(), building_into(part.graph):
        inputs = part.take(body.input_symbols)
        of_variables, of_slices, of_same = [
            part.take([body.input_symbols[i] for i in places])
            for places in (carried, sliced, same_moving)]
        part.build(inputs)
        outputs = part.outputs
        found = part.tangents(
            [inputs[i] for i in (*carried, *sliced, *same_moving)],
            of_variables + of_slices + of_same, outputs)
        next_tangents = [zeros(outputs[i]) if found[i] is None else dense(found[i])
                         for i in carried]
        kept = [i for i in range(n, len(outputs)) if found[i] is not None]
        others = [*inputs[n:first_same], *of_slices, *inputs[first_same:], *of_same]
        forward, passed, used = closed(
            part.graph, inputs[:n] + of_variables, others, others,
            [*outputs[:n], *next_tangents, *[dense(found[i]) for i in kept]])
    return BodyTangents(forward, kept, used, passed[len(used) :])
