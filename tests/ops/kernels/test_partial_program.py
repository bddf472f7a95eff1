"""Partial derivatives as lists of kernel calls: they give the numbers that the partials give."""


import numpy as np
import pytest

import cytape
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.ops.engine.op_kinds import OPS
from cytape.ops.kernels.partial_program import Program, trace
from cytape.tensor.tensor import tensor_of
from tests import ways
from tests.cases import each
from tests.tables import table

OUTPUT, FIRST, SECOND = 1, 2, 4  # bits of Program.reads

# Numbers of elements around those of a register on the stack and of a block, in both dtypes.
SIZES = [0, 1, 31, 32, 33, 64, 65, 511, 512, 513, 1024, 1025, 5000]


def made_op(*partials, forward=None):
    """An op with these partials, outside the op table."""
    forward = forward or {1: np.tanh, 2: np.multiply, 3: lambda x, y, z: x * y * z}[len(partials)]
    return ElementwiseOp("Made", forward, partials)


def gradients(op, inputs, seed, recorded):
    """The gradients of an op, by its programs; if recorded, by its partials on tensors."""
    with np.errstate(all="ignore"):
        return ways.gradients(op, *inputs, recorded=recorded, output_gradients=seed)


def check(op, *inputs, rtol=0):
    seed = np.random.default_rng(9).normal(size=np.broadcast(*inputs).shape)
    seed = seed.astype(np.result_type(*inputs))
    by_programs = gradients(op, inputs, seed, recorded=False)
    by_partials = gradients(op, inputs, seed, recorded=True)
    for ours, theirs, x in zip(by_programs, by_partials, inputs, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype) == (x.shape, x.dtype)
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=rtol)


def rtol_of(dtype):
    return 4 * np.finfo(dtype).eps


def draw(dtype, *shape, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 0.9, shape).astype(dtype)


# Without the ops of SciPy, which are declared only if another test imported them before.
TABLE = {
    name: op for name, op in OPS.items()
    if isinstance(op, ElementwiseOp) and any(op.partials) and not name.startswith("Scipy")}


# Where two terms of the partial cancel, so that their rounding shows: the difference of cos(pi x)
# and sinc(x) is a hundredth of them where the closed form begins, at 0.1, and the second derivative
# divides by x again.
CANCELLING = {"Sinc": 100}


def inputs_of(name, dtype, *shapes):
    """Inputs for an op of the table, one of each shape."""
    inputs = [draw(dtype, *shape, seed=seed) for seed, shape in enumerate(shapes)]
    if name == "Ldexp":
        inputs[1] = np.arange(inputs[1].size).reshape(inputs[1].shape) % 5
    if name in ("Arccosh", "Log1p"):
        inputs[0] += 1
    return inputs


@pytest.mark.parametrize("dtype", table(["float64"], ["float32"]))
@pytest.mark.parametrize("name", TABLE)
def test_every_op_of_the_table_gets_the_same_gradients_both_ways(name, dtype):
    op = TABLE[name]
    for size in SIZES:
        inputs = inputs_of(name, dtype, *op.n_inputs * [(size,)])
        check(op, *inputs, rtol=CANCELLING.get(name, 1) * rtol_of(dtype))


NO_UFUNCS = {"BesselI0", "BesselI1"}  # which programs are made of, are their derivatives


def test_the_programs_of_the_table_fit():
    """None is so long that its op falls back to whole arrays."""
    too_long = {name for name, op in TABLE.items() for partial in op.partials
                if partial is not None and trace(partial, op.n_inputs) is None}
    assert too_long - NO_UFUNCS == set()


# -- tracing ---------------------------------------------------------------------------------------


@each("partial, n_inputs, reads, is_one", [
    (lambda z, x: 1, 1, 0, True), (lambda z, x: 1.0, 1, 0, True),
    (lambda z, x: np.float64(1), 1, 0, True), (lambda z, x: -1, 1, 0, False),
    (lambda z, x: 0, 1, 0, False), (lambda z, x: z, 1, OUTPUT, False),
    (lambda z, x: x, 1, FIRST, False), (lambda z, x, y: y, 2, SECOND, False),
    (lambda z, x, y: z * x + y, 2, OUTPUT | FIRST | SECOND, False),
    (lambda z, x, y: x / x, 2, FIRST, False), (lambda z, x: x > 0, 1, FIRST, False),
    (lambda z, x: np.where(x > 0, z, 2.0), 1, OUTPUT | FIRST, False),
    (lambda z, x, y, w: w, 3, 8, False)])
