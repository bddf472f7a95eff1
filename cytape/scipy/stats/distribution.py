"""Distributions of one variable: methods made of functions of the standardised variable.

A declaration has functions of the standardised variable and of the shape parameters; location,
scale, the support and invalid parameters are handled for all distributions alike. Logarithms of
probabilities are computed directly where the probabilities underflow. Gradients are 0 outside of
the support, and NaN for invalid parameters.
"""

import functools
import math
import sys

import numpy as np
import scipy.stats as stats

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.comparisons import floor
from cytape.ops.creation import stop_gradient_op
from cytape.ops.elementwise import abs, exp, expm1, log, log1p, sqrt, where
from cytape.ops.probabilities.log_probabilities import log_gammainc, log_rest
from cytape.ops.sampling.quantile_functions import steps_op
from cytape.ops.special import erf, gammaln, log_expit, log_ndtr, xlogy
from cytape.ops.special.elementary_functions import log1p_over
from cytape.scipy.stats.solved_quantiles import solve_op
from cytape.tensor import convert_to_tensor

HALF_LOG_2PI, LOG_2 = 0.5 * math.log(2 * math.pi), math.log(2)
POSITIVE = (0, np.inf)
EULER = 0.57721566490153286061
_MOMENTS = ("mean", "var", "std", "entropy")
_BEYOND = {  # values below the support, and above it
    "pdf": (0, 0), "pmf": (0, 0), "logpdf": (-np.inf, -np.inf), "logpmf": (-np.inf, -np.inf),
    "cdf": (0, 1), "sf": (1, 0), "logcdf": (-np.inf, 0), "logsf": (0, -np.inf)}


def _value(condition):
    """Return the elements of a condition, None of a symbolic one."""
    if is_tensor(condition):
        return condition.numpy() if condition.graph is None else None
    return np.asarray(condition)


def either(condition, if_true, if_false):
    """Return ``where(condition, if_true(), if_false())``, of the one function if it serves all."""
    known = _value(condition)
    if known is not None and known.size:
        n_true = np.count_nonzero(known)
        if n_true in (0, known.size):
            value = if_true() if n_true else if_false()
            if np.shape(value) == known.shape or np.ndim(value) > known.ndim:
                return value
    return where(condition, if_true(), if_false())


def log_probability(p, q):
    """Return the logarithm of a probability, given that of the complement."""
    is_small = p < 0.5
    with np.errstate(divide="ignore"):
        return where(is_small, log(where(is_small, p, 1)), log1p(-where(is_small, 0, q)))


def complementary(log_p, log_q):
    """Return functions for logarithms of complements, for numbers near 0 by the other one."""
    def by(log_one, log_other):
        def function(*z):
            value, other = log_one(*z), log_other(*z)
            is_small = other < -2
            return where(is_small, log1p(-exp(where(is_small, other, -2.0))), value)

        return function

    return {"logcdf": by(log_p, log_q), "logsf": by(log_q, log_p)}


def log_erfc(x):
    """Return log(erfc(x)) for x >= 0."""
    is_small = x < 0.7
    small, large = where(is_small, x, 0.0), where(is_small, 1.0, x)
    return where(is_small, log1p(-erf(small)), math.log(2) + log_ndtr(-math.sqrt(2) * large))


def log_gamma_cdf(a, x, log_x):
    """Return log(gammainc(a, x)), for small x by its logarithm, as x and slopes underflow."""
    is_tail = log_x < -40
    return either(
        is_tail, lambda: a * where(is_tail, log_x, -40.0) - gammaln(a + 1),
        lambda: log_gammainc(a, where(is_tail, 1.0, x)))


def power_density(power, rest):
    """Return logarithm and value of a density z**power exp(rest), which has derivatives at 0."""
    def log_density(z, *shapes):
        return xlogy(power(*shapes), z) + rest(z, *shapes)

    def density(z, *shapes):
        rise = power(*shapes)
        is_left = (z < 1) & (rise >= 0)  # other powers overflow
        left, right = where(is_left, z, 1.0), where(is_left, 1.0, z)
        return where(
            is_left, left**where(is_left, rise, 0.0) * exp(rest(left, *shapes)),
            exp(log_density(right, *shapes)))

    return log_density, density


