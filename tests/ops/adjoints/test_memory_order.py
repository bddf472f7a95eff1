"""The order in memory that a tensor's array would have in NumPy."""

import numpy as np

import cytape
from cytape.ops.adjoints.memory_order import (
    axes_in_memory,
    is_contiguous,
    order_in_memory,
    with_memory,
)
from tests.cases import each

X = np.arange(24.0).reshape(4, 6)
MAKERS = {
    "whole": lambda x: x, "transposed": lambda x: x.T, "columns": lambda x: x[:, 1:],
    "reversed": lambda x: x[::-1], "one row": lambda x: x[:1], "vector": lambda x: x[0],
    "swapped": lambda x: x.reshape(2, 2, 6).transpose(1, 2, 0),
    "copied in order F": lambda x: np.copy(x, order="F"), "copied": lambda x: np.copy(x[::2].T),
    "reshaped copy": lambda x: x.T.reshape(3, 8)}


@each("make", MAKERS.values(), ids=MAKERS)
def test_layouts_are_those_of_arrays(make):
    array, tensor = make(X), make(cytape.constant(X))
    assert with_memory(tensor).strides == array.strides
    assert is_contiguous(tensor, "C") == array.flags.c_contiguous
    assert is_contiguous(tensor, "F") == array.flags.f_contiguous
    assert order_in_memory(tensor, "A") == ("F" if array.flags.fnc else "C")
    for order in "CFAK":
        axes = axes_in_memory(tensor, order)
        shown = tensor.numpy() if axes is None else tensor.numpy().transpose(axes)
        np.testing.assert_array_equal(shown.ravel(), array.ravel(order))


def test_extents_that_only_a_run_tells():
    @cytape.function(input_signature=[cytape.Spec.of((None, None), float)])
    def f(x):
        assert is_contiguous(x, "C")
        assert not is_contiguous(x, "F")
        assert not is_contiguous(x.T, "C")
        assert axes_in_memory(x.T, "K") == (1, 0)
        assert axes_in_memory(x[::-2].reshape(2, -1), "K") is None  # a view of two rows alone
        return x

    f(X)
