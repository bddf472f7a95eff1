"""Random numbers that Python draws in a trace are warned of, at their line."""

import random
import types
import warnings

import numpy as np
import pytest
from numpy.random import seed

import cytape
import cytape.numpy as cnp
from tests.cases import each
from tests.graph.tracing.objects import layer_class

X = np.array([0.3, -1.2, 2.0])
Layer = layer_class()
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


class Dropout:
    settings = {"rng": np.random.default_rng(3)}

    def __init__(self):
        self.rng, self.l = np.random.default_rng(4), [np.random.default_rng(5)]

    def noise(self):
        return self.helper()

    def helper(self):
        return self.rng.normal()

    @property
    def drawn(self):
        return self.rng.normal()


class Slotted:
    __slots__ = ("inner",)

    def __init__(self):
        self.inner = Dropout()


class Model:
    rng = np.random.default_rng(6)

    def __init__(self):
        self.inner, self.layers, self.slotted = Dropout(), {"a": [Dropout()]}, Slotted()


model = Model()

DRAWS = {
    "an inner object's": lambda: lambda x: x * model.inner.noise(),
    "a layer's": lambda: lambda x: x * model.layers["a"][0].noise(),
    "an inner attribute": lambda: lambda x: x * model.inner.rng.normal(),
    "an item": lambda: lambda x: x * model.inner.l[0].normal(),  # rng.
    "a slot's": lambda: lambda x: x * model.slotted.inner.noise(),
    "a class's": lambda: lambda x: x * model.rng.normal(),
    "of a class": lambda: lambda x: x * Model.rng.normal(),
    "a dict's of a class": lambda: lambda x: x * Dropout.settings["rng"].normal(),  # rng.
    "a property's": lambda: lambda x: x * model.inner.drawn,
    "in a loop": lambda: lambda x: cytape.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, y * np.random.rand()), (cnp.sum(x) * 0, x))[1],
    "a local in a branch": lambda: lambda x: (lambda own: cytape.cond(
        cnp.sum(x) > 0, lambda: x * own.normal(), lambda: x))(model.inner.l[0]),
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


@each("name", DRAWS)
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


@each("argument", [
    lambda: np.random.default_rng(1), lambda: np.random.RandomState(1), lambda: random.Random(1)])
@each("packed", [lambda x: x, lambda x: [x], lambda x: {"a": (x,)}])
def test_draws_from_arguments_are_warned_of(argument, packed):
    def f(x, given):
        while isinstance(given, (list, dict, tuple)):
            given = given["a"] if isinstance(given, dict) else given[0]
        return x * given.uniform(0.0, 1.0)

    with pytest.warns(UserWarning, match="f drew random numbers from a "):
        cytape.function(f)(X, packed(argument()))


@each("body", [
    lambda x: x * cnp.random.normal(size=3), lambda x: cytape.nn.dropout(x, 0.5),
    lambda x: x * np.random.default_rng(3).normal(), lambda x: x * float(rng is not None),
    lambda x: x * len(repr(np.random)), Layer(lambda: np.random.rand(3)),
    Layer(lambda: rng.normal(size=3)),
], ids=["ops", "dropout", "its own", "not used", "not drawn", "a variable", "another"])
def test_fresh_draws_and_draws_for_variables_give_no_warning(body):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        body(X) if isinstance(body, Layer) else cytape.function(body)(X)


@each("build", [
    lambda x: cytape.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, y * np.random.rand()), (0, x)),
    lambda x: cytape.while_loop(
        lambda i, y: i < 2 * np.random.rand(), lambda i, y: (i + 1, y), (0, x)),
    lambda x: cytape.cond(cnp.sum(x) > 0, lambda: x * model.inner.noise(), lambda: x),
    lambda x: cytape.cond(cnp.sum(x) > 0, lambda: x, lambda: x * rng.normal()),
], ids=["body", "condition", "branch", "other branch"])
def test_draws_in_bodies_that_a_graph_has_are_warned_of(build):
    graph = cytape.Graph()
    x = graph.placeholder("float64", (3,))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with graph.as_default():
            build(x)
    assert [w.filename for w in caught] == [__file__]
    assert "drew random numbers from" in str(caught[0].message)


def test_seeding_in_a_trace_is_no_draw():
    def f(x):
        cnp.random.seed(3)
        return x + cnp.random.normal(size=3)

    traced = cytape.function(f)
    with pytest.warns(UserWarning, match="f seeded np.random once, .* not in each call") as caught:
        first = traced(X)
    assert (len(caught), caught[0].lineno) == (1, f.__code__.co_firstlineno + 1)
    second = traced(X)
    assert not np.array_equal(first, second)
    cnp.random.seed(3)
    np.testing.assert_array_equal(traced(X), first)
    with pytest.warns(UserWarning, match="f seeded"):  # also to where the generator is
        cnp.random.seed(3)
        cytape.function(f)(X)


