"""Transformed functions: as objects, which arguments they take, what they say of wrong ones."""

import dataclasses
import functools
import pickle
from collections import namedtuple

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp


def cube(x):
    """A function that can be pickled."""
    return np.sum(x**3)


def test_argnums():
    def f(x, y, *, power=1):
        return (x * y**2) ** power

    assert cytape.grad(f)(3.0, 2.0) == 4.0
    assert cytape.grad(f, 1)(3.0, 2.0) == 12.0
    assert cytape.grad(f, -1)(3.0, 2.0) == 12.0
    assert cytape.grad(f, (1, 0))(3.0, 2.0) == (12.0, 4.0)
    assert cytape.grad(f, [0])(3.0, 2.0) == (4.0,)
    assert cytape.grad(f, ())(3.0, 2.0) == ()
    assert cytape.grad(f, np.int64(1))(3.0, 2.0, power=2) == 2 * 12.0 * 12.0


@pytest.mark.parametrize("argnums", [2, -3, (0, 0), (0, -2), (0, 5)])
def test_argnums_that_do_not_fit_the_call(argnums):
    with pytest.raises(ValueError, match="different positions among the 2"):
        cytape.grad(lambda x, y: x * y, argnums)(1.0, 2.0)


@pytest.mark.parametrize("argnums", [2, (0, 2)])
def test_argnums_of_what_is_left_to_its_default(argnums):
    def f(a, b, c=1.0, *, d=2.0):
        return a * b * c * d

    with pytest.raises(ValueError, match="counted from 0: pass c as well, by position"):
        cytape.grad(f, argnums)(1.0, 2.0)
    with pytest.raises(ValueError, match="among the 3 positional arguments of f$"):
        cytape.grad(f, 3)(1.0, 2.0, 3.0)  # d cannot be passed by position
    with pytest.raises(ValueError, match="among the 1 positional arguments of max$"):
        cytape.grad(max, 1)(1.0)  # which does not tell its parameters


@pytest.mark.parametrize("argnums", [None, 1.0, "x", ("x",)])
def test_argnums_of_the_wrong_type(argnums):
    with pytest.raises(TypeError, match="argnums"):
        cytape.grad(cube, argnums)


def test_structures_as_arguments():
    Layer = namedtuple("Layer", "w b")

    def loss(parameters, x):
        for layer in parameters["layers"]:
            x = np.tanh(layer.w @ x + layer.b)
        return np.sum(x) * parameters["scale"]

    rng = np.random.default_rng(0)
    layers = [Layer(rng.normal(size=(2, 2)), rng.normal(size=2)) for _ in range(2)]
    parameters = {"layers": layers, "scale": 2.0}
    value, gradient = cytape.value_and_grad(loss)(parameters, np.ones(2))
    assert list(gradient) == ["layers", "scale"]
    assert isinstance(gradient["layers"][1], Layer)
    assert gradient["layers"][0].w.shape == (2, 2)
    assert gradient["scale"] == pytest.approx(value / 2)
    both = cytape.grad(loss, (0, 1))(parameters, np.ones(2))
    np.testing.assert_array_equal(both[0]["layers"][0].b, gradient["layers"][0].b)
    assert cytape.grad(lambda xs: xs[0] * xs[1])([2.0, 3.0]) == [3.0, 2.0]


@pytest.mark.parametrize(
    "argument", [3, True, np.arange(3), [1.0, 2], {"a": np.ones(2), "n": 3}, "text", cnp.array(3)])
def test_integers_and_the_like_have_no_gradient(argument):
    def f(x):
        return 1.0

    with pytest.raises(TypeError, match="argument 0.* of f.*has no gradient"):
        cytape.grad(f)(argument)


@pytest.mark.parametrize("argument", [None, object(), np.array([None]), [1.0, None]])
def test_what_is_no_number_has_no_gradient(argument):
    def f(x, y):
        return 1.0

    with pytest.raises(TypeError, match="argument 1.* of f cannot be differentiated"):
        cytape.grad(f, 1)(1.0, argument)


@dataclasses.dataclass
class Layer:
    """With what is no parameter."""

    w: np.ndarray
    n: object


@pytest.mark.parametrize("member", [3, "text", None, True])
@pytest.mark.parametrize("make", [Layer, lambda w, n: {"w": w, "n": n}, lambda w, n: [w, n]])
def test_members_that_are_no_parameters_go_elsewhere(make, member):
    structure = make(np.ones(2), member)
    with pytest.raises(TypeError, match="as another argument.*static") as caught:
        cytape.grad(lambda p: 1.0)(structure)
    assert ("3.0, not 3" in str(caught.value)) == (member == 3)
    assert "register_structure, or" not in str(caught.value)  # None does not consist of anything


