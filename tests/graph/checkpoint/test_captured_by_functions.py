"""Functions with checkpoints that capture tensors of the bodies around them; complex results."""

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each, sampled
from tests.ways import FIRST_MODES, check

X = np.array([1.0, 2.5, -1.3])


def inner(z, w):
    return cnp.tanh(z * w) * cnp.sin(z) + cnp.tanh(cnp.sin(w * z))


# Calls `call(z, w)` in a body.
BODIES = {
    "while_loop": lambda call: lambda x: cytape.while_loop(
        lambda i, _: i < 3, lambda i, y: (i + 1, call(x, y)), (0, x))[1],
    "checkpointed loop": lambda call: lambda x: cytape.while_loop(
        lambda i, _: i < 3, lambda i, y: (i + 1, call(x, y)), (0, x), checkpoints=1)[1],
    "foldl": lambda call: lambda x: cytape.foldl(lambda y, e: call(e * x, y), x, x),
    "scan": lambda call: lambda x: cytape.scan(lambda y, e: call(x, y * e), x, x),
    "map_fn": lambda call: lambda x: cytape.map_fn(lambda e: call(x, e), x),
    "cond": lambda call: lambda x: cytape.cond(
        cnp.sum(x) > 0, lambda: call(x, x * 2.0), lambda: x),
    "vmap of members": lambda call: lambda x: cytape.vmap(lambda e: call(x, e))(x),
    "vmap of a shared tensor": lambda call: lambda x: cytape.vmap(lambda e: call(e, x))(x),
    "recompute_grad": lambda call: cytape.recompute_grad(lambda x: call(x, x * 2.0)),
    "loop in a loop": lambda call: lambda x: cytape.foldl(
        lambda y, e: cytape.while_loop(
            lambda i, _: i < 2, lambda i, z: (i + 1, call(z, y * e)), (0, x))[1], x, x),
}
KEPT = {
    "auto": {"checkpoints": "auto"},
    "a budget": {"checkpoints": "auto", "memory_budget": 100_000},
    "names": {"checkpoints": ["Tanh"]},
}


@sampled(3, kept=KEPT, body=BODIES)
def test_a_tensor_of_the_body_around(body, kept):
    def program(call):
        return lambda x: cnp.sum(cnp.sin(BODIES[body](call)(x)))

    f = program(lambda z, w: cytape.function(lambda z: inner(z, w), **KEPT[kept])(z))
    check(f, program(inner), X, ways=["eager", "function", "graph"], modes=FIRST_MODES)


@each("kept", KEPT)
def test_complex_results(kept):
    def turned(x):
        return cnp.tanh(x * 1j) * cnp.exp(1j * cnp.sin(cnp.tanh(x)))

    def program(called):
        return lambda x: cnp.sum(cnp.abs(called(x)) + cnp.real(called(x)))

    complex_function = cytape.function(turned, **KEPT[kept])
    check(program(complex_function), program(turned), X, ways=["eager", "function"])
    np.testing.assert_allclose(
        cytape.jvp(complex_function, (X,), (X,))[1], cytape.jvp(turned, (X,), (X,))[1], rtol=1e-9)
