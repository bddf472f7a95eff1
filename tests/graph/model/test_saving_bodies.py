"""Saving and loading graphs with branches and loops."""

import copy
import random

import numpy as np
import pytest
from test_saving import loaded, mutate

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphFileError
from cytape.graph.model import container
from cytape.graph.model.bodies import MOST_NESTED
from cytape.graph.run.executable import Executable
from cytape.ops.engine.declare import general

RNG = np.random.default_rng(0)


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
    [second] = cytape.gradients(first, x)
    cytape.identity(second, name="second")


def a_branch(x):
    return cytape.cond(cnp.sum(x) > 0, lambda: cnp.sin(x), lambda: x**2)


def a_loop(x):
    [y] = cytape.while_loop(lambda v: cnp.sum(v**2) < 50, lambda v: [v * 1.5 + x], [x])
    return y


def a_loop_with_a_limit(x):
    w = cytape.constant(RNG.normal(size=(3, 3)) / 3)
    y, _ = cytape.while_loop(
        lambda v, i: i < 5, lambda v, i: (cnp.tanh(v @ w) + x, i + 1), (x, cytape.constant(0)),
        maximum_iterations=7)
    return y


def nested_loops(x):
    """Whose inner loop leaves rows of several lengths, with a branch in it."""
    def inner(u):
        return [cytape.cond(cnp.sum(u) > 1, lambda: cnp.sin(u) + x, lambda: u * 2.0 + 1.0)]

    def outer(v, i):
        [u] = cytape.while_loop(
            lambda u: cnp.sum(u**2) < 3.0, inner, [v], maximum_iterations=i + 1)
        return cnp.tanh(u), i + 1

    return cytape.while_loop(lambda v, i: i < 4, outer, (x, cytape.constant(0)))[0]


def a_loop_in_a_branch(x):
    scale = x * 2.0
    return cytape.cond(
        cnp.sum(x) < 100, lambda: a_loop_with_a_limit(cnp.sin(scale)), lambda: nested_loops(x))


def a_loop_over_slices(x):
    """Which reads rows of a constant, by an index that depends on the iteration."""
    rows = cytape.constant(RNG.normal(size=(6, 3)))
    y, _ = cytape.while_loop(
        lambda v, i: i < 6, lambda v, i: (v * cytape.gather(rows, i) + x[..., ::-1], i + 1),
        (x, cytape.constant(0)))
    return y


PROGRAMS = [
    a_branch, a_loop, a_loop_with_a_limit, nested_loops, a_loop_in_a_branch, a_loop_over_slices]


def graph_of(program, shape=(2, 3)):
    graph = cytape.Graph()
    with graph.as_default():
        x = graph.placeholder("float64", shape, name="x")
        with_gradients(program(x), x)
    return graph


def through_a_file(graph, tmp_path):
    graph.save(tmp_path / "graph")
    return cytape.Graph.load(tmp_path / "graph")


