"""recompute_grad in graphs and traced functions: computed again, and only then."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.bodies import nested, traced
from tests.cases import each
from tests.graph.checkpoint.chains import count, same, traces_of_runs
from tests.ways import dense


def network(wrap, n_layers=36, n_blocks=6, width=64):
    rng = np.random.RandomState(0)
    with cytape.Graph().as_default() as graph:
        h = cytape.constant(rng.standard_normal((width, width)))
        weights = [cytape.Variable(rng.standard_normal((width, width)) / width**0.5)
                   for _ in range(n_layers)]
        for i in range(0, n_layers, n_layers // n_blocks):
            def block(h, own=tuple(weights[i : i + n_layers // n_blocks])):
                for w in own:
                    h = cnp.tanh(h @ w)
                return h

            h = wrap(block)(h)
        found = cytape.gradients(cnp.sum(h * h), weights[:1])
    return graph, found


def test_no_pass_undoes_it():
    """Values of variables count, so what is kept is the weights, six inputs and a block."""
    _, (plain, *_) = traces_of_runs(*network(lambda f: f))
    (wanted, *_), _ = traces_of_runs(*network(lambda f: f))
    results, traces = traces_of_runs(*network(cytape.recompute_grad))
    assert all(same(result, wanted) for result in results)
    unit = 64 * 64 * 8
    assert plain.peak_bytes >= (36 + 36) * unit
    assert all(trace.peak_bytes <= (36 + 6 + 6 + 3) * unit for trace in traces)
    assert traces[0].peak_bytes == pytest.approx(traces[2].peak_bytes, rel=0.05)
    assert {count(trace, "MatMul") for trace in traces} == {count(plain, "MatMul") + 36}


def test_variables_that_it_assigns_and_then_reads():
    v = cytape.Variable(2.0)

    def block(y):
        v.assign(v * 3.0)
        return y * v * v

    @cytape.function
    def slope(x):
        tape, y = ways.taped(lambda x: cytape.recompute_grad(block)(x), x)
        return y, tape.gradient(y, x)

    y, dx = slope(cytape.constant(1.0))
    assert (float(y), float(dx), float(v)) == (36.0, 36.0, 6.0)


def test_derivatives_of_any_order_and_kind():
    def recomputed(x):
        s, inner = cnp.sin(x), cytape.recompute_grad(lambda y: cnp.tanh(y * x))
        return cytape.recompute_grad(lambda y: cnp.sin(inner(y)) * y * s)(x)

    ways.check(lambda x: cnp.sum(recomputed(x)),
               lambda x: cnp.sum(cnp.sin(cnp.tanh(x * x)) * x * cnp.sin(x)),
               np.linspace(0.1, 0.9, 5))


def test_structures_arguments_and_what_is_no_tensor():
    @cytape.function
    def f(x):
        found = cytape.recompute_grad(
            lambda x, scale, *, by: {"y": x * scale * by, "x": x, "n": 3, "none": None})(
                x, np.array([1.0, 2.0]), by=2.0)
        assert (found["n"], found["none"]) == (3, None)
        return found["y"], found["x"], ways.gradient(
            lambda x: cytape.recompute_grad(lambda x: (x, [cnp.sum(x * x)]))(x), x)

    y, x, dx = f(cytape.constant(np.ones(2)))
    np.testing.assert_array_equal(y, [2.0, 4.0])
    np.testing.assert_array_equal(x, [1.0, 1.0])
    np.testing.assert_array_equal(dx, [3.0, 3.0])


def test_nothing_to_differentiate():
    @cytape.function
    def f(x):
        with ways.watching(x) as tape:
            y = cytape.recompute_grad(lambda x: cnp.floor(x) > 2)(x)
            z = cytape.recompute_grad(lambda: cytape.constant(3.0))()
            nothing = cytape.recompute_grad(lambda: None)()
        assert nothing is None
        return y, tape.gradient(z, x, unconnected_gradients="zero")

    y, dx = f(cytape.constant([1.0, 3.0]))
    assert y.numpy().tolist() == [False, True] and not dx.numpy().any()


def test_sparse_gradients():
    table = cytape.Variable(np.arange(12.0).reshape(4, 3))

    @cytape.function
    def gradient():
        with cytape.GradientTape() as tape:
            y = cytape.recompute_grad(
                lambda: cnp.sum(cnp.take(table, np.array([1, 3, 1]), axis=0) ** 2))()
        return tape.gradient(y, table)

    found = gradient()
    if isinstance(found, cytape.IndexedSlices):
        found = found.to_tensor()
    wanted = np.zeros((4, 3))
    np.add.at(wanted, [1, 3, 1], 2 * np.arange(12.0).reshape(4, 3)[[1, 3, 1]])
    np.testing.assert_array_equal(found, wanted)


# ---- wherever it is called

WRAPS = {
    "recompute_grad": cytape.recompute_grad,
    "policy": lambda f: cytape.checkpoint(f, policy=["Tanh"]),
    "function": lambda f: cytape.function(f, checkpoints=["Tanh"]),
    "nested": lambda f: cytape.recompute_grad(cytape.checkpoint(f, policy="dots"))}


PLACES = {"eager": lambda f: f, "functions": nested,
          **traced("itself", "cond", "while_loop", "foldl")}


@each(place=PLACES.values(), wrap=[*WRAPS.values(), cytape.checkpoint(policy=["drawn"])])
def test_masks_assignments_and_closures_wherever_it_is_called(wrap, place):
    counter = cytape.Variable(0.0)
    x, c = cytape.constant(np.linspace(0.5, 1.0, 64)), cytape.constant(np.full(64, 3.0))
    v = cytape.Variable(np.full(64, 2.0))

    def block(y):
        counter.assign_add(1.0)
        return cytape.checkpoint_name(cytape.nn.dropout(cnp.tanh(y), 0.5), "drawn") * v * c

    def gradients():
        tape, y = ways.taped(lambda x, c: place(wrap(block))(x), x, c)
        return [y, *map(dense, tape.gradient(y, [x, v, c]))]

    for n_calls, called in enumerate((gradients, cytape.function(gradients)), 1):
        y, dx, dv, dc = (found.numpy() for found in called())
        assert float(counter) == n_calls
        mask = y != 0
        assert 0 < mask.sum() < 64
        np.testing.assert_allclose(dx, 6.0 * (1 - np.tanh(x.numpy()) ** 2) * 2.0 * mask, rtol=1e-12)
        np.testing.assert_allclose(dv, y / 2.0)
        np.testing.assert_allclose(dc, y / 3.0)


def deep(wrap):
    def segment(x):
        for _ in range(6):
            x = cnp.tanh(x) * 1.1
        return x

    def f(x):
        for _ in range(6):
            x = wrap(segment)(x)
        return x

    return f


@each("place", [lambda f: f, cytape.function, nested, PLACES["cond"]])
def test_peaks_are_small_wherever_it_is_called(place):
    x = np.linspace(0.1, 0.7, 4000)
    peaks = {}
    for name, wrap in {"plain": lambda f: f, **WRAPS}.items():
        with cytape.Graph().as_default() as graph:
            p = cytape.placeholder("float64", x.shape)
            found = cytape.gradients(place(deep(wrap))(p), p)
        _, traces = traces_of_runs(graph, found, {p: x})
        # The first run, of the graph as it was built, may hold a number more that others know.
        assert np.ptp([trace.peak_bytes for trace in traces]) <= x.itemsize
        peaks[name] = traces[0].peak_bytes / x.nbytes
    most = 14.1 if place is PLACES["cond"] else 12
    assert peaks["plain"] >= 36 and peaks["recompute_grad"] <= most and peaks["nested"] <= most
