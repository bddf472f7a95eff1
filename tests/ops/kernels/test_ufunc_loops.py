"""NumPy's loops called from C: the same results, bit by bit, and the same warnings."""

import warnings

import numpy as np
import pytest

import cytape
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.ops.engine.op_kinds import OPS
from cytape.ops.kernels.partial_tracer import has_loop
from cytape.ops.kernels.ufunc_loops import Kernel
from tests.cases import each
from tests.tables import table

UFUNC_OPS = {name: op for name, op in OPS.items()
             if isinstance(op, ElementwiseOp) and isinstance(op.forward, np.ufunc)
             and not name.startswith("Scipy")}  # which widen float32 beside Python's numbers
DTYPES = table(["float32", "float64", "bool"], [
    "uint8", "int64", "float16", "longdouble", "complex64", "complex128"])
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1e300, -1e300, 1.0, -1.0, 0.5, 2.0]


def draw(dtype, size, seed):
    """Numbers of a dtype, with those among them where loops might differ."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind in "biu":
        return rng.integers(0, 2 if dtype.kind == "b" else 100, size).astype(dtype)
    values = rng.normal(size=size)
    values[: len(SPECIAL)] = rng.permutation(SPECIAL)[:size]
    if dtype.kind == "c":
        values = values + 1j * np.roll(values, 3)
    return values.astype(dtype)


def assert_same_bits(result, expected):
    """Compare all that can be told of the numbers, zeros' signs included, but those of NaNs."""
    np.testing.assert_array_equal(result, expected, strict=True)
    for x, y in ((result.real, expected.real), (result.imag, expected.imag)):
        if x.dtype.kind == "f":
            is_number = ~np.isnan(x)
            np.testing.assert_array_equal(np.signbit(x)[is_number], np.signbit(y)[is_number])


