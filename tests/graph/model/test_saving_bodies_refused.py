"""Files whose branches and loops do not fit together."""

import copy
import random

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphError, GraphFileError
from cytape.graph.control.while_op import Loop
from cytape.graph.model import container
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.tensor.recording.state import building_into
from tests.graph.model.test_graph_files import GONE, loaded, mutate, put
from tests.graph.model.test_saving_bodies import (
    a_loop_with_a_limit,
    graph_of,
    nested_branches,
    nested_loops,
    through_a_file,
)
from tests.tables import table


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("bodies") / "graph"
    graph_of(nested_loops, (None, 3)).save(path)
    return path


@pytest.fixture
def program(file):
    return container.read(file)


def node_of(program, op, number=0):
    return [code for code in program["nodes"] if code["op"] == op][number]


def function_with(program, op):
    return next(f for f in program["functions"] if any(n["op"] == op for n in f["nodes"]))


def last_loop(program):
    return node_of(program, "While", -1)["attrs"]


def first_loop(program):
    return node_of(program, "While")["attrs"]


def loop_of_a_function(program):
    return node_of(function_with(program, "While"), "While")["attrs"]


def branch_of_a_function(program):
    return node_of(function_with(program, "Cond"), "Cond")["attrs"]


def loop_that_keeps_ragged_rows(program):
    return next(n for n in program["nodes"] if n["op"] == "While"
                and n["attrs"]["ragged_kept"]["tuple"])["attrs"]


def with_fewer_stacks(attrs):
    assert attrs["n_stacks"]
    attrs.update(n_variables=attrs["n_variables"] + 1, n_stacks=attrs["n_stacks"] - 1)


def first_function(program):
    return program["functions"][0]


def place(program, function):
    return program["functions"].index(function)


# Where to change something, and what: a path with a value, as `put` takes them, or a function.
EDITS = {
    "runs itself": (loop_of_a_function, lambda p: ["body", {"function": place(
        p, function_with(p, "While"))}]),
    "runs a later one": (loop_of_a_function, lambda p: [
        "body", {"function": len(p["functions"]) - 1}]),
    "no such function": (last_loop, lambda p: ["body", {"function": len(p["functions"])}]),
    "negative function": (last_loop, ["body", {"function": -1}]),
    "true as function": (last_loop, ["body", {"function": True}]),
    "another body": (last_loop, lambda p: ["body", first_loop(p)["body"]]),
    "another condition": (first_loop, lambda p: ["condition", first_loop(p)["body"]]),
    "no body": (last_loop, ["body", None]),
    "number as body": (last_loop, ["body", 3]),
    "more variables": (last_loop, ["n_variables", lambda n: n + 1]),
    "variables for stacks": (last_loop, with_fewer_stacks),
    "very many variables": (last_loop, ["n_variables", 10**30]),
    "negative stacks": (last_loop, ["n_stacks", -1]),
    "true as number": (last_loop, ["n_stacks", True]),
    "number as reverse": (last_loop, ["reverse", 1]),
    "input too far": (last_loop, ["body_inputs", {"tuple": [1000]}]),
    "negative input": (last_loop, ["body_inputs", "tuple", lambda inputs: [-1, *inputs[1:]]]),
    "other ragged stacks": (last_loop, ["ragged_stacks", {"tuple": []}]),
    "ragged stacks too far": (last_loop, ["ragged_stacks", {"tuple": [7]}]),
    "other ragged kept": (loop_that_keeps_ragged_rows, ["ragged_kept", {"tuple": []}]),
    "one branch": (branch_of_a_function, ["branches", "tuple", -1, GONE]),
    "positions of one branch": (branch_of_a_function, ["positions", "tuple", -1, GONE]),
    "branch inputs too far": (branch_of_a_function, ["positions", "tuple", 0, "tuple", 0, 50]),
    "no inputs": (first_function, ["inputs", []]),
    "an input twice": (lambda p: function_with(p, "While"), [
        "inputs", lambda inputs: [inputs[0], inputs[0], *inputs[2:]]]),
    "a result as input": (lambda p: function_with(p, "Cond"), lambda p: [
        "inputs", -1, function_with(p, "Cond")["outputs"][0]]),
    "an input too far": (first_function, ["inputs", 0, 10**6]),
    "an output too far": (first_function, ["outputs", [10**6]]),
    "no outputs": (first_function, ["outputs", []]),
    "an unknown op": (first_function, ["nodes", -1, "op", "NoSuchOp"]),
    "no name": (first_function, ["name", GONE]),
    "number as a function": (lambda p: p, ["functions", 0, 3]),
    "number as functions": (lambda p: p, ["functions", 3]),
    "history of itself": (lambda p: history(p), lambda p: ["history of", place(p, history(p))]),
    "history of another": (lambda p: history(p), ["history of", lambda n: 1 if n != 1 else 0]),
    "history of nothing": (lambda p: history(p), ["history of", -2]),
}


