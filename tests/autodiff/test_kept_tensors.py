"""Tensors among the arguments of a recorded call that are written to after the call."""

import itertools

import numpy as np

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.cases import each, grouped, sampled

cube_by_gradient = cytape.custom_gradient(lambda x: (x**3, lambda dy: 3 * dy * x * x))
cube_by_jvp = cytape.custom_jvp(lambda x: x**3)
cube_by_jvp.defjvp(lambda p, t: (None, 3 * p[0] * p[0] * t[0]))


@cytape.custom_gradient
def cube_of_values(x):
    values = cytape.stop_gradient(x).numpy()
    return values**3, lambda dy: 3 * dy * values**2


def cube_by_numpy(x):
    return cytape.numpy_function(
        lambda x: x**3, x, specs=x.spec, grad_func=lambda x, dy: 3 * dy * x * x)


def cube_by_hand(x):
    y = cytape.constant(cytape.stop_gradient(x).numpy() ** 3)
    cytape.record_operation("Cube", [y], [x], lambda dy: [3 * dy * x * x])
    return y


def cube_by_hand_forward(x):
    y = cytape.constant(cytape.stop_gradient(x).numpy() ** 3)
    cytape.record_operation(
        "Cube", [y], [x], lambda dy: [lambda: 3 * dy * x * x], lambda dx: [3 * dx * x * x])
    return y


def cube_by_hand_lazily(x):
    y = cytape.constant(cytape.stop_gradient(x).numpy() ** 3)
    cytape.record_operation(
        "Cube", [y], [x], backward_getter=lambda: lambda dy: [lambda: 3 * dy * x * x])
    return y


def cube_by_elementwise(x):
    return cytape.elementwise(lambda x: x**3, lambda x: 3 * x**2)(x)


def set_part(x):
    x[0] = 100.0


def add_in_place(x):
    x += 100.0


def write_to_view(x):
    part = x[:2]
    part[0] = 100.0


BY_HAND = [cube_by_hand, cube_by_hand_forward, cube_by_hand_lazily]
CUBES = {
    "gradient": cube_by_gradient, "jvp": cube_by_jvp, "gradient of values": cube_of_values,
    "numpy": cube_by_numpy, "by hand": cube_by_hand, "by hand, forward": cube_by_hand_forward,
    "by hand, lazily": cube_by_hand_lazily, "elementwise": cube_by_elementwise,
    "recomputed": cytape.recompute_grad(lambda x: x**3),
    "checkpoint": cytape.checkpoint(lambda x: x**3, policy="dots"),
    "checkpoint_sequential": lambda x: cytape.checkpoint_sequential(
        [lambda x: x * x, lambda y: y * cnp.sqrt(y)], 2, x),
    "checkpointed_scan": lambda x: cytape.checkpointed_scan(
        lambda s: (s[0], s[0] * s[1]), (x, x), 2, 1)[1],
    "function": cytape.function(lambda x: x**3),
    "vmap": cytape.vmap(lambda x: x**3),
    "while_loop": lambda x: cytape.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, y * x), (0, x))[1],
    "map_fn": lambda x: cytape.map_fn(lambda e: e**3, x),
    "cond": lambda x: cytape.cond(x[0] > 0, lambda: x**3, lambda: x),
}
WRITES = [
    set_part, add_in_place, write_to_view, lambda x: np.add(x, 100.0, out=x),
    lambda x: np.add.at(x, [0], 100.0)]
PASSED = {
    "itself": lambda x: (x, x), "a view of it": lambda x: (x[:], x),
    "a view": lambda x: [x[::-1]] * 2}


X = np.array([1.0, 2.0, 3.0])
# The derivatives of functions that sum cubes, with their values.
FIRST = {
    "grad": (lambda f: cytape.grad(f)(X), 3 * X**2),
    "jacrev": (lambda f: cytape.jacrev(f)(X), 3 * X**2),
    "jvp": (lambda f: cytape.jvp(f, (X,), (X,))[1], np.sum(3 * X**3)),
    "jet": (lambda f: cytape.jet(f, (X,), ((X,),))[1][0], np.sum(3 * X**3)),
}
SECOND = {
    "hessian": (lambda f: cytape.hessian(f)(X), np.diag(6 * X)),
    "reverse over reverse": (lambda f: cytape.jacrev(cytape.grad(f))(X), np.diag(6 * X)),
    "reverse over forward": (lambda f: cytape.jacrev(cytape.jacfwd(f))(X), np.diag(6 * X)),
    "second jet": (lambda f: cytape.jet(f, (X,), ((X, 0 * X),))[1][1], np.sum(6 * X**3)),
}
OF_VALUES = "gradient of values"  # which has no second derivative


def cubed(cube, write, passed, x):
    """Return the sum of cubes, of a tensor that is written to after the call."""
    x = x * 1.0
    given, written = PASSED[passed](x)
    y = CUBES[cube](given)
    write(written)
    return cnp.sum(y) + 0.0 * cnp.sum(written)


PLACES = "eager", "function", "of a function"


def places_and_modes():
    """Yield all in a group per function; every tenth is always tried, with all the writes in turn.
    """
    product = itertools.product(CUBES, enumerate([*FIRST, *SECOND]), enumerate(PLACES),
                                enumerate(PASSED), enumerate(WRITES))
    for cube, (i, mode), (j, place), (k, passed), (m, write) in product:
        if place == "eager" or CUBES[cube] not in BY_HAND:  # by hand ops are recorded eagerly only
            if mode not in SECOND or cube != OF_VALUES:
                yield (cube, f"{mode}, {place}, {passed}, write {m}",
                       (cube, mode, place, passed, write), (i + j + k + m) % (2 * len(WRITES)) > 0)


@grouped("cube, mode, place, passed, write", places_and_modes())
def test_writes_to_a_tensor_after_the_call_do_not_count(
    cube, mode, place, passed, write
):
    derivative, expected = {**FIRST, **SECOND}[mode]

    def f(x):
        return cubed(cube, write, passed, x)

    if place == "function":
        found = cytape.function(lambda: derivative(f))()
    else:
        found = derivative(f if place == "eager" else cytape.function(f))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


@sampled(4, cube=CUBES, write=WRITES, passed=PASSED, order=[1, 2])
def test_writes_to_a_tensor_of_a_graph_do_not_count(order, passed, write, cube):
    if CUBES[cube] in BY_HAND or order == 2 and cube == OF_VALUES:
        return

    def derivative(p):
        [found] = cytape.gradients(cubed(cube, write, passed, p), p)
        return found if order == 1 else cytape.gradients(found, p)[0]

    expected = 3 * X**2 if order == 1 else 6 * X
    np.testing.assert_allclose(ways.run_in_graph(derivative, X), expected, rtol=1e-12)


@each(cube=[name for name, cube in CUBES.items() if cube in BY_HAND], write=WRITES, passed=PASSED)
def test_a_persistent_tape_finds_the_values_of_the_call_each_time(passed, write, cube):
    x = cytape.constant(X)
    with ways.watching(x) as outer:
        tape, y = ways.taped(lambda x: cubed(cube, write, passed, x), x, persistent=True)
        for _ in range(2):
            gradient = tape.gradient(y, x)
            np.testing.assert_array_equal(gradient.numpy(), 3 * X**2)
    np.testing.assert_array_equal(outer.gradient(gradient, x).numpy(), 6 * X)
