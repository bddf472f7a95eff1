"""Functions with users' rules of derivatives, in each transform."""

import functools
import gc
import pickle

import numpy as onp
import pytest

import cytape
import cytape.autograd.numpy as anp
import cytape.numpy as np
from cytape import autograd
from cytape.autograd.core import make_jvp, make_vjp
from cytape.autograd.extend import defjvp, defvjp, defvjp_argnums, primitive
from tests.cases import each, sampled

V = onp.array([0.5, 1.0])


@primitive
def cubed(x):
    assert isinstance(x, (float, onp.number, onp.ndarray))
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


@primitive
def sum_of_squares(arrays, weight):
    return sum(weight * onp.sum(x**2) for x in arrays)


defvjp(sum_of_squares, lambda ans, arrays, weight: lambda g: [2 * weight * g * x for x in arrays],
       lambda ans, arrays, weight: lambda g: g * ans / weight)


@primitive
def sine_and_cosine(x):
    return onp.sin(x), onp.cos(x)


defvjp(sine_and_cosine, lambda ans, x: lambda g: g[0] * ans[1] - g[1] * ans[0])


@primitive
def power_of(x, *, n=2, note=None):
    return x**n


defvjp(power_of, lambda ans, x, n=2, note=None: lambda g: g * n * x ** (n - 1))
defjvp(power_of, lambda g, ans, x, n=2, note=None: g * n * x ** (n - 1))


class Scale:
    def __init__(self, factor):
        self.factor = factor

    @primitive
    def __call__(self, x):
        return self.factor * x


defvjp(Scale.__call__, None, lambda ans, self, x: lambda g: g * self.factor)


def squared_modulus(x):
    return np.real(x * np.conj(x))


# Functions made of primitives, and the same of ops.
PAIRS = {
    "elementwise": (lambda x: np.sum(product(cubed(np.sin(x)), exponential(x))),
                    lambda x: np.sum(np.sin(x) ** 3 * np.exp(x))),
    "constant operand": (lambda x: np.sum(product(2.5, x * x)), lambda x: np.sum(2.5 * x * x)),
    "list": (lambda x: sum_of_squares([x, 2 * x, onp.ones(2, "f")], np.sum(x)),
             lambda x: (5 * np.sum(x**2) + 2) * np.sum(x)),
    "two results": (lambda x: np.sum(product(*sine_and_cosine(x)) * x),
                    lambda x: np.sum(np.sin(x) * np.cos(x) * x)),
    "keywords": (lambda x: np.sum(power_of(x, n=3, note=("any", object))),
                 lambda x: np.sum(x**3)),
    "method": (lambda x: np.sum(Scale(3.0)(x) ** 2), lambda x: np.sum(9 * x * x)),
    "complex": (lambda x: np.sum(squared_modulus(cubed(x + 1j) + exponential(2j * x))),
                lambda x: np.sum(squared_modulus((x + 1j) ** 3 + np.exp(2j * x)))),
}


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


@sampled(4, transform=TRANSFORMS, pair=PAIRS, x=[
    onp.float64(0.7), onp.array([0.5, 1.0]), onp.float32(0.7), onp.array([0.5, 1.0], "f")])
def test_rules_give_the_derivatives_of_ops(transform, pair, x):
    found, expected = (TRANSFORMS[transform](f)(x) for f in PAIRS[pair])
    assert onp.allclose(found, expected, rtol=1e-4 if x.dtype == "f" else 1e-12)
    assert found.dtype == expected.dtype


@each("transform", [
    cytape.grad, lambda f: cytape.function(cytape.grad(f)),
    lambda f: lambda z: cytape.jvp(f, (z,), (z,))[1],
    lambda f: lambda z: cytape.jvp(cytape.grad(f), (z,), (1j * z,))[1],
])
def test_transforms_of_cytape_keep_their_complex_convention(transform):
    z = onp.array([0.5 + 1j, 0.2 - 0.3j])

    def by_rules(z):
        return np.sum(squared_modulus(product(cubed(z), exponential(z))))

    def by_ops(z):
        return np.sum(squared_modulus(z**3 * np.exp(z)))

    assert onp.allclose(transform(by_rules)(z), transform(by_ops)(z))
    assert onp.allclose(make_vjp(by_rules, z)[0](1.0), cytape.grad(by_ops)(z).conj())


@each("transform", [
    lambda f: lambda x: make_vjp(f, x)[0](1.0), cytape.grad, lambda f: cytape.function(
        cytape.grad(f)), lambda f: lambda x: onp.array([
            cytape.jvp(f, (x,), (e,))[1] for e in onp.eye(2)])])
@each("dtype", [bool, int, "u1"])
@each("in_list", [False, True])
def test_results_that_are_integers_have_the_derivatives_of_the_rule(transform, dtype, in_list):
    step = primitive(lambda x: ((x[0] if in_list else x) > 0).astype(dtype))
    defvjp(step, lambda ans, x: lambda g: [g * ans] if in_list else g * ans)
    found = transform(lambda x: np.sum(step([x] if in_list else x) * x))(onp.array([0.5, -0.5]))
    assert found.tolist() == [1.5, 0]


def by_argument(ans, x):
    scale = cache["scale"]
    return lambda g: [g * scale] if isinstance(x, list) else g * scale


def of_all(argnums, ans, args, kwargs):
    vjp = by_argument(ans, *args)
    return lambda g: [vjp(g)]


cache = {}


