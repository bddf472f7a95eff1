"""Distributions in their tails, at the ends of their supports and at infinity."""

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.scipy.test_distributions import CONTINUOUS, SHAPES, given

stats = pytest.importorskip("scipy.stats")
ours = pytest.importorskip("cytape.scipy.stats")


def test_values_where_scipys_probabilities_underflow():
    for value, expected in [
            (ours.gumbel_r.logsf(cytape.constant(800.0)), -800.0),
            (ours.weibull_min.logcdf(cytape.constant(1e-200), 2.5), -500 * np.log(10)),
            (ours.cauchy.logpdf(cytape.constant(1e200)), -np.log(np.pi) - 400 * np.log(10))]:
        np.testing.assert_allclose(value, expected, 1e-14)


@each("f, x, expected", [
    (ours.expon.logsf, 800.0, -1.0), (ours.logistic.logcdf, -800.0, 1.0),
    (ours.laplace.logcdf, -800.0, 1.0), (ours.gumbel_r.logcdf, -5.0, np.exp(5.0)),
    (lambda x: ours.weibull_min.logsf(x, 2.0), 50.0, -100.0),
    (lambda x: ours.halfnorm.logsf(x), 40.0, -40.02496886),
    (lambda x: ours.truncnorm.logcdf(x, -50.0, -45.0), -49.0, 49 + 1 / 49 - 2 / 49**3),
    (lambda x: ours.lognorm.logsf(x, 1.0), np.exp(40.0), -40.02496886 * np.exp(-40.0)),
    (lambda x: ours.cauchy.sf(x), 1e12, -1e-24 / np.pi),
    (lambda x: ours.pareto.logsf(x, 3.0), 1e200, -3e-200),
    (ours.cauchy.logpdf, 1e200, -2e-200), (ours.cauchy.logcdf, -1e200, 1e-200),
    (ours.cauchy.logsf, 1e200, -1e-200), (ours.gumbel_r.logsf, 800.0, -1.0),
    (ours.gumbel_r.logsf, -800.0, 0.0), (ours.gumbel_r.cdf, -800.0, 0.0),
    (ours.gumbel_r.pdf, -800.0, 0.0), (ours.gumbel_l.logcdf, -800.0, 1.0),
    (ours.gumbel_l.sf, 800.0, 0.0), (ours.rayleigh.logcdf, 1e-200, 2e200),
    (lambda x: ours.weibull_min.logcdf(x, 2.5), 1e-200, 2.5e200),
    (lambda c: ours.weibull_min.logcdf(1e-200, c), 2.5, -200 * np.log(10)),
    (lambda x: ours.weibull_max.logsf(x, 2.5), -1e-200, -2.5e200),
    (lambda q: ours.truncexpon.isf(q, 50.0), 1e-20, -9.8107746979e19),
    (lambda b: ours.truncexpon.ppf(1.0, b), 50.0, 1.0),
    (lambda q: ours.genlogistic.ppf(q, 0.01), 1e-4, 1e6),
    (ours.arcsine.sf, 1e-120, -1e60 / np.pi), (ours.arcsine.logcdf, 1e-120, 5e119),
    (lambda x: ours.gompertz.sf(x, 0.5), 800.0, 0.0),
    (lambda c: ours.gompertz.pdf(800.0, c), 2.0, 0.0),
    (lambda x: ours.invweibull.cdf(x, 2.0), 1e-120, 0.0),
    (lambda x: ours.invweibull.pdf(x, 2.0), 1e-120, 0.0),
    (lambda x: ours.rice.cdf(x, 1.0), 1e60, 0.0),
    (lambda x: ours.rice.logsf(x, 1.0), 12.0, -11.04936032),
    (lambda b: ours.rice.logsf(12.0, b), 1.0, 10.57845212),
    (lambda x: ours.rice.logcdf(x, 40.0), 1e-5, 200000.003995),
    (lambda b: ours.rice.isf(1e-20, b), 1.0, 0.95057779),
    (lambda x: ours.genlogistic.logsf(x, 0.5), 800.0, -1.0),
    (lambda c: ours.genlogistic.logsf(800.0, c), 0.5, 2.0),
    (lambda x: ours.genextreme.pdf(x, 0.5), 2.0, -0.5),
    (lambda x: ours.genextreme.pdf(x, 1.0), 1.0, 1.0),
    (lambda x: ours.genpareto.pdf(x, -0.5), 2.0, -0.5),
    (lambda x: ours.genpareto.sf(x, -1.0), 1.0, -1.0), (lambda x: ours.fisk.pdf(x, 1.0), 0.0, -2.0),
    (lambda x: ours.burr.logsf(x, 2.0, 3.0), 1e160, -2e-160),
    (lambda x: ours.burr12.logcdf(x, 2.0, 3.0), 1e-160, 2e160),
    (lambda x: ours.exponweib.logsf(x, 2.0, 1.0), 800.0, -1.0),
    (lambda x: ours.powernorm.logcdf(x, 3.0), -45.0, 45 + 1 / 45 - 2 / 45**3),
    (lambda x: ours.foldnorm.logcdf(x, 1.0), 1e-20, 1e20), (ours.hypsecant.logsf, 800.0, -1.0),
    (lambda nc: ours.ncx2.logpdf(1.2, 3.0, nc), 0.0, -0.3),
    (lambda nc: ours.ncx2.logpdf(3000.0, 3000.0, nc), 2.0, -0.00033266843874),
    (lambda x: ours.ncx2.cdf(x, 525.0, 1.056), 431.0, 0.00011348933226),
    (cytape.grad(lambda nc: ours.ncx2.cdf(3.0, 4.0, nc)), 0.0, 0.03137767877087294),
    (lambda a: ours.skewnorm.logcdf(-55.0, a), 0.249, -757.66799862658366),
    (lambda s: ours.tukeylambda.logpdf(-65.88089312843624, s), 0.01076688251056205,
     -10166.000327712336),
    (lambda s: ours.tukeylambda.logcdf(31.574446704606725, s), 0.0154336, 1.8815190101012119e-16),
    (lambda nc: ours.ncf.cdf(1624.1228, 3.0, 5.0, nc), 5000.0, -0.000121791151),
    (lambda k: ours.exponnorm.logcdf(-5e4, k), 1.5, -0.666657777896305),
    (lambda x: ours.invgauss.sf(x, 1.5), 1e242, 0.0),
    (lambda x: ours.invgauss.pdf(x, 1.5), 1e242, 0.0),
    (ours.halflogistic.cdf, 618.0, 2 * np.exp(-618.0)),
    (lambda x: ours.pearson3.logsf(x, 0.1), 97.0, -16.591498370229510),
    (lambda k: ours.pearson3.logsf(97.0, k), 0.1, 8584.696715117802),
    (lambda k: ours.pearson3.logpdf(1e133, k), 0.1, 2e135),
    (ours.kstwobign.logsf, 23.0, -92.0), (ours.kstwobign.logcdf, 0.01, 2467301.10027233950),
    (ours.kstwobign.logcdf, 0.9, 2.27366519646575605), (ours.kstwobign.logpdf, 1e3, -3999.999),
    (lambda x: ours.argus.logcdf(x, 1.0), 1e-9, 2e9),
    (lambda x: ours.argus.cdf(x, 1.891932423596541), 1.2547982697417844e-12,
     1.6425027368266801e-12),
    (lambda c: ours.genpareto.pdf(4e143, c), 2.5, 1.3185283871e-200),
    (lambda c: ours.genextreme.pdf(4e143, c), -2.5, -1.3185283871e-200),
    (lambda x: ours.weibull_min.pdf(x, 13.0), 1e67, 0.0),
    (lambda c: ours.weibull_max.cdf(-1e67, c), 13.0, 0.0),
    (lambda x: ours.gengamma.cdf(x, 4.4, 78.0), 7e4, 0.0),
    (lambda a: ours.gengamma.logcdf(1e121, a, 27.0), 0.3, 0.0),
    (lambda c: ours.gengamma.pdf(1e-89, 0.25, c), -7.6, 0.0),
    (lambda b: ours.gennorm.sf(1e69, b), 29.0, 0.0),
    (lambda x: ours.exponweib.pdf(x, 2.0, 4.0), 1e97, 0.0),
    (ours.landau.logsf, 1e12, -1e-12),
    (lambda x: ours.levy_stable.logsf(x, 1.001, 0.5), 1e12, -1.001e-12),
    (lambda b: ours.levy_stable.logcdf(-1e12, 1.0, b), 0.5, -2.0),
    (lambda x: ours.nct.logsf(x, 0.3, 2.0), 1e40, -0.3e-40),
    (lambda nc: ours.ncx2.logsf(200.0, cytape.constant(3.0), nc), 1000.0, 1.2448885842672e-69),
    (lambda x: ours.levy_stable.logcdf(x, 0.5, 1.0), 1e-3, 500499.00496334926),
    (lambda x: ours.levy_stable.logpdf(x, 1.0001, 0.5), 2.0, np.nan),
    (lambda x: ours.levy_stable.cdf(x, 1.5, 0.0), 0.0, 0.28735275145216443),
    (lambda x: ours.levy_stable.logsf(x, 0.6, 0.5), 0.0, -0.22686458884366756),
    (lambda x: ours.levy_stable.logpdf(x, 0.6, 0.999999), 0.0, np.nan),
    (ours.landau.logpdf, 1e6, -2.000015142386477e-6),
    (ours.landau.logpdf, 1e10, -2e-10),
    (lambda x: ours.levy_stable.logpdf(x, 1.0, 0.01), 5e6, -4.000000068765796e-7),
    (ours.landau.logpdf, 1e200, -2e-200),
    (lambda x: ours.levy_stable.logpdf(x, 1.0, 0.5), -1e12, 2e-12),
    (lambda x: ours.landau.cdf(x), 1e5, 6.367056207292683e-11),
    (lambda p: ours.geom.cdf(-3.0, p), 1.0, 0.0), (lambda p: ours.geom.sf(1.0, p), 1.0, -1.0),
    (lambda p: ours.geom.pmf(2.0, p), 1.0, -1.0), (lambda p: ours.geom.cdf(2.0, p), 1.0, 0.0),
    (lambda x: ours.ncf.logpdf(x, 675.0, 27.0, 0.4), 1e-7, 3364991230.2219),
    (lambda df: ours.ncx2.logpdf(3000.0, df, 2.0), 3000.0, -0.00016631560265),
    (lambda a: ours.skellam.logpmf(-300, a, 300.0), 0.1, -0.0036509722302540126),
    (lambda kappa: ours.vonmises_fisher.logpdf(np.eye(1000)[0], np.eye(1000)[0], kappa), 10.0,
     0.9900009978052324),
    (lambda p: ours.logser.cdf(200, p), 0.01, 0.0),
    (lambda a: ours.alpha.logsf(1e20, a), 1.5, -1.63878975),
    (lambda x: ours.jf_skew_t.logsf(x, 2.0, 1.5), 1e100, -3e-100),
    (lambda x: ours.crystalball.logcdf(x, 1.5, 3.0), -1e100, 2e-100),
    (lambda x: ours.gennorm.logsf(x, 2.0), 40.0, -80.02498439935977),
    (lambda x: ours.gennorm.cdf(x, 2.0), 0.0, 1 / np.sqrt(np.pi)),
    (lambda b: ours.gennorm.logpdf(0.0, b), 2.0, 0.25 * (2 - np.euler_gamma) - np.log(2) / 2),
    (ours.moyal.cdf, 1000.0, np.exp(-500) / np.sqrt(2 * np.pi)),
    (lambda x: ours.chi.pdf(x, 2.0), 0.0, 1.0),
    (lambda x: ours.invgauss.logsf(x, 1.0), 1e10, -0.5 - 1.5e-10),
    (lambda mu: ours.invgauss.logsf(1e10, mu), 2.0, 1e10 / 8), (ours.wald.sf, 1e10, 0.0),
    (lambda x: ours.rel_breitwigner.logsf(x, 2.0), 1e20, -3e-20),
    (lambda x: ours.kappa3.pdf(x, 2.0), 0.0, 0.0),
    (lambda x: ours.mielke.pdf(x, 1.0, 49.0), 0.0, 0.0),
    (lambda a: ours.alpha.logcdf(1e10, a), 0.5, 5.138245643171824e-11),
    (lambda k: ours.pearson3.logpdf(0.7, k), 0.0, (0.343 - 2.1) / 6),
    (lambda k: ours.pearson3.cdf(0.7, k), 0.0, 0.51 / 6 * 0.3122539333667613),
    (lambda x: ours.kappa4.logsf(x, 0.5, 0.0), 800.0, -1.0),
    (lambda x: ours.kappa4.logpdf(x, -1.0, 0.0), -800.0, 1.0),
    (lambda h: ours.kappa4.logcdf(-800.0, h, 0.0), -1.0, -799.0),
    (lambda x: ours.kappa4.cdf(x, 0.0, 0.0), -800.0, 0.0),
    (lambda x: ours.loglaplace.cdf(x, 3.0), 1.0, 1.5),
    (lambda x: ours.loglaplace.logsf(x, 3.0), 1.0, -3.0),
    (lambda x: ours.pearson3.pdf(x, -0.1), 20.0, 0.0),
    (lambda h: ours.kappa4.logsf(800.0, h, 0.0), 2.5, 0.0),
    (lambda h: ours.kappa4.logpdf(0.5, h, 1.0), 1.0, np.log(2)),
    (ours.halfcauchy.logsf, 1e160, -1e-160), (ours.halfcauchy.logsf, 1e-9, -2 / np.pi),
    (lambda x: ours.invgamma.logsf(x, 2.5), 1e200, -2.5e-200),
    (lambda x: ours.invgamma.logsf(x, 2.5), 1e-200, 0.0),
    (lambda x: ours.johnsonsu.logsf(x, 0.5, 1.5), 1e200, -1.03847504e-197),
    (lambda x: ours.chi.logcdf(x, 2.5), 1e-200, 2.5e200), (ours.maxwell.logcdf, 1e-200, 3e200),
    (lambda df: ours.chi.logcdf(1e-200, df), 2.5, -461.14986542),
    (lambda x: ours.nakagami.logcdf(x, 1.5), 1e-200, 3e200),
    (lambda x: ours.levy.sf(x), 1e200, -np.sqrt(0.5 / np.pi) * 1e-300),
    (lambda x: ours.loggamma.logcdf(x, 2.5), -800.0, 2.5), (ours.moyal.logsf, 2000.0, -0.5),
    (lambda x: ours.loggamma.pdf(x, 2.5), 800.0, 0.0), (ours.moyal.cdf, -2000.0, 0.0),
    (lambda q: ours.loggamma.ppf(q, 1e-3), 0.25, 4e3),
    (lambda n: ours.binom.cdf(2, n, 0.3), 5.0, -0.08756339408),
    (lambda x: ours.loguniform.logcdf(x, 3.0, 4.0), 3 + 2**-28, 2.0**28),
    (lambda b: ours.loguniform.cdf(3 + 2**-29, 3.0, b), 3 + 2**-28, -2.0**27),
    (lambda a: ours.alpha.isf(1e-30, a), 2.07, -1.0110199553531518e+29),
    (lambda a: ours.alpha.sf(1e20, a), 2.07, -1.0110199553531518e-21),
    (lambda z: ours.loggamma.sf(z, 0.0097), -715.0, -9.4868168402844389e-6),
    (lambda c: ours.loggamma.logsf(-715.0, c), 0.0097, 0.69942099866583985),
    (ours.hypsecant.ppf, 0.5, np.pi), (lambda q: ours.gennorm.ppf(q, 1.3), 0.5, 1.847153443111956),
    (lambda b: ours.gennorm.ppf(0.5, b), 1.3, 0.0), (lambda a: ours.dgamma.ppf(0.5, a), 1.1, 0.0),
    (lambda q: ours.dgamma.isf(q, 1.0), 0.5, -2.0),
    (lambda a: ours.gengamma.pdf(1.0001, a, -1594.0), 1.9, -269.05318490678066),
    (lambda a: ours.dlaplace.logpmf(0, a), 24.5, 4.5794696912911058e-11),
    (lambda c: ours.foldnorm.cdf(1e-20, c), 0.8, -4.6350648441837239e-21),
    (lambda q: ours.foldnorm.ppf(q, 0.8), 1e-30, 1.7259736959319436),
    (lambda chi: ours.argus.ppf(1e-8, chi), 3.0, 0.00029652304542344069),
    (lambda chi: ours.argus.ppf(1e-30, chi), 20.0, 0.02223609439201772),
    (lambda chi: ours.argus.logsf(1e-3, chi), 2.0, 6.3446354493615603e-7),
    (ours.kstwobign.ppf, 1e-30, 9.1480754016663482e+26),
    (lambda b: ours.crystalball.ppf(0.5, b, 1.827), 0.0642, 581.05375973336197),
    (lambda q: ours.crystalball.ppf(q, 151.0, 1.4), 1e-30, 8.65802778334125e+28),
    (lambda rate: ours.boltzmann.logsf(1, rate, 4), 0.5, -1.4621171572600098),
    (lambda rate: ours.boltzmann.logsf(0, rate, 1), 0.5, 0.0),
    (lambda k: ours.vonmises_line.logcdf(-3.0, k), 30.0, -1.979577001159711),
    (lambda x: ours.vonmises.logcdf(x, 30.0), -3.0, 8.5917495112514962),
    (lambda k: ours.vonmises_line.logcdf(-3.0, k), 10.0, -1.9451718598305899),
    (lambda k: ours.vonmises_line.logsf(-3.0, k), 30.0, 5.9270399061565421e-27),
    (lambda df: ours.t.logpdf(1e200, df), 1.5, -459.38508237154995),
    (lambda x: ours.t.logpdf(x, 1.5), -1e200, 2.5e-200),
    (lambda a: ours.truncnorm.isf(1e-20, a, np.inf), -0.3, 0.065532006597905293),
    (lambda p: ours.binom.logcdf(1, 3, p), 1.0, -np.inf),
    (lambda p: ours.binom.logcdf(3, 3, p), 1.0, 0.0),
    (lambda p: ours.binom.logsf(1, 3, p), 0.0, np.inf),
    (lambda p: ours.binom.logpmf(5, 3, p), 1.0, 0.0),
    (lambda mu: ours.poisson.logsf(1, mu), 0.0, np.inf),
    (lambda mu: ours.poisson.logpmf(-1, mu), 0.0, 0.0),
    (lambda chi: np.sum(ours.argus.ppf(np.array([1e-9, 0.5]), chi)), 3.0, 0.084913809280072),
    (cytape.function(lambda chi: ours.argus.ppf(0.5, chi)), 5.0, 0.019887965748231633)])
