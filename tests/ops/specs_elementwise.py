"""Records of the elementwise cnp."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.ops import OPS
from tests.ops.op_specs import (
    FLOATS,
    FLOATS_AND_COMPLEX,
    SINGLE_AND_DOUBLE,
    OpSpec,
    case,
    distinct,
    integers,
    uniform,
)

UNARY = [case((3, 4)), case(()), case((0, 2)), case((2, 3, 2)), case((1500,))]
BINARY = [
    case((3, 4), (3, 4)), case((), ()), case((3, 1), (1, 4)), case((2, 3, 2), (3, 1)),
    case((4,), ()), case((4,), 1.5), case(2, (4,)), case((3,), np.array([1, 2, 3])),
    case((0, 3), (1, 3)), case((40, 50), (50,))]
MODULO = [case((3, 4), (4,)), case((), ())]  # an integer ratio would be a kink
WHERE_SHAPES = [  # of condition, x and y
    ((8,), (8,), (8,)), ((), (), ()), ((), (3,), ()), ((3,), (), ()), ((3,), (), (3,)),
    ((), (2, 3), (3,)), ((2, 1), (3,), ()), ((4, 3), (4, 1), (1, 3)), ((2, 1, 3), (4, 1), (1,)),
    ((1,), (3,), (3,)), ((3,), (2, 3), (2, 1)), ((0,), (0,), ()), ((0, 1), (1, 3), (3,)),
    ((5, 0), (1, 1), ()), ((100, 120), (100, 120), (120,)), ((20_000,), (20_000,), (20_000,)),
]
REAL = uniform(-2, 2)
POSITIVE = uniform(0.3, 2)
NONZERO = uniform(-2, 2, avoid=[0], margin=0.3)


def unary(name, domain=REAL, complex=False, **options):
    """Make the record of the ufunc `np.<name>` of one argument."""
    return elementwise_record(name, UNARY, domain, complex, options)


def binary(name, domain=REAL, complex=False, **options):
    """Make the record of the ufunc `np.<name>` of two arguments."""
    return elementwise_record(name, BINARY, domain, complex, options)


def elementwise_record(name, cases, domain, complex, options):
    return OpSpec(
        "".join(map(str.capitalize, name.split("_"))), getattr(cnp, name),
        (np.trunc if name == "fix" else getattr(np, name)), cases, domain,
        FLOATS_AND_COMPLEX if complex else FLOATS, **options)


def step(name, cases, domain=REAL, **options):
    """Make the record of a function that has no gradient."""
    return elementwise_record(name, cases, domain, False, {"differentiable": False, **options})


SPECS = [
    binary("add", complex=True), binary("subtract", complex=True), binary("multiply", complex=True),
    binary("divide", (REAL, NONZERO), complex=True), unary("negative", complex=True),
    unary("positive", complex=True), unary("reciprocal", NONZERO, complex=True),
    unary("square", complex=True), binary("power", (POSITIVE, REAL), complex=True),
    OpSpec(
        "Power", cnp.power, np.power,
        [case((3, 4), k) for k in (-2, -1, 0, 1, 2, 3, 0.0, 2.0)] + [case((3, 4), np.arange(4))],
        NONZERO, FLOATS_AND_COMPLEX,
    ),
    binary("float_power", (POSITIVE, REAL), complex=True),
    elementwise_record("fmod", MODULO, (uniform(1.3, 1.7), uniform(0.9, 1.1)), False, {}),
    elementwise_record("fmod", MODULO, (uniform(-1.7, -1.3), uniform(0.9, 1.1)), False, {}),
    elementwise_record("remainder", MODULO, (uniform(1.3, 1.7), uniform(0.9, 1.1)), False, {}),
    elementwise_record("remainder", MODULO, (uniform(-1.7, -1.3), uniform(0.9, 1.1)), False, {}),
    OpSpec("Divmod", cnp.divmod, np.divmod, MODULO, (uniform(1.3, 1.7), uniform(0.9, 1.1))),
    unary("exp", complex=True), unary("exp2", complex=True), unary("expm1", complex=True),
    unary("log", POSITIVE, complex=True), unary("log2", POSITIVE, complex=True),
    unary("log10", POSITIVE, complex=True), unary("log1p", uniform(-0.7, 2), complex=True),
    unary("sqrt", POSITIVE, complex=True), unary("cbrt", NONZERO), binary("logaddexp"),
    binary("logaddexp2"), unary("sin", complex=True), unary("cos", complex=True),
    unary("tan", uniform(-1, 1), complex=True), unary("arcsin", uniform(-0.8, 0.8), complex=True),
    unary("arccos", uniform(-0.8, 0.8), complex=True),
    unary("arctan", complex=True, tolerance=10),  # it has a pole at 1j, close to some samples
    unary("sinh", complex=True), unary("cosh", complex=True), unary("tanh", complex=True),
    unary("arcsinh", complex=True), unary("arccosh", uniform(1.3, 3), complex=True),
    unary("arctanh", uniform(-0.8, 0.8), complex=True), unary("deg2rad"), unary("radians"),
    unary("rad2deg"), unary("degrees"), binary("hypot", NONZERO), binary("arctan2", NONZERO),
    unary("sinc", complex=True),
    OpSpec(
        "Where", cnp.where, np.where,
        [
            case(np.array([True, False, True]), (3,), (3,)),
            case(np.array([[True], [False]]), (3,), (2, 1)), case(np.array([1, 0]), (2,), 0.5),
            case(True, (), ()), case(np.zeros((0, 2), bool), (2,), (0, 1)),
            *[case(np.random.default_rng(5).random(shapes[0]) < 0.5, *shapes[1:])
              for shapes in WHERE_SHAPES[:-2]],
        ],
        dtypes=FLOATS_AND_COMPLEX,
    ),
    binary("maximum", (distinct(0.25, 0.05), distinct(0.25, 0.15)), complex=True),
    binary("minimum", (distinct(0.25, 0.05), distinct(0.25, 0.15)), complex=True),
    binary("fmax", (distinct(0.25, 0.05), distinct(0.25, 0.15)), complex=True),
    binary("fmin", (distinct(0.25, 0.05), distinct(0.25, 0.15)), complex=True),
    OpSpec(
        "Clip", cnp.clip, np.clip,
        [
            case((3, 4), (3, 1), (4,)), case((3, 4), -0.9, 0.9), case((3, 4), None, (4,)),
            case((3, 4), min=-0.9), case((0,), 0, 1), case((3, 4)),
        ],
        (distinct(0.3, 0.1), uniform(-0.95, -0.85), uniform(0.85, 0.95)),
    ),
    OpSpec("ClipBelow", lambda x, low: cnp.clip(x, min=low), lambda x, low: np.clip(x, low, None),
           BINARY, (distinct(0.25, 0.05), distinct(0.25, 0.15))),
    OpSpec("ClipAbove", lambda x, top: cnp.clip(x, max=top), lambda x, top: np.clip(x, None, top),
           BINARY, (distinct(0.25, 0.05), distinct(0.25, 0.15))),
    OpSpec("NanToNum", cnp.nan_to_num, np.nan_to_num, UNARY),
    OpSpec("NanToNum", cnp.nan_to_num, np.nan_to_num, [case((3,))], dtypes=["complex128"]),
    unary("real", complex=True), unary("imag", complex=True),
    OpSpec("ImagOfReal", cnp.imag, np.imag, UNARY), unary("conjugate", complex=True),
    unary("absolute", NONZERO, complex=True), unary("fabs", NONZERO),
    OpSpec("ComplexSign", cnp.sign, np.sign, UNARY, dtypes=["complex128", "complex64"]),
    OpSpec("Angle", cnp.angle, np.angle, [case((3, 4)), case((2,), deg=True), case(())], NONZERO,
           FLOATS_AND_COMPLEX),
    binary("copysign", NONZERO, differentiable=(True, False)),
    binary("heaviside", (lambda rng, shape: rng.integers(-1, 2, shape) * 1.0, REAL),
           differentiable=(False, True)),
    OpSpec("Ldexp", cnp.ldexp, np.ldexp, [case((3, 1), (4,)), case((), 3)],
           (REAL, integers(-2, 3))),
    unary("frexp", uniform(1.1, 1.9)),
    unary("modf", lambda rng, shape: distinct(1.0)(rng, shape) + rng.uniform(0.2, 0.8, shape)),
]

SPECS += [step(name, UNARY) for name in ("floor", "ceil", "trunc", "rint", "fix", "sign", "signbit",
                                         "isfinite", "isinf", "isnan", "isposinf", "isneginf",
                                         "isreal", "iscomplex", "logical_not")]
SPECS += [
    step(name, BINARY[:4])
    for name in (
        "floor_divide", "equal", "not_equal", "less", "less_equal", "greater",
        "greater_equal", "logical_and", "logical_or", "logical_xor", "isclose", "allclose",
        "array_equal", "array_equiv",
    )
]
SPECS += [step("round", [*UNARY, case((3, 4), decimals=1)])]
SPECS += [
    step(name, BINARY[:4], integers(0, 9))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "isin", "lcm", "left_shift",
                 "right_shift")
]
SPECS += [step(name, UNARY, integers(0, 9)) for name in ("bitwise_count", "invert")]
SPECS += [OpSpec("StopGradient", cytape.stop_gradient, lambda x: x, UNARY, differentiable=False)]

# Each operand's share of the gradient of an extremum; linear in the gradient, the first operand.
_TAKEN_FIRST = {"Maximum": np.greater, "Minimum": np.less, "Fmax": np.greater, "Fmin": np.less}
_OF_THREE = [case((3, 4), (3, 4), (3, 4)), case((2, 3, 2), (3, 1), ()), case((), (), ()),
             case((0, 3), (1, 3), (3,)), case((40, 50), (50,), (50,)), case((1,), (1500,), ())]
_PART = {"dtypes": FLOATS_AND_COMPLEX, "differentiable": (True, False, False)}
SPECS += [
    OpSpec(f"{place}Of{name}", OPS[f"{place}Of{name}"],
           lambda g, x, y, taken=taken, place=place: g * (taken(x, y) == (place == "First")),
           _OF_THREE, (REAL, distinct(0.25, 0.05), distinct(0.25, 0.15)), **_PART)
    for name, taken in _TAKEN_FIRST.items() for place in ("First", "Second")
]
SPECS += [
    OpSpec(
        "WhereUnchanged", OPS["WhereUnchanged"], lambda g, x, y: g * (x == y), _OF_THREE,
        (REAL, *[lambda rng, shape: rng.integers(0, 2, shape) * 1.0] * 2), **_PART)]

# Parts of derivatives; test_quotient_ufuncs.py has numbers of all sizes.
SPECS += [
    OpSpec("OverSquares", OPS["OverSquares"], lambda a, y, x: a / (x * x + y * y),
           [case((3, 4), (3, 4), (3, 4)), case((), (2,), (2, 1))],
           (REAL, NONZERO, NONZERO), SINGLE_AND_DOUBLE),
    OpSpec("Unit", OPS["Unit"], np.divide, BINARY[:4], (REAL, POSITIVE), SINGLE_AND_DOUBLE),
    OpSpec("OverPowersOfTwo", OPS["OverPowersOfTwo"], lambda x, n: np.ldexp(x, -n),
           [case((3, 4), (3, 4)), case((), ())], (REAL, integers(-2, 3))),
    OpSpec("PowerLessOne", lambda x, y: OPS["PowerLessOne"](cnp.power(x, y), x, y),
           lambda x, y: x ** (y - 1), BINARY[:4], (POSITIVE, REAL), SINGLE_AND_DOUBLE),
]
