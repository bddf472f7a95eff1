"""Table of distributions: SciPy's values, derivatives by differences, quantiles, frozen ones."""

import pickle

import mpmath
import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from tests.cases import each, sampled
from tests.ways import WAYS, check

stats = pytest.importorskip("scipy.stats")
ours = pytest.importorskip("cytape.scipy.stats")

SHAPES = {
    "norm": (), "t": (3.5,), "laplace": (), "logistic": (), "cauchy": (), "gumbel_r": (),
    "gumbel_l": (), "skewnorm": (1.5,), "vonmises": (2.5,), "gamma": (1.7,), "chi2": (3.3,),
    "invgamma": (2.5,), "f": (3.5, 5.5), "expon": (), "rayleigh": (), "halfnorm": (),
    "lognorm": (0.8,), "weibull_min": (1.7,), "weibull_max": (1.7,), "invgauss": (1.3,),
    "pareto": (2.5,), "beta": (1.5, 2.5), "uniform": (), "truncnorm": (-0.7, 1.9),
    "genextreme": (0.3,), "exponnorm": (1.2,), "erlang": (2.0,), "chi": (3.3,), "maxwell": (),
    "lomax": (2.5,), "fisk": (2.5,), "halfcauchy": (), "genpareto": (-0.3,),
    "loguniform": (0.2, 3.0), "powerlaw": (1.7,), "triang": (0.3,),
    "arcsine": (), "truncexpon": (1.7,), "betaprime": (1.7, 2.5), "burr": (1.7, 2.5),
    "burr12": (1.7, 2.5), "gompertz": (0.7,), "halflogistic": (), "invweibull": (1.7,),
    "levy": (), "nakagami": (1.3,), "rice": (0.8,), "genlogistic": (1.7,),
    "johnsonsu": (0.5, 1.3), "loggamma": (1.7,), "moyal": (),
    "gengamma": (1.7, 2.5),
    "alpha": (1.3,), "dpareto_lognorm": (0.2, 0.8, 1.7, 2.5), "exponpow": (1.7,),
    "exponweib": (2.3, 1.4), "fatiguelife": (0.8,), "foldcauchy": (0.7,), "foldnorm": (0.7,),
    "genexpon": (0.6, 1.3, 0.9), "genhalflogistic": (0.3,), "gibrat": (), "halfgennorm": (1.7,),
    "kappa3": (1.7,), "kstwobign": (), "levy_l": (), "loglaplace": (1.7,), "mielke": (2.5, 1.7),
    "ncx2": (3.3, 1.2), "powerlognorm": (1.7, 0.8), "recipinvgauss": (1.3,),
    "rel_breitwigner": (1.7,), "wald": (), "anglit": (), "argus": (1.7,), "bradford": (1.7,),
    "cosine": (), "johnsonsb": (0.5, 1.3), "rdist": (2.5,), "reciprocal": (0.2, 3.0),
    "semicircular": (), "trapezoid": (0.3, 0.8), "truncpareto": (1.7, 3.0),
    "truncweibull_min": (1.7, 0.3, 2.5), "vonmises_line": (2.5,), "wrapcauchy": (0.4,),
    "powernorm": (1.7,), "skewcauchy": (0.3,), "tukeylambda": (0.3,), "crystalball": (1.3, 2.5),
    "dgamma": (1.7,), "dweibull": (1.7,), "gennorm": (1.7,), "hypsecant": (),
    "jf_skew_t": (1.7, 2.5), "laplace_asymmetric": (1.4,), "ncf": (3.5, 5.5, 1.2),
    "pearson3": (0.7,), "kappa4": (0.6, -0.4), "landau": (), "irwinhall": (5.0,)}
COUNTS = {"poisson": (2.3,), "binom": (6, 0.3), "bernoulli": (0.3,), "nbinom": (2.5, 0.4),
          "geom": (0.3,), "planck": (0.6,), "zipf": (2.5,), "boltzmann": (0.6, 9),
          "dlaplace": (0.8,), "logser": (0.4,), "skellam": (2.3, 1.4), "yulesimon": (2.5,),
          "betabinom": (6, 1.7, 2.5), "betanbinom": (5, 1.7, 2.5), "hypergeom": (20, 7, 12),
          "nhypergeom": (20, 7, 3), "randint": (1, 9), "zipfian": (1.3, 9),
          "nchypergeom_fisher": (20, 7, 12, 1.7), "poisson_binom": ([0.1, 0.7, 0.4],),
          "nchypergeom_wallenius": (20, 7, 12, 1.7)}
