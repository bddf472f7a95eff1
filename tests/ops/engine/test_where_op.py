"""numpy.where by a loop that selects: every layout, rank and dtype, there and back."""

import gc
import itertools
import warnings
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.engine.op_kinds import OPS
from cytape.tensor.tensor import tensor_of
from tests.cases import each, sampled
from tests.ops.specs_elementwise import WHERE_SHAPES as SHAPES
from tests.ways import gradients, taped, watching

LAYOUTS = {
    "contiguous": lambda x: x, "fortran": np.asfortranarray,
    "every other": lambda x: np.repeat(x, 2, axis=0)[::2] if x.ndim else x,
    "backwards": lambda x: np.flip(np.flip(x).copy()),
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(
        x.shape),
}
DTYPES = ["float64", "float32", "float16", "complex128", "complex64", "longdouble", "clongdouble"]
MIXED = [("float64", "float32"), ("float32", "float64"), ("float64", "int64"), ("int32", "float32"),
         ("bool", "float64"), ("float16", "float32"), ("float32", "complex64"), ("int64", "int64"),
         ("bool", "int8")]


def draw(shape, dtype="float64", seed=0):
    values, imaginary = np.random.default_rng(seed).integers(-8, 8, (2, *shape))
    return np.asarray(values + 1j * imaginary if np.dtype(dtype).kind == "c" else values).astype(
        dtype)


def mask(shape, seed=5):
    return np.random.default_rng(seed).random(shape) < 0.5


def arrays(shapes, dtype):
    return mask(shapes[0]), draw(shapes[1], dtype), draw(shapes[2], dtype, 1)


def sum_to(x, shape):
    lead = x.ndim - len(shape)
    axes = (*range(lead), *(lead + i for i, n in enumerate(shape) if n == 1))
    return x.sum(axes, keepdims=True).reshape(shape)


def expected_gradients(condition, x, y, seed):
    return [sum_to(np.where(condition, seed, 0), x.shape), sum_to(np.where(condition, 0, seed),
                                                                  y.shape)]


@sampled(4, dtype=DTYPES, shapes=SHAPES)
def test_results_and_gradients(shapes, dtype):
    condition, x, y = arrays(shapes, dtype)
    expected = np.where(condition, x, y)
    seed = draw(expected.shape, dtype, 7)
    tensors = cytape.constant(x), cytape.constant(y)
    for given in (condition, cytape.constant(condition)):
        result = cnp.where(given, *tensors)
        assert (type(result), result.dtype, result.shape) == (
            cytape.Tensor, expected.dtype, expected.shape)
        np.testing.assert_array_equal(result.numpy(), expected)
        for recorded in (False, True):
            found = gradients(
                lambda x, y, c=given: cnp.where(c, x, y), *tensors, recorded=recorded,
                output_gradients=seed)
            for ours, theirs, source in zip(
                    found, expected_gradients(condition, x, y, seed), tensors, strict=True):
                assert ours.spec is source.spec
                np.testing.assert_allclose(ours.numpy(), theirs, 1e-6 if "64" in dtype else 2e-3)


@each("dtypes", MIXED, ids=str)
@each("shapes", SHAPES[:8], ids=str)
def test_operands_of_two_dtypes(shapes, dtypes):
    condition = mask(shapes[0])
    x, y = (draw(shapes[1 + i], dtypes[i], i) for i in range(2))
    for pair in [(cytape.constant(x), cytape.constant(y)), (cytape.constant(x), y),
                 (x, cytape.Variable(y))]:
        result, expected = cnp.where(condition, *pair), np.where(condition, x, y)
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(result.numpy(), expected)
    seed = draw(expected.shape, expected.dtype, 7)
    for i, theirs in enumerate(expected_gradients(condition, x, y, seed)):
        if dtypes[i] not in DTYPES:
            continue
        operands = [cytape.constant(x), cytape.constant(y)]
        with watching(operands[i]) as tape:
            z = cnp.where(condition, *operands)
        found = tape.gradient(z, operands[i], output_gradients=seed)
        assert found.spec is operands[i].spec
        np.testing.assert_allclose(
            found.numpy(), theirs if "complex" in dtypes[i] else theirs.real, 1e-3)


@each("condition", [
    True, 1, [True, False, True], np.array([2.0, 0.0, np.nan]), np.array([0, 3, 0]),
    np.array([0, 2, 255], np.uint8).view(bool), np.array(["", "a", "b"]), np.bool_(False),
], ids=repr)
def test_conditions_of_any_kind(condition):
    x, y = cytape.constant([1.0, 2.0, 3.0]), cytape.constant([4.0, 5.0, 6.0])
    expected = np.where(condition, x.numpy(), y.numpy())
    np.testing.assert_array_equal(cnp.where(condition, x, y).numpy(), expected)
    by_x, by_y = gradients(lambda x, y: cnp.where(condition, x, y), x, y)
    np.testing.assert_array_equal(by_x.numpy(), expected == x.numpy())
    np.testing.assert_array_equal(by_y.numpy(), expected == y.numpy())


