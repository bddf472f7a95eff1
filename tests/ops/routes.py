"""Every way to a derivative: {eager, function, graph} x {reverse, forward, both second orders}.

A *mode* is what is computed: called with a function of tensors, tensors and their tangents, it
returns a list. A *place* is where: it runs a mode on arrays and returns arrays.
"""

import numpy as np

import cytape


def reverse(f, xs, ts):
    """Return the gradients of the sum of f."""
    with cytape.GradientTape() as tape:
        tape.watch(xs)
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
    """Return the same."""
    with cytape.GradientTape() as tape:
        tape.watch(xs)
        slope = inner(reverse(f, xs, ts), ts)
    return dense(tape.gradient(slope, xs, unconnected_gradients="zero"))


def inner(gradients, ts):
    """Sum products, in a precision that adds nothing to what the factors have lost."""
    total = cytape.constant(0.0)
    for gradient, t in zip(gradients, ts, strict=True):
        wide = "complex128" if gradient.dtype.kind == "c" else "float64"
        total = total + np.sum(np.real(np.conj(gradient.astype(wide)) * t))
    return total


def dense(gradients):
    return [g.to_tensor() if isinstance(g, cytape.IndexedSlices) else g for g in gradients]


MODES = {
    mode.__name__: mode for mode in (reverse, forward, forward_over_reverse, reverse_over_reverse)
}


def eager(mode, f, xs, ts):
    return mode(f, list(map(cytape.constant, xs)), ts)


def in_function(mode, f, xs, ts):
    return cytape.function(lambda *xs: mode(f, list(xs), ts))(*map(cytape.constant, xs))


def around_function(mode, f, xs, ts):
    return eager(mode, cytape.function(f), xs, ts)


def in_graph(mode, f, xs, ts):
    graph = cytape.Graph()
    with graph.as_default():
        inputs = [cytape.placeholder(x.dtype, x.shape) for x in xs]
        if mode is reverse:
            results = by_gradients(f, inputs)
        elif mode is reverse_over_reverse:
            slope = inner(by_gradients(f, inputs), ts)
            results = dense(cytape.gradients(slope, inputs, unconnected_gradients="zero"))
        else:
            results = mode(f, inputs, ts)
        results = list(map(cytape.identity, results))  # zeros may be no tensors of the graph
    feeds = list(zip(inputs, xs, strict=True))
    return cytape.Session(graph).run(results, feeds)


def by_gradients(f, inputs):
    return dense(cytape.gradients(f(*inputs), inputs, unconnected_gradients="zero"))


PLACES = {place.__name__: place for place in (eager, in_function, around_function, in_graph)}
ROUTES = [(mode, place) for place in PLACES for mode in MODES]


def derivatives(mode, place, f, xs, ts):
    """Take one route: names of a mode and a place, a function of tensors, arrays and tangents."""
    with np.errstate(all="ignore"):
        return list(map(np.asarray, PLACES[place](MODES[mode], f, xs, ts)))