# Parameters without derivatives.
WHOLE = [("betabinom", 0), ("betanbinom", 0), *[(f"{kind}hypergeom", i) for kind in ("", "n")
         for i in range(3)], *[(f"nchypergeom_{kind}", i) for kind in ("fisher", "wallenius")
         for i in range(3)], ("binom", 0),
         ("boltzmann", 1), ("poisson_binom", 0), ("randint", 0), ("randint", 1), ("zipfian", 1),
         ("erlang", 0), ("irwinhall", 0)]
CONTINUOUS = ["pdf", "logpdf", "cdf", "sf", "logcdf", "logsf"]
DISCRETE = ["pmf", "logpmf", "cdf", "sf", "logcdf", "logsf"]
POINTS = np.array([-40.0, -3.0, -1.2, -0.3, 0.0, 0.4, 0.9, 1.0, 1.6, 3.0, 25.0, np.nan])
QUANTILES = np.array([-0.1, 0.0, 1e-9, 0.1, 0.5, 0.7, 0.999, 1.0, 1.1, np.nan])


def given(name):
    """Return shapes, a location and a scale; discrete distributions have no scale."""
    return (*SHAPES[name], 0.1, 1.5) if name in SHAPES else (*COUNTS[name], 1)


def calls(tables):
    return [(name, method) for names, methods in tables for name in names for method in methods]


@each("name, method", calls([(SHAPES, CONTINUOUS), (COUNTS, DISCRETE)]))
def test_values_are_scipys(name, method):
    function, expected = [getattr(getattr(where, name), method) for where in (ours, stats)]
    x = POINTS if name in SHAPES else np.array([-1.0, 0.0, 1.0, 1.5, 2.0, 3.0, 7.0, 8.0, 20.0])
    with np.errstate(all="ignore"):
        x = x[x % 1 == 0] if name == "hypergeom" else x  # of others its cdf is NaN
        wanted = expected(x, *given(name))
        found = np.asarray(function(cytape.constant(x), *given(name)))
        # SciPy's are infinite where probabilities underflow
        if method in ("logcdf", "logsf") or (name, method) in (
                ("moyal", "logpdf"), ("landau", "logpdf")):
            known = np.isfinite(wanted) & (wanted > -29)
            np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
            found, wanted = found[known], wanted[known]
        np.testing.assert_allclose(found, wanted, 1e-10, 1e-14)
        np.testing.assert_array_equal(function(x, *given(name)), expected(x, *given(name)))


@each("name, method", calls([(SHAPES, ["ppf", "isf"]), (COUNTS, ["ppf", "isf"])]))
def test_quantiles_are_scipys(name, method):
    function, expected = [getattr(getattr(where, name), method) for where in (ours, stats)]
    # SciPy's search for the far end of its heavy tail takes seconds
    quantiles = np.delete(QUANTILES, 2) if name == "betanbinom" else QUANTILES
    with np.errstate(all="ignore"):
        found = function(cytape.constant(quantiles), *given(name))
        wanted = expected(quantiles, *given(name))
        if (name, method) in (("foldcauchy", "isf"), ("levy_l", "ppf")):
            wanted[2] = {"isf": 954929658.6513721, "ppf": -9.54929658551372e+17}[method]
        np.testing.assert_allclose(found, wanted, 1e-7)
    np.testing.assert_array_equal(
        function(quantiles, *given(name)), expected(quantiles, *given(name)))


def differences(f, args, i):
    """Return the derivative in one argument by a rule of order 4."""
    def at(step):
        return f(*args[:i], args[i] + step, *args[i + 1:])

    h = 1e-3
    return (8 * (at(h) - at(-h)) - at(2 * h) + at(-2 * h)) / (12 * h)


def positions(name):
    """Return positions of parameters with derivatives: not the number of trials."""
    return [i for i in range(len(given(name)) - (name in COUNTS))
            if (name, i) not in WHOLE]


