from collections.abc import Callable
from typing import Any

class Program:
    @property
    def reads(self) -> int: ...
    @property
    def is_one(self) -> bool: ...

def trace(
    partial: Callable[..., Any], n_inputs: int, of_ones: bool = False
) -> Program | None: ...
def trace_together(
    partials: tuple[Callable[..., Any] | None, ...], wanted: int, of_ones: bool = False
) -> Program | None: ...
def trace_tangent(
    partials: tuple[Callable[..., Any] | None, ...], present: int
) -> Program | None: ...
def trace_gradient_tangent(
    partial: Callable[..., Any], n_inputs: int, present: int
) -> Program | None: ...
