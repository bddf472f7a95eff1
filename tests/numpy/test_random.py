"""cytape.numpy.random: all that numpy.random draws, wherever it is called."""

import inspect
import re
import warnings

import numpy
import pytest

import cytape
import cytape.numpy as np
from cytape.graph import Graph, Session
from cytape.ops.sampling import distributions
from tests.cases import each

COV = numpy.array([[2.0, 0.5], [0.5, 1.0]])
CALLS = {
    "beta": (2.0, 3.0, 3), "binomial": (9, 0.2, 3), "chisquare": (2.0, 3),
    "choice": (numpy.arange(9.0), 3), "dirichlet": ([1.0, 2.0], 3), "exponential": (2.0, 3),
    "f": (2.0, 3.0, 3), "gamma": ([1.0, 2.0], 2.0), "geometric": (0.05, 3), "gumbel": (1.0, 2.0, 3),
    "hypergeometric": (50, 40, 30, 3), "laplace": (1.0, 2.0, 3), "logistic": (1.0, 2.0, 3),
    "lognormal": (1.0, 0.5, 3), "logseries": (0.95, 9), "multinomial": (99, [0.25, 0.75], 3),
    "multivariate_normal": (numpy.ones(2), COV, 3), "negative_binomial": (3, 0.05, 3),
    "noncentral_chisquare": (2.0, 3.0, 3), "noncentral_f": (2.0, 3.0, 1.0, 3),
    "normal": (1.0, 2.0, (2, 3)), "pareto": (2.0, 3), "permutation": (99,), "poisson": (30.0, 3),
    "power": (2.0, 3), "rand": (2, 3), "randint": (2, 99, 3), "randn": (2, 3), "random": (3,),
    "random_integers": (2, 99, 3), "random_sample": (3,), "ranf": (), "rayleigh": (2.0, 3),
    "sample": (3,), "standard_cauchy": (3,), "standard_exponential": (3,),
    "standard_gamma": (2.0, 3), "standard_normal": (3,), "standard_t": (3.0, 3),
    "triangular": (-1.0, 0.5, 2.0, 3), "uniform": (1.0, 2.0, 3), "vonmises": (0.5, 2.0, 3),
    "wald": (1.0, 2.0, 3), "weibull": (2.0, 3), "zipf": (1.2, 9)}
NO_OPS = {"bytes", "shuffle"}  # they make no array
NO_DRAWS = {"default_rng", "get_state", "seed", "set_state"}
FLOATS = [
    name for name, (*args, _) in ((name, (*CALLS[name], None)) for name in CALLS)
    if name not in ("choice", "permutation")
    and any(isinstance(x, float | list | numpy.ndarray) for x in args)]


@pytest.fixture(autouse=True)
def no_deprecations():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "This function is deprecated", DeprecationWarning)
        yield


def drawn_by(module, name, n=1):
    """Return what a module's function draws after a seed, in a row of calls."""
    numpy.random.seed(5)
    results = [getattr(module, name)(*CALLS[name]) for _ in range(n)]
    return results if n > 1 else results[0]


def assert_same(found, expected):
    found, expected = numpy.asarray(found), numpy.asarray(expected)
    assert found.dtype == expected.dtype
    numpy.testing.assert_allclose(found, expected, rtol=1e-13)


def test_our_functions_come_first_and_the_rest_is_numpys():
    assert np.random.normal is distributions.normal
    assert np.random.default_rng is numpy.random.default_rng
    assert {"normal", "default_rng"} <= set(dir(np.random))
    assert {*CALLS, *NO_OPS, "seed", "integers"} <= set(dir(np.random))


def test_it_is_part_of_the_namespace():
    assert type(cytape.numpy.random.random()) is float


def test_all_that_draws_is_here_with_numpys_parameters():
    functions = {name for name in numpy.random.__all__
                 if not isinstance(getattr(numpy.random, name), type)}
    assert functions - NO_DRAWS - NO_OPS == set(CALLS)
    for name in functions - NO_DRAWS - {"rand", "randn", "ranf", "sample"} | {"seed"}:
        theirs = re.search(r"\((.*)\)", getattr(numpy.random, name).__doc__).group(1)
        names = [parameter.partition("=")[0].strip() for parameter in theirs.split(",")]
        ours = list(inspect.signature(getattr(np.random, name)).parameters)
        assert ours[: len(names)] == names, name