def test_a_program_says_what_it_reads(partial, n_inputs, reads, is_one):
    program = trace(partial, n_inputs)
    assert isinstance(program, Program)
    assert (program.reads, bool(program.is_one)) == (reads, is_one)


def long_sum(n_terms):
    """x + x**2 + ... with every power kept until the end."""
    def partial(z, x):
        powers = [x]
        for _ in range(n_terms - 1):
            powers.append(powers[-1] * x)
        return sum(powers[1:], powers[0])

    return partial


UNTRACEABLE = {
    "too many steps": long_sum(30),
    "too many constants": lambda z, x: sum(
        [np.where(x > 0, 2.0 * i, 2.0 * i + 1) for i in range(1, 25)]),
    "a function that is no ufunc": lambda z, x: np.clip(x, 0.2, 0.8),
    "a method": lambda z, x: x.clip(0.2, 0.8), "an attribute": lambda z, x: x * x.ndim,
    "a keyword": lambda z, x: np.add(x, 1, dtype=x.dtype),
    "a reduction": lambda z, x: x / np.add.reduce(x), "two outputs": lambda z, x: np.modf(x)[0],
    "a complex constant": lambda z, x: np.real(x * 1j) + x, "an array": lambda z, x: x * np.ones(3),
    "a branch": lambda z, x: x if x.sum() > 0 else -x,
    "where with one argument": lambda z, x: np.where(x > 0)[0] + x,
    "where of numbers": lambda z, x: np.where(x, x, 1.0),
}


@each("partial", UNTRACEABLE.values(), ids=UNTRACEABLE)
def test_partials_beyond_kernels_are_no_program(partial):
    assert trace(partial, 1) is None


@each(partial=[
    long_sum(30), UNTRACEABLE["a function that is no ufunc"], UNTRACEABLE["a method"],
    UNTRACEABLE["an attribute"], UNTRACEABLE["a branch"], UNTRACEABLE["two outputs"],
    UNTRACEABLE["where of numbers"]], size=[1, 3, 1000])
def test_ops_without_a_program_have_a_gradient_nevertheless(partial, size):
    x = draw("float64", size)
    (gradient,) = gradients(made_op(partial), [x], np.ones(size), recorded=False)
    np.testing.assert_allclose(gradient.numpy(), np.asarray(partial(np.tanh(x), x)), rtol=1e-12)


@each("partial", [
    lambda z, x: 1 if x > 0 else -1, lambda z, x: z * (x > 0 and 2.0), lambda z, x: x * max(x, 0.0),
], ids=["if", "and", "max"])
def test_a_branch_on_the_data_is_not_taken_blindly(partial):
    """Whatever a symbol were to answer, it would hold for one of the two signs only."""
    op = made_op(partial)
    for x in (2.0, -2.0):
        x = np.array(x)
        (gradient,) = gradients(op, [x], np.ones(()), recorded=False)
        np.testing.assert_allclose(gradient.numpy(), partial(np.tanh(x), x))


def test_an_error_in_a_partial_comes_out():
    def partial(z, x):
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        trace(partial, 1)


# -- running ---------------------------------------------------------------------------------------

EXPRESSIONS = {
    "select by a boolean": lambda z, x, y: x > 0.5,
    "select by a negated boolean": lambda z, x, y: ~(x > 0.5),
    "select by two booleans": lambda z, x, y: (x > 0.5) & (y > 0.5) | (x < 0.2),
    "logical functions": lambda z, x, y: np.logical_and(x > 0.5, np.logical_not(y > 0.5)),
    "compare booleans": lambda z, x, y: (x > 0.5) == (y > 0.5),
    "numbers as truth values": lambda z, x, y: np.logical_or(x - x, y > 0.5),
    "boolean times number": lambda z, x, y: (x > 0.5) * y,
    "sum of booleans": lambda z, x, y: 1.0 * (x > 0.5) + (y > 0.5),
    "boolean plus constant": lambda z, x, y: (x > 0.5) + 2,
    "power of a boolean": lambda z, x, y: x ** (y > 0.5),
    "where": lambda z, x, y: np.where(x > y, x, y),
    "where of constants": lambda z, x, y: np.where(x > y, 3.0, -1),
    "where of one constant": lambda z, x, y: np.where(x > y, z, 0),
    "where of booleans": lambda z, x, y: np.where(x > y, x > 0.5, y > 0.5) * 2.0,
    "where of where": lambda z, x, y: np.where(x > 0.5, np.where(y > 0.5, z, x), y),
    "the same constant twice": lambda z, x, y: (x + 2.0) * 2.0 + 2,
    "zeros of both signs": lambda z, x, y: np.copysign(x, 0.0) + y * np.copysign(z, -0.0),
    "constant on the left": lambda z, x, y: 3 - 2 / x,
    "numpy constant": lambda z, x, y: x * np.pi + np.int64(2),
    "unary chain": lambda z, x, y: -np.sqrt(np.exp(np.sin(abs(x)))),
    "minimum": lambda z, x, y: np.minimum(x, y) - np.maximum(x, 0.5),
    "no data": lambda z, x, y: -2.5, "the output": lambda z, x, y: z,
    "three arguments": lambda z, x, y: np.where(x > 0.5, x * y, z)}


