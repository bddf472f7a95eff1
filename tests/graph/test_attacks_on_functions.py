"""Attacks on what traced functions keep: keys that merge too much, and what is never forgotten."""

import collections
import dataclasses
import enum
import fractions
import functools
import gc
import random
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphError
from cytape.graph.executable import Executable
from cytape.graph.subgraph import Subgraph
from cytape.tensor.tensor import live_tensors

X = np.array([0.3, -1.2, 2.0])


@dataclasses.dataclass(frozen=True)
class Options:
    scale: Any
    note: Any = None


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __eq__(self, other):
        return int(self.factor) == int(other.factor)

    def __hash__(self):
        return 7

    def times(self, x):
        return x * self.factor


class Level(enum.IntEnum):
    LOW = 1


class Slots:
    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor


def weighted(values):
    """What depends on the order of values."""
    total = 0.0
    for i, value in enumerate(values):
        total = total + (i + 1.0) * value
    return total


def sign_and_type(x, value):
    return x * (2.0 if isinstance(value, bool) else 3.0 if isinstance(value, int) else 5.0) * (
        -1.0 if isinstance(value, float) and np.signbit(value) else 1.0)


# ---- keys: in eager code, under a tape, in a trace and in a graph a function is what its body is

CASES = {
    "order of a dict": (
        lambda x, d: weighted(d.values()) * x, [{"a": X, "b": 2 * X}, {"b": X, "a": 2 * X}]),
    "order of a dict of numbers": (
        lambda x, d: weighted(d.values()) * x, [{"a": 1, "b": 2}, {"b": 1, "a": 2}]),
    "keys that cannot be sorted": (
        lambda x, d: weighted(d.values()) * x, [{1: X, "b": 2 * X}, {"b": X, 1: 2 * X}]),
    "keys of types": (
        lambda x, d: weighted(sign_and_type(v, k) for k, v in d.items()) * x,
        [{1: X}, {True: X}, {1.0: X}, {0.0: X}, {-0.0: X}]),
    "a set": (lambda x, s: sign_and_type(x, next(iter(s))), [{1}, {True}, {1.0}, {0.0}, {-0.0}]),
    "a frozen set of tuples": (
        lambda x, s: sign_and_type(x, next(iter(s))[0]),
        [frozenset([(v,)]) for v in (1, True, 1.0, 0.0, -0.0)]),
    "a frozen dataclass": (
        lambda x, o: sign_and_type(x, o.scale), list(map(Options, (2, 2.0, True, 0.0, -0.0)))),
    "a frozen dataclass in one": (
        lambda x, o: sign_and_type(x, o.note[0].scale),
        [Options(1, [Options(v)]) for v in (2, 2.0, True, 0.0, -0.0)]),
    "objects that are equal": (lambda x, o: x * o.factor, [Scale(1.0), Scale(1.5)]),
    "methods of objects that are equal": (
        lambda x, f: f(x), [Scale(1.0).times, Scale(1.5).times]),
    "partials": (
        lambda x, f: sign_and_type(x, f()), [functools.partial(abs, v) for v in (1, True, 1.0)]),
    "slices": (lambda x, s: sign_and_type(x, s.start), [slice(v, 3) for v in (
        1, True, 1.0, 0.0, -0.0)]),
    "ranges": (lambda x, r: x * (1.0 + r.stop + r.step), [range(0), range(2, 1), range(1, 1, 5)]),
    "named tuples": (
        lambda x, t: x * len(type(t).__name__),
        [collections.namedtuple("P", "a b")(X, X), collections.namedtuple("Long", "a b")(X, X)]),
    "default factories": (
        lambda x, d: x * len(d["missing"]),
        [collections.defaultdict(lambda: [1], a=X), collections.defaultdict(lambda: [1, 2], a=X)]),
    "dtypes": (
        lambda x, d: x * (2.0 if d.isnative else 3.0), [np.dtype("<f8"), np.dtype(">f8")]),
    "NumPy scalars among attributes": (
        lambda x, o: x * float(o.scale.dtype.itemsize),
        [Options(np.float32(1)), Options(np.float64(1)), Options(np.int16(1))]),
    "enums and their numbers": (
        lambda x, v: x * (2.0 if isinstance(v, enum.Enum) else 3.0), [Level.LOW, 1]),
    "fractions": (
        lambda x, v: x * (2.0 if isinstance(v, int) else float(v)),
        [1, fractions.Fraction(1), fractions.Fraction(1, 3)]),
    "bytes": (lambda x, b: x * b[0], [b"a", b"b", bytearray(b"c"), memoryview(b"d")]),
    "signs of complex zeros": (
        lambda x, c: x * (np.signbit(c.real) + 2.0 * np.signbit(c.imag) + 1.0),
        [complex(a, b) for a in (0.0, -0.0) for b in (0.0, -0.0)]),
    "a list and a tuple": (
        lambda x, v: x * (2.0 if isinstance(v, list) else 3.0), [[X], (X,), [X, X], [[X]]]),
}


