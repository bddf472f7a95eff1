"""Calls that leave nothing to the garbage collector: what they made goes when they return."""

import gc

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each

X = np.array([1.0, 2.0, 3.0])


def by_jvp(x):
    f = cytape.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2))
    return f(x)


def by_hand(x):
    y = cytape.constant(cytape.stop_gradient(x).numpy() * 2.0)
    cytape.record_operation("Double", [y], [x], lambda dy: [dy * 2.0])
    return y


# Each makes what it calls anew.
CALLS = {
    "custom_gradient": lambda x: cytape.custom_gradient(lambda x: (x * 2, lambda dy: dy * 2))(x),
    "custom_jvp": by_jvp,
    "elementwise": lambda x: cytape.elementwise(np.sin, lambda x: np.cos(x))(x),
    "numpy_function": lambda x: cytape.numpy_function(
        np.sin, x, specs=x.spec, grad_func=lambda x, dy: dy * np.cos(x)),
    "record_operation": by_hand,
    "recompute_grad": lambda x: cytape.recompute_grad(lambda y: np.sin(y))(x),
    "checkpoint": lambda x: cytape.checkpoint(lambda y: np.sin(y), policy="dots")(x),
    "checkpoint_sequential": lambda x: cytape.checkpoint_sequential([np.sin, np.cos], 2, x),
    "checkpointed_scan": lambda x: cytape.checkpointed_scan(lambda s: cnp.sin(s), x, 4, 2),
    "function": lambda x: cytape.function(lambda y: np.sin(y))(x),
    "vmap": lambda x: cytape.vmap(lambda y: y * 2)(x),
    "scan": lambda x: cytape.scan(lambda s, y: s * y, x, x[0])[0],
    "while_loop": lambda x: cytape.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, y * x), (0, x))[1],
    "mask": lambda x: x[x > 1.0],
    "at": lambda x: x.at[0].set(5.0),
}


@each(call=CALLS, mode=["grad", "jvp", "hessian"])
def test_a_call_leaves_no_cycles(mode, call):
    def f(x):
        return cnp.sum(CALLS[call](x) * 1.0)

    derivative = {
        "grad": lambda: cytape.grad(f)(X),
        "jvp": lambda: cytape.jvp(f, (X,), (X,)),
        "hessian": lambda: cytape.hessian(f)(X),
    }[mode]
    for _ in range(2):  # the first round fills caches
        derivative()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            derivative()
        assert gc.collect() == 0
    finally:
        gc.enable()
