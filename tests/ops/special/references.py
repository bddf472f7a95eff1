"""Functions of mpmath for functions of `scipy.special`, with points and tolerances."""

import numpy as np
import pytest

import cytape.numpy as cnp
from cytape.ops import special as ours
from tests.ops.special.checks import check, disc, either, flat, signed, spread, whole, with_slope
from tests.ops.special.distribution_references import DISTRIBUTIONS
from tests.ops.special.integral_references import INTEGRALS as OF_BESSEL
from tests.ops.special.quantile_references import QUANTILES, log_normal
from tests.ops.special.wave_references import MATHIEU, SPHEROIDAL

mp = pytest.importorskip("mpmath")

# ---- functions -------------------------------------------------------------------------------


def _boxcox(x, lmbda):
    return mp.expm1(lmbda * mp.log(x)) / lmbda


def _inv_boxcox(y, lmbda):
    return mp.exp(mp.log1p(lmbda * y) / lmbda)


def _voigt(x, sigma, gamma):
    z = mp.mpc(x, gamma) / (sigma * mp.sqrt(2))
    return mp.re(mp.exp(-z * z) * mp.erfc(-1j * z)) / (sigma * mp.sqrt(2 * mp.pi))


def _dawsn(x):
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def _integral(f, x):
    """Integrate from 0 to x, in a variable from 0 to 1, whose nodes mpmath keeps.

    Derivatives may be much smaller than the integral, therefore it has more digits.
    """
    with mp.extradps(30):
        return x * mp.quad(lambda t: f(x * t), [0, 1])


def _rc(x, y):
    return mp.elliprc(x, y)


