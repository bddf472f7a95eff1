"""Derivatives of primitives whose rules cut the derivative in the upstream gradient."""

import numpy as np
import pytest

import cytape
from cytape import autograd
from cytape.autograd.extend import defjvp, defvjp, primitive
from cytape.autograd.tracer import getval
from cytape.errors import DetachedError
from tests.cases import each


@primitive
def cube(x):
    return x**3


@primitive
def cube_slope(x):
    return 3 * x**2


defvjp(cube, lambda ans, x: lambda g: g * cube_slope(x))
defvjp(cube_slope, lambda ans, x: lambda g: getval(g) * 6 * getval(x))


def test_products_with_the_hessian_are_right_to_second_order():
    def f(x):
        return cube(x[0]) * x[1]

    x, t = np.array([2.0, 5.0]), np.array([1.0, 10.0])
    expected = np.array([[60.0, 12.0], [12.0, 0.0]])
    np.testing.assert_array_equal(autograd.hessian(f)(x), expected)
    np.testing.assert_array_equal(autograd.hessian_tensor_product(f)(x, t), expected @ t)
    np.testing.assert_array_equal(autograd.make_hvp(f)(x)[0](t), expected @ t)


RULES = {
    "cut": lambda ans, x: lambda g: getval(g) * 2 * x,
    "half cut": lambda ans, x: lambda g: g * x + g._value * x,
    "constant": lambda ans, x: lambda g: 2 * x,
    "converted": lambda ans, x: lambda g: np.array(g) * 2 * x,
}
FORWARD = {
    "make_jvp": lambda f, x: autograd.make_jvp(f)(x)(x),
    "deriv": lambda f, x: autograd.deriv(f)(x),
    "forward over reverse": lambda f, x: autograd.make_jvp(autograd.elementwise_grad(
        lambda x: f(x) * f(x)))(x)(x),
    "reverse over forward": lambda f, x: autograd.elementwise_grad(autograd.deriv(f))(x),
    "jvp": lambda f, x: cytape.jvp(f, (x,), (x,)),
    "batch": lambda f, x: cytape.jvp(f, (x,), (np.array([x, x]),), use_batch=True),
    "hessian": lambda f, x: cytape.hessian(lambda x: (f(x) * f(x)).sum())(x),
    "jet": lambda f, x: cytape.jet(f, x, [x]),
    "function": lambda f, x: cytape.function(lambda x: cytape.jvp(f, (x,), (x,)))(x),
    "jvp of a function": lambda f, x: cytape.jvp(cytape.function(f), (x,), (x,)),
    "vmap": lambda f, x: cytape.vmap(lambda x: cytape.jvp(f, (x,), (x,)))(np.array([x, x])),
}


@each("transform", FORWARD.values(), ids=FORWARD)
@each("x", [3.0, np.array([1.0, 2.0]), np.array([1.0, 2.0], "f"), np.array([1.0, 2.0j])])
@each("in_list", [False, True])
@each("rule", RULES.values(), ids=RULES)
def test_forward_mode_raises_for_rules_that_cannot_be_transposed(transform, x, in_list, rule):
    square = primitive(lambda x: x[0] ** 2 if in_list else x**2)
    defvjp(square, lambda ans, x: lambda g: [rule(ans, x[0])(g)] if in_list else rule(ans, x)(g))
    with pytest.raises((NotImplementedError, DetachedError), match="JVP of|recorded"):
        transform(lambda x: square([x] if in_list else x), x)


@each("transform", [FORWARD[name] for name in ("make_jvp", "jvp", "batch", "hessian")])
@each("x", [3.0, np.array([1.0, 2.0]), np.array([1.0, 2.0], "f")])
def test_forward_mode_transposes_rules_that_read_values_of_arguments(transform, x):
    square = primitive(lambda x: x**2)
    defvjp(square, lambda ans, x: lambda g: g * 2 * getval(x))
    once = primitive(lambda x: x**2)
    defvjp(once, lambda ans, x: lambda g: g * 2 * getval(x))
    defjvp(once, lambda g, ans, x: g * 2 * getval(x))
    found, expected = (cytape.tensor.nest.flatten(transform(f, x)) for f in (square, once))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
