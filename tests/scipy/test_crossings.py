"""Functions of `cytape.scipy` on every way to a derivative, against SciPy's on arrays.

An expression is evaluated twice: with SciPy's modules on arrays, for the value and central
differences, and with cytape's on tensors.
"""

import importlib

import numpy as np
import pytest

import cytape
from tests import ways
from tests.cases import sampled

pytest.importorskip("scipy")

X = np.array([0.31, 0.82, 0.55, 1.24, 0.97, 0.43])
A = np.array([[4.0, 1.0, 0.3], [0.5, 5.0, 0.2], [0.1, 0.7, 6.0]])
T = np.linspace(0, 1, 6)
IMAGE = np.add.outer(np.sin(np.arange(5.0)), np.cos(np.arange(6.0) ** 1.3))
CONSTANTS = {
    "np": np, "X": X, "A": A, "SPD": A @ A.T, "T": T, "IMAGE": IMAGE,
    "GRID": (np.arange(5.0), np.arange(6.0)), "POINTS": np.array([[1.2, 0.3], [2.4, 3.6]]),
    "SITES": np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0.4, 0.3], [0.6, 0.7]]),
    "ROWS": np.array([0, 1, 2, 0]), "ENDS": np.array([0, 1, 2, 4]),  # a matrix of 4 elements
    "EXACT": {"rtol": 1e-9, "atol": 1e-10},
    "TIGHT": {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14},
}
MODULES = ("fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
           "sparse.linalg", "spatial.distance", "special", "stats")
