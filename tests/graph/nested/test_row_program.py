"""Rows of arrays in plans: the same numbers as NumPy's, and no more bytes for more rows."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.control.row_ops import (
    checked_op,
    cleared_op,
    confirmed_op,
    mark_op,
    placed_op,
    taken_op,
    update_rows_op,
)
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes import optimise
from cytape.graph.run.plan import Plan
from tests.cases import each
from tests.graph.plans import assert_as_reference, plan_of
from tests.tables import table

rng = np.random.default_rng(5)
N = np.int64(300)  # rows, more than are copied into a frame
ONE, SOME = np.array(7), np.array([299, 0, 7])


def array(dtype, *shape):
    return (10 * rng.normal(size=shape)).astype(dtype)


# ---- the ops by themselves

OPS = {
    "take": lambda x, rows, i, axis: taken_op(x, i, N, axis=axis),
    "place": lambda x, rows, i, axis: x + placed_op(rows, i, N, axis=axis, extent=300),
    "zeros": lambda x, rows, i, axis: placed_op(rows, i, N, axis=axis, extent=300),
    "write": lambda x, rows, i, axis: update_rows_op(x, rows, i, N, axis=axis),
    "clear": lambda x, rows, i, axis: cleared_op(x, i, axis=axis),
}


@each(dtype=["float64", "float32", "complex128", "int64", "bool"], axis=[0, 1, 2])
@each("index", [ONE, SOME, np.array([], int)], ids=str)
@each("name", OPS)
def test_as_the_reference(name, index, axis, dtype):
    if name in ("place", "zeros") and dtype not in ("float64", "float32", "complex128"):
        return  # only gradients and tangents are placed
    shape = [2, 3, 2]
    shape[axis] = 300
    x, rows = array(dtype, *shape), array(dtype, *shape[:axis], *index.shape, *shape[axis + 1 :])
    with cytape.Graph().as_default() as graph:
        feeds = [graph.placeholder(a.dtype, a.shape) for a in (x, rows, index)]
        y = OPS[name](*feeds, axis)
    assert plan_of(graph, feeds, [y]).n_calls == 0
    assert_as_reference(graph, feeds, [y], [x, rows, index])


def test_operands_that_are_not_in_order():
    x, rows = array("float64", 300, 4), array("float64", 4)
    with cytape.Graph().as_default() as graph:
        feeds = [graph.placeholder(a.dtype, a.shape) for a in (x, rows)]
        reverse, row, i = feeds[0][::-1, ::2], feeds[1][::2], cytape.constant(3)
        fetches = [
            taken_op(reverse, i, N, axis=0), update_rows_op(reverse, row, i, N, axis=0),
            cleared_op(reverse, i, axis=0),
            reverse + placed_op(row, i, N, axis=0, extent=300),
            confirmed_op(reverse, cytape.constant([True]))]
    assert_as_reference(graph, feeds, fetches, [x, rows])


def test_values_with_readers_left_are_not_overwritten():
    x = array("float64", 300)
    with cytape.Graph().as_default() as graph:
        feed = graph.placeholder("float64", (300,))
        y = cnp.sin(feed)
        i = cytape.constant(3)
        fetches = [
            update_rows_op(y, cytape.constant(5.0), i, N, axis=0), cleared_op(y, i, axis=0),
            update_rows_op(y, y[5], i, N, axis=0),
            update_rows_op(feed, cytape.constant(5.0), i, N, axis=0),
            update_rows_op(cytape.constant(x), cytape.constant(5.0), i, N, axis=0), y]
    before = x.copy()
    assert_as_reference(graph, [feed], fetches, [x])
    np.testing.assert_array_equal(x, before)


@each("index, found", [
    (300, "index 300 is out of range for size 300"), (-1, "index -1 is out of range"),
    (3, "index 3 is written a second time"), ([4, 4], "index 4 is written a second time")])
def test_errors(index, found):
    index = np.asarray(index)
    written = np.zeros(300, bool)
    written[3] = True
    with cytape.Graph().as_default() as graph:
        feeds = [graph.placeholder("bool", (300,)), graph.placeholder("int64", index.shape)]
        marked = mark_op(*feeds)
        checked = checked_op(feeds[1], cytape.constant(300))
    plan = plan_of(graph, feeds, [marked])
    assert plan.n_calls == 0
    for _ in range(2):
        with pytest.raises((IndexError, ValueError), match=found) as raised:
            plan.run([written, index])
        assert any("MarkWritten" in note for note in raised.value.__notes__)
    plan = plan_of(graph, feeds, [checked])
    assert plan.n_calls == 0
    if "range" not in found:
        np.testing.assert_array_equal(plan.run([written, index])[0], index)
        return
    with pytest.raises(IndexError, match=found) as raised:
        plan.run([written, index])
    assert any("Checked" in note for note in raised.value.__notes__)


@each("build", [
    lambda x, row, i: taken_op(x, i, N, axis=2), lambda x, row, i: cleared_op(x, i, axis=5),
    lambda x, row, i: update_rows_op(x, row[:2], i, N, axis=0),
    lambda x, row, i: mark_op(x > 0, i)])
def test_misfits_are_left_to_numpy(build):
    with cytape.Graph().as_default() as graph:
        feeds = [graph.placeholder("float64", shape) for shape in ((300, 4), (4,))]
        feeds.append(graph.placeholder("int64", ()))
        try:
            y = build(*feeds)
        except (IndexError, ValueError, TypeError):
            return
    plan = plan_of(graph, feeds, [y])
    assert plan.n_calls == 1
    with pytest.raises((IndexError, ValueError)):
        plan.run([array("float64", 300, 4), array("float64", 4), np.array(2)])


def test_values_of_another_dtype_are_left_to_numpy():
    x, row = array("float64", 300, 4), array("float32", 4)
    with cytape.Graph().as_default() as graph:
        feeds = [graph.placeholder(a.dtype, a.shape) for a in (x, row)]
        y = update_rows_op(*feeds, cytape.constant(3), N, axis=0)
    assert_as_reference(graph, feeds, [y], [x, row])


# ---- loops

def start(n, *elements):
    ta = cytape.TensorArray("float64", size=n, element_shape=())
    for i, element in enumerate(elements):
        ta = ta.write(i, element)
    return ta


def looped(step, n, first, *variables):
    """Call a step from some place on to the end; it takes the place and returns the variables."""
    return cytape.while_loop(
        lambda i, *_: i < n, lambda i, *v: (i + 1, *step(i, *v)),
        (cytape.constant(first), *variables))[1:]


def written(x, n):
    _, ta = looped(lambda i, v, ta: (v * 0.99, ta.write(i, v)), n, 0, x, start(n))
    return cnp.sum(ta.stack() ** 2)


def written_rows(x, n):
    _, ta = looped(
        lambda i, v, ta: (v * 0.9, ta.write(n - 1 - i, cnp.stack([v, v * v]))), n, 0, x,
        cytape.TensorArray("float64", size=n))
    return cnp.sum(cnp.sin(ta.stack()))


def of_the_one_before(x, n):
    (ta,) = looped(lambda i, ta: (ta.write(i, cnp.sin(ta.read(i - 1))),), n, 1, start(n, x))
    return cnp.sum(ta.stack() ** 2)


def of_two_before(x, n):
    (ta,) = looped(
        lambda i, ta: (ta.write(i, cnp.sin(ta.read(i - 1)) + 0.1 * ta.read(i // 2)),), n, 2,
        start(n, x, x * x))
    return cnp.sum(ta.stack() ** 2)


def of_some_before(x, n):
    weights = np.array([0.3, 0.4])
    (ta,) = looped(
        lambda i, ta: (ta.write(i, cnp.sin(cnp.sum(
            ta.gather(cnp.stack([i - 1, i - 2])) * weights))),), n, 2, start(n, x, x * x))
    return cnp.sum(ta.stack() ** 2)


def scattered(x, n):
    _, ta = looped(
        lambda i, v, ta: (v * 0.99, ta.scatter(cnp.stack([2 * i, 2 * i + 1]),
                                               cnp.stack([v, v * v]))), n // 2, 0, x, start(n))
    return cnp.sum(ta.stack() ** 2)


def two_arrays_in_turn(x, n):
    a, b = looped(lambda i, a, b: (b.write(2 * i, x + i), a.write(2 * i + 1, x * x)),
                  n // 2, 0, start(n), start(n))
    return cnp.sum(a.stack() ** 2) + cnp.sum(cnp.sin(b.stack()))


def in_a_branch(x, n):
    def step(i, v, ta):
        return v * 0.99, cytape.cond(i % 3 == 0, lambda: ta.write(i, v), lambda: ta)

    _, ta = looped(step, n, 0, x, start(n))
    return cnp.sum(ta.stack() ** 2)


def in_either_branch(x, n):
    def step(i, v, ta):
        return v * 0.99, cytape.cond(
            i % 3 == 0, lambda: ta.write(i, v), lambda: ta.write(i, ta.read(i - 1) * v))

    _, ta = looped(step, n, 0, x, start(n))
    return cnp.sum(ta.stack() ** 2)


def in_an_inner_loop(x, n):
    m = n // 20

    def step(i, v, ta):
        return looped(
            lambda j, v, ta: (v * 0.99 + 0.01 * ta.read(i), ta.write(i * 20 + j, v)), 20, 0, v, ta)

    _, ta = looped(step, m, 0, x, start(n))
    return cnp.sum(ta.stack() ** 2)


def elements_of_a_tensor(x, n):
    c = x * np.linspace(0.0, 1.0, n)
    v, c = looped(lambda i, v, c: (cnp.sin(v + c[i] + c[i - 1]), c), n, 1, x, c)
    return v + cnp.sum(c)


def elements_of_what_is_captured(x, n):
    c = x * np.linspace(0.0, 1.0, n)
    (v,) = looped(lambda i, v: (cnp.sin(v + c[i] + c[i - 1]),), n, 1, x)
    return v


PROGRAMS = [
    written, written_rows, of_the_one_before, of_two_before, of_some_before, scattered,
    two_arrays_in_turn, in_a_branch, in_either_branch, in_an_inner_loop, elements_of_a_tensor,
    elements_of_what_is_captured,
]


def tangent_of(f):
    return lambda x: cytape.jvp(f, (x,), (cytape.constant(1.0),))[1]


MODES = {
    "value": lambda f: f, "gradient": cytape.grad, "tangent": tangent_of,
    "gradient twice": lambda f: cytape.grad(cytape.grad(f)),
    "gradient of a tangent": lambda f: cytape.grad(tangent_of(f)),
    "tangent of a gradient": lambda f: tangent_of(cytape.grad(f)),
    "directions": cytape.jacfwd,
}


@pytest.mark.parametrize("mode", table(
    ["value", "gradient", "gradient twice", "tangent of a gradient"],
    ["tangent", "gradient of a tangent", "directions"]))
@pytest.mark.parametrize("program", PROGRAMS)
def test_loops_in_all_modes(program, mode):
    n, x = 160, cytape.constant(0.7)  # the rows of 160 are more than what a frame copies

    def f(x):
        return program(x, n)

    found = cytape.function(MODES[mode](f))(x)
    np.testing.assert_allclose(found, cytape.function(MODES[mode](cytape.function(f)))(x))
    if mode in ("value", "gradient"):
        np.testing.assert_allclose(found, MODES[mode](f)(x), rtol=1e-9)
        return
    gradient = cytape.grad(f)
    if mode in ("tangent", "directions"):
        np.testing.assert_allclose(found, gradient(x), rtol=1e-9)
        return
    slope = (gradient(x + 1e-5) - gradient(x - 1e-5)) / 2e-5
    np.testing.assert_allclose(found, slope, rtol=1e-5)


def efforts(program, mode, n):
    """Return the bytes of steps that the loops' iterations take; check that none calls Python."""
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", ())
        y = MODES[mode](lambda x: program(x, n))(x)
    plan = Plan(optimise(Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(y),))))
    loops = [program.effort for program in plan.code.subprograms if program.effort]
    assert plan.n_calls == 0
    assert loops
    return loops


@each(mode=["value", "gradient", "tangent", "gradient twice"], program=PROGRAMS)
def test_an_iteration_takes_as_much_whatever_the_size(program, mode):
    if (program, mode) == (in_an_inner_loop, "tangent"):
        return  # the inner loop and its tangents are two loops, of which one copies the array
    if program is in_either_branch and mode != "value":
        return  # gradients of its inputs are as large as the array, and tangents are read late
    assert efforts(program, mode, 4000) == efforts(program, mode, 40_000)


@each("program", [written, of_the_one_before, of_two_before, in_a_branch, in_an_inner_loop])
def test_nothing_of_the_array_is_kept_for_the_gradient(program):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", ())
        cytape.gradients(program(x, 400), [x])
    for op in graph.get_operations():
        if op.type == "While":
            n = op.attrs["n_variables"]
            assert all(400 not in tensor.shape for tensor in op.outputs[1 + n :])