own, state = np.random.RandomState(0), np.random.RandomState(4).get_state()
SEEDINGS = {
    "np.random": lambda x: (np.random.seed(3), x + cnp.random.normal(size=3))[1],
    "imported": lambda x: (seed(3), x)[1],
    "a state": lambda x: (np.random.set_state(state), x)[1],
    "a RandomState": lambda x: (own.seed(3), x)[1],
    "Python's random": lambda x: (random.seed(3), x)[1],
}


@each("name", SEEDINGS)
def test_seeding_is_told_from_drawing(name):
    what = name if name in ("a RandomState", "Python's random") else "np.random"
    with pytest.warns(UserWarning, match=f"seeded {what} once, .*pass seed=") as caught:
        cytape.function(SEEDINGS[name])(X)
    assert [(w.filename, w.lineno) for w in caught] == [
        (__file__, SEEDINGS[name].__code__.co_firstlineno)]
    for rand in (np.random.rand, own.rand, random.random):  # to where it is, it cannot be told
        rand()
    with pytest.warns(UserWarning, match="seeded .* and not for each member"):
        cytape.vmap(SEEDINGS[name])(np.ones((2, 3)))


def test_setting_the_state_of_a_generator_is_told_from_drawing():
    before = rng.bit_generator.state

    def f(x):
        rng.bit_generator.state = before
        return x + cnp.random.normal(size=3)

    def drawing(x):
        rng.bit_generator.state = before
        return x + rng.normal(size=3)

    rng.normal()  # to where it is, it cannot be told
    with pytest.warns(UserWarning, match="f set the state of a Generator once, .*seed=") as caught:
        cytape.function(f)(X)
    assert caught[0].lineno == f.__code__.co_firstlineno + 1
    with pytest.warns(UserWarning, match="drew random numbers from a Generator") as caught:
        cytape.function(drawing)(X)
    assert caught[0].lineno == drawing.__code__.co_firstlineno + 2


def test_who_could_seed_may_have_drawn():
    def f(x, again=False):
        if again:
            np.random.seed(3)
        return x + np.random.rand()

    with pytest.warns(UserWarning, match="f drew random numbers from np.random") as caught:
        cytape.function(f)(X)
    assert caught[0].lineno == f.__code__.co_firstlineno + 3


class Proxy:
    """Says that it was asked."""

    def __getattribute__(self, name):
        raise AssertionError(name)


class Items(dict):
    def values(self):
        raise AssertionError("values")


def test_no_code_of_users_runs_to_find_generators():
    proxy, items, module = Proxy(), Items(rng=rng), types.ModuleType("lazy")
    module.__getattr__ = lambda name: pytest.fail(name)

    def f(x):
        return x if proxy is None else x * (items is not None) * noisy(1.0) if module else x

    with pytest.warns(UserWarning, match="f drew"):
        cytape.function(f)(X)


def test_members_of_a_batch_get_the_same():
    def f(x):
        return x + np.random.normal()

    mapped = cytape.vmap(f)
    with pytest.warns(UserWarning, match="drew .*; all members get the same. .* for each member"):
        found = mapped(np.zeros(3))
    assert len(set(found)) == 1
    with pytest.warns(UserWarning, match="all members get the same"):
        again = mapped(np.zeros(3))
    assert found[0] != again[0]
    with pytest.warns(UserWarning, match="all members get the same, in each call"):
        cytape.function(mapped)(np.zeros(3))


def test_members_get_the_same_from_a_branch():
    def f(x):
        return cytape.cond(x > 0, lambda: x + np.random.normal(), lambda: x)

    with pytest.warns(UserWarning, match="all members get the same"):
        assert len(set(cytape.vmap(f)(np.ones(3)))) == 1


def test_seeding_that_no_line_shows_is_no_draw():
    def imported(x):
        import cytape.numpy as library
        library.random.seed(3)
        return x

    def aliased(x):
        found = cnp.random
        found.seed(3)
        return x

    def beside_its_state(x):
        np.random.get_state()
        cnp.random.seed(3)
        return x

    for function in (imported, aliased, beside_its_state):
        with pytest.warns(UserWarning, match="seeded np.random once"):
            cytape.function(function)(np.ones(2))
