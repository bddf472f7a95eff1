"""Traced functions whose calls keep checkpoints only."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes import optimise
from cytape.graph.run.plan import Plan
from tests import ways
from tests.cases import each

WIDTH, N_LAYERS = 48, 49
WEIGHTS = [cytape.Variable(np.random.RandomState(i).standard_normal((WIDTH, WIDTH)) / WIDTH**0.5)
           for i in range(N_LAYERS)]
X = cytape.constant(np.random.RandomState(99).standard_normal((WIDTH, WIDTH)))


def network(x):
    h = x
    for i, w in enumerate(WEIGHTS):
        h = cnp.tanh(h @ w)
        if isinstance(h, cytape.Tensor) and h.graph is not None:
            h.graph.give_name(h, f"h{i:02d}")
            if i in (16, 32):
                h.graph.add_to_collection("checkpoints", h)
    return cnp.sum(h * h)


def gradient(f, x=X):
    tape, y = ways.taped(f, x)
    return [found.numpy() for found in tape.gradient(y, [x, *WEIGHTS])]


def kept_and_peak(f):
    """Return the bytes that a call keeps, and the most that its backward pass takes besides."""
    [derivatives] = f.get_concrete_function(X).derivatives.values()
    [backward] = derivatives._traces._backward_from.values()
    graph = f.get_concrete_function(X).graph
    kept = sum(graph.spec_of(symbol).nbytes for symbol in derivatives.saved)
    subgraph = Subgraph(backward.graph, backward.input_symbols, backward.output_symbols, ())
    return kept, max(Plan(each).peak_bytes for each in (subgraph, optimise(subgraph)))


@each("checkpoints, n_kept", [
    ("memory", 7), ("speed", N_LAYERS), ("collection", 2), (["h1", "h3"], 20), (["h24"], 1)])
def test_equal_to_plain_gradients(checkpoints, n_kept):
    wanted = gradient(cytape.function(network))
    f = cytape.function(network, checkpoints=checkpoints)
    for _ in range(3):
        found = gradient(f)
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    kept, _ = kept_and_peak(f)
    assert abs(kept - n_kept * 8 * WIDTH**2) <= 8 * WIDTH**2  # the loss reads the last activation


def test_a_call_keeps_less_and_its_backward_pass_takes_little():
    plain, f = cytape.function(network), cytape.function(network, checkpoints="memory")
    gradient(plain), gradient(f)
    unit = 8 * WIDTH**2
    all_kept, plain_peak = kept_and_peak(plain)
    kept, peak = kept_and_peak(f)
    assert all_kept >= N_LAYERS * unit
    assert kept + peak - plain_peak <= 2 * 9 * unit


def test_unknown_extents():
    f = cytape.function(
        network, checkpoints=["h1"], input_signature=[cytape.Spec.of((None, WIDTH), float)])
    for n in (1, 5, 5, 2):
        x = cytape.constant(X.numpy()[:n])
        wanted = gradient(cytape.function(network), x)
        for a, b in zip(gradient(f, x), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@each("mode", ways.ALL_MODES.values())
def test_derivatives_of_any_order_and_kind(mode):
    def f(x):
        for i in range(8):
            x = cnp.tanh(x) * 1.1
            x.graph.give_name(x, f"h{i}")
        return x

    x, t = cytape.constant(np.linspace(0.1, 0.9, 5)), np.linspace(1.0, 2.0, 5)
    found, wanted = (mode(cytape.function(f, checkpoints=checkpoints), [x], [t])
                     for checkpoints in (["h2", "h5"], None))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_bridges_are_computed_again_a_bounded_number_of_times():
    def f(x):
        down = [x]
        for i in range(12):
            down.append(cnp.tanh(down[-1]))
            down[-1].graph.give_name(down[-1], f"d{i:02d}")
        h = down[-1]
        for i, other in enumerate(reversed(down[1:-1])):
            h = cnp.tanh(h) * other
            h.graph.give_name(h, f"u{i:02d}")
        return h

    x = cytape.constant(np.linspace(0.1, 0.9, 50))
    results = []
    for checkpoints in (None, ["d03", "d07", "u03", "u07"]):
        called = cytape.function(f, checkpoints=checkpoints)
        for _ in range(2):
            results.append(ways.gradient(called, x).numpy())
    assert all(np.array_equal(result, results[0]) for result in results)
    [derivatives] = called.get_concrete_function(x).derivatives.values()
    [backward] = derivatives._traces._backward_from.values()
    n = sum(op.type == "Tanh" for op in backward.graph.get_operations())
    assert 18 <= n <= 3 * 23


def test_inside_another_function_it_is_a_part_of_that():
    f = cytape.function(network, checkpoints="memory")
    outer = cytape.function(lambda x: f(x) * 1.0)
    wanted = gradient(cytape.function(network))
    assert all(np.array_equal(a, b) for a, b in zip(gradient(outer), wanted, strict=True))


@each("checkpoints, error, said", [
    ("fast", ValueError, "'fast' is unknown"),
    (3, TypeError, "a string or a list of strings, got int: 3"),
    (("h1",), TypeError, "got tuple"), ([X], TypeError, "parts of names"),
])
def test_an_invalid_choice_is_refused_at_once(checkpoints, error, said):
    with pytest.raises(error, match=said):
        cytape.function(network, checkpoints=checkpoints)


@each("checkpoints, said", [
    (["nothing"], "no checkpoint nodes"), ("collection", "no checkpoint nodes")])
def test_a_choice_of_nothing_is_an_error_for_who_asks_for_a_derivative(checkpoints, said):
    f = cytape.function(lambda x: cnp.tanh(cnp.tanh(x)), checkpoints=checkpoints)
    x = cytape.constant(np.ones(3))
    assert f(x).shape == (3,)
    with pytest.raises(ValueError, match=said), cytape.GradientTape() as tape:
        tape.watch(x)
        tape.gradient(f(x), x)


def test_a_gradient_of_its_own_needs_no_checkpoints():
    with pytest.raises(ValueError, match="not both"):
        cytape.function(network, checkpoints="memory", grad_func=lambda x, g: g)


def test_functions_without_derivative_need_no_checkpoints():
    f = cytape.function(lambda x: cnp.floor(x) > 1.0, checkpoints="memory")
    x = cytape.constant(np.ones(3))
    with ways.watching(x):
        assert f(x).shape == (3,)