ELEMENTARY = {
    "cbrt": check(lambda x: mp.sign(x) * mp.cbrt(abs(x)), signed(1e-8, 1e8)),
    "exp2": check(lambda x: mp.mpf(2)**x, signed(1e-8, 300)),
    "exp10": check(lambda x: mp.mpf(10)**x, signed(1e-8, 200)),
    "expm1": check(mp.exp, signed(1e-8, 300)),  # less 1, which would cancel
    "log1p": check(mp.log1p, spread(1e-8, 1e8)),
    "exprel": check(lambda x: mp.expm1(x) / x, signed(1e-8, 300)),
    "cosm1": check(lambda x: mp.cos(x) - 1, signed(1e-8, 100)),
    "sindg": check(lambda x: mp.sin(mp.radians(x)), signed(1e-3, 1e3)),
    "cosdg": check(lambda x: mp.cos(mp.radians(x)), signed(1e-3, 1e3)),
    "tandg": check(lambda x: mp.tan(mp.radians(x)), signed(1e-3, 1e3)),
    "cotdg": check(lambda x: mp.cot(mp.radians(x)), signed(1e-3, 1e3)),
    "diric": check(
        lambda x, n: mp.sin(n * x / 2) / (n * mp.sin(x / 2)),
        flat(-20, 20, [0, 2 * np.pi, -4 * np.pi], 1e-4), whole(1, 9), places=(0,)),
    "radian": check(
        lambda d, m, s: mp.radians(d + m / 60 + s / 3600), *[spread(0.1, 60)] * 3),
    "powm1": check(lambda x, y: x**y, spread(1e-3, 1e3), signed(1e-3, 20)),
    "boxcox": check(_boxcox, spread(1e-3, 1e3), signed(1e-8, 10)),
    "boxcox1p": check(lambda x, lmbda: _boxcox(1 + x, lmbda), spread(1e-8, 1e3), signed(1e-8, 10)),
    "inv_boxcox": check(_inv_boxcox, spread(1e-3, 10), spread(1e-8, 10)),
    "inv_boxcox1p": check(
        lambda y, lmbda: _inv_boxcox(y, lmbda) - 1, spread(1e-3, 10), spread(1e-8, 10)),
    "entr": check(lambda x: -x * mp.log(x), spread(1e-200, 1e100)),
    "rel_entr": check(
        lambda x, y: x * mp.log(x / y), spread(1e-8, 1e8), spread(1e-8, 1e8)),
    "kl_div": check(
        lambda x, y: x * mp.log(x / y) - x + y, spread(0.5, 2, [1]), spread(0.5, 2, [1])),
    "huber": check(
        lambda delta, r: r * r / 2 if abs(r) < delta else delta * (abs(r) - delta / 2),
        spread(1e-3, 1e3), signed(1e-3, 1e3)),
    "pseudo_huber": check(
        lambda delta, r: delta**2 * (mp.sqrt(1 + (r / delta)**2) - 1),
        spread(1e-3, 1e3), signed(1e-6, 1e6)),
}
INTEGRALS = {
    "exp1": check(mp.e1, spread(1e-8, 300)),
    "expi": check(mp.ei, signed(1e-8, 300)),
    "expn": check(mp.expint, whole(0, 8), spread(1e-3, 300), places=(1,)),
    "sici": check([mp.si, mp.ci], spread(1e-6, 1e3)),
    "shichi": check([mp.shi, mp.chi], spread(1e-6, 300)),
    "spence": check(lambda z: mp.polylog(2, 1 - z).real, spread(1e-8, 1e4, [1])),
    "fresnel": check([mp.fresnels, mp.fresnelc], signed(1e-3, 1e3)),
    "modfresnelp": check(
        [lambda x: mp.sqrt(mp.pi) / 2 * mp.expjpi(0.25) * mp.erfc(mp.expjpi(-0.25) * x),
         lambda x: mp.exp(-1j * x * x) * mp.erfc(mp.expjpi(-0.25) * x) / 2], signed(1e-3, 20)),
    "modfresnelm": check(
        [lambda x: mp.sqrt(mp.pi) / 2 * mp.expjpi(-0.25) * mp.erfc(mp.expjpi(0.25) * x),
         lambda x: mp.exp(1j * x * x) * mp.erfc(mp.expjpi(0.25) * x) / 2], signed(1e-3, 20)),
    "dawsn": check(_dawsn, signed(1e-6, 50)),
    "erfi": check(mp.erfi, signed(1e-6, 20)),
    "erfcx": check(lambda x: mp.exp(x * x) * mp.erfc(x), flat(-20, 100)),
    "wofz": check(lambda z: mp.exp(-z * z) * mp.erfc(-1j * z),
                  lambda rng, n: spread(1e-3, 40)(rng, n) * np.exp(1j * rng.uniform(0, 3.1, n))),
    "owens_t": check(
        lambda h, a: _integral(
            lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (2 * mp.pi * (1 + t * t)), a),
        flat(-5, 5), flat(-3, 3)),
    "voigt_profile": check(_voigt, flat(-30, 30), spread(1e-2, 10), spread(1e-3, 10)),
}
ELLIPTIC = {
    "ellipk": check(mp.ellipk, flat(-3, 1, [0, 1 - 0.1])),
    "ellipkm1": check(lambda p: mp.ellipk(1 - p), spread(1e-25, 3, [1])),
    "ellipe": check(mp.ellipe, flat(-3, 1, [0, 1 - 0.1])),
    "ellipkinc": check(mp.ellipf, signed(1e-3, 9), flat(-2, 0.999, [0])),
    "ellipeinc": check(mp.ellipe, signed(1e-3, 9), flat(-2, 0.999, [0])),
    "elliprc": check(_rc, spread(1e-3, 1e3, [1]), spread(1e-3, 1e3, [1])),
    "elliprf": check(mp.elliprf, *[spread(1e-3, 1e3, [1])] * 3),
    "elliprd": check(mp.elliprd, *[spread(1e-3, 1e3, [1])] * 3),
    "elliprg": check(mp.elliprg, *[spread(1e-3, 1e3, [1])] * 3),
    "elliprj": check(mp.elliprj, *[spread(1e-3, 1e3, [1])] * 4),
    "ellipj": check(
        [lambda u, m: mp.ellipfun("sn", u, m=m), lambda u, m: mp.ellipfun("cn", u, m=m),
         lambda u, m: mp.ellipfun("dn", u, m=m),
         lambda u, m: mp.atan2(mp.ellipfun("sn", u, m=m), mp.ellipfun("cn", u, m=m))],
        flat(-3, 3), flat(0.001, 0.999)),
    "agm": check(mp.agm, spread(1e-3, 1e3, [1]), spread(1e-3, 1e3, [1])),
}


def _airye(function, sign):
    return lambda x: function(x) * mp.exp(sign * 2 / mp.mpf(3) * x**mp.mpf("1.5"))


def _spherical(function):
    return lambda n, z: mp.sqrt(mp.pi / (2 * z)) * function(n + mp.mpf("0.5"), z)


