"""Saving and loading graphs."""

import copy
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cytape
from cytape.errors import GraphFileError
from cytape.graph.model import container
from cytape.ops.engine.op_kinds import OPS, general
from tests.tables import table

ran = []
declared_effect = general(
    "DeclaredSavedEffect", lambda x: (ran.append(1), x)[1], shape_rule=lambda x: x)
declared_pair = general("DeclaredSavedPair", lambda x: (x, x + 1), shape_rule=lambda x: (x, x))


def some_graph():
    """A graph with some of everything."""
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (None, 4), name="x")
        kernel = graph.get_variable("kernel", initializer=np.arange(8.0).reshape(4, 2))
        bias = cytape.Variable([1.0, 2.0], trainable=False, name="bias")
        with graph.name_scope("layer"), graph.device("cpu:1"):
            h = np.tanh(x @ kernel + bias)
            with graph.name_scope("inner"):
                y = h[1:, None, ..., ::-1] * 2.0 + cytape.constant(3.0, name="three")
        first, second = declared_pair(y)
        with graph.control_dependencies([second, h]), graph.gradient_override_map({"Sum": "Other"}):
            total = np.sum(first, axis=(0, 1), keepdims=True)
        with graph.name_scope("gradients"), graph.differentiating(total.op):
            np.einsum("ij,kj->ik", x, cytape.constant(np.ones((3, 4))))
        kernel.assign_sub(0.1 * kernel)
        last = graph.no_op("last")
        graph.add_control_inputs(last, [total])
        np.take(x, np.array([0, 2]), axis=1).astype("float32")
        x[np.array([0, 1]), 1:3]
        graph.placeholder("int64")
    graph.add_to_collection("losses", total)
    graph.add_to_collections(["losses", "other"], total.op)
    graph.add_to_collection("other", ("text", 1.5, None, np.float32))
    return graph


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("graphs") / "graph"
    some_graph().save(path)
    return path


@pytest.fixture
def program(file):
    return container.read(file)


def loaded(tmp_path, program, arrays):
    container.write(tmp_path / "edited", program, arrays)
    return cytape.Graph.load(tmp_path / "edited")


# ---- loaded graphs


def test_a_loaded_graph_is_the_same(file):
    graph, saved = cytape.Graph.load(file), some_graph()
    assert graph.listing() == saved.listing()
    assert graph.to_dot() == saved.to_dot()
    for op, other in zip(graph.get_operations(), saved.get_operations(), strict=True):
        assert (op.name, op.type, op.device) == (other.name, other.type, other.device)
        assert op.definition is other.definition
        for get in (lambda op: op.inputs, lambda op: op.outputs):
            assert [x.name for x in get(op)] == [x.name for x in get(other)]
            assert [x.shape for x in get(op)] == [x.shape for x in get(other)]
            assert [x.dtype for x in get(op)] == [x.dtype for x in get(other)]
        assert [o.node for o in op.control_inputs] == [o.node for o in other.control_inputs]
        assert (op.original_op and op.original_op.name) == (
            other.original_op and other.original_op.name)
        assert graph.gradient_override_of(op.node) == saved.gradient_override_of(op.node)
        assert graph.was_named(op.node) == saved.was_named(op.node)


def test_it_computes_the_same(file):
    graph, saved = cytape.Graph.load(file), some_graph()
    feeds = {"x:0": np.random.default_rng(0).normal(size=(5, 4))}
    fetches = [
        "Sum:0", "layer/Tanh:0", "AssignSubVariable:0", "gradients/Sum_grad/Einsum:0", "last",
        "Cast:0", "GetItem:0",
    ]  # fmt: skip
    results = [cytape.Session(g).run(fetches, feeds) for g in (graph, saved)]
    for result, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(result, expected)


def test_saving_again_gives_the_same_file(file, tmp_path):
    cytape.Graph.load(file).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()


def test_variables_keep_values_but_are_new(tmp_path):
    graph = cytape.Graph()
    v = graph.get_variable("v", initializer=[1.0, 2.0])
    with graph.as_default():
        v * v
    v.assign([3.0, 4.0])
    graph.save(tmp_path / "graph")
    v.assign([5.0, 6.0])
    new = cytape.Graph.load(tmp_path / "graph")
    w = new.get_variable("v")
    assert (w.tolist(), w.name, w.trainable) == ([3.0, 4.0], "v", True)
    assert new.variables[0] is w
    assert new.get_collection("variables")[0] is w
    assert new.get_collection("trainable_variables")[0] is w
    w.assign([7.0, 8.0])
    assert cytape.Session(new).run("Multiply:0").tolist() == [49.0, 64.0]
    with new.as_default():
        assert w.value().op.inputs[0].name == "v:0"


