"""Calls of NumPy's differentiable functions, and the arrays they are called with.

Elementwise functions come from the records of the tests, with their domains. All others are named
here, by the shape of their argument: a line of `size` elements, a square matrix of as many, or an
entry of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tests.ops import specs_elementwise
from tests.ops.matrices import regular
from tests.ops.op_specs import uniform

REAL = uniform(-2, 2)
POSITIVE = uniform(0.5, 2)
NONZERO = uniform(-2, 2, avoid=[0])
NEAR_ONE = uniform(0.999, 1.001)  # its products neither vanish nor overflow


@dataclass(frozen=True)
class Call:
    """A function of a NumPy namespace and arrays, and its operands by the number of elements.

    A tuple among the operands is the shape of an array to draw, which is differentiated; all else
    is as is.
    """

    name: str
    function: Callable
    operands: Callable
    domain: Callable | tuple = REAL

    def draw(self, size):
        """Return the arrays to differentiate, and the arguments of `function`."""
        rng = np.random.default_rng(0)
        operands = self.operands(size)
        domains = self.domain if isinstance(self.domain, tuple) else [self.domain] * len(operands)
        drawn = [domain(rng, x) if isinstance(x, tuple) else x
                 for x, domain in zip(operands, domains, strict=False)]
        return [isinstance(x, tuple) for x in operands], drawn


def named(name):
    """Return a function that calls the one of that name in whatever namespace it is given."""
    *rooms, function = name.split(".")

    def call(n, *operands):
        for room in rooms:
            n = getattr(n, room)
        return getattr(n, function)(*operands)

    return call


def side(size):
    return int(size**0.5)


def line(size):
    return [(size,)]


def lines(size):
    return [(size,), (size,)]


def square(size):
    return [(side(size), side(size))]


def squares(size):
    return square(size) * 2


def vectors(size):
    return [(side(size),), (side(size),)]


def short(size):
    """A line for functions whose time grows as the square of its length, or faster."""
    return [(min(size, 100),)]


def slices(size):
    """A line, and where slices of a hundred elements begin."""
    return [(size,), np.arange(0, size, 100)]


def complex_line(rng, shape):
    return REAL(rng, shape) + 1j * REAL(rng, shape)


def definite(rng, shape):
    a = REAL(rng, shape)
    return a @ a.T + len(a) * np.eye(len(a))


def elementwise():
    """Return the calls of NumPy's elementwise functions, one for each function object."""
    calls = {}
    for spec in specs_elementwise.SPECS:
        name = getattr(spec.ref, "__name__", "")
        arrays = [x for x in spec.cases[0].inputs if isinstance(x, tuple)]
        if (spec.differentiable is False or getattr(np, name, None) is not spec.ref
                or len(arrays) < len(spec.cases[0].inputs) or name in OTHERS):
            continue
        domain = spec.domain
        calls.setdefault(name, Call(
            name, named(name), line if len(arrays) == 1 else lines,
            tuple(map(large, domain)) if isinstance(domain, tuple) else large(domain)))
    return calls


def large(domain):
    """Return a domain as it is, or normal numbers for one whose values grow with the shape."""
    spread = np.ptp(domain(np.random.default_rng(0), (1000,)))
    return domain if spread < 10 else (lambda rng, shape: rng.normal(size=shape))


BY_OPERANDS = {
    line: """asanyarray ascontiguousarray atleast_1d atleast_2d atleast_3d average copy cumprod
        cumsum cumulative_prod cumulative_sum diff ediff1d fft.fft fft.fftshift fft.ifft
        fft.ifftshift fft.ihfft fft.rfft flip gradient i0 linalg.norm linalg.vector_norm max
        mean median min nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd
        nansum nanvar prod ptp ravel real_if_close sort sort_complex squeeze std sum trapezoid
        trim_zeros unique unwrap var""",
    lines: "append dot inner linalg.vecdot polyadd polysub vdot vecdot",
    square: """corrcoef cov diagonal fft.fft2 fft.fftn fft.ifft2 fft.ifftn fft.rfft2 fft.rfftn
        fliplr flipud linalg.diagonal linalg.matrix_norm linalg.matrix_transpose linalg.trace
        matrix_transpose rot90 trace transpose tril triu unstack""",
    squares: "linalg.matmul linalg.tensordot matmul",
    vectors: "kron linalg.outer meshgrid outer",
    short: "diag diagflat poly vander",
}
REGULAR = """linalg.cond linalg.det linalg.eig linalg.eigvals linalg.inv linalg.pinv linalg.qr
    linalg.slogdet linalg.svd linalg.svdvals"""