def not_far(z, c):
    """Return z, or where z**c is 1e10 if that is more: beyond, powers overflow."""
    with np.errstate(all="ignore"):
        is_far = z**c > 1e10
        return where(is_far, stop_gradient_op(1e10**(1 / where(is_far, c, 1.0))), z)


def log1p_rate(z, c):
    """Return log1p(c z) / c, for large products by a sum whose slopes do not underflow."""
    is_far = c * z > 1
    far, rate = where(is_far, z, 1.0), where(is_far, c, 1.0)
    near = where(is_far, 0.0, z)
    return where(is_far, (log(abs(far)) + log(abs(rate) + 1 / abs(far))) / rate,
                 near * log1p_over(c * near))


def near_end(z, c):
    """Return whether z is near the end 1 / c of a support, there 1 - c z and c, elsewhere z."""
    u = 1 - c * z
    is_near = (c > 0) & (u < 0.1)
    end = where(is_near, c, 1.0)
    return is_near, where(is_near, u, 0.5), end, where(is_near, 0.5 / end, z)


def log_softplus(y):
    """Return log(log1p(exp(y))), without underflow."""
    is_small = y < -36
    return where(is_small, y, log(-log_expit(-where(is_small, 0.0, y))))


def _is_float64(x):
    return x.dtype == np.float64 if type(x) is np.ndarray else type(x) in (float, int, np.float64)


