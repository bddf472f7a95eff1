"""The function transforms of TensorFlow's eager mode."""

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError, UnconnectedGradientWarning
from tests.cases import each


def floats(gradients):
    return [float(gradient) for gradient in gradients]


def product(x, y):
    return x * y * y


@pytest.mark.filterwarnings("ignore:the gradient is None")
@each(("params", "expected"), [
    (None, [9.0, 12.0]), ([0], [9.0]), ([1, 0], [12.0, 9.0]), (["x"], [9.0]),
    (["y", "x"], [12.0, 9.0]), ([0, 0], [9.0, 9.0]), ([], []),
])
def test_D_2_25_gradients_of_all_or_of_chosen_parameters(params, expected):
    assert floats(cytape.gradients_function(product, params)(2.0, 3.0)) == expected
    value, gradients = cytape.val_and_grad_function(product, params)(2.0, 3.0)
    assert float(value) == 18.0
    assert floats(gradients) == expected


@each("transform", [cytape.gradients_function, cytape.val_and_grad_function])
def test_D_2_25_params_that_make_no_sense(transform):
    for params in ([0, "y"], [1.0]):
        with pytest.raises(ValueError, match="all positions or all names"):
            transform(product, params)
    with pytest.raises(ValueError, match=r"product has no parameters \['z'\]"):
        transform(product, ["z"])(2.0, 3.0)


def test_D_2_25_outputs_are_summed_or_weighted_by_dy():
    f = lambda x: (x, 2 * x)  # noqa: E731
    assert floats(cytape.gradients_function(f)(5.0)) == [3.0]
    assert floats(cytape.gradients_function(f)(5.0, dy=(10.0, 1.0))) == [12.0]
    value, gradients = cytape.val_and_grad_function(f)(5.0, dy=[1.0, None])
    assert floats(value) == [5.0, 10.0]
    assert floats(gradients) == [3.0]


@each("transform", [cytape.gradients_function, cytape.val_and_grad_function])
def test_D_2_25_no_other_keyword(transform):
    with pytest.raises(ValueError, match=r"\['y'\]"):
        transform(product)(2.0, y=3.0)
    with pytest.raises(ValueError, match=r"\['z'\]"):
        transform(product)(2.0, 3.0, dy=1.0, z=2)


@each("x", [cytape.constant(1.0), 1.0, [1.0], np.ones((1, 1))])
def test_D_2_26_the_same_object_for_two_parameters_counts_as_two(x):
    gradients = cytape.gradients_function(lambda x, y: np.sum(x * y * y))(x, x)
    assert [g.item() for g in gradients] == [1.0, 2.0]
    assert [g.shape for g in gradients] == [np.shape(x)] * 2


def test_D_2_26_the_same_variable_for_two_parameters_counts_as_two():
    v = cytape.Variable(1.0)
    assert floats(cytape.gradients_function(lambda x, y: x * y)(v, v)) == [1.0, 1.0]
    with cytape.GradientTape() as tape:
        first, second = cytape.gradients_function(lambda x, y: x * y**3)(v, v)
        total = first + second
    assert float(tape.gradient(total, v)) == 3.0 + 3.0 + 6.0


def test_D_2_27_make_vjp():
    value, vjp = cytape.make_vjp(lambda x: x * x)(3.0)
    assert float(value) == 9.0
    assert floats(vjp()) == [6.0]
    assert floats(vjp(2.0)) == [12.0]
    assert floats(vjp(dy=cytape.constant(2.0))) == [12.0]


def test_D_2_27_make_vjp_once_only():
    value, vjp = cytape.make_vjp(product, params=["y"], persistent=False)(2.0, 3.0)
    assert floats(vjp()) == [12.0]
    with pytest.raises(RuntimeError, match="has served"):
        vjp()


