"""Records of differences, sequences, curves and polynomials."""

import numpy as np

import cytape.numpy as cnp
from cytape.ops.calculus import (
    bessel,
    binary_fractions,
    differences,
    interpolation,
    polynomials,
    sequences,
    signal_convolution,
    vector_products,
)
from tests.ops.op_specs import (
    FLOATS_AND_COMPLEX,
    SINGLE_AND_DOUBLE,
    OpSpec,
    case,
    distinct,
    uniform,
)

COMPLEX = {"dtypes": FLOATS_AND_COMPLEX}
SINGLE_DOUBLE_COMPLEX = {"dtypes": ("float64", "float32", "complex128", "complex64")}


def record(name, cases, **options):
    return OpSpec(name, getattr(cnp, name), getattr(np, name), cases, **options)


def diff_back(g, axis, extent):
    width = [(0, 0)] * g.ndim
    width[axis] = (1, 1)
    return -np.diff(np.pad(g, width), axis=axis)


def keeping_values(name):
    """Make a function that adds zeros to what NumPy gives, so that arrays have arrays."""
    return lambda *args, **kwargs: np.asarray(getattr(np, name)(*args, **kwargs))


def bessel_i1(x):
    """The mean of cos(t) exp(x cos(t)): the sum over equal steps is as good as the integral."""
    t = np.arange(200) * (2 * np.pi / 200)
    return np.mean(np.cos(t) * np.exp(np.asarray(x, float)[..., None] * np.cos(t)), -1).astype(
        x.dtype)


def of_pieces(values, x, xp):
    inside = (xp[0] <= x) & (x <= xp[-1])
    pieces = np.minimum(np.searchsorted(xp, x, "right") - 1, len(xp) - 2)
    return np.where(inside, values[pieces], 0) if len(xp) > 1 else np.zeros_like(x, values.dtype)


XP, FP = np.array([-1.5, -0.2, 0.9, 1.7]), np.array([1.0, 3.0, -2.0, 0.5])
COORDINATES = np.array([0.0, 0.5, 1.5, 1.75])
MODES = [(n, m, mode) for n, m in ((5, 3), (4, 2), (3, 5), (2, 5), (3, 3), (1, 2))
         for mode in ("full", "same", "valid")]