@sampled(3, call=calls([(SHAPES, [*CONTINUOUS, "ppf", "isf"]), (COUNTS, DISCRETE)]))
def test_derivatives_are_differences(call):
    name, method = call
    function, expected = [getattr(getattr(where, name), method) for where in (ours, stats)]
    q = 0.4 if name in SHAPES else 2.0
    x = q if method in ("ppf", "isf") or name in COUNTS else float(
        stats.__dict__[name].ppf(q, *given(name)))
    x = 1.0 if name == "bernoulli" else x
    args = (x, *given(name))
    where = [i + 1 for i in positions(name)] + [0] * (name in SHAPES)
    slopes = cytape.grad(function, argnums=tuple(where))(*args)
    tangents = [cytape.jvp(
        lambda v, i=i: function(*args[:i], v, *args[i + 1:]), (args[i],), (1.0,))[1] for i in where]
    wanted = [differences(expected, args, i) for i in where]
    np.testing.assert_allclose(slopes, wanted, 2e-6, 1e-8)
    np.testing.assert_allclose(tangents, slopes, 1e-9, 1e-13)


@each("call, ways", [
    (lambda x: ours.gamma.cdf(x[0], x[1], scale=x[2]), WAYS),
    (lambda x: ours.truncnorm.logcdf(x[0], -x[1], x[2]), ["function", "vmap"]),
    (lambda x: ours.beta.ppf(0.3, x[1], x[2], x[0]), ["function", "graph"]),
    (lambda x: ours.skewnorm(x[1], scale=x[2]).ppf(0.3 * x[0]), ["vmap", "loop"]),
    (lambda x: ours.betabinom.logsf(2, 6, x[1], x[2]), ["function", "vmap", "graph"]),
    (lambda x: ours.foldnorm.ppf(0.3, x[1], 0, x[2]), ["function", "vmap", "branch"]),
    (lambda x: ours.rel_breitwigner.logsf(x[0], x[1]), ["graph", "vmap"]),
    (lambda x: ours.crystalball.logcdf(-x[0], x[1], x[2]), ["loop", "unknown extents"])])
def test_all_ways(call, ways):
    check(call, call, np.array([0.7, 1.3, 2.1]), ways=ways)


@each("name", SHAPES)
def test_gradients_are_zero_outside_of_the_support(name):
    low, high = stats.__dict__[name].support(*given(name))
    for x in [x for x in (low - 1, high + 1) if np.isfinite(x)]:
        for method in CONTINUOUS:
            function = getattr(getattr(ours, name), method)
            where = (0, *[i + 1 for i in positions(name)])
            np.testing.assert_array_equal(
                cytape.grad(function, argnums=where)(x, *given(name)), 0)


@each("name", [name for name in SHAPES if SHAPES[name] and name != "kappa4"])
def test_invalid_shapes_are_nan(name):
    for i in range(len(SHAPES[name])):
        args = list(given(name))
        if (name, i) == ("dpareto_lognorm", 0):
            continue  # any logarithm is valid
        args[i] = {
            "truncnorm": (5.0, -5.0)[i % 2], "johnsonsu": np.nan, "johnsonsb": np.nan,
            "gengamma": 0.0, "truncpareto": 0.0, "skewcauchy": 1.0,
            "trapezoid": (0.9, 0.1)[i % 2]}.get(name, (
                np.inf if name in (
                    "skewnorm", "genextreme", "genpareto", "pearson3", "tukeylambda")
                else -1.0))
        function, expected = [getattr(where, name) for where in (ours, stats)]
        for method, x in (("pdf", 0.5), ("logsf", 0.5), ("ppf", 0.5)):
            with np.errstate(all="ignore"):
                value, slope = cytape.value_and_grad(getattr(function, method))(x, *args)
                assert np.isnan(value) and np.isnan(slope)
                assert np.isnan(getattr(expected, method)(x, *args))


@each("name", [*SHAPES, *COUNTS])
@each("method", ["mean", "var", "std", "entropy"])
def test_moments(name, method):
    args = given(name)
    if method not in getattr(ours, name).methods:
        return
    found = getattr(getattr(ours, name), method)(*map(cytape.constant, map(float, args)))
    np.testing.assert_allclose(found, getattr(stats.__dict__[name], method)(*args), 1e-12)


@each("ends, slopes, curvatures", [  # log(1 - ndtr(a)) and its like
    ((0.2, np.inf), (0.929415854, 0), (0.677930649, 0)),
    ((-0.2, np.inf), (0.675073176, 0), (0.590738435, 0)),
    ((-np.inf, -0.2), (0, -0.929415854), (0, 0.677930649))])
