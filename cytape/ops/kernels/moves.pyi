from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cytape.tensor.spec import Spec

def outline(spec: Spec, strides: Sequence[int] | None = None) -> np.ndarray[Any, Any]: ...

class Moves:
    @property
    def sources(self) -> tuple[Spec, ...]: ...
    @property
    def targets(self) -> tuple[Spec, ...]: ...
    @property
    def sums(self) -> bool: ...
    @property
    def are_views(self) -> bool: ...
    def __init__(
        self,
        targets: Sequence[np.ndarray[Any, Any]],
        sources: Sequence[np.ndarray[Any, Any]],
        pieces: Iterable[tuple[Any, Any]],
        in_tuple: bool = False,
    ) -> None: ...