def test_collections_come_back(file):
    graph = cytape.Graph.load(file)
    tensor, operation = graph.get_collection("losses")
    assert (tensor.name, operation) == ("Sum:0", tensor.op)
    assert graph.get_collection("other") == [operation, ("text", 1.5, None, np.float32)]


def test_a_loaded_graph_can_grow(file):
    graph, saved = cytape.Graph.load(file), some_graph()
    names = []
    for each in (graph, saved):
        x = each.get_tensor_by_name("x:0")
        with each.name_scope("layer") as scope:
            names.append([np.tanh(x).name, scope])
        with each.name_scope("layer/"):
            names[-1] += [np.tanh(x).name, (x * 2.0).name, each.no_op("last").name]
        names[-1] += [each.no_op("last").name, np.sum(x).name]
    assert names[0] == names[1]
    assert names[0][:2] == ["layer_1/Tanh:0", "layer_1/"]


def test_finalized_graphs_are_so_again(tmp_path):
    graph = cytape.Graph()
    graph.no_op()
    graph.finalize()
    graph.save(tmp_path / "graph")
    assert cytape.Graph.load(tmp_path / "graph").finalized
    assert str(cytape.Graph.load(tmp_path / "graph")) == str(graph)


def test_an_empty_graph(tmp_path):
    cytape.Graph().save(str(tmp_path / "graph"))
    assert cytape.Graph.load(str(tmp_path / "graph")).n_nodes == 0


def test_loading_runs_no_operation(tmp_path):
    graph = cytape.Graph()
    declared_effect(graph.constant(1.0))
    graph.save(tmp_path / "graph")
    ran.clear()
    new = cytape.Graph.load(tmp_path / "graph")
    assert ran == []
    assert cytape.Session(new).run("DeclaredSavedEffect:0") == 1.0
    assert ran == [1]


def test_loading_does_not_care_for_what_surrounds_it(file):
    with cytape.Graph().as_default() as other, cytape.GradientTape(), other.name_scope("a"):
        assert cytape.Graph.load(file).listing() == some_graph().listing()
    assert other.n_nodes == 0


# ---- refusals to save


def test_an_argument_that_cannot_be_saved_is_named(tmp_path):
    graph = cytape.Graph()
    declared = OPS.get("DeclaredWithClosure") or general(
        "DeclaredWithClosure", lambda x, function: x, shape_rule=lambda x, function: x)
    with graph.name_scope("a"):
        declared(graph.placeholder("float64"), function=lambda: 0)
    with pytest.raises(GraphFileError, match="'a/DeclaredWithClosure'.*'function'.*<lambda>"):
        graph.save(tmp_path / "graph")
    assert not (tmp_path / "graph").exists()


def test_an_op_that_is_not_declared_is_named(tmp_path, monkeypatch):
    graph = cytape.Graph()
    declared_effect(graph.placeholder("float64"))
    monkeypatch.delitem(OPS, "DeclaredSavedEffect")
    with pytest.raises(GraphFileError, match="'DeclaredSavedEffect' cannot be saved: its type"):
        graph.save(tmp_path / "graph")


@pytest.mark.parametrize(("name", "item"), [("a", object()), ("a", [1]), (3, 1), ("a", {1})])
def test_a_collection_that_cannot_be_saved_is_named(tmp_path, name, item):
    graph = cytape.Graph()
    graph.add_to_collection(name, item)
    with pytest.raises(GraphFileError, match=f"collection {name!r} cannot be saved"):
        graph.save(tmp_path / "graph")


def test_tensors_of_other_graphs_cannot_be_saved(tmp_path):
    graph = cytape.Graph()
    graph.add_to_collection("a", cytape.Graph().no_op())
    with pytest.raises(GraphFileError, match="collection 'a'"):
        graph.save(tmp_path / "graph")


# ---- refusals to load


def test_a_new_process_imports_the_ops_of_a_file(tmp_path):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (2, 2), name="x")
        y = np.linalg.inv(x) + np.real(np.fft.fft(x))
    with graph.as_default():
        cytape.identity(y, name="y")
    graph.save(tmp_path / "graph")
    script = (
        "import sys, cytape, cytape.graph, numpy as np\n"
        "assert 'cytape.ops.submodules' not in sys.modules\n"
        f"graph = cytape.Graph.load({str(tmp_path / 'graph')!r})\n"
        "print(cytape.Session(graph).run('y:0', {'x:0': np.eye(2)}).tolist())")
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[[2.0, 1.0], [1.0, 0.0]]\n"


