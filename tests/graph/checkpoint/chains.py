"""Graphs that the tests of this folder differentiate."""

import numpy as np

import cytape
from cytape.graph.sessions.run_trace import RunTrace

SIZE = 2000  # elements of a tensor: more than MIN_CHECKPOINT_NODE_SIZE, too few to be fused


def named(tensor, name):
    tensor.graph.give_name(tensor, name)
    return tensor


def chain(n, size=SIZE):
    """Return a00, a01 = tanh(a00), ...; a00 is what a variable holds."""
    with cytape.Graph().as_default():
        x = cytape.Variable(np.linspace(-1.0, 1.0, size))
        tensors = [cytape.identity(x, name="a00")]
        for i in range(1, n):
            tensors.append(named(np.tanh(tensors[-1]), f"a{i:02d}"))
    return tensors


def residual_chain(n, size=SIZE):
    """Return a00, a01 = a00 + tanh(a00), ..."""
    with cytape.Graph().as_default():
        x = cytape.Variable(np.linspace(-1.0, 1.0, size))
        tensors = [cytape.identity(x, name="a00")]
        for i in range(1, n):
            tensors.append(named(tensors[-1] + np.tanh(tensors[-1]), f"a{i:02d}"))
    return tensors


def mlp(n_layers, width=48, batch=40, seed=0):
    """Return the loss, the weights, and the activations of a network."""
    rng = np.random.RandomState(seed)
    with cytape.Graph().as_default():
        h = cytape.constant(rng.standard_normal((batch, width)))
        weights, layers = [], []
        for i in range(n_layers):
            w = cytape.Variable(rng.standard_normal((width, width)) / width**0.5, name=f"w{i}")
            h = named(np.tanh(h @ w), f"h{i}")
            weights.append(w)
            layers.append(h)
        loss = np.sum(h * h)
    return loss, weights, layers


def traces_of_runs(graph, fetches, feed_dict=None, n_runs=3):
    """Run something several times in a session; return the results and what each run took."""
    session, results, traces = cytape.Session(graph), [], []
    for _ in range(n_runs):
        trace = RunTrace()
        results.append(session.run(fetches, feed_dict, options=trace))
        traces.append(trace)
    return results, traces


def count(trace, op_type):
    return sum(event.op_type == op_type for event in trace.events)


def same(one, other):
    """Whether two lists of arrays, or None, are the same to the bit."""
    return len(one) == len(other) and all(
        a is b if a is None or b is None else
        np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(one, other, strict=True))