ORDER = flat(0, 6)
BESSEL = {
    **{name: check(lambda x, f=f, n=n: f(n, x), sample) for name, f, n, sample in [
        ("j0", mp.besselj, 0, signed(1e-6, 60)), ("j1", mp.besselj, 1, signed(1e-6, 60)),
        ("y0", mp.bessely, 0, spread(1e-6, 60)), ("y1", mp.bessely, 1, spread(1e-6, 60)),
        ("i0", mp.besseli, 0, signed(1e-6, 300)), ("i1", mp.besseli, 1, signed(1e-6, 300)),
        ("k0", mp.besselk, 0, spread(1e-6, 300)), ("k1", mp.besselk, 1, spread(1e-6, 300))]},
    **{name: check(lambda x, f=f, n=n, s=s: f(n, x) * mp.exp(s * abs(x)), sample)
       for name, f, n, s, sample in [
           ("i0e", mp.besseli, 0, -1, signed(1e-6, 1e4)),
           ("i1e", mp.besseli, 1, -1, signed(1e-6, 1e4)),
           ("k0e", mp.besselk, 0, 1, spread(1e-6, 1e4)),
           ("k1e", mp.besselk, 1, 1, spread(1e-6, 1e4))]},
    **{name: check(f, ORDER, spread(1e-3, 60), places=(1,)) for name, f in [
        ("jv", mp.besselj), ("jve", mp.besselj), ("yv", mp.bessely), ("yve", mp.bessely),
        ("iv", mp.besseli), ("kv", mp.besselk), ("hankel1", mp.hankel1), ("hankel2", mp.hankel2)]},
    "kn": check(mp.besselk, whole(0, 6), spread(1e-3, 60), places=(1,)),
    "yn": check(mp.bessely, whole(0, 6), spread(1e-3, 60), places=(1,)),
    "ive": check(lambda v, x: mp.besseli(v, x) * mp.exp(-x), flat(0, 40), spread(1e-3, 1e6),
                 places=(1,)),
    "kve": check(lambda v, x: mp.besselk(v, x) * mp.exp(x), flat(0, 40), spread(1e-3, 1e6),
                 places=(1,)),
    "hankel1e": check(lambda v, z: mp.hankel1(v, z) * mp.exp(-1j * z), ORDER, disc(1e-2, 1e3),
                      places=(1,)),
    "hankel2e": check(lambda v, z: mp.hankel2(v, z) * mp.exp(1j * z), ORDER, disc(1e-2, 1e3),
                      places=(1,)),
    "struve": check(mp.struveh, ORDER, spread(1e-3, 60), places=(1,)),
    "modstruve": check(mp.struvel, ORDER, spread(1e-3, 60), places=(1,)),
    "airy": check(
        [mp.airyai, lambda x: mp.airyai(x, derivative=1), mp.airybi,
         lambda x: mp.airybi(x, derivative=1)], signed(1e-3, 20)),
    "airye": check(
        [_airye(mp.airyai, 1), lambda x: _airye(lambda x: mp.airyai(x, derivative=1), 1)(x),
         _airye(mp.airybi, -1), lambda x: _airye(lambda x: mp.airybi(x, derivative=1), -1)(x)],
        spread(1e-3, 1e4)),
    "spherical_jn": check(_spherical(mp.besselj), whole(0, 6), spread(1e-2, 60), places=(1,)),
    "spherical_yn": check(_spherical(mp.bessely), whole(0, 6), spread(1e-2, 60), places=(1,)),
    "spherical_in": check(_spherical(mp.besseli), whole(0, 6), spread(1e-2, 60), places=(1,)),
    "spherical_kn": check(
        lambda n, z: mp.pi / 2 * mp.sqrt(2 / (mp.pi * z)) * mp.besselk(n + mp.mpf("0.5"), z),
        whole(0, 6), spread(1e-2, 60), places=(1,)),
    "sph_harm_y": check(
        lambda n, m, *angles: mp.spherharm(int(n), int(m), *angles), whole(3, 6), whole(-3, 3),
        flat(0.1, 3), flat(-3, 3), places=(2, 3)),
}
HYPERGEOMETRIC = {
    "hyp0f1": check(mp.hyp0f1, flat(0.5, 6), flat(-20, 20), places=(1,)),
    "hyp1f1": check(mp.hyp1f1, flat(0.5, 6), flat(0.5, 6), flat(-10, 10), places=(2,)),
    "hyp2f1": check(
        mp.hyp2f1, flat(0.5, 2), flat(0.5, 2), flat(0.5, 6), flat(-3, 0.9), places=(3,)),
    "hyperu": check(
        mp.hyperu, flat(0.5, 3), flat(0.5, 3), spread(1e-2, 30), places=(2,), tolerance=1e-7,
        reason="SciPy's hyperu has relative errors of 1e-8"),
    "wrightomega": check(lambda z: mp.lambertw(mp.exp(z)).real, flat(-30, 30)),
    "lambertw": check(mp.lambertw, spread(1e-6, 1e6)),
}
DEGREE = whole(0, 12)
INSIDE = flat(-1, 1, [-1 + 0.11, 1 - 0.11])
POLYNOMIALS = {
    **{f"eval_{name}": check(f, DEGREE, x, places=(1,)) for name, f, x in [
        ("chebyt", mp.chebyt, INSIDE), ("chebyu", mp.chebyu, INSIDE),
        ("legendre", mp.legendre, INSIDE), ("hermite", mp.hermite, flat(-4, 4)),
        ("laguerre", lambda n, x: mp.laguerre(n, 0, x), spread(1e-3, 20)),
        ("sh_legendre", lambda n, x: mp.legendre(n, 2 * x - 1), flat(0, 1)),
        ("sh_chebyt", lambda n, x: mp.chebyt(n, 2 * x - 1), flat(0, 1)),
        ("sh_chebyu", lambda n, x: mp.chebyu(n, 2 * x - 1), flat(0, 1)),
        ("chebyc", lambda n, x: 2 * mp.chebyt(n, x / 2), flat(-2, 2)),
        ("chebys", lambda n, x: mp.chebyu(n, x / 2), flat(-2, 2)),
        ("hermitenorm", lambda n, x: mp.hermite(n, x / mp.sqrt(2)) / mp.sqrt(2)**n, flat(-4, 4))]},
    "eval_gegenbauer": check(mp.gegenbauer, DEGREE, flat(0.3, 3), INSIDE, places=(2,)),
    "eval_genlaguerre": check(mp.laguerre, DEGREE, flat(0.3, 3), spread(1e-3, 20), places=(2,)),
    "eval_jacobi": check(mp.jacobi, DEGREE, flat(0.3, 3), flat(0.3, 3), INSIDE, places=(3,)),
    "eval_sh_jacobi": check(
        lambda n, p, q, x: mp.jacobi(n, p - q, q - 1, 2 * x - 1) / mp.binomial(2 * n + p - 1, n),
        DEGREE, flat(2, 4), flat(0.3, 1.9), flat(0, 1), places=(3,)),
    "legendre_p": check(
        with_slope(mp.legendre), DEGREE, INSIDE, places=(1,), diff_n=1),
    "lpmv": check(lambda m, v, x: mp.legenp(v, m, x).real, whole(0, 3), whole(3, 8),
                  flat(-0.99, 0.99), places=(2,)),
}