def test_a_missing_file_is_an_error_of_its_own(tmp_path):
    with pytest.raises(FileNotFoundError):
        cytape.Graph.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        cytape.Graph().save(tmp_path / "none" / "graph")


def test_unknown_ops_are_named(file, monkeypatch):
    monkeypatch.delitem(OPS, "DeclaredSavedPair")
    with pytest.raises(GraphFileError, match="no op 'DeclaredSavedPair' is declared"):
        cytape.Graph.load(file)


def test_files_from_before_contexts_said_whether_they_are_recorded(tmp_path, program):
    program, arrays = program
    for context in program["contexts"]:
        assert context.pop("recorded") is True
    graph = loaded(tmp_path, program, arrays)
    assert graph.listing() == some_graph().listing()
    assert all(context.recorded for context in graph.contexts)
    program["contexts"][0]["recorded"] = None
    with pytest.raises(GraphFileError, match="'recorded'"):
        loaded(tmp_path, program, arrays)


GONE, LAST = object(), len(some_graph().ops) - 1


def put(program, *path):
    """Put the last of these where the others lead, or what it makes of what is there.

    In a list of nodes an op leads to its node. `GONE` removes what is there.
    """
    *path, last, value = path
    for key in path:
        by_op = isinstance(program, list) and isinstance(key, str)
        [program] = [node for node in program if node["op"] == key] if by_op else [program[key]]
    if value is GONE:
        del program[last]
    else:
        program[last] = value(program[last]) if callable(value) else value


def twice(codes):
    return codes * 2


def with_a_variable_twice(program):
    program["variables"].append(copy.deepcopy(program["variables"][0]))
    put(program, "named variables", [0, len(program["variables"]) - 1])


EDITS = {
    "other version": ["version", 2],
    "other format": ["format", "other"],
    "no nodes": ["nodes", GONE],
    "input from behind": ["nodes", "Tanh", "inputs", [1000]],
    "input of itself": ["nodes", 5, "inputs", [5]],
    "negative input": ["nodes", "Tanh", "inputs", [-1]],
    "too many inputs": ["nodes", "Tanh", "inputs", twice],
    "too few inputs": ["nodes", "MatMul", "inputs", 1, GONE],
    "no inputs": ["nodes", "Tanh", "inputs", []],
    "true as input": ["nodes", "Tanh", "inputs", [True]],
    "attribute too much": ["nodes", "Tanh", "attrs", {"axis": 1}],
    "attribute missing": ["nodes", "Einsum", "attrs", "subscripts", GONE],
    "attribute of the builder": ["nodes", "Einsum", "attrs", lambda attrs: {**attrs, "self": 1}],
    "wrong axis": ["nodes", "Sum", "attrs", "axis", 7],
    "wrong shape": ["nodes", "Tanh", "outputs", [["<f8", [7, 2]]]],
    "wrong dtype": ["nodes", "Tanh", "outputs", 0, 0, "<f4"],
    "output too much": ["nodes", "Tanh", "outputs", twice],
    "negative extent": ["nodes", 0, "attrs", "shape", {"tuple": [-1, 4]}],
    "unknown context": ["nodes", 0, "context", 1000],
    "control input from behind": ["contexts", 0, "controls", [LAST]],
    "control input of nothing": ["contexts", 0, "controls", [10**6]],
    "own control input": ["nodes", 5, "controls", [5]],
    "original from behind": ["contexts", 0, "original", LAST],
    "bad scope": ["scopes", 1, "a b/"],
    "scope without slash": ["scopes", 1, "a"],
    "no outermost scope": ["scopes", 0, GONE],
    "repeated name": ["nodes", lambda nodes: [nodes[0], {**nodes[1], "name": nodes[0]["name"]},
                                              *nodes[2:]]],
    "bad name": ["nodes", 1, "name", "a:0"],
    "variable without array": ["variables", 0, "value", 10**6],
    "number as variable": ["nodes", "AssignSubVariable", "attrs", "variable", 3],
    "collection without tensor": ["collections", -1, 1, lambda c: [*c, {"symbol": 10**6}]],
    "collection without operation": ["collections", -1, 1, lambda c: [*c, {"node": -1}]],
    "number as collection": ["collections", lambda collections: [*collections, [3, []]]],
    "no override": ["contexts", 0, "overrides", [["Tanh"]]],
}


