from typing import NamedTuple

from cytape.graph.tracing.concrete_function import ConcreteFunction

class CacheInfo(NamedTuple):
    traces: int
    plans: int
    nbytes: int
    max_traces: int | None
    max_bytes: int | None

class Traces:
    by_key: dict[tuple, ConcreteFunction]
    max_traces: int | None
    max_bytes: int | None
    def __init__(self, max_traces: int | None, max_bytes: int | None) -> None: ...
    def __len__(self) -> int: ...
    def clear(self) -> None: ...
    def info(self) -> CacheInfo: ...
