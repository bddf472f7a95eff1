"""FirstRun: what a call finds, and how it is made again."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.autodiff.first_run import FirstRun, reading


def test_what_a_call_finds_that_somebody_records():
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
    with cytape.GradientTape() as tape:
        tape.watch(a)
        with reading() as reads:
            y = a * a
    assert tape.gradient(y, a) is None
    assert reads.follows(a.id) and not reads.follows(y.id)


def test_tapes_inside_record_as_ever():
    a = cytape.constant(3.0)
    with cytape.GradientTape() as tape:
        tape.watch(a)
        with reading() as reads:
            gradient = cytape.grad(lambda x: x * x * a)(a)
    assert float(gradient) == 18.0
    assert [x.id for x in reads.found] == [a.id]


def test_variables_are_those_that_were_watched_too():
    w = cytape.Variable(5.0, trainable=False)
    with cytape.GradientTape() as tape:
        tape.watch(w)
        run = FirstRun(lambda: w * w, (), {})
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
        with run.again():
            assert [float(x) for x in f()] == [float(x) for x in first]
        assert float(v) == 10.0
    assert rng.normal() == np.random.default_rng(0).normal(size=2)[1]