CONDITION = np.array([True, False])


def alternating(size):
    return np.resize(CONDITION, size)


def positions(size):
    return np.random.default_rng(1).integers(0, size, size)


def weights_and_points(size):
    return [(size,), np.random.default_rng(1).uniform(size=size)]


def with_holes(rng, shape):
    return np.where(np.arange(shape[0]) % 7 == 3, np.nan, REAL(rng, shape))


def products_with_holes(rng, shape):
    return np.where(np.arange(shape[0]) % 7 == 3, np.nan, NEAR_ONE(rng, shape))


def near_identity(rng, shape):
    return np.eye(*shape) + REAL(rng, shape) / (10 * shape[0])


def near_zero(rng, shape):  # the sum of a hundred roots' coefficients is that of their product
    return REAL(rng, shape) / 100


DOMAINS = {
    near_zero: "poly",
    with_holes: "nancumsum nanmax nanmean nanmedian nanmin nanstd nansum nanvar",
    products_with_holes: "nancumprod nanprod",
    NEAR_ONE: "cumprod cumulative_prod prod",
    near_identity: "linalg.det linalg.slogdet",
}

OTHERS = {
    # name: (function of the namespace and the operands, operands by size[, domain])
    **{f"{name}.reduceat": (lambda n, x, at, name=name: getattr(n, name).reduceat(x, at), slices)
       for name in ("add", "logaddexp", "maximum", "multiply", "subtract")},
    "add.reduceat, unsorted": (lambda n, x, at: n.add.reduceat(x, at),
                               lambda size: [(size,), positions(size)[::10]]),
    "apply_along_axis": (lambda n, x: n.apply_along_axis(n.sum, 0, x),
                         lambda size: [(size // 5, 5)]),
    "apply_over_axes": (lambda n, x: n.apply_over_axes(n.sum, x, [0, 1]), square),
    "arange": (lambda n, x, size: n.arange(x, size), lambda size: [(), size]),
    "array": (lambda n, x: n.array([x, x]), line),
    "array_split": (lambda n, x: n.array_split(x, 3), line),
    "astype": (lambda n, x: n.astype(x, np.float32), line),
    "bincount": (lambda n, x, at: n.bincount(at, x), lambda size: [(size,), positions(size)]),
    "block": (lambda n, x, y: n.block([[x, y], [y, x]]), squares),
    "broadcast_arrays": (named("broadcast_arrays"), lambda size: [(side(size), 1), (side(size),)]),
    "broadcast_to": (lambda n, x: n.broadcast_to(x, (len(x), len(x))),
                     lambda size: [(side(size),)]),
    "choose": (lambda n, x, y, at: n.choose(at, [x, y]),
               lambda size: [*lines(size), positions(size) % 2]),
    "clip": (lambda n, x: n.clip(x, -0.5, 0.5), line),
    "column_stack": (lambda n, x, y: n.column_stack([x, y]), lines),
    "compress": (lambda n, x, at: n.compress(at, x), lambda size: [(size,), alternating(size)]),
    "concatenate": (lambda n, x, y: n.concatenate([x, y]), lines),
    "convolve": (named("convolve"), lambda size: [(size,), (min(size, 32),)]),
    "correlate": (named("correlate"), lambda size: [(size,), (min(size, 32),)]),
    "cross": (named("cross"), lambda size: [(size // 3, 3)] * 2),
    "cumprod, axis 0": (lambda n, x: n.cumprod(x, axis=0), square, NEAR_ONE),
    "delete": (lambda n, x: n.delete(x, 3), line),
    "dsplit": (lambda n, x: n.dsplit(x, 2), lambda size: [(size // 2, 1, 2)]),
    "dstack": (lambda n, x, y: n.dstack([x, y]), lines),
    "einsum": (lambda n, x, y: n.einsum("ij,jk->ik", x, y), squares),
    "einsum, a diagonal": (lambda n, x: n.einsum("ii->i", x), square),
    "expand_dims": (lambda n, x: n.expand_dims(x, 0), line),
    "extract": (lambda n, x, at: n.extract(at, x), lambda size: [(size,), alternating(size)]),
    "fft.hfft": (named("fft.hfft"), line, complex_line),
    "fft.irfft": (named("fft.irfft"), line, complex_line),
    "fft.irfft2": (named("fft.irfft2"), square, complex_line),
    "fft.irfftn": (named("fft.irfftn"), square, complex_line),
    "full": (lambda n, x, size: n.full(size, x), lambda size: [(), size]),
    "full_like": (lambda n, x, like: n.full_like(like, x), lambda size: [(), np.zeros(size)]),
    "geomspace": (lambda n, x, y, num: n.geomspace(x, y, num),
                  lambda size: [(), (), size], POSITIVE),
    "histogram": (lambda n, x, at: n.histogram(at, 10, weights=x)[0], weights_and_points),
    "histogram2d": (lambda n, x, at: n.histogram2d(at, at, 10, weights=x)[0], weights_and_points),
    "histogramdd": (lambda n, x, at: n.histogramdd(at[:, None], 10, weights=x)[0],
                    weights_and_points),
    "hsplit": (lambda n, x: n.hsplit(x, 2), lambda size: [(size // 2 * 2,)]),
    "hstack": (lambda n, x, y: n.hstack([x, y]), lines),
    "insert": (lambda n, x, v: n.insert(x, 3, v), lambda size: [(size,), ()]),
    "interp": (named("interp"),
               lambda size: [(size,), np.linspace(-2, 2, 50), np.arange(50.0) ** 2]),
    "kaiser": (lambda n, beta, size: n.kaiser(size, beta), lambda size: [(), size], POSITIVE),
    "linalg.cholesky": (named("linalg.cholesky"), square, definite),
    "linalg.cross": (named("linalg.cross"), lambda size: [(size // 3, 3)] * 2),
    "linalg.eigh": (named("linalg.eigh"), square, definite),
    "linalg.eigvalsh": (named("linalg.eigvalsh"), square, definite),
    "linalg.lstsq": (lambda n, a, b: n.linalg.lstsq(a, b, rcond=None)[0],
                     lambda size: [(size // 5, 5), (size // 5,)]),
    "linalg.matrix_power": (lambda n, x: n.linalg.matrix_power(x, 3), square),
    "linalg.multi_dot": (lambda n, x, y, z: n.linalg.multi_dot([x, y, z]), lambda s: square(s) * 3),
    "linalg.norm, 1": (lambda n, x: n.linalg.norm(x, 1), line, NONZERO),
    "linalg.norm, inf": (lambda n, x: n.linalg.norm(x, np.inf), line),
    "linalg.solve": (named("linalg.solve"), lambda size: [*square(size), (side(size),)], regular),
    "linalg.tensorinv": (lambda n, x: n.linalg.tensorinv(x, 1), square, regular),
    "linalg.tensorsolve": (
        named("linalg.tensorsolve"), lambda size: [*square(size), (side(size),)], regular),
    "linspace": (lambda n, x, y, num: n.linspace(x, y, num), lambda size: [(), (), size]),
    "logspace": (lambda n, x, y, num: n.logspace(x, y, num), lambda size: [(), (), size]),
    "matvec": (named("matvec"), lambda size: [*square(size), (side(size),)]),
    "max, axis 0": (lambda n, x: n.max(x, axis=0), square),
    "mean, axis 1": (lambda n, x: n.mean(x, axis=1), square),
    "moveaxis": (lambda n, x: n.moveaxis(x, 0, 1), square),
    "nanpercentile": (lambda n, x: n.nanpercentile(x, 30), line, with_holes),
    "nanquantile": (lambda n, x: n.nanquantile(x, 0.3), line, with_holes),
    "pad": (lambda n, x: n.pad(x, 1), line),
    "pad, reflected": (lambda n, x: n.pad(x, 1, mode="reflect"), line),
    "partition": (lambda n, x: n.partition(x, x.shape[0] // 2), line),
    "percentile": (lambda n, x: n.percentile(x, 30), line),
    "piecewise": (lambda n, x: n.piecewise(x, [x < 0], [n.square, n.sin]), line),
    "polyder": (named("polyder"), line),
    "polydiv": (named("polydiv"), lambda size: [*short(size), (5,)], POSITIVE),
    "polyfit": (lambda n, x, y: n.polyfit(x, y, 2), lines),
    "polyint": (named("polyint"), line),
    "polymul": (named("polymul"), lambda size: [(size,), (min(size, 32),)]),
    "polyval": (named("polyval"), lambda size: [(8,), (size,)]),
    "prod, axis 0": (lambda n, x: n.prod(x, axis=0), square, NEAR_ONE),
    "quantile": (lambda n, x: n.quantile(x, 0.3), line),
    "repeat": (lambda n, x: n.repeat(x, 2), line),
    "reshape": (lambda n, x: n.reshape(x, (-1, 1)), line),
    "resize": (lambda n, x, size: n.resize(x, size), lambda size: [(size,), 2 * size]),
    "roll": (lambda n, x: n.roll(x, 3), line),
    "rollaxis": (lambda n, x: n.rollaxis(x, 1), square),
    "roots": (named("roots"), lambda size: [(min(size, 30),)], POSITIVE),
    "select": (lambda n, x, y: n.select([x < 0, x > 1], [x, y], 3.0), lines),
    "split": (lambda n, x: n.split(x, 2), line),
    "stack": (lambda n, x, y: n.stack([x, y]), lines),
    "std, axis 0": (lambda n, x: n.std(x, axis=0), square),
    "subtract.reduce": (lambda n, x: n.subtract.reduce(x), line),
    "subtract.reduce, axis 0": (lambda n, x: n.subtract.reduce(x, axis=0), square),
    "sum, axis 0": (lambda n, x: n.sum(x, axis=0), square),
    "swapaxes": (lambda n, x: n.swapaxes(x, 0, 1), square),
    "take": (lambda n, x, at: n.take(x, at), lambda size: [(size,), positions(size)]),
    "take_along_axis": (lambda n, x, at: n.take_along_axis(x, at, 0),
                        lambda size: [(size,), positions(size)]),
    "tensordot": (lambda n, x, y: n.tensordot(x, y, 1), squares),
    "tile": (lambda n, x: n.tile(x, 2), line),
    "vecmat": (named("vecmat"), lambda size: [(side(size),), *square(size)]),
    "vsplit": (lambda n, x: n.vsplit(x, 2), lambda size: [(size // 2 * 2, 1)]),
    "vstack": (lambda n, x, y: n.vstack([x, y]), lines),
    "where": (lambda n, x, y, at: n.where(at, x, y),
              lambda size: [*lines(size), alternating(size)]),
    "x[1:]": (lambda n, x: x[1:], line),
    "x[::-1]": (lambda n, x: x[::-1], line),
    "x[mask]": (lambda n, x, at: x[at], lambda size: [(size,), alternating(size)]),
    "x[rows]": (lambda n, x, at: x[at], lambda size: [*square(size), positions(side(size))]),
}


def calls():
    """Return all of them, in the order of their names."""
    found = elementwise()
    for operands, names in BY_OPERANDS.items():
        found |= {name: Call(name, named(name), operands) for name in names.split()}
    found |= {name: Call(name, named(name), square, regular) for name in REGULAR.split()}
    found |= {name: Call(name, *entry) for name, entry in OTHERS.items()}
    for domain, names in DOMAINS.items():
        found |= {name: replace(found[name], domain=domain) for name in names.split()}
    return [found[name] for name in sorted(found)]
