from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cytape.core.op_store import OpStore
from cytape.core.vspace import OpType, VSpace

class Tape(OpStore):
    @property
    def persistent(self) -> bool: ...
    def __init__(self, persistent: bool = False) -> None: ...
    @property
    def num_ops(self) -> int: ...
    @property
    def num_known(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def watch(self, id: int) -> None: ...
    def should_record(self, ids: Sequence[int], dtypes: Sequence[Any]) -> bool: ...
    def record(
        self,
        op_type: OpType | str,
        outputs: Sequence[Any],
        input_ids: Sequence[int],
        input_dtypes: Sequence[Any],
        backward_getter: Callable[[], Any],
        deleter: Callable[[Any], object] | None = None,
    ) -> bool: ...
    def delete_trace(self, id: int) -> None: ...
    def is_known(self, id: int) -> bool: ...
    def usages(self) -> dict[int, int]: ...
    def compute_gradient(
        self,
        vspace: VSpace,
        targets: Sequence[int],
        sources: Sequence[int],
        sources_that_are_targets: Mapping[int, Any] | None = None,
        output_gradients: Sequence[Any] | None = None,
        build_default_zeros_grads: bool = True,
        keep: bool = False,
    ) -> list[Any]: ...
