"""The op of a call in a graph that is recomputed for its derivatives."""

from __future__ import annotations

from typing import Any

from cytape.ops.engine.op_kinds import ANY_OUTPUT, general
from cytape.ops.python.python_ops import ANY_INPUTS
from cytape.tensor.values.spec import Spec

__all__ = ["checkpointed_call_op"]


def _checked_specs(*specs: Spec, trace: Any, n_kept: int, refusal: tuple = ()) -> list[Spec]:
    n_inputs, n_outputs = len(trace.input_symbols), len(trace.output_symbols)
    if len(specs) != n_inputs + n_outputs or not 0 <= n_kept <= n_outputs:
        raise ValueError(
            f"a call of {trace.name} has {n_inputs} inputs and {n_outputs} outputs, {n_kept} of "
            f"them kept; got {len(specs)} tensors")
    return list(specs[n_inputs:])


# Returns its last inputs, the results and kept values of a call of a trace; its derivatives
# recompute the call from the other inputs.
checkpointed_call_op = general(
    "CheckpointedCall",
    lambda *arrays, trace, **_: list(arrays[len(trace.input_symbols):]),
    vjp=lambda op, *gradients: op.attrs["trace"].calls(op.attrs["n_kept"]).vjp(op, *gradients),
    jvp=lambda op, *tangents: op.attrs["trace"].calls(op.attrs["n_kept"]).jvp(op, *tangents),
    saved_outputs=ANY_INPUTS, optional_gradients=ANY_OUTPUT, optional_tangents=ANY_INPUTS,
    shape_rule=_checked_specs, lowering="SHOWN", shows=-1)
