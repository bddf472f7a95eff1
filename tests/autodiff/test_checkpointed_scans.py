"""checkpointed_scan: steps counted, states counted, on disk, in both modes, in graphs."""

import gc
import threading

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.core.schedules import fewest_advances
from cytape.errors import TapeStateError
from cytape.tensor.recording import state
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.cases import each

RUNS = {
    "all": (7, 7), "more": (7, 20), "few": (11, 3), "one": (6, 1), "two": (10, 2), "single": (1, 3),
    "pair": (2, 1)}


def step_of(c, v):
    def step(state):
        x, y = state
        return cnp.sin(x) * c + y, y * v + 0.1 * x

    return step


def plain(step, state, n):
    for _ in range(n):
        state = step(state)
    return state


def gradients_of(loop, c, v, x, y, **options):
    """Values, and gradients of the state, of a tensor in a closure and of a variable."""
    with cytape.GradientTape(**options) as tape:
        tape.watch([c, x, y])
        a, b = loop(step_of(c, v), (x, y))
        z = a * b + a
    return a, b, *tape.gradient(z, [c, v, x, y])


def numbers(rng):
    return (cytape.constant(rng.normal(size=3)), cytape.Variable(rng.normal(size=3)),
            cytape.constant(rng.normal(size=3)), cytape.constant(rng.normal(size=3)))


