"""GradientTape: recording, watching, scopes, lifetime and threads."""

import gc
import weakref

import numpy as np
import pytest

import cytape
from cytape.errors import CytapeError, TapeStateError
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.cases import each
from tests.threads import in_thread, in_threads

# -- watching, scopes, lifetime --------------------------------------------------------------------


def test_D_2_01_watch_takes_any_nesting_of_tensors_and_variables():
    x, y, v = cytape.constant(2.0), cytape.constant(3.0), cytape.Variable(5.0)
    with cytape.GradientTape() as tape:
        tape.watch({"x": [x, (y, v)]})
        z = x * y * v
    assert [float(g) for g in tape.gradient(z, [x, y, v])] == [15.0, 10.0, 6.0]


def test_recorded_ops_can_be_gone_through_by_other_code():
    """Reverse mode of a product and a sum, by their names alone."""
    x, y = cytape.constant(2.0), cytape.constant(3.0)
    with cytape.GradientTape() as tape:
        assert tape.recorded_ops() == []
        tape.watch([x, y])
        product = x * y
        total = product + x
    values = {tensor.id: float(tensor) for tensor in (x, y, product)}
    gradients = {total.id: 1.0}
    for name, inputs, [output] in reversed(tape.recorded_ops()):
        a, b = inputs
        partials = {"Multiply": (values.get(b), values.get(a)), "Add": (1.0, 1.0)}[name]
        for source, partial in zip(inputs, partials, strict=True):
            gradients[source] = gradients.get(source, 0.0) + gradients[output] * partial
    assert (gradients[x.id], gradients[y.id]) == (4.0, 2.0)
    assert [float(g) for g in tape.gradient(total, [x, y])] == [4.0, 2.0]
    assert tape.recorded_ops() == []  # the gradient has consumed the tape


def test_reads_of_variables_and_custom_ops_are_listed_by_name():
    v = cytape.Variable(2.0)
    cube = cytape.custom_gradient(lambda x: (x**3, lambda g: 3 * g * x**2))
    with cytape.GradientTape() as tape:
        y = cube(v) + np.sum(v[None])
    names = [name for name, _, _ in tape.recorded_ops()]
    assert names[0] == "Identity" and names[-1] == "Add" and len(names) >= 4
    assert tape.recorded_ops()[0][1] == [v.id] and tape.recorded_ops()[-1][2] == [y.id]


@each("wrong", [np.ones(2), [np.ones(2)], 1.0, "text", None])
def test_D_2_01_watching_anything_else_is_an_error_that_names_the_type(wrong):
    leaf = wrong[0] if isinstance(wrong, list) else wrong
    with cytape.GradientTape() as tape:
        with pytest.raises(ValueError, match=type(leaf).__name__):
            tape.watch(wrong)


@pytest.mark.filterwarnings("ignore:the gradient is None")
def test_D_2_02_trainable_variables_are_watched_when_read():
    v = cytape.Variable(2.0)
    fixed = cytape.Variable(2.0, trainable=False)
    with cytape.GradientTape(persistent=True) as tape:
        y = v * v
        z = fixed * fixed
    assert float(tape.gradient(y, v)) == 4.0
    assert tape.gradient(z, fixed) is None
    with ways.watching(fixed) as tape:
        z = fixed * fixed
    assert float(tape.gradient(z, fixed)) == 4.0


@pytest.mark.filterwarnings("ignore:the gradient is None")
def test_D_2_03_only_watched_variables_count_without_watch_accessed_variables():
    v, w = cytape.Variable(2.0), cytape.Variable(5.0)
    with cytape.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        tape.watch(v)
        y = v**2
        z = w**3
    assert float(tape.gradient(y, v)) == 4.0
    assert tape.gradient(z, w) is None
    assert tape.watched_variables() == (v,)


def test_D_2_04_watched_variables_come_in_order_of_creation():
    first, second, third = (cytape.Variable(float(i)) for i in range(3))
    with cytape.GradientTape() as tape:
        assert tape.watched_variables() == ()
        y = third * first * second * first
        assert tape.watched_variables() == (first, second, third)
        tape.reset()
        assert tape.watched_variables() == ()
        y = second * first
    tape.gradient(y, first)
    watched = tape.watched_variables()
    assert isinstance(watched, tuple)
    assert [v is w for v, w in zip(watched, (first, second), strict=True)] == [True, True]


def test_D_2_05_integers_are_watched_in_vain():
    x = cytape.constant(3)
    y = cytape.constant(2.0)
    with cytape.GradientTape(persistent=True) as tape:
        with pytest.warns(UserWarning, match="int64"):
            tape.watch(x)
        tape.watch(y)
        z = x * x
        w = x * y
    assert tape.gradient(z, x) is None
    assert tape.gradient(w, x) is None
    assert tape.gradient(x, x) is None
    assert float(tape.gradient([w, x], y)) == 3.0
    text = cytape.constant("text")
    assert tape.gradient(w, text) is None
    assert tape.gradient(text, y) is None


