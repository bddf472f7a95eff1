"""Bodies: each maps a function of an array to one that calls it once and returns what it returns.

The function keeps the shape of its first argument; `branch`, `loop` and `nested` hand further
arguments on.
"""

import numpy as np

import cytape
import cytape.numpy as cnp


def branch(f):
    return lambda x, *more: cytape.cond(cnp.sum(x * x) >= 0.0, lambda: f(x, *more), lambda: x)


def loop(f, **options):
    return lambda x, *more: cytape.while_loop(
        lambda i, _: i < 1, lambda i, y: (i + 1, f(y, *more)), (np.array(0), x), **options)[1]


def nested(f):
    """Call a function in a traced one in a traced one."""
    inner = cytape.function(f)
    return cytape.function(lambda *arguments: inner(*arguments))


def scan(f):
    return lambda x: cytape.scan(lambda y, _: f(y), np.ones(1), x)[0]


def foldl(f):
    return lambda x: cytape.foldl(lambda y, _: f(y), np.ones(1), x)


BODIES = {
    "itself": lambda f: f,
    "function": cytape.function,
    "functions": nested,
    "function with checkpoints": lambda f: cytape.function(f, checkpoints="auto"),
    "cond": branch,
    "case": lambda f: lambda x: cytape.case(
        [(cnp.sum(x * x) < 0.0, lambda: x), (cnp.sum(x * x) >= 0.0, lambda: f(x))],
        default=lambda: x),
    "switch_case": lambda f: lambda x: cytape.switch_case(
        cnp.argmax(cnp.ravel(x)) * 0, [lambda: f(x), lambda: x]),
    "while_loop": loop,
    "while_loop with checkpoints": lambda f: loop(f, checkpoints=1),
    "scan": scan,
    "foldl": foldl,
    "map_fn": lambda f: lambda x: cytape.map_fn(f, x[None])[0],
    "vmap": lambda f: lambda x: cytape.vmap(f)(x[None])[0],
    "recompute_grad": cytape.recompute_grad,
    "nested recompute_grad": lambda f: cytape.recompute_grad(cytape.recompute_grad(f)),
    "checkpoint dots": cytape.checkpoint(policy="dots"),
    "checkpoint everything": cytape.checkpoint(policy="everything"),
    "checkpoint_sequential": lambda f: lambda x: cytape.checkpoint_sequential(
        [f, cytape.identity, cnp.copy], 2, x),
    "checkpointed_scan": lambda f: lambda x: cytape.checkpointed_scan(f, x, 1, 1),
}


def traced(*names):
    """Return bodies by name, each in a traced function."""
    return {name: lambda f, body=BODIES[name]: cytape.function(body(f)) for name in names}
