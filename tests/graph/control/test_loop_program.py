"""The functions of a loop, called with lists."""

import functools

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from cytape.graph.control.loop_program import Program
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.tensor.recording.state import building_into
from tests.cases import each

X = cytape.constant([1.0, 2.0])


def test_parts_of_lists_and_tuples_are_arguments():
    program = Program(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (0, X), None)
    assert bool(program.goes_on(program.starts))
    i, x = program.step(program.starts)
    assert (int(i), x.numpy().tolist()) == (1, [2.0, 4.0])
    assert isinstance(program.packed([i, x]), tuple)


def test_other_structures_are_one_argument():
    program = Program(lambda s: s["i"] < 3, lambda s: {"i": s["i"] + 1}, {"i": 2}, None)
    assert not program.goes_on(program.step(program.starts))
    assert program.packed([5]) == {"i": 5}


def test_one_variable_in_a_list_may_be_returned_alone():
    program = Program(lambda x: True, lambda x: x + 1, [X], None)
    assert program.step(program.starts)[0].numpy().tolist() == [2.0, 3.0]
    assert isinstance(program.packed(program.starts), list)


def test_an_array_is_one_variable_until_there_is_a_graph():
    array = cytape.TensorArray("float64", size=3)
    program = Program(lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, X)), (0, array), None)
    assert program.starts[1] is array
    variables = program.step(program.starts)
    assert isinstance(variables[1], cytape.TensorArray)
    graph = FunctionGraph("around", None)
    with building_into(graph):
        in_graph = program.in_graph(variables)
    assert [x.shape for x in in_graph.starts] == [(), (3, 2), (3,), ()]


def test_an_array_learns_its_shape_from_a_trial_that_leaves_no_ops():
    array, calls = cytape.TensorArray("float64", size=3), []

    def body(i, a):
        calls.append(1)
        return i + 1, a.write(i, X)

    graph = FunctionGraph("around", None)
    with building_into(graph):
        program = Program(lambda i, a: i < 3, body, (0, array), None).in_graph([0, array])
        n = graph.n_nodes
    assert len(calls) == 1
    assert n <= 3
    assert program.starts[1].shape == (3, 2)


def test_arguments_have_the_shapes_that_remain():
    program = Program(lambda x: True, lambda x: x, [X], [(None,)])
    graph = FunctionGraph("body", None)
    [argument] = program.arguments(graph)
    assert argument.shape == (None,)
    grown = program.step([cytape.constant(np.ones(7))])
    assert grown[0].shape == (7,)
    with pytest.raises(ValueError, match=r"loop_vars\[0\].*does not allow"):
        Program(lambda x: True, lambda x: x, [X], [(3,)])


@each("traced", [False, True])
@each("start", [(0, 1.0), [1.0]], ids=["two", "one"])
def test_a_condition_and_a_body_that_change_places(start, traced):
    def body(*variables):
        return [v + 1 for v in variables]

    def f(x):
        return cytape.while_loop(body, lambda v, *_: v < 3, [*start[:-1], x])

    f = cytape.function(f) if traced else f
    with pytest.raises(TypeError, match="takes the condition first, then the body"):
        f(cytape.constant(start[-1]))


def test_a_loop_over_a_boolean_may_return_one():
    [found] = cytape.while_loop(lambda p: p, lambda p: ~p, [np.array(True)])
    assert not found


def test_an_error_about_a_dtype_says_what_a_python_number_is():
    for f in (lambda f: f, cytape.function):
        with pytest.raises(TypeError, match=r"loop_vars\[1\] from int64 to float32.*numpy.float32"):
            f(lambda x: cytape.while_loop(
                lambda i, _: i < 3, lambda i, y: (i + 1, cnp.asarray(y, "float32") * x), (0, 0)))(
                cytape.constant(np.float32(2)))


def test_start_values_that_are_numpy_scalars_keep_their_dtypes():
    for f in (lambda f: f, cytape.function):
        found = f(lambda x: cytape.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, y + x), (0, np.float32(0)))[1])(
            cytape.constant(np.float32(2)))
        assert (found.dtype, float(found)) == (np.float32, 6.0)


@each("pred", [
    lambda x: x > 0 and x < 9, lambda x: x < 0 or x < 9, lambda x: not x > 9, lambda x: 0 < x < 9,
], ids=["and", "or", "not", "chain"])  # fmt: skip
def test_python_operators_of_predicates_are_named_with_what_there_is_instead(pred):
    loop = cytape.function(lambda x: cytape.while_loop(pred, lambda x: x + 1, [x]))
    branch = cytape.function(lambda x: cytape.cond(pred(x), lambda: x, lambda: -x))
    for f in (loop, branch):
        with pytest.raises(SymbolicTensorError, match=r"&, \| and ~.* instead of and, or and not"):
            f(np.array(1.0))


@each("f", [lambda f: f, cytape.function])
@each("cond, body, called", [
    (lambda i: i < 3, lambda i, y: (i + 1, y), "cond"),
    (lambda i, y: i < 3, lambda i: (i + 1, i), "body"),
])
def test_functions_of_other_numbers_of_variables_are_named(f, cond, body, called):
    with pytest.raises(TypeError, match=f"^{called} must take 2 arguments, one for each loop"):
        f(lambda y: cytape.while_loop(cond, body, (0, y)))(cytape.constant(1.0))


@each("f", [lambda f: f, cytape.function])
def test_errors_inside_a_body_stay_what_they_are(f):
    with pytest.raises(TypeError, match="^here$"):
        f(lambda y: cytape.while_loop(lambda y: y < 3, failing, [y]))(cytape.constant(1.0))


def failing(y):
    raise TypeError("here")


@each("f", [lambda f: f, cytape.function])
def test_errors_inside_what_wraps_a_function_of_more_arguments_stay_what_they_are(f):
    wrapper = functools.wraps(lambda y, z: y)(lambda y: failing(y))
    with pytest.raises(TypeError, match="^here$"):
        f(lambda y: cytape.while_loop(lambda y: y < 3, wrapper, [y]))(cytape.constant(1.0))


def test_a_function_that_is_both_is_named_as_the_one_that_was_called():
    program = Program(failing, failing, [1.0, 2.0], None)
    for call, called in ((program.goes_on, "cond"), (program.step, "body")):
        with pytest.raises(TypeError, match=f"^{called} must take 2 arguments"):
            call(program.starts)


def test_one_argument_is_not_in_the_plural():
    with pytest.raises(TypeError, match="^body must take 1 argument, one for each loop variable:"):
        cytape.while_loop(lambda i: i < 3, lambda: 1, [0])
