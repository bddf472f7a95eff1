"""Branches in plans, which run without Python."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.graph.plans import plan_of


def branch_plan(program, *shapes):
    graph = cytape.Graph()
    with graph.as_default():
        inputs = [graph.placeholder("float64", shape) for shape in shapes]
        outputs = program(*inputs)
    plan = plan_of(graph, inputs, outputs)
    assert plan.n_calls == 0
    return plan


@pytest.mark.parametrize("size", [1, 3, 500])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_of_two_is_run(sign, size):
    plan = branch_plan(lambda x, y: cytape.cond(
        cnp.sum(x) > 0, lambda: (x * y, y, x), lambda: (x, y[::-1] + 1.0, x)), (size,), (size,))
    x, y = sign * np.arange(1.0, size + 1), np.linspace(0, 1, size)
    expected = (x * y, y, x) if sign > 0 else (x, y[::-1] + 1.0, x)
    for _ in range(3):
        for found, wanted in zip(plan.run([x, y]), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_branches_of_several_shapes_are_left_to_python():
    @cytape.function
    def f(x):
        return cytape.cond(cnp.sum(x) > 0, lambda: x, lambda: x[:1])

    for _ in range(3):
        assert f(np.ones(3)).shape == (3,)
        assert f(-np.ones(3)).shape == (1,)


def test_branches_have_any_number_of_outputs_and_gradients():
    n = 1100

    @cytape.function
    def f(x):
        return sum(cytape.cond(
            x[0] > 0, lambda: [x[k % 3] * float(k) for k in range(n)],
            lambda: [x[k % 3] for k in range(n)]))

    x = np.array([1.0, 2.0, 3.0])
    weights = [sum(range(k, n, 3)) for k in range(3)]
    np.testing.assert_allclose(float(f(x)), x @ weights)
    np.testing.assert_allclose(cytape.grad(f)(x), weights)
    np.testing.assert_allclose(cytape.grad(f)(-x), [len(range(k, n, 3)) for k in range(3)])


def test_trouble_is_reported_of_the_branch_that_ran():
    @cytape.function
    def f(x):
        return cytape.cond(x > 0, lambda: x, lambda: 1.0 / x)

    for _ in range(3):
        assert float(f(np.array(2.0))) == 2.0
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            assert float(f(np.array(0.0))) == np.inf
