"""Forward mode with variables, and tensors that are watched later."""

import numpy as np
import pytest

import cytape
from tests.cases import each


def test_a_variable_keeps_its_tangent_when_it_is_assigned():
    v = cytape.Variable(2.0)
    with cytape.ForwardAccumulator(v, 1.0) as accumulator:
        before = v * v
        v.assign(5.0)
        after = v * v
    assert [float(t) for t in accumulator.jvp([before, after, v])] == [4.0, 10.0, 1.0]


def test_a_variable_that_is_not_trainable_is_followed_when_it_is_a_primal():
    v, w = cytape.Variable(2.0, trainable=False), cytape.Variable(3.0)
    with cytape.ForwardAccumulator(v, 1.0) as accumulator:
        y, z = v * w, w * w
    assert float(accumulator.jvp(y)) == 3.0
    assert accumulator.jvp(z) is None  # no variable is followed on its own


def test_a_value_that_was_read_before_entering():
    v = cytape.Variable(2.0)
    read = v.value()
    v.assign(3.0)
    with cytape.ForwardAccumulator(v, 1.0) as accumulator:
        y, z = v * v, read * read
    assert float(accumulator.jvp(y)) == 6.0
    assert accumulator.jvp(z) is None


def test_a_variable_read_in_the_block_is_followed_by_its_value():
    v = cytape.Variable(2.0)
    with cytape.ForwardAccumulator(v, 1.0) as accumulator:
        read = v.value()
        v.assign(3.0)
        y = read * read
    assert float(accumulator.jvp(y)) == 4.0
    assert float(accumulator.jvp(read)) == 1.0


def test_results_outlive_a_variable():
    v = cytape.Variable(2.0)
    with cytape.ForwardAccumulator(v, 1.0) as accumulator:
        y = v * v
        del v
        z = y * y
    assert [float(t) for t in accumulator.jvp([y, z])] == [4.0, 32.0]


def test_two_variables_and_a_tensor():
    v, w, x = cytape.Variable(2.0), cytape.Variable(3.0), cytape.constant(5.0)
    primals, tangents = {"v": v, "rest": (w, x)}, {"v": 1.0, "rest": (10.0, 100.0)}
    with cytape.ForwardAccumulator(primals, tangents) as accumulator:
        y = v * w * x
    assert float(accumulator.jvp(y)) == 15.0 + 10.0 * 10.0 + 100.0 * 6.0


def test_a_tensor_watched_later_is_followed_from_then_on():
    x, w = cytape.constant(3.0), cytape.Variable(2.0)
    accumulator = cytape.ForwardAccumulator([], [])
    with accumulator:
        before = x * w
        accumulator.watch({"x": x, "w": w}, {"x": 10.0, "w": 1.0})
        after = x * w
    assert accumulator.jvp(before) is None and float(accumulator.jvp(after)) == 23.0


def test_tangents_of_what_is_followed_already_are_added():
    x, v = cytape.constant(3.0), cytape.Variable(2.0)
    with cytape.ForwardAccumulator([x, v], [1.0, 1.0]) as accumulator:
        before = x * v
        accumulator.watch([v, x], [10.0, 100.0])
        again = x * v
        v.assign(5.0)
        assigned = x * v
    assert [float(accumulator.jvp(t)) for t in (before, again, assigned)] == [
        5.0, 3 * 11.0 + 2 * 101.0, 3 * 11.0 + 5 * 101.0]
    assert float(accumulator.jvp(v)) == 11.0


def test_a_tensor_watched_later_has_as_many_directions():
    x, w = cytape.constant([1.0, 2.0]), cytape.constant(3.0)
    accumulator = cytape.ForwardAccumulator([], [], use_batch=True)
    assert accumulator.jvp(w, "zero").shape == (0,)
    with accumulator:
        accumulator.watch(x, np.ones((4, 2)))
        assert accumulator.jvp(w, "zero").shape == (4,)
        with pytest.raises(ValueError, match=r"different numbers of directions, \[3, 4\]"):
            accumulator.watch(w, np.ones(3))
        y = w * x
        assert accumulator.jvp(y).numpy().tolist() == [[3.0, 3.0]] * 4
        accumulator.watch(w, np.ones(4))
        assert accumulator.jvp(w * x).numpy().tolist() == [[4.0, 5.0]] * 4
    none = cytape.ForwardAccumulator(x, np.ones((0, 2)), use_batch=True)
    with pytest.raises(ValueError, match=r"\[0, 3\]"):
        none.watch(w, np.ones(3))


@each("primals, tangents, error, message", [
    (cytape.constant([1.0, 2.0]), [1.0, 2.0], ValueError, "must have the structure"),
    (cytape.constant([1.0, 2.0]), np.ones(3), ValueError, "shape"),
    (1.0, 1.0, TypeError, "only tensors and variables"),
])
def test_arguments_that_watch_refuses(primals, tangents, error, message):
    with pytest.raises(error, match=message):
        cytape.ForwardAccumulator([], []).watch(primals, tangents)