def test_tails(f, x, expected):
    np.testing.assert_allclose(cytape.grad(f)(x), expected, 1e-8)
    np.testing.assert_allclose(cytape.jvp(f, (x,), (1.0,))[1], expected, 1e-8)


@each("method, x, expected", [
    (lambda q: ours.truncexpon.isf(q, 50.0), 1e-20, 46.032598007573434),
    (lambda q: ours.truncexpon.isf(q, 800.0), 1e-20, 46.05170185988091),
    (lambda q: ours.truncexpon.ppf(q, 50.0), 1.0, 50.0),
    (lambda q: ours.truncexpon.isf(q, 800.0), 0.0, 800.0),
    (lambda q: ours.genlogistic.ppf(q, 0.01), 1e-4, -921.0340371976183),
    (lambda q: ours.genlogistic.isf(q, 0.001), 0.9, -2302.585092994046),
    (ours.halflogistic.logsf, 1e-10, -5.000000000125e-11),
    (ours.halfnorm.logsf, 1e-20, -7.978845608028654e-21),
    (ours.levy.logcdf, 6.4e39, -9.973557010035817e-21),
    (ours.arcsine.isf, 1 - 1e-10, 2.467401508579721e-20), (ours.arcsine.isf, 1.0, 0.0),
    (lambda z: ours.burr.pdf(z, 2.0, 0.5), 0.0, 1.0),
    (lambda z: ours.burr.logpdf(z, 2.0, 0.5), 0.0, 0.0),
    (lambda z: ours.burr.pdf(z, 1.0, 0.5), 0.0, np.inf),
    (lambda z: ours.burr12.pdf(z, 1.0, 3.0), 0.0, 3.0), (lambda z: ours.fisk.pdf(z, 1.0), 0.0, 1.0),
    (lambda z: ours.genextreme.pdf(z, 1.0), 1.0, 1.0),
    (lambda z: ours.genextreme.logpdf(z, 1.0), 1.0, 0.0),
    (lambda z: ours.genpareto.pdf(z, -1.0), 1.0, 1.0),
    (lambda z: ours.genpareto.pdf(z, -2.0), 0.5, np.inf),
    (lambda z: ours.skewnorm.logcdf(z, 12.33), -1.42, -163.68207791586376),
    (lambda z: ours.tukeylambda.logcdf(z, 0.01076688251056205), -65.88089312843624,
     -114.75680088295977),
    (lambda z: ours.rice.logsf(z, 1.0), 12.0, -62.56796338812345),
    (lambda z: ours.rice.logcdf(z, 40.0), 1e-5, -823.7189980905252),
    (lambda q: ours.rice.isf(q, 1.0), 1e-20, 10.388304068729777),
    (lambda z: ours.genlogistic.logsf(z, 0.5), 800.0, -800.6931471805599),
    (lambda z: ours.burr12.logpdf(z, 1.0, 3.0), 0.0, np.log(3.0))])
