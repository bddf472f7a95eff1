"""The matrix product by NumPy's own loop: every layout, rank and dtype, there and back."""

import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.engine.declare import OPS
from cytape.tensor.tensor import tensor_of
from cytape.testing import check_grads

SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((1, 3), (3, 1)),
    ((1, 1), (1, 1)), ((50, 40), (40, 30)), ((1,), (1,)), ((0, 3), (3, 4)), ((2, 0), (0, 4)),
    ((0,), (0,)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)),
]
LAYOUTS = {
    "contiguous": lambda x: x,
    "fortran": np.asfortranarray,
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every other column": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: np.flip(np.flip(x).copy()),
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(
        x.shape),
}


def draw(shape, dtype="float64", seed=0):
    values, imaginary = np.random.default_rng(seed).normal(size=(2, *shape))
    return (values + 1j * imaginary if np.dtype(dtype).kind == "c" else values).astype(dtype)


def gradients(function, *tensors, recorded=False):
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(tensors)
        y = function(*tensors)
        seed = draw(y.shape, y.dtype, 9)
        if recorded:
            return tape.gradient(y, tensors, output_gradients=seed)
    return tape.gradient(y, tensors, output_gradients=seed)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128", "int64"])
@pytest.mark.parametrize("left, right", SHAPES)
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


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("shapes", [((20, 30), (30, 10)), ((30,), (30, 10)), ((20, 30), (30,)),
                                    ((30,), (30,))])
def test_memory_layout_does_not_matter(shapes, left, right):
    a, b = draw(shapes[0]), draw(shapes[1], seed=1)
    tensors = [tensor_of(LAYOUTS[left](a)), tensor_of(LAYOUTS[right](b))]
    np.testing.assert_allclose((tensors[0] @ tensors[1]).numpy(), a @ b, rtol=1e-12)
    found = gradients(cnp.matmul, *tensors)
    expected = gradients(cnp.matmul, cytape.constant(a), cytape.constant(b), recorded=True)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtypes", [
    ("float64", "float64"), ("float32", "float32"), ("float16", "float16"), ("float32", "float64"),
    ("float64", "complex128"), ("complex64", "complex64"),
])
@pytest.mark.parametrize("left, right", SHAPES)
def test_the_loop_and_the_rules_give_the_same_gradients(left, right, dtypes):
    tensors = [cytape.constant(draw(left, dtypes[0])), cytape.constant(draw(right, dtypes[1], 1))]
    by_loop, by_rules = (gradients(cnp.matmul, *tensors, recorded=r) for r in (False, True))
    rtol = {"float16": 2e-2, "float32": 1e-5, "complex64": 1e-5}.get(dtypes[0], 1e-12)
    for ours, theirs, source in zip(by_loop, by_rules, tensors, strict=True):
        assert ours.spec is theirs.spec is source.spec
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol, rtol)


@pytest.mark.parametrize("left, right", SHAPES)
def test_derivatives(left, right):
    check_grads(cnp.matmul, [draw(left), draw(right, seed=1)], order=2)


@pytest.mark.parametrize("position", [0, 1])
def test_only_one_operand_is_followed(position):
    a, b = draw((2, 3)), draw((3, 4), seed=1)
    operands = [a, b]
    x = operands[position] = cytape.constant(operands[position])
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = operands[0] @ operands[1]
    expected = np.ones((2, 4)) @ b.T if position == 0 else a.T @ np.ones((2, 4))
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected)


def test_an_ndarray_operand_is_taken_as_it_was_when_the_product_was_computed():
    a = draw((2, 3))
    before = a.copy()
    x = cytape.constant(draw((3, 4), seed=1))
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = a @ x
    a[:] = 100
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), before.T @ np.ones((2, 4)))


def test_a_matrix_times_itself():
    x = cytape.constant(draw((3, 3)))
    (gradient,) = gradients(lambda x: x @ x, x)
    seed = draw((3, 3), seed=9)
    np.testing.assert_allclose(gradient.numpy(), seed @ x.numpy().T + x.numpy().T @ seed)
    (gradient,) = gradients(lambda x: x.T @ x, x)
    np.testing.assert_allclose(gradient.numpy(), x.numpy() @ (seed + seed.T))


@pytest.mark.parametrize("left, right", [
    ((3,), (2,)), ((2, 3), (2, 3)), ((2, 3), (4,)), ((), (3,)), ((3,), ()), ((2, 2, 3), (4, 3, 2)),
])
def test_shapes_that_do_not_fit_are_numpys_error(left, right):
    with pytest.raises(ValueError) as expected:
        np.ones(left) @ np.ones(right)
    with pytest.raises(ValueError) as found:
        cytape.constant(np.ones(left)) @ np.ones(right)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("how", ["warn", "raise", "ignore"])
@pytest.mark.parametrize("a, b", [
    ([[1e200, 1e200]], [[1e200], [1e200]]), ([[np.inf, 1.0]], [[0.0], [1.0]]),
    ([[np.nan, 1.0]], [[0.0], [1.0]]), ([[1.0, 2.0]], [[3.0], [4.0]]),
])
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
