from collections.abc import Callable, Iterable
from typing import Any, Self

Lowering: Any

class Op:
    @property
    def name(self) -> str: ...
    @property
    def forward(self) -> Callable[..., Any]: ...
    stateful: bool
    rule_takes_tensors: bool
    makes_views: bool
    moving: int
    batch: Callable[..., Any] | None
    lowering: int
    shows: int
    ufunc: Callable[..., Any] | None
    neutral: tuple[float | None, ...] | None
    is_own_inverse: bool
    same_if_same_spec: bool
    stays_view: bool
    is_product: bool
    is_passed_over: bool
    work: Callable[..., int] | None
    passes_gradients: bool
    counts: tuple[str, tuple[str, ...]] | None
    runs: Callable[..., Any] | None
    repeated: Callable[..., Any] | None
    given: Callable[..., Any] | None
    composition: Callable[..., Any] | None
    @property
    def linear(self) -> bool: ...
    def described(self, **facts: Any) -> Self: ...
    def __getattr__(self, name: str) -> Any: ...

UFUNC_METHODS: tuple[str, ...]
UFUNC_ATTRIBUTES: tuple[str, ...]

def partly_followed(operands: Iterable[Any]) -> bool: ...
def install_conform(**functions: Callable[..., Any]) -> None: ...
