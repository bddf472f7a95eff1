"""The cache of traces: they are dropped with their objects, and the rest is bounded."""

import functools
import gc
import warnings
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run.executable import Executable
from cytape.tensor.tensor import live_tensors
from tests.cases import each
from tests.graph.tracing.objects import Options, Scale
from tests.threads import in_threads

X = np.array([0.3, -1.2, 2.0])


class Slots:
    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor


class Model:
    def __init__(self, n=20_000):
        self.w = cytape.Variable(np.ones(n))

    @cytape.function
    def loss(self, x):
        return cnp.sum(cnp.exp(self.w * x) * self.w)


def loss_of(model, x):
    return cnp.sum(cnp.exp(model.w * x) * model.w)


def use(model, how):
    f, kept = how
    call = {
        "method": lambda x: model.loss(x),
        "argument": lambda x: f(model, x),
        "keyword": lambda x: f(x=x, model=model),
        "in a list": lambda x: f([model], x),
        "in a dataclass": lambda x: f(Options(model), x),
        "bound": lambda x: f(model.loss.__func__.__wrapped__.__get__(model), x),
        "attribute": lambda x: f(functools.partial(loss_of, model), x),
    }[kept]
    y = cytape.grad(call)(1.0)
    np.testing.assert_allclose(float(y), np.e * model.w.numpy().size)


KEPT = {
    "method": None, "argument": lambda: loss_of, "keyword": lambda: loss_of,
    "in a list": lambda: lambda models, x: loss_of(*models, x),
    "in a dataclass": lambda: lambda options, x: loss_of(options.scale, x),
    "bound": lambda: lambda f, x: f(x), "attribute": lambda: lambda f, x: f(x),
}


@each("kept", KEPT)
@pytest.mark.filterwarnings("ignore:.*is traced for the 5th time")
def test_traces_go_with_the_objects_that_they_are_for(kept):
    f = Model.loss if kept == "method" else cytape.function(KEPT[kept]())
    f.cache_clear()
    gc.collect()
    tensors = live_tensors()
    gone = []
    for _ in range(40):
        model = Model()
        use(model, (f, kept))
        info = f.cache_info()
        assert info.traces == 1 and info.plans >= 2
        gone += [weakref.ref(model), weakref.ref(model.w)]
        del model
        assert f.cache_info()[:3] == (0, 0, 0)
    assert all(reference() is None for reference in gone)
    gc.collect()
    assert live_tensors() <= tensors


@each("pack", [
    lambda v, w: (v, w), lambda v, w: ({"w": w, "v": [v]},), lambda v, w: (Options(v), w),
    lambda v, w: (v, w, v, [w])])
@pytest.mark.filterwarnings("ignore:.*is traced for the 5th time")
def test_traces_go_with_the_variables_that_they_are_for(pack):
    def found(x):
        if isinstance(x, cytape.Variable):
            return {x.name: x}
        x = x.values() if isinstance(x, dict) else [x.scale] if isinstance(x, Options) else x
        return {name: v for part in x for name, v in found(part).items()}

    captured = cytape.Variable(2.0)

    @cytape.function
    def f(x, *packed):
        variables = found(packed)
        return cnp.sum(cnp.exp(variables["v"] * x) * variables["w"]) * captured

    for _ in range(5):
        v = cytape.Variable(np.zeros(10_000), name="v")
        w = cytape.Variable(np.ones(10_000), name="w")
        for scale in 1.0, 3.0:
            w.assign(np.full(10_000, scale))
            with cytape.GradientTape() as tape:
                y = f(np.array(2.0), *pack(v, w))
            dv, dw, dc = tape.gradient(y, [v, w, captured])
            assert float(y) == scale * 20_000 and float(dc) == scale * 10_000
            np.testing.assert_array_equal(dv, np.full(10_000, 4.0 * scale))
            np.testing.assert_array_equal(dw, np.full(10_000, 2.0))
            with cytape.Graph().as_default() as graph:
                y = f(cytape.constant(2.0), *pack(v, w))
                slope = cytape.gradients(y, w)[0]
            y, slope = cytape.Session(graph).run([y, slope])
            assert y == scale * 20_000 and slope[0] == 2.0
        trace = f.get_concrete_function(np.array(2.0), *pack(v, w))
        assert float(trace(2.0)) == 60_000 and trace.captured_inputs == [captured]
        gone = weakref.ref(v), weakref.ref(w)
        del v, w, tape, y, slope, dv, dw, dc, graph
        assert [reference() for reference in gone] == [None, None]
        assert f.cache_info().traces == 0
        with pytest.raises(RuntimeError, match="a variable that f was traced with is gone"):
            trace(2.0)


