from collections.abc import Callable
from typing import Any

import numpy as np

partials_of: dict[np.ufunc, tuple[Callable[..., Any] | None, ...]]

class NotAProgram(Exception): ...

class Symbol: ...

def has_loop(ufunc: np.ufunc, type_num: int) -> int | None: ...
def declare_partials(
    ufunc: np.ufunc,
    partials: tuple[Callable[..., Any] | None, ...],
    instead_of: tuple[Callable[..., Any] | None, ...] | None = None,
) -> None: ...