# ---- what comes back


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
        [second] = cytape.gradients(first, x)
    expected = cytape.Session(graph).run(["first:0", "second:0"], feeds)
    for result, wanted in zip(cytape.Session(new).run([first, second], feeds), expected,
                              strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_graph_gives_the_same_file(program, tmp_path):
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state
    graph_of(program).save(tmp_path / "first")
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state
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
    for graph in (first := graph_of(a_loop), through_a_file(first, tmp_path)):
        histories = [b for b in bodies_of(graph) if b.history_of is not None]
        assert histories
        assert any(history.history_of in bodies_of(graph) for history in histories)
        y, gradient = (graph.symbol_of(graph.get_tensor_by_name(n)) for n in ("y:0", "first:0"))
        x = graph.symbol_of(graph.get_tensor_by_name("x:0"))
        from cytape.graph.model.subgraph import Subgraph
        from cytape.graph.passes import optimise
        rewritten = optimise(Subgraph(graph, (x,), (y, gradient))).graph
        assert [op.name for op in rewritten.ops].count("While") == 2


def test_a_constant_of_a_body_is_in_the_file_once(tmp_path):
    graph = cytape.Graph()
    with graph.as_default():
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
    graph = cytape.Graph()
    with graph.as_default():
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
    graph = cytape.Graph()
    with graph.as_default():
        x = graph.placeholder("float64", (), name="x")
        y, _ = cytape.while_loop(
            lambda y, i: i < 3, lambda y, i: (y * cnp.random.normal(), i + 1),
            (x, cytape.constant(0)))
        cytape.identity(y, name="y")
        cytape.identity(cytape.gradients(y, x)[0], name="first")
    new = through_a_file(graph, tmp_path)
    results = [
        [cytape.Session(each).run(["y:0", "first:0"], {"x:0": 2.0}) for _ in range(2)]
        for each in (graph, new)]
    assert results[0] == results[1]
    assert results[0][0] != results[0][1]
    assert results[0][0][0] == 2.0 * results[0][0][1]


# ---- ops of one's own


def test_an_op_with_bodies_of_its_own(tmp_path):
    twice = general(
        "DeclaredTwice", lambda x, body, checkpoints: body.run([body.run([x])[0]])[0].numpy(),
        shape_rule=lambda x, body, checkpoints: x)
    trace = cytape.function(lambda x: [x * x]).get_concrete_function(np.array(3.0))
    graph = cytape.Graph()
    twice(graph.placeholder("float64", (), name="x"), body=trace,
          checkpoints=cytape.graph.traces.CacheInfo(1, 2, 3, 4, None, None, 7)
          if hasattr(cytape.graph, "traces") else (1, None))
    new = through_a_file(graph, tmp_path)
    assert cytape.Session(new).run("DeclaredTwice:0", {"x:0": 3.0}) == 81.0


# ---- random programs


def random_program(rng, x, y, depth):
    """Return a tensor like x, of branches and loops at random."""
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(6 if depth else 3)
        if kind == 0:
            y = cnp.sin(y) + rng.random() * x
        elif kind == 1:
            y = y * cytape.constant(np.full(3, rng.random()))
        elif kind == 2:
            y = cnp.tanh(y + x)
        elif kind == 3:
            seeds = [random.Random(rng.random()) for _ in range(2)]
            before, limit = y, rng.random()
            y = cytape.cond(
                cnp.sum(y) > limit,
                lambda y=before, r=seeds: random_program(r[0], x, y, depth - 1),
                lambda y=before, r=seeds: random_program(r[1], x, y, depth - 1))
        else:
            seed, n = rng.random(), rng.randint(1, 3)
            y, _ = cytape.while_loop(
                lambda v, i, n=n: i < n,
                lambda v, i, seed=seed: (
                    random_program(random.Random(seed), x, v, depth - 1), i + 1),
                (y, cytape.constant(0)))
    return y


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed, tmp_path):
    def program(x):
        return random_program(random.Random(seed), x, x, 2)

    graph = graph_of(program)
    new = through_a_file(graph, tmp_path)
    feeds = fed(graph)
    for _ in range(2):
        for result, expected in zip(
                *[cytape.Session(each).run(["y:0", "first:0", "second:0"], feeds)
                  for each in (new, graph)], strict=True):
            np.testing.assert_array_equal(result, expected)


# ---- what cannot be saved


def test_what_cannot_be_saved_in_a_body_is_named(tmp_path):
    opaque = general("DeclaredInBody", lambda x, f: x, shape_rule=lambda x, f: x)
    graph = cytape.Graph()
    with graph.as_default():
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
    graph = cytape.Graph()
    with graph.as_default():
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


# ---- what cannot be loaded


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


def runs_itself(program):
    function = function_with(program, "While")
    node_of(function, "While")["attrs"]["body"] = {
        "function": program["functions"].index(function)}


def runs_a_later_one(program):
    function = function_with(program, "While")
    node_of(function, "While")["attrs"]["body"] = {"function": len(program["functions"]) - 1}


def no_such_function(program):
    last_loop(program)["body"] = {"function": len(program["functions"])}


def negative_function(program):
    last_loop(program)["body"] = {"function": -1}


def true_as_function(program):
    last_loop(program)["body"] = {"function": True}


def another_body(program):
    last_loop(program)["body"] = node_of(program, "While")["attrs"]["body"]


def another_condition(program):
    node_of(program, "While")["attrs"]["condition"] = node_of(program, "While")["attrs"]["body"]


def no_body(program):
    last_loop(program)["body"] = None


def number_as_body(program):
    last_loop(program)["body"] = 3


def more_variables(program):
    last_loop(program)["n_variables"] += 1


def variables_for_stacks(program):
    attrs = last_loop(program)
    assert attrs["n_stacks"]
    attrs["n_variables"] += 1
    attrs["n_stacks"] -= 1


def very_many_variables(program):
    last_loop(program)["n_variables"] = 10**30


def negative_stacks(program):
    last_loop(program)["n_stacks"] = -1


def true_as_number(program):
    last_loop(program)["n_stacks"] = True


def number_as_reverse(program):
    last_loop(program)["reverse"] = 1


def input_too_far(program):
    last_loop(program)["body_inputs"] = {"tuple": [1000]}


def negative_input(program):
    last_loop(program)["body_inputs"]["tuple"][:1] = [-1]


def other_ragged_stacks(program):
    last_loop(program)["ragged_stacks"] = {"tuple": []}


def ragged_stacks_too_far(program):
    last_loop(program)["ragged_stacks"] = {"tuple": [7]}


def other_ragged_kept(program):
    kept = next(n for n in program["nodes"] if n["op"] == "While"
                and n["attrs"]["ragged_kept"]["tuple"])
    kept["attrs"]["ragged_kept"] = {"tuple": []}