@each("transform", [cytape.grad, lambda f: lambda x: make_vjp(f, x)[0](1.0), autograd.jacobian])
@each("define", [lambda p: defvjp(p, by_argument), lambda p: defvjp_argnums(p, of_all)])
@each("in_list", [False, True])
def test_rules_read_what_their_call_left_behind(transform, define, in_list):
    def keeping(x):
        x = x[0] if in_list else x
        cache["scale"] = 10 * onp.array(x)
        return x.sum()

    p = primitive(keeping)
    define(p)
    found = transform(lambda x: p([x] if in_list else x) + p([x**2] if in_list else x**2))(
        onp.array([1.0, 2.0, 3.0]))
    assert found.tolist() == [30, 180, 570]


def test_integer_parts_of_a_result_stay():
    both = primitive(lambda x: (2 * x, onp.arange(2)[::-1]))
    defvjp(both, lambda ans, x: lambda g: 2 * g[0])

    def f(x):
        y, index = both(x)
        return np.sum(y[index] * onp.array([1.0, 10.0]))

    assert cytape.grad(f)(onp.ones(2)).tolist() == [20, 2]


@each("traced", [False, True])
def test_variables_are_differentiated(traced):
    v = cytape.Variable(2.0)

    def gradient():
        with cytape.GradientTape() as tape:
            y = product(cubed(v), v) + sum_of_squares([v], v)
        return tape.gradient(y, v)

    assert float((cytape.function(gradient) if traced else gradient)()) == 44


@each("f", [
    lambda: cytape.function(cubed)(V), lambda: cytape.vmap(cubed)(V),
    lambda: cytape.function(cytape.grad(lambda x: sum_of_squares([x, 2 * x], 1.0)))(V),
    lambda: cytape.function(lambda x: power_of(x, n=3))(V)])
def test_traces_of_primitives_are_collected(f):
    gc.collect()
    f()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(10):
        f()
    gc.collect()
    assert len(gc.get_objects()) < before + 20


def test_a_wrong_rule_gives_a_wrong_gradient():
    wrong = primitive(lambda x: x**2)
    defvjp(wrong, lambda ans, x: lambda g: 3 * x * g)
    assert make_vjp(wrong, 1.0)[0](1.0) == 3


def test_forward_mode_uses_the_rule_of_forward_mode():
    only_forward = primitive(lambda x: x**2)
    defjvp(only_forward, lambda g, ans, x: 2 * x * g)
    assert make_jvp(only_forward, 3.0)(1.0) == (9, 6)


def test_constant_parts_of_a_container_do_not_move():
    weighted = primitive(lambda pair: pair[0] ** 2 * pair[1])
    defjvp(weighted, lambda g, ans, pair: 2 * pair[0] * pair[1] * g[0] + pair[0] ** 2 * g[1])
    assert make_jvp(lambda x: weighted([x, 3.0]), 2.0)(1.0) == (12, 12)


def test_primitives_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(cubed)) is cubed
    assert cytape.grad(functools.partial(product, 2.0))(3.0) == 2


def test_a_missing_rule_is_named_in_the_call():
    missing = primitive(product.fun)
    defvjp(missing, lambda ans, x, y: lambda g: g * y)
    assert make_vjp(lambda x: missing(x, 2.0), 1.0)[0](1.0) == 2
    with pytest.raises(NotImplementedError, match=r"VJP of product wrt argnums \(1"):
        make_vjp(lambda y: missing(2.0, y), 1.0)
    with pytest.raises(NotImplementedError, match=r"VJP of product wrt argnums \(0"):
        make_jvp(lambda x: primitive(product.fun)(x, x), 2.0)(1.0)


def test_a_rule_of_a_library_function_replaces_its_own(monkeypatch):
    theirs = anp.sqrt
    monkeypatch.setattr(anp, "sqrt", theirs)  # restored
    defvjp(theirs, lambda ans, x: lambda g: 0.5 * g * np.where(x == 0, 1.0, x) ** -0.5)
    assert cytape.grad(lambda x: anp.sqrt(x**2))(0.0) == 0.0
    assert cytape.grad(cytape.grad(anp.sqrt))(4.0) == -1 / 32
    defjvp(theirs, lambda g, ans, x: 7 * g)
    assert make_jvp(anp.sqrt, 4.0)(1.0) == (2.0, 7.0)
    assert cytape.grad(theirs)(4.0) == cytape.grad(np.sqrt)(4.0) == 0.25


def test_the_other_rules_of_a_library_function_stay(monkeypatch):
    monkeypatch.setattr(anp.linalg, "det", anp.linalg.det)
    defjvp(anp.linalg.det, lambda g, ans, x: 5.0)
    assert make_jvp(anp.linalg.det, onp.eye(2))(onp.eye(2)) == (1.0, 5.0)
    onp.testing.assert_array_equal(cytape.grad(anp.linalg.det)(onp.eye(2)), onp.eye(2))


def test_a_rule_that_is_not_used_warns():
    with pytest.warns(UserWarning, match="<lambda> is neither a primitive nor") as caught:
        defvjp(lambda x: x, lambda ans, x: lambda g: g)
    assert caught[0].filename == __file__


@each("pack", [list, tuple, onp.array, np.stack])
def test_the_gradient_of_a_list_may_be_an_array(pack):
    total = primitive(lambda x: x[0][0] + x[0][1])
    defvjp(total, lambda ans, x: lambda g: [pack([g, 2 * g])])
    assert cytape.grad(lambda x: total([[x[0], x[1]]]))(onp.ones(2)).tolist() == [1, 2]
