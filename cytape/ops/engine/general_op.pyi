from collections.abc import Callable, Sequence
from typing import Any

from cytape.ops.calls.dispatch import Op

class GeneralOp(Op):
    @property
    def vjp(self) -> Callable[..., Any] | None: ...
    @property
    def jvp(self) -> Callable[..., Any] | None: ...
    @property
    def shape_rule(self) -> Callable[..., Any] | None: ...
    @property
    def saved_inputs(self) -> tuple[int, ...] | None: ...
    @property
    def saved_outputs(self) -> Sequence[int]: ...
    @property
    def optional_tangents(self) -> Sequence[int]: ...
    @property
    def batched(self) -> Callable[..., Any] | None: ...
    @property
    def differentiable(self) -> bool: ...
    is_users: bool
    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        vjp: Callable[..., Any] | None = None,
        jvp: Callable[..., Any] | None = None,
        saved_inputs: Sequence[int] | None = None,
        saved_outputs: Sequence[int] = (),
        optional_gradients: Sequence[int] = (),
        optional_tangents: Sequence[int] = (),
        batched: Callable[..., Any] | None = None,
        linear: bool = False,
        differentiable: bool = True,
        shape_rule: Callable[..., Any] | None = None,
    ) -> None: ...
    def __call__(self, *inputs: Any, **attrs: Any) -> Any: ...
    def define(
        self,
        vjp: Callable[..., Any] | None = None,
        jvp: Callable[..., Any] | None = None,
    ) -> None: ...
