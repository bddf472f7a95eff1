"""Random programs with nested branches and loops: traced they do what Python does."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
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


def random_program(rng, depth):
    """Make a function of two vectors; what it does was drawn beforehand."""
    kind = rng.choice(["step", "sequence", "cond", "while"]) if depth else "step"
    if kind == "step":
        return STEPS[rng.integers(len(STEPS))]
    first, second = random_program(rng, depth - 1), random_program(rng, depth - 1)
    threshold, count = rng.normal(), int(rng.integers(0, 4))
    other = bool(rng.integers(2))
    if kind == "sequence":
        return lambda x, a: second(first(x, a), a)
    if kind == "cond":
        return lambda x, a: cytape.cond(
            cnp.sum(x) > threshold, lambda: first(x, a), lambda: second(x, a))

    def loop(x, a):
        def body(i, v, w):
            # The invariant x is captured; v and w change places, w is scaled to stay small.
            return i + 1, first(w, x if other else a), second(v, a) * 0.5

        _, v, w = cytape.while_loop(lambda i, v, w: i < count, body, (0, x, a))
        return cnp.tanh(v) + 0.1 * w

    return loop


@pytest.mark.parametrize("seed", table(range(24), range(24, 40)))
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
