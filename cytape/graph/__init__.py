"""Graphs: building, functions, control flow, sessions, `gradients` and editing."""

import importlib
from typing import TYPE_CHECKING, Any

from cytape.graph import checkpoint
from cytape.graph.batching.vmap import vmap
from cytape.graph.checkpoint.saved_values import saved_values
from cytape.graph.control.cases import case, switch_case
from cytape.graph.control.control_flow import cond, while_loop
from cytape.graph.control.scans import foldl, foldr, map_fn, scan
from cytape.graph.control.tensor_array import TensorArray
from cytape.graph.differentiation.aggregation import AggregationMethod
from cytape.graph.differentiation.graph_gradients import gradients
from cytape.graph.differentiation.second_order import hessian_vector_product, hessians
from cytape.graph.model.default_graph import (
    colocate_with,
    control_dependencies,
    device,
    get_default_graph,
    get_variable,
    group,
    name_scope,
    no_op,
    placeholder,
)
from cytape.graph.model.graph import Graph
from cytape.graph.model.operation import Operation
from cytape.graph.sessions.run_trace import RunTrace
from cytape.graph.sessions.session import Session
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.functions import function
from cytape.graph.tracing.trace_cache import CacheInfo

if TYPE_CHECKING:
    from cytape.graph import editor

__all__ = [
    "AggregationMethod",
    "CacheInfo",
    "ConcreteFunction",
    "Graph",
    "Operation",
    "RunTrace",
    "Session",
    "TensorArray",
    "case",
    "checkpoint",
    "colocate_with",
    "cond",
    "control_dependencies",
    "device",
    "editor",
    "foldl",
    "foldr",
    "function",
    "get_default_graph",
    "get_variable",
    "gradients",
    "group",
    "hessian_vector_product",
    "hessians",
    "map_fn",
    "name_scope",
    "no_op",
    "placeholder",
    "saved_values",
    "scan",
    "switch_case",
    "vmap",
    "while_loop",
]


def __getattr__(name: str) -> Any:
    """Import rarely used names at first use."""
    if name != "editor":
        raise AttributeError(f"module 'cytape.graph' has no attribute {name!r}")
    return importlib.import_module("cytape.graph.editor")


def __dir__() -> list[str]:
    return __all__