def test_a_normal_distribution_truncated_at_one_end(ends, slopes, curvatures):
    def f(inputs):
        return ours.truncnorm.logpdf(np.sign(sum(ends)) * 0.5, inputs[0], inputs[1])

    np.testing.assert_allclose(cytape.grad(f)(np.array(ends)), slopes, 1e-8)
    np.testing.assert_allclose(cytape.hessian(f)(np.array(ends)), np.diag(curvatures), 1e-8)


@each("method", CONTINUOUS)
def test_a_normal_distribution_truncated_nowhere(method):
    found = cytape.grad(getattr(ours.truncnorm, method), argnums=(0, 1, 2))(0.3, -np.inf, np.inf)
    expected = cytape.grad(getattr(ours.norm, method))(0.3)
    np.testing.assert_allclose(found, [expected, 0, 0], 1e-12)


@each("method, expected", [("cdf", 0.25), ("sf", -0.25), ("logcdf", 0.5), ("logsf", -0.5)])
def test_laplace_is_differentiable_at_its_centre(method, expected):
    slopes = cytape.grad(getattr(ours.laplace, method), argnums=(0, 1))(1.0, 1.0, 2.0)
    np.testing.assert_allclose(slopes, [expected, -expected])


@each("name", ["norm", "expon", "uniform", "gamma", "laplace"])
def test_quantiles_at_and_beyond_the_ends(name):
    shapes = SHAPES[name]
    with np.errstate(all="ignore"):
        for q in (-0.5, 1.5):
            slopes = cytape.grad(getattr(ours, name).ppf, argnums=(0, len(shapes) + 1))(
                q, *shapes, 0.0)
            np.testing.assert_array_equal(slopes, np.nan)
        slope = cytape.grad(lambda q: getattr(ours, name).ppf(q, *shapes))(1.0)
    assert slope == (1.0 if name == "uniform" else np.inf)


@each("f, expected", [
    (lambda p: ours.bernoulli.pmf(1, p), 1.0), (lambda p: ours.binom.pmf(1, 5, p), 5.0),
    (lambda mu: ours.poisson.pmf(1, mu), 1.0), (lambda p: ours.nbinom.pmf(0, 1.0, p), 1.0)])
def test_probabilities_of_counts_at_zero(f, expected):
    assert cytape.grad(f)(0.0) == expected or f(0.0) != f(0.0)


@each("kappa", [0.0, 0.5, 3.0, 40.0])
def test_the_von_mises_distribution_function_in_kappa(kappa):
    if kappa > 0:
        args = np.array([-3.0, -0.4, 0.2, 1.0, 3.0, 8.0]), kappa
        found = cytape.jvp(lambda k: ours.vonmises.cdf(args[0], k), (kappa,), (1.0,))[1]
        h = 1e-4 * kappa
        wanted = (stats.vonmises.cdf(args[0], kappa + h) - stats.vonmises.cdf(
            args[0], kappa - h)) / (2 * h)
        np.testing.assert_allclose(found, wanted, 1e-6, 1e-9)
    assert cytape.grad(lambda k: ours.vonmises.cdf(0.0, k))(kappa) == 0


def test_frozen_distributions():
    mean, scale = cytape.constant(0.3), cytape.constant(1.7)
    frozen = ours.norm(mean, scale=scale)
    np.testing.assert_allclose(frozen.logpdf(2.0), stats.norm.logpdf(2.0, 0.3, 1.7))
    np.testing.assert_allclose([frozen.mean(), frozen.std()], [0.3, 1.7])
    np.testing.assert_allclose(frozen.ppf([0.2, 0.3]), stats.norm.ppf([0.2, 0.3], 0.3, 1.7))
    assert frozen.rvs(size=3, random_state=0).shape == (3,)
    np.testing.assert_allclose(
        cytape.grad(lambda m, s: ours.norm(m, s).logpdf(2.0), argnums=(0, 1))(0.3, 1.7),
        cytape.grad(lambda m, s: ours.norm.logpdf(2.0, m, s), argnums=(0, 1))(0.3, 1.7))
    with pytest.raises(TypeError, match="unexpected keyword"):
        ours.norm(sigma=mean)


def test_frozen_distributions_of_arrays_are_scipys():
    frozen = ours.gamma(2.5, scale=2.0)
    assert isinstance(frozen, type(stats.gamma(2.5)))
    for one in (frozen, pickle.loads(pickle.dumps(frozen))):
        assert one.logpdf(1.0) == stats.gamma(2.5, scale=2.0).logpdf(1.0)
        np.testing.assert_allclose(
            cytape.grad(one.logpdf)(1.0),
            cytape.grad(lambda x: ours.gamma.logpdf(x, 2.5, scale=2.0))(1.0))