@each("name", CALLS)
def test_they_draw_numpys_own_numbers(name):
    for found, expected in zip(
            drawn_by(np.random, name, 2), drawn_by(numpy.random, name, 2), strict=True):
        assert type(found) is type(expected)
        numpy.testing.assert_array_equal(found, expected)


@each("name", CALLS)
def test_a_function_draws_them_in_each_call(name):
    f = cytape.function(lambda: getattr(np.random, name)(*CALLS[name]))
    f()
    first, second = expected = drawn_by(numpy.random, name, 2)
    assert not numpy.array_equal(first, second)
    for seed in (np.random.seed, numpy.random.seed):
        seed(5)
        for e in expected:
            assert_same(f(), e)


@each("name", CALLS)
def test_a_graph_draws_them_in_each_run(name):
    expected, graph = drawn_by(numpy.random, name, 2), Graph()
    with graph.as_default():
        y = getattr(np.random, name)(*CALLS[name])
    assert y.graph is graph
    session = Session(graph)
    numpy.random.seed(5)
    for e in expected:
        value = session.run(y)
        assert y.shape == numpy.shape(value)
        assert_same(value, e)


@each("name", CALLS)
def test_a_graph_from_a_file_draws_them(name, tmp_path_factory):
    with Graph().as_default() as graph:
        cytape.identity(getattr(np.random, name)(*CALLS[name]), name="y")
    path = tmp_path_factory.mktemp("graphs") / "graph"
    graph.save(path)
    session = Session(Graph.load(path))
    expected = drawn_by(numpy.random, name, 2)
    numpy.random.seed(5)
    for e in expected:
        assert_same(session.run("y:0"), e)


@each("name", CALLS)
def test_bodies_draw_them_in_each_iteration(name):
    a, b, c = drawn_by(numpy.random, name, 3)

    def draw():
        return getattr(np.random, name)(*CALLS[name]) * 1.0

    @cytape.function
    def looped(n):
        i, total = cytape.constant(0), np.zeros(numpy.shape(a))
        return cytape.while_loop(lambda i, _: i < n, lambda i, x: (i + 1, 2 * x + draw()),
                                 (i, total))[1]

    @cytape.function
    def branched(x):
        return cytape.cond(x > 0, draw, lambda: np.zeros(numpy.shape(a)))

    @cytape.function
    def scanned(xs):
        return cytape.scan(lambda _, x: x * draw(), xs, np.zeros(numpy.shape(a)))

    numpy.random.seed(5)
    assert_same(looped(numpy.array(3)), 4.0 * a + 2.0 * b + c)
    numpy.random.seed(5)
    assert_same(branched(numpy.array(1.0)), a * 1.0)
    assert_same(branched(numpy.array(-1.0)), a * 0.0)
    assert_same(branched(numpy.array(1.0)), b * 1.0)
    numpy.random.seed(5)
    assert_same(scanned(numpy.ones(2)), numpy.stack([a, b]) * 1.0)


KINDS = {
    "constant": cytape.constant, "variable": cytape.Variable,
    "array": lambda x: x, "list of tensors": lambda x: (
        [cytape.constant(row) for row in x] if x.ndim else cytape.constant(x)),
}


def with_parameters(name, convert):
    """Return the arguments of a call, its parameters converted; not the covariance."""
    n = len(CALLS[name]) - (name != "gamma")
    return [convert(numpy.asarray(x)) if i < n and not isinstance(x, int | tuple) and x is not COV
            else x for i, x in enumerate(CALLS[name])]


@each(kind=KINDS, name=FLOATS)
def test_parameters_of_any_kind(name, kind):
    arguments = with_parameters(name, KINDS[kind])
    expected = drawn_by(numpy.random, name, 2)
    traced = cytape.function(lambda: getattr(np.random, name)(*arguments))
    for call in (lambda: getattr(np.random, name)(*arguments), traced):
        numpy.random.seed(5)
        for e in expected:
            assert_same(call(), e)


@each("name", FLOATS)
def test_placeholders_and_arguments_are_parameters(name):
    expected, fed = drawn_by(numpy.random, name), []

    def placeholder(x, shape=None):
        fed.append((cytape.placeholder(x.dtype, x.shape if shape is None else shape), x))
        return fed[-1][0]

    with Graph().as_default() as graph:
        y = getattr(np.random, name)(*with_parameters(name, placeholder))
    numpy.random.seed(5)
    assert_same(Session(graph).run(y, dict(fed)), expected)
    numpy.random.seed(5)
    arguments = with_parameters(name, lambda x: x)
    places = [i for i, x in enumerate(arguments) if isinstance(x, numpy.ndarray) and x is not COV]

    @cytape.function
    def f(*given):
        return getattr(np.random, name)(*[
            given[places.index(i)] if i in places else x for i, x in enumerate(arguments)])

    assert_same(f(*[arguments[i] for i in places]), expected)


