"""An integer or boolean operand beside floats: the derivatives of the same call in floats.

NumPy computes with such an operand as a float of the result's dtype, and so do the derivatives. In
its own dtype it would wrap (-x of unsigned integers, the least integer), raise (-x of booleans), or
lose precision (the logarithm of an 8-bit integer is one of half precision).
"""

import warnings
from functools import partial
from types import FunctionType

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape import nn
from tests.cases import each, grouped, sampled
from tests.ops.op_families import FAMILY_OF, SPECS, is_sampled
from tests.ops.test_op_table import as_tuple, differentiable
from tests.tables import table
from tests.ways import MODES, PLACES, derivatives

FIRST = ["bool", "int8", "uint8"]
REST = ["int16", "int32", "int64", "uint16", "uint32", "uint64"]
INTEGERS = table(FIRST, REST)
FLOATS = ["float16", "float32", "float64"]
ELSEWHERE = [place for place in PLACES if place != "eager"]
TOLERANCES = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-9}


def extremes(dtype, shape, lowest=-np.inf, highest=np.inf):
    """Return an array with the extremes of an integer dtype and what is special beside them."""
    if dtype == "bool":
        values = [True, False]
    else:
        info = np.iinfo(dtype)
        values = [min(info.max, highest), 2, 0, 1, max(info.min, lowest), 3]
    return np.resize(np.array(values, dtype), shape)


NEEDS_VALUES = {"polydiv"}  # which a graph has not yet
# Differences of integers overflow, as NumPy's do, and sums of large ones cancel.
OF_SMALL_INTEGERS = {
    "LinearRecurrence", "cov", "nanstd around a mean", "polyfit", "std around a mean", "trapezoid"}
# SciPy's `zeta`, of which `polygamma` is made, takes a step for each unit below 0. Sums of products
# of large integers cancel in the floats compared with: SciPy computes them in double precision, or
# by Fourier transforms. Matrices of large numbers are nearly singular.
LIMITS = {"special": (-1000, np.inf), "images": (-1000, 1000), "signals": (-1000, 1000),
          "scipy_linalg": (-1000, 1000), "distributions": (-11, 11)}  # squares of more wrap around


def positions_of(spec, case):
    """Return where a call takes drawn floats."""
    drawn = spec.draw(case, "float64")
    return [
        i for i, x in enumerate(drawn)
        if isinstance(case.inputs[i], tuple) and x.dtype.kind == "f" and spec.has_gradient(i, x)
    ]


# These take operands of one dtype: `add_n` checks it, and the other has only internal callers.
OF_ONE_DTYPE = {
    "AddN", "CholeskyBack", "DeferredVjp", "LeastSquaresBack", "ProductsBack", "ProductsCurvature",
    "ProductsTangent"}
REFUSED = {("SoftmaxCrossEntropyWithLogits", 0)}  # integer logits are labels in the wrong place

