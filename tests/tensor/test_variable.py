"""Variables: values that change, and gradients that keep to the value that was read."""

import copy
import gc
import inspect
import pickle
import pydoc
import threading
import weakref

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError, UnconnectedGradientWarning
from cytape.tensor.recording.state import Recorder
from cytape.tensor.tensor import live_tensors
from cytape.tensor.variable import holding, holds
from tests.cases import each
from tests.threads import in_threads
from tests.ways import taped

V3 = np.array([0.5, -1.0, 2.0])


# -- making ----------------------------------------------------------------------------------------


def test_the_initial_value_may_be_anything_with_numbers():
    slices = cytape.IndexedSlices(cytape.constant([2.0]), cytape.constant([1]), (3,))
    for initial, expected in [
        (1.5, 1.5), ([1, 2], [1, 2]), (V3, V3), (cytape.constant(V3), V3), (lambda: V3, V3),
        (cytape.Variable(V3), V3), (slices, [0.0, 2.0, 0.0]), (lambda: cytape.constant(2.0), 2.0),
    ]:
        v = cytape.Variable(initial)
        assert isinstance(v, cytape.Tensor)
        np.testing.assert_array_equal(v.numpy(), expected)
        assert v.dtype == np.asarray(expected).dtype


def test_properties():
    v = cytape.Variable([1, 2], name="bias", dtype="float32")
    assert (v.name, v.trainable, v.dtype, v.shape) == ("bias", True, np.float32, (2,))
    fixed = cytape.Variable([1.0], trainable=False)
    assert (fixed.name, fixed.trainable) == ("Variable", False)
    for attribute in ("name", "trainable", "id"):
        with pytest.raises(AttributeError):
            setattr(v, attribute, getattr(fixed, attribute))


def test_a_variable_is_initialised_once():
    v = cytape.Variable(V3)
    try:
        v.__init__(1.0)
    except TypeError:
        pass
    np.testing.assert_array_equal(v.numpy(), V3)


@each("wrong, error", [(None, TypeError), ([[1.0], [1.0, 2.0]], ValueError), (object(), TypeError)])
def test_an_initial_value_without_numbers(wrong, error):
    with pytest.raises(error):
        cytape.Variable(wrong)


# -- assigning -------------------------------------------------------------------------------------


@each("method, expected", [
    ("assign", [10, 20, 30]), ("assign_add", V3 + [10, 20, 30]), ("assign_sub", V3 - [10, 20, 30])])
@each("convert", [
    list, np.array, cytape.constant, cytape.Variable, np.float32,
    lambda data: cytape.IndexedSlices(cytape.constant(data), cytape.constant([0, 1, 2]), (3,))])
def test_assigning(method, expected, convert):
    v = cytape.Variable(V3)
    before, number = v.numpy(), v.id
    assert getattr(v, method)(convert([10, 20, 30])) is v
    np.testing.assert_array_equal(v.numpy(), expected)
    assert (v.dtype, v.id) == (np.float64, number)
    np.testing.assert_array_equal(before, V3)


def test_a_number_is_added_to_every_element_but_not_assigned():
    v = cytape.Variable(V3)
    np.testing.assert_array_equal(v.assign_add(1.0).assign_sub(3).numpy(), V3 - 2)
    with pytest.raises(ValueError, match="shape"):
        v.assign(1.0)


@each("method", ["assign", "assign_add", "assign_sub"])
def test_values_are_cast_to_the_variables_dtype(method):
    v = cytape.Variable(np.float32(V3))
    getattr(v, method)(V3)
    assert v.dtype == np.float32


@each("method", ["assign", "assign_add", "assign_sub"])
@each("wrong", [np.ones(2), np.ones((2, 3)), [None, 1.0, 2.0], "text", None])
def test_a_value_that_does_not_fit_changes_nothing(method, wrong):
    v = cytape.Variable(V3, name="bias")
    with pytest.raises((TypeError, ValueError)):
        getattr(v, method)(wrong)
    np.testing.assert_array_equal(v.numpy(), V3)


def test_the_shape_error_names_the_variable_and_both_shapes():
    with pytest.raises(ValueError, match=r"'bias'.*\(3,\).*\(2,\)"):
        cytape.Variable(V3, name="bias").assign(np.ones(2))


@each("size", [3, 5000])
def test_assigned_values_are_copies(size):
    array = np.ones(size)
    v = cytape.Variable(np.zeros(size))
    v.assign(array)
    array[:] = 7
    np.testing.assert_array_equal(v.numpy(), np.ones(size))