@each("dtype", ["float64", "float32", "float16", "complex64", "int64"])
@each("number", [0, 2, 0.5, -0.0, np.nan, 1j, True, np.float64(0.1),
                 np.float32(0.1), np.int8(3), 2**60], ids=repr)
def test_python_numbers_are_weak(number, dtype):
    condition, x = mask((6,)), draw((6,), dtype)
    if dtype == "float16" and number == 2**60:
        number = 2**12
    for order in (1, -1):
        try:
            expected = np.where(condition, *(x, number)[::order])
        except OverflowError:
            with pytest.raises(OverflowError):
                cnp.where(condition, *(cytape.constant(x), number)[::order])
            continue
        result = cnp.where(condition, *(cytape.constant(x), number)[::order])
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result.numpy(), expected)
        np.testing.assert_array_equal(np.signbit(result.numpy().real), np.signbit(expected.real))


def test_a_number_that_is_too_large_is_reported_as_numpy_does():
    condition, x = np.array([True, False]), np.ones(2, np.float32)
    for how in ("ignore", "warn", "raise"):
        found = []
        for operand in (x, cytape.constant(x)):
            with warnings.catch_warnings(record=True) as caught, np.errstate(over=how):
                warnings.simplefilter("always")
                try:
                    found.append(np.asarray(cnp.where(condition, operand, 1e300)).tolist())
                except FloatingPointError as error:
                    found.append(str(error))
                found.append([str(warning.message) for warning in caught])
        assert found[:2] == found[2:]


@each("shape", [(6,), (4, 6), (90, 110)])
def test_memory_layout_does_not_matter(shape):
    operands = arrays([shape] * 3, "float64")
    expected, seed = np.where(*operands), draw(shape, seed=2)
    by_x, by_y = expected_gradients(*operands, seed)
    for layouts in itertools.product(LAYOUTS.values(), repeat=3):
        c, x, y = (tensor_of(lay_out(x)) for lay_out, x in zip(layouts, operands, strict=True))
        np.testing.assert_array_equal(cnp.where(c, x, y).numpy(), expected)
        given = tensor_of(layouts[0](seed))
        found = gradients(lambda x, y, c=c: cnp.where(c, x, y), x, y, output_gradients=given)
        np.testing.assert_array_equal(found[0].numpy(), by_x)
        np.testing.assert_array_equal(found[1].numpy(), by_y)


def test_unselected_elements_get_zero_instead_of_nan():
    x, c = cytape.constant([0.0, -1.0, np.nan, np.inf]), np.array([False, False, True, False])
    seed = np.array([np.nan, np.inf, 2.0, -np.inf])
    by_x, by_y = gradients(lambda x, y: cnp.where(c, x, y), x, x + 1, output_gradients=seed)
    np.testing.assert_array_equal(by_x.numpy(), [0, 0, 2, 0])
    np.testing.assert_array_equal(by_y.numpy(), [np.nan, np.inf, 0, -np.inf])


@each("position", [0, 1])
def test_only_one_operand_is_followed(position):
    condition, operands = mask((50,)), [draw((50,)), draw((50,), seed=1)]
    for other in (operands[1 - position], 3.0, cytape.constant(operands[1 - position])):
        x = cytape.constant(operands[position])
        with watching(x) as tape:
            y = cnp.where(condition, *((x, other) if position == 0 else (other, x)))
        expected = condition if position == 0 else ~condition
        np.testing.assert_array_equal(tape.gradient(y, x).numpy(), expected)


@each("n", [8, 5000])
def test_the_condition_is_taken_as_it_was_and_nothing_else_is_kept(n):
    condition = mask((n,))
    before = condition.copy()
    x, y = cytape.constant(draw((n,))) * 1.0, cytape.constant(draw((n,), seed=1)) * 1.0
    with watching(x, y, persistent=True) as tape:
        kept = [x + 0.0, y + 0.0]
        z = cnp.where(condition, *kept)
    gone = [weakref.ref(tensor) for tensor in kept]
    del kept
    gc.collect()
    condition[:] = ~condition
    assert [ref() for ref in gone] == [None, None]
    by_x, by_y = tape.gradient(z, [x, y])
    np.testing.assert_array_equal(by_x.numpy(), before)
    np.testing.assert_array_equal(by_y.numpy(), ~before)