def test_D_2_06_entering_an_active_tape_is_an_error_entering_it_again_continues():
    x = cytape.constant(3.0)
    tape = cytape.GradientTape()
    with tape:
        with pytest.raises(ValueError, match="recording"):
            tape.__enter__()
        tape.watch(x)
        y = 2 * x
    unseen = y * y
    with tape:
        z = 2 * y
    assert float(tape.gradient([z, unseen], x)) == 4.0


def test_D_2_07_stop_recording_hides_ops_from_this_tape_only():
    v = cytape.Variable(1.0)
    with cytape.GradientTape() as other, cytape.GradientTape(persistent=True) as tape:
        x2 = 2 * v
        with tape.stop_recording():
            y = x2**2
        z = x2**2
    assert tape.gradient(y, x2) is None
    assert float(tape.gradient(z, x2)) == 4.0
    assert float(other.gradient(y, v)) == 8.0


def test_D_2_07_stop_recording_on_a_tape_that_is_not_recording():
    tape = cytape.GradientTape()
    with pytest.raises(RuntimeError):
        with tape.stop_recording():
            pass
    with tape:
        pass
    with pytest.raises(ValueError):
        with tape.stop_recording():
            pass


def test_D_2_08_reset_forgets_everything():
    v = cytape.Variable(1.0)
    x = cytape.constant(5.0)
    with ways.watching(x) as tape:
        loss = v * v * x
        tape.reset()
        assert tape.watched_variables() == ()
        loss = loss + v * v * x
    gradients = tape.gradient(loss, [v, x])
    assert float(gradients[0]) == 10.0
    assert gradients[1] is None
    with cytape.GradientTape() as tape:
        loss = v * v
        tape.reset()
        loss += v * v
    assert float(tape.gradient(loss, v)) == 2.0


def test_D_2_08_reset_outside_the_block():
    tape = cytape.GradientTape()
    with tape:
        pass
    with pytest.raises(ValueError, match="not recording"):
        tape.reset()


def test_D_2_09_gradient_inside_the_block_ends_the_recording():
    x = cytape.constant(3.0)
    with ways.watching(x) as tape:
        y = x * x
        assert float(tape.gradient(y, x)) == 6.0
        z = y * y
    with pytest.raises(RuntimeError):
        tape.gradient(z, x)


def test_D_2_09_a_persistent_tape_records_its_own_gradients():
    x = cytape.constant(3.0)
    with ways.watching(x, persistent=True) as tape:
        y = x**3
        first = tape.gradient(y, x)
        second = tape.gradient(first, x)
        third = tape.gradient(second, x)
    assert [float(d) for d in (y, first, second, third)] == [27.0, 27.0, 18.0, 6.0]


@each("used", ["gradient", "jacobian", "batch_jacobian"])
@each("again", ["gradient", "jacobian", "batch_jacobian"])
def test_D_2_10_a_tape_that_is_not_persistent_serves_once(used, again):
    x = cytape.constant([[1.0, 2.0]])
    with ways.watching(x) as tape:
        y = x * x
    getattr(tape, used)(y, x)
    with pytest.raises(RuntimeError, match="non-persistent tape serves only one set of gradients"):
        getattr(tape, again)(y, x)


@each(method=["gradient", "jacobian", "batch_jacobian"], persistent=[True, False])
def test_D_2_10_a_tape_that_was_never_entered(method, persistent):
    x = cytape.constant([[1.0, 2.0]])
    tape = cytape.GradientTape(persistent)
    with pytest.raises(RuntimeError, match="non-persistent tape serves one set of gradients"):
        getattr(tape, method)(x, x)


def test_D_2_11_equal_constants_are_different_tensors():
    x1, x2 = cytape.constant(3.0), cytape.constant(3.0)
    assert float(ways.gradient(lambda x1: x1 + x2, x1)) == 1.0


def _chain(x, n_ops):
    for _ in range(n_ops):
        x = np.tanh(x) * 1.0
    return x


def test_D_2_12_gradient_frees_the_intermediates_of_a_tape_that_is_not_persistent():
    x = cytape.constant(np.ones(3))
    before = live_tensors()
    with ways.watching(x) as tape:
        y = _chain(x, 20)
    gradient = tape.gradient(y, x)
    del y
    assert live_tensors() == before + 1
    del gradient, tape
    assert live_tensors() == before


def test_D_2_12_dropping_a_persistent_tape_frees_the_intermediates():
    x = cytape.constant(np.ones(3))
    alive = cytape.Variable(np.ones(3))
    freed = weakref.ref(alive)
    with ways.watching(x, persistent=True) as tape:
        y = _chain(x, 20) * alive
    tape.gradient(y, x)
    del alive
    assert freed() is not None
    del tape
    gc.collect()
    assert freed() is None


def test_D_2_12_dropping_what_is_downstream_frees_without_touching_the_tape():
    x = cytape.constant(np.ones(3))
    released = []

    @cytape.custom_gradient
    def traced(x):
        token = Token(released)

        def grad_fn(dy):
            return dy if token else None

        return x * 1.0, grad_fn

    with ways.watching(x) as tape:
        y = _chain(traced(x), 20)
        assert released == []
        del y
        assert released == ["released"]
        z = x * x
    assert tape.gradient(z, x).numpy().tolist() == [2.0, 2.0, 2.0]