@each("name, method", [
    ("norm", "logpdf"), ("gamma", "cdf"), ("beta", "ppf"), ("t", "cdf"), ("cauchy", "ppf"),
    ("fisk", "pdf"), ("foldnorm", "ppf"), ("lognorm", "logpdf"), ("crystalball", "logcdf")])
def test_single_precision_stays(name, method):
    function = getattr(getattr(ours, name), method)
    x = cytape.constant(np.float32(0.4))
    for shapes in (SHAPES[name], [np.float32(s) for s in SHAPES[name]]):
        value, slope = cytape.value_and_grad(function)(x, *shapes)
        assert value.dtype == slope.dtype == np.float32
        np.testing.assert_allclose(
            value, getattr(stats.__dict__[name], method)(0.4, *SHAPES[name]), 1e-5)


@each("name", COUNTS)
def test_quantiles_of_counts_are_steps(name):
    f = getattr(ours, name).ppf
    q = cytape.constant(0.6)
    with cytape.GradientTape() as tape:
        tape.watch(q)
        y = f(q, *COUNTS[name])
    assert tape.gradient(y, q) is None
    traced = cytape.function(lambda q: f(q, *COUNTS[name]))
    assert traced(q) == f(0.6, *COUNTS[name])


def test_a_poisson_binomial_variable_in_all_probabilities():
    p = np.array([0.1, 0.7, 0.4])
    for method in ("logpmf", "cdf", "logsf"):
        f, expected = getattr(ours.poisson_binom, method), getattr(stats.poisson_binom, method)
        np.testing.assert_allclose(
            cytape.grad(lambda p, f=f: f(1, p))(p),
            [differences(lambda x, i=i, e=expected: e(1, [*p[:i], x, *p[i + 1:]]), (p[i],), 0)
             for i in range(3)], 1e-9)
    check(lambda p: ours.poisson_binom(p).logcdf(np.arange(3)),
          lambda p: ours.poisson_binom(p).logcdf(np.arange(3)), p, ways=["function", "vmap"])


def test_uniform_counts_in_real_ends():
    slopes = cytape.grad(ours.randint.cdf, argnums=(1, 2))(4.0, 2.0, 8.0)
    np.testing.assert_allclose(slopes, [(0.5 - 1) / 6, -0.5 / 6], 1e-14)


@each("name, shapes", [("ncx2", (3.3, 1.2)), ("ncf", (3.5, 5.5, 1.2))])
@each("method", ["logpdf", "cdf", "logsf", "isf"])
def test_noncentral_distributions_in_degrees_of_freedom(name, shapes, method):
    function, expected = [getattr(getattr(where, name), method) for where in (ours, stats)]
    args = (0.3, *shapes)
    slopes = cytape.grad(function, argnums=tuple(range(len(args))))(*args)
    np.testing.assert_allclose(
        slopes, [differences(expected, args, i) for i in range(len(args))], 1e-8)
    assert np.isfinite(cytape.grad(lambda df: getattr(ours, name).logsf(1e4, df, *shapes[1:]))(3.3))
    assert cytape.hessian(lambda s: ours.ncx2.logpdf(3.0, s[0], s[1]))(np.array([4.0, 1.2])).shape


@each("a, k, n, expected", [  # slope of logsf in a, by mpmath
    (1.3, 7, 1000, -1.9642883412567007), (0.0, 60, 100, -0.7403862977416624),
    (1.0, 5, 100000, -1.1340495974757931), (40.0, 5, 50, -1.7920853608551409), (1.0, 99, 99, 0.0)])
def test_zipfs_law_up_to_a_count(a, k, n, expected):
    found = cytape.grad(lambda a: ours.zipfian.logsf(k, a, n))(a)
    np.testing.assert_allclose(found, expected, 1e-11)


@each("f", [lambda n: ours.zipfian.logsf(7, 1.3, n), lambda n: ours.irwinhall.cdf(3.3, n),
            lambda n: ours.nchypergeom_fisher.pmf(3, 20, n, 12, 1.7)])
def test_counts_without_derivatives(f):
    with pytest.raises(NotDifferentiableError, match="no derivatives in counts"):
        cytape.grad(f)(10.0)