def eagerly(f, x, argument):
    return f(x, argument)


def gradient(f, x, argument):
    return cytape.grad(lambda x: cnp.sum(f(x, argument)))(x)


def second_gradient(f, x, argument):
    return cytape.grad(lambda x: cnp.sum(cytape.grad(
        lambda x: cnp.sum(f(x, argument) ** 3))(x) ** 2))(x)


def tangent(f, x, argument):
    return cytape.jvp(lambda x: f(x, argument), (x,), (x * x,))[1]


def in_a_trace(f, x, argument):
    return cytape.function(lambda x: f(x, argument))(x)


def in_a_graph(f, x, argument):
    graph = cytape.Graph()
    with graph.as_default():
        placeholder = cytape.placeholder("float64", (3,))
        y = f(placeholder, argument)
    return cytape.Session(graph).run(y, {placeholder: x})


def in_a_branch(f, x, argument):
    return cytape.function(
        lambda x: cytape.cond(cnp.sum(x) > -9.0, lambda: f(x, argument), lambda: x))(x)


@pytest.mark.parametrize("use", [
    eagerly, gradient, second_gradient, tangent, in_a_trace, in_a_graph, in_a_branch])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:.*is traced for the 5th time")
def test_no_two_arguments_that_differ_share_a_trace(name, use):
    body, arguments = CASES[name]
    f = cytape.function(body)
    expected = [np.asarray(use(body, X, argument)) for argument in arguments]
    for _ in range(2):
        for argument, right in zip(arguments, expected, strict=True):
            np.testing.assert_allclose(use(f, X, argument), right, rtol=1e-12)
    assert f.experimental_get_tracing_count() >= len(arguments)


@pytest.mark.parametrize("use", [eagerly, gradient, in_a_trace, in_a_graph])
def test_keyword_arguments_have_an_order(use):
    def body(x, **words):
        return weighted(words.values()) * x

    f = cytape.function(body)
    for words in ["ab", "ba"] * 2:
        def call(f, words=words):
            return lambda x, _: f(x, **{word: i + 1.0 for i, word in enumerate(words)})

        np.testing.assert_array_equal(use(call(f), X, None), use(call(body), X, None))
    named = cytape.function(lambda x, a, b: x * a - b)
    assert float(named(np.array(1.0), a=3, b=1)) == float(named(np.array(1.0), b=1, a=3)) == 2.0
    assert named.experimental_get_tracing_count() == 1  # it cannot tell


def test_results_may_have_keys_that_cannot_be_sorted():
    f = cytape.function(lambda x: {"b": x, 1: 2 * x, None: (x, 3 * x)})
    result = f(X)
    assert list(result) == ["b", 1, None]
    np.testing.assert_array_equal(result[1], 2 * X)
    np.testing.assert_array_equal(result[None][1], 3 * X)


def test_slices_beside_arrays_of_other_extents():
    f = cytape.function(lambda s, x: cnp.sum(s.to_tensor()) + cnp.sum(x), reduce_retracing=True)
    slices = cytape.IndexedSlices(cytape.constant([[2.0]]), cytape.constant([1]), (3, 1))
    for n in 1, 2, 3, 4:
        assert float(f(slices, np.ones(n))) == 2.0 + n
    assert f.experimental_get_tracing_count() == 2


def test_what_python_cannot_tell_apart_shares_a_trace():
    f = cytape.function(lambda x, *rest: x * 2.0)
    for make in (
        lambda: Options(2.0, ["a", {1: None}]), lambda: {"a": X, 2: [X, 1.5]}, lambda: slice(1, 2),
        lambda: float("nan"), lambda: fractions.Fraction(1, 3), lambda: {1, 2}, lambda: b"abc",
        lambda: np.dtype("f4"), lambda: collections.deque([1, 2], 3),
    ):
        before = f.experimental_get_tracing_count()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f(X, make()), f(X, make()), f(X.copy(), make())
        assert f.experimental_get_tracing_count() == before + 1
    scale = Scale(2.0)
    f = cytape.function(lambda x, g: g(x))
    f(X, scale.times), f(X, scale.times)
    assert f.experimental_get_tracing_count() == 1