@each("dtype", ["float64", "float32"])
@each("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_programs_compute_what_their_partials_say(expression, dtype):
    op = made_op(expression, lambda z, x, y: expression(z, y, x))
    assert trace(expression, 2) is not None
    for size in (1, 32, 513, 3000):
        check(op, draw(dtype, size), draw(dtype, size, seed=1), rtol=rtol_of(dtype))


@each(dtype=["float64", "float32"], size=[1, 33, 3000])
def test_a_single_number_is_spread_over_the_other_operand_and_its_gradient_summed(dtype, size):
    op = made_op(lambda z, x, y: z + y, lambda z, x, y: z - x * y)
    long, number = draw(dtype, size), draw(dtype)
    rtol = 100 * rtol_of(dtype)
    check(op, long, number, rtol=rtol)
    check(op, number, long, rtol=rtol)
    check(op, number, number, rtol=rtol)
    check(op, draw(dtype, 1), long, rtol=rtol)
    check(op, draw(dtype, 1, 1), number, rtol=rtol)


def test_the_sum_for_a_single_number_is_accurate():
    x = cytape.constant(np.full(1_000_000, 0.1, np.float32))
    scale = cytape.constant(np.float32(1))
    found = ways.gradient(lambda scale: x * scale, scale)
    np.testing.assert_allclose(float(found), 100_000, rtol=1e-6)


def test_broadcasting_of_rows_and_columns():
    op = made_op(lambda z, x, y: z + y, lambda z, x, y: z - x)
    check(op, draw("float64", 40, 50), draw("float64", 50), rtol=1e-12)
    check(op, draw("float64", 40, 1), draw("float64", 1, 50), rtol=1e-12)


@each("lay_out", [np.transpose, lambda x: x[::-1], lambda x: x[:, ::2]])
def test_other_memory_layouts(lay_out):
    op = made_op(lambda z, x, y: z + y, lambda z, x, y: z - x)
    x, y = draw("float64", 40, 40), draw("float64", 40, 40, seed=1)
    check(op, lay_out(x), lay_out(y), rtol=1e-12)
    check(op, x, np.ascontiguousarray(y.T).T, rtol=1e-12)


@each("dtypes", [
    ("float16", "float16"), ("longdouble", "longdouble"), ("complex128", "complex128"),
    ("float32", "float64"), ("float64", "complex128"), ("float32", "int64")])
def test_other_dtypes_and_mixed_ones(dtypes):
    op = made_op(lambda z, x, y: z + y, lambda z, x, y: z - x)
    inputs = [(10 * draw("float64", 100, seed=seed)).astype(dtype)
              for seed, dtype in enumerate(dtypes)]
    moving = [i for i, x in enumerate(inputs) if x.dtype.kind != "i"]
    tensors = [cytape.constant(x) for x in inputs]
    with ways.watching([tensors[i] for i in moving]) as tape:
        z = op(*tensors)
    seed = np.ones(100, z.dtype)
    found = tape.gradient(z, tensors, output_gradients=seed)
    x, y = inputs
    expected = [np.conj(x * y + y), np.conj(x * y - x)]
    for i in moving:
        assert found[i].dtype == inputs[i].dtype
        real = inputs[i].dtype.kind == "f"
        np.testing.assert_allclose(found[i].numpy(), expected[i].real if real else expected[i],
                                   rtol=1e-2 if "float16" in dtypes else 1e-5)


def unaligned(x):
    raw = np.frombuffer(b"\0" + np.ascontiguousarray(x).tobytes(), np.uint8)
    return raw[1:].view(x.dtype).reshape(x.shape)


@each("dtype", ["float64", "float32"])
@each("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_operands_that_lie_differently(expression, dtype):
    """Runs on both sides of what fits the stack and a block; a number, a row, a column."""
    op = made_op(expression, lambda z, x, y: expression(z, y, x))
    for shape in [(4, 5), (3, 64), (3, 65), (2, 1100), (600, 3)]:
        x = draw(dtype, *shape)
        rtol = 20 * max(shape) * rtol_of(dtype)
        for y in (draw(dtype, *shape, seed=1).T.copy().T, draw(dtype, shape[1], seed=1),
                  draw(dtype, shape[0], 1, seed=1), draw(dtype, 1, 1, seed=1)):
            check(op, x, y, rtol=rtol)
            check(op, y, x, rtol=rtol)
        check(op, x[:, ::-1], x[::2][:1], rtol=rtol)


@each("shapes", [
    ((30, 40), (30, 40)), ((30, 40), (40,)), ((30, 40), (1, 1)), ((30, 40), ()), ((3,), (3,))])
def test_operands_that_are_not_aligned(shapes):
    op = made_op(lambda z, x, y: z + y, lambda z, x, y: z - x * y)
    for dtype in ("float64", "float32"):
        arrays = [draw(dtype, *shape, seed=seed) for seed, shape in enumerate(shapes)]
        aligned = [tensor_of(array) for array in arrays]
        for which in ((0,), (1,), (0, 1)):
            tensors = [tensor_of(unaligned(array)) if i in which else aligned[i]
                       for i, array in enumerate(arrays)]
            tensors[0] = np.transpose(np.transpose(tensors[0]))
            found, expected = ([g.numpy() for g in gradients(op, operands, None, False)]
                               for operands in (tensors, aligned))
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours, theirs, 1000 * rtol_of(dtype))


@each(dtype=["float64", "float32"], size=[1, 9, 33, 513, 1025, 8193, 16_400])
def test_gradients_are_computed_in_the_memory_of_those_that_are_done_with(size, dtype):
    """A chain of ops whose partials read the gradient late, its blocks and its end included."""
    x = cytape.constant(draw(dtype, size))
    late = made_op(lambda z, x: np.where(x > 0.5, z * x, 1.0 - x) + z / x)
    with ways.watching(x, persistent=True) as tape:
        y = x
        for _ in range(6):
            y = late(y) * x + y
        recorded = tape.gradient(y, x)
    first, second = tape.gradient(y, x), tape.gradient(y, x)
    np.testing.assert_array_equal(first.numpy(), second.numpy())
    np.testing.assert_allclose(first.numpy(), recorded.numpy(), 200 * rtol_of(dtype))


@each("size", [1, 33, 513, 9000])
def test_a_tensor_that_is_every_input_of_an_op(size):
    op = made_op(lambda w, x, y, z: y * z, lambda w, x, y, z: x * z, lambda w, x, y, z: x * y)
    x = cytape.constant(draw("float64", size))
    with ways.watching(x, persistent=True) as tape:
        y = [x * 2.0, op(x, x, x), x + 1.0, op(x, x * 1.0, x)]
    for _ in range(2):
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), 3 + 6 * x.numpy() ** 2, 1e-14)