def test_sums_of_probabilities_need_known_counts():
    with pytest.raises(ValueError, match="which must be known"):
        cytape.function(lambda n: ours.betabinom.cdf(2, n, 1.7, 2.5))(cytape.constant(6.0))


def test_multinomial():
    x, p = np.array([2, 1, 3]), np.array([0.2, 0.5, 0.3])
    for name in ("logpmf", "pmf"):
        f, expected = getattr(ours.multinomial, name), getattr(stats.multinomial, name)(x, 6, p)
        np.testing.assert_allclose(f(x, 6, cytape.constant(p)), expected, 1e-12)
        assert f(x, 6, p) == expected
    np.testing.assert_allclose(
        cytape.grad(lambda p: ours.multinomial.logpmf(x, 6, p))(p), x / p - x[2] / p[2], 1e-12,
        1e-12)
    np.testing.assert_allclose(  # the last one is not used
        ours.multinomial.logpmf(x, 6, cytape.constant([0.2, 0.5, 0.9])),
        stats.multinomial.logpmf(x, 6, p))
    np.testing.assert_allclose(
        cytape.grad(lambda z: ours.multinomial.logpmf(
            np.array([x, x[::-1]]), 6, np.exp(z) / np.sum(np.exp(z)))[1])(np.log(p)),
        x[::-1] - 6 * p, 1e-12)
    assert ours.multinomial.logpmf(x, 7, cytape.constant(p)) == -np.inf
    assert ours.multinomial(6, p).n == 6


def test_frozen_multivariate_distributions():
    mean, cov = cytape.constant([0.5, 1.0]), np.eye(2)
    x = np.array([0.1, 0.2])
    np.testing.assert_allclose(
        ours.multivariate_normal(mean, cov).logpdf(x),
        stats.multivariate_normal(mean.numpy(), cov).logpdf(x))
    alpha = cytape.constant([2.0, 3.0])
    np.testing.assert_allclose(
        ours.dirichlet(alpha).logpdf([0.3, 0.7]), stats.dirichlet([2.0, 3.0]).logpdf([0.3, 0.7]))
    np.testing.assert_allclose(
        ours.multivariate_normal(np.zeros(2)).logpdf(mean),
        stats.multivariate_normal(np.zeros(2)).logpdf(mean.numpy()))


@each(name=["genextreme", "genpareto"])
@each(method=[*CONTINUOUS, "ppf", "isf"])
def test_shapes_of_both_signs_and_zero(name, method):
    function, expected = [getattr(getattr(where, name), method) for where in (ours, stats)]
    for c in (-0.4, 0.0, 0.4, 1e-9):
        x = np.array([0.2, 0.8])
        np.testing.assert_allclose(function(cytape.constant(x), c), expected(x, c), 1e-8)
        slope = cytape.jvp(lambda c: function(x, c), (c,), (1.0,))[1]  # noqa: B023
        step = 1e-4
        difference = (expected(x, c + step) - expected(x, c - step)) / (2 * step)
        np.testing.assert_allclose(slope, difference, 1e-4, 1e-6)


@each("c", [0.0, 0.3, 1.0])
def test_the_mode_of_a_triangle(c):
    x = np.array([0.0, 0.1, 0.3, 0.9, 1.0])
    for method in ("pdf", "cdf", "sf", "ppf", "isf"):
        np.testing.assert_allclose(
            getattr(ours.triang, method)(cytape.constant(x), c),
            getattr(stats.triang, method)(x, c), 1e-12, 1e-14)


def test_the_multivariate_t_distribution():
    x, loc, df = np.array([[0.3, -1.0], [2.0, 0.4]]), np.array([0.1, 0.2]), 3.5
    shape = np.array([[2.0, 0.3], [0.3, 1.0]])
    for name in ("logpdf", "pdf"):
        f, scipys = getattr(ours.multivariate_t, name), getattr(stats.multivariate_t, name)
        np.testing.assert_allclose(
            f(cytape.constant(x), loc, shape, df), scipys(x, loc, shape, df), 1e-12)
        np.testing.assert_array_equal(f(x, loc, shape, df), scipys(x, loc, shape, df))
        for i, given in ((0, x[0]), (1, loc), (2, shape), (3, np.array(df))):
            def along(t, i=i, given=given, f=f):
                args = [x[0], loc, shape, df]
                direction = np.ones_like(given) + np.arange(given.size).reshape(given.shape)
                args[i] = given + t * (direction + direction.T)
                return f(*args)

            assert cytape.grad(along)(0.0) == pytest.approx(
                (along(1e-5) - along(-1e-5)) / 2e-5, rel=1e-6)
    frozen = ours.multivariate_t(cytape.constant(loc), shape, df)
    np.testing.assert_allclose(frozen.logpdf(x), stats.multivariate_t.logpdf(x, loc, shape, df))
    frozen = ours.multivariate_t(loc, shape, df)
    np.testing.assert_allclose(frozen.logpdf(cytape.constant(x)), frozen.logpdf(x))