def test_a_variable_may_be_assigned_to_itself():
    v = cytape.Variable(V3)
    np.testing.assert_array_equal(v.assign(v).numpy(), V3)
    np.testing.assert_array_equal(v.assign_add(v).numpy(), 2 * V3)
    v.assign(v.numpy()[::-1])
    np.testing.assert_array_equal(v.numpy(), 2 * V3[::-1])


def test_elements_can_be_assigned():
    v = cytape.Variable(V3)
    v[0] = 1.0
    np.testing.assert_array_equal(v.numpy(), [1.0, *V3[1:]])


# -- gradients -------------------------------------------------------------------------------------


def test_trainable_variables_are_watched_when_read():
    v, fixed = cytape.Variable(2.0), cytape.Variable(3.0, trainable=False)
    tape, y = taped(lambda: v * v * fixed)
    assert [None if g is None else float(g) for g in tape.gradient(y, [v, fixed])] == [12.0, None]
    assert [w.id for w in tape.watched_variables()] == [v.id]


READS = {
    "operator": lambda v: v * 1.0, "reflected operator": lambda v: 1.0 * v,
    "ndarray on the left": lambda v: np.ones(3) * v, "unary operator": lambda v: +v,
    "matmul": lambda v: v @ np.eye(3), "index": lambda v: v[:],
    "iteration": lambda v: np.stack(list(v)), "ufunc": np.positive,
    "function": lambda v: np.concatenate([v, V3])[:3], "where": lambda v: np.where(True, v, 0.0),
    "method": lambda v: v.reshape(3), "T": lambda v: v.T, "value": lambda v: v.value(),
    "convert_to_tensor": cytape.convert_to_tensor}


@each("read", READS.values(), ids=READS)
def test_reading_in_any_way_watches(read):
    v = cytape.Variable(V3)
    v.assign(2 * V3)
    tape, y = taped(lambda: read(v))
    np.testing.assert_array_equal(y.numpy(), 2 * V3)
    np.testing.assert_array_equal(cytape.convert_to_tensor(tape.gradient(y, v)).numpy(), np.ones(3))
    assert len(tape.watched_variables()) == 1


@each("change", [
    lambda v: v.assign(v.numpy() + 100), lambda v: v.assign_add(100 * np.ones(3)),
    lambda v: v.assign_sub(v)])
def test_a_gradient_uses_the_value_that_was_read(change):
    v = cytape.Variable(V3)
    with cytape.GradientTape() as tape:
        y = np.sum(v * v)
        change(v)
    change(v)
    np.testing.assert_array_equal(tape.gradient(y, v).numpy(), 2 * V3)


def test_values_read_before_and_after_an_assignment_both_count():
    v = cytape.Variable(2.0)
    with cytape.GradientTape() as tape:
        y = v * v
        v.assign(5.0)
        y = y + v * v
        v.assign(2.0)
        y = y + 10.0 * v
    assert float(y) == 49.0
    assert float(tape.gradient(y, v)) == 24.0


def test_a_value_that_was_read_keeps_being_connected():
    v = cytape.Variable(2.0)
    with cytape.GradientTape(persistent=True) as tape:
        old = v.value()
        v.assign(5.0)
        y = old * old
        z = v * v
    assert [float(tape.gradient(t, v)) for t in (old, y, z)] == [1.0, 4.0, 10.0]
    assert float(tape.gradient(y, old)) == 4.0


@each("assigned_before", [False, True])
def test_a_value_that_was_read_is_not_the_variable(assigned_before):
    v = cytape.Variable(2.0, trainable=False)
    if assigned_before:
        v.assign(3.0)
    value = v.value()
    assert value.id != v.id
    with cytape.GradientTape() as tape:
        tape.watch(value)
        v.assign(5.0)
        y = v * v
    assert tape.gradient(y, value) is None


def test_a_variable_changed_between_tapes():
    v = cytape.Variable(1.0)
    for step in range(5):
        tape, y = taped(lambda: v * v * v)
        gradient = tape.gradient(y, v)
        assert float(gradient) == 3 * (1.0 + step) ** 2
        v.assign_add(gradient / gradient)
    assert float(v) == 6.0


def test_the_trace_of_a_value_goes_when_another_is_assigned():
    v = cytape.Variable(1.0)
    recorder = Recorder()
    recorder.push()
    y = v * v
    recorder.pop()
    assert recorder.num_ops == 2  # the read, and its square
    del y
    assert recorder.num_ops == 1  # the variable holds what was read
    v.assign(2.0)
    assert recorder.num_ops == 0


def test_no_gradient_flows_into_an_assignment():
    v, w = cytape.Variable(2.0), cytape.Variable(3.0)
    with cytape.GradientTape(persistent=True) as tape:
        v.assign(w * w)
        y = v * v
    assert float(tape.gradient(y, v)) == 18.0
    assert tape.gradient(y, w) is None