@pytest.mark.parametrize("edit", [*EDITS, "repeated variable"])
def test_invalid_programs_are_refused(program, tmp_path, edit):
    code, arrays = program
    loaded(tmp_path, code, arrays)
    with_a_variable_twice(code) if edit == "repeated variable" else put(code, *EDITS[edit])
    with pytest.raises(GraphFileError):
        loaded(tmp_path, code, arrays)


@pytest.mark.parametrize("other", [None, [], "a", 3, {}])
def test_other_programs_are_refused(tmp_path, other):
    with pytest.raises(GraphFileError, match="expected an object with 'format'"):
        loaded(tmp_path, other, [])


def test_messages_say_which_op_is_wrong(program, tmp_path):
    put(program[0], *EDITS["wrong shape"])
    with pytest.raises(GraphFileError, match=r"'Tanh'.*outputs are .*which the file calls"):
        loaded(tmp_path, *program)


# ---- damage


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_damaged_files_load_or_raise(file, data):
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    damaged = file.with_name("damaged")
    damaged.write_bytes(content)
    try:
        graph = cytape.Graph.load(damaged)
    except GraphFileError:
        return
    graph.save(damaged)
    assert cytape.Graph.load(damaged).listing() == graph.listing()


REPLACEMENTS = [
    None, True, -1, 0, 1, 3, 10**6, 10**12, 10**30, 1.5, "", "a", "Tanh", "MatMul", "Concatenate",
    [], [0], [0, 0, 0], {}, {"tuple": [0, 1]}, {"slice": [None, None, -1]}, {"array": 0},
    {"tensor": 1}, {"dtype": "<f4"}, {"ellipsis": True}, {"scalar type": "numpy.int8"},
    {"float": "nan"},
]  # fmt: skip


def mutate(program, rng):
    """Replace, remove or exchange something, anywhere in a program."""
    parent, key, code = None, None, program
    while isinstance(code, (dict, list)) and code and rng.random() < 0.9:
        parent, key = code, rng.choice(list(code) if isinstance(code, dict) else range(len(code)))
        code = parent[key]
    if parent is None:
        return
    what = rng.randrange(4)
    if what == 0:
        del parent[key]
    elif what == 1:
        other = rng.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
        parent[key], parent[other] = parent[other], parent[key]
    else:
        parent[key] = copy.deepcopy(rng.choice(REPLACEMENTS))


@pytest.mark.parametrize("seed", table(range(2), range(2, 10)))
def test_edited_programs_load_or_raise(file, tmp_path, seed):
    rng = random.Random(seed)
    program, arrays = container.read(file)
    outcomes = set()
    for _ in range(100):
        edited = copy.deepcopy(program)
        for _ in range(rng.randint(1, 3)):
            mutate(edited, rng)
        try:
            graph = loaded(tmp_path, edited, arrays)
        except GraphFileError:
            outcomes.add("refused")
            continue
        outcomes.add("loaded")
        graph.save(tmp_path / "again")
        assert cytape.Graph.load(tmp_path / "again").listing() == graph.listing()
    assert outcomes == {"refused", "loaded"}


@pytest.mark.parametrize(("op", "shapes", "attrs"), [
    ("SumTo", [(3,)], {"shape": (4,)}), ("SumTo", [(3,)], {"shape": (2, 3)}),
    ("SumTo", [(2, 3)], {"shape": (2,)}), ("SumTo", [(3,), (2, 3)], {}),
    ("BroadcastTo", [(2, 3), (3,)], {}), ("BroadcastTo", [(3,), (4,)], {}),
    ("FitLike", [(3,), (2, 3)], {}), ("Reshape", [(3,), (2, 3)], {"order": "C"}),
])  # fmt: skip
def test_ops_of_gradients_do_not_trust_a_program(tmp_path, op, shapes, attrs):
    graph = cytape.Graph()
    inputs = [graph.placeholder("float64", shape) for shape in shapes]
    values = [np.ones(shape) for shape in shapes]
    try:
        result = graph.build(OPS[op], *inputs, **attrs)
        graph.save(tmp_path / "graph")
        cytape.Graph.load(tmp_path / "graph")
        cytape.Session(graph).run(result, list(zip(inputs, values, strict=True)))
    except (ValueError, IndexError):
        return
    pytest.fail("what cannot be computed was")
