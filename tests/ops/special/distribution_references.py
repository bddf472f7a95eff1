"""Distribution functions and their inverses at high precision, references of `references.py`.

Points are drawn by probabilities, in both tails. Inverses are roots at high precision. Without
`nctdtrinc` and `ncfdtrinc`: SciPy's values have relative errors of 1e-4 and more.
"""

import functools

import numpy as np
import pytest

from tests.ops.special.checks import check, flat, spread, whole

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")


def lower_gamma(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def upper_gamma(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


def beta_of_odds(a, b, z):
    """Return the lower and the upper incomplete beta function at z / (1 + z), of positive terms."""
    is_low = z * (b + 1) < a + 1
    if not is_low:
        a, b, z = b, a, 1 / z
    x = z / (1 + z)
    power = a * mp.log(x) - b * mp.log1p(z) - mp.log(mp.beta(a, b) * a)
    tail = mp.exp(power) * mp.hyp2f1(a + b, 1, a + 1, x)
    return (tail, 1 - tail) if is_low else (1 - tail, tail)


def lower_beta(a, b, x):
    return beta_of_odds(a, b, x / (1 - x))[0]


def upper_beta(a, b, x):
    return beta_of_odds(a, b, x / (1 - x))[1]


def lower_f(n, d, x):
    return beta_of_odds(n / 2, d / 2, n * x / d)[0]


def upper_f(n, d, x):
    return beta_of_odds(n / 2, d / 2, n * x / d)[1]


def student(df, t):
    tail = beta_of_odds(mp.mpf(1) / 2, df / 2, t * t / df)[1] / 2
    return tail if t < 0 else 1 - tail


def _mixture(mean, largest, step, lower, shift=0):
    """Sum Poisson weights, of counts + shift, times values, from the largest count downward.

    Parameters
    ----------
    mean : mpf
        Of the counts.
    largest, step : callable
        The value of a count, and how much that of the next lower count is larger: nothing cancels.
    lower : callable
        The quotient of the steps of k - 1 and k.
    shift : mpf
    """
    with mp.extradps(20):
        n = int(mean + 20 * mp.sqrt(mean)) + 90
        value, total, grown = largest(n), mp.mpf(0), step(n - 1)
        weight = mp.exp((n + shift) * mp.log(mean) - mean - mp.loggamma(n + shift + 1))
        for k in range(n, -1, -1):
            total += weight * value
            value += grown
            grown *= lower(k - 1)
            weight *= (k + shift) / mean
        return total


def noncentral_chi_squared(x, df, nc):
    half, x = df / 2, x / 2
    return _mixture(
        nc / 2, lambda k: lower_gamma(half + k, x),
        lambda k: mp.exp((half + k) * mp.log(x) - x - mp.loggamma(half + k + 1)),
        lambda k: (half + k) / x)


def _beta_mixture(mean, a, b, z, shift=0):
    x = z / (1 + z)
    return _mixture(
        mean, lambda k: beta_of_odds(a + k, b, z)[0],
        lambda k: mp.exp((a + k) * mp.log(z) - (a + k + b) * mp.log1p(z) + mp.loggamma(a + k + b)
                         - mp.loggamma(a + k + 1) - mp.loggamma(b)),
        lambda k: (a + k) / ((a + k + b - 1) * x), shift)


def noncentral_f(n, d, nc, f):
    return _beta_mixture(nc / 2, n / 2, d / 2, n * f / d)


def noncentral_t(df, nc, t):
    if t < 0:
        return 1 - noncentral_t(df, -nc, -t)
    half = mp.mpf(1) / 2
    even, odd = [_beta_mixture(nc * nc / 2, half + shift, df / 2, t * t / df, shift)
                 for shift in (0, half)]
    return mp.ncdf(-nc) + (even + mp.sign(nc) * odd) / 2


def of_numbers(function, *arguments):
    """Call a function of SciPy, with counts as integers."""
    return function(*[np.asarray(x, int) if np.all(np.rint(x) == x) and np.all(np.abs(x) < 1e9)
                      else x for x in arguments])


def _central(function, arguments, place):
    """Return the mean of two values of a function around a point, and its derivative."""
    x = arguments[place]
    step = (x or 1) * mp.mpf(10)**-20
    after, before = [
        function(*arguments[:place], moved, *arguments[place + 1:])
        for moved in (x + step, x - step)]
    return (after + before) / 2, (after - before) / (2 * step)


class Inverse:
    """Inverse of a function in the argument at a place, where its own argument is the value.

    It starts from SciPy's value, or that of another function. Its derivatives are those of an
    implicit function, by differences of the function at high precision.
    """

    def __init__(self, name, place, function, start=None):
        self.place, self.function = place, function
        self.start = getattr(special, name) if start is None else start
        self.solution = functools.lru_cache(1)(self._solution)

    def _solution(self, arguments):
        """Return the arguments of the function, and its derivative in the unknown."""
        place, given = self.place, list(arguments)
        with np.errstate(all="ignore"):
            given[place] = mp.mpf(float(
                of_numbers(self.start, *map(float, arguments))))
        if given[place] == 0:  # where a count would be negative, the inverse is 0
            return given, mp.inf
        for _ in range(9):
            value, slope = _central(self.function, given, place)
            change = (value - arguments[place]) / slope
            x = given[place]
            given[place] = max(x - change, x / 2) if x > 0 else x - change  # counts stay positive
            if not abs(change) > 1e-25 * abs(given[place]):  # of numbers near 1 the tail counts
                break
        return given, slope

    def slope(self, place, *arguments):
        """Return the derivative in an argument."""
        given, slope = self.solution(arguments)
        return 1 / slope if place == self.place else (
            -_central(self.function, given, place)[1] / slope)


def probabilities(rng, n):
    """Draw probabilities from 1e-8 to 1 - 1e-5."""
    tail = np.exp(rng.uniform(np.log(1e-8), np.log(0.5), n))
    return np.where(rng.random(n) < 0.5, tail, 1 - np.maximum(tail, 1e-5))


def at_quantiles(inverse, *shapes, place=-1):
    """Draw shapes, and their quantiles as the last or another argument."""
    def draw(rng, n):
        given = [shape(rng, n) for shape in shapes]
        given.insert(len(given) + 1 + place if place < 0 else place, probabilities(rng, n))
        with np.errstate(all="ignore"):
            given[place] = getattr(special, inverse)(*given)
        return given
    return draw


def _inside(low, high, draw):
    """Keep the last argument off the ends of its domain, to which quantiles may be rounded."""
    def drawn(rng, n):
        *shapes, x = draw(rng, n)
        return [*shapes, np.clip(x, low, high)]
    return drawn


def _counts(extra):
    """Draw a count, a number of trials, and a probability of one."""
    def draw(rng, n):
        k = whole(0, 30)(rng, n)
        return [k, (k if extra else 0) + whole(1, 30)(rng, n), flat(0.02, 0.98)(rng, n)]
    return draw


def _probability(draw, place, function):
    """Replace a drawn argument by the value of a function."""
    def drawn(rng, n):
        given = draw(rng, n)
        with np.errstate(all="ignore"):
            given[place] = np.minimum(of_numbers(function, *given), LESS_THAN_1)
        return given
    return drawn


def _solved(name, draw):
    """Keep points where SciPy's search finds a solution; elsewhere it returns one of its limits."""
    def drawn(rng, n):
        given = draw(rng, 4 * n + 40)
        with np.errstate(all="ignore"):
            found = of_numbers(getattr(special, name), *given)
        kept = np.flatnonzero((found > 1e-90) & (found < 1e9))[:n]
        return [x[kept] for x in given]
    return drawn


# ---- records ---------------------------------------------------------------------------------

SHAPE = spread(1e-2, 1e3)
FREEDOM = spread(0.1, 1e4)
NONCENTRAL = spread(1e-2, 1e2)
TINY, LESS_THAN_1 = 1e-200, 1 - 1e-5
GAMMA = _inside(TINY, np.inf, at_quantiles("gammaincinv", SHAPE))
BETA = _inside(TINY, LESS_THAN_1, at_quantiles("betaincinv", SHAPE, SHAPE))
CHI_SQUARED = _inside(TINY, np.inf, at_quantiles("chdtri", FREEDOM))
F = _inside(TINY, np.inf, at_quantiles("fdtri", FREEDOM, FREEDOM))
T = at_quantiles("stdtrit", FREEDOM)
POISSON = at_quantiles("pdtri", whole(0, 60))


def _scaled(rng, n):
    scale, (b, x) = spread(1e-2, 1e2)(rng, n), GAMMA(rng, n)
    return [scale, b, x / scale]


_SEARCH = {"tolerance": 1e-8, "reason": "SciPy's search ends at relative errors of 1e-10"}
_OTHER = dict.fromkeys(
    ["bdtrik", "bdtrin", "chndtrinc", "chndtrix", "fdtridfd", "nbdtrik", "nbdtrin", "stdtridf"],
    _SEARCH) | {
        "nctdtrit": {
            "tolerance": 1e-6,
            "reason": "SciPy's probabilities of 1e-8 have relative errors of 3e-9 and more"},
        "ncfdtri of heavy tails": {
            "tolerance": 0.1, "reason": "SciPy's distribution function has errors of 7e-7 far out"}}

_STARTS = {  # SciPy's value is 1 for small probabilities
    "bdtri": lambda k, n, y: special.betainccinv(k + 1, n - k, y)}


def _families():
    """Yield distribution functions and their inverses."""
    rows = [  # SciPy's function, mpmath's, points, arguments with a derivative, places of inverses
        ("gammainc", lower_gamma, GAMMA, (0, 1), {"gammaincinv": 1}),
        ("gammaincc", upper_gamma, GAMMA, (0, 1), {"gammainccinv": 1}),
        ("betainc", lower_beta, BETA, (0, 1, 2), {"betaincinv": 2, "btdtria": 0, "btdtrib": 1}),
        ("betaincc", upper_beta, BETA, (0, 1, 2), {"betainccinv": 2}),
        ("chdtr", lambda v, x: lower_gamma(v / 2, x / 2), CHI_SQUARED, (0, 1), {"chdtriv": 0}),
        ("chdtrc", lambda v, x: upper_gamma(v / 2, x / 2), CHI_SQUARED, (0, 1), {"chdtri": 1}),
        ("gdtr", lambda a, b, x: lower_gamma(b, a * x), _scaled, (0, 1, 2),
         {"gdtria": 0, "gdtrib": 1, "gdtrix": 2}),
        ("gdtrc", lambda a, b, x: upper_gamma(b, a * x), _scaled, (0, 1, 2), {}),
        ("fdtr", lower_f, F, (0, 1, 2), {"fdtri": 2, "fdtridfd": 1}),
        ("fdtrc", upper_f, F, (0, 1, 2), {}),
        ("stdtr", student, T, (0, 1), {"stdtrit": 1, "stdtridf": 0}),
        ("chndtr", noncentral_chi_squared,
         at_quantiles("chndtrix", FREEDOM, NONCENTRAL, place=0), (0, 2),
         {"chndtrix": 0, "chndtrinc": 2}),
        ("nctdtr", noncentral_t, at_quantiles("nctdtrit", spread(0.5, 300), flat(-5, 5)), (1, 2),
         {"nctdtrit": 2}),
        *[(f"ncfdtr{suffix}", noncentral_f,
           at_quantiles("ncfdtri", spread(0.5, 300), d, NONCENTRAL), (2, 3),
           {f"ncfdtri{suffix}": 3})
          for suffix, d in (("", spread(3, 300)), (" of heavy tails", spread(0.5, 3)))],
        ("pdtr", lambda k, m: upper_gamma(k + 1, m), POISSON, (1,), {"pdtri": 1}),
        ("pdtrc", lambda k, m: lower_gamma(k + 1, m), POISSON, (1,), {}),
        ("bdtr", lambda k, n, p: upper_beta(k + 1, n - k, p), _counts(True), (2,), {"bdtri": 2}),
        ("bdtrc", lambda k, n, p: lower_beta(k + 1, n - k, p), _counts(True), (2,), {}),
        ("nbdtr", lambda k, n, p: lower_beta(n, k + 1, p), _counts(False), (2,), {"nbdtri": 2}),
        ("nbdtrc", lambda k, n, p: upper_beta(n, k + 1, p), _counts(False), (2,), {}),
    ]
    for name, function, draw, places, inverses in rows:
        yield name, check(function, draw, joint=True, places=places, **_OTHER.get(name, {}))
        for inverted, place in inverses.items():
            points = _probability(draw, place, getattr(special, name.split()[0]))
            if inverted in ("chndtrinc", "fdtridfd", "stdtridf"):
                points = _solved(inverted, points)
            yield inverted, check(
                Inverse(inverted.split()[0], place, function, _STARTS.get(inverted)), points,
                joint=True, places=places, **_OTHER.get(inverted, {}))
    for name, function, scipys, draw, place in [  # in real counts
            ("pdtrik", lambda k, m: upper_gamma(k + 1, m),
             lambda k, m: special.gammaincc(k + 1, m), POISSON, 0),
            ("bdtrik", lambda k, n, p: upper_beta(k + 1, n - k, p),
             lambda k, n, p: special.betaincc(k + 1, n - k, p), _counts(True), 0),
            ("bdtrin", lambda k, n, p: upper_beta(k + 1, n - k, p),
             lambda k, n, p: special.betaincc(k + 1, n - k, p), _counts(True), 1),
            ("nbdtrik", lambda k, n, p: lower_beta(n, k + 1, p),
             lambda k, n, p: special.betainc(n, k + 1, p), _counts(False), 0),
            ("nbdtrin", lambda k, n, p: lower_beta(n, k + 1, p),
             lambda k, n, p: special.betainc(n, k + 1, p), _counts(False), 1)]:
        yield name, check(
            Inverse(name, place, function), _probability(draw, place, scipys), joint=True,
            places=(0, 1) if name == "pdtrik" else (0, 1, 2), **_OTHER.get(name, {}))


DISTRIBUTIONS = dict(_families())
