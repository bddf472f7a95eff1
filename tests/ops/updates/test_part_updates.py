"""The functions that x.at and assignments are made of."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.ops.updates.part_updates import accumulate_into, add_into, set_item_op, set_part
from tests.cases import each


def test_values_that_meet_are_told_before_anything_is_written():
    x = cytape.constant(np.zeros(3))
    assert set_part(x, [0, 0, 2], [1.0, 2.0, 3.0]).numpy().tolist() == [2.0, 0.0, 3.0]
    assert add_into(x, [0, 0, 2], [1.0, 2.0, 3.0]).numpy().tolist() == [3.0, 0.0, 3.0]
    product = accumulate_into(x + 1.0, [0, 0, 2], [2.0, 3.0, 4.0], np.multiply, None, None)
    assert product.numpy().tolist() == [6.0, 1.0, 4.0]


def test_ties_are_halved_one_after_the_other():
    x = cytape.constant(1.0)
    gradient = cytape.grad(
        lambda v: accumulate_into(x.reshape(1), [0, 0], v, np.maximum, None, None)[0])
    assert gradient(np.ones(2)).tolist() == [0.25, 0.5]


def test_an_op_is_one_node_and_saves_nothing():
    graph = cytape.Graph()
    with graph.as_default():
        x = graph.placeholder("float64", (3, 2))
        y = x.at[1].set(2.0)
        gradient, = cytape.gradients(cnp.sum(y * y), [x])
    assert y.op.type == "SetItem"
    assert "ClearItem" in [op.type for op in graph.get_operations()]
    assert set_item_op.saved_inputs.start == 2  # tensors in the index
    with cytape.Session(graph) as session:
        found = session.run(gradient, {x: np.ones((3, 2))})
    assert found.tolist() == [[2.0, 2.0], [0.0, 0.0], [2.0, 2.0]]


@each("shape", [(None, None), (None, 2), (3, None), (3, 2)])
@each("ufunc", [np.add, np.multiply, np.maximum, np.minimum])
def test_values_at_places_of_an_array_of_unknown_extents(ufunc, shape):
    def f(x, i):
        y = x * 1
        ufunc.at(y, i, 2.0)
        return y

    x, i = np.arange(6.0).reshape(3, 2), np.array([0, 0, 2])
    g = cytape.function(f, input_signature=[
        cytape.Spec.of(shape, float), cytape.Spec.of((None,), np.int64)])
    expected = x.copy()
    ufunc.at(expected, i, 2.0)
    np.testing.assert_array_equal(g(x, i), expected)
