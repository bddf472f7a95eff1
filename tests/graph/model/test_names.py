"""Names of ops and scopes."""

import numpy as np
import pytest

import cytape
from cytape.graph.model.names import Names, UniqueNames, checked_name
from tests.cases import each
from tests.graph.programs import new_graph


def names_of(graph):
    return [operation.name for operation in graph.get_operations()]


def test_unique_names_are_counted():
    names = UniqueNames()
    assert [names.take("a") for _ in range(3)] == ["a", "a_1", "a_2"]
    assert names.take("a_1") == "a_1_1"
    assert [names.take("b_1"), names.take("b"), names.take("b")] == ["b_1", "b", "b_2"]


def test_unique_names_take_linear_time():
    names = UniqueNames()
    assert [names.take("a") for _ in range(20000)][-1] == "a_19999"


@each("name", ["", "a b", "-a", "_a", "/a", "a/", "a:0", "ä", "a\n"])
def test_invalid_names_are_refused(name):
    with pytest.raises(ValueError, match="is not a valid name"):
        checked_name(name)
    graph = cytape.Graph()
    with pytest.raises(ValueError, match="is not a valid name"):
        graph.placeholder("float64", name=name)
    assert graph.n_nodes == 0


def test_a_name_is_a_string():
    with pytest.raises(TypeError, match="a name is a string, got 3"):
        checked_name(3)


def test_ops_are_called_by_their_type():
    graph, x = new_graph((2,))
    np.tanh(np.tanh(x)) * x
    assert names_of(graph) == ["Placeholder", "Tanh", "Tanh_1", "Multiply"]


def test_given_names_are_made_unique_in_order_of_making():
    graph, x = new_graph((2,), name="Tanh")
    np.tanh(x)
    graph.constant(1.0, name="Tanh_1")
    graph.constant(1.0, name="c")
    graph.constant(1.0, name="c")
    assert names_of(graph) == ["Tanh", "Tanh_1", "Tanh_1_1", "c", "c_1"]


@each("ask_early", [False, True])
def test_names_do_not_depend_on_when_they_are_asked_for(ask_early):
    graph = cytape.Graph()

    def ask():
        return names_of(graph) if ask_early else None

    x = graph.placeholder("float64", (2,))
    ask()
    with graph.differentiating(x.op):
        y = np.tanh(x)
        ask()
        with graph.differentiating(y.op):
            np.tanh(y)
        ask()
    with graph.differentiating(x.op):
        np.tanh(y)
    with graph.name_scope("a"):
        ask()
        np.tanh(y)
    assert names_of(graph) == [
        "Placeholder", "Placeholder_grad/Tanh", "Placeholder_grad/Placeholder_grad/Tanh_grad/Tanh",
        "Placeholder_grad_1/Tanh", "a/Tanh",
    ]  # fmt: skip


def test_a_name_cannot_be_given_once_it_was_asked_for():
    graph, x = new_graph(name="x")
    assert x.name == "x:0"
    with pytest.raises(ValueError, match="called 'x' already"):
        graph.give_name(x, "y")


def test_scopes_nest_and_are_unique():
    graph = cytape.Graph()
    with graph.name_scope("a") as a:
        with graph.name_scope("b") as b:
            graph.no_op()
        with graph.name_scope("b") as again:
            graph.no_op()
    with graph.name_scope("a") as other:
        graph.no_op()
    assert [a, b, again, other] == ["a/", "a/b/", "a/b_1/", "a_1/"]
    assert names_of(graph) == ["a/b/NoOp", "a/b_1/NoOp", "a_1/NoOp"]


def test_a_slash_enters_exactly_that_scope():
    graph = cytape.Graph()
    with graph.name_scope("a") as scope:
        graph.no_op()
    with graph.name_scope("b"), graph.name_scope(scope) as again:
        graph.no_op()
    with graph.name_scope("c/d/"):
        graph.no_op()
    assert again == "a/"
    assert names_of(graph) == ["a/NoOp", "a/NoOp_1", "c/d/NoOp"]


@each("name", [None, ""])
def test_no_name_leaves_all_scopes(name):
    graph = cytape.Graph()
    with graph.name_scope("a"):
        with graph.name_scope(name) as scope:
            graph.no_op()
        graph.no_op()
    assert scope == ""
    assert names_of(graph) == ["NoOp", "a/NoOp"]


def test_scopes_and_ops_share_their_names():
    graph = cytape.Graph()
    graph.no_op("a")
    with graph.name_scope("a") as scope:
        graph.no_op()
    graph.no_op("a")
    assert scope == "a_1/"
    assert names_of(graph) == ["a", "a_1/NoOp", "a_2"]


@each("name", ["a b", "/", "a//", ":"])
def test_invalid_scopes_are_refused(name):
    with pytest.raises(ValueError, match="is not a valid name"):
        cytape.Graph().name_scope(name)


def test_a_scope_is_a_string():
    with pytest.raises(TypeError, match="a name is a string"):
        cytape.Graph().name_scope(3)


def test_a_scope_is_left_when_an_error_passes():
    graph = cytape.Graph()
    with pytest.raises(ZeroDivisionError), graph.name_scope("a"):
        1 / 0  # noqa: B018
    assert graph.no_op().name == "NoOp"


def test_numbers_are_shared_by_all_scopes():
    graph, x = new_graph(name="x")
    first = graph.no_op("first")
    with graph.name_scope("a"), graph.control_dependencies([first]), graph.device("cpu:1"):
        y = x * 2.0
    two = y.op.inputs[1].op
    assert (two.name, two.control_inputs, two.device) == ("Constant", (), "")
    assert (y.name, y.op.control_inputs, y.device) == ("a/Multiply:0", (first,), "cpu:1")
    with graph.name_scope("b"):
        assert (x + 2.0).op.inputs[1].op == two


def test_a_suggested_name_is_taken_only_if_valid():
    graph = cytape.Graph()
    for name in ["v", "not a name"]:
        graph.variable_handle(cytape.Variable(1.0, name=name))
    assert names_of(graph) == ["v", "VariableHandle"]


def test_names_settle_only_what_is_there():
    graph = cytape.Graph()
    names = Names()
    assert names.node_named("x", graph) is None
    graph.placeholder("float64")
    assert names.name_of(0, graph) == "Placeholder"
    assert names.node_named("Placeholder", graph) == 0


def test_names_are_taken_back():
    names = UniqueNames()
    names.take("a")
    names.begin()
    assert [names.take("a"), names.take("b"), names.take("a")] == ["a_1", "b", "a_2"]
    names.mark("c")
    names.end(succeeded=False)
    assert [names.take("a"), names.take("b"), names.take("c")] == ["a_1", "b", "c"]
    names.begin()
    names.take("d")
    names.end(succeeded=True)
    assert names.take("d") == "d_1"


def test_a_node_that_is_called_like_another_was_not_given_its_name():
    graph = cytape.Graph()
    first, second = graph.no_op("first"), graph.no_op()
    x, y = graph.constant(1.0), graph.constant(2.0)
    graph.give_name_of(x.op, first, "new")
    graph.give_name_of(y.op, second, "new")
    assert [x.op.name, y.op.name] == ["new", "new_1"]
    assert [graph.was_named(op.node) for op in (x.op, y.op)] == [True, False]
    with pytest.raises(ValueError, match="is called 'new' already"):
        graph.give_name_of(x.op, second, "late")