class Distribution:
    """Distribution of SciPy whose densities, probabilities and quantiles are differentiable.

    Parameters
    ----------
    scipys : scipy.stats.rv_continuous or rv_discrete
        Other methods are this one's.
    logpdf : callable
        Function of the standardised variable and the shape parameters. That of a discrete
        distribution gets integers.
    cdf, sf, logcdf, logsf : callable, optional
        Probabilities, each by the others where it is not given. The default of logarithms is that
        of `cdf` or `sf`, of the smaller one. Without any, these methods are SciPy's.
    pdf : callable, optional
        Density, say with finite derivatives at the ends of the support. The default is
        ``exp(logpdf)``.
    ppf, isf : callable, optional
        Inverses of `cdf` and `sf`. The default of `isf` is ``ppf(1 - q)``, that of `ppf` SciPy's
        number and two steps of Newton's method, which have its derivatives. A discrete distribution
        has SciPy's, which are steps.
    support : tuple of float or callable
        Ends of the support, or a function of the shape parameters that returns them.
    inside : float or callable, optional
        A point of the support, or a function of the shape parameters.
    open_ends : bool or str
        Whether the functions are not evaluated at the ends, or only "probabilities" are not.
    valid : callable, optional
        Returns whether the shape parameters are valid. The default is that they are positive.
    moments : dict, optional
        Functions of the shape parameters by name, "mean", "var" and "entropy", of scale 1.
    fixed : tuple of int, optional
        Positions of shape parameters without derivatives: they are not recorded with the others,
        and stay known numbers.
    probability : int, optional
        Position of a probability that may be 0 or 1, or of a mean that may be 0. Outside of the
        support, where slopes of logarithms may be infinite, the functions get 1/2.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.stats import norm
    >>> cytape.grad(norm.logpdf, argnums=(1, 2))(3.0, 1.0, 2.0)
    (np.float64(0.5), np.float64(0.0))
    >>> cytape.grad(lambda mean: norm(mean, 2.0).logpdf(3.0))(1.0)
    np.float64(0.5)
    """

    def __init__(
            self, scipys, logpdf, cdf=None, sf=None, logcdf=None, logsf=None, pdf=None, ppf=None,
            isf=None, support=(-np.inf, np.inf), inside=0.5, open_ends=False, valid=None,
            moments=None, is_exact=False, fixed=(), probability=None):
        """Make a distribution of its functions; `is_exact` if SciPy's numbers are the same."""
        self.scipys = scipys
        self.is_discrete = isinstance(scipys, stats.rv_discrete)
        self.support = support if callable(support) else lambda *_: support
        self.is_whole_line = (
            support == (-np.inf, np.inf) and not open_ends and not self.is_discrete)
        self.inside = inside if callable(inside) else lambda *_: inside
        self.open_ends, self.valid, self.is_exact = open_ends, valid, is_exact
        self.fixed, self.probability = fixed, probability
        density = "pmf" if self.is_discrete else "pdf"
        functions = {density: pdf or _after(exp, logpdf), f"log{density}": logpdf}
        functions.update(_probabilities(cdf, sf, logcdf, logsf))
        methods = {
            name: self._method(name, function, *_BEYOND[name])
            for name, function in functions.items()}
        if "cdf" in functions:
            if ppf is None and not self.is_discrete:
                ppf, isf = [self._solved(name, functions[of], functions["logpdf"], sign)
                            for name, of, sign in (("ppf", "logcdf", 1), ("isf", "logsf", -1))]
            functions.update(ppf=ppf, isf=isf or (lambda q, *shapes: ppf(1 - q, *shapes)))
            methods.update({name: self._quantiles(name, functions[name])
                            for name in ("ppf", "isf")})
        self.functions = self.logarithms = functions  # those of arrays, to search for quantiles
        moments = dict(moments or {})
        if "var" in moments:
            moments["std"] = lambda *shapes: sqrt(moments["var"](*shapes))
        methods.update({name: self._moment(name, moments[name])
                        for name in _MOMENTS if name in moments})
        for name, method in methods.items():
            numpys = getattr(scipys, name)
            method.__name__, method.__doc__ = name, numpys.__doc__
            setattr(self, name, method)
        self.methods = frozenset(methods)

    def __getattr__(self, name):
        """Return a method of SciPy's distribution."""
        return getattr(self.scipys, name)

    def __call__(self, *args, **kwds):
        """Freeze the distribution: SciPy's frozen one, with methods that take tensors."""
        self.scipys._parse_args(*args, **kwds)  # raises errors
        return frozen(self, self.methods.difference(_MOMENTS), args, kwds)

    def __reduce__(self):
        """Pickle by name."""
        return named, (self.scipys.name,)

    def _given(self, args, kwds, *x):
        """Return operands, location, scale and shapes, all recorded together."""
        shapes, loc, scale = self.scipys._parse_args(*args, **kwds)
        given = list(map(joined, (*x, loc, scale, *shapes)))
        if not any(map(is_tensor, given)):
            return given
        given = [_widened(np.asarray(x) if isinstance(x, (list, tuple)) else x) for x in given]
        apart = [len(x) + 2 + position for position in self.fixed]
        grouped = iter(together(*[x for i, x in enumerate(given) if i not in apart]))
        return [x if i in apart else next(grouped) for i, x in enumerate(given)]

    def _method(self, name, function, below, above):
        is_density = name.endswith(("pdf", "pmf"))
        numpys = getattr(self.scipys, name)
        is_open = self.open_ends is True or self.open_ends == "probabilities" and not is_density

        def method(x, *args, **kwds):
            x, loc, scale, *shapes = given = self._given(args, kwds, x)
            if not any(map(is_tensor, given)) and not (
                    self.is_exact and all(map(_is_float64, given))):
                return numpys(x, *args, **kwds)  # which takes longer than the formulas
            scale, *shapes = self._validated(scale, shapes)
            z = (x - loc) / scale
            if self.is_whole_line:
                return in_precision(_rescaled(function(z, *shapes), scale, name), given)
            low, high = self.support(*shapes)
            is_below, is_above = (z <= low, z >= high) if is_open else (
                (z < low) | (z == -np.inf), (z > high) | (z == np.inf))
            if self.is_discrete:
                whole = floor(z)
                if is_density:
                    is_below = is_below | (z > whole)
                else:
                    is_above = z >= high
                z = whole
            is_outside = is_below | is_above
            known = _value(is_outside)
            are_inside = known is not None and known.ndim == 0 and not known  # as of numbers
            if not are_inside and self.probability is not None:
                shapes[self.probability] = where(is_outside, 0.5, shapes[self.probability])
            z = _numpy_number(z) if are_inside else where(is_outside, self.inside(*shapes), z)
            value = function(z, *shapes)
            if not self.is_discrete:
                value = _rescaled(value, scale, name)
            if not are_inside:
                value = where(is_below, below, where(is_above, above, value))
            return in_precision(value, given)

        return method

    def _quantiles(self, name, function):
        numpys = getattr(self.scipys, name)

        def method(q, *args, **kwds):
            q, loc, scale, *shapes = given = self._given(args, kwds, q)
            if not any(map(is_tensor, given)):
                return numpys(q, *args, **kwds)
            scale, *shapes = self._validated(scale, shapes)
            if self.is_discrete:
                return loc + steps_op(*map(
                    convert_to_tensor, (q, *shapes)), name=self.scipys.name, method=name)
            with np.errstate(divide="ignore"):  # at the ends of the support
                value = loc + scale * function(q, *shapes)
            value = value * where((q >= 0) & (q <= 1), np.ones_like(value), np.nan)
            return in_precision(value, given)

        return method

    def _solved(self, name, function, log_density, sign):
        """Return a quantile function: the derivatives of two steps of Newton's method are its.

        Two steps before improve the number. The method is that for the logarithm, which is nearly
        linear in tails. Numbers that are far off, or whose steps leave the support, stay.
        """
        def improved(is_inner, z, log_q, *shapes):
            with np.errstate(all="ignore"):  # the number may be the end of the support
                log_p = function(z, *shapes)
                fixed_p, fixed_q = stop_gradient_op(log_p), stop_gradient_op(log_q)
                is_near = (abs(fixed_p - fixed_q) < 1) & is_inner
                goal = where(
                    is_near, log_q, fixed_p + (log_q - fixed_q) * exp(fixed_q - fixed_p))
                moved = z - sign * (log_p - goal) * exp(log_p - log_density(z, *shapes))
            low, high = self.support(*shapes)
            return where((moved > low) & (moved < high), moved, z)

        def quantile(q, *shapes):
            dtype = convert_to_tensor(sum((0 * shape for shape in shapes), q)).dtype
            known = solve_op(
                *map(convert_to_tensor, (q, *shapes)), name=self.scipys.name, method=name)
            known = known.astype(dtype) if dtype.kind == "f" else known
            is_inner = (q > 0) & (q < 1)
            q = where(is_inner, q, 0.5)
            z = where(is_inner, known, self.inside(*shapes))
            fixed = [stop_gradient_op(x) for x in (log(q), *shapes)]
            for given in (fixed, fixed, (log(q), *shapes), (log(q), *shapes)):
                z = improved(is_inner, z, *given)
            return where(is_inner, z, known)

        return quantile

    def _moment(self, name, function):
        numpys = getattr(self.scipys, name)

        def method(*args, **kwds):
            loc, scale, *shapes = given = self._given(args, kwds)
            if not any(map(is_tensor, given)):
                return numpys(*args, **kwds)
            scale, *shapes = self._validated(scale, shapes)
            value = function(*shapes)
            if name == "mean":
                return loc + scale * value
            if name == "entropy":
                return value if self.is_discrete else value + _log_scale(scale)
            return value * (scale * scale if name == "var" else scale)

        return method

    def _validated(self, scale, shapes):
        """Return parameters with NaN for invalid ones."""
        valid = scale > 0
        if self.valid is not None:
            valid = valid & self.valid(*shapes)
        else:
            for shape in shapes:
                valid = valid & (shape >= 0 if self.is_discrete else shape > 0)
        known = _value(valid)
        if known is None or known.ndim and is_tensor(valid) or not known.all():
            apart = self.fixed if len(self.fixed) < len(shapes) else ()  # the others have the NaN
            scale, *shapes = [  # by a product, which makes gradients NaN, too
                given if i - 1 in apart else given * where(valid, np.ones_like(given), np.nan)
                for i, given in enumerate((scale, *shapes))]
        return scale, *map(_numpy_number, shapes)


