from collections.abc import Callable, Sequence
from typing import Any, final

from cytape.ops.engine.dispatch import Op
from cytape.tensor.spec import Spec
from cytape.tensor.tensor import Tensor

@final
class OpCall:
    @property
    def op(self) -> Op: ...
    @property
    def type(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def graph(self) -> Any: ...
    @property
    def inputs(self) -> tuple[Any, ...]: ...
    @property
    def outputs(self) -> tuple[Any, ...]: ...
    @property
    def input_specs(self) -> tuple[Spec, ...]: ...
    @property
    def output_specs(self) -> tuple[Spec, ...]: ...
    @property
    def attrs(self) -> dict[str, Any]: ...
    @property
    def needs(self) -> tuple[bool, ...]: ...
    def get_attr(self, name: str) -> Any: ...

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
    def saved_outputs(self) -> tuple[int, ...]: ...
    @property
    def optional_tangents(self) -> Sequence[int]: ...
    @property
    def batched(self) -> Callable[..., Any] | None: ...
    @property
    def linear(self) -> bool: ...
    @property
    def differentiable(self) -> bool: ...
    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        vjp: Callable[..., Any] | None = None,
        jvp: Callable[..., Any] | None = None,
        saved_inputs: tuple[int, ...] | None = None,
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
        batched: Callable[..., Any] | None = None,
    ) -> None: ...

@final
class CustomOp(Op):
    def __init__(self, name: str, optional_gradients: Sequence[int] = ()) -> None: ...

def install_custom_call(function: Callable[..., list[Tensor]]) -> None: ...

class GradientIfNeeded:
    compute: Callable[[], Any]
    def __init__(self, compute: Callable[[], Any]) -> None: ...

def custom_call(
    name: str,
    results: Sequence[Any],
    inputs: Sequence[Tensor],
    backward: Callable[..., Any],
    jvp: Callable[..., Any] | None = None,
) -> list[Tensor]: ...
def record_custom(
    name: str,
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    backward: Callable[..., Any],
    jvp: Callable[..., Any] | None = None,
    optional: bool = False,
) -> None: ...
