"""Ops that plans run as what they are declared to be made of."""

import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape import nn
from cytape.errors import GraphError
from cytape.graph.passes import optimise
from cytape.graph.passes.composites import decomposed
from cytape.graph.run.plan import Plan
from cytape.ops.engine.op_kinds import general, linear
from tests.cases import each
from tests.graph.passes.graphs import GraphWithControls, check_same, names, subgraph_of

RNG = np.random.default_rng(0)
COMPOSITES = {
    "relu": nn.relu,
    "softmax": nn.softmax,
    "softmax of rows": lambda x: nn.softmax(x, axis=0),
    "log_softmax": nn.log_softmax,
    "logsumexp": nn.logsumexp,
    "logsumexp of rows": lambda x: nn.logsumexp(x, axis=0, keepdims=True),
    "logsumexp of columns": lambda x: nn.logsumexp(x, axis=-1),
    "var": cnp.var,
    "var of rows": lambda x: cnp.var(x, axis=0, ddof=1, keepdims=True),
    "std": cnp.std,
    "std of columns": lambda x: cnp.std(x, axis=-1, ddof=1.5),
    "norm": cnp.linalg.norm,
    "norm of columns": lambda x: cnp.linalg.norm(x, axis=-1),
    "norm of all, kept": lambda x: cnp.linalg.norm(x, axis=(0, 1), keepdims=True),
    "vector_norm": lambda x: cnp.linalg.vector_norm(x, axis=0),
    "norm of another order": lambda x: cnp.linalg.norm(x, 2.5, axis=-1, keepdims=True),
}


@each(dtype=[np.float64, np.float32], name=COMPOSITES)
def test_they_compute_the_same_without_python(name, dtype):
    x = RNG.normal(size=(5, 7)).astype(dtype)
    subgraph = subgraph_of(COMPOSITES[name], x)
    plan = Plan(optimise(subgraph))
    assert plan.n_calls == 0 < Plan(subgraph).n_calls
    [result], expected = plan.run([x]), COMPOSITES[name](x)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_differences_of_many_elements_need_no_python():
    x = RNG.normal(size=(60, 50))
    subgraph = subgraph_of(lambda x: cnp.diff(x, axis=0), x)
    plan = Plan(optimise(subgraph))
    assert plan.n_calls == 0 < Plan(subgraph).n_calls
    np.testing.assert_array_equal(plan.run([x])[0], np.diff(x, axis=0))


@each("name", COMPOSITES)
@each("row", [
    [np.inf, 1.0, -np.inf], [-np.inf] * 3, [np.nan, 1.0, 2.0], [np.inf] * 3, [0.0] * 3,
    [1e300, -1e300, 1e300], [-0.0, 5e-324, 0.0]], ids=str)  # fmt: skip
def test_special_values_are_the_same(name, row):
    x = np.array([row, [1.0, 2.0, 3.0]])
    with np.errstate(all="ignore"):
        [result] = Plan(optimise(subgraph_of(COMPOSITES[name], x))).run([x])
        np.testing.assert_array_equal(result, COMPOSITES[name](x))


@each("x", [
    np.array([1.0, np.inf]), np.array([-np.inf] * 2), np.array([1e200, 2.0]),
    np.array([0.0, 0.0])], ids=str)  # fmt: skip
@each("name", [name for name in COMPOSITES if " " not in name])
def test_warnings_are_the_same(name, x):
    def caught(run):
        with warnings.catch_warnings(record=True) as found, np.errstate(all="warn", under="ignore"):
            warnings.simplefilter("always")
            run()
        return {str(warning.message).partition(" encountered")[0] for warning in found}

    plan = Plan(optimise(subgraph_of(COMPOSITES[name], x)))
    assert caught(lambda: plan.run([x])) == caught(lambda: COMPOSITES[name](x))


@each("function", [
    lambda x: cnp.var(x, ddof=4), lambda x: cnp.var(x, dtype=np.float64)])  # fmt: skip
def test_ops_without_composition_are_called(function):
    x = np.arange(4, dtype=np.float32)
    subgraph = subgraph_of(function, x)
    assert names(decomposed(subgraph)) == names(subgraph)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_same(subgraph, decomposed(subgraph), [x])


@each("x", [
    RNG.normal(size=4).astype(np.float16), RNG.normal(size=4) + 1j, np.arange(4), np.zeros(0)],
    ids=lambda x: f"{x.dtype}-{x.size}")  # fmt: skip
def test_other_dtypes_and_nothing_at_all_are_left_to_numpy(x):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        [result] = Plan(optimise(subgraph_of(cnp.var, x))).run([x])
        np.testing.assert_array_equal(result, np.var(x))


def test_common_subexpressions_are_computed_once():
    found = names(decomposed(subgraph_of(lambda x: nn.softmax(x) + nn.log_softmax(x), np.ones(3))))
    assert found["Max"] == found["Exp"] == found["Sum"] == 1


def test_operations_stay_where_they_were_built():
    before = subgraph_of(nn.softmax, np.ones(3))
    after = decomposed(before).graph
    there = before.graph.location_of(before.graph.node_of(before.fetches[0]))
    assert there is not None
    assert {after.location_of(node) for node in range(1, after.n_nodes)} == {there}


def test_users_may_declare_what_their_ops_are_made_of():
    def forward(x, y, *, factor):
        calls.append(1)
        return factor * x + y

    calls = []
    axpy = linear(
        "DeclaredAxpy", forward, lambda op, g: (op.attrs["factor"] * g, g),
        composition=lambda x, y, *, factor: x * factor + y)
    f = cytape.function(lambda x, y: cytape.grad(
        lambda x, y: cnp.sum(axpy(x, y, factor=2.0) ** 2))(x, y))
    x = np.arange(3.0)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, x), 12 * x)
        n_calls = len(calls)
    f(x, x)
    assert len(calls) == n_calls


def test_a_composition_of_another_shape_is_an_error():
    wrong = general("DeclaredWrong", lambda x: x + 1, composition=lambda x: cnp.sum(x))
    subgraph = subgraph_of(wrong, np.ones(3))
    with pytest.raises(GraphError, match="'DeclaredWrong' has the shape"):
        optimise(subgraph)


def test_nodes_that_others_wait_for_stay():
    graph = GraphWithControls()

    def function(x):
        graph.after(nn.softmax(x))
        return nn.softmax(x * 2.0)

    subgraph = subgraph_of(function, np.arange(3.0), graph=graph)
    assert names(decomposed(subgraph))["Softmax"] == 2
    check_same(subgraph, decomposed(subgraph), [np.arange(3.0)])


def test_large_means_are_sums_of_what_is_fused():
    x = np.random.default_rng(0).normal(size=20_000)
    mean = cytape.function(lambda x: np.mean(np.exp(x)))
    for _ in range(2):
        found = mean(x)
    np.testing.assert_allclose(found, np.mean(np.exp(x)), 1e-14)
    counts = names(optimise(mean.get_concrete_function(x).executable.subgraph))
    assert counts["Fused"] == 1 and "Mean" not in counts and "Sum" not in counts