@pytest.mark.parametrize(("n", "snapshots"), RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("on_disk", [False, True])
def test_gradients_are_those_of_the_plain_loop(rng, tmp_path, n, snapshots, on_disk):
    args = numbers(rng)
    storage = tmp_path if on_disk else None
    ours = gradients_of(lambda step, state: cytape.checkpointed_scan(
        step, state, n, snapshots, storage=storage), *args)
    for a, b in zip(ours, gradients_of(lambda *f: plain(*f, n), *args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    gc.collect()
    assert not list(tmp_path.iterdir())


def is_recorded(x):
    return state.possible_gradient_types([x]) != state.NO_GRADIENTS


@each(("n", "snapshots"), [
    (1, 1), (2, 1), (5, 1), (5, 5), (10, 3), (100, 4), (1000, 20), (10_000, 100)])
def test_every_step_is_recorded_once_and_the_fewest_are_taken_besides(n, snapshots):
    recorded, advances, most = 0, 0, 0

    def step(x):
        nonlocal recorded, advances, most
        most = max(most, live_tensors() - before)
        if is_recorded(x):
            recorded += 1
        else:
            advances += 1
        return x * 0.9999

    x = cytape.constant(np.ones(2))
    before = live_tensors()
    np.testing.assert_allclose(ways.gradient(
        lambda x: cytape.checkpointed_scan(step, x, n, snapshots), x), np.full(2, 0.9999**n))
    assert recorded == n
    assert advances == fewest_advances(n, snapshots)
    assert most <= snapshots + 10
    if n == 10_000:
        assert advances == 24_747


def test_on_disk_are_all_snapshots_but_the_first(tmp_path):
    x = cytape.constant(np.ones(100))
    most_tensors, most_files = 0, 0

    def step(x):
        nonlocal most_tensors, most_files
        most_tensors = max(most_tensors, live_tensors() - before)
        most_files = max(most_files, len(list(tmp_path.glob("*/*.npy"))))
        return cnp.sin(x)

    before = live_tensors()
    ways.gradient(lambda x: cytape.checkpointed_scan(step, x, 200, 20, storage=tmp_path), x)
    assert most_files == 19
    assert most_tensors <= 10


def test_files_are_deleted_with_a_tape_that_is_never_differentiated(tmp_path):
    x = cytape.constant(1.0)
    tape, y = ways.taped(lambda x: cytape.checkpointed_scan(cnp.sin, x, 9, 3, storage=tmp_path), x)
    assert len(list(tmp_path.glob("*/*.npy"))) == 2
    del tape, y
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_persistent_tape_asked_twice(rng):
    x = cytape.constant(rng.normal(size=3))
    calls = []

    def step(x):
        calls.append(None)
        return cnp.sin(x)

    tape, y = ways.taped(lambda x: cytape.checkpointed_scan(step, x, 12, 3), x, persistent=True)
    first = tape.gradient(y, x)
    n_calls = len(calls)
    np.testing.assert_array_equal(tape.gradient(y, x), first)
    # The last step stays recorded, and the snapshots are made again.
    assert n_calls < len(calls) <= 2 * n_calls


# Values that steps close over, and functions of a state.
CLOSED_OVER = {
    "the start state": lambda x: lambda s: s * x,
    "the start state alone": lambda x: lambda s: x * 1.0,
    "the start state itself": lambda x: lambda s: x,
    "a view of it": lambda x: lambda s: s * x[::-1],
    "a structure's part": lambda x: lambda s: (s[1], s[0] * x),
    "another one": lambda x: lambda s, y=x * 2.0: s * y,
}


@each(n=[1, 2, 3, 5], snapshots=[1, 2, 5], name=CLOSED_OVER)
def test_steps_that_close_over_the_start_state(name, snapshots, n):
    def start(x):
        return (x, x * 3.0) if name == "a structure's part" else x

    def scanned(x):
        last = cytape.checkpointed_scan(CLOSED_OVER[name](x), start(x), n, snapshots)
        return last[0] + last[1] if isinstance(last, tuple) else last

    def plain(x):
        state, step = start(x), CLOSED_OVER[name](x)
        for _ in range(n):
            state = step(state)
        return state[0] + state[1] if isinstance(state, tuple) else state

    x = cytape.constant([0.7, 1.3, -0.4])
    tape, (y, wanted) = ways.taped(lambda x: (scanned(x), plain(x)), x, persistent=True)
    for _ in range(3):
        np.testing.assert_allclose(tape.gradient(y, x), tape.gradient(wanted, x), rtol=1e-12)
    for make in (
            cytape.jacrev, cytape.jacfwd,
            lambda f: cytape.hessian(lambda x: np.sum(f(x))),
            lambda f: cytape.jacrev(cytape.grad(lambda x: np.sum(f(x))))):
        np.testing.assert_allclose(make(scanned)(x), make(plain)(x), rtol=1e-11, atol=1e-12)
    _, pull_back = cytape.vjp(scanned, x)
    for k in range(3):
        seed = np.eye(3)[k]
        np.testing.assert_allclose(
            pull_back(seed)[0], cytape.jacrev(plain)(x)[k], rtol=1e-12, atol=1e-12)


def test_two_threads_take_gradients_at_once(tmp_path):
    x = cytape.constant(0.5)
    found, threads = [], []

    def gradient():
        found.append(float(tape.gradient(y, x)))

    def step(x):
        if threads:  # in the middle of the steps that another gradient takes again
            thread = threads.pop()
            thread.start()
            thread.join()
        return cnp.sin(x)

    tape, y = ways.taped(
        lambda x: cytape.checkpointed_scan(step, x, 12, 3, storage=tmp_path), x, persistent=True)
    for _ in range(2):
        threads.append(threading.Thread(target=gradient))
        gradient()
    assert len(found) == 4 and set(found) == {found[0]}


def test_forward_mode_keeps_and_repeats_nothing(rng):
    c, v, x, y = numbers(rng)
    calls = []
    step = step_of(c, v)

    def counted(state):
        calls.append(None)
        return step(state)

    tangents = [rng.normal(size=3) for _ in range(4)]

    def tangents_of(loop):
        with cytape.ForwardAccumulator([c, v, x, y], tangents) as accumulator:
            results = loop()
        return accumulator.jvp(results)

    ours = tangents_of(lambda: cytape.checkpointed_scan(counted, (x, y), 9, 2))
    assert len(calls) == 9
    for a, b in zip(ours, tangents_of(lambda: plain(step, (x, y), 9)), strict=True):
        np.testing.assert_allclose(a, b)


@each("mode", ways.ALL_MODES)
def test_derivatives_in_all_modes(rng, mode):
    c, v, x = cytape.constant(0.7), cytape.Variable(0.3), rng.normal(size=3)

    def derivatives(loop):
        f = lambda x: cnp.sum(loop(step_of(c, v), (x, x * x))[0])  # noqa: E731
        return ways.eager(ways.ALL_MODES[mode], f, [x], [np.ones(3)])

    found = derivatives(lambda *f: cytape.checkpointed_scan(*f, 7, 3))
    np.testing.assert_allclose(found, derivatives(lambda *f: plain(*f, 7)), rtol=1e-12)


def test_structures_counters_and_arrays():
    forcing = np.arange(8.0)

    def step(state):
        return {"x": state["x"] * 1.5 + forcing[int(state["i"])], "i": state["i"] + 1, "tag": 3}

    x = cytape.constant(2.0)
    state = {"x": x, "i": cytape.constant(0), "tag": 3}
    tape, last = ways.taped(lambda x: cytape.checkpointed_scan(step, state, 8, 2), x)
    assert int(last["i"]) == 8 and last["tag"] == 3
    assert float(tape.gradient(last["x"], x)) == pytest.approx(1.5**8)
    result = cytape.checkpointed_scan(lambda x: x + 1, np.zeros(2), 5, 2)
    assert type(result) is np.ndarray and result.tolist() == [5.0, 5.0]


def test_no_steps():
    x = cytape.constant(2.0)
    assert float(ways.gradient(lambda x: cytape.checkpointed_scan(cnp.sin, x, 0, 1) * 3, x)) == 3.0


def test_noise_is_the_same_again():
    rng = np.random.default_rng(0)
    seen = []

    def step(x):
        noise = rng.normal()
        if is_recorded(x):
            seen.append(noise)
        return x * (1 + noise) + cnp.random.normal()

    expected = np.random.default_rng(0).normal(size=21)
    x = cytape.constant(1.0)
    gradient = ways.gradient(lambda x: cytape.checkpointed_scan(step, x, 20, 3), x)
    np.testing.assert_allclose(gradient, np.prod(1 + expected[:20]))
    assert seen == [expected[19], *expected[18::-1]]
    assert rng.normal() == expected[20]  # goes on as if the steps had been taken once


def test_variables_that_are_assigned_to_between():
    v, x = cytape.Variable(2.0), cytape.constant(3.0)
    tape, y = ways.taped(lambda x: cytape.checkpointed_scan(lambda x: x * v, x, 5, 2), x)
    v.assign(100.0)
    np.testing.assert_allclose(tape.gradient(y, [x, v]), [32.0, 3.0 * 5 * 16])
    assert float(v) == 100.0


def test_steps_that_assign_are_refused():
    v, x = cytape.Variable(2.0), cytape.constant(3.0)

    def step(x):
        v.assign_add(1.0)
        return x * v

    with ways.watching(x):
        with pytest.raises(TapeStateError, match="a part of the state"):
            cytape.checkpointed_scan(step, x, 5, 2)


@each(("arguments", "error", "text"), [
    ({"n": -1}, ValueError, "n=-1"), ({"snapshots": 0}, ValueError, "snapshots=0"),
    ({"n": 2.5}, TypeError, "n must be an integer, got 2.5"),
    ({"snapshots": "2"}, TypeError, "snapshots must be an integer, got '2'"),
    ({"storage": "no/such"}, FileNotFoundError, "no/such")])
def test_wrong_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        cytape.checkpointed_scan(**{"step": cnp.sin, "state": 1.0, "n": 3, "snapshots": 2,
                                    **arguments})


def test_in_a_function_it_is_a_loop_with_checkpoints(rng, tmp_path):
    c, v, x, y = numbers(rng)

    def with_gradients(loop):
        def f(x, y, c):
            with ways.watching(x, y, c) as tape:
                a, b = loop(step_of(c, v), (x, y))
                z = a * b + a
            return tape.gradient(z, [c, v, x, y])

        return f

    traced = cytape.function(with_gradients(lambda *f: cytape.checkpointed_scan(*f, 9, 3)))
    expected = with_gradients(lambda *f: plain(*f, 9))(x, y, c)
    for a, b in zip(traced(x, y, c), expected, strict=True):
        np.testing.assert_allclose(a, b)
    types = {op.type for op in traced.get_concrete_function(x, y, c).graph.get_operations()}
    assert "CheckpointedGradient" in types
    with pytest.raises(ValueError, match="needs eager steps"):
        cytape.function(lambda x: cytape.checkpointed_scan(cnp.sin, x, 9, 3, storage=tmp_path))(x)


@pytest.mark.parametrize("snapshots", range(1, 6))
@pytest.mark.parametrize("on_disk", [False, True])
def test_arrays_that_a_state_consists_of(tmp_path, snapshots, on_disk):
    def step(state):
        i, x, found = state
        return i + 1, 2.0 * x, found.write(i, x)

    def f(x):
        state = 0, x, cytape.TensorArray("float64", 6, element_shape=())
        return cnp.sum(cytape.checkpointed_scan(
            step, state, 6, snapshots, storage=tmp_path if on_disk else None)[2].stack())

    assert cytape.grad(f)(1.0) == 63.0
    assert cytape.jvp(f, (1.0,), (1.0,))[1] == 63.0


def test_steps_have_the_closure_of_the_call():
    def scanned(x):
        for k in (1.0, 2.0, 3.0):
            x = cytape.checkpointed_scan(lambda x: cnp.tanh(x) * k, x, 5, 2)  # noqa: B023
        return x

    def plain(x):
        for k in (1.0, 2.0, 3.0):
            for _ in range(5):
                x = cnp.tanh(x) * k
        return x

    assert cytape.grad(scanned)(0.5) == pytest.approx(cytape.grad(plain)(0.5), rel=1e-13)
    assert cytape.jvp(scanned, (0.5,), (1.0,))[1] == pytest.approx(cytape.grad(plain)(0.5))
    second = cytape.grad(cytape.grad(scanned))(0.5)
    assert second == pytest.approx(cytape.grad(cytape.grad(plain))(0.5), rel=1e-12)


def test_states_that_no_gradient_reaches_are_left_out():
    """The slope of the root at 0 is infinite, and zero times that is NaN."""
    def f(x):
        return cytape.checkpointed_scan(
            lambda s: (cnp.sqrt(s[0] * 0.0), s[1] * s[1]), (x, x), 3, 1)[1]

    assert cytape.grad(f)(1.5) == 8 * 1.5**7
    assert cytape.grad(cytape.grad(f))(1.5) == 56 * 1.5**6


@each("snapshots", [1, 3])
def test_a_step_may_change_its_state_in_place(snapshots):
    def step(state):
        state *= 1.2
        return state

    def scanned(x):
        return np.sum(cytape.checkpointed_scan(step, x, 5, snapshots))

    x = cytape.constant(np.ones(2))
    np.testing.assert_allclose(cytape.grad(scanned)(x), 1.2**5)
    np.testing.assert_allclose(cytape.grad(cytape.function(scanned))(x), 1.2**5)
    assert x.numpy().tolist() == [1.0, 1.0]