def change(program, edit):
    find, path = EDITS[edit]
    if path is with_fewer_stacks:
        path(find(program))
    else:
        put(find(program), *(path(program) if callable(path) else path))


def history(program):
    return next(f for f in program["functions"] if f["history of"] >= 0)


@pytest.mark.parametrize("edit", EDITS)
def test_invalid_programs_are_refused(program, tmp_path, edit):
    code, arrays = program
    loaded(tmp_path, code, arrays)
    change(code, edit)
    with pytest.raises(GraphFileError):
        loaded(tmp_path, code, arrays)


def test_the_history_of_a_loop_computes_the_same(tmp_path):
    graph_of(a_loop_with_a_limit).save(tmp_path / "graph")
    program, arrays = container.read(tmp_path / "graph")
    loaded(tmp_path, program, arrays)
    for op, change in ("Tanh", {"op": "Sin"}), ("Add", {"inputs": [0, 0]}):
        other = copy.deepcopy(program)
        function = history(other)
        node = next(n for n in function["nodes"] if n["op"] == op and n["outputs"][0][1])
        node.update(change)
        with pytest.raises(GraphFileError, match="does not compute all results of function"):
            loaded(tmp_path, other, arrays)


def test_messages_say_what_does_not_fit(program, tmp_path):
    code, arrays = program
    change(code, "more variables")
    with pytest.raises(GraphFileError, match="'While'.*lengths are int64"):
        loaded(tmp_path, code, arrays)


def test_files_from_before_functions_were_in_them(tmp_path):
    graph = cytape.Graph()
    cnp.sin(graph.placeholder("float64", (), name="x"))
    graph.save(tmp_path / "graph")
    program, arrays = container.read(tmp_path / "graph")
    assert program.pop("functions") == []
    assert loaded(tmp_path, program, arrays).listing() == graph.listing()


def test_files_cannot_nest_without_end(tmp_path):
    nested_branches(2).save(tmp_path / "graph")
    program, arrays = container.read(tmp_path / "graph")
    inner = program["functions"].index(function_with(program, "Cond"))
    for n in range(3000):
        function = copy.deepcopy(program["functions"][inner])
        node_of(function, "Cond")["attrs"]["branches"]["tuple"][0] = {
            "function": len(program["functions"]) - 1 if n else inner}
        for node in function["nodes"]:  # an array is used once: there is none for so many
            if node["op"] == "Constant":
                node["attrs"] = {"value": {"tensor": node["attrs"]["value"]["tensor"]}}
        program["functions"].append(function)
    with pytest.raises(GraphFileError, match="more than 64 functions are in one another"):
        loaded(tmp_path, program, arrays)


