"""Options of while_loop and cond, values in hand, and what bodies may return."""


import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.cases import each
from tests.graph.programs import run, scalar, values


@each("traced", [False, True])
def test_python_bools_as_results_of_the_condition(traced):
    def f(x, go_on):
        return cytape.while_loop(lambda v: go_on, lambda v: v * 2.0, x, maximum_iterations=3)

    g = cytape.function(f) if traced else f
    for go_on, expected in ((True, 8.0), (False, 1.0), (np.True_, 8.0), (np.bool_(False), 1.0)):
        assert float(g(cytape.constant(1.0), go_on)) == expected
        assert float(cytape.grad(lambda x, go_on=go_on: g(x, go_on))(1.0)) == expected


@each("traced", [False, True])
@each("invariants", [[None, (None,)], ([], [None]), ((), cytape.Spec.of((None,), "float64"))])
def test_shape_invariants(traced, invariants):
    def f(x):
        _, y = cytape.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, cnp.concatenate([y, 2.0 * y[:1]])), (0, x),
            invariants)
        assert x.graph is None or y.shape == (None,)
        return y

    g = cytape.function(f) if traced else f
    assert g(cytape.constant([1.0, 5.0])).numpy().tolist() == [1.0, 5.0, 2.0, 2.0, 2.0]
    gradient = cytape.grad(lambda x: cnp.sum(f(x) * np.array([1.0, 10.0, 100.0, 1.0, 1.0])))
    assert gradient(np.array([1.0, 5.0])).tolist() == [205.0, 10.0]


@each("traced", [False, True])
def test_a_shape_invariant_of_unknown_rank(traced):
    def f(x):
        return cytape.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, x[None] * cnp.sum(y)), (0, x),
            [None, cytape.Spec.of(None, "float64")])[1]

    g = cytape.function(f) if traced else f
    assert g(cytape.constant([1.0, 2.0])).numpy().tolist() == [[9.0, 18.0]]


@each("traced", [False, True])
def test_shape_invariants_of_a_single_variable_and_of_structures(traced):
    def single(x):
        return cytape.while_loop(
            lambda y: cnp.size(y) < 5, lambda y: cnp.concatenate([y, y]), x, (None,))

    def nested(x):
        return cytape.while_loop(
            lambda s: cnp.size(s["y"][0]) < 5,
            lambda s: {"y": (cnp.concatenate([s["y"][0], x]),), "n": s["n"] + 1},
            {"n": 0, "y": (x,)}, {"n": (), "y": ((None,),)})["y"][0]

    for f, size in ((single, 8), (nested, 6)):
        f = cytape.function(f) if traced else f
        assert f(cytape.constant([1.0, 2.0])).shape == (size,)


@each("traced", [False, True])
def test_shape_invariants_hold(traced):
    def raises(error, match, body, invariants):
        def call(x):
            return cytape.while_loop(lambda i, y: i < 2, body, (0, x), invariants)
        with pytest.raises(error, match=match):
            (cytape.function(call) if traced else call)(cytape.constant([[1.0, 2.0]]))

    raises(ValueError, r"shape of loop_vars\[1\] from \(None, 2\) to .* 4\): .* \(None, None\)",
           lambda i, y: (i + 1, cnp.concatenate([y, y], axis=1)), [(), (None, 2)])
    raises(ValueError, r"invariant of loop_vars\[1\], .* does not allow for its start value, .*"
           r"shape \(1, 2\)", lambda i, y: (i + 1, y), [(), (None, 3)])
    raises(ValueError, "does not allow for", lambda i, y: (i + 1, y),
           [(), cytape.Spec.of((1, 2), "int64")])
    raises(ValueError, "shape_invariants must be structured as loop_vars: structures differ",
           lambda i, y: (i + 1, y), [()])
    raises(TypeError, "invariant of .* must be a shape, such as .*, got 'wide'",
           lambda i, y: (i + 1, y), [(), "wide"])


@each("traced", [False, True])
def test_without_back_prop_the_results_are_constants(traced):
    def f(x):
        y = cytape.while_loop(lambda v: v < 8, lambda v: v * x, x, back_prop=False)
        return y, y * x

    f = cytape.function(f) if traced else f
    x = cytape.constant(2.0)
    tape, (y, product) = ways.taped(f, x, persistent=True)
    assert (float(y), tape.gradient(y, x), float(tape.gradient(product, x))) == (8.0, None, 8.0)
    with cytape.ForwardAccumulator(x, cytape.constant(1.0)) as accumulator:
        y, product = f(x)
    assert (accumulator.jvp(y), float(accumulator.jvp(product))) == (None, 8.0)


def test_without_back_prop_in_a_graph(graph):
    x = scalar()
    y = cytape.while_loop(lambda v: v < 8, lambda v: v * x, x, back_prop=False)
    assert cytape.gradients(y, x) == [None]
    [slope] = cytape.gradients(y * x, x)
    assert run([y, slope], {x: 2.0}) == [8.0, 8.0]


def test_return_same_structure(graph):
    x = scalar()
    loop = lambda v, **more: cytape.while_loop(  # noqa: E731
        lambda v, *_: v < 8, lambda v, *more: (v * v, *more), v, **more)
    assert isinstance(loop([x]), list)
    assert isinstance(loop((x,), return_same_structure=False), cytape.Tensor)
    assert len(loop((x, x), return_same_structure=False)) == 2
    assert isinstance(loop([cytape.constant(2.0)], return_same_structure=False), cytape.Tensor)


