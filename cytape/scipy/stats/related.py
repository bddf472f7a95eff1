"""Distributions that are those of functions of other variables."""

from cytape.ops.elementwise import exp, log1p, where
from cytape.scipy.stats.distribution import LOG_2, Distribution


def _declared(scipys, functions, **options):
    names = ("logpdf", "cdf", "sf", "logcdf", "logsf", "pdf", "ppf", "isf")
    return Distribution(scipys, *map(functions.get, names), **options)


def increasing(
        scipys, other, arguments, inverse=None, log_slope=None, densities=None, **options):
    """Return the distribution of an inverse function of another variable.

    Parameters
    ----------
    scipys : scipy.stats.rv_continuous
    other : Distribution
    arguments : callable
        Of the variable and shapes; returns the other variable and its shapes.
    inverse : callable, optional
        Of the other variable and the shapes; returns the variable. The default is the identity.
    log_slope : callable, optional
        Logarithm of the derivative of the other variable.
    densities : tuple of callable, optional
        Logarithm of the density and the density, where those of the other variable would cancel.
    **options
        Those of `Distribution`.
    """
    functions = {
        name: lambda *z, f=f: f(*arguments(*z)) for name, f in other.functions.items()}
    if log_slope is not None:
        log_density, density = functions["logpdf"], functions["pdf"]
        functions["logpdf"] = lambda *z: log_density(*z) + log_slope(*z)
        functions["pdf"] = lambda *z: density(*z) * exp(log_slope(*z))
    if densities is not None:
        functions.update(zip(("logpdf", "pdf"), densities, strict=True))
    for name in ("ppf", "isf"):
        def quantile(q, *shapes, f=other.functions[name]):
            y = f(q, *arguments(q, *shapes)[1:])
            return y if inverse is None else inverse(y, *shapes)

        functions[name] = quantile
    return _declared(scipys, functions, **options)


def mirrored(scipys, other, **options):
    """Return the distribution of the negative of a variable."""
    swapped = {"cdf": "sf", "sf": "cdf", "logcdf": "logsf", "logsf": "logcdf"}
    functions = {
        swapped.get(name, name): lambda z, *shapes, f=f: f(-z, *shapes)
        for name, f in other.functions.items()}
    for name, of in (("ppf", "isf"), ("isf", "ppf")):
        functions[name] = lambda q, *shapes, f=other.functions[of]: -f(q, *shapes)
    return _declared(scipys, functions, **options)


def doubled(scipys, half, **options):
    """Return the symmetric distribution of a variable whose magnitude has the functions `half`."""
    def magnitude(z):
        return where(z < 0, -z, z)  # with a derivative at 0

    def upper(z, *shapes):
        tail = 0.5 * half["sf"](magnitude(z), *shapes)
        return where(z < 0, 1 - tail, tail)

    def log_upper(z, *shapes):
        log_tail = half["logsf"](magnitude(z), *shapes) - LOG_2
        return where(z < 0, log1p(-exp(log_tail)), log_tail)

    def quantile(q, *shapes):
        is_left = q < 0.5
        p = where(is_left, 1 - 2 * q, 2 * q - 1)  # with a derivative at 0
        is_inner = p < 0.5
        z = where(
            is_inner, half["ppf"](where(is_inner, p, 0.25), *shapes),
            half["isf"](where(is_inner, 0.5, 2 * where(is_left, q, 1 - q)), *shapes))
        return where(is_left, -z, z)

    return Distribution(
        scipys, lambda z, *shapes: half["logpdf"](magnitude(z), *shapes) - LOG_2,
        lambda z, *shapes: upper(-z, *shapes), upper,
        lambda z, *shapes: log_upper(-z, *shapes), log_upper,
        lambda z, *shapes: 0.5 * half["pdf"](magnitude(z), *shapes), quantile,
        lambda q, *shapes: -quantile(q, *shapes), **options)