def test_D_2_28_implicit_grad():
    w = cytape.Variable(3.0, name="w")
    b = cytape.Variable([1.0, 1.0], name="b")
    fixed = cytape.Variable(2.0, trainable=False)

    def loss(x):
        return np.sum(b * x) * w * fixed

    pairs = cytape.implicit_grad(loss)(5.0)
    assert [variable is v for (_, variable), v in zip(pairs, (w, b), strict=True)] == [True, True]
    assert float(pairs[0][0]) == 20.0
    assert pairs[1][0].numpy().tolist() == [30.0, 30.0]
    value, pairs = cytape.implicit_val_and_grad(loss)(x=5.0)
    assert float(value) == 60.0
    assert float(pairs[0][0]) == 20.0


@each("transform", [cytape.implicit_grad, cytape.implicit_val_and_grad])
def test_D_2_28_functions_without_variables_or_result(transform):
    w = cytape.Variable(3.0)

    def forgetful():
        w * w

    with pytest.raises(ValueError, match="no trainable variables"):
        transform(lambda x: x * x)(cytape.constant(2.0))
    with pytest.raises(ValueError, match="forgetful returned None: was the return .* forgotten"):
        transform(forgetful)()
    with pytest.raises(ValueError, match="returned None"):
        cytape.gradients_function(lambda x: None)(2.0)


@each("transform", [
    cytape.gradients_function, cytape.val_and_grad_function, cytape.make_vjp,
    cytape.implicit_grad, cytape.implicit_val_and_grad,
])
def test_D_2_29_an_error_leaves_no_tape_behind(transform):
    w = cytape.Variable(3.0)
    failures = [ArithmeticError("inside")]

    def f(x):
        y = w * x
        if failures:
            raise failures.pop()
        return y

    with cytape.GradientTape() as tape:
        with pytest.raises(ArithmeticError, match="inside"):
            transform(f)(2.0)
        result = transform(f)(2.0)
        y = w * w
    assert result is not None
    assert float(tape.gradient(y, w)) == 6.0


def test_sparse_gradients_stay_sparse():
    table = cytape.constant(np.ones((3, 2)))
    (gradient,) = cytape.gradients_function(lambda t: np.sum(cytape.gather(t, [0, 2])))(table)
    assert isinstance(gradient, cytape.IndexedSlices)


def test_integers_have_no_gradient():
    with pytest.warns(UserWarning, match="int64"):
        gradients = cytape.gradients_function(lambda x, n: x * n)(2.0, 3)
    assert float(gradients[0]) == 3.0
    assert gradients[1] is None


def test_higher_order():
    def derivative(f):
        return lambda x: cytape.gradients_function(f)(x)[0]

    assert float(derivative(derivative(lambda x: x**4))(2.0)) == 48.0


@each("transform", [
    cytape.gradients_function, lambda f: lambda *args: cytape.val_and_grad_function(f)(*args)[1],
    lambda f: lambda *args: cytape.make_vjp(f)(*args)[1]()])
def test_a_gradient_that_is_none_draws_a_warning(transform):
    with pytest.warns(UnconnectedGradientWarning, match="argument 0 by"):
        assert transform(lambda x: 3.0)(1.0) == [None]
    with pytest.warns(UnconnectedGradientWarning, match="argument 0 and 2 by"):
        found = transform(lambda x, y, z: y * 2.0)(1.0, 1.0, 1.0)
    assert (found[0], float(found[1]), found[2]) == (None, 2.0, None)


@each("transform", [cytape.gradients_function, cytape.val_and_grad_function])
def test_a_value_that_left_its_tensor_is_an_error_as_for_grad(transform):
    with pytest.raises(DetachedError, match="argument 0, because a value left"):
        transform(lambda x: x.numpy() * 2.0)(3.0)
    with pytest.warns(UnconnectedGradientWarning, match="perhaps because a value left"):
        found = transform(lambda x, y: x.numpy() * y)(3.0, 2.0)
    gradients = found if isinstance(found, list) else found[1]
    assert (gradients[0], float(gradients[1])) == (None, 3.0)
