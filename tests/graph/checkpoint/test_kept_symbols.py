"""Policies: what checkpointed calls keep for their derivatives, wherever they are made."""

import functools

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.checkpoint.kept_symbols import named_as, root_of, symbols_of
from cytape.ops.python.checkpoint_policy import Policy
from tests import ways
from tests.bodies import branch, nested
from tests.cases import each, sampled
from tests.graph.checkpoint.chains import count, traces_of_runs

POLICIES = [None, "nothing", "everything", "dots", ["a"], ["a", "b"], ["-a"], ["Exp", "-b"],
            ["dots", "a"], "b"]
X = np.linspace(-0.5, 0.7, 12).reshape(3, 4)
W = np.linspace(0.3, -0.4, 16).reshape(4, 4)


def block(x, w):
    h = cytape.checkpoint_name(cnp.sin(x @ w), "a")
    h = cytape.checkpoint_name(cnp.exp(cnp.tanh(h) @ w), "b")
    return cnp.tanh(h * x) @ w


PLACES = {
    "eager": lambda f: f,
    "function": lambda f: cytape.function(lambda x, w: f(x, w) * 1.0),
    "branch": lambda f: cytape.function(branch(f)),
    "loop": lambda f: cytape.function(lambda x, w: cytape.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, f(y, w)), (np.array(0), x))[1]),
    "functions": lambda f: nested(lambda x, w: f(f(x, w), w)),
}


def derivatives(f):
    xs, ts = [cytape.constant(X), cytape.Variable(W)], [W[:3], W]
    return [y for mode in (ways.value, *ways.MODES.values()) for y in mode(f, xs, ts)]


@functools.cache
def expected_at(place):
    return derivatives(PLACES[place](block))


@sampled(4, place=PLACES, policy=POLICIES)
def test_derivatives_are_those_of_the_function(place, policy):
    found = derivatives(PLACES[place](cytape.checkpoint(block, policy=policy)))
    for one, other in zip(found, expected_at(place), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-14)


@each("policy", POLICIES, ids=str)
def test_in_a_graph_gradients_are_the_same_to_the_bit(policy):
    results = []
    for f in (block, cytape.checkpoint(block, policy=policy)):
        with cytape.Graph().as_default() as graph:
            x, w = cytape.placeholder("float64", X.shape), cytape.placeholder("float64", W.shape)
            y = f(x, w)
            dx, dw = cytape.gradients(y, [x, w])
            second = cytape.gradients(cnp.sum(dx * dx) + cnp.sum(dw), [x, w])
        session = cytape.Session(graph)
        results.append([session.run([y, dx, dw, *second], {x: X, w: W}) for _ in range(3)])
    for found, wanted in zip(*results, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(found[:3], wanted[:3], strict=True))
        for a, b in zip(found[3:], wanted[3:], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


@each("policy, again", [
    (None, {"MatMul": 2, "Sin": 1, "Exp": 1}), ("dots", {"Sin": 1, "Exp": 1}),
    (["a"], {"MatMul": 2, "Exp": 1}), (["b"], {"MatMul": 1, "Sin": 1}), (["a", "b"], {"MatMul": 1}),
    (["-b"], {"Exp": 1}), (["-a", "-dots"], {"MatMul": 1}), (["Exp", "dots"], {"Sin": 1})], ids=str)
def test_kept_values_are_not_computed_again(policy, again):
    counts = []
    for f in (cytape.checkpoint(block, policy=kept) for kept in ("everything", policy)):
        with cytape.Graph().as_default() as graph:
            x, w = cytape.placeholder("float64", X.shape), cytape.placeholder("float64", W.shape)
            y = f(x, w)
            fetches = [y, *cytape.gradients(y, [x, w])]
        _, traces = traces_of_runs(graph, fetches, {x: X, w: W})
        assert len({count(trace, "MatMul") for trace in traces}) == 1
        counts.append({name: count(traces[0], name) for name in ("MatMul", "Sin", "Exp")})
    least, found = counts
    assert (least["Sin"], least["Exp"]) == (1, 1)
    assert {name: found[name] - n for name, n in least.items() if found[name] != n} == again


@each("place", PLACES.values())
@each("policy, said", [
    (["c"], "there is no 'c' in block. Names.*: 'a', 'b'. Op types: .*'Exp', 'MatMul'"),
    (["a", "-Sinh"], "there is no 'Sinh'"), (["Identity"], "there is no 'Identity'")], ids=str)
def test_a_name_that_matches_nothing_raises_with_the_valid_names(place, policy, said):
    f = place(cytape.checkpoint(block, policy=policy))
    with pytest.raises(ValueError, match=said), cytape.GradientTape() as tape:
        x = cytape.constant(X)
        tape.watch(x)
        f(x, cytape.constant(W))


def test_nothing_is_kept_and_no_error_raised_without_recorders():
    calls = []

    @cytape.checkpoint(policy=["c"])
    def f(x):
        calls.append(type(x))
        return cnp.sin(x)

    assert f(1.0) == np.sin(1.0) and f(1.0) == np.sin(1.0)
    assert calls == [float, float]


def test_each_recorded_call_is_traced():
    calls = []

    @cytape.checkpoint(policy="dots")
    def f(x):
        calls.append(None)
        return cnp.sin(x)

    for value in (1.0, 2.0):
        assert cytape.grad(f)(cytape.constant(value)) == np.cos(value)
    assert len(calls) == 2


def test_operands_of_identities_are_named_and_kept():
    @cytape.function
    def f(x):
        return cytape.checkpoint_name(cytape.checkpoint_name(cnp.exp(x), "a"), "b")

    graph = f.get_concrete_function(np.array(1.0)).graph
    [exp] = [symbol for symbol in range(graph.n_symbols)
             if graph.ops[graph.node_of(symbol)].name == "Exp"]
    assert named_as(graph) == {exp: ["a", "b"]}
    assert {root_of(graph, symbol) for symbol in range(exp, graph.n_symbols)} == {exp}
    nodes = range(graph.n_nodes)
    for policy in ("a", ["b"], ["Exp"], "-Multiply"):
        if policy == "-Multiply":
            with pytest.raises(ValueError, match="no 'Multiply'"):
                symbols_of(graph, nodes, Policy(policy))
        else:
            assert symbols_of(graph, nodes, Policy(policy)) == [exp]
