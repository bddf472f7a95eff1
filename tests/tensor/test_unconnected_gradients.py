"""Gradients of sources that a target does not depend on."""

import pytest

from cytape import UnconnectedGradients
from cytape.tensor.unconnected_gradients import parse_unconnected
from tests.cases import each


def test_members_and_their_values_are_accepted():
    for member in UnconnectedGradients:
        assert parse_unconnected(member) is member
        assert parse_unconnected(member.value) is member


@each("wrong", ["ones", None, 0])
def test_anything_else_is_quoted(wrong):
    with pytest.raises(ValueError) as info:
        parse_unconnected(wrong)
    assert repr(wrong) in str(info.value)