# Of a vector x, a matrix m and a positive definite one s; m and s are made of x.
EXPRESSIONS = """
special.gammaln(x)
special.gamma(x)
special.erf(x)
special.logsumexp(x)
special.softmax(x)
special.log_softmax(x)
special.multigammaln(x[3], 1)
special.polygamma(1, x)
special.comb(5.5, x)
special.factorial(x)
special.binom(5.5, x)
special.betainc(x, 1.5, 0.3)
special.betainc(1.2, x, 0.3)
special.betainc(1.2, 0.7, x / 2)
special.gammainc(x, 0.7)
special.gammainc(0.7, x)
special.gammaincc(x, 0.7)
special.erfcx(x)
np.real(special.wofz(x))
special.ellipk(x / 2)
special.ellipe(x / 2)
special.ellipkinc(x, 0.4)
special.ellipeinc(x, 0.4)
special.ellipkinc(0.4, x / 2)
special.elliprf(x, 1.0, 2.0)
special.elliprj(x, 1.0, 2.0, 0.5)
np.real(special.lambertw(x))
np.real(special.sph_harm_y(2, 1, x, 0.3))
special.voigt_profile(x, 0.5, 0.7)
special.jv(1.5, x)
special.hyp2f1(0.5, 1.5, 2.5, x / 2)
special.hyp1f1(0.5, 1.5, x)
special.airy(x)[0]
special.ellipj(x, 0.3)[1]
special.sici(x)[1]
special.fresnel(x)[0]
special.expi(x)
special.exp1(x)
special.expn(2, x)
special.zeta(x + 1.5)
special.spence(x)
special.boxcox(x, 0.4)
special.boxcox(1.4, x)
special.entr(x)
special.kl_div(x, 0.4)
special.rel_entr(x, 0.4)
special.huber(0.5, x)
special.eval_legendre(3, x / 2)
special.owens_t(x, 0.4)
special.stdtr(x + 1, 0.4)
special.stdtrit(x + 1, 0.4)
special.ndtri(x / 2)
special.gammaincinv(x, 0.4)
special.betaincinv(x, 0.7, 0.4)
special.struve(0, x)
special.k0e(x)
special.hankel1(1, x).real
special.spherical_jn(1, x)
special.exprel(x)
special.poch(x, 0.4)
special.agm(x, 0.4)
special.dawsn(x)
special.logit(x / 2)
special.expit(x)
special.kv(0.3, x)
special.ndtr(x)
special.log_ndtr(-x * 20)
special.xlogy(x, x)
special.powm1(x, 0.3)
special.cosm1(x)
special.eval_chebyt(3, x / 2)
special.eval_jacobi(3, 0.5, 0.5, x / 2)
special.loggamma(x)
special.rgamma(x)
stats.norm.logpdf(x, 0.3, 1.2)
stats.norm.logcdf(0.3, x, 1.2)
stats.norm.logsf(30 * x)
stats.norm.ppf(x / 2, 0.3, 1.2)
stats.norm(0.3, x).logpdf(0.2)
stats.multivariate_normal.logpdf(x[:3], x[3:], s)
stats.multivariate_normal(x[3:], s).logpdf(x[:3])
stats.t.logpdf(0.4, x + 1)
stats.t.cdf(0.4, x + 1)
stats.t.ppf(0.4, x + 1)
stats.gamma.logpdf(0.4, x)
stats.gamma.cdf(0.4, x)
stats.gamma.ppf(0.4, x)
stats.beta.logpdf(0.4, x, 2)
stats.beta.logcdf(0.4, x, 2)
stats.beta.ppf(0.4, x, 2)
stats.chi2.sf(0.4, x + 1)
stats.expon.logsf(x, 0.1, 2)
stats.laplace.logcdf(x, 0.1, 2)
stats.logistic.ppf(x / 2, 0.1, 2)
stats.lognorm.logcdf(x, 0.7, 0, 2)
stats.uniform.logpdf(0.4, 0.1 * x, 2 * x)
stats.cauchy.cdf(x, 0.1, 2)
stats.weibull_min.logsf(x, 1.3, 0, 2)
stats.weibull_min.logpdf(1.3, x)
stats.invgamma.logpdf(x, 1.3)
stats.invgamma.cdf(1.3, x)
stats.pareto.logsf(2.0, x)
stats.pareto.ppf(0.4, x)
stats.dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), x[:3])
stats.poisson.logpmf(np.array([0, 1, 2, 3, 4, 5]), x)
stats.poisson.cdf(2, x)
stats.binom.logpmf(2, 5, x / 2)
stats.binom.cdf(2, 5, x / 2)
stats.nbinom.logpmf(2, 5, x / 2)
stats.nbinom.logpmf(2, x, 0.4)
stats.bernoulli.logpmf(1, x / 2)
stats.geom.logsf(3, x / 2)
stats.multinomial.logpmf([1, 2, 3], 6, x[:3] / np.sum(x[:3]))
stats.vonmises.logpdf(x, 1.3)
stats.vonmises.cdf(x, 1.3)
stats.skewnorm.logpdf(x, 1.3)
stats.skewnorm.cdf(0.4, x)
stats.truncnorm.logpdf(0.4, -x, 1 + x)
stats.truncnorm.cdf(0.4, -x, 1 + x)
stats.truncnorm.ppf(0.4, -x, 1 + x)
linalg.solve(m, x[:3])
linalg.solve(s, x[:3], assume_a='pos')
linalg.solve(s, x[:3], assume_a='sym')
linalg.solve_triangular(m, x[:3], lower=True)
linalg.cholesky(s)
linalg.cho_solve(linalg.cho_factor(s), x[:3])
linalg.lu(m)[1]
linalg.lu(m)[2]
linalg.lu_solve(linalg.lu_factor(m), x[:3])
linalg.qr(m)[1]
linalg.qr(m, mode='economic')[0]
linalg.expm(m / 4)
linalg.expm_frechet(m / 4, A / 5)[1]
linalg.logm(s)
linalg.sqrtm(s)
linalg.funm(s / 20, np.exp)
linalg.solve_sylvester(m, s, A)
linalg.solve_continuous_lyapunov(m, s)
linalg.solve_discrete_lyapunov(m / 9, s)
linalg.block_diag(m, x[:2])
linalg.toeplitz(x)
linalg.toeplitz(x[:3], x[3:])
linalg.solve_toeplitz(x + np.array([4, 0, 0, 0, 0, 0]), T)
linalg.circulant(x)
linalg.hankel(x)
linalg.eigh(s)[0]
np.abs(linalg.eigh(s)[1])
linalg.eigh(s, A @ A.T + np.eye(3), eigvals_only=True)
linalg.eigvalsh(s)
linalg.svd(m)[1]
linalg.svdvals(m)
linalg.pinv(m)
linalg.det(m)
linalg.inv(m)
linalg.norm(m)
linalg.lstsq(m[:, :2], x[:3])[0]
linalg.solve_banded((1, 1), np.stack([x[:3], x[:3] + 5, x[3:]]), T[:3])
linalg.solveh_banded(np.stack([x[:3] / 9, x[:3] + 5]), T[:3])
linalg.sinm(m / 5)
linalg.polar(m)[0]
linalg.fractional_matrix_power(s, 0.3)
signal.convolve(x, T)
signal.convolve(T, x, mode='same')
signal.fftconvolve(x, T)
signal.oaconvolve(x, T)
signal.correlate(x, T)
signal.correlate(x, x, mode='full')
signal.lfilter([0.3, 0.2], [1.0, -0.4], x)
signal.lfilter(x[:2], x[2:4], T)
signal.sosfilt(np.array([[0.3, 0.2, 0.1, 1.0, -0.4, 0.1]]), x)
signal.filtfilt([0.3, 0.2], [1.0, -0.4], np.concatenate([x, x, x]))
signal.resample(x, 4)
signal.resample_poly(x, 3, 2)
np.imag(signal.hilbert(x))
signal.detrend(x)
signal.savgol_filter(x, 5, 2)
np.abs(signal.stft(np.concatenate([x, x]), nperseg=4)[2]) ** 2
signal.istft(signal.stft(np.concatenate([x, x]), nperseg=4)[2], nperseg=4)[1]
np.abs(fft.fft(x)) ** 2
fft.irfft(fft.rfft(x) ** 2, 6)
fft.dct(x)
fft.dct(x, 3, norm='ortho')
fft.idct(x, 1)
fft.dst(x, 4)
fft.idst(x, 2)
fft.dctn(m)
ndimage.convolve(IMAGE * x, A)
ndimage.convolve(IMAGE, m, mode='wrap')
ndimage.correlate(IMAGE * x, A, mode='mirror')
ndimage.gaussian_filter(IMAGE * x, 0.8)
ndimage.gaussian_filter(IMAGE * x, 0.8, order=1, mode='nearest')
ndimage.map_coordinates(IMAGE * x, [[1.2, 2.4], [0.3, 3.6]], order=3)
ndimage.map_coordinates(IMAGE, np.stack([x * 3, x + 2]), order=1)
ndimage.map_coordinates(IMAGE, np.stack([x * 3, x + 2]), order=2)
ndimage.map_coordinates(IMAGE, np.stack([x * 3, x + 2]), order=3, mode='nearest')
ndimage.zoom(IMAGE * x, 1.4)
ndimage.shift(IMAGE * x, (0.4, -0.3))
ndimage.shift(IMAGE, x[:2])
ndimage.affine_transform(IMAGE, m[:2, :2] / 5, order=2)
ndimage.uniform_filter(IMAGE * x, 3)
ndimage.sobel(IMAGE * x)
integrate.trapezoid(x, T)
integrate.trapezoid(T, np.cumsum(x))
integrate.simpson(x, x=T)
integrate.cumulative_trapezoid(x, T, initial=0)
integrate.quad(lambda u, a: np.exp(-a * u), 0, 1, (x[0],))[0]
integrate.quad(lambda u: np.exp(-u), 0, x[0])[0]
integrate.odeint(lambda y, t, a: -a * y, x[:2], T, (x[2],))
integrate.solve_ivp(lambda t, y, a: -a * y, (0, 1), x[:2], t_eval=T, args=(x[2],), **EXACT).y
integrate.solve_ivp(lambda t, y, a: -a * y, (0, 1), x[:2], 'Radau', T, args=(x[2],), **EXACT).y
integrate.solve_ivp(lambda t, y: -y * y, (0, x[3]), x[:2], 'DOP853', **EXACT).y[:, -1]
interpolate.CubicSpline(T, x)(np.array([0.13, 0.7]))
interpolate.CubicSpline(T, X, bc_type='natural')(x / 2)
interpolate.CubicSpline(np.cumsum(x), T)(1.3)
interpolate.PchipInterpolator(T, x)(np.array([0.13, 0.7]))
interpolate.Akima1DInterpolator(T, x)(np.array([0.13, 0.7]))
interpolate.BSpline(np.arange(10.0), x, 3)(np.array([3.3, 4.4]))
interpolate.BSpline(np.arange(10.0), X, 3)(x + 3)
interpolate.make_interp_spline(T, x)(np.array([0.13, 0.7]))
interpolate.RegularGridInterpolator(GRID, IMAGE * x)(POINTS)
interpolate.RegularGridInterpolator(GRID, IMAGE)(np.stack([x, 2 * x], -1))
interpolate.interp1d(T, x)(np.array([0.13, 0.7]))
interpolate.interp1d(T, X, kind='cubic')(x / 2)
interpolate.griddata(SITES, x, np.array([[0.2, 0.3], [0.5, 0.6]]))
sparse.csr_array(A) @ x[:3]
x[:3] @ sparse.csr_array(A)
sparse.linalg.spsolve(sparse.csc_array(A), x[:3])
sparse.linalg.splu(sparse.csc_matrix(A)).solve(x[:3])
sparse.linalg.cg(sparse.csr_array(SPD), x[:3], rtol=1e-12)[0]
sparse.linalg.gmres(sparse.csr_array(A), x[:3], rtol=1e-12)[0]
sparse.linalg.spsolve(sparse.csc_array((x[:3] + 3, (ROWS[:3], ROWS[:3]))), T[:3] + 1)
sparse.linalg.spsolve(sparse.csc_array((x[:4] + 3, +ROWS, ENDS), shape=(3, 3)), T[:3] + 1)
optimize.minimize(lambda u, a: np.sum((u - a) ** 4 + (u - 1) ** 2), 0 * X, (x,), tol=1e-12).x
optimize.root(lambda u, a: u + np.exp(u) - a, np.zeros(6), (x,), tol=1e-13).x
optimize.root_scalar(lambda u, a: u ** 3 + u - a, args=(x[0],), bracket=(0, 2), xtol=1e-14).root
optimize.brentq(lambda u, a: u ** 3 + u - a, 0, 2, args=(x[0],), xtol=1e-14)
optimize.newton(lambda u, a: u ** 3 + u - a, 0.5, args=(x[0],), tol=1e-13)
optimize.least_squares(lambda u, a: np.append(u - a, u**2 - 1), 1 + T, args=(x,), **TIGHT).x
optimize.curve_fit(lambda t, a, b: a * np.exp(-b * t), T, x, xtol=1e-13, ftol=1e-13)[0]
optimize.fixed_point(lambda u, a: np.cos(u) * a, np.ones(6) * 0.5, (x,), xtol=1e-13)
optimize.minimize_scalar(lambda u, a: (u - a) ** 2 + u ** 4, args=(x[0],), tol=1e-11).x
spatial.distance.cdist(m, A)
spatial.distance.pdist(m)
spatial.distance.cdist(m, A, 'cityblock')
spatial.distance.cdist(m, A, 'cosine')
spatial.distance.cdist(m, m)
spatial.distance.pdist(m, 'minkowski', p=3)
spatial.distance.cdist(m, A, 'mahalanobis', VI=SPD)
spatial.distance.squareform(spatial.distance.pdist(m))
""".strip().splitlines()


