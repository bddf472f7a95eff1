"""Functions of higher packages that lower ones call: the only calls against the import order."""

import importlib
from functools import cache
from typing import Any

__all__ = ["UPPER", "upper"]

# Each has one calling module.
UPPER = {
    "aggregate_indexed_slices": "cytape.ops.sparse_sums",
    "identity_op": "cytape.ops.adjoints.conform",
    "custom_call_in_graph": "cytape.graph.tracing.traced_rules",
    "overriding_call": "cytape.graph.differentiation.overrides",
    "with_row_in_graph": "cytape.graph.control.element_stores",
    "ConcreteFunction": "cytape.graph.tracing.concrete_function",
    "FunctionGraph": "cytape.graph.tracing.function_graph",
    "kept_values": "cytape.graph.checkpoint",
    "checkpointed_gradients": "cytape.graph.checkpoint",
}


@cache
def upper(name: str) -> Any:
    """Return a function or class of a higher package, which the first call imports.

    Examples
    --------
    >>> upper("ConcreteFunction")
    <class 'cytape.graph.tracing.concrete_function.ConcreteFunction'>
    """
    return getattr(importlib.import_module(UPPER[name]), name)
