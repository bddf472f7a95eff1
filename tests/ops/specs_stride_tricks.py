"""Records of the windows that slide over arrays."""

from numpy.lib.stride_tricks import sliding_window_view

from cytape.ops.submodules import stride_tricks
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case

SPECS = [
    OpSpec("SlidingWindows", stride_tricks.sliding_window_view, sliding_window_view, [
        case((4, 3), window_shape=(3, 2)), case((5,), window_shape=2),
        case((2, 4), window_shape=3, axis=1), case((5, 2), window_shape=(2, 2), axis=(0, 0)),
        case((2, 3, 2), window_shape=(2, 2), axis=(-1, 0)), case((3,), window_shape=3),
    ], dtypes=FLOATS_AND_COMPLEX),
]
