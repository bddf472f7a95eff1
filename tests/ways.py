"""Ways to a derivative: modes, which are what is computed, and places, which are where.

A mode is called with a function of tensors, tensors and their tangents, and returns a list. A
place is called with a mode, a function of tensors, arrays and tangents. `check` compares a
function with a plain one on every way and reports all the ways on which they differ.
"""

import os
import zlib
from collections import Counter
from contextlib import contextmanager
from functools import partial

import numpy as np

import cytape
import cytape.numpy as cnp

# ---- single derivatives, eager


def gradient(f, x, **options):
    """Return the gradient of f, a function of one tensor."""
    return gradients(f, x, **options)[0]


def gradients(f, *inputs, recorded=False, **options):
    """Return the gradients of f with respect to its inputs; the tape records itself if `recorded`.
    """
    inputs = [x if isinstance(x, cytape.Variable) else cytape.convert_to_tensor(x) for x in inputs]
    with cytape.GradientTape(persistent=recorded) as tape:
        tape.watch([x for x in inputs if x.spec.trainable])
        y = f(*inputs)
        if recorded:
            return tape.gradient(y, inputs, **options)
    return tape.gradient(y, inputs, **options)


@contextmanager
def watching(*inputs, **options):
    """Record on a tape that watches the inputs."""
    with cytape.GradientTape(**options) as tape:
        tape.watch(inputs)
        yield tape


def taped(f, *inputs, **options):
    """Return a tape that watches the inputs, and the result of f that it recorded."""
    with watching(*inputs, **options) as tape:
        return tape, f(*inputs)


def as_in_numpy(f, *arrays, traces=(lambda f: f, cytape.function), **tolerances):
    """Check that f returns of tensors what it returns of arrays, as it is and traced."""
    expected = f(*map(np.copy, arrays))
    for trace in traces:
        agree(trace(f)(*map(cytape.constant, arrays)), expected, **tolerances)


def agree(found, expected, rtol=0.0, atol=0.0):
    """Check that a result, or each of several, is the array that is expected, or close to it."""
    if isinstance(expected, (tuple, list)):
        for one, other in zip(found, expected, strict=True):
            agree(one, other, rtol, atol)
    else:
        np.testing.assert_allclose(found, expected, rtol, atol)


def tangent(f, x, t=None):
    """Return the tangent of f along t, or along ones."""
    with cytape.ForwardAccumulator(x, np.ones(x.shape) if t is None else t) as accumulator:
        y = f(x)
    return accumulator.jvp(y)


def hessian_times(f, x, vector):
    """Return the Hessian of the sum of f times a vector."""
    return gradient(lambda x: gradient(f, x), x, output_gradients=cytape.constant(vector))


def dense(gradient):
    """Return a gradient, or each of a list of them, as a tensor or None."""
    if isinstance(gradient, list):
        return list(map(dense, gradient))
    return gradient.to_tensor() if isinstance(gradient, cytape.IndexedSlices) else gradient


def run_in_graph(f, *arrays, known=True):
    """Return what a function of placeholders, of known extents or not, has at arrays."""
    arrays = list(map(np.asarray, arrays))
    with cytape.Graph().as_default() as graph:
        inputs = [cytape.placeholder(x.dtype, x.shape if known else (None, *x.shape[1:]))
                  for x in arrays]
        results = f(*inputs)
    return cytape.Session(graph).run(results, dict(zip(inputs, arrays, strict=True)))


RECORDERS = {
    "tape": gradient,
    "accumulator": tangent,
    "gradients": lambda f, x: cytape.gradients(f(x), x)[0],
}

# ---- modes


def value(f, xs, ts):
    """Return the value of f."""
    return [f(*xs)]


def reverse(f, xs, ts):
    """Return the gradients of the sum of f."""
    with watching(*xs) as tape:
        y = f(*xs)
    return dense(tape.gradient(y, xs, unconnected_gradients="zero"))


def forward(f, xs, ts):
    """Return the tangent of f."""
    with cytape.ForwardAccumulator(xs, ts) as accumulator:
        y = f(*xs)
    return [accumulator.jvp(y, unconnected_gradients="zero")]


def forward_over_reverse(f, xs, ts):
    """Return the product of the Hessian of the sum of f with the tangents."""
    with cytape.ForwardAccumulator(xs, ts) as accumulator:
        gradients = reverse(f, xs, ts)
    return accumulator.jvp(gradients, unconnected_gradients="zero")


def reverse_over_reverse(f, xs, ts):
    """Return the same, as gradients of the inner product of the gradients and the tangents."""
    return reverse(lambda *xs: inner(reverse(f, list(xs), ts), ts), xs, ts)


def reverse_over_forward(f, xs, ts):
    """Return the same, as gradients of the sum of the tangent."""
    return reverse(lambda *xs: forward(f, list(xs), ts)[0], xs, ts)


def forward_over_forward(f, xs, ts):
    """Return the second derivative along the tangents."""
    return forward(lambda *xs: forward(f, list(xs), ts)[0], xs, ts)


def inner(gradients, ts):
    """Sum products, in a precision that adds nothing to what the factors have lost."""
    total = cytape.constant(0.0)
    for gradient, t in zip(gradients, ts, strict=True):
        wide = "complex128" if gradient.dtype.kind == "c" else "float64"
        total = total + np.sum(np.real(np.conj(gradient.astype(wide)) * t))
    return total


