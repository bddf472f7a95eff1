"""Graphs: programs that are recorded, transformed and replayed."""

import cytape.graph.own_gradients  # noqa: F401  (it installs what it does)
import cytape.graph.saved_draws  # noqa: F401  (likewise)
from cytape.graph.aggregation import AggregationMethod
from cytape.graph.concrete_function import ConcreteFunction
from cytape.graph.control_flow import cond, while_loop
from cytape.graph.default_graph import (
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
from cytape.graph.functions import function
from cytape.graph.graph import Graph
from cytape.graph.graph_gradients import gradients
from cytape.graph.operation import Operation
from cytape.graph.second_order import hessian_vector_product, hessians
from cytape.graph.session import Session
from cytape.graph.trace_events import RunTrace
from cytape.graph.traces import CacheInfo

__all__ = [
    "AggregationMethod",
    "CacheInfo",
    "ConcreteFunction",
    "Graph",
    "Operation",
    "RunTrace",
    "Session",
    "colocate_with",
    "cond",
    "control_dependencies",
    "device",
    "function",
    "get_default_graph",
    "get_variable",
    "gradients",
    "group",
    "hessian_vector_product",
    "hessians",
    "name_scope",
    "no_op",
    "placeholder",
    "while_loop",
]
