"""Nodes with another gradient function than their op's, as tapes and accumulators see them."""

from __future__ import annotations

from typing import Any

from cytape.ops.engine.custom_op import described_call
from cytape.ops.engine.node_gradients import gradients_of_node
from cytape.ops.engine.rules import gradient_rule
from cytape.ops.engine.symbolic import install_overriding_call
from cytape.tensor.tensor import Tensor

__all__: list[str] = []


def _overriding_call(graph: Any, node: int) -> tuple[Any, dict] | None:
    """Return what recorders are told of a node: a call whose backward function is the other."""
    override = graph.gradient_override_of(node)
    if override is None:
        return None
    needed = [graph.spec_of(symbol).trainable for symbol in graph.inputs_of(node)]

    def backward(*gradients: Tensor) -> list:
        rule = gradient_rule(override)
        return gradients_of_node(graph, node, list(gradients), needed, rule)

    return described_call(graph.ops[node].name, backward)


install_overriding_call(_overriding_call)
