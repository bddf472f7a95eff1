"""Calls of ops for all members: what is repeated, and what tensors of tangents' rules see."""

import numpy as np

import cytape
from cytape.graph.batching.calls import Call, is_alone, members, repeated, view_of
from cytape.ops.engine.declare import OPS
from tests.cases import each

X, Y = cytape.constant(np.ones((4, 3))), cytape.constant(np.arange(3.0))


def call(mapped, extent=4, **attrs):
    inputs = [X if own else Y for own in mapped]
    return Call(OPS["Add"], attrs, inputs, list(mapped), [Y.spec] * len(mapped), [Y.spec], extent)


def test_what_members_share_is_repeated():
    x, y = repeated(call([True, False]))
    assert x is X
    np.testing.assert_array_equal(y.numpy(), np.tile(Y.numpy(), (4, 1)))
    assert repeated(call([True, False], extent=None)) is None
    assert repeated(call([True], extent=None)) == [X]


@each("attrs, expected", [({"axis": 1}, True), ({"where": None, "axis": 0}, True),
                          ({"where": 1.0}, False)])
def test_attributes_that_a_rule_does_not_know(attrs, expected):
    assert is_alone(call([True], **attrs), "axis") is expected
    assert not is_alone(call([True, True], **attrs), "axis", "where")


def test_positions_of_members_stand_beside_an_index():
    assert members(5, 2).shape == (5, 1, 1)
    np.testing.assert_array_equal(members(3, 0).numpy(), [0, 1, 2])


def test_rules_of_tangents_see_one_member():
    view = view_of(call([True, False], axis=1))
    assert view.input_specs[0].shape == view.output_specs[0].shape == (3,)
    assert view.inputs == (X, Y)
    assert view.attrs == {"axis": 1}
