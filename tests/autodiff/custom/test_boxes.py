"""Boxes of arrays, and values of users' classes with boxes and vector spaces of their own."""

import gc

import numpy as onp
import pytest

import cytape
import cytape.numpy as np
from cytape import autograd
from cytape.autodiff.custom.boxes import pending
from cytape.autograd.core import make_jvp, make_vjp, vspace
from cytape.autograd.extend import Box, VSpace, defvjp, notrace_primitive, primitive
from cytape.autograd.tracer import ArrayBox, getval, isbox, new_box
from cytape.tensor.tensor import live_tensors
from tests.cases import each


class Polynomial:
    def __init__(self, coefficients):
        self.coefficients = list(coefficients)

    @primitive
    def __call__(self, x):
        return sum(a * x**k for k, a in enumerate(self.coefficients))

    def __add__(self, other):
        return vspace(self).add(self, other)

    def __mul__(self, factor):
        return vspace(self).scalar_mul(self, factor)


class PolynomialBox(Box, Polynomial):
    @property
    def coefficients(self):
        return self._value.coefficients


class PolynomialVSpace(VSpace):
    def __init__(self, polynomial):
        self.size = len(polynomial.coefficients)

    def zeros(self):
        return Polynomial(self.size * [0.0])

    def _add(self, f, g):
        return Polynomial([a + b for a, b in zip(f.coefficients, g.coefficients, strict=True)])

    def _scalar_mul(self, f, factor):
        return Polynomial([a * factor for a in f.coefficients])

    def _inner_prod(self, f, g):
        return sum(a * b for a, b in zip(f.coefficients, g.coefficients, strict=True))


PolynomialBox.register(Polynomial)
PolynomialVSpace.register(Polynomial)
defvjp(
    Polynomial.__call__,
    lambda ans, f, x: lambda g: Polynomial([x**k for k in range(len(f.coefficients))]) * g,
    lambda ans, f, x: lambda g: g * sum(
        k * a * x ** (k - 1) for k, a in enumerate(f.coefficients) if k))

F = Polynomial([1.0, 2.0, 3.0])


def test_a_tensor_is_a_box():
    x = cytape.constant(2.0)
    assert isbox(x) and isinstance(x, Box) and isinstance(x, ArrayBox)
    assert type(x) == ArrayBox and type(x) in {ArrayBox} and type(x) in Box.types  # noqa: E721
    assert not isinstance(x, PolynomialBox) and not isinstance(PolynomialBox(F, 0, x), ArrayBox)
    assert not any(map(isbox, (2.0, onp.ones(2), [x], None, F)))
    assert issubclass(PolynomialBox, Box) and not issubclass(PolynomialBox, ArrayBox)


def test_the_value_of_a_box_has_no_derivative():
    seen = []
    cytape.grad(lambda x: seen.extend([getval(x), x._value, getval(x * np.ones(2))]) or x)(2.0)
    assert [type(value) for value in seen] == [onp.float64, onp.float64, onp.ndarray]
    assert seen[0] == 2 and getval(3) == 3 and getval(PolynomialBox(F, 0, None)) is F
    assert cytape.function(cytape.grad(lambda x: x * getval(x)))(3.0) == 3


def test_new_boxes():
    assert isinstance(new_box(2.0, 0, None), cytape.Tensor)
    assert new_box(F, 0, None)._value is F
    with pytest.raises(TypeError, match="Can't differentiate w.r.t. type <class 'str'>"):
        new_box("2", 0, None)


@each("x", [3, "x", None, object(), onp.array([None]), [1.0, True]])
def test_values_that_have_no_box_are_refused(x):
    with pytest.raises(TypeError, match="Can't differentiate w.r.t. type <class|object"):
        make_vjp(lambda x: 1.0, x)


@each("make", [ArrayBox, new_box])
def test_the_box_of_the_node_of_a_box_is_that_box(make):
    assert autograd.grad(lambda x: make(x._value, x._trace, x._node) ** 2)(3.0) == 6
    found = autograd.value_and_grad(lambda x: make(x._value * 2, x._trace, x._node) * 1.0)(3.0)
    assert found == (6, 1)