def test_the_same_variable_on_nested_tapes():
    v = cytape.Variable(3.0)
    v.assign(2.0)
    with cytape.GradientTape() as outer:
        inner, y = taped(lambda: v * v * v)
        first = inner.gradient(y, v)
        v.assign(100.0)
    assert (float(first), float(outer.gradient(first, v))) == (12.0, 12.0)


def test_an_integer_variable_has_no_gradient():
    v = cytape.Variable([1, 2])
    tape, y = taped(lambda: v * 2.0)
    with pytest.warns(UnconnectedGradientWarning, match="'Variable' is None: it has dtype int64"):
        assert tape.gradient(y, v) is None


def test_variables_and_arrays_mix():
    v, w = cytape.Variable(V3), cytape.Variable(2.0)
    with cytape.GradientTape() as tape:
        y = np.sum(V3 * v / w) + np.sum(np.ones((2, 3)) @ v) - [1.0] @ (w * np.ones(1))
    by_v, by_w = tape.gradient(y, [v, w])
    np.testing.assert_allclose(by_v.numpy(), V3 / 2 + 2)
    np.testing.assert_allclose(float(by_w), -np.sum(V3 * V3) / 4 - 1)


# -- never a silent detachment ---------------------------------------------------------------------


@each("read_before", [False, True])
def test_implicit_conversion_of_a_variable_that_a_tape_would_watch(read_before):
    v = cytape.Variable(V3)
    with cytape.GradientTape():
        y = v * v if read_before else None
        with pytest.raises(DetachedError, match=r"numpy\(\)"):
            np.asarray(v)
        np.testing.assert_array_equal(v.numpy(), V3)
    np.testing.assert_array_equal(np.asarray(v), V3)
    del y


@each("tape, v", [
    (cytape.GradientTape(), cytape.Variable(V3, trainable=False)),
    (cytape.GradientTape(watch_accessed_variables=False), cytape.Variable(V3)),
    (cytape.GradientTape(), cytape.Variable([1, 2, 3]))])
def test_implicit_conversion_of_a_variable_that_no_tape_watches(tape, v):
    with tape:
        np.testing.assert_array_equal(np.asarray(v), v.numpy())


# -- copies, life, threads -------------------------------------------------------------------------


