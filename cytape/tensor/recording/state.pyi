from collections.abc import Sequence
from typing import Any

from cytape.tensor.recording.entered_blocks import (
    building_into,
    building_under,
    departures,
    push_forwardprop_state,
    stop_recording,
    suspended,
    unrecorded,
)
from cytape.tensor.recording.recorders import Origins, Reads, Recorder, TangentRecorder
from cytape.tensor.recording.thread_stack import current_graph
from cytape.tensor.tensor import Tensor

__all__ = [
    "FIRST_ORDER",
    "HIGHER_ORDER",
    "MOST_DETACHED",
    "NO_GRADIENTS",
    "Origins",
    "Reads",
    "Recorder",
    "TangentRecorder",
    "anybody_records",
    "building_into",
    "building_under",
    "current_graph",
    "departures",
    "how_left",
    "is_recorded",
    "is_transposed",
    "possible_gradient_types",
    "possible_modes",
    "push_forwardprop_state",
    "stop_recording",
    "suspended",
    "unrecorded",
]

NO_GRADIENTS: int
FIRST_ORDER: int
HIGHER_ORDER: int
MOST_DETACHED: int

def possible_gradient_types(tensors: Sequence[Any]) -> int: ...
def possible_modes() -> tuple[bool, bool]: ...
def anybody_records() -> bool: ...
def is_transposed(id: int) -> bool: ...
def is_recorded(id: int) -> bool: ...
def how_left(detached: dict[int, tuple[Tensor, str]]) -> str: ...
