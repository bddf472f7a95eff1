"""Calls of ops for all members of a batch at once, by the rule that each op declares.

An op without a rule, or whose rule returns NotImplemented, is called for one member after the
other.
"""

from __future__ import annotations

from typing import Any

from cytape.graph.batching import index_rules
from cytape.ops.engine.batch_axis import BatchedCall

__all__ = ["batched"]


def batched(call: BatchedCall) -> Any:
    """Compute the outputs of all members, or return NotImplemented."""
    if any(spec.ndim < 0 for spec in call.input_specs):  # an unknown number of axes
        return NotImplemented
    rule = index_rules.RULES.get(call.op.name) or call.op.batch
    return NotImplemented if rule is None else rule(call)