def test_other_orders_of_derivatives_do_not_share_plans():
    f = cytape.function(lambda x: x**3)
    x = cytape.constant(2.0)

    def first():
        with cytape.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return float(tape.gradient(y, x))

    def second(persistent):
        with cytape.GradientTape(persistent=persistent) as outer:
            outer.watch(x)
            with cytape.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            slope = inner.gradient(y, x)
        return float(outer.gradient(slope, x))

    for _ in range(2):
        assert (first(), second(True), first(), second(False)) == (12.0, 12.0, 12.0, 12.0)


def test_byte_orders_strides_and_shapes_of_arrays():
    f = cytape.function(lambda x: cnp.ravel(x) * 1.0)
    a = np.arange(6.0).reshape(2, 3)
    for x in (a, np.asfortranarray(a), a[:, ::-1], a[::-1], a.astype(">f8"), a.astype("f4"), a.T,
              np.broadcast_to(a[0], (2, 3))):
        for _ in range(3):
            np.testing.assert_array_equal(f(x), np.ravel(x))


def test_sessions_tell_fetches_and_feeds_apart_and_keep_a_bounded_number():
    graph = cytape.Graph()
    x = graph.placeholder("float64", ())
    ys = [x * float(n) for n in range(100)]
    session = cytape.Session(graph)
    for n in [*range(100), *range(100)]:
        assert session.run(ys[n], {x: 2.0}) == 2.0 * n
        assert session.run([ys[n], x], {ys[n]: 1.0, x: 3.0}) == [1.0, 3.0]
        assert session.run([x, ys[n]], {x: 3.0, ys[n]: 1.0}) == [3.0, 1.0]
    assert len(session._executables) == 64


# ---- what is kept


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


@pytest.mark.parametrize("kept", KEPT)
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


