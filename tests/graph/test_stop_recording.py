"""stop_recording() inside of what is traced: as it is where ops are computed one by one."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import TapeStateError
from cytape.graph import Graph
from tests import ways
from tests.bodies import branch, loop, nested
from tests.cases import each
from tests.tables import table
from tests.ways import gradient, tangent


def plain(x):
    with cytape.stop_recording():
        y = x * x
    return y * x


def of_reshaped(x):
    with cytape.stop_recording():
        y = cnp.reshape(cnp.sin(x), (1,))
    return cnp.sum(y * x) + x**3


def recording_inside(x):
    with cytape.stop_recording():
        slope = gradient(lambda x: x**3, x)
    return slope * x


def of_another_function(x):
    inner = cytape.function(lambda x: x**2)
    with cytape.stop_recording():
        y = inner(x)
    return y * inner(x)


def watched_inside(x):
    return gradient(plain, x) * x


def accumulated_inside(x):
    return ways.tangent(plain, x, cytape.constant(1.0)) * x


def called_beneath_a_tape(x):
    return gradient(cytape.function(plain), x) * x


def recorded_again_beneath(x):
    with cytape.stop_recording():
        slope = gradient(
            lambda x: cytape.function(plain)(x) + cytape.function(lambda x: x**3)(x), x)
    return slope * x


def raised_inside(x):
    try:
        with cytape.stop_recording():
            raise KeyError
    except KeyError:
        return x * x


def recomputed(x):
    return cytape.recompute_grad(lambda x: x * x)(x) * x


PROGRAMS = [plain, of_reshaped, recording_inside, of_another_function, watched_inside,
            accumulated_inside, called_beneath_a_tape, recorded_again_beneath, raised_inside,
            recomputed]


def in_a_branch(f):
    return cytape.function(lambda x: cytape.cond(x > 0.0, lambda: f(x), lambda: x * 7.0))


def in_a_stateful_branch(f):
    calls = cytape.Variable(0.0, trainable=False)

    def counted(x):
        calls.assign_add(1.0)
        return f(x)

    return cytape.function(lambda x: cytape.cond(x > 0.0, lambda: counted(x), lambda: x * 7.0))


def in_a_stateful_loop(f):
    calls = cytape.Variable(0.0, trainable=False)

    def body(i, y):
        calls.assign_add(1.0)
        return i + 1, f(y)

    return cytape.function(lambda x: cytape.while_loop(
        lambda i, y: i < 1, body, (cytape.constant(0), x))[1])


PLACES = [cytape.function, nested, in_a_branch, in_a_stateful_branch, in_a_stateful_loop,
          lambda f: cytape.function(loop(f)), lambda f: cytape.function(loop(branch(f)))]


# In a graph, too, by a tape: `gradients` knows no recording.
MODES = {**ways.ALL_MODES, "by_tape": lambda *arguments: ways.reverse(*arguments)}


@each("route", PLACES)
@pytest.mark.parametrize("way", table(
    [("value", "eager"), ("reverse", "eager"), ("forward", "eager"),
     ("forward_over_reverse", "eager"), ("by_tape", "in_graph")],
    [("reverse_over_reverse", "eager"), ("reverse_over_forward", "eager"),
     ("reverse", "in_function")]))
@pytest.mark.parametrize("f", PROGRAMS)
def test_it_is_as_where_ops_are_computed_one_by_one(f, way, route):
    mode, place = way
    x, t = [np.array(1.25)], [np.array(1.0)]
    np.testing.assert_allclose(
        ways.PLACES[place](MODES[mode], route(f), x, t), ways.eager(MODES[mode], f, x, t))


def test_an_unrecorded_factor_is_a_constant():
    x = cytape.constant(2.0)
    for f in plain, cytape.function(plain):
        assert float(gradient(f, x)) == float(tangent(f, x)) == 4.0
        assert gradient(lambda x, f=f: gradient(f, x), x) is None


def test_results_of_unrecorded_values_have_no_gradient():
    @cytape.function
    def f(x):
        with cytape.stop_recording():
            return x * x

    x = cytape.constant(2.0)
    assert gradient(f, x) is tangent(f, x) is None


def test_a_function_that_is_traced_within_the_block_is_recorded_elsewhere():
    f = cytape.function(lambda x: x * x)
    x = cytape.constant(2.0)
    with cytape.stop_recording():
        assert float(f(x)) == 4.0
    assert float(gradient(f, x)) == 4.0


def test_variables_read_within_the_block_are_recorded_after_it():
    v = cytape.Variable(3.0)

    @cytape.function
    def f():
        with cytape.stop_recording():
            y = v * v
        return y * v

    tape, y = ways.taped(f)
    assert float(tape.gradient(y, v)) == 9.0


def test_the_nodes_of_a_gradient_keep_it():
    """Gradient functions of functions are traced like all else."""
    x = cytape.constant(2.0)
    f = cytape.function(cytape.grad(lambda x: plain(x) * x))
    eager = cytape.grad(lambda x: plain(x) * x)
    np.testing.assert_allclose(float(cytape.grad(f)(x)), float(cytape.grad(eager)(x)))


def test_graph_gradients_are_no_recorder():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float64", ())
        y = plain(x)
        (slope,) = cytape.gradients(y, x)
        (curvature,) = cytape.graph.hessians(y, x)
    assert cytape.Session(graph).run([slope, curvature], {x: 2.0}) == [12.0, 12.0]


def test_graph_gradients_of_branches_are_those_that_recorders_find():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float64", ())
        (slope,) = cytape.gradients(in_a_branch(plain)(x), x)
    assert cytape.Session(graph).run(slope, {x: 2.0}) == 4.0


def test_a_saved_graph_keeps_it(tmp_path):
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float64", (), name="x")
        plain(x)
    graph.save(tmp_path / "graph")
    loaded = Graph.load(tmp_path / "graph")
    assert [loaded.contexts[loaded.context_of(node)].recorded for node in range(3)] == [
        True, False, True]


def test_a_tape_from_outside_of_a_trace_cannot_be_stopped_inside():
    with cytape.GradientTape() as tape:
        x = cytape.constant(2.0)
        tape.watch(x)

        @cytape.function
        def f(x):
            with tape.stop_recording():
                y = x * x
            return y * x

        with pytest.raises(TapeStateError, match=r"cytape\.stop_recording"):
            f(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 4.0


def test_a_tape_of_the_trace_can_be_stopped():
    def f(x):
        with ways.watching(x) as tape:
            with tape.stop_recording():
                y = x * x
            z = y * x
        return tape.gradient(z, x)

    assert float(cytape.function(f)(cytape.constant(2.0))) == 4.0


def test_a_tape_around_a_graph_can_be_stopped():
    graph = Graph()
    x = graph.placeholder("float64", ())
    with ways.watching(x) as tape:
        with graph.as_default():
            with tape.stop_recording():
                y = x * x
            z = y * x
    assert cytape.Session(graph).run(tape.gradient(z, x), {x: 2.0}) == 4.0
