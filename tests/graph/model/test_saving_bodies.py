"""Saving and loading graphs with branches and loops."""

import random
from typing import NamedTuple

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphFileError
from cytape.graph.model.encoding import MOST_NESTED
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes import optimise
from cytape.ops.engine.op_kinds import general

WEIGHTS = np.random.default_rng(0).normal(size=(3, 3)) / 3
ROWS = np.random.default_rng(1).normal(size=(6, 3))


def fed(graph):
    """Values for the placeholders of a graph, by name."""
    rng = np.random.default_rng(1)
    return {
        op.outputs[0].name: rng.normal(size=[extent or 2 for extent in op.outputs[0].shape])
        for op in graph.get_operations() if op.type == "Placeholder"
    }


def with_gradients(y, x):
    """Name a result, its first and its second derivative."""
    y = cytape.identity(y, name="y")
    [first] = cytape.gradients(y, x)
    first = cytape.identity(first, name="first")
    [second] = cytape.gradients(first * first, x)
    cytape.identity(first if second is None else second, name="second")


def a_branch(x):
    return cytape.cond(cnp.sum(x) > 0, lambda: cnp.sin(x), lambda: x**2)


def a_loop(x):
    [y] = cytape.while_loop(lambda v: cnp.sum(v**2) < 50, lambda v: [v * 1.5 + x], [x])
    return y


def a_loop_with_a_limit(x):
    w = cytape.constant(WEIGHTS)
    y, _ = cytape.while_loop(
        lambda v, i: i < 5, lambda v, i: (cnp.tanh(v @ w) + x, i + 1), (x, cytape.constant(0)),
        maximum_iterations=7)
    return y


def nested_loops(x):
    """Whose inner loop leaves rows of several lengths, with a branch in it."""
    def inner(u):
        return [cytape.cond(cnp.sum(u) > 1, lambda: cnp.sin(u) + x, lambda: u * 2.0 + 1.0)]

    def outer(v, i):
        [u] = cytape.while_loop(lambda u: cnp.sum(u**2) < 3.0, inner, [v], maximum_iterations=i + 1)
        return cnp.tanh(u), i + 1

    return cytape.while_loop(lambda v, i: i < 4, outer, (x, cytape.constant(0)))[0]


def a_loop_in_a_branch(x):
    scale = x * 2.0
    return cytape.cond(
        cnp.sum(x) < 100, lambda: a_loop_with_a_limit(cnp.sin(scale)), lambda: nested_loops(x))


def a_loop_over_slices(x):
    """Which reads rows of a constant, by an index that depends on the iteration."""
    rows = cytape.constant(ROWS)
    y, _ = cytape.while_loop(
        lambda v, i: i < 6, lambda v, i: (v * cytape.gather(rows, i) + x[..., ::-1], i + 1),
        (x, cytape.constant(0)))
    return y


def a_loop_with_checkpoints(x):
    return cytape.while_loop(
        lambda v, i: i < 9, lambda v, i: (cnp.sin(v) * x + cnp.tanh(v), i + 1),
        (x, cytape.constant(0)), checkpoints=3)[0]


def a_scan(x):
    return cytape.scan(lambda v, row: cnp.tanh(v + row), x, initializer=x[0] * 0.0)


