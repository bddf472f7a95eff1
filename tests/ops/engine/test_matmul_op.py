"""The matrix product by NumPy's own loop: every layout, rank and dtype, there and back."""

import itertools
import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.engine.op_kinds import OPS
from cytape.tensor.tensor import tensor_of
from tests.cases import each
from tests.ops.specs_linalg import OUTER_SHAPES, VECTOR_SHAPES
from tests.ways import gradient, taped, watching

SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((1, 3), (3, 1)),
    ((1, 1), (1, 1)), ((50, 40), (40, 30)), ((1,), (1,)), ((0, 3), (3, 4)), ((2, 0), (0, 4)),
    ((0,), (0,)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4))]
LAYOUTS = {
    "contiguous": lambda x: x, "fortran": np.asfortranarray,
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every other column": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: np.flip(np.flip(x).copy()),
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(
        x.shape),
}


def draw(shape, dtype="float64", seed=0):
    values, imaginary = np.random.default_rng(seed).normal(size=(2, *shape))
    return (values + 1j * imaginary if np.dtype(dtype).kind == "c" else values).astype(dtype)


def as_columns(x):
    return x if x.ndim == 2 else x[:, None]


def gradients(function, *tensors, recorded=False):
    with watching(tensors, persistent=True) as tape:
        y = function(*tensors)
        seed = draw(y.shape, y.dtype, 9)
        if recorded:
            return tape.gradient(y, tensors, output_gradients=seed)
    return tape.gradient(y, tensors, output_gradients=seed)


@each("dtype", ["float64", "float32", "float16", "complex128", "int64"])
@each("left, right", SHAPES)
def test_products_are_numpys(left, right, dtype):
    a, b = (10 * draw(left)).astype(dtype), (10 * draw(right, seed=1)).astype(dtype)
    expected = np.asarray(a @ b)
    rtol = {"float16": 1e-2, "float32": 1e-5}.get(dtype, 1e-12)
    for x, y in [(cytape.constant(a), cytape.constant(b)), (cytape.constant(a), b),
                 (a, cytape.Variable(b)), (cytape.constant(a), b.tolist() if b.size else b)]:
        if isinstance(y, list) and dtype in ("float16", "float32"):
            continue
        result = x @ y
        assert type(result) is cytape.Tensor
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(result.numpy(), expected, rtol, rtol)


@each(left=LAYOUTS, right=LAYOUTS)
@each("shapes", [((20, 30), (30, 10)), ((30,), (30, 10)), ((20, 30), (30,)), ((30,), (30,))])
def test_memory_layout_does_not_matter(shapes, left, right):
    a, b = draw(shapes[0]), draw(shapes[1], seed=1)
    tensors = [tensor_of(LAYOUTS[left](a)), tensor_of(LAYOUTS[right](b))]
    np.testing.assert_allclose((tensors[0] @ tensors[1]).numpy(), a @ b, rtol=1e-12)
    found = gradients(cnp.matmul, *tensors)
    expected = gradients(cnp.matmul, cytape.constant(a), cytape.constant(b), recorded=True)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-12)


@each("dtypes", [
    ("float64", "float64"), ("float32", "float32"), ("float16", "float16"), ("float32", "float64"),
    ("float64", "complex128"), ("complex64", "complex64")])
@each("left, right", SHAPES)
def test_the_loop_and_the_rules_give_the_same_gradients(left, right, dtypes):
    tensors = [cytape.constant(draw(left, dtypes[0])), cytape.constant(draw(right, dtypes[1], 1))]
    by_loop, by_rules = (gradients(cnp.matmul, *tensors, recorded=r) for r in (False, True))
    rtol = {"float16": 2e-2, "float32": 1e-5, "complex64": 1e-5}.get(dtypes[0], 1e-12)
    for ours, theirs, source in zip(by_loop, by_rules, tensors, strict=True):
        assert ours.spec is theirs.spec is source.spec
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol, rtol)


@each("position", [0, 1])
def test_only_one_operand_is_followed(position):
    a, b = draw((2, 3)), draw((3, 4), seed=1)
    operands = [a, b]
    x = operands[position] = cytape.constant(operands[position])
    tape, y = taped(lambda x: operands[0] @ operands[1], x)
    expected = np.ones((2, 4)) @ b.T if position == 0 else a.T @ np.ones((2, 4))
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected)


def test_an_ndarray_operand_is_taken_as_it_was_when_the_product_was_computed():
    a = draw((2, 3))
    before = a.copy()
    x = cytape.constant(draw((3, 4), seed=1))
    tape, y = taped(lambda x: a @ x, x)
    a[:] = 100
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), before.T @ np.ones((2, 4)))


