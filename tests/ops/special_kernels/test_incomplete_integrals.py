"""Derivatives in shape parameters against mpmath's at 100 digits, by central differences."""

import numpy as np

from cytape.ops.special_kernels import incomplete_integrals as kernels
from cytape.ops.special_kernels import stirling
from tests.cases import each

GAMMA = [  # a, x, first and second derivative of the regularised function in a
    (0.001, 1e-05, -10.81839829908634, 116.70010711471055),
    (0.001, 1.9, -0.056375388482916046, -0.17107187087565578),
    (0.5, 2.1, -0.12201111082367007, -0.17142282365322745),
    (0.5, 40.0, -2.1253415656995285e-18, -1.0217098153657406e-17),
    (3.1, 2.3, -0.23740882519618686, 0.07490539104110586),
    (12.0, 9.0, -0.08490024558627263, 0.024644755917478466),
    (12.0, 11.6, -0.11714402832925953, 0.004067815049912193),
    (12.0, 80.0, -8.77768614984147e-22, -1.6758440759334035e-21),
    (150.0, 149.6, -0.03261770724469745, 8.726610210276925e-05),
    (150.0, 90.0, -2.509982383106014e-09, 1.2828823122616267e-09),
    (150.0, 300.0, -2.3134003149949967e-22, -1.604403153153613e-22),
    (2000.0, 2100.0, -0.0007743287522442793, -3.778118500600735e-05),
]
BETA = [  # a, b, odds; derivatives in a, in b, in a twice, in both, in b twice
    (0.001, 0.002, 0.5,
     [-222.52945929716554, 111.03513040836852, 148352.6944863471,
      36935.176088064996, -74022.62815999053]),
    (0.01, 500.0, 1e-07,
     [-8.51083463100504, 1.8234547483653436e-05, 78.04729870800239,
      0.0016530604969690861, -3.61419819919885e-08]),
    (0.3, 0.6, 3.0,
     [-0.49437059091936236, 0.4102663402601783, 0.6259352010006797,
      0.7437059126052366, -1.08059479039516]),
    (2.0, 3.0, 0.25,
     [-0.19498637456808535, 0.08039919723660063, 0.1849124240442792,
      -0.051618993241561585, 0.0049093372603884146]),
    (2.0, 3.0, 8.0,
     [-0.005012598196139489, 0.00983210044994593, -0.0028676583133221308,
      0.008724024660880455, -0.018924198992513536]),
    (3.0, 400.0, 0.01,
     [-0.17819079327135554, 0.0014652269775806152, -0.050115852612975804,
      0.0006718780446243723, -7.271627939539676e-06]),
    (400.0, 3.0, 64.0,
     [-0.0005977641369920321, 0.05707355392036702, 6.286482843313007e-06,
      -0.0005375592336155736, 0.04192215357425294]),
    (60.0, 80.0, 0.7,
     [-0.036735995066403564, 0.02660121973424646, 0.0017350397303038797,
      -0.0010328219513359334, 0.0005804382464108077]),
    (60.0, 80.0, 2.0,
     [-1.900533775906005e-09, 2.315519918177473e-09, -8.267095176404044e-10,
      1.026588125391051e-09, -1.2652324523329032e-09]),
    (900.0, 500.0, 1.75,
     [-0.007030254746292225, 0.012479218787535008, 7.640010969751443e-05,
      -0.00012868872747540613, 0.000215959461651829]),
    (30.0, 0.2, 40.0,
     [-0.0033273039054818603, 0.4441240426367462, 0.00017206225260419717,
      -0.01646976086793378, 0.35399879055727873]),
]


@each("a, x, first, second", GAMMA)
def test_gamma(a, x, first, second):
    np.testing.assert_allclose(kernels.gammainc_a(a, x), first, 1e-12)
    np.testing.assert_allclose(kernels.gammainc_aa(a, x), second, 1e-11)


@each("a, b, z, expected", BETA)
def test_beta(a, b, z, expected):
    found = [getattr(kernels, f"betainc_{x}")(a, b, z) for x in ("a", "b", "aa", "ab", "bb")]
    np.testing.assert_allclose(found, expected, 1e-10)
    found = [getattr(kernels, f"betainc_{x}")(b, a, 1 / z) for x in ("b", "a", "bb", "ab", "aa")]
    np.testing.assert_allclose(np.negative(found), expected, 1e-10)


def test_single_precision_is_rounded_double_precision():
    a, x = np.float32(2.5), np.array([0.3, 4.0], np.float32)
    found = kernels.gammainc_a(a, x)
    np.testing.assert_array_equal(
        found, kernels.gammainc_a(float(a), x.astype(float)).astype(np.float32), strict=True)


def test_no_argument_warns():
    with np.errstate(all="raise", under="ignore"):
        for x in (0.0, 1.0, np.inf, -np.inf, np.nan, -1.0, 1e-300, 1e300):
            stirling.gamma_density([0.5, 1.0, 2.0, np.nan], x)
            kernels.gammainc_a([0.5, 200.0, 0.0, np.nan], x)
            kernels.gammainc_slopes([0.5, 200.0, 0.0, np.nan], x)
            for function in (kernels.betainc_a, kernels.betainc_bb, stirling.odds_density,
                             kernels.betainc_slopes, kernels.odds_slopes):
                function([0.5, 200.0, 0.0, np.nan], [[0.7], [300.0]], x)