@each("df", [1e-3, 50.0, 1e6, 1e8, np.inf])
def test_the_multivariate_t_distribution_in_its_degrees_of_freedom(df):
    x, shape = np.array([0.3, -1.0]), np.array([[2.0, 0.3], [0.3, 1.0]])
    value, slope = cytape.value_and_grad(
        lambda df: ours.multivariate_t.logpdf(x, np.zeros(2), shape, df))(df)
    distance, n = x @ np.linalg.solve(shape, x), 2

    def log_density(v):  # SciPy's differences of gammaln cancel for a large df
        return (mpmath.loggamma((v + n) / 2) - mpmath.loggamma(v / 2)
                - n / 2 * mpmath.log(v * mpmath.pi) - mpmath.log(np.linalg.det(shape)) / 2
                - (v + n) / 2 * mpmath.log1p(distance / v))

    with mpmath.workdps(60):
        v = mpmath.mpf(min(df, 1e30))
        # SciPy's betaln has ten digits of its difference to a logarithm below 1e6.
        assert float(value) == pytest.approx(float(log_density(v)), rel=1e-10)
        right = float(mpmath.diff(log_density, v, h=v / 10**15))
    assert slope == pytest.approx(right, rel=max(1e-10, 1e-15 * df), abs=1e-30)


def test_the_multivariate_t_distribution_of_shapes_and_numbers_that_scipy_takes_or_refuses():
    x, t = np.array([0.3, -1.0]), cytape.constant([0.3, -1.0])
    singular, lower = np.ones((2, 2)), np.array([[2.0, 9.0], [0.3, 1.0]])
    for f, scipys in ((d.logpdf, s.logpdf) for d, s in (
            (ours.multivariate_t, stats.multivariate_t),
            (ours.multivariate_normal, stats.multivariate_normal))):
        np.testing.assert_allclose(f(t, None, lower), scipys(x, None, lower), 1e-12)
    f, scipys = ours.multivariate_t, stats.multivariate_t
    np.testing.assert_allclose(
        f.logpdf(t, None, singular, 3.0), scipys.logpdf(x, None, singular, 3.0), 1e-12)
    np.testing.assert_allclose(
        f.pdf(t, None, singular, 3.0, True), scipys.pdf(x, None, singular, 3.0, True), 1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        f.pdf(t, None, singular, 3.0)
    for df in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="must be greater than zero"):
            f.logpdf(t, None, np.eye(2), df)


@each("method", [*CONTINUOUS, "ppf", "isf"])
def test_generalised_gamma_variables_of_a_negative_power(method):
    x = np.array([0.0, 0.2, 0.8])
    function, expected = [getattr(where.gengamma, method) for where in (ours, stats)]
    with np.errstate(all="ignore"):
        found = function(cytape.constant(x), 1.7, -1.3)
        wanted = expected(x, 1.7, -1.3)
        np.testing.assert_allclose(found[1:], wanted[1:], 1e-9)
        np.testing.assert_array_equal(found[0], wanted[0])
    slope = cytape.grad(lambda c: function(0.8, 1.7, c))(-1.3)
    difference = (expected(0.8, 1.7, -1.3 + 1e-5) - expected(0.8, 1.7, -1.3 - 1e-5)) / 2e-5
    assert slope == pytest.approx(difference, rel=1e-6)


@each(x=[np.uint8(250), np.array([3, 250], "uint8"), cytape.constant([3, 250], "uint8")])
def test_narrow_integers_do_not_wrap_around(x):
    z, wide = cytape.constant(0.25), np.asarray(x, float)
    for found, wanted in (
            (ours.rice.ppf(z, x), stats.rice.ppf(0.25, wide)),
            (ours.norm.logpdf(z, x, x), stats.norm.logpdf(0.25, wide, wide)),
            (ours.binom.logpmf(2, x, z), stats.binom.logpmf(2, wide, 0.25))):
        np.testing.assert_allclose(found, wanted, 1e-10)
