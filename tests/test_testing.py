"""The gradient checks must pass what is right and refuse what is wrong."""

import dataclasses

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.declare import structural
from cytape.testing import check_grads, numerical_grad, numerical_jvp
from tests.cases import each


def with_gradient(gradient):
    """Make sin with the given function `(x, dy)` for a gradient."""

    @cytape.custom_gradient
    def sin(x):
        return cnp.sin(x), lambda dy: gradient(x, dy)

    return sin


@each("dtype", ["float64", "float32", "float16", "complex128", "complex64"])
def test_right_gradients_pass(dtype):
    x = np.array([[0.5, -1.0], [1.5, 0.2]], dtype) * (1 + 0.3j if "complex" in dtype else 1)
    check_grads(lambda x, y: cnp.tanh(x) * y, [x.astype(dtype), np.array([0.5, 2.0], dtype)])


def test_right_gradients_pass_to_third_order():
    check_grads(lambda x: cnp.exp(cnp.sin(x)), [np.array([0.5, 2.0])], order=3)


def test_structures_of_outputs():
    check_grads(lambda x, y: {"a": x * y, "b": [cnp.sin(x), y]}, [1.5, np.ones(3)])


def test_integer_arguments_are_held():
    check_grads(lambda x, n: x**n, [np.array([0.5, 2.0]), np.array([2, 3])])


@each(
    "gradient",
    [
        lambda x, dy: dy * cnp.cos(x) * 1.001,
        lambda x, dy: -dy * cnp.cos(x),
        lambda x, dy: dy * cnp.cos(x) + 1e-3,
        lambda x, dy: dy * np.nan,
    ],
)
def test_wrong_gradient_is_refused(gradient):
    with pytest.raises(AssertionError, match="mode, argument 0: the derivative in a random"):
        check_grads(with_gradient(gradient), [np.array([0.5, 2.0])])


def test_all_modes_that_a_wrong_rule_breaks_are_named():
    """Forward mode transposes the rule of `custom_gradient`."""
    wrong = with_gradient(lambda x, dy: 2 * dy)
    with pytest.raises(AssertionError, match=(
            r"^forward mode, .*\nreverse mode, argument 0: .*\nDifferences .*\n.*stored before.$")):
        check_grads(wrong, [np.array([0.5, 2.0])])


def test_directions_are_not_an_argument_drawn_from_a_usual_seed():
    """Along x itself a derivative may be right by chance: that of x / |x| is 0."""
    @cytape.custom_gradient
    def direction(x):
        return x / np.sqrt(np.sum(x * x)), lambda g: 0 * g

    for seed in range(10):
        with pytest.raises(AssertionError, match="argument 0"):
            check_grads(direction, [np.random.default_rng(seed).normal(size=3)], order=1)


def test_wrong_second_derivative_is_refused():
    wrong = with_gradient(lambda x, dy: dy * cnp.cos(cytape.stop_gradient(x)))
    check_grads(wrong, [0.5], order=1)
    with pytest.raises(AssertionError, match=" over [a-z]+ mode, argument 0"):
        check_grads(wrong, [0.5])


def declared_backwards(name, factor):
    """Declare an op that turns an array round, with a transpose that also multiplies."""
    return structural(
        name, lambda x: x[::-1], lambda results, operands: [(results[0], operands[0][::-1])],
        transpose=lambda op, g: factor * g[::-1], shape_rule=lambda x: x)


def test_a_wrong_transpose_is_refused_at_first_order():
    """The declared transpose is called only if the gradient itself is recorded."""
    right = declared_backwards("DeclaredBackwards", 1.0)
    check_grads(right, [np.array([0.5, 2.0, 1.0])], order=1)
    wrong = declared_backwards("DeclaredBackwardsTwice", 2.0)
    assert cytape.grad(lambda x: wrong(x)[0])(np.ones(2)).tolist() == [0.0, 1.0]
    with pytest.raises(AssertionError, match="reverse mode, .*: where the gradient is recorded"):
        check_grads(wrong, [np.array([0.5, 2.0, 1.0])], order=1)


def test_the_argument_at_fault_is_named():
    wrong = with_gradient(lambda x, dy: dy)
    with pytest.raises(AssertionError, match="argument 1"):
        check_grads(lambda x, y: x * wrong(y), [0.5, 0.7])


