"""Updates in memory: values that others hold do not change, and memory is reused otherwise."""

import numpy as np
import pytest

import cytape
from cytape.optimizers import SGD, Adam
from tests.cases import each


def address(x):
    return x.__array_interface__["data"][0]


def memory_of(variable):
    return address(variable.numpy())


@each("n", [3, 100, 5000])  # inline, an object of bytes, a buffer
def test_a_variable_that_nothing_else_refers_to_is_written_in_place(n):
    v, opt = cytape.Variable(np.ones(n)), SGD(0.5)
    before = memory_of(v)
    opt.update(v, np.ones(n))
    assert memory_of(v) == before
    assert v.numpy().tolist() == [0.5] * n


@each("n", [3, 5000])
def test_an_updated_value_has_a_new_id(n):
    v = cytape.Variable(np.ones(n))
    before = v.value().id
    SGD(0.5).update(v, np.ones(n))
    assert v.value().id > before


HOLDERS = {
    "value": lambda v: v.value(),
    "array": lambda v: v.numpy(),
    "view": lambda v: v[1:],
    "view of an array": lambda v: v.numpy()[::2],
    "reshaped": lambda v: np.reshape(v, (-1, 1)),
    "converted": cytape.convert_to_tensor,
}


@each(holder=HOLDERS.values(), n=[6, 1000, 6000], slices=[False, True])
def test_held_values_stay(holder, n, slices):
    v = cytape.Variable(np.arange(n, dtype=float))
    held = holder(v)
    before = np.array(held)
    gradient = np.ones(n)
    if slices:
        gradient = cytape.IndexedSlices(cytape.constant([1.0, 1.0]), cytape.constant([0, 4]), (n,))
    Adam(0.5).update(v, gradient)
    np.testing.assert_array_equal(np.array(held), before)
    assert v.numpy()[4] == pytest.approx(3.5)
    assert v.numpy()[5] == (5 if slices else pytest.approx(4.5))


def test_saved_values_of_a_persistent_tape_stay():
    v = cytape.Variable(np.full(1000, 3.0))
    with cytape.GradientTape(persistent=True) as tape:
        y = np.sum(v * v)
    SGD(1.0).update(v, tape.gradient(y, v))
    assert v.numpy()[0] == -3.0
    assert tape.gradient(y, v).numpy()[0] == 6.0


def test_a_tape_takes_an_updated_value_as_a_new_one():
    v, opt = cytape.Variable(np.full(1000, 3.0)), SGD(1.0)
    with cytape.GradientTape() as tape:
        y = np.sum(v * 2.0)
        opt.update(v, np.ones(1000))
        z = y + np.sum(v * v)
    found = tape.gradient(z, v)
    assert found.numpy()[0] == 2.0 + 2 * 2.0


def test_an_accumulator_keeps_no_tangent_of_an_updated_value():
    v = cytape.Variable(np.full(3, 3.0))
    with cytape.ForwardAccumulator(v, np.ones(3)) as accumulator:
        y = v * v
        SGD(1.0).update(v, np.ones(3))
        z = v * v
    assert accumulator.jvp(y).numpy()[0] == 6.0
    assigned = cytape.Variable(np.full(3, 3.0))
    with cytape.ForwardAccumulator(assigned, np.ones(3)) as other:
        assigned.assign_sub(np.ones(3))
        z_of_assigned = assigned * assigned
    np.testing.assert_array_equal(accumulator.jvp(z), other.jvp(z_of_assigned))


def test_a_gradient_that_is_the_parameter_itself():
    v, array = cytape.Variable(np.arange(100.0)), np.arange(100.0)
    for p in (v, array):
        SGD(0.5).update(p, p)
        np.testing.assert_array_equal(np.asarray(p), 0.5 * np.arange(100.0))


def test_gradients_that_are_parts_of_parameters():
    a, b = np.array([2.0, 2.0]), np.array([3.0, 3.0])
    SGD(1.0).update([a, b], [b, a])
    assert a.tolist() == [-1, -1]
    assert b.tolist() == [1, 1]
    w = np.arange(1.0, 5.0)
    SGD(1.0).update(w[1:], w[:-1])
    assert w.tolist() == [1, 1, 1, 1]
    table = np.ones((3, 2))
    SGD(1.0).update(table, cytape.IndexedSlices(table[:2], np.array([1, 2]), (3, 2)))
    assert table[:, 0].tolist() == [1, 0, 0]
    memory = bytearray(64)
    left, right = (np.frombuffer(memory, count=4, offset=offset) for offset in (0, 8))
    left[:] = [1, 2, 3, 4]
    SGD(1.0).update(right, left)
    assert right.tolist() == [1, 1, 1, -4]


@each("array", [
    np.arange(12.0).reshape(3, 4).T, np.arange(24.0).reshape(4, 6)[:, ::2],
    np.arange(12.0)[::-1].reshape(4, 3), np.empty((4, 0)), np.array(2.0)])
def test_layouts(array):
    start = np.array(array)
    Adam(0.5).update(array, np.ones(start.shape, np.float32, order="F"))
    np.testing.assert_allclose(array, start - 0.5, atol=1e-6)
    v = cytape.Variable(start)
    v.assign(np.asarray(start, order="F"))
    Adam(0.5).update(v, np.ones(start.shape))
    np.testing.assert_allclose(v.numpy(), start - 0.5, atol=1e-6)


SLICES = [
    ("values", (2, 3), [0, 1], ValueError, "has the shape"),
    ("above", (2, 2), [0, 5], IndexError, "at index 5"),
    ("below", (2, 2), [0, -6], IndexError, "at index -6"),
    ("number", (2, 2), [0], ValueError, "its gradient 1 slices"),
]


@each("name, shape, indices, error, message", SLICES)
def test_ill_formed_slices_are_refused(name, shape, indices, error, message):
    table = np.zeros((5, 2))
    slices = cytape.IndexedSlices(np.ones(shape), np.array(indices), (5, 2))
    with pytest.raises(error, match=message):
        SGD(1.0).update({"w": table, "v": np.ones(1)}, {"w": slices, "v": np.ones(1)})
    assert not table.any()


def test_empty_and_nested_slices():
    table = np.zeros((5, 2))
    SGD(1.0).update(table, cytape.IndexedSlices(
        np.zeros((0, 2)), np.zeros(0, int), (5, 2)))
    assert not table.any()
    inner = cytape.IndexedSlices(np.ones((1, 2)), np.array([1]), (2, 2))
    SGD(1.0).update(table, cytape.IndexedSlices(inner, np.array([3, 4]), (5, 2)))
    assert table.sum(1).tolist() == [0, 0, 0, 0, -2]


def test_variables_that_a_thread_holds_otherwise():
    from cytape.tensor.variable import holding

    v = cytape.Variable(np.ones(100))
    before = cytape.constant(np.full(100, 5.0))
    with holding([(v, before)]):
        SGD(1.0).update(v, np.ones(100))
        assert v.numpy()[0] == 4.0
    assert v.numpy()[0] == 1.0
    assert before.numpy()[0] == 5.0


def test_a_trial_call_changes_no_variable():
    v = cytape.Variable(np.ones(2))

    @cytape.custom_gradient
    def function(x):
        SGD(1.0).update(v, np.asarray(x))
        return np.asarray(x), lambda dy: dy

    with pytest.raises(cytape.errors.SymbolicTensorError, match="that is made up"):
        cytape.function(lambda x: function(x))(cytape.constant(np.ones(2)))
    assert v.numpy().tolist() == [1, 1]
