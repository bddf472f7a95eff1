from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Self

from cytape.tensor.pictures.picture import Picture
from cytape.tensor.recording.recorders import Recorder
from cytape.tensor.tensor import Tensor
from cytape.tensor.unconnected_gradients import UnconnectedGradients as UnconnectedGradients
from cytape.tensor.variable import Variable

class GradientTape:
    @property
    def _recorder(self) -> Recorder | None: ...
    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: Any) -> None: ...
    def watch(self, tensor: Any) -> None: ...
    def watched_variables(self) -> tuple[Variable, ...]: ...
    def stop_recording(self) -> AbstractContextManager[None]: ...
    def reset(self) -> None: ...
    def recorded_ops(self) -> list[tuple[str, list[int | None], list[int | None]]]: ...
    def draw(self, names: Mapping[str, Tensor] | None = None, most: int = 1000) -> Picture: ...
    def _repr_svg_(self) -> str | None: ...
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: str | UnconnectedGradients = UnconnectedGradients.NONE,
        *,
        progress: Callable[[int, int | None], Any] | bool | None = None,
    ) -> Any: ...
    def jacobian(
        self,
        target: Tensor,
        sources: Any,
        unconnected_gradients: str | UnconnectedGradients = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any: ...
    def batch_jacobian(
        self,
        target: Tensor,
        source: Tensor | Variable,
        unconnected_gradients: str | UnconnectedGradients = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Tensor | None: ...

def noting_detached(tape: GradientTape) -> dict[int, tuple[Tensor, str]]: ...
