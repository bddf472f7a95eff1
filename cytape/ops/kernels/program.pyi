from collections.abc import Callable
from typing import Any

import numpy as np

class Program:
    @property
    def reads(self) -> int: ...
    @property
    def is_one(self) -> bool: ...

def has_loop(ufunc: np.ufunc, type_num: int) -> int | None: ...
def declare_partials(
    ufunc: np.ufunc,
    partials: tuple[Callable[..., Any] | None, ...],
    instead_of: tuple[Callable[..., Any] | None, ...] | None = None,
) -> None: ...
def trace(partial: Callable[..., Any], n_inputs: int) -> Program | None: ...
def trace_tangent(
    partials: tuple[Callable[..., Any] | None, ...], present: int
) -> Program | None: ...
def trace_gradient_tangent(
    partial: Callable[..., Any], n_inputs: int, present: int
) -> Program | None: ...