def test_a_matrix_times_itself():
    x = cytape.constant(draw((3, 3)))
    (gradient,) = gradients(lambda x: x @ x, x)
    seed = draw((3, 3), seed=9)
    np.testing.assert_allclose(gradient.numpy(), seed @ x.numpy().T + x.numpy().T @ seed)
    (gradient,) = gradients(lambda x: x.T @ x, x)
    np.testing.assert_allclose(gradient.numpy(), x.numpy() @ (seed + seed.T))


@each("left, right", [
    ((3,), (2,)), ((2, 3), (2, 3)), ((2, 3), (4,)), ((), (3,)), ((3,), ()), ((2, 2, 3), (4, 3, 2))])
def test_shapes_that_do_not_fit_are_numpys_error(left, right):
    with pytest.raises(ValueError) as expected:
        np.ones(left) @ np.ones(right)
    with pytest.raises(ValueError) as found:
        cytape.constant(np.ones(left)) @ np.ones(right)
    assert str(found.value) == str(expected.value)


@each("how", ["warn", "raise", "ignore"])
@each("a, b", [
    ([[1e200, 1e200]], [[1e200], [1e200]]), ([[np.inf, 1.0]], [[0.0], [1.0]]),
    ([[np.nan, 1.0]], [[0.0], [1.0]]), ([[1.0, 2.0]], [[3.0], [4.0]])])
def test_trouble_is_reported_as_numpy_is_set_up_to(a, b, how):
    def complaints(x, y):
        with warnings.catch_warnings(record=True) as caught, np.errstate(over=how, invalid=how):
            warnings.simplefilter("always")
            try:
                x @ y
            except FloatingPointError as error:
                return str(error)
        return [str(warning.message) for warning in caught]

    a, b = np.array(a), np.array(b)
    assert complaints(cytape.constant(a), cytape.constant(b)) == complaints(a, b)


def test_there_is_one_op_for_the_operator_and_the_function():
    assert OPS["MatMul"].name == "MatMul"
    x = cytape.constant(np.eye(2))
    for product in (lambda: x @ x, lambda: np.matmul(x, x), lambda: cnp.matmul(x, x)):
        np.testing.assert_array_equal(product().numpy(), np.eye(2))
    assert type(cnp.matmul(np.eye(2), np.eye(2))) is np.ndarray


# -- outer products: of an inner axis of one element ---------------------------------------------

OUTER = [*OUTER_SHAPES, ((300, 1), (1, 40)), ((5000,), (5000, 1))]


@each("dtype", ["float64", "float32", "float16", "complex64"])
@each("left, right", OUTER)
def test_outer_products_of_every_layout(left, right, dtype):
    a, b = draw(left, dtype), draw(right, dtype, 1)
    expected = a @ b
    rtol = {"float16": 1e-2, "float32": 1e-4, "complex64": 1e-4}.get(dtype, 1e-12)
    for of_left, of_right in itertools.product(LAYOUTS.values(), repeat=2):
        found = (tensor_of(of_left(a)) @ tensor_of(of_right(b))).numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol, rtol)


@each(dtype=["float64", "float32", "float16", "complex64"], recorded=[False, True])
@each("left, right", VECTOR_SHAPES)
def test_gradients_meet_what_has_arrived(left, right, recorded, dtype):
    """A product added to a gradient that is there, and one that is there when others come."""
    x, y = cytape.constant(draw(left, dtype)), cytape.constant(draw(right, dtype, 1))

    def several(order):
        def function(x, y):
            terms = [lambda: cnp.sum(x @ y * 2), lambda: cnp.sum(x * x) + cnp.sum(y * y),
                     lambda: cnp.sum(cnp.sin(x @ y))]
            return sum(terms[i]() for i in order)
        return function

    rtol = {"float16": 5e-2, "float32": 1e-4, "complex64": 1e-4}.get(dtype, 1e-12)
    g = 2 + np.cos(x.numpy() @ y.numpy()).conj()
    a, b = np.atleast_2d(x.numpy()), as_columns(y.numpy())
    g = g.reshape(len(a), b.shape[1])
    by_x = (g @ b.T.conj()).reshape(left) + 2 * x.numpy().conj()
    by_y = (a.T.conj() @ g).reshape(right) + 2 * y.numpy().conj()
    for order in [(0, 1, 2), (1, 0, 2), (2, 0, 1)]:
        with watching(x, y, persistent=True) as tape:
            z = several(order)(x, y)
            if recorded:
                found = tape.gradient(z, [x, y])
        if not recorded:
            found = tape.gradient(z, [x, y])
        for ours, theirs, source in zip(found, (by_x, by_y), (x, y), strict=True):
            assert ours.spec is source.spec
            np.testing.assert_allclose(ours.numpy(), theirs, rtol, rtol)