ALL_MODES = {mode.__name__: mode for mode in (
    value, reverse, forward, forward_over_reverse, reverse_over_reverse, reverse_over_forward,
    forward_over_forward)}
FIRST_MODES = ["value", "reverse", "forward"]
MODES = {name: ALL_MODES[name] for name in (
    "reverse", "forward", "forward_over_reverse", "reverse_over_reverse")}

# ---- places


def eager(mode, f, xs, ts):
    return mode(f, list(map(cytape.constant, xs)), ts)


def in_function(mode, f, xs, ts):
    return cytape.function(lambda *xs: mode(f, list(xs), ts))(*map(cytape.constant, xs))


def around_function(mode, f, xs, ts):
    return eager(mode, cytape.function(f), xs, ts)


def in_graph(mode, f, xs, ts, runs=1):
    graph = cytape.Graph()
    with graph.as_default():
        inputs = [cytape.placeholder(x.dtype, x.shape) for x in xs]
        if mode in (reverse, reverse_over_reverse):
            results = by_gradients(f(*inputs), inputs)
            if mode is reverse_over_reverse:
                results = by_gradients(inner(results, ts), inputs)
        else:
            results = mode(f, inputs, ts)
        results = list(map(cytape.identity, results))  # zeros may be no tensors of the graph
    session, feeds = cytape.Session(graph), list(zip(inputs, xs, strict=True))
    return [x for _ in range(runs) for x in session.run(results, feeds)]


def by_gradients(y, xs):
    return dense(cytape.gradients(y, xs, unconnected_gradients="zero"))


PLACES = {place.__name__: place for place in (eager, in_function, around_function, in_graph)}
ROUTES = [(mode, place) for place in PLACES for mode in MODES]


def derivatives(mode, place, f, xs, ts):
    """Go one way: names of a mode and a place, a function of tensors, arrays and tangents."""
    with np.errstate(all="ignore"):
        return list(map(np.asarray, PLACES[place](MODES[mode], f, xs, ts)))


def of_unknown_extents(f):
    return lambda x: cytape.function(
        f, input_signature=[cytape.Spec.of((None,) * x.ndim, float)])(x)


# Bodies that call a scalar function of an array.
BODIES = {
    "eager": lambda f: f,
    "function": cytape.function,
    "branch": lambda f: cytape.function(lambda x: cytape.cond(
        cnp.sum(x * x) >= 0, lambda: f(x), lambda: cnp.sum(x))),
    "loop": lambda f: cytape.function(lambda x: cytape.while_loop(
        lambda i, _: i < 2, lambda i, _: (i + 1, f(x)), (0, cytape.constant(0.0)))[1]),
}
# How to call the function, the place that differentiates the call, and in which modes.
WAYS = {
    **{name: (body, eager, [mode for mode in ALL_MODES if mode != "forward_over_forward"])
       for name, body in BODIES.items()},
    "function": (cytape.function, eager, list(ALL_MODES)),
    "vmap": (lambda f: lambda x: cytape.vmap(f)(x[None])[0], eager, ["forward_over_reverse"]),
    "unknown extents": (of_unknown_extents, eager, ["forward_over_reverse"]),
    "derivative in a function": (lambda f: f, in_function, ["reverse"]),
    "graph": (lambda f: f, partial(in_graph, runs=2), ["value", "reverse", "reverse_over_reverse"]),
}
# `make test` takes one of these modes for each traced body of a check, in turn: they are a third of
# the time that checks take. `make test-all` takes all.
SECOND_ORDER = {"forward_over_reverse", "reverse_over_reverse", "reverse_over_forward"}
TRACED = {"function", "branch", "loop"}
takes_all = False
checks = Counter()  # per test
OF_KNOWN_EXTENTS = [way for way in WAYS if way != "unknown extents"]


def check(f, plain, x, *, ways=WAYS, modes=ALL_MODES, rtol=1e-9, atol=1e-11):
    """Compare a scalar function of an array on all ways with an eager one, `plain`."""
    xs = [np.asarray(x, float)]
    ts = [np.linspace(1.0, 2.0, xs[0].size).reshape(xs[0].shape)]
    expected = {mode: eager(ALL_MODES[mode], plain, xs, ts) for mode in modes}
    failures = []
    test = os.environ["PYTEST_CURRENT_TEST"]
    checks[test] += 1
    turn = zlib.crc32(test.encode()) + checks[test]
    for i, way in enumerate(ways):
        wrap, place, modes_of_way = WAYS[way]
        called = wrap(f)
        taken = [mode for mode in modes_of_way if mode in modes]
        if way in TRACED and not takes_all:
            second = [mode for mode in taken if mode in SECOND_ORDER]
            left = {mode for j, mode in enumerate(second) if j != (turn + i) % len(second)}
            taken = [mode for mode in taken if mode not in left]
        for mode in taken:
            try:
                found = place(ALL_MODES[mode], called, xs, ts)
                for one, wanted in zip(found, expected[mode] * 2, strict=False):
                    np.testing.assert_allclose(one, wanted, rtol, atol)
            except Exception as error:
                error.add_note(f"on the way {mode}, {way}")
                failures.append(error)
    if failures:
        names = "\n".join(error.__notes__[-1] for error in failures)
        raise ExceptionGroup(f"{len(failures)} ways differ:\n{names}", failures)
