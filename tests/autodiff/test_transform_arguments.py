"""Transformed functions: as objects, which arguments they take, what they say of wrong ones."""

import dataclasses
import functools
import inspect
import pickle

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.tensor import nest
from cytape.tensor.tensor import live_tensors
from tests.cases import each


def cube(x):
    """A function that can be pickled."""
    return np.sum(x**3)


def with_vector(transform):
    """Call a function of an argument and a vector with a number and 1."""
    return lambda f: lambda x: transform(f)(x, np.ones(np.shape(x)))


BY_ARGNUMS = [cytape.grad, cytape.value_and_grad, cytape.jacrev, cytape.jacfwd, cytape.hessian,
              cytape.elementwise_grad]
TRANSFORMS = [*BY_ARGNUMS, cytape.batch_jacobian, cytape.hessian_diagonal,
              cytape.hessian_vector_product, cytape.make_ggnvp]
# Functions of one number.
CALLS = [*BY_ARGNUMS, cytape.hessian_diagonal, with_vector(cytape.hessian_vector_product),
         lambda f: lambda x: cytape.make_ggnvp(f)(x)(1.0), lambda f: lambda x: cytape.vjp(f, x),
         lambda f: lambda x: cytape.jvp(f, (x,), (1.0,))]


@each("transform", [cytape.grad, cytape.jacrev, cytape.jacfwd, cytape.elementwise_grad])
def test_argnums(transform):
    def f(x, y, *, power=1):
        return (x * y**2) ** power

    for argnums, expected in ((0, 4.0), (1, 12.0), (-1, 12.0), ((1, 0), (12.0, 4.0)),
                              ([0], (4.0,)), ([-2], (4.0,)), ((), ())):
        assert transform(f, argnums)(3.0, 2.0) == expected
    assert transform(f)(3.0, 2.0) == 4.0
    assert transform(f, np.int64(1))(3.0, 2.0, power=2) == 2 * 12.0 * 12.0
    assert transform(lambda x, n: x**n, 0)(2.0, 3) == 12.0  # arguments that are held may be integer


@each(transform=BY_ARGNUMS, argnums=[2, -3, (0, 0), (0, -2), (0, 5)])
def test_argnums_that_do_not_fit_the_call(argnums, transform):
    with pytest.raises(ValueError, match="different positions among the 2"):
        transform(lambda x, y: x * y, argnums)(1.0, 2.0)


@each("argnums", [2, (0, 2)])
def test_argnums_of_what_is_left_to_its_default(argnums):
    def f(a, b, c=1.0, *, d=2.0):
        return a * b * c * d

    with pytest.raises(ValueError, match="counted from 0: pass c as well, by position"):
        cytape.grad(f, argnums)(1.0, 2.0)
    with pytest.raises(ValueError, match="among the 3 positional arguments of f$"):
        cytape.grad(f, 3)(1.0, 2.0, 3.0)  # d cannot be passed by position
    with pytest.raises(ValueError, match="among the 1 positional arguments of max$"):
        cytape.grad(max, 1)(1.0)  # which does not tell its parameters


@each("transform", [*TRANSFORMS[:-1], lambda f, argnum: cytape.make_ggnvp(f, f_argnum=argnum)])
@each("argnums", [None, 1.0, "x", ("x",)])
def test_argnums_of_the_wrong_type(argnums, transform):
    with pytest.raises(TypeError, match="argnums must be an int"):
        transform(cube, argnums)


def test_argnums_are_no_names():
    with pytest.raises(TypeError, match="got 'x'. They are positions of arguments, not names$"):
        cytape.grad(cube, "x")


@each(
    "argument", [3, True, np.arange(3), [1.0, 2], {"a": np.ones(2), "n": 3}, "text", cnp.array(3)])
def test_integers_and_the_like_have_no_gradient(argument):
    def f(x):
        return 1.0

    with pytest.raises(TypeError, match="argument 0.* of f.*has no gradient"):
        cytape.grad(f)(argument)


@each("argument", [None, object(), np.array([None]), [1.0, None]])
def test_arguments_that_are_not_numbers_have_no_gradient(argument):
    def f(x, y):
        return 1.0

    with pytest.raises(TypeError, match="argument 1.* of f cannot be differentiated"):
        cytape.grad(f, 1)(1.0, argument)


@dataclasses.dataclass
class Layer:
    """With what is no parameter."""

    w: np.ndarray
    n: object


@each("member", [3, "text", None, True])
@each("make", [Layer, lambda w, n: {"w": w, "n": n}, lambda w, n: [w, n]])
def test_members_that_are_no_parameters_go_elsewhere(make, member):
    structure = make(np.ones(2), member)
    with pytest.raises(TypeError, match="in another argument.*static") as caught:
        cytape.grad(lambda p: 1.0)(structure)
    assert ("3.0, not 3" in str(caught.value)) == (member == 3)
    assert "register_structure, or" not in str(caught.value)  # None does not consist of anything


@each("numbers", [[1, 2], (1.0, 2)])
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