@each("dtype", ["float64", "float32"])
def test_a_gradient_that_is_handed_out_is_not_added_to(dtype):
    x, w = cytape.constant(draw((50, 54), dtype)), cytape.constant(draw((54,), dtype, 1))
    seed = draw((50, 54), dtype, 2)
    kept = seed.copy()
    with watching(x) as tape:
        z = [x @ w, x + 0.0]  # the sum's gradient is what the user gave
    gradient = tape.gradient(z, x, output_gradients=[None, seed])
    np.testing.assert_allclose(gradient.numpy(), kept + np.ones((50, 1)) * w.numpy(), 1e-5)
    np.testing.assert_array_equal(seed, kept)


def test_one_tensor_as_both_operands_of_an_outer_product():
    x = cytape.constant([[3.0]])
    (gradient,) = gradients(lambda x: x @ x + x * x, x)
    np.testing.assert_allclose(gradient.numpy(), draw((1, 1), seed=9) * 12)
    y = cytape.constant([3.0])
    (gradient,) = gradients(lambda y: y @ y + cnp.sum(y * y), y)
    np.testing.assert_allclose(gradient.numpy(), draw((), seed=9).reshape(1) * 12)


@each("left, right", VECTOR_SHAPES)
def test_a_gradient_that_a_sum_repeats(left, right):
    a, b = draw(left), draw(right, seed=1)
    x, y = cytape.constant(a), cytape.constant(b)
    tape, z = taped(lambda x, y: cnp.sum(x @ y), x, y)
    by_x, by_y = tape.gradient(z, [x, y])
    a, b = np.atleast_2d(a), as_columns(b)
    ones = np.ones((len(a), b.shape[1]))
    np.testing.assert_allclose(by_x.numpy(), (ones @ b.T).reshape(left), 1e-12, 1e-12)
    np.testing.assert_allclose(by_y.numpy(), (a.T @ ones).reshape(right), 1e-12, 1e-12)


@each("how", ["warn", "raise"])
def test_an_outer_product_that_overflows_is_reported(how):
    a, b = cytape.constant([[1e200], [1.0]]), cytape.constant([[1e200, 1.0]])
    with np.errstate(over=how), pytest.raises(
            FloatingPointError if how == "raise" else RuntimeWarning, match="overflow"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            a @ b


@each("dtype", ["float32", "float64"])
def test_zeros_of_outer_products_have_numpys_signs(dtype):
    x, y = np.array([[0.0], [-2.0]], dtype), np.array([[-2.0, 0.0, -0.0]], dtype)
    result = (cytape.constant(x) @ cytape.constant(y)).numpy()
    np.testing.assert_array_equal(np.signbit(result), np.signbit(x @ y))


def test_the_gradient_of_a_product_of_vectors_shows_the_other_one():
    x, y = map(cytape.constant, np.random.default_rng(0).normal(size=(2, 5000)))
    with watching(x, y, persistent=True) as tape:
        product, square = x @ y, x @ x
    for found, other in zip(tape.gradient(product, [x, y]), (y, x), strict=True):
        np.testing.assert_array_equal(found, other)
        assert np.shares_memory(found.numpy(), other.numpy()) and found.id != other.id
    np.testing.assert_array_equal(tape.gradient(square, x), 2 * x.numpy())
    (scaled,) = tape.gradient(product, [x], output_gradients=2.0)
    np.testing.assert_array_equal(scaled, 2 * y.numpy())


def test_tangents_of_gradients_are_not_added_to_what_is_shown():
    x, y, tangent = map(cytape.constant, np.random.default_rng(0).normal(size=(3, 5000)))
    scale, before = cytape.constant(1.0), y.numpy().copy()
    ones = cytape.constant(1.0)
    with cytape.ForwardAccumulator([scale, y], [ones, tangent]) as accumulator:
        found = gradient(lambda x: (x @ y) * scale, x)
    np.testing.assert_array_equal(found, before)
    np.testing.assert_allclose(accumulator.jvp(found), before + tangent.numpy(), 1e-14)
    np.testing.assert_array_equal(y, before)
