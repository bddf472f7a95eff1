"""Functions with checkpoints around checkpointed bodies that compute with integers."""

import itertools

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import grouped
from tests.ways import check

X = np.array([1.0, 2.5, -1.3])
W = np.array([0.4, -0.7, 1.1])

# From a vector and indices to the next ones.
STEPS = {
    "sort": lambda a, i: (np.sort(a) * 1.1, np.argsort(a)),
    "argmax": lambda a, i: (a * a[np.argmax(a)] * 0.3, i),
    "argmax as a state": lambda a, i: (np.tanh(a)[i], np.argmax(a) * np.ones(3, int)),
    "indices": lambda a, i: (np.tanh(a)[i], np.argsort(a)),
    "mask": lambda a, i: (a * np.sum(a[a > 0.1]) * 0.2, i),
    "nonzero": lambda a, i: (a * np.sum(np.take(a, np.nonzero(a > 0.1)[0])) * 0.2, i),
    "take_along_axis": lambda a, i: (np.take_along_axis(np.tanh(a), i, 0), np.argsort(-a)),
    "searchsorted": lambda a, i: (
        a * np.take(a, np.clip(np.searchsorted(np.sort(a), 0.5), 0, 2)) * 0.4, (i + 1) % 3),
    "cast": lambda a, i: (np.tanh(a) * np.take(a, np.clip(a.astype(int), 0, 2)), i),
}


def looped(checkpoints=None):
    return lambda step: lambda a, i: cytape.while_loop(
        lambda k, a, i: k < 3, lambda k, a, i: (k + 1, *step(a, i)), (0, a, i),
        checkpoints=checkpoints)[1:]


def mapped(step):
    def called(a, i):
        vectors, indices = cytape.map_fn(lambda e: step(a * e, i), a)
        return cnp.sum(vectors, axis=0) * 0.3, indices[1]
    return called


def scanned(step):
    def called(a, i):
        vectors, indices = cytape.scan(lambda s, e: step(s[0] + e, s[1]), a * 0.3, (a, i))
        return vectors[2], indices[2]
    return called


BODIES = {
    "while_loop": looped(),
    "while_loop with checkpoints": looped(2),
    "checkpointed_scan": lambda step: lambda a, i: cytape.checkpointed_scan(
        lambda state: step(*state), (a, i), 3, 2),
    "foldl": lambda step: lambda a, i: cytape.foldl(
        lambda state, e: step(state[0] + e, state[1]), a * 0.3, (a, i)),
    "scan": scanned,
    "map_fn": mapped,
    "recompute_grad": cytape.recompute_grad,
    "checkpoint everything": cytape.checkpoint(policy="everything"),
    "checkpoint dots": cytape.checkpoint(policy="dots"),
    "call": lambda step: step,
}
KEPT = {
    "auto": {"checkpoints": "auto"},
    "a budget": {"checkpoints": "auto", "memory_budget": 100_000},
    "names": {"checkpoints": ["Sin"]},
}


def cases():
    numbers = itertools.count()
    for outer, inner, step, kept in itertools.product(BODIES, BODIES, STEPS, KEPT):
        group = f"{outer} of {inner}"
        is_left = next(numbers) % 479 > 0 and (
            (inner, step, kept) != ("recompute_grad", "sort", "auto") or outer > "g")
        yield group, f"{step}, {kept}", (outer, inner, step, kept), is_left


@grouped("outer, inner, step, kept", cases())
def test_derivatives_are_those_of_the_function_without_checkpoints(outer, inner, step, kept):
    w, called = cytape.constant(W), BODIES[inner](STEPS[step])

    def f(x):
        a = np.sin(x * np.cos(w))
        a, i = BODIES[outer](called)(a, np.argsort(a))
        a, i = called(np.sin(a), i)
        return np.sum(np.sin(a * np.arange(1.0, 4.0)))

    kept = cytape.function(f, **KEPT[kept])
    check(kept, f, X, ways=["eager", "derivative in a function", "graph"])
    check(f, f, X, ways=["function"])