def an_array_of_states(x):
    """Whose elements are the rows of an array, written and read in a loop and in a branch."""
    def step(i, found):
        before = found.read(i - 1) + found.read(i // 2)
        return i + 1, cytape.cond(
            i % 3 == 0, lambda: found, lambda: found.write(i, cnp.sin(before)))

    found = cytape.TensorArray("float64", size=200, element_shape=(2, 3)).write(0, x)
    return cytape.while_loop(lambda i, _: i < 200, step, (1, found))[1].stack()


def cases(x):
    n = cnp.sum(x > 0).astype("int64")
    return cytape.switch_case(
        n % 3, [lambda: cnp.sin(x), lambda: a_loop_with_a_limit(x), lambda: x**2])


PROGRAMS = [
    a_branch, a_loop, a_loop_with_a_limit, nested_loops, a_loop_in_a_branch, a_loop_over_slices,
    a_loop_with_checkpoints, a_scan, an_array_of_states, cases]


def graph_of(program, shape=(2, 3)):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", shape, name="x")
        with_gradients(program(x), x)
    return graph


def through_a_file(graph, tmp_path):
    graph.save(tmp_path / "graph")
    return cytape.Graph.load(tmp_path / "graph")


# ---- loaded bodies


@pytest.mark.parametrize("shape", [(2, 3), (None, 3)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_and_gradients_are_equal(program, shape, tmp_path):
    graph = graph_of(program, shape)
    new = through_a_file(graph, tmp_path)
    feeds = fed(graph)
    sessions = [cytape.Session(graph), cytape.Session(new)]
    for _ in range(3):  # as it is, then optimised
        for name in ("y:0", "first:0", "second:0"):
            expected, found = (session.run(name, feeds) for session in sessions)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_can_be_taken_after_loading(program, tmp_path):
    graph = graph_of(program)
    new = through_a_file(graph, tmp_path)
    feeds = fed(graph)
    y, x = new.get_tensor_by_name("y:0"), new.get_tensor_by_name("x:0")
    with new.as_default():
        [first] = cytape.gradients(y, x)
        [second] = cytape.gradients(first * first, x)
    expected = cytape.Session(graph).run(["first:0", "second:0"], feeds)
    found = cytape.Session(new).run([first, first if second is None else second], feeds)
    for result, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_graph_gives_the_same_file(program, tmp_path):
    graph_of(program).save(tmp_path / "first")
    graph_of(program).save(tmp_path / "second")
    cytape.Graph.load(tmp_path / "first").save(tmp_path / "again")
    content = (tmp_path / "first").read_bytes()
    assert (tmp_path / "second").read_bytes() == content
    assert (tmp_path / "again").read_bytes() == content


def bodies_of(graph):
    """The bodies that nodes of a graph run, and those in them."""
    found = []
    for attrs in graph.attrs:
        for value in attrs.values():
            for body in value if isinstance(value, tuple) else (value,):
                if isinstance(body, cytape.ConcreteFunction):
                    found += [body, *bodies_of(body.graph)]
    return found


def test_bodies_are_the_same(tmp_path):
    graph = graph_of(nested_loops, (None, 3))
    new = through_a_file(graph, tmp_path)
    assert new.listing() == graph.listing()
    pairs = list(zip(bodies_of(graph), bodies_of(new), strict=True))
    assert len(pairs) > 10
    for body, other in pairs:
        assert repr(other) == repr(body)
        assert other.graph.listing() == body.graph.listing()
        assert other.graph.finalized and other.captured_inputs == []


def test_a_body_that_several_nodes_run_is_one_again(tmp_path):
    graph = graph_of(nested_loops)
    new = through_a_file(graph, tmp_path)
    numbers = []
    for each in (graph, new):
        known = {}
        numbers.append([known.setdefault(id(body), len(known)) for body in bodies_of(each)])
    assert numbers[0] == numbers[1]
    assert len(set(numbers[0])) < len(numbers[0])


def test_a_loop_and_its_history_are_run_as_one(tmp_path):
    for graph in (first := graph_of(a_loop_with_a_limit), through_a_file(first, tmp_path)):
        histories = [b for b in bodies_of(graph) if b.history_of is not None]
        assert histories
        assert any(history.history_of in bodies_of(graph) for history in histories)
        y, gradient = (graph.symbol_of(graph.get_tensor_by_name(n)) for n in ("y:0", "first:0"))
        x = graph.symbol_of(graph.get_tensor_by_name("x:0"))
        rewritten = optimise(Subgraph(graph, (x,), (y, gradient))).graph
        assert [op.name for op in rewritten.ops].count("While") == 2


def test_a_constant_of_a_body_is_in_the_file_once(tmp_path):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (100,), name="x")
        w = np.full((100, 100), 0.001)
        y, _ = cytape.while_loop(
            lambda v, i: i < 3, lambda v, i: (cnp.tanh(v @ cytape.constant(w)), i + 1),
            (x, cytape.constant(0)))
        with_gradients(cnp.sum(y), x)
    graph.save(tmp_path / "graph")
    assert (tmp_path / "graph").stat().st_size < 2 * w.nbytes


# ---- variables


def test_variables_in_bodies(tmp_path):
    with cytape.Graph().as_default() as graph:
        v = graph.get_variable("v", initializer=1.0)
        w = graph.get_variable("w", initializer=[1.0, 2.0])
        x = graph.placeholder("float64", (2,), name="x")

        def body(y, i):
            v.assign_add(1.0)
            moved = cytape.cond(
                v.value() > 2.5, lambda: w.assign_sub(0.5 * w), lambda: w.value() * 1.0)
            return y * v + moved, i + 1

        y, _ = cytape.while_loop(lambda y, i: i < 3, body, (x, cytape.constant(0)))
        cytape.identity(y, name="y")
        cytape.identity(cytape.gradients(y, x)[0], name="first")
        cytape.identity(v.value(), name="last")
    new = through_a_file(graph, tmp_path)
    others = [new.get_variable(name) for name in ("v", "w")]
    sessions = cytape.Session(graph), cytape.Session(new)
    for _ in range(3):
        expected, found = [
            session.run(["y:0", "first:0", "last:0"], {"x:0": [0.5, -0.5]}) for session in sessions]
        for result, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(result, wanted)
        for variable, other in zip((v, w), others, strict=True):
            assert other is not variable
            np.testing.assert_array_equal(other.numpy(), variable.numpy())
    assert v.numpy() == 10.0
    with new.as_default():
        [gradient] = cytape.gradients(new.get_tensor_by_name("y:0"), new.get_tensor_by_name("x:0"))
    assert sessions[1].run(gradient, {"x:0": [0.5, -0.5]}).tolist() == (
        sessions[0].run("first:0", {"x:0": [0.5, -0.5]}).tolist())


def test_draws_in_bodies(tmp_path):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (), name="x")
        y, _ = cytape.while_loop(
            lambda y, i: i < 3, lambda y, i: (y * cnp.random.normal(), i + 1),
            (x, cytape.constant(0)))
        cytape.identity(y, name="y")
        cytape.identity(cytape.gradients(y, x)[0], name="first")
    new = through_a_file(graph, tmp_path)
    results = []
    for each in (graph, new):
        cnp.random.seed(3)
        results.append(
            [cytape.Session(each).run(["y:0", "first:0"], {"x:0": 2.0}) for _ in range(2)])
    assert results[0] == results[1]
    assert results[0][0] != results[0][1]
    assert results[0][0][0] == pytest.approx(2.0 * results[0][0][1], rel=1e-12)


# ---- ops of one's own


class Limits(NamedTuple):
    states: int | None
    nbytes: int | None


def test_an_op_with_bodies_of_its_own(tmp_path):
    twice = general(
        "DeclaredTwice", lambda x, body, checkpoints: body.run([body.run([x])[0]])[0].numpy(),
        shape_rule=lambda x, body, checkpoints: x)
    trace = cytape.function(lambda x: [x * x]).get_concrete_function(np.array(3.0))
    graph = cytape.Graph()
    twice(graph.placeholder("float64", (), name="x"), body=trace, checkpoints=Limits(3, None))
    new = through_a_file(graph, tmp_path)
    assert cytape.Session(new).run("DeclaredTwice:0", {"x:0": 3.0}) == 81.0
    assert new.attrs[-1]["checkpoints"] == (3, None)


# ---- random programs


def random_steps(rng, depth):
    """A program as a list of steps, with programs in some."""
    steps = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(["sin", "scale", "tanh", *["cond", "loop"] * (2 if depth else 0)])
        inner = [random_steps(rng, depth - 1) for _ in range(2)] if kind in ("cond", "loop") else []
        steps.append((kind, rng.random(), inner))
    return steps


def run_steps(steps, x, y):
    for kind, number, inner in steps:
        if kind == "sin":
            y = cnp.sin(y) + number * x
        elif kind == "scale":
            y = y * cytape.constant(np.full(3, number))
        elif kind == "tanh":
            y = cnp.tanh(y + x)
        elif kind == "cond":
            y = cytape.cond(
                cnp.sum(y) > number, lambda y=y, inner=inner: run_steps(inner[0], x, y),
                lambda y=y, inner=inner: run_steps(inner[1], x, y))
        else:
            y, _ = cytape.while_loop(
                lambda v, i, n=1 + int(number * 3): i < n,
                lambda v, i, inner=inner: (run_steps(inner[0], x, v), i + 1),
                (y, cytape.constant(0)))
    return y


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed, tmp_path):
    steps = random_steps(random.Random(seed), 2)
    graph = graph_of(lambda x: run_steps(steps, x, cnp.sin(x)))
    new = through_a_file(graph, tmp_path)
    feeds = fed(graph)
    for _ in range(2):
        for result, expected in zip(
                *[cytape.Session(each).run(["y:0", "first:0", "second:0"], feeds)
                  for each in (new, graph)], strict=True):
            np.testing.assert_array_equal(result, expected)