def test_values_at_and_near_the_ends(method, x, expected):
    with np.errstate(divide="ignore", over="ignore"):
        np.testing.assert_allclose(method(cytape.constant(x)), expected, 1e-13)


@each("name, shapes", [
    ("geninvgauss", (201.3, 151.1)), ("recipinvgauss", (2.0,)), ("alpha", (2.07,)),
    ("truncnorm", (-0.3, 40.0)), ("ncx2", (3.0, 1.5)), ("ncf", (28.1, 15.5, 1.3))])
def test_small_probabilities_have_quantiles(name, shapes):
    x = getattr(ours, name).isf(cytape.constant(1e-30), *shapes)  # where SciPy's have errors
    np.testing.assert_allclose(getattr(ours, name).logsf(x, *shapes), np.log(1e-30), 1e-12)


@each("name, method, q, shapes", [  # SciPy's are 100, 10, inf, -3.07, 3.33, 1e7, 1e13 and 0
    ("foldnorm", "isf", 1e-20, (1.95,)), ("irwinhall", "isf", 1e-20, (10.0,)),
    ("pearson3", "isf", 1e-17, (0.1,)), ("vonmises", "ppf", 1e-16, (40.0,)),
    ("vonmises", "isf", 1e-17, (40.0,)), ("rel_breitwigner", "isf", 1e-16, (36.5452,)),
    ("dpareto_lognorm", "isf", 1e-40, (3.0, 1.2, 1.5, 2.0)),
    ("dpareto_lognorm", "ppf", 1e-40, (3.0, 1.2, 1.5, 2.0)),
    ("ncf", "isf", 1e-30, (3.0, 2.0, 0.1)), ("ncx2", "ppf", 1e-100, (3.0, 500.0))])
