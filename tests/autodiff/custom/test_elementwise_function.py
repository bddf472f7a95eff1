"""cytape.elementwise: functions of arrays with their derivatives, in every order and mode."""

import gc
import math
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import CytapeError, NotDifferentiableError
from tests.cases import each

F = cytape.function

cube = cytape.elementwise(np.vectorize(lambda x: x**3), lambda x: 3.0 * x * x)
sine = cytape.elementwise(np.vectorize(math.sin, otypes=[float]), lambda x: cosine(x))
cosine = cytape.elementwise(np.vectorize(math.cos, otypes=[float]), lambda x: -sine(x))
power = cytape.elementwise(
    np.vectorize(math.pow, otypes=[float]),
    lambda x, y: y * power(x, y - 1.0), lambda x, y: np.log(x) * power(x, y))
opaque = cytape.elementwise(
    np.vectorize(math.sin, otypes=[float]), np.vectorize(math.cos, otypes=[float]))

x = np.array([0.5, 1.0, 2.0])
PLACES = {
    "eager": lambda f: f,
    "function": F,
    "branch": lambda f: lambda a: cytape.cond(cnp.sum(a) > 0, lambda: f(a), lambda: a),
    "loop": lambda f: lambda a: cytape.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, f(y)), (0, a))[1],
    "fold": lambda f: lambda a: cytape.foldl(lambda y, z: f(y) * z, np.ones(2), a),
    "vmap": lambda f: lambda a: cytape.vmap(f)(cnp.stack([a, 2.0 * a])),
    "recomputed": cytape.recompute_grad,
}
DERIVATIVES = {
    "value": lambda f: f,
    "reverse": lambda f: cytape.grad(lambda a: np.sum(f(a))),
    "forward": lambda f: lambda a: cytape.jvp(f, (a,), (np.ones_like(a),))[1],
    "reverse over reverse": lambda f: cytape.jacrev(cytape.grad(lambda a: np.sum(f(a)))),
    "forward over reverse": lambda f: cytape.jacfwd(cytape.grad(lambda a: np.sum(f(a)))),
    "reverse over forward": lambda f: cytape.jacrev(
        lambda a: cytape.jvp(f, (a,), (np.ones(3),))[1]),
    "forward over forward": lambda f: cytape.jacfwd(
        lambda a: cytape.jvp(f, (a,), (np.ones(3),))[1]),
    "third": lambda f: cytape.jacfwd(cytape.hessian(lambda a: np.sum(f(a)))),
}


@each(derivative=DERIVATIVES, place=PLACES)
@each("f, plain", [
    (sine, np.sin), (cube, lambda a: a**3),
    (lambda a: power(a, 2.0 * a), lambda a: a ** (2.0 * a))])
def test_derivatives_are_those_of_numpys_function(f, plain, place, derivative):
    placed, expected = (DERIVATIVES[derivative](PLACES[place](g)) for g in (f, plain))
    for transform in (lambda f: f, F):
        np.testing.assert_allclose(transform(placed)(x), expected(x), rtol=1e-12, atol=1e-12)


@each("derivative", ["reverse", "forward", "reverse over reverse"])
def test_graphs(derivative):
    with cytape.Graph().as_default() as graph:
        a = cytape.placeholder(np.float64, (3,))
        y = DERIVATIVES[derivative](sine)(a)
    with cytape.Session(graph) as session:
        np.testing.assert_allclose(session.run(y, {a: x}), DERIVATIVES[derivative](np.sin)(x))


def test_a_derivative_that_leaves_cytape_serves_the_first_order_only():
    for f in (lambda f: f, F):
        for g in ("reverse", "forward"):
            np.testing.assert_allclose(f(DERIVATIVES[g](F(opaque)))(x), np.cos(x))
            np.testing.assert_allclose(f(DERIVATIVES[g](opaque))(x), np.cos(x))
        for h in list(DERIVATIVES)[3:]:
            with pytest.raises(NotDifferentiableError, match="derivative of the derivative of sin"):
                f(DERIVATIVES[h](opaque))(x)


def test_a_derivative_of_detached_values_has_no_derivative():
    f = cytape.elementwise(np.sin, lambda x: np.cos(np.asarray(cytape.stop_gradient(x))))
    np.testing.assert_allclose(cytape.grad(lambda a: np.sum(f(a)))(x), np.cos(x))
    for h in list(DERIVATIVES)[3:]:
        for transform in (lambda f: f, F):
            with pytest.raises(CytapeError, match="derivative of .* is not known"):
                transform(DERIVATIVES[h](f))(x)


