"""The public names of graphs: building, functions, control flow, sessions, editing."""

import importlib
from typing import TYPE_CHECKING, Any

from cytape.graph import checkpoint as checkpoint
from cytape.graph.batching.vmap import *  # noqa: F403
from cytape.graph.checkpoint.saved_values import saved_values as saved_values
from cytape.graph.control.cases import *  # noqa: F403
from cytape.graph.control.control_flow import cond as cond
from cytape.graph.control.control_flow import while_loop as while_loop
from cytape.graph.control.scans import *  # noqa: F403
from cytape.graph.control.tensor_array import *  # noqa: F403
from cytape.graph.differentiation.aggregation import *  # noqa: F403
from cytape.graph.differentiation.graph_gradients import *  # noqa: F403
from cytape.graph.differentiation.second_order import *  # noqa: F403
from cytape.graph.model.default_graph import *  # noqa: F403
from cytape.graph.model.graph import *  # noqa: F403
from cytape.graph.model.operation import *  # noqa: F403
from cytape.graph.sessions.run_trace import RunTrace as RunTrace
from cytape.graph.sessions.session import *  # noqa: F403
from cytape.graph.tracing.concrete_function import ConcreteFunction as ConcreteFunction
from cytape.graph.tracing.functions import function as function
from cytape.graph.tracing.trace_cache import CacheInfo as CacheInfo

if TYPE_CHECKING:
    from cytape.graph import editor as editor

__all__ = sorted(["checkpoint", "editor", *(
    name for name, x in globals().items()
    if getattr(x, "__module__", "").startswith("cytape.graph."))])


def __getattr__(name: str) -> Any:
    """Import rarely used names at first use."""
    if name not in ("editor",):
        raise AttributeError(f"module 'cytape.graph' has no attribute {name!r}")
    return importlib.import_module(f"cytape.graph.{name}")
