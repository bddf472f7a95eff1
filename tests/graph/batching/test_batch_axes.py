"""Where members of a batch lie, in arguments and results."""

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError
from cytape.graph.batching.batch_axes import (
    axes_of,
    checked_axes,
    extent_of,
    members_first,
    members_moved,
)
from tests.cases import each


@each("axes, expected", [
    (0, [0, 0, 0]), (None, [None] * 3), (({"a": 1, "b": None}, 2), [1, None, 2]),
    (({"a": 1, "b": (0,)}, 2), None), ((0,), None),
])  # fmt: skip
def test_an_axis_for_each_leaf(axes, expected):
    structure = ({"a": "x", "b": "y"}, "z")
    if expected is None:
        with pytest.raises(ValueError, match="must have the structure of the things, or be"):
            axes_of(structure, axes, "axes", "things")
    else:
        assert axes_of(structure, axes, "axes", "things") == expected


@each("axes", [1.0, "0", [0, "1"], False])
def test_axes_that_are_none(axes):
    with pytest.raises(TypeError, match="^word must be an integer"):
        checked_axes(axes, "word")


@each("axis", [0, 1, -1, -2])
def test_members_come_first_and_go_back(axis):
    x = np.arange(6.0).reshape(2, 3)
    first = members_first(x, axis, "x")
    np.testing.assert_array_equal(first.numpy(), np.moveaxis(x, axis, 0))
    np.testing.assert_array_equal(members_moved(first, axis).numpy(), x)


def test_a_tensor_of_any_number_of_axes_is_refused():
    graph = cytape.Graph()
    with graph.as_default(), pytest.raises(SymbolicTensorError, match="known number of axes"):
        members_first(cytape.placeholder("float64", None), 0, "x")


def test_how_many_members_there_are():
    with cytape.Graph().as_default():
        unknown = cytape.placeholder("float64", (None, 2))
    known = cytape.constant(np.ones(3))
    assert extent_of([unknown], ["x"]) is None
    assert extent_of([unknown, known], ["x", "y"]) == 3
    with pytest.raises(ValueError, match="got 3 for y and 2 for z"):
        extent_of([unknown, known, cytape.constant(np.ones(2))], ["x", "y", "z"])