def test_none_is_a_derivative_that_is_not_known():
    f = cytape.elementwise(lambda n, x: n * x**2, None, lambda n, x: 2.0 * n * x)
    for transform in (lambda f: f, F):
        assert transform(cytape.grad(f, argnums=1))(3, 2.0) == 12.0
        assert transform(cytape.grad(cytape.grad(f, argnums=1), argnums=1))(3.0, 2.0) == 6.0
        for derivative in (cytape.grad(f), lambda n, x: cytape.jvp(f, (n, x), (1.0, 0.0))[1]):
            with pytest.raises(NotDifferentiableError, match="its argument 0 is not known"):
                transform(derivative)(3.0, 2.0)


@each("dtype", ["float32", "float64"])
def test_dtypes_are_those_of_the_function(dtype):
    f = cytape.elementwise(np.sin, np.cos)
    a = x.astype(dtype)
    assert f(cytape.constant(a)).dtype == cytape.grad(lambda a: np.sum(f(a)))(a).dtype == dtype
    assert F(f)(a).dtype == dtype
    assert f(cytape.constant(1)).dtype == "float64"


def test_arguments_are_broadcast_and_may_be_variables_numbers_and_views():
    v = cytape.Variable(np.array([[1.0], [2.0]]))
    with cytape.GradientTape() as tape:
        y = power(v, cytape.constant(x)[::-1])
    np.testing.assert_allclose(y, v.numpy() ** x[::-1])
    np.testing.assert_allclose(
        tape.gradient(y, v), np.sum(x * v.numpy() ** (x - 1.0), axis=1, keepdims=True))
    assert cytape.grad(lambda a: power(a, 3))(2.0) == 12.0


def test_arrays_in_arrays_out():
    assert type(cube(x)) is np.ndarray
    assert cube(2.0) == 8.0


def test_an_argument_that_is_not_a_function_is_refused():
    for arguments in ((np.sin,), (np.sin, 1.0), (None, np.cos), (1.0, np.cos),
                      (np.arctan2, np.cos), (np.sin, np.cos, None)):
        with pytest.raises(TypeError, match="elementwise takes"):
            cytape.elementwise(*arguments)


def test_a_function_that_does_not_act_on_each_element_is_refused():
    f = cytape.elementwise(np.sum, np.ones_like)
    with pytest.raises(ValueError, match="sum.*elementwise"):
        f(cytape.constant(x))


def test_a_graph_with_one_cannot_be_saved(tmp_path):
    with cytape.Graph().as_default() as graph:
        sine(cytape.placeholder(np.float64, (3,)))
    with pytest.raises(CytapeError, match="sin"):
        graph.save(tmp_path / "graph")


def test_a_function_may_be_made_where_it_is_called():
    def f(x):
        return np.sum(cytape.elementwise(lambda x: x**3, lambda x: 3 * x**2)(x))

    for _ in range(20):
        assert cytape.grad(f)(np.array([1.0, 2.0])).tolist() == [3.0, 12.0]


@each("transform", [
    cytape.grad, cytape.hessian, cytape.jacrev, cytape.jacfwd,
    lambda f: cytape.grad(cytape.recompute_grad(f)),
    lambda f: cytape.function(cytape.hessian(f)), lambda f: cytape.hessian(cytape.function(f))])
def test_functions_that_a_program_makes_go_with_it(transform):
    made = []

    def program(a):
        factor = np.full(3, 2.0)

        def square(x):
            return x * x

        made.append(weakref.ref(square))
        return np.sum(cytape.elementwise(square, lambda x: factor * x)(a))

    def called():
        return transform(program)(np.ones(3))

    expected = transform(lambda a: np.sum(a * a))(np.ones(3))
    np.testing.assert_allclose(called(), expected)
    gc.collect()
    assert [reference() for reference in made] == [None] * len(made)


def test_a_tape_keeps_the_function_that_it_recorded():
    x = cytape.constant(3.0)
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = cytape.elementwise(lambda x: x * x, lambda x: 2.0 * x)(x)
        z = y * x
    for _ in range(2):
        gc.collect()
        np.testing.assert_allclose(tape.gradient(z, x), 27.0)