@each("make", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_a_copy_is_a_variable_of_its_own(make):
    v = cytape.Variable(V3, trainable=False, name="bias")
    v.assign(2 * V3)
    other = make(v)
    assert type(other) is cytape.Variable
    assert (other.name, other.trainable) == ("bias", False)
    assert other.id != v.id
    other.assign_add(np.ones(3))
    np.testing.assert_array_equal(v.numpy(), 2 * V3)
    np.testing.assert_array_equal(other.numpy(), 2 * V3 + 1)


def test_variables_are_freed_at_once():
    before = live_tensors()
    v = cytape.Variable(V3)
    gone = weakref.ref(v)
    v.assign(2 * V3)
    assert live_tensors() == before + 1
    del v
    assert live_tensors() == before
    assert gone() is None


def test_a_value_that_was_replaced_leaves_with_what_was_made_of_it():
    v = cytape.Variable(np.zeros(5000))
    with cytape.GradientTape() as tape:
        y = v * v
        old = weakref.ref(v.numpy().base)
        v.assign(np.ones(5000))
        gc.collect()
        assert old() is not None
        del y
        gc.collect()
        assert old() is None
    del tape


def test_a_tape_keeps_the_variables_it_watched():
    tape, y = taped(lambda: cytape.Variable(2.0) * 3.0)
    (v,) = tape.watched_variables()
    assert float(tape.gradient(y, v)) == 3.0


def test_a_variable_is_shared_by_threads():
    v = cytape.Variable(2.0)

    def work(factor):
        tape, y = taped(lambda: v * v * factor)
        return float(tape.gradient(y, v))

    with cytape.GradientTape() as tape:
        y = v * v
        assert in_threads(work, 0.0, 1.0, 2.0, 3.0) == [0.0, 4.0, 8.0, 12.0]
    assert float(tape.gradient(y, v)) == 4.0


# -- accumulators ----------------------------------------------------------------------------------


@each("trainable", [True, False])
def test_an_accumulator_follows_a_variable_through_its_value(trainable):
    v = cytape.Variable(V3, trainable=trainable)
    with cytape.ForwardAccumulator(v, np.ones(3)) as accumulator:
        read = v.value()
        assert v.id != read.id
        v.assign(2 * V3)
        y, z = read * read, v * v
    np.testing.assert_array_equal(accumulator.jvp(y).numpy(), 2 * V3)
    np.testing.assert_array_equal(accumulator.jvp(z).numpy(), 4 * V3)
    np.testing.assert_array_equal(accumulator.jvp(v).numpy(), np.ones(3))


@each("change", [
    lambda v: v.assign(v * v), lambda v: v.assign_add(v), lambda v: v.assign_sub(2.0 * v)])
def test_no_tangent_flows_into_an_assignment(change):
    v = cytape.Variable(V3)
    other = cytape.Variable(V3)
    with cytape.ForwardAccumulator(v, np.full(3, 10.0)) as accumulator:
        change(v)
        other.assign(v)
        y, z = v * 1.0, other * 1.0
    np.testing.assert_array_equal(accumulator.jvp(y).numpy(), np.full(3, 10.0))
    assert accumulator.jvp([other, z]) == [None, None]


def test_the_tangents_of_a_variable_die_with_it_and_with_its_values():
    v = cytape.Variable(V3)
    accumulator = cytape.ForwardAccumulator(v, np.ones(3))
    with accumulator:
        made = weakref.ref(accumulator.jvp(v * v).numpy().base)
        kept = weakref.ref(accumulator.jvp(v).numpy().base)
    assert made() is None and kept() is not None
    v.assign(2 * V3)
    assert kept() is not None
    del v
    assert kept() is None


def test_one_variable_on_two_accumulators():
    v = cytape.Variable(V3)
    with cytape.ForwardAccumulator(v, np.ones(3)) as outer:
        with cytape.ForwardAccumulator(v, np.full(3, 2.0)) as inner:
            y = v**3
    np.testing.assert_allclose(outer.jvp(inner.jvp(y)).numpy(), 12 * V3)
    assert inner.jvp(outer.jvp(y)) is None


def test_help_shows_how_to_make_one():
    assert str(inspect.signature(cytape.Variable)) == (
        "(initial_value, trainable=True, name=None, dtype=None)")
    shown = pydoc.plain(pydoc.render_doc(cytape.Variable))
    assert "Variable(initial_value, trainable=True, name=None, dtype=None)" in shown
    assert "--" not in cytape.Variable.__doc__.splitlines()[0]


def test_reads_of_a_block_belong_to_its_thread():
    v, w = cytape.Variable([1.0, 2.0]), cytape.Variable(7.0)
    before = v.value()
    v.assign([3.0, 4.0])
    elsewhere = []

    def another_thread():
        elsewhere.append(v.numpy().tolist())
        v.assign([5.0, 6.0])

    def ways_to_read(x):
        return [
            x.numpy().tolist(), x.value().numpy().tolist(), (x + 0.0).numpy().tolist(),
            np.asarray(x).tolist(), x.tolist(), [x.item(0), x.item(1)], list(map(float, x)),
            copy.deepcopy(x).tolist(), cytape.function(lambda: x * 1.0)().tolist()]

    with cytape.GradientTape() as tape, holding([(v, before)]):
        assert holds(v, before)
    assert tape.watched_variables() == () and not holds(v, before)
    with holding([(v, before)]):
        assert v.value().id == before.id
        assert ways_to_read(v) == [[1.0, 2.0]] * 9
        assert repr(v) == "Variable([1., 2.])" and f"{v}" == str(v)
        thread = threading.Thread(target=another_thread)
        thread.start()
        thread.join()
        with holding([(w, cytape.constant(0.0))]):
            assert [v.tolist(), w.tolist()] == [[1.0, 2.0], 0.0]
        assert w.tolist() == 7.0
        w.assign_add(1.0)
        assert v.assign_add(1.0) is v
        v.assign_sub([0.0, 1.0])
        assert ways_to_read(v) == [[2.0, 2.0]] * 9
        assert not holds(v, before)
    assert elsewhere == [[3.0, 4.0]]
    assert ways_to_read(v) == [[5.0, 6.0]] * 9
    assert w.tolist() == 8.0
    with pytest.raises(TypeError):
        holds(v, None)


def test_values_that_were_held_for_a_block_die():
    v = cytape.Variable(1.0)
    before = v.value()
    v.assign(5.0)
    n_tensors = live_tensors()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), holding([(v, before)]):
            v.assign(2.0)
            v.assign(3.0)
            raise ZeroDivisionError
    assert live_tensors() == n_tensors
    assert v.tolist() == 5.0


@each("wrong", ["w", None, 2])
def test_trainable_must_be_a_bool(wrong):
    with pytest.raises(TypeError, match="trainable must be a bool" + ".*name='w'" * (wrong == "w")):
        cytape.Variable(V3, wrong)
    assert cytape.Variable(V3, np.bool_(False)).trainable is False