def test_quantiles_that_scipys_search_misses(name, method, q, shapes):
    dist, log_p = getattr(ours, name), {"ppf": "logcdf", "isf": "logsf"}[method]
    shapes = [cytape.constant(shape) for shape in shapes]
    for quantiles in (getattr(dist, method), cytape.function(getattr(dist, method))):
        x, slope = cytape.value_and_grad(quantiles)(cytape.constant(q), *shapes)
        value, back = cytape.value_and_grad(getattr(dist, log_p))(x, *shapes)
        np.testing.assert_allclose(value, np.log(q), 1e-9)
        np.testing.assert_allclose(back * slope * q, 1, 1e-6)


def test_quantiles_stay_scipys_where_logarithms_overflow(monkeypatch):
    monkeypatch.setitem(ours.foldnorm.logarithms, "logsf", lambda z, c: np.nan * z)
    assert ours.foldnorm.isf(cytape.constant(1e-20), 1.95) == stats.foldnorm.isf(1e-20, 1.95)


def test_slopes_at_quantiles_next_to_an_end():
    np.testing.assert_allclose(cytape.grad(ours.vonmises.isf)(1e-18, 0.0), -2 * np.pi, 1e-12)
    assert cytape.grad(ours.vonmises.ppf, 1)(0.0, 40.0) == 0