@pytest.mark.parametrize("seed", table([0], range(1, 6)))
def test_edited_programs_load_or_raise(file, tmp_path, seed):
    rng = random.Random(seed)
    program, arrays = container.read(file)
    outcomes = set()
    for _ in range(40):
        edited = copy.deepcopy(program)
        for _ in range(rng.randint(1, 3)):
            functions = edited.get("functions")
            inside = functions and type(functions) is list and rng.random() < 0.7
            mutate(rng.choice(functions) if inside else edited, rng)
        try:
            graph = loaded(tmp_path, edited, arrays)
        except GraphFileError:
            outcomes.add("refused")
            continue
        outcomes.add("loaded")
        graph.save(tmp_path / "again")
        assert cytape.Graph.load(tmp_path / "again").listing() == graph.listing()
    assert outcomes == {"refused", "loaded"}


# ---- errors that only a run can find


def loop_over_rows(graph, reverse):
    """A loop over as many slices as is fed, and what they are in a stack of as many as is fed."""
    body = FunctionGraph("sum", None)
    total, row = body.argument((), "float64"), body.argument((3,), "float64")
    with building_into(body):
        trace = ConcreteFunction(
            "sum", body, list(map(body.symbol_of, (total, row))), [total + cnp.sum(row)])
    with graph.as_default():
        limit = graph.placeholder("int64", (), name="limit")
        stack = graph.placeholder("float64", (None, 3), name="stack")
        results = Loop(trace, limit, [cytape.constant(0.0)], [stack], [], reverse=reverse).call()
    return cytape.identity(results[1], name="total")


def loop_over_ragged(graph, reverse):
    """The same, whose slices have as many rows as is fed: an inner loop goes over them."""
    body = FunctionGraph("sums", None)
    total, rows = body.argument((), "float64"), body.argument((None, 3), "float64")
    with building_into(body):
        inner = FunctionGraph("sum", body)
        inner_total, row = inner.argument((), "float64"), inner.argument((3,), "float64")
        with building_into(inner):
            trace = ConcreteFunction(
                "sum", inner, list(map(inner.symbol_of, (inner_total, row))),
                [inner_total + cnp.sum(row)])
        results = Loop(trace, cytape.constant(1), [total], [rows], []).call()
        trace = ConcreteFunction(
            "sums", body, list(map(body.symbol_of, (total, rows))), [results[1]])
    with graph.as_default():
        limit = graph.placeholder("int64", (), name="limit")
        stack = graph.placeholder("float64", (None, 3), name="stack")
        lengths = graph.placeholder("int64", (None,), name="lengths")
        results = Loop(trace, limit, [cytape.constant(0.0)], [stack], [], lengths={0: lengths},
                       reverse=reverse).call()
    return cytape.identity(results[1], name="total")


@pytest.mark.parametrize("reverse", [False, True])
def test_no_row_is_read_that_a_stack_has_not(tmp_path, reverse):
    loop_over_rows(graph := cytape.Graph(), reverse)
    session = cytape.Session(through_a_file(graph, tmp_path))
    stack = np.ones((4, 3))
    for _ in range(3):
        assert session.run("total:0", {"limit:0": 4, "stack:0": stack}) == 12.0
        for limit in 5, 10**6, 10**15:
            with pytest.raises((GraphError, IndexError), match="slices of a stack|out of bounds"):
                session.run("total:0", {"limit:0": limit, "stack:0": stack})


@pytest.mark.parametrize("reverse", [False, True])
def test_no_row_is_read_that_lengths_say_a_stack_had(tmp_path, reverse):
    loop_over_ragged(graph := cytape.Graph(), reverse)
    session = cytape.Session(through_a_file(graph, tmp_path))
    stack = np.ones((4, 3))
    for _ in range(3):
        feeds = {"limit:0": 2, "stack:0": stack, "lengths:0": np.array([1, 3])}
        assert session.run("total:0", feeds) == 6.0
        for limit, lengths in (3, [1, 3]), (2, [10**12, 10**12]), (2, [-1, 0]), (2, [0, -5]):
            with pytest.raises((GraphError, IndexError)):
                session.run("total:0", {**feeds, "limit:0": limit, "lengths:0": np.array(lengths)})
