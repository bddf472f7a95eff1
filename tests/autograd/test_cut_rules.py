"""Second derivatives of primitives whose rules cut the derivative in the upstream gradient."""

import numpy as np

from cytape import autograd
from cytape.autograd.extend import defvjp, primitive
from cytape.autograd.tracer import getval


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