def one_branch(program):
    function = function_with(program, "Cond")
    node_of(function, "Cond")["attrs"]["branches"]["tuple"].pop()


def positions_of_one_branch(program):
    function = function_with(program, "Cond")
    node_of(function, "Cond")["attrs"]["positions"]["tuple"].pop()


def branch_inputs_too_far(program):
    function = function_with(program, "Cond")
    node_of(function, "Cond")["attrs"]["positions"]["tuple"][0]["tuple"][0] = 50


def function_without_inputs(program):
    program["functions"][0]["inputs"] = []


def function_with_an_input_twice(program):
    function = function_with(program, "While")
    function["inputs"][1] = function["inputs"][0]


def function_with_a_result_as_input(program):
    function = function_with(program, "Cond")
    function["inputs"][-1] = function["outputs"][0]


def function_with_an_input_too_far(program):
    program["functions"][0]["inputs"][0] = 10**6


def function_with_an_output_too_far(program):
    program["functions"][0]["outputs"] = [10**6]


def function_without_outputs(program):
    program["functions"][0]["outputs"] = []


def function_with_an_unknown_op(program):
    program["functions"][0]["nodes"][-1]["op"] = "NoSuchOp"


def function_without_a_name(program):
    del program["functions"][0]["name"]


def number_as_a_function(program):
    program["functions"][0] = 3


def number_as_functions(program):
    program["functions"] = 3


def history(program):
    return next(f for f in program["functions"] if f["history of"] >= 0)


def history_of_itself(program):
    function = history(program)
    function["history of"] = program["functions"].index(function)


def history_of_another(program):
    function = history(program)
    function["history of"] = 1 if function["history of"] != 1 else 0


def history_of_nothing(program):
    history(program)["history of"] = -2


def history_of_other_numbers(program):
    """The history of a loop that computes something else, of the same shapes."""
    function = program["functions"][history(program)["history of"]]
    for node in function["nodes"]:
        if node["op"] in ("Tanh", "Sin"):
            node["op"] = "Cos"
            return
        if node["op"] == "While":
            node["attrs"]["condition"], node["inputs"][0] = None, node["inputs"][0]
            node["attrs"]["condition_inputs"] = {"tuple": []}
            return
    raise AssertionError("there is nothing to change")


@pytest.mark.parametrize("change", [
    runs_itself, runs_a_later_one, no_such_function, negative_function, true_as_function,
    another_body, another_condition, no_body, number_as_body, more_variables,
    variables_for_stacks, very_many_variables, negative_stacks, true_as_number,
    number_as_reverse, input_too_far, negative_input, other_ragged_stacks,
    ragged_stacks_too_far, other_ragged_kept, one_branch, positions_of_one_branch,
    branch_inputs_too_far, function_without_inputs, function_with_an_input_twice,
    function_with_a_result_as_input, function_with_an_input_too_far,
    function_with_an_output_too_far, function_without_outputs, function_with_an_unknown_op,
    function_without_a_name, number_as_a_function, number_as_functions, history_of_itself,
    history_of_another, history_of_nothing, history_of_other_numbers,
], ids=lambda change: change.__name__)  # fmt: skip
def test_invalid_programs_are_refused(program, tmp_path, change):
    code, arrays = program
    loaded(tmp_path, code, arrays)
    change(code)
    with pytest.raises(GraphFileError):
        loaded(tmp_path, code, arrays)


def test_messages_say_what_does_not_fit(program, tmp_path):
    code, arrays = program
    more_variables(code)
    with pytest.raises(GraphFileError, match="'While'.*the body takes"):
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


def run_whatever_it_is(graph):
    """Run a loaded graph twice, unless it may go on for long; it may fail, not crash."""
    feeds = {name: value for name, value in fed(graph).items()}
    fetches = [op.outputs[0].name for op in graph.get_operations()
               if op.type in ("While", "Cond", "Identity") and op.outputs]
    session = cytape.Session(graph)
    for _ in range(2):
        try:
            session.run(fetches, feeds)
        except Exception:
            return


@pytest.mark.parametrize("seed", range(6))
def test_edited_programs_load_or_raise(file, tmp_path, seed):
    rng = random.Random(seed)
    program, arrays = container.read(file)
    outcomes = set()
    for _ in range(40):
        edited = copy.deepcopy(program)
        for _ in range(rng.randint(1, 3)):
            mutate(edited if rng.random() < 0.3 else rng.choice(edited["functions"]), rng)
        try:
            graph = loaded(tmp_path, edited, arrays)
        except GraphFileError:
            outcomes.add("refused")
            continue
        outcomes.add("loaded")
        graph.save(tmp_path / "again")
        assert cytape.Graph.load(tmp_path / "again").listing() == graph.listing()
    assert outcomes == {"refused", "loaded"}
