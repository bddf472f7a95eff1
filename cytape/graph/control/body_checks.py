"""Checks that bodies fit the inputs of their ops, which files of graphs may violate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cytape.errors import GraphError
from cytape.graph.control.control_ops import output_specs
from cytape.graph.model.body_flow import Run
from cytape.graph.tracing.body_tools import given_symbols
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.ops.adjoints.identity_groups import may_agree
from cytape.tensor.values.spec import Spec, symbolic_spec
from cytape.tensor.variable import Variable

__all__ = [
    "LoopAttributes",
    "check_branches",
    "check_call",
    "check_loop",
    "is_ragged",
    "loop_specs",
]


def check_call(what: str, body: Any, specs: Sequence[Spec]) -> None:
    """Raise if a body cannot be called with values of some specs.

    Parameters
    ----------
    what : str
        Name of the body, for the message.
    body : ConcreteFunction
    specs : sequence of Spec

    Raises
    ------
    GraphError

    Examples
    --------
    >>> import cytape
    >>> body = cytape.function(lambda x: x * x).get_concrete_function(cytape.constant(1.0))
    >>> check_call("the body", body, [Spec.of((), "float64")])
    >>> check_call("the body", body, [])
    Traceback (most recent call last):
        ...
    cytape.errors.GraphError: the body takes 1 operands, got 0
    """
    _check_specs(f"{what} takes", _parameters(what, body, len(specs)), specs)


def _parameters(what: str, body: Any, count: int) -> list[Spec]:
    if not isinstance(body, ConcreteFunction):
        raise GraphError(f"{what} is not a function: {body!r}")
    own = list(map(body.graph.spec_of, body.input_symbols))
    _require(len(own) == count, f"{what} takes {len(own)} operands, got {count}")
    return own


def _check_specs(
    what: str, wanted: Sequence[Spec], found: Sequence[Spec], any_shape: bool = False
) -> None:
    for i, (own, spec) in enumerate(zip(wanted, found, strict=True)):
        if own is not spec and (own.dtype != spec.dtype or not (
                any_shape or may_agree(own.shape, spec.shape))):
            raise GraphError(
                f"{what} {own.dtype} of shape {own.shape} in place {i}, got {spec.dtype} of shape "
                f"{spec.shape}")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise GraphError(otherwise)


def _check_positions(positions: Any, count: int) -> None:
    _require(
        type(positions) is tuple and all(type(i) is int and 0 <= i < count for i in positions),
        f"{positions!r} are not positions among {count}")


def _check_assigned(assigned: Any) -> None:
    _require(
        assigned is None or type(assigned) is tuple
        and all(isinstance(variable, Variable) for variable in assigned),
        "the assigned variables must be a tuple of variables")


def _check_predicate(what: str, spec: Spec) -> None:
    _require(
        spec.dtype == np.bool_ and may_agree(spec.shape, ()),
        f"{what} must be a boolean scalar, got {spec.dtype} of shape {spec.shape}")


def check_branches(specs: Sequence[Spec], branches: Any, positions: Any, assigned: Any) -> None:
    """Raise if a call of CondOp is not valid.

    The operands need the shapes that one of the branches takes: if the branches return different
    shapes, so do the gradients that their derivatives take, and only one of them runs.

    Parameters
    ----------
    specs : sequence of Spec
        Of its inputs.
    branches, positions, assigned : object
        Its attributes; `assigned` is None where it has none.

    Raises
    ------
    GraphError
    """
    _require(len(specs) > 0, "there is no predicate")
    _check_predicate("the predicate", specs[0])
    _check_assigned(assigned)
    _require(
        type(branches) is tuple and type(positions) is tuple
        and len(branches) == len(positions) == 2, "there are not two branches")
    n_given = 0
    passed = []
    for branch, places in zip(branches, positions, strict=True):
        _check_positions(places, len(specs))
        passed.append((_parameters("a branch", branch, len(places)), [specs[i] for i in places]))
        n_given += 0 if assigned is None else len(given_symbols(branch.graph))
    one_fits = any(
        all(may_agree(own.shape, spec.shape) for own, spec in zip(*pair, strict=True))
        for pair in passed)
    for pair in passed:
        _check_specs("a branch takes", *pair, any_shape=one_fits)
    outputs = [list(map(x.graph.spec_of, x.output_symbols)) for x in branches]
    _require(
        [spec.dtype for spec in outputs[0]] == [spec.dtype for spec in outputs[1]],
        "the branches do not return the same dtypes")
    _require(len(outputs[0]) >= n_given, "the branches do not return what their nodes found")


@dataclass
class LoopAttributes:
    """The attributes of a call of `LoopOp`; a file may contain invalid ones."""

    body: Any
    condition: Any
    n_variables: Any
    n_stacks: Any
    body_inputs: Any
    condition_inputs: Any
    reverse: Any
    ragged_stacks: Any = ()
    ragged_kept: Any = ()
    checkpoints: Any = None
    assigned: Any = None  # for stateful loops
    snapshots: Any = None

    def run(self) -> Run:
        """Return the positions of the body's inputs and outputs among those of the call."""
        n = self.n_variables
        return Run(self.body, (*range(1, 1 + n + self.n_stacks), *self.body_inputs), 1, n)


