"""Calls whose derivatives compute them again where a graph is built, for rooms below graphs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from cytape.ops.engine.declare import ANY_OUTPUT, general
from cytape.ops.shared.policy import Policy
from cytape.ops.shared.python_call import ANY_INPUTS
from cytape.tensor.spec import Spec

__all__ = ["called_by_a_trace", "checkpointed_call_op", "install_recomputed", "recomputed_in_graph"]


def _checked_specs(*specs: Spec, trace: Any, n_kept: int, refusal: tuple = ()) -> list[Spec]:
    n_inputs, n_outputs = len(trace.input_symbols), len(trace.output_symbols)
    if len(specs) != n_inputs + n_outputs or not 0 <= n_kept <= n_outputs:
        raise ValueError(
            f"a call of {trace.name} has {n_inputs} inputs and {n_outputs} outputs, {n_kept} of "
            f"them kept; got {len(specs)} tensors")
    return list(specs[n_inputs:])


# Returns its last inputs, what a call of a trace returned and kept, with derivatives that compute
# again what led to them.
checkpointed_call_op = general(
    "CheckpointedCall",
    lambda *arrays, trace, **_: list(arrays[len(trace.input_symbols):]),
    vjp=lambda op, *gradients: op.attrs["trace"].calls(op.attrs["n_kept"]).vjp(op, *gradients),
    jvp=lambda op, *tangents: op.attrs["trace"].calls(op.attrs["n_kept"]).jvp(op, *tangents),
    saved_outputs=ANY_INPUTS, optional_gradients=ANY_OUTPUT, optional_tangents=ANY_INPUTS,
    shape_rule=_checked_specs)

_call: Callable[[Any, Callable, tuple, dict, Policy], Any] | None = None
_call_traced: Callable[[Callable, tuple, dict, Policy], Any] | None = None


def install_recomputed(
    call: Callable[[Any, Callable, tuple, dict, Policy], Any],
    call_traced: Callable[[Callable, tuple, dict, Policy], Any],
) -> None:
    """Tell how to add such a call to a graph, and how to make one of a trace.

    Parameters
    ----------
    call : callable
        As `recomputed_in_graph`.
    call_traced : callable
        As `called_by_a_trace`.
    """
    global _call, _call_traced
    _call, _call_traced = call, call_traced


def recomputed_in_graph(
    graph: Any, f: Callable, args: tuple, kwargs: dict, policy: Policy
) -> Any:
    """Call a function in a graph; its derivatives compute again what the policy does not keep."""
    assert _call is not None, "whoever builds graphs has installed it"
    return _call(graph, f, args, kwargs, policy)


def called_by_a_trace(f: Callable, args: tuple, kwargs: dict, policy: Policy) -> Any:
    """Call a function by a trace that is made for this call, and keep what the policy says."""
    if _call_traced is None:
        importlib.import_module("cytape.graph")
    assert _call_traced is not None
    return _call_traced(f, args, kwargs, policy)
