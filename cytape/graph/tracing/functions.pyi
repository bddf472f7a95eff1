from collections.abc import Callable, Sequence
from typing import Any, overload

from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.trace_cache import CacheInfo, Traces
from cytape.ops.python.checkpoint_policy import Policy

@overload
def function(
    f: Callable,
    *,
    input_signature: Sequence[Any] | None = None,
    reduce_retracing: bool = False,
    grad_func: Callable | None = None,
    python_grad_func: Callable | None = None,
    name: str | None = None,
    max_traces: int | None = 128,
    max_bytes: int | None = 1 << 30,
    checkpoints: str | list[str] | None = None,
    memory_budget: float | None = None,
) -> Function: ...
@overload
def function(
    f: None = None,
    *,
    input_signature: Sequence[Any] | None = None,
    reduce_retracing: bool = False,
    grad_func: Callable | None = None,
    python_grad_func: Callable | None = None,
    name: str | None = None,
    max_traces: int | None = 128,
    max_bytes: int | None = 1 << 30,
    checkpoints: str | list[str] | None = None,
    memory_budget: float | None = None,
) -> Callable[[Callable], Function]: ...

class Function:
    name: str
    _traces: Traces
    __wrapped__: Callable
    __qualname__: str
    def __init__(
        self,
        f: Callable,
        input_signature: Sequence[Any] | None = None,
        reduce_retracing: bool = False,
        grad_func: Callable | None = None,
        python_grad_func: Callable | None = None,
        name: str | None = None,
        max_traces: int | None = 128,
        max_bytes: int | None = 1 << 30,
        checkpoints: str | list[str] | Policy | None = None,
        memory_budget: float | None = None,
    ) -> None: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction: ...
    def experimental_get_tracing_count(self) -> int: ...
    def cache_info(self) -> CacheInfo: ...
    def cache_clear(self) -> None: ...