# ---- refusals to save


def test_the_error_names_unsaveable_parts_of_a_body(tmp_path):
    opaque = general("DeclaredInBody", lambda x, f: x, shape_rule=lambda x, f: x)
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", ())
        cytape.while_loop(
            lambda v: v < 3, lambda v: [cytape.cond(v > 1, lambda: opaque(v, f=len), lambda: v)],
            [x])
    with pytest.raises(
            GraphFileError, match="'while_body'.*'cond_true'.*'DeclaredInBody'.*its attribute 'f'"):
        graph.save(tmp_path / "graph")


def test_functions_with_more_to_them_than_a_graph_are_not_saved(tmp_path):
    held = general("DeclaredHolds", lambda x, f: x, shape_rule=lambda x, f: x)
    outer = cytape.constant(2.0)
    for f in (lambda x: [x * outer], lambda x: x * x, lambda x: {"a": x}):
        graph = cytape.Graph()
        trace = cytape.function(f).get_concrete_function(np.array(3.0))
        held(graph.placeholder("float64", ()), f=trace)
        with pytest.raises(GraphFileError, match="captures, a gradient or a structure of its own"):
            graph.save(tmp_path / "graph")


def nested_branches(n):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (), name="x")

        def branch(depth):
            if depth == 0:
                return x * 1.0
            return cytape.cond(x > depth, lambda: branch(depth - 1) + 1.0, lambda: x * 1.0)

        cytape.identity(branch(n), name="y")
    return graph


def test_how_deeply_bodies_are_nested(tmp_path):
    new = through_a_file(nested_branches(MOST_NESTED), tmp_path)
    session = cytape.Session(new)
    for x in (100.0, 10.5):
        assert {session.run("y:0", {"x:0": x}) for _ in range(3)} == {
            x + MOST_NESTED if x > MOST_NESTED else x}
    with pytest.raises(GraphFileError, match="more than 64 branches or loops are nested"):
        nested_branches(MOST_NESTED + 1).save(tmp_path / "graph")