def test_a_gradient_function_is_called_with_tensors_not_with_variables():
    v = cytape.Variable(3.0)
    f = cytape.function(lambda v, x: v * x, grad_func=lambda x, g: 10.0 * g)
    with cytape.GradientTape() as tape:
        x = cytape.constant(2.0)
        tape.watch(x)
        y = f(v, x)
    dx, dv = tape.gradient(y, [x, v])
    assert (float(y), float(dx), dv) == (6.0, 10.0, None)


def test_traces_go_with_objects_that_are_parts_of_cycles():
    f = cytape.function(loss_of)
    model = Model()
    model.itself = model
    use(model, (f, "argument"))
    gone = weakref.ref(model.w)
    del model
    gc.collect()
    assert f.cache_info().traces == 0 and gone() is None


def test_an_object_in_the_place_of_a_dead_one_has_a_trace_of_its_own():
    f = cytape.function(lambda scale, x: x * scale.factor)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for factor in range(200):  # most have the address of the one before
            assert float(f(Scale(float(factor)), np.array(2.0))) == 2.0 * factor
            assert float(f(Slots(float(factor)), np.array(2.0))) == 2.0 * factor
    assert f.cache_info().traces <= 128


def test_functions_are_forgotten_with_all_they_keep():
    gc.collect()
    tensors = live_tensors()
    for _ in range(5):
        model = Model()
        f = cytape.function(loss_of)
        use(model, (f, "argument"))
        gone = weakref.ref(f), weakref.ref(next(iter(f._traces.by_key.values())))
        del f
        assert [reference() for reference in gone] == [None, None]
        del model
    assert live_tensors() <= tensors


@pytest.mark.filterwarnings("ignore:.*is traced for the 5th time")
def test_the_traces_used_least_recently_make_room():
    traced = []
    f = cytape.function(lambda x, n: traced.append(n) or x * n, max_traces=3)
    for n in 1, 2, 3, 1, 4, 1, 3, 2:
        assert float(f(np.array(2.0), n)) == 2.0 * n
        assert f.cache_info().traces <= 3
    assert traced == [1, 2, 3, 4, 2]
    f.cache_clear()
    assert f.cache_info() == (0, 0, 0, 3, 1 << 30)
    f(np.array(2.0), 1)
    assert traced == [1, 2, 3, 4, 2, 1]


@pytest.mark.filterwarnings("ignore:.*is traced for the 5th time")
def test_the_bytes_of_traces_are_bounded():
    x = np.ones(50_000)
    f = cytape.function(lambda x, n: cnp.sum(cnp.cumsum(cnp.exp(x * n)) * x), max_bytes=3_000_000)
    sizes = []
    for n in range(12):
        f(x, n)
        sizes.append(f.cache_info().nbytes)
    assert f.cache_info().max_bytes == 3_000_000
    assert sizes[0] >= x.nbytes and max(sizes) <= 3_000_000 + sizes[0]
    assert 1 <= f.cache_info().traces < 12
    large = cytape.function(lambda x: cnp.sum(cnp.cumsum(x) * x), max_bytes=1)
    for _ in range(2):  # the one that is used stays
        assert large(x) == cnp.sum(cnp.cumsum(x) * x)
    assert large.experimental_get_tracing_count() == large.cache_info().traces == 1


def wavy(x):
    return cnp.cumsum(cnp.sin(x)) @ cnp.cumsum(cnp.cos(x))


def gradient_of(f):
    return lambda x: cytape.grad(f)(x)


def tangent_of(f):
    return lambda x: cytape.jvp(f, (x,), (x,))