RECORDS = [
    (spec, case, position)
    for spec in SPECS if differentiable(spec) and spec.op not in OF_ONE_DTYPE
    for case in [case for case in spec.cases if len(positions_of(spec, case)) > 1][:1]
    for position in positions_of(spec, case) if (spec.op, position) not in REFUSED
]
# Always tried is one of a few integers, in turn: in eager calls beside one of the floats, and in
# one other place.
CALLS = [
    (f"{FAMILY_OF[id(spec)]}-{integer}",
     partial("{}-{}-{}-{}-{}-{}".format, spec, case, position, integer, dtype, place),
     (spec, case, position, integer, dtype, place),
     not is_sampled(spec) or integer != FIRST[number % len(FIRST)] or (place, dtype) not in (
         ("eager", FLOATS[number // len(FIRST) % len(FLOATS)]),
         (ELSEWHERE[number // len(FIRST) % len(ELSEWHERE)], "float64")))
    for number, (spec, case, position) in enumerate(RECORDS)
    if spec.op not in OF_SMALL_INTEGERS
    for integer in FIRST + REST
    for place in PLACES if place == "eager" or spec.op not in NEEDS_VALUES
    for dtype in (FLOATS if place == "eager" else ["float64"]) if dtype in spec.dtypes
]


def difference_from_floats(function, inputs, position, integers, mode, place):
    """Compare the derivatives of a call with an integer operand with those of floats, eager.

    Returns
    -------
    list of (ndarray, ndarray)
        Actual and expected.
    """
    moving = [i for i, x in enumerate(inputs) if i != position and is_float(x)]
    xs = [inputs[i] for i in moving]
    rng = np.random.default_rng(0)
    ts = [np.asarray(rng.uniform(0.5, 1, x.shape), x.dtype) for x in xs]

    def called_with(operand):
        def f(*xs):
            values = list(inputs)
            values[position] = operand
            for i, x in zip(moving, xs, strict=True):
                values[i] = x
            return as_tuple(function(*values))[which]

        return f

    which = slice(None)
    with np.errstate(all="ignore"):
        dtypes = [y.dtype for y in called_with(integers)(*map(cytape.constant, xs))]
        kinds = [dtype.kind for dtype in dtypes]
        if "f" not in kinds:  # it has no derivative
            return []
        which = kinds.index("f")
        floats = integers.astype(dtypes[which])
    if not np.isfinite(floats).all():  # of integers beyond its range a dtype tells nothing
        return []
    return list(
        zip(
            derivatives(mode, place, called_with(integers), xs, ts),
            derivatives(mode, "eager", called_with(floats), xs, ts), strict=True))


def is_float(x):
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "f"


@grouped("spec, case, position, integer, dtype, place", CALLS)
def test_the_whole_table(spec, case, position, integer, dtype, place):
    inputs = spec.draw(case, dtype)
    integers = extremes(
        integer, inputs[position].shape, *LIMITS.get(FAMILY_OF[id(spec)], ()))
    try:
        with np.errstate(all="ignore"):
            for operand in (integers, integers.astype(dtype)):
                spec.ref(*inputs[:position], operand, *inputs[position + 1:], **case.kwargs)
    except (TypeError, ValueError):
        return  # NumPy has no such function
    except RuntimeWarning:
        return  # SciPy says that the matrix is nearly singular
    for mode in MODES:
        if spec.order < 2 and "over" in mode:
            continue
        pairs = difference_from_floats(
            lambda *xs: spec.fn(*xs, **case.kwargs), inputs, position, integers, mode, place)
        for actual, expected in pairs:
            assert actual.dtype == expected.dtype
            np.testing.assert_allclose(
                actual, expected, TOLERANCES[dtype], TOLERANCES[dtype], err_msg=mode)


PUBLIC = {id(function) for module in (cnp, cnp.linalg, cnp.fft, nn)
          for name, function in vars(module).items() if not name.startswith("_")}
# Shapes, dtypes or errors of these depend on values, and are others in a graph or not known there.
OF_VALUES = {
    "Eig", "ScipyLinalgSqrtm", "arange", "eig", "eigvals", "multigammaln", "poly", "polydiv",
    "real_if_close", "trim_zeros"}
OF_INTEGERS = [
    (FAMILY_OF[id(spec)], partial("{}-{}".format, spec, case), (spec, case), False)
    for spec in SPECS if spec.op not in OF_VALUES and (
        isinstance(spec.fn, FunctionType) or id(spec.fn) in PUBLIC)
    for case in spec.cases if positions_of(spec, case)]


@pytest.mark.parametrize("integer", table(["bool"], ["int8", "uint8", "int64"]))
@grouped("spec, case", OF_INTEGERS)
def test_integers_alone_are_the_same_in_functions(spec, case, integer):
    inputs, places = spec.draw(case, "float64"), positions_of(spec, case)
    tensors = [cytape.constant(np.abs(inputs[i] * 4).astype(integer)) for i in places]

    def operands(xs):
        given = dict(zip(places, xs, strict=True))
        return [given.get(i, x) for i, x in enumerate(inputs)]

    def call(*xs):
        return as_tuple(spec.fn(*operands(xs), **case.kwargs))

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = call(*tensors)
        except (ArithmeticError, NotImplementedError, TypeError, ValueError) as error:
            if isinstance(error, NotImplementedError):  # of SciPy, of dtypes it does not take
                with pytest.raises(NotImplementedError):
                    spec.ref(*operands([x.numpy() for x in tensors]), **case.kwargs)
            with pytest.raises(type(error)):
                cytape.function(call)(*tensors)
            return
        found = cytape.function(call)(*tensors)
    for x, y in zip(found, expected, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        tolerance = TOLERANCES.get(y.dtype.name, 1e-9)
        np.testing.assert_allclose(x, y, tolerance, tolerance)


@each("call", [
    np.angle, lambda x: np.correlate(x, x), lambda x: np.resize(x, 0), lambda x: np.polydiv(x, [2]),
    lambda x: np.modf(x), lambda x: np.frexp(x), np.conjugate,
    lambda x: np.linalg.pinv(np.reshape(x[:0], (0, 2)))])
def test_results_of_integers_alone_have_numpys_dtypes(call):
    for dtype in ("bool", "int8", "uint8", "int64"):
        x = np.array([1, 0, 1], dtype)
        found, expected = as_tuple(call(cytape.constant(x))), as_tuple(call(x))
        for y, z in zip(found, expected, strict=True):
            assert y.dtype == z.dtype
            np.testing.assert_array_equal(y, z)


BINARY = [
    "add", "subtract", "multiply", "divide", "power", "float_power", "fmod", "remainder",
    "logaddexp", "logaddexp2", "hypot", "arctan2", "maximum", "minimum", "fmax", "fmin", "copysign"]


@pytest.mark.parametrize("integer", INTEGERS)
@sampled(2, side=[0, 1], name=BINARY)
def test_every_extreme_beside_every_float(name, integer, side):
    """Scalars of NumPy, one value at a time."""
    op = getattr(cnp, name)
    for value in extremes(integer, 6):
        for dtype in FLOATS:
            x = np.array([0.5, 1.0, 2.0, -1.5], dtype)
            order = (lambda a, b: (b, a)) if side else (lambda a, b: (a, b))
            inputs = list(order(x, value))
            for mode in MODES:
                pairs = difference_from_floats(op, inputs, 1 - side, value, mode, "eager")
                for actual, expected in pairs:
                    np.testing.assert_allclose(
                        actual, expected, TOLERANCES[dtype], TOLERANCES[dtype],
                        err_msg=f"{value!r} beside {dtype}, {mode}")


@each(("f", "x", "expected"), [
    (lambda q: np.arctan2(np.uint8(1), q), 2.0, -0.2), (lambda q: np.arctan2(True, q), 2.0, -0.2),
    (lambda q: np.arctan2(np.True_, q), 2.0, -0.2),
    (lambda q: np.sum(q ** np.array([0, 1, 2], np.uint8)), 2.0, 5.0),
    (lambda q: np.sum(q ** np.array([0, 1, 2], np.uint8)), 0.0, 1.0),
    (lambda q: q ** np.int8(-128), 1.0, -128.0), (lambda q: np.uint8(3) ** q, 1.0, 3 * np.log(3)),
    (lambda q: np.int16(3) ** q, 1.0, 3 * np.log(3)),
    (lambda q: np.float16(3) ** q, 1.0, 3 * np.log(3)),
    (lambda q: np.float32(3) ** q, 1.0, 3 * np.log(3))])
def test_gradients_by_hand(f, x, expected):
    np.testing.assert_allclose(cytape.grad(f)(x), expected, rtol=1e-12)
    np.testing.assert_allclose(cytape.function(cytape.grad(f))(np.array(x)), expected, rtol=1e-12)
    np.testing.assert_allclose(cytape.jvp(f, (x,), (1.0,))[1], expected, rtol=1e-12)
    np.testing.assert_allclose(cytape.jet(f, x, [1.0])[1][0], expected, rtol=1e-12)


@pytest.mark.parametrize("integer", INTEGERS)
@each(side=[0, 1], name=BINARY)
def test_taylor_mode(name, integer, side):
    op = getattr(cnp, name)
    operand = np.array(extremes(integer, 6)[0 if integer == "bool" else 1])

    def series(operand):
        return cytape.jet(
            lambda q: q + (op(operand, q) if side else op(q, operand)), 1.5, [1.0, 0.0, 0.0]
        )[1]

    for actual, expected in zip(series(operand), series(operand.astype(float)), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_a_negative_base_of_a_complex_exponent():
    """The base is complex, too, then: its logarithm is not NaN."""
    z = 0.5 + 0.25j
    expected = np.conj(np.power(-2.0 + 0j, z) * np.log(-2.0 + 0j))
    actual = cytape.grad(lambda z: np.real(np.power(-2.0, z)))(z)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