@each("n", [8, 20_000])
def test_gradients_of_others_are_left_alone(n):
    """An output's gradient lends its memory to an operand's only if it has no other holder."""
    c, x, seed = mask((n,)), cytape.constant(draw((n,))), draw((n,), seed=1)
    copy = seed.copy()
    with watching(x, persistent=True) as tape:
        y = x * 2.0
        z = cnp.where(c, y, x)
        w = z * 3.0
    for _ in range(2):
        given = cytape.constant(seed)
        by_x, by_z = tape.gradient(w, [x, z], output_gradients=given)
        np.testing.assert_array_equal(by_x.numpy(), np.where(c, 6 * copy, 3 * copy))
        np.testing.assert_array_equal(by_z.numpy(), 3 * copy)
        np.testing.assert_array_equal(given.numpy(), copy)
        np.testing.assert_array_equal(tape.gradient(z, x, output_gradients=seed).numpy(),
                                      np.where(c, 2 * copy, copy))
        np.testing.assert_array_equal(seed, copy)


@each("n", [8, 20_000])
def test_one_tensor_twice_and_a_chain(n):
    c, x = mask((n,)), cytape.constant(draw((n,)))
    (gradient,) = gradients(lambda x: cnp.where(c, x, x), x)
    np.testing.assert_array_equal(gradient.numpy(), np.ones(n))

    def chain(x):
        y = x
        for i in range(6):
            y = cnp.where(mask((n,), i), y * 2.0, y if i % 2 else x)
        return cnp.sum(y * y)

    seeds = cytape.grad(chain)(x).numpy()
    step = 1e-4
    slope = (chain(x + step * 1.0) - chain(x - step * 1.0)).numpy() / (2 * step)
    np.testing.assert_allclose(seeds.sum(), slope, 1e-6)


def test_a_gradient_that_a_sum_repeats():
    c, x, y = mask((30, 40)), cytape.constant(draw((30, 40))), cytape.constant(draw((40,)))
    by_x, by_y = gradients(lambda x, y: cnp.sum(cnp.where(c, x, y), axis=0), x, y)
    np.testing.assert_array_equal(by_x.numpy(), c)
    np.testing.assert_array_equal(by_y.numpy(), (~c).sum(0))


@each("shapes", SHAPES, ids=str)
@each("dtype", ["float64", "float32", "float16", "complex128"])
def test_in_traced_functions(shapes, dtype):
    c, x, y = arrays(shapes, dtype)

    @cytape.function
    def both(c, x, y):
        tape, z = taped(lambda x, y: cnp.where(c, x, y), x, y)
        return z, *tape.gradient(z, [x, y])

    for _ in range(3):
        z, by_x, by_y = both(cytape.constant(c), cytape.constant(x), cytape.constant(y))
        np.testing.assert_array_equal(z.numpy(), np.where(c, x, y))
        expected = expected_gradients(c, x, y, np.ones(z.shape, dtype))
        np.testing.assert_allclose(by_x.numpy(), expected[0], 2e-3)
        np.testing.assert_allclose(by_y.numpy(), expected[1], 2e-3)


@each("shapes", [((2,), (3,), (3,)), ((3,), (2,), (3,)), ((3,), (3,), (2,)),
                                    ((3, 1), (2, 2), ())], ids=str)
def test_shapes_that_do_not_fit_are_numpys_error(shapes):
    with pytest.raises(ValueError) as expected:
        np.where(*map(np.ones, shapes[:1]), *map(np.ones, shapes[1:]))
    with pytest.raises(ValueError) as found:
        cnp.where(np.ones(shapes[0], bool), *[cytape.constant(np.ones(s)) for s in shapes[1:]])
    assert str(found.value) == str(expected.value)


def test_there_is_one_op_for_all_of_its_names():
    assert OPS["Where"].name == "Where"
    x = cytape.constant([1.0, 2.0])
    for function in (cnp.where, np.where, OPS["Where"]):
        np.testing.assert_array_equal(function(x > 1, x, 0.0).numpy(), [0.0, 2.0])
    assert type(cnp.where(np.array([True]), np.ones(1), 2.0)) is np.ndarray


def test_variables_are_read_as_they_are():
    x, y = cytape.Variable([1.0, 2.0]), cytape.Variable([3.0, 4.0])
    c = np.array([True, False])
    with cytape.GradientTape() as tape:
        z = cnp.where(c, x, y)
        x.assign([10.0, 20.0])
    np.testing.assert_array_equal(z.numpy(), [1.0, 4.0])
    by_x, by_y = tape.gradient(z, [x, y])
    np.testing.assert_array_equal(by_x.numpy(), [1.0, 0.0])
    np.testing.assert_array_equal(by_y.numpy(), [0.0, 1.0])
