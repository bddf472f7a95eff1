"""Graphs for the tests of passes, hand-made and random, and checks of the rewritten graphs."""

from collections import Counter

import numpy as np
from hypothesis import strategies as st

import cytape.numpy as cnp
from cytape.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes.fusion import fused
from cytape.graph.passes.rewriting import without_dead_code
from cytape.graph.passes.simplify import simplified
from cytape.graph.run.interpreter import run
from tests import ways
from tests.graph.plans import nudged, spread


def simplest(subgraph):
    """Return a subgraph as simple as one pass makes it, without dead nodes."""
    return without_dead_code(simplified(subgraph))


class GraphWithControls(Graph):
    """A graph in which what follows can be made to wait."""

    def after(self, tensor):
        """Build what follows so that it waits for a tensor's node; return the context before."""
        return self.enter_context(
            self.context_with(controls=(self.node_of(self.symbol_of(tensor)),)))


def subgraph_of(function, *arrays, keep=(), graph=None):
    """Return the subgraph of a function of arrays; with its gradients if it says so."""
    graph = Graph() if graph is None else graph
    with graph.as_default():
        inputs = [graph.placeholder(x.dtype, x.shape) for x in arrays]
        results = function(*inputs)
    if not isinstance(results, (list, tuple)):
        results = [results]
    feeds, fetches, kept = (
        tuple(graph.symbol_of(t) for t in tensors) for tensors in (inputs, results, keep))
    return Subgraph(graph, feeds, fetches, tuple(graph.node_of(symbol) for symbol in kept))


def with_gradients(function):
    """Return a function of symbolic tensors that returns a value and its gradients."""

    def value_and_gradients(*inputs):
        tape, value = ways.taped(lambda inputs: function(*inputs), inputs)
        gradients = tape.gradient(value, inputs)
        return [value, *(g for g in gradients if g is not None)]

    return value_and_gradients


def names(subgraph):
    """Count the ops of a subgraph, but for placeholders and constants."""
    counts = Counter(op.name for op in subgraph.graph.ops)
    return {name: n for name, n in counts.items() if name not in ("Placeholder", "Constant")}


def results(subgraph, arrays):
    with np.errstate(all="ignore"):
        return run(
            subgraph.graph, subgraph.fetches,
            dict(zip(subgraph.feeds, arrays, strict=True)),
            subgraph.keep)


def check_same(before, after, arrays, rtol=0.0, any_condition=False):
    """Check that two subgraphs compute the same from the same.

    Of programs of any condition, what another rounding of the arrays changes is allowed.
    """
    expected = results(before, arrays)
    rounded = results(before, [nudged(x) for x in arrays]) if any_condition else expected
    for x, y, z in zip(expected, results(after, arrays), rounded, strict=True):
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        allowed = 8 * spread(x, z) if any_condition else 0.0
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol + allowed)


def fused_groups(function, *arrays, rtol=0.0, least=65):
    """Fuse a function of arrays; return the ops that remain, and how many each fused one has."""
    before = subgraph_of(function, *arrays)
    after = fused(before, least)
    check_same(before, after, arrays, rtol)
    again = fused(after, least)
    assert names(again) == names(after)
    sizes = [len(op.calls) for op in after.graph.ops if op.name == "Fused"]
    counts = names(after)
    counts.pop("Fused", None)
    return counts, sizes


UNARY = [
    cnp.sin, cnp.cos, cnp.tanh, cnp.negative, cnp.exp, cnp.square, lambda x: x * 1.0,
    lambda x: cnp.negative(-x), lambda x: x - 0.0, lambda x: cnp.where(x > 0.5, x, 0.0),
    lambda x: cnp.sum(x),
    lambda x: x[..., :33] if x.ndim and x.shape[-1] > 33 else x,
    lambda x: 0.5 * x, lambda x: cnp.reshape(x, x.shape),
    lambda x: cnp.sum(x, axis=0) if x.ndim else x,
]
BINARY = [
    cnp.add, cnp.multiply, cnp.subtract, cnp.maximum,
    lambda x, y: cnp.where((x > y) | (x < 0.1), x, y),
]


@st.composite
def programs(draw):
    """Draw a program on two vectors and a matrix, as a function, and arrays for it."""
    seed = draw(st.integers(0, 2**32 - 1))
    dtype = draw(st.sampled_from([np.float64, np.float64, np.float32]))
    n_steps = draw(st.integers(1, 25))
    steps = [
        (
            draw(st.booleans()), draw(st.integers(0, 99)), draw(st.integers(0, 99)),
            draw(st.integers(0, 99)))
        for _ in range(n_steps)
    ]
    differentiate = draw(st.booleans())
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, shape).astype(dtype) for shape in [(70,), (3, 70), ()]]

    def program(*inputs):
        values = list(inputs)
        for binary, which, i, j in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            if not binary:
                values.append(UNARY[which % len(UNARY)](x))
            elif x.shape[-1:] == y.shape[-1:] or not (x.ndim and y.ndim):
                values.append(BINARY[which % len(BINARY)](x, y))
        values = [cnp.tanh(x) for x in values[3:]] or values
        if not differentiate:
            return [*values, values[0]]
        return sum(cnp.sum(x) for x in values)

    return (with_gradients(program) if differentiate else program), arrays
