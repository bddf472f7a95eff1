"""`recompute_grad` in graphs: calls that keep the values selected by a policy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.frozen_draws import call_traced
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.functions import Function
from cytape.ops.calls.symbolic import in_graph
from cytape.ops.python.checkpoint_policy import Policy
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import building_into, current_graph, unrecorded
from cytape.tensor.structures import leaves_of_result
from cytape.tensor.tensor import Tensor
from cytape.tensor.variable import Variable


def recomputed_in_graph(
    graph: Any, f: Callable, args: tuple, kwargs: dict, policy: Policy
) -> Any:
    """Call a function in a graph; derivatives recompute values that the policy does not keep."""
    with building_into(graph):
        body = FunctionGraph(getattr(f, "__name__", type(f).__name__), graph)
        body.runs_once = getattr(graph, "runs_once", False)
        with building_into(body):
            args, kwargs = nest.map_structure(functools.partial(_captured, body), (args, kwargs))
        with unrecorded(), building_into(body):
            result = call_traced(body, f, args, kwargs)
            leaves = leaves_of_result(result)
            outputs = [in_graph(body, convert_to_tensor(x)) for x in leaves if _is_tensor(x)]
        trace = ConcreteFunction(body.name, body, [], outputs, checkpoints=policy)
        inputs = trace.captured_inputs
        trace.release_captures()
        remaining = iter(trace.call_with(inputs))
    return nest.pack_sequence_as(
        result, [next(remaining) if _is_tensor(x) else x for x in leaves])


def _captured(body: FunctionGraph, leaf: Any) -> Any:
    """Return a tensor or copy for an argument, which the function may write to."""
    if isinstance(leaf, np.ndarray):
        return leaf.copy(order="K")
    return in_graph(body, leaf) if _is_tensor(leaf) and not isinstance(leaf, Variable) else leaf


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)


def called_by_a_trace(f: Callable, args: tuple, kwargs: dict, policy: Policy) -> Any:
    """Call a function by a trace for this call, and keep the values selected by the policy."""
    @functools.wraps(f)
    def traced(*args: Any, **kwargs: Any) -> Any:
        current_graph().runs_once = True
        return f(*args, **kwargs)

    return Function(traced, checkpoints=policy)(*args, **kwargs)
