"""Lists of what backward passes keep."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from cytape.graph.checkpoint.saved_values import SavedValues, saved_values
from cytape.graph.tracing.functions import Function
from cytape.ops.python.checkpoint_policy import Policy
from tests.cases import each

X, W = np.ones((2, 3)), np.ones((3, 4))
NAMES = {"w": X, "rest": [X]}


def layer(x, w):
    h = cytape.checkpoint_name(cnp.sin(x @ w), "h")
    return cnp.sum(cnp.exp(cnp.tanh(h)))


def sources(f, *args, **kwargs):
    return [value.source for value in saved_values(f, *args, **kwargs)]


ENDS = ["argument x", "argument w"]
KEPT = {
    None: ENDS, "nothing": ENDS, "everything": [*ENDS, "MatMul", "Tanh", "Exp"],
    "dots": [*ENDS, "MatMul"], "h": [*ENDS, "Sin 'h'"], ("dots", "Exp"): [*ENDS, "MatMul", "Exp"],
    "-h": [*ENDS, "MatMul", "Tanh", "Exp"], "-dots": [*ENDS, "Tanh", "Exp"]}


@each(policy=KEPT, place=[
    lambda f: f, cytape.function, lambda f: lambda x, w: 2.0 * f(x, w),
    lambda f: cytape.function(lambda x, w: cytape.function(f)(x, w))])
def test_by_policies(place, policy):
    assert sources(place(cytape.checkpoint(layer, policy=policy)), X, W) == KEPT[policy]


@each("policy", ["everything", "dots", "h", "-h"])
def test_it_is_what_a_call_keeps(policy):
    f = Function(layer, checkpoints=Policy(policy))
    x, w = cytape.constant(X), cytape.constant(W)
    with cytape.GradientTape() as tape:
        tape.watch([x, w])
        f(x, w)
    trace = f.get_concrete_function(x, w)
    [derivatives] = trace.derivatives.values()
    kept = [trace.graph.ops[trace.graph.node_of(symbol)].name for symbol in derivatives.saved]
    assert sorted(kept) == sorted(source.partition(" ")[0] for source in KEPT[policy][2:])


def test_without_a_policy_it_is_what_the_gradient_reads():
    assert sources(layer, X, W) == KEPT["everything"]
    assert sources(cytape.function(layer, checkpoints=["MatMul"]), X, W) == KEPT["dots"]
    assert sources(cytape.recompute_grad(layer), X, W) == KEPT["nothing"]


def test_arguments_by_their_names():
    def f(a, *rest, k=3, **named):
        return cnp.sum(a["w"] * a["rest"][0] * rest[0] * rest[1] * named["z"] ** k)

    found = sources(f, NAMES, X, X, z=X)
    assert found[:5] == [
        "argument a['rest'][0]", "argument a['w']", "argument rest[0]", "argument rest[1]",
        "argument z"]
    assert sources(np.sin, X) in (["argument x"], ["argument args[0]"])


def test_variables_tensors_from_outside_and_drawn_masks():
    v, c = cytape.Variable(W, name="weights"), cytape.constant(W.T)
    found = saved_values(cytape.checkpoint(lambda x: cnp.sum(cytape.nn.dropout(x @ v, 0.5) @ c)), X)
    assert {value.source for value in found} >= {"variable weights", "a tensor from outside"}
    assert [value.shape for value in found if value.location is not None] == [(2, 4)]


def test_a_table():
    found = saved_values(cytape.checkpoint(layer, policy="h"), X, W)
    assert isinstance(found, SavedValues) and found.nbytes == 8 * (6 + 12 + 8)
    value = found[2]
    assert (value.shape, value.dtype, value.nbytes) == ((2, 4), np.float64, 64)
    file, line, function = value.location
    assert file == __file__ and function == "layer"
    assert repr(found).splitlines() == [
        "3 values, 208 bytes", "float64  (2, 3)  argument x", "float64  (3, 4)  argument w",
        f"float64  (2, 4)  Sin 'h', {file}:{line} in layer"]
    assert repr(saved_values(lambda x: cnp.sum(x), X)) == "0 values, 0 bytes"


def test_in_a_trace_extents_may_be_unknown():
    tables = []

    @cytape.function(input_signature=[cytape.Spec.of((None,), float)])
    def f(x):
        tables.append(saved_values(np.sin, x))
        return x

    f(np.ones(3))
    [table] = tables
    assert table.nbytes is None and "(None,)" in repr(table) and "unknown bytes" in repr(table)


def test_functions_that_need_values_cannot_be_traced():
    with pytest.raises(SymbolicTensorError):
        saved_values(lambda x: x if x[0] > 0 else -x, np.ones(3))
    with pytest.raises(TypeError, match="argument"):
        saved_values(layer, X)
    with pytest.raises(TypeError, match="takes a function, got int: 3"):
        saved_values(3, X)


def test_numbers_count_in_the_first_argument():
    def f(p, k=1.0):
        return cnp.sin(p) * k if k > 0.0 else p

    for number in 2.0, np.float64(2.0):
        assert sources(f, number, 3.0) == ["argument p"]
    assert saved_values(f, np.float32(2.0), 3.0).nbytes == 4
    assert sources(lambda p: cnp.sin(p["a"]) * p["b"][0], {"a": 1.0, "b": [2.0]}) == [
        "argument p['a']", "argument p['b'][0]", "Sin"]
    assert sources(lambda n, x: cnp.sin(x) ** n, 2, X)[:1] == ["argument x"]


def looped(x):
    def step(i, y):
        for _ in range(3):
            y = cnp.tanh(y) * 1.01
        return i + 1, y

    return cnp.sum(cytape.while_loop(lambda i, y: i < 50, step, (cytape.constant(0), x))[1])


@each("place", [lambda f: f, cytape.function])
def test_values_kept_by_loops_for_all_iterations(place):
    """Three results of tanh of each: so much do they take, see `test_loop_memory`."""
    found = cytape.saved_values(place(looped), X)
    of_loops = [value for value in found if value.shape == (None, *X.shape)]
    assert [value.source for value in of_loops] == ["While"] * 3
    assert [value.location for value in of_loops] == [None] * 3
    assert found.nbytes is None and sum(value.nbytes for value in found if value.nbytes) == (
        X.nbytes + np.dtype(np.int64).itemsize)  # the argument, and how many iterations there were
    assert repr(found).startswith("5 values, unknown bytes")


def test_values_kept_by_nested_loops():
    def nested(x):
        return cytape.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, y * looped(y)), (cytape.constant(0), x))[1]

    found = [value for value in cytape.saved_values(nested, X) if value.source == "While"]
    assert len([value for value in found if value.shape and None in value.shape[:1]]) >= 3


def test_values_kept_by_branches():
    def branched(x):
        return cytape.cond(
            cnp.sum(x) > 0, lambda: cnp.sum(cnp.tanh(cnp.exp(x))), lambda: cnp.sum(x))

    found = cytape.saved_values(branched, X)
    assert [(value.source, value.shape) for value in found] == [
        ("argument x", X.shape), ("Greater", ()), ("Cond", X.shape), ("Cond", X.shape)]


def test_loops_and_branches_that_are_computed_again_keep_nothing():
    for f in looped, lambda x: cytape.cond(cnp.sum(x) > 0, lambda: looped(x), lambda: cnp.sum(x)):
        found = cytape.saved_values(cytape.recompute_grad(f), X)
        assert [(value.source, value.shape) for value in found] == [("argument x", X.shape)]