def test_parallel_iterations_have_no_effect(graph):
    x = scalar()
    y = cytape.while_loop(lambda v: v < 8, lambda v: v * v, x, parallel_iterations=1)
    assert run([y], {x: 2.0}) == [16.0]
    for wrong, error in ((0, ValueError), (2.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="parallel_iterations must be"):
            cytape.while_loop(lambda v: v < 8, lambda v: v * v, x, parallel_iterations=wrong)


def test_with_values_cond_calls_one_of_the_functions():
    called = []
    result = cytape.cond(np.array(False), lambda: called.append(1), lambda: "anything")
    assert (result, called) == ("anything", [])
    assert cytape.cond(cytape.constant(1.0) > 0, lambda: 5, lambda: 6) == 5


def test_with_values_a_loop_is_pythons_and_tapes_record_it():
    x, a = cytape.constant(2.0), cytape.constant(3.0)
    tape, [y] = ways.taped(
        lambda x, a: cytape.while_loop(lambda v: v < 100, lambda v: [v * a], [x]), x, a)
    assert float(y) == 162.0
    assert values(tape.gradient(y, [a, x])) == [216.0, 81.0]


@each("traced", [False, True])
def test_maximum_iterations(traced):
    def f(x):
        return cytape.while_loop(lambda v: v < 100, lambda v: v * 2, x, maximum_iterations=3)

    f = cytape.function(f) if traced else f
    assert float(f(cytape.constant(1.0))) == 8.0
    assert float(f(cytape.constant(60.0))) == 120.0


def test_the_maximum_may_be_a_tensor(graph):
    x, n = scalar(), scalar("int64")
    y = cytape.while_loop(lambda v: v < 100, lambda v: v * 2, x, maximum_iterations=n)
    assert run([y], {x: 1.0, n: 3}) == [8.0]


def test_a_loop_goes_on_in_a_graph_once_its_condition_belongs_to_one():
    graph = cytape.Graph()
    n = graph.placeholder("int64", ())
    y = cytape.while_loop(lambda i: i < n, lambda i: i + 2, 1)
    assert run([y], {n: 6}) == [7]


def test_a_condition_that_says_nothing_is_none():
    looked = cytape.Variable(0)

    def looking(_):
        looked.assign_add(1)
        return True

    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", ())
        loops = [cytape.while_loop(cond, lambda y: y * 2.0, x, maximum_iterations=3)
                 for cond in (lambda _: True, lambda _: cnp.array(True), lambda _: False, looking)]
    assert [op.get_attr("condition") is None for op in (y.op for y in loops)] == [
        True, True, False, False]
    assert [float(y) for y in cytape.Session(graph).run(loops, {x: 1.0})] == [8.0, 8.0, 1.0, 8.0]
    assert int(looked) == 3


def test_results_of_a_branch_may_be_changed():
    x = cytape.constant([1.0, 2.0])
    y = cytape.cond(cytape.constant(True), lambda: {"y": x}, lambda: {"y": -x})["y"]
    y[0] = 9.0
    assert x.numpy().tolist() == [1.0, 2.0]


@each("f", [lambda f: f, cytape.function])
def test_branches_that_take_arguments_are_named(f):
    with pytest.raises(TypeError, match=r"^true_fn must take no arguments, as lambda: f\(x\)") as e:
        f(lambda x: cytape.cond(x > 0, lambda x: x, lambda: x))(cytape.constant(1.0))
    assert "missing 1 required positional argument" in str(e.value.__cause__)


@each("f", [lambda f: f, cytape.function])
def test_errors_inside_a_branch_stay_what_they_are_beside_one_that_takes_arguments(f):
    def failing():
        raise TypeError("here")

    with pytest.raises(TypeError, match="^here$"):
        f(lambda x: cytape.cond(x > 0, failing, lambda x: x))(cytape.constant(1.0))


@each(chosen=[True, False], way=["eager", "function", "graph", "branch", "loop", "vmap"])
def test_a_python_bool_chooses_as_if_does(way, chosen):
    calls = []

    def f(x):
        if chosen:
            return cytape.cond(True, lambda: calls.append(1) or x * x, lambda: calls.append(2))
        return cytape.cond(False, lambda: calls.append(2), lambda: calls.append(1) or x * x)

    x = np.array([1.0, 2.0, 3.0])
    slope = cytape.grad(lambda x: cnp.sum(f(x)))
    found = {
        "eager": lambda: slope(x),
        "function": lambda: cytape.function(slope)(x),
        "graph": lambda: slope_in_a_graph(f, x),
        "branch": lambda: cytape.function(
            lambda x: cytape.cond(x[0] > 0, lambda: slope(x), lambda: 2 * slope(x)))(x),
        "loop": lambda: cytape.function(lambda x: cytape.while_loop(
            lambda i, y: i < 1, lambda i, y: (i + 1, slope(x)), (0, x))[1])(x),
        "vmap": lambda: cytape.vmap(slope)(x[None])[0],
    }[way]()
    np.testing.assert_array_equal(found, 2 * x)
    assert set(calls) == {1}


def slope_in_a_graph(f, x):
    with cytape.Graph().as_default() as graph:
        fed = cytape.placeholder("float64", x.shape)
        [slope] = cytape.gradients([cnp.sum(f(fed))], [fed])
    assert "Cond" not in [op.type for op in graph.get_operations()]
    return cytape.Session(graph).run(slope, {fed: x})