def check(op, *arrays):
    with np.errstate(all="ignore"):
        tensors = [cytape.constant(x) if isinstance(x, np.ndarray) else x for x in arrays]
        try:
            expected = np.asarray(op.forward(*arrays))
        except TypeError:
            with pytest.raises(TypeError):
                op(*tensors)
            return
        result = op(*tensors)
    assert type(result) is cytape.Tensor
    assert_same_bits(result.numpy(), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@each("name", UFUNC_OPS)
def test_a_result_is_numpys_to_the_bit(name, dtype):
    op = UFUNC_OPS[name]
    with np.errstate(all="ignore"):
        for size in (0, 1, 8, 9, 31, 1000, 5000):
            arrays = [draw(dtype, size, seed) for seed in range(op.n_inputs)]
            check(op, *arrays)
            if op.n_inputs == 2:
                for number in draw(dtype, 20, 7)[:3]:
                    check(op, arrays[0], np.array(number))
                    check(op, np.array(number), arrays[1])
                    check(op, arrays[0], number.item())
                    check(op, number.item(), arrays[1])


@each("ufunc, dtype, out", [
    (np.add, "float64", "float64"), (np.add, "float32", "float32"), (np.add, "bool", "bool"),
    (np.less, "float64", "bool"), (np.sin, "float16", "float16"), (np.sin, "int64", None),
    (np.absolute, "complex128", "float64"), (np.invert, "float64", None),
    (np.ldexp, "float64", None), (np.modf, "float64", None), (np.logical_not, "longdouble", "bool"),
])
def test_loops_are_found_by_the_type_that_all_inputs_share(ufunc, dtype, out):
    found = has_loop(ufunc, np.dtype(dtype).num)
    assert found == (None if out is None else np.dtype(out).num)


def test_a_kernel_is_that_of_a_ufunc():
    assert Kernel(np.sin).ufunc is np.sin
    with pytest.raises(TypeError):
        Kernel(None)
    with pytest.raises(TypeError):
        Kernel(abs)


TROUBLE = {
    "divide": lambda one: one / (one - one), "invalid": lambda one: (one - one) / (one - one),
    "log of zero": lambda one: np.log(one - one), "square root": lambda one: np.sqrt(-one),
    "power": lambda one: (one - one) ** -1.0, "overflow": lambda one: np.exp(one * 1e6),
    "overflow of a product": lambda one: np.square(one * 1e30) ** 9,
    "python scalar": lambda one: one / 0, "reflected": lambda one: 0 / (one - one),
    "cast of a python scalar": lambda one: one * 1e300, "none": lambda one: one * 2 + 1 > 0,
    "inf without trouble": lambda one: one * np.inf,
    "nan without trouble": lambda one: one * np.nan,
    "comparison with nan": lambda one: one < one * np.nan}


def complaints(function, argument, **how):
    """The warnings that a function draws, or its error."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(**how):
        warnings.simplefilter("always")
        try:
            function(argument)
        except FloatingPointError as error:
            return str(error)
    return [(w.category, str(w.message)) for w in caught]


@pytest.mark.parametrize("trouble", TROUBLE)
@pytest.mark.parametrize("dtype", table(["float64"], ["float32", "float16", "complex64"]))
def test_floating_point_trouble_is_reported_as_numpy_is_set_up_to(trouble, dtype):
    function = TROUBLE[trouble]
    for size in (1, 1000):
        ones = np.ones(size, dtype)
        for how in ({}, {"all": "warn"}, {"all": "raise"}, {"all": "ignore"}, {"over": "ignore"}):
            how = how and {**how, "under": "ignore"}
            expected = complaints(function, ones, **how)
            assert complaints(function, cytape.constant(ones), **how) == expected


@each("function", [
    lambda one: np.exp(-one * 1e6), lambda one: np.square(one * 1e-30) ** 9,
], ids=["exp", "product"])
@each(dtype=["float64", "float32"], how=["ignore", "warn", "raise"])
def test_underflow_is_reported_if_errstate_requests_it(function, dtype, how):
    ones = np.ones(5, dtype)
    expected = complaints(function, ones, under=how)
    assert complaints(function, cytape.constant(ones), under=how) == expected


def test_trouble_is_not_reported_twice_or_later():
    x = cytape.constant([1.0, 0.0])
    with np.errstate(all="ignore"):
        x / 0.0
    with np.errstate(all="raise"):
        x * 2.0
        np.exp(x)
    with pytest.warns(RuntimeWarning, match="divide by zero") as caught:
        1.0 / x
    assert len(caught) == 1


def test_text_longer_than_any_number_is_copied():
    text = np.array(["derivative", "of", "a", "sum"])
    x = cytape.constant(text)
    np.testing.assert_array_equal(x[::-2], text[::-2])
    reversed_twice = cytape.function(lambda x: (x[::-1], x[::-2][:1]))
    for found, expected in zip(reversed_twice(x), (text[::-1], text[:-2:-1]), strict=True):
        np.testing.assert_array_equal(found, expected)


def roots_near_a_midpoint():
    """Doubles whose square root is as near as any to the middle between two doubles.

    The middle is an odd number m of 54 bits, scaled, and m * m modulo 2**k is small. So m is a root
    of a small number modulo 2**k; these roots are found bit by bit.
    """
    found = set()
    for remainder in range(1, 1024, 8):
        for small in (remainder, remainder - 1024):
            roots = {1, 3, 5, 7}  # modulo 8, where the square of an odd number is 1
            for k in range(4, 56):
                roots = {y for x in roots for y in (x, x + 2 ** (k - 1))
                         if (y * y - small) % 2**k == 0}
                if k >= 54:  # the number is (m * m - small) / 2**k
                    squares = [(m * m - small) // 2**k for m in roots if m > 2**53]
                    found |= {x << k - 54 for x in squares if x < 2**53}
    return np.array(sorted(found), float)


@each("scale", [1, 2, 2.0**-1008, 2.0**-1013, 2.0**-1064, 2.0**970])
def test_square_roots_near_the_middle_between_two_numbers_are_rounded_correctly(scale):
    x = roots_near_a_midpoint()
    assert len(x) > 300
    np.testing.assert_array_equal(np.sqrt(cytape.constant(x * scale)), np.sqrt(x * scale))


@pytest.mark.parametrize("exponent", table([0, -96, -97], [1, 126, 127, -1, -95, -125, -126]))
def test_square_roots_of_all_fractions_of_32_bits_are_numpys(exponent):
    bits = np.arange(2**23, dtype=np.uint32) + np.uint32(exponent + 127 << 23)
    x = bits.view(np.float32)
    np.testing.assert_array_equal(np.sqrt(cytape.constant(x)), np.sqrt(x))


@each("dtype", ["float32", "float64"])
@each("special", [0.0, -0.0, np.inf, np.nan, -1.0, 5e-324, 1e-42, 1e-310])
def test_square_roots_beside_special_numbers_are_numpys(special, dtype):
    for size in (1, 7, 8, 9, 16, 17, 40):
        for at in {0, size // 2, size - 1}:
            x = np.random.default_rng(size).uniform(0.1, 1e3, size).astype(dtype)
            x[at] = special
            how = {"all": "warn"}
            assert complaints(np.sqrt, cytape.constant(x), **how) == complaints(np.sqrt, x, **how)
            with np.errstate(all="ignore"):
                assert_same_bits(np.sqrt(cytape.constant(x)).numpy(), np.sqrt(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_of_a_strided_boolean_result_is_written(dtype):
    with np.errstate(over="ignore", invalid="ignore"):
        x = draw(dtype, 2100, 0).reshape(700, 3)
    tests = [op for op in UFUNC_OPS.values()
             if op.n_inputs == 1 and op.forward.types[-1][-1] == "?"]
    assert len(tests) > 3
    for op in tests:
        traced = cytape.function(lambda a, op=op: op(a[:, :-1]))
        try:
            expected = op.forward(x[:, :-1])
        except TypeError:
            continue
        for _ in range(3):
            np.testing.assert_array_equal(traced(x), expected, err_msg=op.name)


def test_loops_may_advance_the_pointers_that_they_are_given():
    """As those of SciPy do: a run of a plan, or a broadcast operand, needs the pointers again."""
    special = pytest.importorskip("scipy.special")
    function = cytape.elementwise(special.ellipkinc, lambda x, m: 1 / np.sqrt(1 - m), None)
    x, m = np.linspace(0.1, 1, 3)[:, None], np.linspace(0.1, 0.9, 4)
    expected = special.ellipkinc(x, m)
    traced = cytape.function(lambda x: function(x, m))
    for call in (lambda x: function(x, m), traced, traced):
        np.testing.assert_array_equal(np.asarray(call(cytape.constant(x))), expected)
