"""Arguments of traced functions: those that differ have traces of their own."""

import collections
import dataclasses
import enum
import fractions
import functools
import gc
import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.tracing.cache_keys import describe_arguments
from cytape.graph.tracing.signature import is_object
from tests import ways
from tests.cases import each, sampled
from tests.graph.tracing.objects import Options, Scale

X = np.array([0.3, -1.2, 2.0])


class Level(enum.IntEnum):
    LOW = 1


def weighted(values):
    """Sum values with weights that depend on their order."""
    total = 0.0
    for i, value in enumerate(values):
        total = total + (i + 1.0) * value
    return total


def sign_and_type(x, value):
    return x * (2.0 if isinstance(value, bool) else 3.0 if isinstance(value, int) else 5.0) * (
        -1.0 if isinstance(value, float) and np.signbit(value) else 1.0)


# ---- keys: in eager code, under a tape, in a trace and in a graph a function is what its body is

CASES = {
    "numbers": (sign_and_type, [1, 2, True, 1.0, 0.0, -0.0]),
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
    return ways.run_in_graph(lambda x: f(x, argument), x)


def in_a_branch(f, x, argument):
    return cytape.function(
        lambda x: cytape.cond(cnp.sum(x) > -9.0, lambda: f(x, argument), lambda: x))(x)


@sampled(4, use=[eagerly, gradient, second_gradient, tangent, in_a_trace, in_a_graph, in_a_branch],
         name=CASES)
@pytest.mark.filterwarnings("ignore:.*is traced for the 5th time")
def test_no_two_arguments_that_differ_share_a_trace(name, use):
    body, arguments = CASES[name]
    f = cytape.function(body)
    expected = [np.asarray(use(body, X, argument)) for argument in arguments]
    for _ in range(2):
        for argument, right in zip(arguments, expected, strict=True):
            np.testing.assert_allclose(use(f, X, argument), right, rtol=1e-12)
    assert f.experimental_get_tracing_count() >= len(arguments)


@each("use", [eagerly, gradient, in_a_trace, in_a_graph])
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


class Row(tuple):
    def __array__(self, dtype=None, copy=None):
        return np.array(list(map(float, self)), dtype)


def test_containers_that_convert_to_arrays_are_containers():
    f = cytape.function(lambda row, x: row[0] * x + row[1])
    for n in range(3):
        assert float(f(Row([np.array(2.0 + n), np.array(3.0)]), np.array(5.0))) == 13.0 + 5.0 * n
    assert f.experimental_get_tracing_count() == 1


def test_equal_arguments_share_a_trace():
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
        return float(ways.gradient(f, x))

    def second(persistent):
        outer, slope = ways.taped(lambda x: ways.gradient(f, x), x, persistent=persistent)
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


# ---- arguments with types of their own


class Shifted(collections.namedtuple("Pair", "first second")):
    def __new__(cls, start):
        return super().__new__(cls, start, start + 1)


@each("argument, use", [
    (collections.Counter(a=3), lambda c: c["a"]),
    (collections.defaultdict(list, a=3), lambda c: c["a"]),
    (Shifted(3), lambda pair: pair.first),
    (Shifted(np.float64(3.0)), lambda pair: pair.first),
    (collections.Counter(a=np.float64(3.0)), lambda c: c["a"]),
])
def test_containers_of_other_types_have_the_contents_that_were_passed(argument, use):
    f = cytape.function(lambda c, x: x * use(c))
    for _ in range(2):
        assert float(f(argument, np.float64(2.0))) == 6.0
        assert float(cytape.grad(f, 1)(argument, np.float64(2.0))) == 3.0


def deep(n):
    nested = []
    for _ in range(n):
        nested = [nested]
    return nested


def cyclic(kind):
    container = kind()
    container.update(a=container) if kind is dict else container.append(container)
    return container


ENDLESS = [lambda: deep(200_000), *[functools.partial(cyclic, kind) for kind in (
    list, dict, collections.deque)]]


@each("make", ENDLESS)
def test_arguments_and_results_without_an_end(make):
    f = cytape.function(lambda argument, x: x)
    for call in (f, cytape.function(lambda argument, x: f(argument, x))):
        with pytest.raises(RecursionError, match="nested too deeply or contain"):
            call(make(), np.float64(1.0))
        assert float(call([], np.float64(1.0))) == 1.0
    if make is not ENDLESS[-1]:  # a leaf
        with pytest.raises(RecursionError, match="nested too deeply or contain"):
            cytape.function(lambda x: make())(np.float64(1.0))


@dataclasses.dataclass(frozen=True)
class Area:
    width: float

    @functools.cached_property
    def squared(self):
        return self.width**2


def test_caches_of_an_object_do_not_change_its_key():
    area, f = Area(3.0), cytape.function(lambda area, x: x * area.squared)
    for _ in range(3):
        assert float(f(area, np.float64(2.0))) == 18.0
    assert f.experimental_get_tracing_count() == 1
    assert float(f(Area(1.0), np.float64(2.0))) == 2.0


class Steps(list):
    @functools.cached_property
    def scale(self):
        return self.n


def test_stale_caches_of_an_object_count():
    a, b, f = Steps(), Steps(), cytape.function(lambda x, steps: x * steps.scale)
    a.n = 1.0
    assert a.scale == 1.0
    a.n = b.n = 2.0
    for _ in range(2):
        assert (float(f(np.float64(1.0), b)), float(f(np.float64(1.0), a))) == (2.0, 1.0)
    a.scale = 7.0
    assert float(f(np.float64(1.0), a)) == 7.0
    area, other, g = Area(3.0), Area(3.0), cytape.function(lambda area, x: x * area.squared)
    other.__dict__["squared"] = 5.0
    for _ in range(2):
        assert (float(g(area, np.float64(1.0))), float(g(other, np.float64(1.0)))) == (9.0, 5.0)
    assert g.experimental_get_tracing_count() == 2


@dataclasses.dataclass(frozen=True)
class Family:
    size: int

    @functools.cached_property
    def members(self):
        return [(self, i) for i in range(self.size)]

    @functools.cached_property
    def weights(self):
        return np.ones(self.size)

    @functools.cached_property
    def variable(self):
        return cytape.Variable(float(self.size))


@each("signature", [False, True])
def test_a_trace_that_has_properties_cached_is_found_again(signature):
    specs = {"input_signature": [cytape.Spec.of((), float)] * 2} if signature else {}
    f = cytape.function(
        lambda family, x, y: x * len(family.members) - y * family.weights[1], **specs)
    family, x, y = Family(3), np.float64(2.0), np.float64(1.0)
    for _ in range(3):
        assert float(f(family, x, y)) == 5.0
        assert float(f(Family(3), x, y)) == 5.0
    for _ in range(3):
        assert float(f(family, y=y, x=x)) == 5.0
    assert f.experimental_get_tracing_count() == 1 if signature else 2
    family.weights[:] = 2.0  # the same array, as ever when an array is part of an object
    assert float(f(family, x, y)) == 5.0
    del family.__dict__["weights"], family, _
    gc.collect()
    assert float(f(Family(3), x, y)) == 5.0


def test_variables_that_properties_cache_are_not_mistaken_for_others():
    v = cytape.Variable(10.0)
    for family in Family(3), Family(4):
        f = cytape.function(lambda family, v, x: x * v + family.variable)
        if family.size == 4:
            assert float(family.variable) == 4.0
        for _ in range(3):
            assert float(f(family, v, np.float64(2.0))) == 20.0 + family.size


@each("value, other", [
    (np.str_("a"), np.str_("b")), (np.bytes_(b"a"), np.bytes_(b"b")),
    (np.datetime64("2020-01-01"), np.datetime64("2021-01-01")),
    (np.timedelta64(1, "D"), np.timedelta64(2, "D")),
    (np.zeros((), "i4,f4")[()], np.ones((), "i4,f4")[()]),
])
@each("pack", [lambda x: x, lambda x: [x], lambda x: {"a": x}])
def test_scalars_that_are_no_numbers_are_values(value, other, pack):
    f = cytape.function(lambda m, x: x if m == pack(value) else -x)
    for _ in range(2):
        assert float(f(pack(value), np.float64(2.0))) == 2.0
        assert float(f(pack(other), np.float64(2.0))) == -2.0
    assert f.experimental_get_tracing_count() == 2


def test_words_of_users_are_no_marks_of_keys():
    f = cytape.function(lambda d, x: x * len(d))
    for words in (("object", "b", "c"), ("attributes", "b")):
        d = dict.fromkeys(words, 1)
        key, *_ = describe_arguments((d, *words), d)
        assert not any(map(is_object, key)) and float(f(d, np.float64(1.0))) == len(words)
    assert is_object(describe_arguments((object(),), {})[0][0])


class Arraylike:
    def __array__(self, dtype=None, copy=None):
        return X


def test_an_object_that_was_part_of_a_value_is_an_argument_like_before():
    f = cytape.function(lambda x, y: cnp.sum(x) if isinstance(x, cytape.Tensor) else 0.0 * y)
    f(Options(Arraylike()), X)
    assert float(f(Arraylike(), X)) == X.sum()
    for argument in (Scale(2.0), Scale(3.0)):
        times = cytape.function(lambda scale, x: scale.times(x))
        for _ in range(3):
            assert np.all(times(argument, X) == argument.factor * X)
