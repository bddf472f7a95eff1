"""How keys are compared, and arguments rebuilt."""

import numpy as np
import pytest

from cytape.graph.tracing.keys import describe_arguments
from cytape.graph.tracing.signature import (
    difference,
    generalised,
    shapes_agree,
    spec_of_part,
    structures_of_specs,
)


def key_of(*arguments):
    return describe_arguments(arguments, {})[:2]


X = np.zeros((2, 3))


def test_keys_that_differ_in_extents_only_have_a_general_one():
    a, b = key_of(np.zeros((2, 3)), 1)[0], key_of(np.zeros((5, 3)), 1)[0]
    general = generalised(a, b)
    assert spec_of_part(general[0]).shape == (None, 3) and general[1] == a[1]
    assert generalised(general, key_of(np.zeros((7, 3)), 1)[0]) == general
    for other in (np.zeros(3), 1), (np.zeros((2, 3), "f4"), 1), (np.zeros((2, 3)), 2), (X,):
        assert generalised(a, key_of(*other)[0]) is None
    ((spec, number), words) = structures_of_specs(((X, 1), {"w": "word"}), general)
    assert spec.shape == (None, 3) and number == 1 and words == {"w": "word"}


@pytest.mark.parametrize("shape, wanted, agree", [
    ((2, 3), (2, 3), True), ((2, 3), (None, 3), True), ((2, 3), None, True),
    ((2, 3), (3, 3), False), ((2,), (None, None), False), (None, (2,), False), (None, None, True),
])
def test_shapes(shape, wanted, agree):
    assert shapes_agree(shape, wanted) is agree


def test_the_difference_is_said():
    keys = [key_of(np.zeros(3), 1)[0], key_of(np.zeros(3), "a")[0]]
    assert difference(key_of(np.zeros(4), 1)[0], keys) == (
        "a float64 tensor of shape (4,) where it was a float64 tensor of shape (3,) before")
    assert difference(key_of(np.zeros(3), 2)[0], keys) == "2 where it was 1 before"
    assert "structure" in difference(key_of([X, X])[0], keys)