@pytest.mark.parametrize("pack", [
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
            graph = cytape.Graph()
            with graph.as_default():
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


def test_constants_and_bodies_count():
    table = np.ones(10_000)
    f = cytape.function(lambda x: cytape.cond(
        cnp.sum(x) > 0, lambda: cnp.sum(x * table), lambda: cnp.sum(x)))
    f(table)
    assert f.cache_info().nbytes >= table.nbytes


@pytest.mark.parametrize("limit", ["max_traces", "max_bytes"])
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
    wrong = []

    def work(i):
        for n in range(60):
            scale = Scale(float(i + n))
            y = float(f(scale, np.array(2.0), n % 7))
            if y != 2.0 * scale.factor * (n % 7):
                wrong.append((i, n, y))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong and f.cache_info().traces <= 4


# ---- variables


class Layer:
    def __init__(self, initial):
        self.w = None
        self.initial = initial
        self.n_traces = 0

    @cytape.function
    def __call__(self, x):
        self.n_traces += 1
        if self.w is None:
            self.w = cytape.Variable(self.initial())
        return cnp.sum(self.w * x)


outside, variable_outside = cytape.constant([1.0, 2.0, 3.0]), cytape.Variable([1.0, 2.0, 3.0])


@pytest.mark.parametrize("initial", [
    lambda: [1.0, 2.0, 3.0], lambda: np.array([1.0, 2.0, 3.0]),
    lambda: cnp.cumsum(cnp.ones(3)), lambda: outside * 1.0, lambda: variable_outside * 1.0,
    lambda: lambda: outside * 1.0, lambda: cytape.function(lambda: outside * 1.0)(),
], ids=["list", "array", "ops", "captured", "variable", "callable", "function"])
@pytest.mark.parametrize("use", ["eager", "tape", "trace", "graph"])
def test_variables_are_made_once_and_for_each_object(initial, use):
    for _ in range(2):
        layer = Layer(initial)
        for x in X, 2 * X:
            if use == "tape":
                with cytape.GradientTape() as tape:
                    y = layer(x)
                np.testing.assert_array_equal(tape.gradient(y, layer.w), x)
            elif use == "trace":
                y = cytape.function(lambda x, layer=layer: layer(x))(x)
            elif use == "graph":
                graph = cytape.Graph()
                with graph.as_default():
                    y = layer(cytape.constant(x))
                y = cytape.Session(graph).run(y)
            else:
                y = layer(x)
            np.testing.assert_allclose(float(y), np.dot([1.0, 2.0, 3.0], x))
            layer.w.assign([1.0, 2.0, 3.0])
        assert layer.n_traces == 2  # the second to see that it makes no more
        layer(np.ones((2, 3)))
        assert layer.n_traces == 3


def test_random_initial_values_are_drawn_once():
    layer = Layer(lambda: cnp.random.normal(size=(3,)))
    y = layer(X)
    np.testing.assert_allclose(float(y), np.dot(layer.w.numpy(), X))
    assert len(set(layer.w.numpy())) == 3


def test_initial_values_that_depend_on_arguments_are_errors_and_nothing_stays():
    store = {}

    @cytape.function
    def f(x, how):
        if "v" not in store:
            store["v"] = cytape.Variable(how(x))
        return store["v"] * x

    for how in (lambda x: x, lambda x: x + 1.0, lambda x: lambda: x * 2.0):
        with pytest.raises(TypeError, match="symbolic, and was asked for its value"):
            f(X, how)
        assert f.cache_info().traces == 0 and not store
    f(X, lambda x: np.ones(3))


def test_values_after_an_assignment_are_no_initial_values():
    v = cytape.Variable(1.0)

    @cytape.function
    def f():
        v.assign_add(1.0)
        return cytape.Variable(v * 2.0) * 1.0

    with pytest.raises(TypeError, match="symbolic"):
        f()
    assert float(v) == 1.0


@pytest.mark.parametrize("around", [
    lambda f: f, cytape.grad, lambda f: lambda x: cytape.function(f)(x),
    lambda f: cytape.function(lambda x: cytape.cond(x > 0, lambda: f(x), lambda: x)),
])
def test_a_variable_for_each_trace_is_an_error(around):
    made = []

    @cytape.function
    def f(x):
        v = cytape.Variable(2.0)
        made.append(weakref.ref(v))
        return v * x

    for _ in range(2):
        with pytest.raises(GraphError, match="f made a variable, .* not for the first time"):
            around(f)(np.array(1.0))
    gc.collect()
    assert all(reference() is None for reference in made)
    assert f.cache_info().traces == f.experimental_get_tracing_count() - 2 == 0


def test_a_variable_of_a_later_trace_is_an_error_and_the_first_goes_on():
    store = {}

    @cytape.function
    def f(x):
        if x.shape not in store:
            store[x.shape] = cytape.Variable(2.0)
        return store[x.shape] * x

    np.testing.assert_array_equal(f(X), 2 * X)
    with pytest.raises(GraphError, match="not for the first time"):
        f(np.array(1.0))
    assert list(store) == [(3,)]
    np.testing.assert_array_equal(f(X), 2 * X)
    assert f.cache_info().traces == 1


def test_variables_of_functions_in_functions_count_for_the_outer_one():
    @cytape.function
    def outer(x):
        store = {}

        @cytape.function
        def inner(x):
            if not store:
                store["v"] = cytape.Variable(1.0)
            return store["v"] * x

        return inner(x)

    with pytest.raises(GraphError, match="outer made a variable"):
        outer(X)


def test_a_first_trace_that_fails_half_way_leaves_nothing_behind():
    layers = []

    class Failing:
        v = w = None

        @cytape.function
        def __call__(self, x):
            if self.v is None:
                self.v = cytape.Variable(1.0)
            if not layers:
                layers.append(1)
                raise KeyError("once")
            if self.w is None:
                self.w = cytape.Variable(2.0)
            return self.v * self.w * x

    f = Failing()
    with cytape.GradientTape() as tape:
        x = cytape.constant(3.0)
        tape.watch(x)
        with pytest.raises(KeyError):
            f(x)
        assert Failing.__call__.cache_info().traces == 0
        y = f(x)
    assert (float(y), float(tape.gradient(y, x))) == (6.0, 2.0)


def test_a_derivative_that_makes_variables_is_an_error():
    @cytape.custom_gradient
    def twice(x):
        return x * 2.0, lambda g: g * cytape.Variable(2.0)

    f = cytape.function(lambda x: twice(x))
    with pytest.raises(GraphError, match="made a variable"):
        cytape.grad(f)(2.0)
    np.testing.assert_array_equal(f(X), 2 * X)


def test_variables_by_name_are_those_of_the_graph_around():
    f = cytape.function(lambda x: cytape.get_variable("w", (), initializer=2.0) * x)
    with pytest.raises(RuntimeError, match="could have a variable 'w'"):
        f(X)
    graphs = cytape.Graph(), cytape.Graph()
    for graph in (*graphs, *graphs):
        with graph.as_default():
            y = f(cytape.constant(3.0))
            w = cytape.get_variable("w")
            z = cytape.cond(y > 0, lambda: cytape.get_variable("w") * 5.0, lambda y=y: y)
        value = 4.0 + graphs.index(graph)
        w.assign(value)
        assert cytape.Session(graph).run([y, z]) == [3.0 * value, 5.0 * value]


# ---- random numbers


rng = np.random.default_rng(0)
gauss = random.gauss


def noisy(x):
    return x * rng.normal()


class Noise:
    def __init__(self):
        self.rng, self.old = np.random.default_rng(1), np.random.RandomState(1)
        self.python = random.Random(1)

    @cytape.function
    def new(self, x):
        return x * self.rng.normal(size=3)

    @cytape.function
    def legacy(self, x):
        return x * self.old.randn()

    @cytape.function
    def plain(self, x):
        return x * self.python.gauss(0.0, 1.0)


DRAWS = {
    "np.random": lambda: lambda x: x * np.random.rand(),
    "np.random, of a pair": lambda: lambda x: x * np.random.randn(),
    "np.random, one turn": lambda: lambda x: x * np.sum(np.random.rand(312)),
    "np.random.shuffle": lambda: lambda x: x * np.random.permutation(3),
    "a Generator": lambda: lambda x: x * rng.normal(),
    "a function's": lambda: noisy,
    "a gradient's": lambda: cytape.grad(lambda x: cnp.sum(noisy(x))),
    "in a branch": lambda: lambda x: cytape.cond(
        cnp.sum(x) > 0, lambda: noisy(x), lambda: x),
    "random": lambda: lambda x: x * random.random(),
    "random, imported": lambda: lambda x: x * gauss(0.0, 1.0),
    "in a closure": lambda: (lambda own: lambda x: x * own.standard_normal())(
        np.random.default_rng(2)),
    "an attribute": lambda: (lambda noise: lambda x: x * noise.rng.normal())(Noise()),
    "PCG64DXSM": lambda: (lambda own: lambda x: x * own.random())(
        np.random.Generator(np.random.PCG64DXSM(1))),
    "MT19937": lambda: (lambda own: lambda x: x * own.random())(
        np.random.Generator(np.random.MT19937(1))),
    "Philox": lambda: (lambda own: lambda x: x * own.random())(
        np.random.Generator(np.random.Philox(1))),
    "SFC64": lambda: (lambda own: lambda x: x * own.random())(
        np.random.Generator(np.random.SFC64(1))),
    "half a word": lambda: (lambda own: lambda x: x * own.integers(2, dtype="uint32"))(
        np.random.default_rng(1)),
    "new": lambda: Noise().new, "legacy": lambda: Noise().legacy, "plain": lambda: Noise().plain,
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_of_python_are_warned_of_at_their_line(name):
    np.random.randn()  # keeps one of a pair
    body = DRAWS[name]()
    f = body if name in ("new", "legacy", "plain") else cytape.function(body)
    with pytest.warns(UserWarning, match="drew random numbers .* cytape.numpy.random") as caught:
        f(X)
    assert len(caught) == 1 and caught[0].filename == __file__
    with open(__file__) as source:
        line = source.read().splitlines()[caught[0].lineno - 1]
    assert any(word in line for word in ("rand", "rng.", "own.", "gauss", "python.", "perm"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(X)


@pytest.mark.parametrize("argument", [
    lambda: np.random.default_rng(1), lambda: np.random.RandomState(1), lambda: random.Random(1)])
@pytest.mark.parametrize("packed", [lambda x: x, lambda x: [x], lambda x: {"a": (x,)}])
def test_draws_from_arguments_are_warned_of(argument, packed):
    def f(x, given):
        while isinstance(given, (list, dict, tuple)):
            given = given["a"] if isinstance(given, dict) else given[0]
        return x * given.uniform(0.0, 1.0)

    with pytest.warns(UserWarning, match="f drew random numbers from a "):
        cytape.function(f)(X, packed(argument()))


@pytest.mark.parametrize("body", [
    lambda x: x * cnp.random.normal(size=3), lambda x: cytape.nn.dropout(x, 0.5),
    lambda x: x * np.random.default_rng(3).normal(), lambda x: x * float(rng is not None),
    lambda x: x * len(repr(np.random)), Layer(lambda: np.random.rand(3)),
    Layer(lambda: rng.normal(size=3)),
], ids=["ops", "dropout", "its own", "not used", "not drawn", "a variable", "another"])
def test_what_is_drawn_anew_or_for_variables_is_not_warned_of(body):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        body(X) if isinstance(body, Layer) else cytape.function(body)(X)