def check_loop(specs: Sequence[Spec], call: LoopAttributes) -> list[Spec]:
    """Return the specs of the body's arguments; raise if a call of LoopOp is not valid.

    Parameters
    ----------
    specs : sequence of Spec
        Of its inputs.
    call : LoopAttributes

    Raises
    ------
    GraphError
    """
    body, condition = call.body, call.condition
    n_variables, n_stacks, ragged_stacks = call.n_variables, call.n_stacks, call.ragged_stacks
    for number in (n_variables, n_stacks):
        _require(type(number) is int and number >= 0, f"{number!r} is not a number of inputs")
    _require(type(call.reverse) is bool, f"reverse must be True or False, got {call.reverse!r}")
    _check_assigned(call.assigned)
    for positions in (call.body_inputs, call.condition_inputs):
        _check_positions(positions, len(specs))
    _check_positions(ragged_stacks, n_stacks)
    _require(
        list(ragged_stacks) == sorted(set(ragged_stacks)), "a stack has its lengths in two places")
    first_lengths = 1 + n_variables + n_stacks
    _require(
        first_lengths + len(ragged_stacks) <= len(specs),
        f"there are {len(specs)} inputs, less than variables, stacks and their lengths")
    limit, lengths = specs[0], specs[first_lengths : first_lengths + len(ragged_stacks)]
    _require(
        limit.dtype.kind in "iu" and may_agree(limit.shape, ()),
        f"the number of iterations must be an integer, got {limit.dtype} of shape {limit.shape}")
    _check_specs("lengths are", [symbolic_spec((None,), np.int64)] * len(lengths), lengths)
    variables = list(specs[1 : 1 + n_variables])
    slices = [
        _slice_spec(stack, i in ragged_stacks)
        for i, stack in enumerate(specs[1 + n_variables : first_lengths])
    ]
    operands = variables + slices + [specs[i] for i in call.body_inputs]
    check_call("the body", body, operands)
    carried = list(map(body.graph.spec_of, body.input_symbols[:n_variables]))
    outputs = list(map(body.graph.spec_of, body.output_symbols))
    n_given = 0 if call.assigned is None else len(given_symbols(body.graph))
    _require(
        len(outputs) >= n_variables + n_given,
        f"the body returns {len(outputs)} tensors, fewer than loop variables and values that its "
        "nodes found")
    _check_specs("the loop carries", carried, outputs[:n_variables])
    _check_ragged(outputs[n_variables:], call.ragged_kept)
    if call.snapshots is not None:
        _check_snapshots(call.snapshots, call.ragged_kept)
    if condition is not None:
        check_call(
            "the condition", condition, carried + [specs[i] for i in call.condition_inputs])
        _require(len(condition.output_symbols) == 1, "the condition does not return one tensor")
        _check_predicate(
            "what the condition returns", condition.graph.spec_of(condition.output_symbols[0]))
    return operands


def loop_specs(*specs: Spec, **attrs: Any) -> list[Spec]:
    """Return the specs of the outputs of a call of LoopOp; raise if the call is not valid."""
    call = LoopAttributes(**attrs)
    body, n, operands = call.body, call.n_variables, check_loop(specs, call)
    outputs, own = output_specs(body, operands), operands[:n]
    if any(found is not spec for found, spec in zip(outputs, own, strict=False)):
        outputs = output_specs(body, ())  # shapes may change between iterations
        own = [symbolic_spec(spec.shape, spec.dtype)
               for spec in map(body.graph.spec_of, body.input_symbols[:n])]
    stacks = []
    for i, spec in enumerate(outputs[n:]):
        shape: Any = spec.shape
        if shape is not None:
            shape = (None, *tuple(shape)[1 if i in call.ragged_kept else 0 :])
        stacks.append(symbolic_spec(shape, spec.dtype))
    stored = [] if call.snapshots is None else [
        *[_stack_spec(spec) for spec in own], symbolic_spec((None,), np.int64)]
    lengths = [symbolic_spec((None,), np.int64) for _ in call.ragged_kept]
    return [Spec.of((), np.int64), *own, *stacks, *lengths, *stored]


def _stack_spec(spec: Spec) -> Spec:
    return symbolic_spec(None if spec.shape is None else (None, *tuple(spec.shape)), spec.dtype)


def _slice_spec(stack: Spec, is_ragged: bool) -> Spec:
    shape: Any = stack.shape
    if shape is None:
        return symbolic_spec(None, stack.dtype)
    _require(len(shape) > 0, "a stack is a scalar")
    return symbolic_spec((None, *tuple(shape)[1:]) if is_ragged else tuple(shape)[1:], stack.dtype)


def _check_ragged(kept: Sequence[Spec], ragged: Any) -> None:
    _check_positions(ragged, len(kept))
    _require(
        list(ragged) == sorted(set(ragged))
        and all(kept[i].shape not in (None, ()) for i in ragged),
        f"{ragged} are not places of kept values that have rows")


def _check_snapshots(snapshots: Any, ragged: Any) -> None:
    _require(
        type(snapshots) is tuple and len(snapshots) == 3
        and all(x is None or type(x) is int and x > 0 for x in snapshots[:2])
        and type(snapshots[2]) is int and snapshots[2] >= 0,
        f"{snapshots!r} does not say how many snapshots to keep")
    _require(not ragged, "a loop that keeps ragged stacks can have no snapshots")


def is_ragged(spec: Spec) -> bool:
    """Return whether a spec has an unknown number of rows.

    Examples
    --------
    >>> is_ragged(Spec.of((2, 3), float)), is_ragged(symbolic_spec((None, 3), float))
    (False, True)
    """
    shape: Any = spec.shape
    return not spec.known and shape is not None and len(shape) > 0 and shape[0] is None