def _numpy_number(x):
    """Return NumPy's number for Python's, whose arithmetic raises errors."""
    return np.float64(x) if type(x) in (int, float) else x


def _widened(x):
    """Return integers whose squares or negatives would wrap around as float64."""
    dtype = getattr(x, "dtype", None)
    if dtype is None or dtype.kind not in "bui" or dtype == np.int64:
        return x
    return x.astype(np.float64)


def in_precision(value, given):
    """Return single precision for operands of it; logarithms of Python's numbers have double."""
    if not is_tensor(value) or value.dtype != np.float64:
        return value
    dtype = np.result_type(*[getattr(x, "dtype", x) for x in given])
    return value.astype(dtype) if dtype.kind == "f" and dtype != np.float64 else value


def _after(outer, inner):
    return lambda *z: outer(inner(*z))


def _probabilities(cdf, sf, logcdf, logsf):
    """Return four functions, made of those that are given."""
    if not (cdf or logcdf or logsf):
        return {}
    by_logarithms = cdf is None
    if cdf is None:
        cdf = _after(exp, logcdf) if logcdf else lambda *z: -expm1(logsf(*z))
    if sf is None:
        sf = _after(exp, logsf) if logsf else lambda *z: -expm1(logcdf(*z))
    if by_logarithms:
        logcdf, logsf = logcdf or _after(log_rest, logsf), logsf or _after(log_rest, logcdf)
    return {
        "cdf": cdf, "sf": sf, "logcdf": logcdf or (lambda *z: log_probability(cdf(*z), sf(*z))),
        "logsf": logsf or (lambda *z: log_probability(sf(*z), cdf(*z)))}