@each("body", [
    wavy,
    lambda x: cytape.cond(x[0] > 0, lambda: wavy(x), lambda: cnp.sum(x)),
    lambda x: cytape.while_loop(
        lambda i, y: i < 2, lambda i, y: [i + 1, wavy(y) * y / 1e9], [0, x])[1].sum(),
], ids=["plain", "branch", "loop"])
@each("use", [lambda f: f, gradient_of, tangent_of])
def test_plans_for_new_extents_and_derivatives_are_bounded(body, use):
    f = cytape.function(body, reduce_retracing=True, max_bytes=300_000)
    unbounded = cytape.function(body, reduce_retracing=True, max_bytes=None)
    for function in (f, unbounded):
        for n in range(5_000, 5_030):
            use(function)(np.ones(n))
    # Every part of the trace that is used keeps one plan.
    n_parts = len(next(iter(f._traces.by_key.values())).executables())
    info, all_of_it = f.cache_info(), unbounded.cache_info()
    assert info.nbytes <= max(300_000, all_of_it.nbytes / all_of_it.plans * 3 * n_parts)
    assert info.nbytes < all_of_it.nbytes / 3
    assert f.experimental_get_tracing_count() == 2


@pytest.mark.filterwarnings("ignore:.*is traced for the 5th time")
def test_collections_while_there_is_made_room():
    f = cytape.function(lambda model, x: x * model.factor, max_traces=20)
    thresholds = gc.get_threshold()
    gc.set_threshold(5, 2, 2)
    try:
        for n in range(600):
            model = Scale(float(n))
            model.self = model
            assert float(f(model, np.float64(2.0))) == 2.0 * n
            assert f.cache_info().traces <= 20
    finally:
        gc.set_threshold(*thresholds)


def test_constants_and_bodies_count():
    table = np.ones(10_000)
    f = cytape.function(lambda x: cytape.cond(
        cnp.sum(x) > 0, lambda: cnp.sum(x * table), lambda: cnp.sum(x)))
    f(table)
    assert f.cache_info().nbytes >= table.nbytes


@each("limit", ["max_traces", "max_bytes"])
def test_limits_are_checked(limit):
    with pytest.raises(ValueError, match=f"{limit} must be at least 1, or None, got 0"):
        cytape.function(lambda x: x, **{limit: 0})
    with pytest.raises(TypeError):
        cytape.function(lambda x: x, **{limit: 1.5})
    f = cytape.function(lambda x, n: x * n, **{limit: None})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(150):
            f(X, n)
    assert f.cache_info().traces == (150 if limit == "max_traces" else 128)


def test_extents_that_a_trace_serves_are_bounded():
    f = cytape.function(lambda x: cnp.sum(x * x), reduce_retracing=True)
    for n in [*range(1, 300), *range(1, 300)]:
        assert float(f(np.ones(n))) == n
    assert f.experimental_get_tracing_count() == 2
    assert len(f._traces.by_key) <= 66 and f.cache_info().plans <= 65


def test_plans_used_least_recently_make_room():
    graph = cytape.Graph()
    x = graph.placeholder("float64", (None,))
    y = np.sum(np.tanh(x) * x)
    executable = Executable(Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(y),)))
    often, made = np.ones(1000), []
    for n in range(1, 200):
        executable.run([often])
        executable.run([np.ones(n)])
        made.append(executable.n_plans)
    assert max(made) == 64 and executable.nbytes > 0
    big = [np.ones(2**22 + n) for n in range(9)]  # 32 MiB each for what is between
    for x in big:
        executable.run([x])
    assert executable.nbytes <= 2**28 and executable.n_plans >= 1


def test_threads_that_trace_and_forget_at_once():
    f = cytape.function(lambda scale, x, n: x * scale.factor * n, max_traces=4)

    def work(i):
        for n in range(60):
            scale = Scale(float(i + n))
            assert float(f(scale, np.array(2.0), n % 7)) == 2.0 * scale.factor * (n % 7)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        in_threads(work, *range(4))
    assert f.cache_info().traces <= 4


def test_nodes_count_among_what_a_function_keeps():
    def steps(n):
        def f(x):
            for _ in range(n):
                x = np.sin(x) * 2.0
            return x

        traced = cytape.function(f)
        traced(np.ones(2))
        return traced.cache_info().nbytes

    few, many = steps(10), steps(1010)
    assert many - few > 2000 * 100  # nodes, symbols, instructions