def function_of(expression, package):
    """Return a function of a vector: the weighted sum of an expression of SciPy's functions."""
    modules = {name: importlib.import_module(f"{package}.{name}") for name in MODULES}
    names = CONSTANTS | {name: module for name, module in modules.items() if "." not in name}
    names["spatial"] = importlib.import_module(f"{package}.spatial")
    code = compile(expression, expression, "eval")

    def weighted_sum(x):
        m = A + np.reshape(np.concatenate([x, x[:3] * x[3:]]), (3, 3))
        y = np.ravel(np.real(eval(code, names | {"x": x, "m": m, "s": m @ m.T})))
        return np.sum(y * (np.cos(1.7 * np.cumsum(np.ones_like(y))) + 0.3))

    return weighted_sum


def central_differences(f, x, step=1e-4):
    """Return the gradient of f by differences of fourth order."""
    return np.array([
        (8 * (f(x + e) - f(x - e)) - f(x + 2 * e) + f(x - 2 * e)) / (12 * step)
        for e in step * np.eye(len(x))])


@pytest.mark.filterwarnings("ignore")
@sampled(16, expression=EXPRESSIONS)
def test_derivatives_on_all_ways(expression):
    ours, plain = function_of(expression, "cytape.scipy"), function_of(expression, "scipy")
    value = ours(X)
    assert not isinstance(value, cytape.Tensor)
    if expression.startswith("optimize."):  # SciPy stops elsewhere, with inexact derivatives
        np.testing.assert_allclose(value, plain(X), rtol=1e-6)
        plain = ours
    np.testing.assert_allclose(value, plain(X), rtol=1e-12)
    np.testing.assert_allclose(ours(cytape.constant(X)), value, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        cytape.grad(ours)(X), central_differences(plain, X), rtol=2e-5, atol=2e-6)
    ways.check(ours, ours, X, ways=ways.OF_KNOWN_EXTENTS, rtol=1e-5, atol=1e-6)
    try:
        ways.check(ours, ours, X, ways=["unknown extents"], rtol=1e-5, atol=1e-6)
    except ExceptionGroup as group:  # an error that says so is right, too
        assert all("known" in str(error) for error in group.exceptions), group
