"""The gradient of a loop that keeps some of its states, and computes the others once more.

When the gradient is asked for it is known how many iterations there were, also of a loop with a
condition. So the loop itself keeps nothing; its gradient is an op that goes forward once more, over
blocks of iterations, by a schedule of `core.schedules`, and back through one block after
the other as the gradient of a loop does that keeps what every iteration leaves.

The derivatives of that op are those of the gradient that keeps everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cytape.core.schedules import Kind, reversal, sweep
from cytape.errors import GraphError
from cytape.graph.tracing.bodies import Operands, closed, dense, inlined, like, zeros
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import symbolic_gradients, symbolic_tangents
from cytape.ops.engine.declare import general
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.spec import Spec, symbolic_spec
from cytape.tensor.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor

__all__ = ["Checkpoints", "blocks_and_snapshots", "checkpointed_gradients"]


class Checkpoints(NamedTuple):
    """How many states of a loop its gradient may keep; neither says: as suits their number.

    Attributes
    ----------
    states : int or None
    nbytes : int or None
        Of states, and of what the iterations of a block leave.
    """

    states: int | None = None
    nbytes: int | None = None


def checkpointed_gradients(
    loop: Any,
    call: Callable[[Tensor, list[Tensor], list[Tensor], list[Tensor]], list[Tensor]],
    checkpoints: Checkpoints,
    finals: Sequence[Any],
    gradients: Sequence[Tensor | None],
    wanted: Sequence[int],
) -> list[Tensor | None]:
    """Compute the gradients of a loop with few of its states in memory.

    Parameters
    ----------
    loop : Loop
        Its limit is how many iterations there were, and it has no condition.
    call : callable
        Calls such a loop, with a limit, loop variables, stacks and what is the same in all
        iterations; returns the loop variables.
    checkpoints : Checkpoints
    finals : sequence of Tensor
        The loop variables after the last iteration.
    gradients : sequence of Tensor or None
        Of these.
    wanted : sequence of int
        Which of what is the same in all iterations needs a gradient.

    Returns
    -------
    list of Tensor or None
        Of the loop variables, then of what is wanted.
    """
    n, source = len(loop.variables), loop.body.graph
    carried = [i for i in range(n) if source.spec_of(loop.body.input_symbols[i]).trainable]
    blocks = []
    for suffix in ("states", "grad"):
        graph = FunctionGraph(f"{loop.body.name}_{suffix}", current_graph())
        with unrecorded(), building_into(graph):
            limit = graph.argument((), np.int64)
            inputs = like(graph, source, loop.body.input_symbols)
            variables, same = inputs[:n], inputs[n + len(loop.stacks) :]
            stacks = [_stack_of(graph, x) for x in inputs[n : n + len(loop.stacks)]]
            results: list[Any] = call(limit, variables, stacks, same)
            seeds: list[Tensor] = []
            found: list[int] = []
            if suffix == "grad":
                seeds = like(graph, source, [loop.body.input_symbols[i] for i in carried])
                of = symbolic_gradients(
                    graph, [graph.symbol_of(results[i]) for i in carried],
                    [graph.symbol_of(variables[i]) for i in carried]
                    + [graph.symbol_of(same[i]) for i in wanted], seeds)
                found = [i for i, x in zip(wanted, of[len(carried) :], strict=True)
                         if x is not None]
                results = [zeros(variables[i]) if x is None else dense(x)
                           for i, x in zip(carried, of, strict=False)]
                results += [dense(x) for x in of[len(carried) :] if x is not None]
            blocks.append(closed(
                graph, [limit, *variables, *seeds], stacks + same, loop.stacks + loop.same,
                results))
    (advance, passed, _), (reverse, passed_back, _) = blocks
    start = final_seeds(loop, finals, gradients, carried)
    operands = Operands(())
    operands.tensors = [loop.limit, *loop.variables, *start]
    attrs = {
        "advance": advance, "reverse": reverse, "n_variables": n, "n_seeds": len(carried),
        "advance_inputs": operands.positions(passed),
        "reverse_inputs": operands.positions(passed_back),
        "summed": operands.positions([loop.same[i] for i in found]),
        "stacks": operands.positions(loop.stacks),
        "residual_bytes": _residual_bytes(reverse), "checkpoints": tuple(checkpoints),
    }
    for block in (advance, reverse):
        block.release_captures()
    gradients_found = checkpointed_op(*operands.tensors, **attrs)
    by_argument = dict(zip([*carried, *[n + i for i in found]],
                           _listed(gradients_found), strict=True))
    return [by_argument.get(i) for i in (*range(n), *[n + i for i in wanted])]


def final_seeds(
    loop: Any, finals: Sequence[Any], gradients: Sequence[Any], carried: Sequence[int]
) -> list[Tensor]:
    """Return the gradients of some loop variables after the last iteration; zeros for none."""
    seeds = []
    for i in carried:
        if gradients[i] is not None:
            seeds.append(convert_to_tensor(gradients[i]))
        else:
            keeps_shape = loop.body.graph.spec_of(loop.body.input_symbols[i]).known
            seeds.append(zeros(loop.variables[i] if keeps_shape else convert_to_tensor(finals[i])))
    return seeds


def _stack_of(graph: FunctionGraph, x: Tensor) -> Tensor:
    return graph.argument(None if x.shape is None else (None, *x.shape), x.dtype)


def _listed(results: Any) -> list[Tensor]:
    return [results] if isinstance(results, Tensor) else list(results)


def _residual_bytes(reverse: ConcreteFunction) -> int:
    """Return how much an iteration leaves for its gradient, as far as its shapes are known."""
    n_bytes = 0
    for attrs in reverse.graph.attrs:
        if attrs and "n_variables" in attrs:
            body = attrs["body"]
            specs = map(body.graph.spec_of, body.output_symbols[attrs["n_variables"] :])
            n_bytes += sum(max(spec.nbytes, 0) for spec in specs)
    return n_bytes


def blocks_and_snapshots(
    n_steps: int, checkpoints: Checkpoints, state_bytes: int, residual_bytes: int
) -> tuple[int, int]:
    """Return how many iterations a block has, and how many blocks' states are kept at a time.

    Parameters
    ----------
    n_steps : int
    checkpoints : Checkpoints
    state_bytes, residual_bytes : int
        Of the loop variables, and of what an iteration leaves for its gradient.

    Returns
    -------
    tuple of int

    Raises
    ------
    GraphError
        If one state, and what one iteration leaves, have more bytes than there may be.

    Examples
    --------
    >>> blocks_and_snapshots(10_000, Checkpoints(), 8, 8)
    (100, 100)
    >>> blocks_and_snapshots(10_000, Checkpoints(states=7), 8, 8)
    (1, 7)
    >>> blocks_and_snapshots(10_000, Checkpoints(nbytes=800), 8, 8)
    (50, 50)
    """
    if checkpoints.states is not None:
        return 1, checkpoints.states
    n_steps, state, residual = max(n_steps, 1), max(state_bytes, 1), max(residual_bytes, 1)
    block = min(max(math.isqrt(n_steps * state // residual), 1), n_steps)
    allowed = checkpoints.nbytes
    if allowed is None:
        return block, -(-n_steps // block)
    if state + residual > allowed:
        raise GraphError(
            f"the gradient of a loop needs {state + residual} bytes at the least, for one state "
            f"and what one iteration leaves: memory_budget is {allowed}"
        )
    # As few repetitions as can be; half of the memory for a block where not all states fit.
    if state + n_steps * residual <= allowed:
        return n_steps, 1
    if block * residual + -(-n_steps // block) * state > allowed:
        block = max(min(allowed // 2, allowed - state) // residual, 1)
    return block, min((allowed - block * residual) // state, -(-n_steps // block))


def _forward(
    *arrays: Any,
    advance: ConcreteFunction,
    reverse: ConcreteFunction,
    n_variables: int,
    n_seeds: int,
    advance_inputs: tuple[int, ...],
    reverse_inputs: tuple[int, ...],
    summed: tuple[int, ...],
    stacks: tuple[int, ...],
    residual_bytes: int,
    checkpoints: tuple,
) -> list[Any]:
    n_steps, state = int(arrays[0]), list(arrays[1 : 1 + n_variables])
    gradients = list(arrays[1 + n_variables : 1 + n_variables + n_seeds])
    sums = [np.zeros_like(arrays[place]) for place in summed]
    block, n_snapshots = blocks_and_snapshots(
        n_steps, Checkpoints(*checkpoints), sum(x.nbytes for x in state), residual_bytes)
    n_blocks = -(-n_steps // block)

    def run(function: ConcreteFunction, moving: list, places: tuple, first: int, last: int) -> list:
        """Run what goes through blocks of iterations."""
        start, stop = first * block, min(last * block, n_steps)
        return function.executable.run([
            np.asarray(stop - start, np.int64), *moving,
            *[arrays[i][start:stop] if i in stacks else arrays[i] for i in places]])

    stored = sweep(n_blocks, n_snapshots)
    snapshots = {0: state}
    for first, last in zip(stored, stored[1:], strict=False):
        snapshots[last] = run(advance, snapshots[first], advance_inputs, first, last)
    for kind, step, stop in reversal(stored, n_blocks, n_snapshots):
        if kind is Kind.RESTORE:
            state = snapshots[step]
        elif kind is Kind.ADVANCE:
            state = run(advance, state, advance_inputs, step, stop)
        elif kind is Kind.STORE:
            snapshots[step] = state
        elif kind is Kind.FREE:
            del snapshots[step]
        else:
            results = run(reverse, state + gradients, reverse_inputs, step, step + 1)
            gradients = results[:n_seeds]
            for total, term in zip(sums, results[n_seeds:], strict=True):
                total += term.numpy()
    return [x.numpy() if isinstance(x, Tensor) else np.array(x) for x in gradients] + sums


def _shape_rule(*specs: Spec, reverse: ConcreteFunction, **_: Any) -> list[Spec]:
    own = map(reverse.graph.spec_of, reverse.output_symbols)
    return [symbolic_spec(spec.shape, spec.dtype) for spec in own]  # not of that graph's tensors


class _Plain:
    """The same gradient, of all iterations at once, built in a graph of its own."""

    def __init__(self, op: Any) -> None:
        self.inputs = list(map(convert_to_tensor, op.inputs))
        self.trainable = [x.spec.trainable for x in self.inputs]
        attrs = op.attrs
        reverse, n_first = attrs["reverse"], 1 + attrs["n_variables"] + attrs["n_seeds"]
        self.graph = FunctionGraph(f"{reverse.name}_derivative", current_graph())
        with self.building():
            self.arguments = [
                self.graph.argument(x.shape, x.dtype) for x in self.inputs]
            self.outputs = inlined(reverse, self.graph, [
                *self.arguments[:n_first],
                *[self.arguments[i] for i in attrs["reverse_inputs"]]])

    def building(self) -> Any:
        return building_into(self.graph)

    def symbols(self, tensors: Sequence[Tensor]) -> list[int]:
        return list(map(self.graph.symbol_of, tensors))

    def take(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        return [self.graph.argument(x.shape, x.dtype) for x in tensors]

    def call(self, more: list[Tensor], actual: list[Tensor], found: list) -> list[Tensor | None]:
        """Run what was found, None where nothing was."""
        results = [dense(x) for x in found if x is not None]
        body, passed, _ = closed(
            self.graph, (), self.arguments + more, self.inputs + actual, results)
        values = iter(body.call_with(passed))
        return [None if x is None else next(values) for x in found]


def _vjp(op: Any, *gradients: Tensor | None) -> list[Tensor | None]:
    with unrecorded():
        plain = _Plain(op)
        reached = [i for i, gradient in enumerate(gradients) if gradient is not None]
        wanted = [i for i, trainable in enumerate(plain.trainable) if trainable and op.needs[i]]
        actual = [convert_to_tensor(gradients[i]) for i in reached]
        with plain.building():
            seeds = plain.take(actual)
            found = symbolic_gradients(
                plain.graph, plain.symbols([plain.outputs[i] for i in reached]),
                plain.symbols([plain.arguments[i] for i in wanted]), seeds)
    by_input = dict(zip(wanted, plain.call(seeds, actual, found), strict=True))
    return [by_input.get(i) for i in range(len(plain.inputs))]


def _jvp(op: Any, *tangents: Tensor | None) -> list[Tensor | None]:
    with unrecorded():
        plain = _Plain(op)
        moving = [i for i, tangent in enumerate(tangents) if tangent is not None]
        actual = [convert_to_tensor(tangents[i]) for i in moving]
        with plain.building():
            directions = plain.take(actual)
            found = symbolic_tangents(
                plain.graph, plain.symbols([plain.arguments[i] for i in moving]), directions,
                plain.symbols(plain.outputs))
    return plain.call(directions, actual, found)


checkpointed_op = general(
    "CheckpointedGradient", _forward, _vjp, _jvp, shape_rule=_shape_rule,
    optional_gradients=range(64), optional_tangents=range(1 << 30))