@each(("f", "message"), [
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

    for function in f, lambda x: np.array([f(x)]):
        with pytest.raises(ValueError, match="returned None: was the return statement forgotten"):
            cytape.grad(function)(1.0)


@each("transformed, args", [
    (cytape.grad(cube), (1.5,)),
    (cytape.grad(cytape.grad(functools.partial(np.power, 2.0))), (1.5,)),
    (cytape.value_and_grad(cube, argnums=0), (1.5,)), (cytape.gradients_function(cube), (1.5,)),
    (cytape.jacfwd(cytape.jacfwd(functools.partial(np.power, 2.0))), (1.5,)),
    (cytape.jacfwd(np.sin), (1.5,)), (cytape.hessian(cube, argnums=(0,)), (np.ones(2),)),
    (cytape.hessian_vector_product(cube), (np.ones(2), np.ones(2))),
    (cytape.hessian_diagonal(cube), (np.ones(2),)), (cytape.jacrev(cube), (np.ones(2),)),
    (cytape.batch_jacobian(np.square), (np.ones((2, 3)),)),
    (cytape.elementwise_grad(np.square), (np.ones((2, 3)),)),
])
def test_transformed_functions_can_be_pickled(transformed, args):
    again = pickle.loads(pickle.dumps(transformed))
    results = [nest.flatten(f(*args)) for f in (again, transformed)]
    for found, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected)


@each("transform", TRANSFORMS)
def test_transformed_functions_look_like_the_function(transform):
    transformed = transform(cube)
    assert transformed.__name__ == "cube"
    assert transformed.__doc__ == "A function that can be pickled."
    assert inspect.unwrap(transformed) is cube
    assert cytape.grad(functools.partial(cube))(2.0) == 12.0


@each("transform", TRANSFORMS)
def test_only_functions_can_be_transformed(transform):
    with pytest.raises(TypeError, match="only functions can be transformed, got float64"):
        transform(cube(2.0))


def test_transformed_methods():
    class Model:
        scale = 3.0

        @functools.partial(cytape.grad, argnums=1)
        def gradient(self, x):
            return x * x * self.scale

        @functools.partial(cytape.jacfwd, argnums=1)
        def slope(self, x):
            return x * x * self.scale

        @functools.partial(cytape.hessian, argnums=1)
        def curvature(self, x):
            return np.sum(x**3) * self.scale

        @functools.partial(cytape.hessian_vector_product, argnum=1)
        def curve(self, x):
            return np.sum(x**3) * self.scale

        @functools.partial(cytape.make_ggnvp, f_argnum=1)
        def gauss_newton(self, x):
            return x * self.scale

    assert Model().gradient(2.0) == Model().slope(2.0) == 12.0
    assert Model().curvature(2.0) == 36.0
    assert Model().curve(2.0, 10.0) == 360.0
    assert Model().gauss_newton(2.0)(10.0) == 90.0
    assert cytape.jvp(Model().slope, (2.0,), (1.0,)) == (12.0, 6.0)


class _Parameters:
    def __init__(self, w):
        self.w = w


@each("argument, place, what", [
    ({"w": np.ones(2), "n": 3}, r"0\['n'\] of f", "int64"),
    ({"w": [1.0, (1.0, np.ones(2, int))], "a": 3.0}, r"0\['w'\]\[1\]\[1\] of f", "int64"),
    ([1.0, _Parameters(1.0)], r"0\[1\] of f", "class _Parameters.* or pass its arrays"),
    (_Parameters(1.0), "0 of f", "class _Parameters.* or pass its arrays"),
    (3, "0 of f", "int64"),
])
def test_an_error_says_which_part_of_an_argument_has_no_derivative(argument, place, what):
    def f(x):
        return 1.0

    with pytest.raises(TypeError, match=f"argument {place}.*{what}"):
        cytape.grad(f)(argument)


def test_keyword_arguments_must_be_passed_by_position():
    for transform in cytape.grad, cytape.jacfwd:
        with pytest.raises(ValueError, match=r"by position, not by name \(x\)"):
            transform(lambda x: x**2)(x=1.0)


@each("transform", [cytape.grad, cytape.value_and_grad, cytape.jacobian])
def test_calls_without_arguments_are_told_so(transform):
    with pytest.raises(ValueError, match="it was called without any"):
        transform(lambda x: x)()


@each("call", CALLS)
def test_an_error_leaves_no_recorder_behind(call):
    def f(x):
        if x > 0:
            raise KeyError("inside")
        return x * x

    v = cytape.Variable(-2.0)
    before = live_tensors()
    with cytape.GradientTape() as tape:
        with pytest.raises(KeyError, match="inside"):
            call(f)(1.0)
        assert live_tensors() == before
        with pytest.raises((TypeError, ValueError), match="return"):
            call(lambda x: None)(1.0)
        y = cytape.grad(f)(v) * v
    assert float(tape.gradient(y, v)) == -8.0
    assert type(cnp.sin(v.value())) is cytape.Tensor


@each("transform", [*BY_ARGNUMS, cytape.vmap])
def test_an_array_in_place_of_argnums_is_answered_with_the_form_of_the_call(transform):
    with pytest.raises(TypeError, match=r"write (grad|vmap)\(f\)\(x\)"):
        transform(cube, np.ones(2))


def test_representations():
    def loss(x):
        return np.sum(x)

    assert [repr(x) for x in (
        cytape.grad(loss), cytape.hessian(loss), cytape.vmap(cytape.grad(loss)),
        cytape.GradientTape(), cytape.optimizers.SGD(lambda step: 0.5))] == [
            "<grad of loss>", "<jacfwd of <jacobian of loss>>", "<vmap of loss>",
            "<GradientTape of 0 operations>", "<SGD of learning rate 0.5, 0 steps>"]
    assert repr(cytape.custom_gradient(loss)) == "<custom_gradient of loss>"
    assert repr(cytape.custom_jvp(loss)) == "<custom_jvp of loss>"
