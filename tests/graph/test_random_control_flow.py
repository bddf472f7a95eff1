"""Random programs with nested branches and loops: traced they do what Python does."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.cases import grouped
from tests.tables import table

STEPS = [
    lambda x, a: cnp.tanh(x * a),
    lambda x, a: x + 0.5 * cnp.sin(a),
    lambda x, a: x * cnp.sum(a) - a,
    lambda x, a: cnp.exp(-x * x) + a,
    lambda x, a: x[::-1] * 0.7,
    lambda x, a: cnp.where(x > a, x, 0.3 * x * a),
    lambda x, a: 0.5 * x,
]


def while_(first, second, x, a, n):
    def body(i, v, w):
        # v and w change places, w is scaled to stay small.
        return i + 1, first(w, a), second(v, x) * 0.5

    _, v, w = cytape.while_loop(lambda i, v, w: i < n, body, (0, x, a))
    return cnp.tanh(v) + 0.1 * w


def until(first, second, x, a, n):
    def body(t, v):
        return t + 1.0 + cnp.tanh(cnp.sum(v * v)), cnp.tanh(first(v, a)) + 0.1 * second(v, x)

    t, v = cytape.while_loop(lambda t, v: t < 1.5 * n, body, (0.1 * cnp.tanh(cnp.sum(x)), x))
    return v + cnp.tanh(t)


def accumulated(accumulate):
    def loop(first, second, x, a, n):
        rows = cnp.stack([x, a, x * a])[:n]
        y = accumulate(lambda v, row: cnp.tanh(first(v, row)) + 0.1 * second(v, x), rows, a)
        return (y if accumulate is cytape.foldl else cnp.sum(y, 0)) + 0.5 * x

    return loop


def mapped(first, second, x, a, n):
    rows = cnp.stack([x, a, x * a])[:n]
    return a + cnp.sum(
        cytape.map_fn(lambda row: cnp.tanh(first(row, x)) + 0.1 * second(a, row), rows), 0)


def array(first, second, x, a, n):
    _, v, rows = cytape.while_loop(
        lambda i, v, _: i < n,
        lambda i, v, rows: (i + 1, cnp.tanh(first(v, a)), rows.write(i, second(v, x))),
        (0, x, cytape.TensorArray("float64", size=3, element_shape=(3,))))
    return cnp.tanh(v) + cnp.sum(rows.stack(), 0)


# Called with two functions of two vectors, two vectors, and how often to call the functions.
LOOPS = {
    "while": while_,
    "until": until,
    "scan": accumulated(cytape.scan),
    "foldl": accumulated(cytape.foldl),
    "map_fn": mapped,
    "array": array,
}


def random_program(rng, depth):
    """Make a function of two vectors; what it does was drawn beforehand."""
    kind = rng.choice(["step", "sequence", "cond", *LOOPS]) if depth else "step"
    if kind == "step":
        return STEPS[rng.integers(len(STEPS))]
    first, second = random_program(rng, depth - 1), random_program(rng, depth - 1)
    threshold, count = rng.normal(), int(rng.choice([0, 0, 1, 2, 3]))
    if kind == "sequence":
        return lambda x, a: second(first(x, a), a)
    if kind == "cond":
        return lambda x, a: cytape.cond(
            cnp.sum(x) > threshold, lambda: first(x, a), lambda: second(x, a))
    return lambda x, a: LOOPS[kind](first, second, x, a, count)


@pytest.mark.parametrize("seed", table(range(6), range(6, 60)))
def test_traced_programs_do_what_python_does(seed):
    rng = np.random.default_rng(seed)
    program = random_program(rng, 3)
    x, a, u = rng.normal(size=(3, 3))

    def of_both(z):
        return cnp.sum(program(z[:3], z[3:]) ** 2)

    def slope(f):
        return lambda z: cytape.jvp(f, (z,), (cytape.constant(np.concatenate([u, u])),))[1]

    traced = cytape.function(of_both)
    z, weights = cytape.constant(np.concatenate([x, a])), cytape.constant(np.arange(6.0))
    for compute in (
        lambda f: f,
        cytape.grad,
        slope,
        lambda f: cytape.grad(lambda z: cnp.sum(cytape.grad(f)(z) * weights)),
        lambda f: cytape.grad(slope(f)),
        lambda f: slope(cytape.grad(f)),
    ):
        expected = compute(of_both)(z)
        np.testing.assert_allclose(compute(traced)(z), expected, rtol=1e-9, atol=1e-11)
        inside = cytape.function(compute(of_both))
        np.testing.assert_allclose(inside(z), expected, rtol=1e-9, atol=1e-11)


def reverse_twice(f):
    return lambda z: cytape.grad(lambda z: cnp.sum(cnp.cos(z) * cytape.grad(f)(z)))(z)


@grouped("outer, inner, n_outer, n_inner", [
    (outer, f"{inner}, {n_outer} times {n_inner}", (outer, inner, n_outer, n_inner),
     (i + k + 3 * n_outer + n_inner) % 8 > 0)
    for i, outer in enumerate(LOOPS) for k, inner in enumerate(LOOPS)
    for n_outer in (0, 1, 3) for n_inner in (0, 1, 3)])
def test_loops_in_loops_of_any_count(outer, inner, n_outer, n_inner):
    def program(x, a):
        def loop(x, a):
            return LOOPS[inner](STEPS[0], STEPS[2], x, a, n_inner)

        return cnp.sum(LOOPS[outer](loop, STEPS[1], x, a, n_outer) ** 2)

    def of_halves(z):
        return program(z[:3], z[3:])

    z = np.array([0.3, -0.7, 1.1, 0.4, 0.9, -0.2])
    traced = cytape.function(of_halves)
    np.testing.assert_allclose(
        cytape.function(reverse_twice(traced))(z), reverse_twice(of_halves)(z),
        rtol=1e-9, atol=1e-11)
    with cytape.Graph().as_default() as graph:  # only a run tells how much half of a vector is
        x = cytape.placeholder(float, (None,))
        [slope] = cytape.gradients([program(x[::2], x[1::2])], [x])
    found = cytape.Session(graph).run(slope, {x: z.reshape(2, 3).T.ravel()})
    np.testing.assert_allclose(
        found.reshape(3, 2).T.ravel(), cytape.grad(of_halves)(z), rtol=1e-9, atol=1e-11)