class Token:
    """Reports its end."""

    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append("released")


# -- beyond the numbered statements ----------------------------------------------------------------


def test_a_tape_may_watch_before_it_is_entered():
    x = cytape.constant(3.0)
    tape = cytape.GradientTape()
    tape.watch(x)
    with tape:
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


def test_entering_a_used_tape_again_starts_anew():
    v = cytape.Variable(3.0)
    x = cytape.constant(2.0)
    tape = cytape.GradientTape()
    with tape:
        y = v * v
    tape.gradient(y, v)
    with pytest.raises(TapeStateError, match="has served"):
        tape.watch(x)
    with tape:
        assert tape.watched_variables() == ()
        tape.watch(x)
        z = x * x * x
    assert float(tape.gradient(z, x)) == 12.0


def test_gradient_while_this_tape_is_suspended():
    v = cytape.Variable(3.0)
    with cytape.GradientTape() as tape:
        y = v * v
        with tape.stop_recording():
            assert float(tape.gradient(y, v)) == 6.0
    with cytape.GradientTape(persistent=True) as tape:
        y = v * v
        with tape.stop_recording():
            first = tape.gradient(y, v)
    assert float(first) == 6.0
    assert tape.gradient(first, v) is None


def test_stop_recording_for_every_tape():
    x = cytape.constant(3.0)
    with cytape.GradientTape() as outer, cytape.GradientTape() as inner:
        outer.watch(x)
        inner.watch(x)
        with cytape.stop_recording():
            hidden = x * x
        y = hidden * x
    assert float(outer.gradient(y, x)) == 9.0
    assert float(inner.gradient(y, x)) == 9.0


# -- errors ----------------------------------------------------------------------------------------


def test_an_error_inside_the_block_leaves_no_tape_behind():
    v = cytape.Variable(2.0)
    with cytape.GradientTape() as outer:
        with pytest.raises(KeyError):
            with cytape.GradientTape() as tape:
                raise KeyError
        with pytest.raises(ValueError):
            tape.reset()  # left, not recording
        y = v * v
    assert float(outer.gradient(y, v)) == 4.0


def test_errors_have_a_common_base():
    tape = cytape.GradientTape()
    with pytest.raises(CytapeError):
        tape.gradient(cytape.constant(1.0), [])


# -- threads ---------------------------------------------------------------------------------------


def test_a_tape_follows_its_own_thread_only():
    v = cytape.Variable(3.0)
    with cytape.GradientTape(persistent=True) as tape:
        here = v * v
        there = in_thread(lambda: v * v * v)
    assert float(tape.gradient(here, v)) == 6.0
    assert tape.gradient(there, v) is None
    assert tape.watched_variables() == (v,)


def test_a_tensor_of_another_threads_tape_is_a_constant():
    v = cytape.Variable(3.0)
    with cytape.GradientTape() as tape:
        y = v * v

        def other():
            w = cytape.Variable(2.0)
            with cytape.GradientTape() as own:
                z = w * y
            gradients = own.gradient(z, [w, y, v])
            return z, gradients, np.asarray(y)

        z, gradients, array = in_thread(other)
        total = y * z
    assert float(gradients[0]) == 9.0
    assert gradients[1:] == [None, None]
    assert array == 9.0
    assert float(tape.gradient(total, v)) == 6.0 * 18.0


def test_a_gradient_may_be_taken_in_another_thread():
    v = cytape.Variable(3.0)
    with cytape.GradientTape(persistent=True) as tape:
        y = v * v
        assert float(in_thread(tape.gradient, y, v)) == 6.0
    assert float(in_thread(tape.gradient, y, v)) == 6.0


def test_a_tape_cannot_be_entered_in_two_threads():
    with cytape.GradientTape() as tape:
        with pytest.raises(ValueError, match="recording"):
            in_thread(tape.__enter__)
    in_thread(tape.__enter__)
    tape.__exit__(None, None, None)


def test_a_tape_may_be_suspended_from_another_thread():
    v = cytape.Variable(3.0)
    with cytape.GradientTape(persistent=True) as tape:
        suspension = tape.stop_recording()
        in_thread(suspension.__enter__)
        hidden = v * v
        in_thread(suspension.__exit__, None, None, None)
        seen = v * v
    assert tape.gradient(hidden, v) is None
    assert float(tape.gradient(seen, v)) == 6.0


def test_threads_recording_at_the_same_time():
    v = cytape.Variable(np.full(4, 0.5))
    n_threads, n_rounds = 4, 50

    def work(k):
        sums = np.zeros(4)
        for _ in range(n_rounds):
            with cytape.GradientTape() as tape:
                y = v
                for _ in range(k + 1):
                    y = np.sin(y) * v
            assert tape.watched_variables() == (v,)
            sums += tape.gradient(y, v).numpy()
        return sums

    for k, found in enumerate(in_threads(work, *range(n_threads))):
        with cytape.GradientTape() as tape:
            y = v
            for _ in range(k + 1):
                y = np.sin(y) * v
        np.testing.assert_allclose(found, n_rounds * tape.gradient(y, v).numpy())
