"""FirstRun: what a call finds, and how it is made again."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.autodiff.repeatable_call import FirstRun
from cytape.core.vspace import VSpace
from cytape.tensor.recording.state import Reads, TangentRecorder, stop_recording
from tests import ways
from tests.cases import each


def test_recorded_tensors_that_a_call_finds():
    a, b, c = cytape.constant(1.0), cytape.constant(2.0), cytape.constant(3.0)
    v, w = cytape.Variable(4.0), cytape.Variable(5.0, trainable=False)
    with cytape.ForwardAccumulator(b, 1.0), cytape.GradientTape() as tape:
        tape.watch(a)
        run = FirstRun(lambda x: x * a * b * c * v * w, (c,), {})
    assert {x.id for x in run.tensors} == {a.id, b.id}
    assert run.variables == [v]
    assert float(run.take_result()) == 3.0 * 1 * 2 * 3 * 4 * 5
    assert run.take_result() is None


def test_nothing_is_recorded_meanwhile():
    a = cytape.constant(1.0)
    with ways.watching(a) as tape:
        reads = Reads()
        with stop_recording(), TangentRecorder(VSpace(), reads=reads):
            y = a * a
    assert tape.gradient(y, a) is None
    assert reads.follows(a.id) and not reads.follows(y.id)


def test_tapes_inside_record_as_ever():
    a = cytape.constant(3.0)
    with ways.watching(a):
        reads = Reads()
        with stop_recording(), TangentRecorder(VSpace(), reads=reads):
            gradient = cytape.grad(lambda x: x * x * a)(a)
    assert float(gradient) == 18.0
    assert [x.id for x in reads.found] == [a.id]


def test_variables_are_those_that_were_watched_too():
    w = cytape.Variable(5.0, trainable=False)
    tape, run = ways.taped(lambda w: FirstRun(lambda: w * w, (), {}), w)
    assert run.variables == [w]


def test_again_and_then_as_before():
    v, rng = cytape.Variable(1.0), np.random.default_rng(0)

    def f():
        return v.assign_add(1.0).value(), rng.normal(), cnp.random.normal()

    run = FirstRun(f, (), {})
    first = run.take_result()
    assert run.assigned_since() is v
    v.assign(10.0)
    for _ in range(2):
        again = run.again(lambda f: f())
        assert [float(x) for x in again] == [float(x) for x in first]
        assert float(v) == 10.0
    assert rng.normal() == np.random.default_rng(0).normal(size=2)[1]


def drop(x):
    return cytape.nn.dropout(x, 0.1)


def in_a_scan(x, step):
    return cytape.checkpointed_scan(step, x, 9, 2)


def sequential(x, traced):
    return cytape.checkpoint_sequential([traced, drop, traced, drop, traced], 3, x)


BLOCKS = {
    "a trace": lambda x, traced: traced(x),
    "before a draw at once": lambda x, traced: drop(traced(x)),  # its seed is drawn before
    "behind one": lambda x, traced: traced(drop(x)),
    "twice": lambda x, traced: traced(traced(x)),
    "nested": lambda x, traced: cytape.recompute_grad(lambda x: traced(x))(traced(x)),
    "segments": sequential,
    "steps": lambda x, traced: in_a_scan(x, lambda x: drop(traced(x) + x)),
    "steps that are traces": in_a_scan,
}


@each("block", BLOCKS.values(), ids=BLOCKS)
def test_traces_draw_the_same_again(block):
    for wrap in (cytape.recompute_grad, lambda f: f):
        for seed in (None, 5):
            traced = cytape.function(lambda x, seed=seed: cytape.nn.dropout(x, 0.1, seed=seed))
            check_masks(wrap(lambda x, traced=traced: block(x, traced)))


def check_masks(f):
    """See that the gradient meets the masks that the function drew, which is linear."""
    x, results = cytape.constant(np.arange(1.0, 41.0)), []
    for i in range(3):  # the first call traces
        tape, y = ways.taped(f, x, persistent=True)
        cnp.random.seed(i)
        for _ in range(2):
            np.testing.assert_allclose(tape.gradient(y, x) * x, y)
        results.append(y.numpy())
    assert not np.array_equal(*results[1:])  # the streams go on