def test_subclasses_of_arrays_may_have_boxes():
    class Own(onp.ndarray):
        pass

    class OwnBox(ArrayBox):
        pass

    OwnBox.register(Own)
    try:
        x = onp.array([1.0, 2.0]).view(Own)
        assert list(make_vjp(lambda x: np.sum(x**2), x)[0](1.0)) == [2, 4]
        assert make_jvp(lambda x: np.sum(x**2), x)(x) == (5, 10)
        for f in np.multiply, np.dot, lambda a, b: np.concatenate([a, b]):
            assert list(make_vjp(lambda y, f=f: np.sum(f(x, y)), onp.ones(2))[0](1.0)) == list(
                make_vjp(lambda y, f=f: np.sum(f(onp.array(x), y)), onp.ones(2))[0](1.0))
    finally:
        Box.types.discard(OwnBox)
        del Box.type_mappings[Own], Box.type_mappings[OwnBox]


def test_classes_that_change_what_operators_mean_are_refused():
    OwnBox = type("OwnBox", (ArrayBox,), {})
    try:
        for a in onp.ma.array([1.0, 2.0], mask=[0, 1]), onp.ones((1, 2)).view(onp.matrix):
            OwnBox.register(type(a))
            with pytest.raises(TypeError, match="mask|matrix"):
                autograd.grad(lambda x, a=a: np.sum(x * a))(onp.ones(2))
            del Box.type_mappings[type(a)]
    finally:
        Box.types.discard(OwnBox)
        del Box.type_mappings[OwnBox]


def test_boxes_may_be_made_by_a_function():
    class Own(onp.ndarray):
        pass

    def make(value, trace, node):
        if value.size > 2:
            raise ValueError("too large")
        return ArrayBox(value, trace, node)

    Box.type_mappings[Own] = make
    try:
        x = onp.array([1.0, 2.0]).view(Own)
        assert list(autograd.grad(lambda x: np.sum(x**2))(x)) == [2, 4]
        with pytest.raises(ValueError, match="too large"):
            autograd.grad(lambda x: np.sum(x**2))(onp.ones(3).view(Own))
    finally:
        del Box.type_mappings[Own]


def test_functions_without_derivative_get_values():
    is_plain = notrace_primitive(lambda x: not isbox(x))
    assert cytape.grad(lambda x: x * is_plain(x))(2.0) == 1


def test_gradients_of_a_value_of_a_users_class():
    vjp, value = make_vjp(lambda f: f(2.0) ** 2 + f(3.0), F)
    assert value == 323 and vjp(1.0).coefficients == [35, 71, 145]
    assert vjp(2.0).coefficients == [70, 142, 290]
    vjp, value = make_vjp(lambda pair: pair[0](pair[1]), (F, 2.0))
    assert vjp(1.0)[0].coefficients == [1, 2, 4] and vjp(1.0)[1] == 14
    vjp, value = make_vjp(lambda f: f + f * 2.0, F)
    assert value.coefficients == [3, 6, 9] and vjp(F).coefficients == [3, 6, 9]
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        assert make_vjp(lambda f: 2.0, F)[0](1.0).coefficients == [0, 0, 0]


def test_second_derivatives_through_a_users_class():
    assert cytape.grad(cytape.grad(lambda x: F(x)))(2.0) == 6

    def norm(factor):  # of the gradient of f(2)^2 with respect to f, at a multiple of F
        gradient = make_vjp(lambda f: f(2.0) ** 2, F * factor)[0](1.0)
        return vspace(F).inner_prod(gradient, Polynomial([1.0, 0.0, 0.0]))

    assert norm(1.0) == 34 and cytape.grad(norm)(1.0) == 34


def test_forward_mode_from_a_users_class_transposes_reverse_mode():
    value, tangent = make_jvp(lambda f: f(2.0) ** 2, F)(Polynomial([1.0, 0.0, 10.0]))
    assert value == 289 and tangent == 2 * 17 * 41
    value, tangent = make_jvp(lambda pair: pair[0] * pair[1], (F, 2.0))((F, 10.0))
    assert value.coefficients == [2, 4, 6] and tangent.coefficients == [12, 24, 36]


def test_forward_mode_through_a_users_class_is_refused():
    with pytest.raises(NotImplementedError, match="users' classes: use make_jvp_reversemode"):
        cytape.jvp(lambda a: (F * a)(2.0), (1.0,), (1.0,))
    assert autograd.make_jvp_reversemode(lambda a: (F * a)(2.0))(1.0)(10.0) == 170


def test_nothing_is_left_of_gradients_of_users_classes():
    def run():
        make_vjp(lambda f: f(2.0), F)[0](1.0)
        cytape.grad(lambda a: (F * a)(2.0))(1.0)

    gc.collect()
    before = live_tensors()
    run()
    gc.collect()
    assert live_tensors() == before and pending.passes == [{}]