def _rescaled(value, scale, name):
    """Return a density of the variable, given that of the standardised one."""
    if name == "logpdf":
        return value - _log_scale(scale) if is_tensor(value) else value - log(scale)
    return value / scale if name == "pdf" else value


def _log_scale(scale):
    """Return the logarithm; of a Python number one, which leaves single precision as it is."""
    return math.log(scale) if type(scale) in (int, float) and scale > 0 else log(scale)


class Frozen:
    """Distribution with given parameters, some of which are tensors; its methods take the rest."""

    def __init__(self, dist, args, kwds):
        """Hold a distribution and its parameters."""
        self.dist, self.args, self.kwds = dist, args, kwds

    def __getattr__(self, name):
        """Return a method of the distribution, with the parameters."""
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self.dist, name)
        if name in (*_MOMENTS, "median", "stats", "support"):
            return functools.partial(method, *self.args, **self.kwds)
        return lambda x, *args: method(x, *args, *self.args, **self.kwds)

    def expect(self, *args, **kwds):
        """Refuse parameters that are tensors."""
        raise TypeError(
            "expect: parameters that are tensors have no derivative: write cytape.scipy.integrate."
            "quad(lambda x, *p: f(x) * d.pdf(x, *p), lower, upper, args=parameters)")

    def rvs(self, size=None, random_state=None):
        """Draw samples, as SciPy does; they have no derivatives."""
        return self.dist.rvs(*self.args, **self.kwds, size=size, random_state=random_state)


def frozen(dist, names, args, kwds, **options):
    """Return SciPy's frozen distribution, with methods that take tensors; of tensors `Frozen`."""
    if any(map(is_tensor, (*args, *kwds.values()))):
        return Frozen(dist, args, kwds)
    result = dist.scipys(*args, **kwds, **options)
    for name in names:
        setattr(result, name, functools.partial(
            _of_frozen, dist, name, getattr(result, name), args, kwds))
    return result


def _of_frozen(dist, name, numpys, args, kwds, *x):
    """Call a method of SciPy's frozen distribution, or of ours on a tensor."""
    return getattr(dist, name)(*x, *args, **kwds) if any(map(is_tensor, x)) else numpys(*x)


def named(name):
    """Return a distribution of `cytape.scipy.stats`, for pickle."""
    return getattr(sys.modules[__package__], name)