@each("name", sorted(set(FLOATS) - {"choice", "dirichlet", "multinomial", "multivariate_normal"}))
def test_shapes_that_only_a_run_tells(name):
    arguments = with_parameters(name, lambda x: x)
    places = [i for i, x in enumerate(arguments) if isinstance(x, numpy.ndarray)]
    signature = [cytape.Spec.of((None,), float)]

    def call(x, **size):
        return getattr(np.random, name)(*[
            numpy.asarray(a) + 0 * x if i in places else a
            for i, a in enumerate(arguments) if i < len(arguments) - (name != "gamma")], **size)

    x = numpy.ones(2)
    numpy.random.seed(5)
    expected = call(x)
    for size in ({}, {"size": "x"}):
        f = cytape.function(
            lambda x, size=size: call(x, **({"size": x.shape} if size else {})),
            input_signature=signature)
        numpy.random.seed(5)
        assert_same(f(x), expected)
        assert f(numpy.ones(2)).shape == (2,)


@each("name", CALLS)
def test_members_of_a_batch_draw_their_own(name):
    drawn = cytape.vmap(lambda x: x * getattr(np.random, name)(*CALLS[name]))(numpy.ones(3))
    a, b, c = numpy.asarray(drawn)
    assert a.shape == numpy.shape(drawn_by(numpy.random, name))
    assert not numpy.array_equal(a, b) and not numpy.array_equal(b, c)
    traced = cytape.function(cytape.vmap(lambda x: x * getattr(np.random, name)(*CALLS[name])))
    assert not numpy.array_equal(traced(numpy.ones(3)), traced(numpy.ones(3)))


@each("traced", [lambda f: f, cytape.function], ids=["eager", "function"])
@each("name", CALLS)
def test_a_block_that_runs_again_draws_the_same(name, traced):
    def f(x):
        drawn = getattr(np.random, name)(*CALLS[name])
        return np.exp(x) * np.sum(drawn * numpy.cos(numpy.arange(n)).reshape(np.shape(drawn)))

    n = numpy.size(drawn_by(numpy.random, name))

    gradient = cytape.value_and_grad(traced(cytape.recompute_grad(f)))
    (first, _), (second, _) = results = [gradient(cytape.constant(1.0)) for _ in range(2)]
    assert first != second
    for value, slope in results:
        numpy.testing.assert_allclose(slope, value, rtol=1e-13)
    called = cytape.function(f)  # whose draws the block finds when it runs
    gradient = cytape.value_and_grad(cytape.recompute_grad(lambda x: called(x) + called(x)))
    for value, slope in [gradient(cytape.constant(1.0)) for _ in range(2)]:
        numpy.testing.assert_allclose(slope, value, rtol=1e-13)


@each("traced", [lambda f: f, cytape.function], ids=["eager", "function"])
@each("name", CALLS)
def test_the_second_derivative_is_that_of_the_same_draw(name, traced):
    f = traced(lambda x: np.sum(x**3 * getattr(np.random, name)(*CALLS[name])))
    x = cytape.constant(2.0)
    total = drawn_by(numpy.random, name)
    numpy.random.seed(5)
    numpy.testing.assert_allclose(
        cytape.grad(cytape.grad(f))(x), 12.0 * numpy.sum(total), rtol=1e-12)
    numpy.random.seed(5)
    numpy.testing.assert_allclose(
        cytape.jvp(f, (x,), (cytape.constant(1.0),))[1], 12.0 * numpy.sum(total), rtol=1e-12)


def test_draws_of_several_functions_are_in_the_order_of_the_calls():
    def draw():
        return [getattr(np.random, name)(*CALLS[name]) * 1.0 for name in CALLS]

    numpy.random.seed(5)
    expected = draw() + draw()
    f = cytape.function(draw)
    numpy.random.seed(5)
    for found, e in zip([*f(), *f()], expected, strict=True):
        assert_same(found, e)


def test_a_draw_that_nothing_uses_moves_the_generator_all_the_same():
    def draw():
        np.random.normal()
        return np.random.uniform()

    numpy.random.seed(5)
    expected = draw()
    f = cytape.function(draw)
    numpy.random.seed(5)
    assert f() == expected