def _part(largest):
    """Draw real numbers k <= N."""
    def draw(rng, n):
        number = spread(1e-2, largest)(rng, n)
        return [number, number * rng.uniform(0, 1, n)]
    return draw


GAMMA = {
    "gamma": check(mp.gamma, flat(-20, 150, [-3, -2, -1, 0, 1.4616])),
    "rgamma": check(mp.rgamma, flat(-20, 150, [-3, -2, -1, 0, 1.4616])),
    "gammaln": check(
        lambda x: mp.loggamma(x).real, either(spread(1e-6, 1e8), flat(-20, 0, [-3, -2, -1]))),
    "loggamma": check(mp.loggamma, disc(1e-2, 1e3)),
    "psi": check(
        lambda x: mp.psi(0, x), either(spread(1e-6, 1e4), flat(-20, 0, [-3, -2, -1]))),
    "beta": check(mp.beta, spread(1e-6, 60), spread(1e-6, 60)),
    "betaln": check(lambda a, b: mp.log(mp.beta(a, b)), spread(1e-6, 1e6), spread(1e-6, 1e6)),
    "multigammaln": check(
        lambda a: mp.fsum(mp.loggamma(a - mp.mpf(j) / 2) for j in range(4)),
        lambda rng, n: 1.5 + spread(1e-6, 1e6)(rng, n), d=4),
    "polygamma": check(
        lambda n, x: mp.psi(int(n), x), whole(0, 8),
        either(spread(1e-6, 1e4), flat(-20, 0, [-3, -2, -1])), places=(1,)),
    "factorial": check(mp.factorial, flat(0, 170)),
    "comb": check(mp.binomial, _part(500), joint=True, places=(0, 1)),
    "perm": check(
        lambda N, k: mp.gammaprod([N + 1], [N - k + 1]), _part(150), joint=True, places=(0, 1)),
    "poch": check(mp.rf, spread(1e-6, 60), spread(1e-6, 60)),
    "factorial2": check(
        lambda n: mp.mpf(2)**(n / 2) * mp.gamma(n / 2 + 1) * mp.sqrt(2 / mp.pi),
        flat(-10, 200, [-4, -2]), extend="complex"),
    "binom": check(mp.binomial, flat(1, 60), flat(-0.9, 60)),
    "zetac": check(lambda x: mp.zeta(x) - 1, either(flat(-10, 40, [1]), flat(-230, 0))),
    "zeta": check(mp.zeta, spread(1.01, 40), spread(1e-2, 1e2)),
    "erf": check(lambda x: -mp.sign(x) * mp.erfc(abs(x)), signed(1e-6, 25)),
    "erfc": check(lambda x: mp.sign(x) * mp.erfc(abs(x)), signed(1e-6, 25)),
    "ndtr": check(lambda x: -mp.sign(x) * mp.ncdf(-abs(x)), signed(1e-6, 30)),
    "log_ndtr": check(log_normal, signed(1e-3, 30)),
    "erfinv": check(mp.erfinv, flat(-1, 1, [0.9, -0.9])),
    "expit": check(lambda x: -mp.sign(x) / (1 + mp.exp(abs(x))), signed(1e-6, 300)),
    "log_expit": check(lambda x: -mp.log1p(mp.exp(-x)), signed(1e-6, 300)),
    "logit": check(lambda p: mp.log(p / (1 - p)), spread(1e-12, 0.999)),
    "xlogy": check(lambda x, y: x * mp.log(y), signed(1e-3, 1e3), spread(1e-3, 1e3)),
    "xlog1py": check(lambda x, y: x * mp.log1p(y), signed(1e-3, 1e3), spread(1e-3, 1e3)),
}