@pytest.mark.parametrize("numbers", [[1, 2], (1.0, 2)])
def test_a_list_of_integers_is_told_of_arrays(numbers):
    with pytest.raises(TypeError, match=r"of as many scalars.*pass numpy.array\(..., float\)"):
        cytape.grad(lambda x: np.sum(x**2))(numbers)
    assert cytape.grad(lambda x: np.sum(x**2))(np.array(numbers, float)).tolist() == [2.0, 4.0]


def test_other_arguments_are_passed_as_they_are_but_for_copies_of_arrays():
    seen = []

    def f(x, *rest, **options):
        seen.append((rest, options))
        return x * x

    array = np.arange(3)
    cytape.grad(f)(1.0, array, None, text="text")
    (rest, options) = seen[0]
    assert rest[0] is not array and rest[0].tolist() == [0, 1, 2]
    assert rest[1] is None
    assert options == {"text": "text"}


def test_the_same_tensor_for_two_parameters():
    x = cytape.constant(3.0)
    assert [float(g) for g in cytape.grad(lambda x, y: x * y, (0, 1))(x, x)] == [3.0, 3.0]
    assert float(cytape.grad(lambda y: y * x)(x)) == 3.0  # the closed-over one is a constant
    v = cytape.Variable(3.0)
    assert [float(g) for g in cytape.grad(lambda x, y: x * y, (0, 1))(v, v)] == [3.0, 3.0]
    assert float(cytape.grad(lambda y: y * v)(v)) == 3.0


@pytest.mark.parametrize(("f", "message"), [
    (lambda x: x * np.ones(2), r"scalar, got shape \(2,\): sum it"),
    (lambda x: x * np.ones((0,)), r"scalar, got shape \(0,\)"),
    (lambda x: (x, x), "one scalar, got a tuple: use vjp, or has_aux=True"),
    (lambda x: [x], "one scalar, got a list"),
    (lambda x: x > 0, "dtype bool, which has no gradient"),
    (lambda x: 3, "dtype int64, which has no gradient"),
    (lambda x: object(), "must return arrays or tensors"),
])
def test_results_that_grad_cannot_take(f, message):
    with pytest.raises(TypeError, match=message):
        cytape.grad(f)(1.0)


def test_returning_nothing():
    def f(x):
        x * x

    with pytest.raises(ValueError, match="f returned None: was the return statement forgotten"):
        cytape.grad(f)(1.0)


@pytest.mark.parametrize("transformed", [
    cytape.grad(cube),
    cytape.grad(cytape.grad(functools.partial(np.power, 2.0))),
    cytape.value_and_grad(cube, argnums=0), cytape.gradients_function(cube),
])
def test_transformed_functions_can_be_pickled(transformed):
    again = pickle.loads(pickle.dumps(transformed))
    np.testing.assert_array_equal(list(np.ravel(again(1.5))), list(np.ravel(transformed(1.5))))


def test_transformed_functions_look_like_the_function():
    gradient = cytape.grad(cube)
    assert gradient.__name__ == "cube"
    assert gradient.__doc__ == "A function that can be pickled."
    assert gradient.__wrapped__ is cube
    assert cytape.grad(functools.partial(cube))(2.0) == 12.0


def test_only_functions_can_be_transformed():
    with pytest.raises(TypeError, match="only functions can be transformed, got float64"):
        cytape.grad(cube(2.0))


def test_a_transformed_method():
    class Model:
        scale = 3.0

        @functools.partial(cytape.grad, argnums=1)
        def slope(self, x):
            return x * x * self.scale

    assert Model().slope(2.0) == 12.0


class _Parameters:
    def __init__(self, w):
        self.w = w


@pytest.mark.parametrize("argument, place, what", [
    ({"w": np.ones(2), "n": 3}, r"0\['n'\] of f", "int64"),
    ({"w": [1.0, (1.0, np.ones(2, int))], "a": 3.0}, r"0\['w'\]\[1\]\[1\] of f", "int64"),
    ([1.0, _Parameters(1.0)], r"0\[1\] of f", "class _Parameters.* in a dict"),
    (_Parameters(1.0), "0 of f", "class _Parameters.* in a dict"),
    (3, "0 of f", "int64"),
])
def test_an_error_says_which_part_of_an_argument_has_no_derivative(argument, place, what):
    def f(x):
        return 1.0

    with pytest.raises(TypeError, match=f"argument {place}.*{what}"):
        cytape.grad(f)(argument)


def test_what_is_passed_by_name_is_to_be_passed_by_position():
    for transform in cytape.grad, cytape.jacfwd:
        with pytest.raises(ValueError, match=r"by position, not by name \(x\)"):
            transform(lambda x: x**2)(x=1.0)


@pytest.mark.parametrize("transform", [cytape.grad, cytape.value_and_grad, cytape.jacobian])
def test_calls_without_arguments_are_told_so(transform):
    with pytest.raises(ValueError, match="it was called without any"):
        transform(lambda x: x)()
