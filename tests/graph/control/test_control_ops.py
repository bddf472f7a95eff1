"""Control ops in plans: what is run, how often, and what is handed on."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphError
from cytape.graph.control.control_ops import CondOp, LoopOp, kept_arrays, stacked
from cytape.graph.run.value_op import ValueOp
from cytape.ops.engine.op_kinds import OPS
from cytape.tensor.values.spec import symbolic_spec
from tests.cases import each


def test_they_run_with_values():
    assert isinstance(OPS["Cond"], CondOp)
    assert isinstance(OPS["While"], LoopOp)
    assert issubclass(CondOp, ValueOp)
    assert issubclass(LoopOp, ValueOp)


def test_arrays_are_stacked():
    spec = symbolic_spec((2,), "float32")
    rows = [np.array([i, i + 1], "float32") for i in range(3)]
    assert stacked(rows, spec).tolist() == [[0, 1], [1, 2], [2, 3]]
    empty = stacked([], symbolic_spec((None, 3), "float32"))
    assert (empty.shape, empty.dtype) == ((0, 0, 3), np.float32)
    assert stacked([], symbolic_spec(None, "int64")).shape == (0,)
    with pytest.raises(GraphError, match="must have one shape"):
        stacked([np.zeros(2), np.zeros(3)], spec)


def test_a_stack_of_slices_of_several_lengths_has_no_rows_without_iterations():
    stack, lengths = kept_arrays([], [symbolic_spec((2, 3), "float32")], ragged=(0,))
    assert (stack.shape, stack.dtype, lengths.shape) == ((0, 3), np.float32, (0,))


@each("mode", [lambda f: f, cytape.grad])
def test_branches_that_are_not_taken_leave_no_rows_of_unknown_extents(mode):
    variable = cytape.Variable(np.ones(3))

    def f(x, n):
        def mapped(y):
            rows = cytape.map_fn(lambda e: (variable.assign(y * variable), y * e)[1], x[x > 0.2])
            return y + cnp.sum(rows, axis=0)

        def step(i, y):
            return i + 1, cytape.cond(i % 2 == 1, lambda: mapped(y), lambda: y * 0.5)

        return cnp.sum(cytape.while_loop(lambda i, _: i < n, step, (cytape.constant(0), x))[1])

    x = np.array([0.1, 0.5, 0.7])
    traced = cytape.function(mode(lambda x, n: f(x, n)), input_signature=[
        cytape.Spec.of((None,), float), cytape.Spec.of((), int)])
    for n in 0, 1, 2, 3:
        variable.assign(np.ones(3))
        wanted = mode(f)(x, n)
        for _ in range(2):
            variable.assign(np.ones(3))
            np.testing.assert_allclose(traced(x, n), wanted)


def test_results_are_new():
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (3,))
        y, z = cytape.while_loop(lambda y, z: cnp.sum(y) < 0, lambda y, z: (y, z), (x, x))
        w = cytape.cond(cnp.sum(x) > 0, lambda: x, lambda: x)
    given = np.ones(3)
    results = cytape.Session(graph).run([y, z, w], {x: given})
    given[:] = 7
    assert [r.tolist() for r in results] == [[1.0] * 3] * 3


@each("size", [1, 7, 100_000])  # inside values, in the frame, and large
def test_values_of_all_sizes_are_handed_on(size):
    @cytape.function
    def f(x, a):
        _, y = cytape.while_loop(
            lambda i, y: i < 5, lambda i, y: (i + 1, cnp.where(i % 2 == 0, y * a, y + x)), (0, x))
        return y

    x, a = np.linspace(0.1, 1.0, size), np.linspace(2.0, 3.0, size)
    y = x
    for i in range(5):
        y = y * a if i % 2 == 0 else y + x
    for _ in range(3):
        np.testing.assert_allclose(f(x, a), y, rtol=1e-12)
    np.testing.assert_allclose(
        cytape.grad(lambda x: cnp.sum(f(x, cytape.constant(a))))(x), a**3 + a**2 + a, rtol=1e-12)


def test_many_iterations():
    @cytape.function
    def f(x):
        _, y = cytape.while_loop(lambda i, y: i < 20_000, lambda i, y: (i + 1, y * 1.0001), (0, x))
        return y

    x = cytape.constant(2.0)
    np.testing.assert_allclose(f(x), 2.0 * 1.0001**20_000, rtol=1e-9)
    np.testing.assert_allclose(cytape.grad(f)(x), 1.0001**20_000, rtol=1e-9)


@each("calls_python", [False, True])
def test_a_loop_whose_size_a_run_tells_runs_without_python_when_it_is_known(calls_python):
    @cytape.function
    def f(x, n):
        def step(i, x, found):
            if calls_python:
                x = cytape.numpy_function(lambda x: x * 1.0, x, specs=cytape.Spec.of((), "float64"))
            return i + 1, cnp.sin(x), found.write(i, x)

        start = 0, x, cytape.TensorArray("float64", size=n, element_shape=())
        return cytape.while_loop(lambda i, *_: i < n, step, start)[2].stack()

    for n in (0, 3, 200, 3):
        x, expected = 0.7, []
        for _ in range(n):
            expected.append(x)
            x = np.sin(x)
        np.testing.assert_allclose(f(np.array(0.7), np.array(n)), expected)
    graph = f.get_concrete_function(np.array(0.7), np.array(3)).graph
    (body,) = [attrs["body"] for attrs in graph.attrs if "body" in attrs]
    assert body.executable.n_plans == (2 if calls_python else 0)  # for a step, by shapes


def test_values_of_changing_shape_are_left_to_python():
    @cytape.function
    def f(x):
        return cytape.while_loop(
            lambda y: len(y) < 9 if y.shape[0] else cnp.sum(y * 0 + 1) < 9,
            lambda y: [cnp.concatenate([y, y])], [x], shape_invariants=[(None,)])[0]

    for n in (2, 5, 9):
        y = np.arange(1.0, n + 1)
        expected = y
        while len(expected) < 9:
            expected = np.concatenate([expected, expected])
        for _ in range(2):
            np.testing.assert_array_equal(f(y), expected)


def test_errors_of_a_loop_of_a_size_that_a_run_tells_say_what_was_computed_once():
    @cytape.function
    def f(n):
        start = 0, cytape.TensorArray("float64", size=n, element_shape=())
        return cytape.while_loop(
            lambda i, _: i < n + 1, lambda i, found: (i + 1, found.write(i, 1.0)), start)[1].stack()

    for _ in range(2):
        with pytest.raises(IndexError, match="index 4 is out of range for size 4") as raised:
            f(np.array(4))
        notes = raised.value.__notes__
        assert [sum(f"computed '{op}" in note for note in notes)
                for op in ("MarkWritten", "While")] == [1, 1]