def _log_sum(powers):
    return mp.log(mp.fsum(map(mp.exp, powers)))


def _row(function):
    """Return a function of the numbers of a row, with a list of results."""
    return lambda *row: [function(cnp.stack(row, -1), -1)[..., i] for i in range(len(row))]


_OF_ONE = {"tolerance": 1e-9, "reason": "1 less a probability near 1 has the rounding error of 1"}
SUMS = {
    "logsumexp": check(
        lambda *row: _log_sum(row), *[flat(-30, 30)] * 3,
        call=lambda *row: ours.logsumexp(cnp.stack(row, -1), -1)),
    "logsumexp with weights": check(
        lambda a, b, *weights: mp.log(weights[0] * mp.exp(a) + weights[1] * mp.exp(b)),
        *[flat(-30, 30)] * 2, *[spread(1e-3, 1e3)] * 2,
        call=lambda a, b, *weights: ours.logsumexp(
            cnp.stack((a, b), -1), -1, b=cnp.stack(weights, -1))),
    "softmax": check(
        [lambda *row, i=i: mp.exp(row[i] - _log_sum(row)) for i in range(3)],
        *[flat(-8, 8)] * 3, call=_row(ours.softmax), **_OF_ONE),
    "log_softmax": check(
        [lambda *row, i=i: row[i] - _log_sum(row) for i in range(3)],
        *[flat(-8, 8)] * 3, call=_row(ours.log_softmax), **_OF_ONE),
}
PBDV = with_slope(mp.pcfd)
WAVES = {
    "pbdv": check(PBDV, flat(-3, 3), flat(-4, 4), places=(1,)),
    "pbdv beyond 4": check(
        PBDV, flat(-9, 4), signed(4, 20), places=(1,), tolerance=1e-2,
        reason="SciPy's asymptotic series has errors of 1e-7 at its nearest argument, 5.8"),
}
REFERENCES = {
    **ELEMENTARY, **INTEGRALS, **ELLIPTIC, **BESSEL, **HYPERGEOMETRIC, **POLYNOMIALS, **GAMMA,
    **SUMS, **WAVES, **OF_BESSEL, **MATHIEU, **SPHEROIDAL, **DISTRIBUTIONS, **QUANTILES}