def test_wrong_complex_convention_is_refused():
    x = np.array([0.3 + 0.8j])
    check_grads(with_gradient(lambda x, dy: dy * cnp.conj(cnp.cos(x))), [x], order=1)
    with pytest.raises(AssertionError, match="^[a-z]+ mode, argument 0"):
        check_grads(with_gradient(lambda x, dy: dy * cnp.cos(x)), [x], order=1)


def test_tolerances():
    off = with_gradient(lambda x, dy: dy * cnp.cos(x) * 1.001)
    check_grads(off, [0.5], order=1, rtol=1e-2)
    check_grads(off, [0.5], order=1, rtol=0, atol=1e-2)


def test_bad_calls():
    with pytest.raises(TypeError, match=r"list of the arguments of f, got ndarray: .*\[x\]"):
        check_grads(np.sin, np.ones(2))
    with pytest.raises(ValueError, match="modes"):
        check_grads(cnp.sin, [1.0], modes=["backward"])
    with pytest.raises(ValueError, match="none of the arguments"):
        check_grads(cnp.sin, [1])
    with pytest.raises(ValueError, match="shorter"):
        numerical_jvp(np.add, [1.0, 2.0], [1.0])


def test_numerical_jvp_takes_tensors_and_structures():
    x = cytape.constant([1.0, 2.0])
    result = numerical_jvp(lambda x, y: (cnp.sin(x), {"y": y}), [x, 3.0], [x, None])
    np.testing.assert_allclose(result[0], [1, 2] * np.cos([1, 2]), rtol=1e-9)
    assert result[1]["y"] == 0


def test_numerical_grad_of_complex_argument():
    z = np.array([1 + 2j, -0.5j])
    np.testing.assert_allclose(
        numerical_grad(lambda z: np.sum(np.abs(z) ** 2), z), 2 * z, rtol=1e-9
    )
    expected = cytape.grad(lambda z: cnp.sum(cnp.real(cnp.exp(z))))(z)
    np.testing.assert_allclose(
        numerical_grad(lambda z: np.exp(z).real.sum(), z), expected, rtol=1e-9
    )


def test_low_precision_is_checked_against_double_precision():
    x = np.array([0.5, 2.0], np.float16)
    assert numerical_jvp(np.sin, [x], [np.ones(2)]).dtype == np.float64


@dataclasses.dataclass
class Layer:
    w: object
    b: object
    name: str = "layer"


def affine(layer, x):
    assert layer.name == "layer"
    return {"y": (cnp.tanh(layer.w @ x + layer.b), layer.b)}


@each("args, f", [
    ([{"w": np.ones((2, 3)), "b": [0.5]}, np.ones(3)], lambda p, x: p["w"] @ x + p["b"][0]),
    ([Layer(np.ones((2, 3)), np.zeros(2)), np.ones(3)], affine),
    ([[np.ones(2), np.array([1, 2])]], lambda xs: xs[0] ** 3 * xs[1]),
    ([(np.ones(2), cytape.constant([2.0]))], lambda xs: cnp.sum(xs[0] * xs[1] ** 2)),
    ([{}, 0.5, None, "name"], lambda nothing, x, none, name: cnp.sin(x)),
    ([[[1.0, 2.0], [3.0, 4.0]], (0.5, 1)], lambda m, v: m @ v),
    ([[[1.0, 2.0], [3.0]]], lambda rows: rows[0][1] ** 2 * rows[1][0]),
    ([[1.0, [2.0, (3.0, np.ones(2))]], 2.0], lambda x, y: x[0] * x[1][0] * x[1][1][1] * y),
])  # fmt: skip
def test_arguments_may_be_structures(args, f):
    check_grads(f, args)


def test_the_leaf_at_fault_is_named():
    wrong = with_gradient(lambda x, dy: dy)
    p = {"a": 0.5, "b": [0.2, np.array([0.7])]}
    with pytest.raises(AssertionError, match=r"mode, argument 1\['b'\]\[1\]: "):
        check_grads(lambda x, p: x * p["a"] * p["b"][0] * wrong(p["b"][1]), [1.0, p])
    with pytest.raises(ValueError, match="none of the arguments"):
        check_grads(lambda p: p["a"], [{"a": 1, "b": "x"}])


def test_a_function_may_fill_one_buffer():
    buffer = np.zeros(())

    def squared(x):
        buffer[...] = np.sum(x**2)
        return buffer

    np.testing.assert_allclose(numerical_grad(squared, np.array([1.0, -2.0])), [2, -4])
