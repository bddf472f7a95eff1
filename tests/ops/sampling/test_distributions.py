"""Random draws: from the distributions they name, seeded, once and anew in each run of a graph."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, SymbolicTensorError, UnconnectedGradientWarning
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from cytape.numpy import random
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import gradients, watching

# Each draw with its mean and variance.


DRAWS = {
    "random": random.random, "uniform": lambda **size: random.uniform(-1.0, 3.0, **size),
    "standard_normal": random.standard_normal,
    "normal": lambda **size: random.normal(2.0, 3.0, **size),
    "standard_exponential": random.standard_exponential,
    "exponential": lambda **size: random.exponential(2.0, **size),
    "standard_gamma": lambda **size: random.standard_gamma(3.0, **size),
    "gamma": lambda **size: random.gamma(3.0, 2.0, **size),
    "poisson": lambda **size: random.poisson(4.0, **size),
    "binomial": lambda **size: random.binomial(10, 0.3, **size),
    "integers": lambda **size: random.integers(0, 5, **size)}


def test_seeding_does_not_reach_draws_with_seeds_of_their_own():
    f = cytape.function(lambda: random.random(3, seed=1))
    first = f()
    random.seed(7)
    second = f()
    assert not np.array_equal(first, second)


def test_single_precision_is_cast():
    for name in ("random", "standard_normal", "standard_exponential"):
        random.seed(3)
        wide = getattr(random, name)(4)
        random.seed(3)
        np.testing.assert_array_equal(getattr(random, name)(4, np.float32), wide.astype(np.float32))
    random.seed(3)
    integers = random.integers(2, 9, 3, endpoint=True)
    np.random.seed(3)
    np.testing.assert_array_equal(integers, np.random.randint(2, 10, 3))


def test_a_seed_of_a_call_decides_alone():
    first, second = random.normal(size=3, seed=4), random.normal(size=3, seed=4)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, random.normal(size=3, seed=5))


@each("seed", [-1, 1.5, "a", True])
def test_bad_seeds(seed):
    with pytest.raises(ValueError, match="seed must be an integer"):
        random.random(seed=seed)


@each("size, expected", [(None, ()), (3, (3,)), ((2, 0), (2, 0))])
@each("name", DRAWS)
def test_sizes(name, size, expected):
    assert np.shape(DRAWS[name](size=size)) == expected
    with Graph().as_default() as graph:
        y = DRAWS[name](size=size)
    (value,) = run(graph, [graph.symbol_of(y)], {})
    assert y.shape == value.shape == expected and y.dtype == value.dtype


def test_dtypes():
    assert random.random(2, np.float32).dtype == np.float32
    assert random.standard_normal(2, np.float32).dtype == np.float32
    assert random.standard_exponential(2, np.float32).dtype == np.float32
    assert random.standard_gamma(2.0, 2, np.float32).dtype == np.float32
    assert random.integers(0, 3, 2, np.int8).dtype == np.int8
    single = cytape.constant(np.ones(2, np.float32))
    assert random.normal(single, 2.0).dtype == np.float32
    assert random.uniform(single, 3 * single, size=(3, 2)).dtype == np.float32


def test_parameters_decide_the_size_and_must_fit():
    assert random.normal(np.zeros((2, 1)), np.ones(3)).shape == (2, 3)
    assert random.gamma(np.ones((2, 1)), np.ones(3)).shape == (2, 3)
    assert random.binomial(5, [0.1, 0.2]).shape == (2,)
    with pytest.raises(ValueError, match=r"\(2,\) and .*\(3,\)"):
        random.normal(np.zeros(2), np.ones(3))
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        random.normal(cytape.constant(np.zeros(2)), np.ones(3))
    with pytest.raises(ValueError):
        random.integers(3, 3)


# -- derivatives -----------------------------------------------------------------------------------


@each("place", [lambda f: f, cytape.function], ids=["eager", "function"])
@each("draw", [
    lambda a, b: random.uniform(a, a + b * b, seed=1), lambda a, b: random.normal(a, b, seed=1),
    lambda a, b: a + random.exponential(b, seed=1),
    lambda a, b: a + random.gamma(2.0, b, size=(2, 3), seed=1),
    lambda a, b: cnp.random.laplace(a, b, seed=1), lambda a, b: cnp.random.gumbel(a, b, seed=1),
    lambda a, b: cnp.random.logistic(a, b, seed=1), lambda a, b: cnp.random.lognormal(a, b, seed=1),
    lambda a, b: a * cnp.random.rayleigh(b, seed=1), lambda a, b: a * cnp.random.power(b, seed=1),
    lambda a, b: a * cnp.random.weibull(b, seed=1), lambda a, b: a * cnp.random.pareto(b, seed=1),
    lambda a, b: cnp.random.multivariate_normal(
        a, cnp.eye(3) * b[0] + cnp.outer(a, a), (2, 2), seed=1),
])
def test_location_and_scale_are_differentiable(draw, place):
    if place is not cytape.function:  # each call of a trace goes on with its stream
        check_grads(draw, [np.array([0.5, 1.0, -1.0]), np.array([[1.0], [2.0]])], order=2)
        return
    f, a, b = place(draw), cytape.constant([0.5, 1.0, -1.0]), cytape.constant([[1.0], [2.0]])
    assert all(np.any(g) for g in gradients(
        lambda a, b: cnp.sum(f(a, b)), a, b, unconnected_gradients="zero"))


def test_permuted_and_chosen_elements_are_differentiable():
    x = np.array([1.0, 2.0, 3.0])
    check_grads(lambda x: random.permutation(x * x, seed=2), [x], order=2)
    check_grads(lambda x: random.choice(x * x, size=5, seed=2), [x], order=2)


# Draws in whose parameter there is no derivative.


# -- in a graph ------------------------------------------------------------------------------------


def test_a_draw_happens_anew_in_each_run_and_once_in_it():
    graph = Graph()
    with graph.as_default():
        u = random.normal(size=4)
        a, b = u + 1.0, u * 2.0
    symbols = [graph.symbol_of(tensor) for tensor in (u, a, b)]
    first, second = run(graph, symbols, {}), run(graph, symbols, {})
    for drawn, plus_one, doubled in (first, second):
        np.testing.assert_array_equal(plus_one, drawn + 1)
        np.testing.assert_array_equal(doubled, drawn * 2)
    assert not np.array_equal(first[0], second[0])


def test_each_call_is_a_draw_of_its_own():
    graph = Graph()
    graph.seed = 1
    with graph.as_default():
        draws = [random.normal(size=4) for _ in range(3)]
    a, b, c = run(graph, [graph.symbol_of(y) for y in draws], {})
    assert not np.array_equal(a, b) and not np.array_equal(b, c) and not np.array_equal(a, c)


def sequence(graph_seed, op_seed, n_others=0):
    graph = Graph()
    graph.seed = graph_seed
    with graph.as_default():
        for _ in range(n_others):
            random.normal()
        y = random.normal(size=3, seed=op_seed)
    return np.stack([run(graph, [graph.symbol_of(y)], {})[0] for _ in range(3)])


def test_both_seeds_decide_the_sequence():
    np.testing.assert_array_equal(sequence(1, 2), sequence(1, 2))
    np.testing.assert_array_equal(sequence(1, 2), sequence(1, 2, n_others=3))
    assert not np.array_equal(sequence(1, 2), sequence(1, 3))
    assert not np.array_equal(sequence(1, 2), sequence(2, 2))


def test_one_seed_decides_too():
    np.testing.assert_array_equal(sequence(1, None), sequence(1, None))
    np.testing.assert_array_equal(sequence(None, 2), sequence(None, 2))


def test_a_graph_without_a_seed_draws_from_numpys_generator():
    random.seed(8)
    first = sequence(None, None)
    assert not np.array_equal(first, sequence(None, None))
    random.seed(8)
    np.testing.assert_array_equal(first, sequence(None, None))


def test_shapes_that_only_a_run_knows():
    graph = Graph()
    graph.seed = 2
    with graph.as_default():
        x = graph.placeholder(np.dtype(float), (None, 3))
        ys = [random.normal(x, 2.0), random.poisson(x), random.permutation(x),
              random.choice(x, size=4), random.gamma(x, x)]
    shapes = [(None, 3), (None, 3), (None, 3), (4, 3), (None, 3)]
    assert [y.shape for y in ys] == shapes
    value = np.arange(1.0, 7.0).reshape(2, 3)
    found = run(graph, [graph.symbol_of(y) for y in ys], {graph.symbol_of(x): value})
    assert [y.shape for y in found] == [(2, 3), (2, 3), (2, 3), (4, 3), (2, 3)]
    assert sorted(found[2][:, 0]) == [1, 4]
    assert set(found[3][:, 0]) <= {1, 4}


def test_gradients_go_through_the_draw_of_the_same_run():
    graph = Graph()
    with graph.as_default():
        loc, scale = graph.placeholder(np.dtype(float), ()), graph.placeholder(np.dtype(float), ())
        with watching(loc, scale) as tape:
            y = random.normal(loc, scale)
            z = y * y
        by_loc, by_scale = tape.gradient(z, [loc, scale])
    feeds = {graph.symbol_of(loc): np.array(5.0), graph.symbol_of(scale): np.array(2.0)}
    symbols = [graph.symbol_of(tensor) for tensor in (y, by_loc, by_scale)]
    for _ in range(2):
        value, slope, by_standard = run(graph, symbols, feeds)
        np.testing.assert_allclose(slope, 2 * value)
        np.testing.assert_allclose(by_standard, 2 * value * (value - 5) / 2)


def test_draws_in_the_shape_of_a_tensor_that_only_a_run_knows():
    signature = [cytape.Spec.of((None, 2), float)]

    @cytape.function(input_signature=signature)
    def f(x):
        return random.normal(x, 2.0, size=x.shape), random.uniform(size=x.shape)

    for n in (3, 5):
        drawn, uniform = f(np.full((n, 2), 1e6))
        assert drawn.shape == uniform.shape == (n, 2) and len(set(uniform.ravel())) == 2 * n
        assert (np.abs(drawn - 1e6) < 100).all()
    for draw in (random.poisson, random.integers, random.choice):
        drawn = cytape.function(lambda x, draw=draw: draw(3, size=x.shape),
                                input_signature=signature)
        assert drawn(np.ones((3, 2))).shape == (3, 2)
        with pytest.raises(SymbolicTensorError, match=r"zeros\(x\.shape\)"):
            cytape.function(lambda x, draw=draw: draw(3, size=(x.shape[0], 5)),
                            input_signature=signature)(np.ones((3, 2)))


# Distributions with two parameters, of which none may be negative.
POSITIVE = {
    "normal": 2, "exponential": 1, "gamma": 2, "standard_gamma": 1, "poisson": 1, "binomial": 2,
    "gumbel": 2, "laplace": 2, "logistic": 2, "rayleigh": 1, "lognormal": 2, "pareto": 1,
    "power": 1, "weibull": 1}


@each("name", POSITIVE)
def test_parameters_that_are_known_to_be_out_of_range_are_numpys_error(name):
    draw, n = getattr(cnp.random, name), POSITIVE[name]
    with pytest.raises(ValueError) as expected:  # noqa: PT011
        getattr(np.random, name)(*[2] * (n - 1), [0.5, -1.0])
    parameter = str(expected.value).partition(" ")[0]
    for last in (cytape.constant([0.5, -1.0]), [cytape.constant(0.5), -1.0]):
        with pytest.raises(ValueError, match=f"^{parameter} <"):
            draw(*[2] * (n - 1), last)


def test_bounds_of_integers_may_be_arrays_and_tensors():
    low, high = np.array([1, 20]), np.array([[25], [50]])
    np.random.seed(3)
    expected = np.random.randint(low, high)
    for convert in (np.asarray, cytape.constant):
        for call in (random.integers, cytape.function(random.integers)):
            np.random.seed(3)
            np.testing.assert_array_equal(call(convert(low), convert(high)), expected)
    assert type(random.integers(5)) is np.int64
    for f in (random.integers, cytape.function(random.integers)):
        drawn = f(2**63, 2**64, 9, np.uint64)
        assert drawn.dtype == np.uint64 and (drawn >= 2**63).all() and len(set(drawn)) == 9
    with pytest.raises(ValueError, match="low >= high"):
        cytape.function(lambda: random.integers(3, 3))()


def test_probabilities_may_be_tensors():
    p = np.array([0.25, 0.5, 0.25])
    np.random.seed(3)
    expected = [np.random.choice(3, 4, True, p) for _ in range(2)]
    traced = cytape.function(lambda p: random.choice(3, 4, True, p))
    for call in (lambda p: random.choice(3, 4, True, p), traced):
        for convert in (np.asarray, cytape.constant, lambda p: [cytape.constant(p[0]), *p[1:]]):
            np.random.seed(3)
            for e in expected:
                np.testing.assert_array_equal(call(convert(p)), e)
    f = cytape.function(lambda p, x: cnp.sum(p * random.choice(x, x.shape, True, p)),
                        input_signature=[cytape.Spec.of((n,), float) for n in (3, None)])
    with pytest.warns(UnconnectedGradientWarning, match="choice, called in .* derivative in p"):
        np.testing.assert_array_equal(cytape.grad(f)(p, np.ones(3)), np.ones(3))


def test_a_choice_needs_an_axis():
    for x in (cytape.constant(1.5), cytape.constant([1.0])[0]):
        with pytest.raises(ValueError, match="out of bounds"):
            random.choice(x)
    with pytest.raises(ValueError, match="out of bounds"):
        random.permutation(cytape.constant([1.0, 2.0]), axis=1)


# -- without a derivative in their parameters ------------------------------------------------------

# Draws whose parameter there is something to say of, with its name.
CONTINUOUS = {
    "beta": (lambda x: cnp.random.beta(2.0, x), "b"),
    "gamma": (lambda x: cnp.random.gamma(x, 2.0, size=2), "shape"),
    "standard_gamma": (lambda x: cnp.random.standard_gamma(x), "shape"),
    "chisquare": (lambda x: cnp.random.chisquare(x), "df"),
    "dirichlet": (lambda x: cnp.random.dirichlet([1.0, x]), "alpha"),
    "f": (lambda x: cnp.random.f(x, 2.0, size=3), "dfnum"),
    "noncentral_chisquare": (lambda x: cnp.random.noncentral_chisquare(2, x), "nonc"),
    "noncentral_f": (lambda x: cnp.random.noncentral_f(2.0, x, 1.0), "dfden"),
    "standard_t": (lambda x: cnp.random.standard_t(x), "df"),
    "vonmises": (lambda x: cnp.random.vonmises(x, 2.0), "mu"),
    "wald": (lambda x: cnp.random.wald(x, x), "mean")}
DISCRETE = {
    "poisson": (lambda x: cnp.random.poisson(8 * x), "lam"),
    "binomial": (lambda x: cnp.random.binomial(9, x), "p"),
    "choice": (lambda x: cnp.random.choice([1.0, 2.0], p=[x, 1 - x]), "p"),
    "geometric": (lambda x: cnp.random.geometric(x), "p"),
    "logseries": (lambda x: cnp.random.logseries(x), "p"),
    "multinomial": (lambda x: cnp.random.multinomial(9, [x, 1 - x]), "pvals"),
    "negative_binomial": (lambda x: cnp.random.negative_binomial(x, 0.5), "n"),
    "zipf": (lambda x: cnp.random.zipf(x + 1), "a")}
X = cytape.constant(0.5)


@each("name", [*CONTINUOUS, *DISCRETE])
def test_a_parameter_that_is_recorded_is_an_error(name):
    draw, parameter = {**CONTINUOUS, **DISCRETE}[name]
    message = rf"numpy\.random\.{name} has no derivative in {parameter}, .*stop_gradient"
    with pytest.raises(DetachedError, match=message):
        cytape.grad(lambda x: x * np.sum(draw(x)))(X)
    with pytest.raises(DetachedError, match=message):
        cytape.jvp(lambda x: x * np.sum(draw(x)), (X,), (X,))
    assert cytape.grad(lambda x: x * x + np.sum(draw(cytape.stop_gradient(x))))(X) == 1.0


@each("name", CONTINUOUS)
def test_in_a_trace_its_derivative_is_an_error(name):
    draw, parameter = CONTINUOUS[name]
    f = cytape.function(lambda x, y: cnp.sum(y * draw(x)))
    message = rf"numpy\.random\.{name} has no derivative in {parameter},"
    assert np.isfinite(f(X, X))
    with pytest.raises(DetachedError, match=message):
        cytape.grad(f)(X, X)
    with pytest.raises(DetachedError, match=message):
        cytape.jvp(f, (X, X), (X, X))
    cnp.random.seed(3)
    value = f(X, X)
    cnp.random.seed(3)
    np.testing.assert_allclose(cytape.grad(f, argnums=1)(X, X) * X, value)
    stopped = cytape.function(lambda x: cnp.sum(x * draw(cytape.stop_gradient(x))))
    cnp.random.seed(3)
    np.testing.assert_allclose(cytape.grad(stopped)(X) * X, value)


@each("name", DISCRETE)
def test_in_a_trace_derivatives_leave_counts_out(name):
    draw, parameter = DISCRETE[name]
    f = cytape.function(lambda x: cnp.sum(x * draw(x)))
    message = rf"random\.{name}, called in .*, line \d+, has no derivative in {parameter}:"
    cnp.random.seed(3)
    value = f(X)
    cnp.random.seed(3)
    with pytest.warns(UnconnectedGradientWarning, match=message):
        np.testing.assert_allclose(cytape.grad(f)(X) * X, value)


def test_single_precision_is_that_of_all_tensors():
    single, double = cytape.constant(np.ones(2, np.float32)), cytape.constant(np.ones(2))
    for draw in (cnp.random.beta, cytape.function(cnp.random.beta)):
        assert draw(single, 2.0).dtype == np.float32
        assert draw(single, double).dtype == np.float64
    assert cnp.random.dirichlet(single).dtype == np.float32


@each("place", [lambda f: f, cytape.function], ids=["eager", "function"])
@each("draw", [
    lambda: cnp.random.beta(-1.0, 2.0), lambda: cnp.random.zipf(0.5),
    lambda: cnp.random.multinomial(3, [0.75, 0.75, 0.75]), lambda: cnp.random.geometric(2.0),
    lambda: cnp.random.dirichlet([[1.0]]), lambda: cnp.random.f([1.0, 2.0], [1.0, 2.0, 3.0])])
def test_parameters_out_of_range_are_errors_at_once(draw, place):
    with pytest.raises(ValueError):  # noqa: PT011
        place(draw)()


def test_a_seed_is_also_for_draws_without_derivatives():
    first, second = (cnp.random.beta(2.0, 3.0, 4, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, np.random.default_rng(4).beta(2.0, 3.0, 4))


def test_vectors_of_unknown_length_and_number():
    f = cytape.function(
        lambda x, y: cnp.random.dirichlet(x, size=y.shape),
        input_signature=[cytape.Spec.of((None,), float), cytape.Spec.of((2, None), float)])
    drawn = f(np.ones(4), np.ones((2, 3)))
    assert drawn.shape == (2, 3, 4)
    np.testing.assert_allclose(np.sum(drawn, -1), 1.0)