SPECS = [
    # Differences.
    OpSpec("Diff", differences.diff_op, lambda a, axis: np.diff(a, axis=axis), [
        case((4,), axis=0), case((2, 3), axis=1), case((3, 2, 2), axis=1), case((1,), axis=0),
    ], **COMPLEX),
    OpSpec("DiffBack", differences.diff_back_op, diff_back, [
        case((3,), axis=0, extent=4), case((2, 3), axis=1, extent=4), case((0,), axis=0, extent=1),
    ], **COMPLEX),
    record("diff", [case((4,)), case((4,), n=2), case((3, 4), axis=0), case((3, 4), n=0),
                    case((2, 3), prepend=1.0), case((2, 3), append=np.ones((2, 2))),
                    case((1,)), case((2,), n=3)], **COMPLEX),
    OpSpec("diff", lambda a, b, c: cnp.diff(a, prepend=b, append=c),
           lambda a, b, c: np.diff(a, prepend=b, append=c),
           [case((2, 3), (2, 1), ()), case((4,), (), (2,))]),
    record("ediff1d", [case((4,)), case((2, 2), to_end=1.0), case((2,), (3,), (2,)), case((1,))],
           **COMPLEX),
    record("gradient", [
        case((4,)), case((3, 4), axis=1), case((2, 3)), case((4, 3), edge_order=2, axis=0),
        case((4,), 0.5), case((4,), COORDINATES), case((4, 3), 2.0, np.array([0.0, 1.0, 3.0])),
        case((4,), COORDINATES, edge_order=2), case((3, 4), COORDINATES, axis=1, edge_order=2),
    ], **SINGLE_DOUBLE_COMPLEX),
    record("gradient", [case((4,), ()), case((3, 2), (), ())], domain=uniform(0.5, 2),
           dtypes=("float64",)),
    record("gradient", [case((4,), (4,), edge_order=2), case((4,), (4,))],
           domain=distinct(1.0), dtypes=("float64",)),
    record("trapezoid", [case((4,)), case((3, 4), axis=0), case((4,), dx=0.5), case((4,), (4,)),
                         case((3, 4), (4,)), case((3, 4), (3,), axis=0), case((2, 3), (2, 3))],
           **COMPLEX),
    record("cumulative_sum", [case((4,)), case((2, 3), axis=1), case((2, 3), axis=0,
                              include_initial=True), case(()), case((0,), include_initial=True)],
           **COMPLEX),
    record("cumulative_prod", [case((4,)), case((2, 3), axis=1),
                               case((2, 3), axis=-1, include_initial=True)],
           domain=uniform(-2, 2, avoid=[0]), **COMPLEX),
    OpSpec("Unwrap", differences.unwrap_op,
           lambda p, discont, axis, period: np.unwrap(p, discont, axis, period=period),
           [case((2, 5), discont=None, axis=-1, period=6.0)], domain=uniform(-12, 12),
           dtypes=("float64",)),
    record("unwrap", [case((6,)), case((2, 5), axis=0), case((6,), period=5.0),
                      case((6,), discont=4.0)], domain=uniform(-12, 12),
           dtypes=SINGLE_AND_DOUBLE),
    # Sequences.
    OpSpec("LinSpace", sequences.linspace_op,
           lambda start, stop, num, endpoint: np.linspace(start, stop, num, endpoint), [
        case((), (), num=4, endpoint=True), case((2,), (), num=3, endpoint=False),
        case((2, 1), (3,), num=2, endpoint=True), case((), (), num=1, endpoint=True),
    ], dtypes=("float64", "complex128")),
    OpSpec("ARange", sequences.arange_op,
           lambda start, step, stop, dtype: np.arange(start, stop, step, dtype), [
        case((), (), stop=1.7, dtype=None), case((), 1.1, stop=9.7, dtype=None),
        case(0.2, (), stop=1.3, dtype=np.dtype(np.complex128)),
    ], domain=uniform(0.6, 0.8), dtypes=("float64", "float32")),
    record("linspace", [case((), (), num=5), case((2,), 3.0, num=3, axis=-1),
                        case((), (3,), num=4, endpoint=False), case((), (), num=4, retstep=True),
                        case((), (), num=3, dtype=np.complex128)],
           dtypes=("float64", "complex128")),
    record("logspace", [case((), (), num=4), case((2,), 1.0, num=3, base=2.0, axis=1),
                        case((), (), num=3, endpoint=False)], dtypes=("float64", "complex128")),
    OpSpec("logspace", lambda start, base: cnp.logspace(start, 2.0, 3, base=base),
           lambda start, base: np.logspace(start, 2.0, 3, base=base),
           [case((), ()), case((2,), (2,))], domain=uniform(0.5, 2), dtypes=("float64",)),
    record("geomspace", [case((), (), num=4), case((2,), 3.0, num=3, axis=-1),
                         case((), (), num=3, endpoint=False)],
           domain=uniform(0.5, 3), dtypes=("float64", "complex128")),
    record("geomspace", [case((), (), num=4)], domain=uniform(-3, -0.5), dtypes=("float64",)),
    OpSpec("WithoutZero", sequences.without_zero_op, lambda x: x, [case(()), case((2,))],
           domain=uniform(0.5, 3), dtypes=FLOATS_AND_COMPLEX),
    # Curves.
    OpSpec("Interp", interpolation.interp_op, np.interp, [
        case((5,), XP, FP, np.array(7.0), np.array(-3.0)), case((2, 2), (4,), (4,), (), ()),
        case((2, 3), (4,), (4,)), case((5,), XP, FP),
    ], domain=(uniform(-2, 2, avoid=[-1.5, -0.2, 0.9, 1.7], margin=0.05), lambda rng, shape: XP + (
        rng.uniform(-0.02, 0.02, shape)), *[uniform(-2, 2)] * 3), dtypes=("float64",)),
    OpSpec("OfPieces", interpolation.of_pieces_op, of_pieces, [
        case((4,), (5,), XP), case((4,), (2, 3), XP), case((4,), XP, XP), case((4,), (), XP),
        case((4,), (0,), XP), case((1,), np.array([0.3, 1.0]), np.array([0.3])),
    ], dtypes=FLOATS_AND_COMPLEX, differentiable=(True, False, False)),
    record("interp", [
        case((5,), XP, FP), case((), XP, FP), case((3,), XP, FP, left=1.0, right=2.0),
        case((3,), XP, FP + 1j), case((4,), np.array([0.3]), np.array([2.0])),
        case((5,), XP, FP, period=4.5), case((0,), XP, FP),
    ], domain=uniform(-2, 2, avoid=[-1.5, -0.2, 0.9, 1.7, 0.3], margin=0.05),
           dtypes=("float64",), differentiable=(True, False, False)),
    *[OpSpec("Convolve", signal_convolution.convolve_op, np.convolve, [case((n,), (m,), mode=mode)],
             **COMPLEX) for n, m, mode in MODES],
    *[OpSpec("Correlate", signal_convolution.correlate_op,
             lambda a, v, mode: np.correlate(a, np.conj(v), mode), [case((n,), (m,), mode=mode)],
             **COMPLEX) for n, m, mode in MODES if mode != "same" or n >= m],
    record("convolve", [case((4,), (3,)), case((4,), (3,), "same"), case((2,), (5,), "valid"),
                        case((4,), ()), case((2,), np.ones(3), mode="same")], **COMPLEX),
    *[record("correlate", [case((n,), (m,), mode)], **COMPLEX) for n, m, mode in MODES],
    OpSpec("BesselI1", bessel.i1_op, bessel_i1, [case((3, 4)), case((), ), case((0,))],
           domain=uniform(-9, 9, avoid=[0]), dtypes=SINGLE_AND_DOUBLE, tolerance=100.0),
    OpSpec("BesselI0", bessel.i0_op, keeping_values("i0"), [case((3, 4)), case((2,))],
           domain=uniform(-9, 9, avoid=[0]), dtypes=SINGLE_AND_DOUBLE, tolerance=100.0),
    record("i0", [case((3, 4)), case(()), case(np.array([12.0, -30.0]))], dtypes=("float64",),
           tolerance=1e4),
    OpSpec("kaiser", lambda beta: cnp.kaiser(5, beta), lambda beta: np.kaiser(5, beta),
           [case(())], domain=uniform(1, 4), dtypes=("float64",)),
    # Polynomials.
    OpSpec("Powers", polynomials.powers_op, lambda x, n, increasing: np.vander(x, n, increasing),
           [case((3,), n=n, increasing=up) for n in (4, 1, 2, 0) for up in (True, False)],
           **COMPLEX),
    record("vander", [case((3,)), case((3,), 5), case((3,), 2, increasing=True)], **COMPLEX),
    record("polyadd", [case((3,), (3,)), case((2,), (4,)), case((4,), (2,))], **COMPLEX),
    record("polysub", [case((3,), (3,)), case((2,), (4,)), case((4,), (2,))], **COMPLEX),
    record("polymul", [case((3,), (3,)), case((2,), (4,))], **COMPLEX),
    record("polydiv", [case((5,), (3,)), case((3,), (3,))],
           domain=uniform(0.5, 2), dtypes=("float64", "complex128")),
    record("polyder", [case((4,)), case((4,), 2), case((4,), 0), case((3, 1))],
           **SINGLE_DOUBLE_COMPLEX),
    record("polyint", [case((3,)), case((3,), 2), case((3,), 2, np.array([1.0, 2.0]))],
           dtypes=("float64", "complex128"), differentiable=(True, True, False)),
    record("polyval", [case((3,), (4,)), case((3,), (2, 2)), case((1,), ())], **COMPLEX),
    record("poly", [case((3,)), case((1,))], **SINGLE_DOUBLE_COMPLEX),
    OpSpec("Poly", polynomials.poly_op, np.poly, [case((3,)), case((1,))], **SINGLE_DOUBLE_COMPLEX),
    OpSpec("OverPowersOfTwo", binary_fractions.over_powers_of_two_op, lambda x, n: np.ldexp(x, -n),
           [case((4,), np.array([0, 3, -2, 1100], np.int32)), case((2, 2), np.array([[5], [-1]]))],
           dtypes=SINGLE_AND_DOUBLE, differentiable=(True, False)),
    record("polyfit", [
        case((6,), (6,), deg=2), case((5,), (5, 2), deg=1), case((5,), (5,), deg=1, cov=True),
        case((5,), (5,), deg=1, cov="unscaled"), case((5,), (5, 2), deg=1, cov=True),
    ], domain=(distinct(0.5), uniform(-2, 2)), dtypes=("float64",), tolerance=100.0),
    OpSpec("polyfit", lambda x, y, w: cnp.polyfit(x, y, 1, w=w),
           lambda x, y, w: np.polyfit(x, y, 1, w=w), [case((5,), (5,), (5,))],
           domain=(distinct(0.5), uniform(-2, 2), uniform(0.5, 2)), dtypes=("float64",),
           tolerance=100.0),
    OpSpec("Roots", polynomials.roots_op, np.roots, [case(np.array([1.0, -0.7, -2.1, 0.3]))],
           dtypes=("float64",)),
    record("roots", [case(np.array([1.0, -0.7, -2.1, 0.3])), case(np.array([2.0, 1.0, 3.0])),
                     case(np.array([2.0, 1.0, 3.0 + 1j]))], dtypes=("float64",)),
    # Vectors.
    OpSpec("Cross", vector_products.cross_op, np.cross,
           [case((3,), (3,)), case((2, 3), (3,))], **COMPLEX),
    record("cross", [case((3,), (3,)), case((4, 3), (3,)), case((3, 2), (3, 2), axis=0),
                     case((3, 4), (4, 3), axisa=0, axisc=0)], **COMPLEX),
    record("matvec", [case((2, 3), (3,)), case((4, 2, 3), (3,)), case((2, 3), (4, 3))], **COMPLEX),
    record("vecmat", [case((3,), (3, 2)), case((4, 3), (3, 2)), case((3,), (4, 3, 2))], **COMPLEX),
]
