"""Functions with users' rules of derivatives, in each transform."""

import numpy as onp
import pytest

import cytape
import cytape.numpy as np
from cytape.autograd.core import make_jvp, make_vjp
from cytape.autograd.extend import defjvp, defvjp, primitive
from tests.cases import each


@primitive
def cubed(x):
    assert isinstance(x, (float, complex, onp.ndarray)) and not isinstance(x, cytape.Tensor)
    return x**3


@primitive
def exponential(x):
    return onp.exp(x)


@primitive
def product(x, y):
    return x * y


defvjp(cubed, lambda ans, x: lambda g: 3 * x**2 * g)
defvjp(exponential, lambda ans, x: lambda g: g * ans)
defvjp(product, lambda ans, x, y: lambda g: g * y, lambda ans, x, y: lambda g: g * x)


def by_rules(x):
    return np.sum(product(cubed(np.sin(x)), exponential(x)))


def by_ops(x):
    return np.sum(np.sin(x) ** 3 * np.exp(x))


def in_branch(f):
    return cytape.function(cytape.grad(
        lambda x: cytape.cond(np.sum(x) > 0, lambda: f(x), lambda: 0.0 * np.sum(x))))


def in_loop(f):
    return cytape.function(cytape.grad(lambda x: cytape.while_loop(
        lambda i, total: i < 3, lambda i, total: (i + 1, total + f(x)), (0, 0.0 * np.sum(x)))[1]))


TRANSFORMS = {
    "make_vjp": lambda f: lambda x: make_vjp(f, x)[0](1.0),
    "make_jvp": lambda f: lambda x: make_jvp(f, x)(x)[1],
    "grad": cytape.grad,
    "jvp": lambda f: lambda x: cytape.jvp(f, (x,), (x,))[1],
    "hessian": cytape.hessian,
    "jvp of grad": lambda f: lambda x: cytape.jvp(cytape.grad(f), (x,), (x,))[1],
    "function of grad": lambda f: cytape.function(cytape.grad(f)),
    "grad of function": lambda f: cytape.grad(cytape.function(f)),
    "function of hessian": lambda f: cytape.function(cytape.hessian(f)),
    "function of jvp": lambda f: cytape.function(lambda x: cytape.jvp(f, (x,), (x,))[1]),
    "vmap of grad": lambda f: lambda x: cytape.vmap(cytape.grad(f))(onp.stack([x, 2 * x])),
    "jet": lambda f: lambda x: cytape.jet(f, x, [x, 0 * x, 0 * x])[1][2],
    "branch": in_branch,
    "loop": in_loop,
}


@each("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@each("x", [0.7, onp.array([0.5, 1.0])], ids=["scalar", "array"])
def test_rules_give_the_derivatives_of_ops(transform, x):
    assert onp.allclose(transform(by_rules)(x), transform(by_ops)(x))


def test_a_wrong_rule_gives_a_wrong_gradient():
    wrong = primitive(lambda x: x**2)
    defvjp(wrong, lambda ans, x: lambda g: 3 * x * g)
    assert make_vjp(wrong, 1.0)[0](1.0) == 3


def test_forward_mode_uses_the_rule_of_forward_mode():
    only_forward = primitive(lambda x: x**2)
    defjvp(only_forward, lambda g, ans, x: 2 * x * g)
    assert make_jvp(only_forward, 3.0)(1.0) == (9, 6)


def test_a_missing_rule_is_named_in_the_call():
    missing = primitive(product.fun)
    defvjp(missing, lambda ans, x, y: lambda g: g * y)
    assert make_vjp(lambda x: missing(x, 2.0), 1.0)[0](1.0) == 2
    with pytest.raises(NotImplementedError, match=r"VJP of product wrt argnums \(1"):
        make_vjp(lambda y: missing(2.0, y), 1.0)
    with pytest.raises(NotImplementedError, match=r"VJP of product wrt argnums \(0"):
        make_jvp(lambda x: primitive(product.fun)(x, x), 2.0)(1.0)