def test_three_inputs_of_which_one_is_not_differentiable():
    op = made_op(lambda w, x, y, z: y * z, None, lambda w, x, y, z: w / z)
    inputs = [draw("float64", 700, seed=seed) for seed in range(3)]
    check(op, *inputs, rtol=1e-14)
    assert gradients(op, inputs, np.ones(700), recorded=False)[1] is None


def test_special_values_are_computed_with_like_all_others():
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e308])
    op = made_op(lambda z, x, y: z / y + x, lambda z, x, y: np.where(x > y, x, z))
    with np.errstate(all="ignore"):
        check(op, np.repeat(special, 7), np.tile(special, 7))


@each("partial, expected", [
    (lambda y, x: x > 0, [0.0, np.inf, np.nan]),
    (lambda y, x: 1.0 * (x > 0), [np.nan, np.inf, np.nan])])
def test_a_boolean_selects_where_a_number_multiplies(partial, expected):
    x = np.array([-1.0, 1.0, 1.0])
    seed = np.array([np.inf, np.inf, np.nan])
    for recorded in (False, True):
        (gradient,) = gradients(made_op(partial), [x], seed, recorded)
        np.testing.assert_array_equal(gradient.numpy(), expected)


def test_the_gradient_that_comes_in_is_left_alone():
    seed = cytape.constant(np.full(1000, 3.0))
    x = cytape.constant(draw("float64", 1000))
    ways.gradient(lambda x: np.negative(np.positive(x)) * x, x, output_gradients=seed)
    np.testing.assert_array_equal(seed.numpy(), np.full(1000, 3.0))
