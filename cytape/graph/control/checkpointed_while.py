"""Gradients of loops that keep some states and recompute the others.

There are two ops. The first repeats the forward pass and stores some states, the snapshots. If the
loop itself is in the same graph, optimisation replaces this op by that loop, which then stores the
snapshots: online if the number of iterations is unknown. The second runs forward from snapshots,
over blocks of iterations, by a schedule of `core.schedules`, and back through each block as the
gradient does that keeps the residuals of every iteration.

The derivatives of the second op are those of the gradient that keeps everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cytape.core.schedules import Kind, blocks_and_snapshots, reversal, snapshots_beside
from cytape.graph.nested.checkpoint_plan import CheckpointedOp
from cytape.graph.tracing.body_tools import Operands, closed, dense, like, with_outputs, zeros
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.derived_body import DerivedBody
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import symbolic_gradients
from cytape.ops.engine.op_kinds import ANY_OUTPUT, enter
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import Spec, symbolic_spec

__all__ = ["Checkpoints", "checkpointed_gradients", "final_seeds"]


class Checkpoints(NamedTuple):
    """Limits on the states that a loop's gradient keeps; by default their number is chosen.

    Attributes
    ----------
    states : int or None
    nbytes : int or None
        Of states, and of the residuals of a block of iterations.
    """

    states: int | None = None
    nbytes: int | None = None


def checkpointed_gradients(
    loop: Any,
    checkpoints: Checkpoints,
    finals: Sequence[Any],
    gradients: Sequence[Tensor | None],
    carried: Sequence[int],
    wanted: Sequence[int],
) -> list[Tensor | None]:
    """Compute the gradients of a loop with few of its states in memory.

    Parameters
    ----------
    loop : Loop
        Its limit is how many iterations there were, and it has no condition.
    checkpoints : Checkpoints
    finals : sequence of Tensor
        The loop variables after the last iteration.
    gradients : sequence of Tensor or None
        Of these.
    carried : sequence of int
        Which loop variables gradients reach.
    wanted : sequence of int
        The loop-invariant inputs that need a gradient.

    Returns
    -------
    list of Tensor or None
        The gradients of these loop variables, then of `wanted`.
    """
    n, source = len(loop.variables), loop.body.graph
    blocks = []
    for suffix in ("states", "grad"):
        graph = FunctionGraph(f"{loop.body.name}_{suffix}", current_graph())
        with unrecorded(), building_into(graph):
            limit = graph.argument((), np.int64)
            inputs = like(graph, source, loop.body.input_symbols)
            variables, same = inputs[:n], inputs[n + len(loop.stacks) :]
            stacks = [_stack_of(graph, x) for x in inputs[n : n + len(loop.stacks)]]
            results: list[Any] = replace(
                loop, limit=limit, variables=variables, stacks=stacks, same=same).call()[1 : 1 + n]
            moving: list[Tensor] = []
            found: list[int] = []
            if suffix == "grad":
                seeds = like(graph, source, [loop.body.input_symbols[i] for i in carried])
                of = symbolic_gradients(
                    graph, [graph.symbol_of(results[i]) for i in carried],
                    [graph.symbol_of(variables[i]) for i in carried]
                    + [graph.symbol_of(same[i]) for i in wanted], seeds)
                found = [i for i, x in zip(wanted, of[len(carried) :], strict=True)
                         if x is not None]
                sums = like(graph, source, [loop.body.input_symbols[n + len(loop.stacks) + i]
                                            for i in found])
                results = [zeros(variables[i]) if x is None else dense(x)
                           for i, x in zip(carried, of, strict=False)]
                results += [total + dense(x) for total, x in zip(
                    sums, [x for x in of[len(carried) :] if x is not None], strict=True)]
                moving = seeds + sums
            blocks.append(closed(
                graph, [limit, *variables, *moving], stacks + same, loop.stacks + loop.same,
                results))
    (advance, passed, _), (reverse, passed_back, _) = blocks
    start = final_seeds(loop, finals, gradients, carried)
    operands = Operands(())
    start += [zeros(loop.same[i]) for i in found]
    operands.tensors = [loop.limit, *loop.variables, *start]
    residual_bytes = _residual_bytes(reverse)
    attrs = {
        "advance": advance, "reverse": reverse, "n_variables": n, "n_gradients": len(start),
        "advance_inputs": operands.positions(passed),
        "reverse_inputs": operands.positions(passed_back),
        "stacks": operands.positions(loop.stacks),
        "snapshots": operands.positions(
            _snapshots(loop, (*checkpoints, 0 if checkpoints.states else residual_bytes))),
        "residual_bytes": residual_bytes, "checkpoints": tuple(checkpoints),
    }
    for block in (advance, reverse):
        block.release_captures()
    gradients_found = checkpointed_op(*operands.tensors, **attrs)
    by_argument = dict(zip([*carried, *[n + i for i in found]],
                           _listed(gradients_found), strict=True))
    return [by_argument.get(i) for i in (*carried, *[n + i for i in wanted])]


def _snapshots(loop: Any, snapshots: tuple) -> list[Tensor]:
    """Return stacks of loop variables, and the numbers of their states."""
    body, n = loop.body, len(loop.variables)
    if len(body.output_symbols) > n:
        body = with_outputs(body, map(body.graph.tensor_at, body.output_symbols[:n]))
    return replace(loop, body=body, ragged_kept=(), snapshots=snapshots).call()[1 + n :]


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
    """Return the bytes that an iteration saves for its gradient, as far as shapes are known."""
    n_bytes = 0
    for attrs in reverse.graph.attrs:
        if attrs and "n_variables" in attrs:
            body = attrs["body"]
            specs = map(body.graph.spec_of, body.output_symbols[attrs["n_variables"] :])
            n_bytes += sum(max(spec.nbytes, 0) for spec in specs)
    return n_bytes


def _forward(
    *arrays: Any,
    advance: ConcreteFunction,
    reverse: ConcreteFunction,
    n_variables: int,
    n_gradients: int,
    advance_inputs: tuple[int, ...],
    reverse_inputs: tuple[int, ...],
    stacks: tuple[int, ...],
    residual_bytes: int,
    checkpoints: tuple,
    snapshots: tuple[int, ...] = (),
) -> list[Any]:
    n_steps, state = int(arrays[0]), list(arrays[1 : 1 + n_variables])
    gradients = list(arrays[1 + n_variables : 1 + n_variables + n_gradients])
    states, nbytes = checkpoints
    given = n_steps, states, nbytes, sum(x.nbytes for x in state), residual_bytes
    kept = {0: state}
    if snapshots and n_steps:
        *rows, (block, *index) = [arrays[i] for i in snapshots]
        block, n_snapshots = int(block), snapshots_beside(int(block), *given)
        kept = {int(step) // block: [row[slot] for row in rows]
                for step, slot in zip(index[::2], index[1::2], strict=True)}
    else:
        block, n_snapshots = blocks_and_snapshots(*given)
    n_blocks = -(-n_steps // block)

    def run(function: ConcreteFunction, moving: list, places: tuple, first: int, last: int) -> list:
        """Run a function over blocks of iterations."""
        start, stop = first * block, min(last * block, n_steps)
        return function.executable.run([
            np.asarray(stop - start, np.int64), *moving,
            *[arrays[i][start:stop] if i in stacks else arrays[i] for i in places]])

    for kind, step, stop in reversal(list(kept), n_blocks, n_snapshots):
        if kind is Kind.RESTORE:
            state = kept[step]
        elif kind is Kind.ADVANCE:
            state = run(advance, state, advance_inputs, step, stop)
        elif kind is Kind.STORE:
            kept[step] = state
        elif kind is Kind.FREE:
            del kept[step]
        else:
            gradients = run(reverse, state + gradients, reverse_inputs, step, step + 1)
    return [x.numpy() if isinstance(x, Tensor) else np.array(x) for x in gradients]


def _shape_rule(*specs: Spec, reverse: ConcreteFunction, **_: Any) -> list[Spec]:
    own = map(reverse.graph.spec_of, reverse.output_symbols)
    return [symbolic_spec(spec.shape, spec.dtype) for spec in own]  # not of that graph


def _plain(op: Any) -> DerivedBody:
    """Build the gradient over all iterations at once.

    It takes the inputs without the last ones, the snapshots.
    """
    attrs = op.attrs
    n_first = 1 + attrs["n_variables"] + attrs["n_gradients"]
    plain = DerivedBody(attrs["reverse"], "_derivative")
    arguments = plain.take_like(list(map(
        convert_to_tensor, op.inputs[:len(op.inputs) - len(attrs.get("snapshots", ()))])))
    plain.build([*arguments[:n_first], *[arguments[i] for i in attrs["reverse_inputs"]]])
    return plain


def _computed(plain: DerivedBody, found: list) -> list[Tensor | None]:
    """Compute the results that are not None."""
    body, passed = plain.closed([dense(x) for x in found if x is not None])
    values = iter(body.call_with(passed))
    return [None if x is None else next(values) for x in found]


def _vjp(op: Any, *gradients: Tensor | None) -> list[Tensor | None]:
    with unrecorded():
        plain = _plain(op)
        arguments = list(plain.arguments)
        reached = [i for i, gradient in enumerate(gradients) if gradient is not None]
        wanted = [i for i, x in enumerate(plain.actual) if x.spec.trainable and op.needs[i]]
        seeds = plain.take_like([convert_to_tensor(gradients[i]) for i in reached])
        found = plain.gradients(
            [plain.outputs[i] for i in reached], [arguments[i] for i in wanted], seeds)
    by_input = dict(zip(wanted, _computed(plain, found), strict=True))
    return [by_input.get(i) for i in range(len(op.inputs))]


def _jvp(op: Any, *tangents: Tensor | None) -> list[Tensor | None]:
    with unrecorded():
        plain = _plain(op)
        arguments = list(plain.arguments)
        moving = [i for i in range(len(arguments)) if tangents[i] is not None]
        directions = plain.take_like([convert_to_tensor(tangents[i]) for i in moving])
        found = plain.tangents([arguments[i] for i in moving], directions, plain.outputs)
    return _computed(plain, found)


checkpointed_op = enter(CheckpointedOp(
    "CheckpointedGradient", _forward, _vjp, _jvp, shape_rule=_shape_rule,
    optional_gradients=ANY_OUTPUT, optional_tangents=range(1 << 30)))
