"""Overrides: nodes that were built with other gradient functions than their ops'."""

from __future__ import annotations

from typing import Any

from cytape.graph.model.contexts import Overrides, overrides_within
from cytape.graph.tracing.body_tools import derived
from cytape.graph.tracing.checkpointed_calls import copied
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.ops.engine.custom_op import described_call
from cytape.ops.engine.node_vspace import gradients_of_node
from cytape.ops.engine.user_rules import gradient_rule
from cytape.tensor.tensor import Tensor

__all__ = ["overriding_call"]


def overriding_call(graph: Any, node: int) -> tuple[Any, dict] | None:
    """Return the call that is differentiated in place of a node, None for the node itself.

    It has another backward function, or bodies with other backward functions.
    """
    override = graph.gradient_override_of(node)
    if override is None:
        return _with_bodies_under(
            graph.ops[node], graph.attrs[node], graph.contexts[graph.context_of(node)].overrides)
    needed = [graph.spec_of(symbol).trainable for symbol in graph.inputs_of(node)]

    def backward(*gradients: Tensor) -> list:
        rule = gradient_rule(override)
        return gradients_of_node(graph, node, list(gradients), needed, rule)

    return described_call(graph.ops[node].name, backward)


def _with_bodies_under(op: Any, attrs: dict, overrides: Overrides) -> tuple[Any, dict] | None:
    changed: dict[str, Any] = {}
    for name, value in attrs.items() if overrides else ():
        if isinstance(value, ConcreteFunction):
            changed[name] = _under(value, overrides)
        elif isinstance(value, tuple) and any(isinstance(x, ConcreteFunction) for x in value):
            changed[name] = tuple([_under(x, overrides) for x in value])
    return (op, {**attrs, **changed}) if changed else None


def _under(body: ConcreteFunction, overrides: Overrides) -> ConcreteFunction:
    """Return a body as if it had been traced with given gradient functions."""
    return _copied_under(body, overrides) or body


@derived
def _copied_under(body: ConcreteFunction, overrides: Overrides) -> ConcreteFunction | None:
    """Return the body with given gradient functions, None if its nodes already have them."""
    source = body.graph
    used = {source.contexts[source.context_of(node)].overrides
            for node in range(source.n_nodes) if source.inputs_of(node)}
    if all(own == overrides_within(overrides, own) for own in used):
        return None
    graph, symbols = copied(body, overrides)
    return ConcreteFunction(
        body.name, graph, [symbols[symbol] for symbol in body.input_symbols],
        [graph.tensor_at(symbols[symbol]) for symbol in body.output_symbols])