@each("name, shapes, ends", [
    ("landau", (), [-np.inf, np.inf]), ("kappa3", (1.0,), [0.0, np.inf]),
    ("burr", (3.0, 2.0), [0.0, np.inf])])
def test_quantiles_of_whole_probabilities(name, shapes, ends):
    function = getattr(ours, name)
    for q in (np.array([0, 1]), np.array([0.0, 1.0])):
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(function.ppf(cytape.constant(q), *shapes), ends)
            np.testing.assert_array_equal(function.isf(cytape.constant(1 - q), *shapes), ends)


def test_sums_over_no_counts():
    assert ours.betanbinom.cdf(cytape.constant(np.zeros(0)), 5, 1.7, 2.5).shape == (0,)


@each("name", SHAPES)
@each("method", CONTINUOUS)
@each("x", [-np.inf, np.inf])
def test_values_at_infinity(name, method, x):
    function, expected = [getattr(getattr(where, name), method) for where in (ours, stats)]
    with np.errstate(all="ignore"):
        wanted = expected(x, *given(name))
        if not np.isnan(wanted) and name != "vonmises":
            np.testing.assert_array_equal(function(cytape.constant(x), *given(name)), wanted)
        if name in ("genpareto", "exponnorm", "fisk"):
            shapes = (0.3,) if name == "genpareto" else given(name)
            value, *slopes = cytape.value_and_grad(function, argnums=(0, 1))(x, *shapes)
            assert value == (wanted if np.isfinite(wanted) else value)
            np.testing.assert_array_equal(slopes, 0)
