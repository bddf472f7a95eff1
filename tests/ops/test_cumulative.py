"""Special cases of products and of cumulative functions: zeros, overflow, bad arguments."""

import itertools

import numpy as np
import pytest

import cytape
import cytape.numpy as ops
from tests.cases import each
from tests.ways import gradient


@pytest.mark.filterwarnings("ignore")
def test_prod_does_not_overflow_where_the_gradient_does_not():
    np.testing.assert_array_equal(gradient(ops.prod, [1e200, 1e200, 0.0]), [0, 0, np.inf])
    np.testing.assert_array_equal(gradient(ops.prod, [1e-200, 1e-200]), [1e-200, 1e-200])


@each("axis", [None, 0, (0, 2), ()])
def test_a_gradient_of_prod_in_a_graph_is_one_op(axis):
    graph = cytape.Graph()
    with graph.as_default():
        x = graph.placeholder(np.float64, (2, 3, 2))
        y = ops.prod(x, axis=axis)
        before = len(graph.get_operations())
        cytape.gradients(y, [x], [ops.ones_like(y)])
    added = [op.type for op in graph.get_operations()][before:]
    assert set(added) - {"Reshape", "OnesLike", "Constant", "Fill"} == {"ProductsBack"}


FUNCTIONS = {
    "prod": ops.prod, "of columns": lambda x: ops.prod(x, axis=0),
    "of axes apart": lambda x: ops.prod(ops.stack([x, x + 1]), axis=(0, 2)),
    "cumulative": lambda x: ops.cumprod(x, axis=1), "backwards": lambda x: ops.cumprod(x, axis=-2),
    "slices": lambda x: np.multiply.reduceat(x, [1, 2], axis=1),
    "slices of columns": lambda x: np.multiply.reduceat(x, [0, 2], axis=0),
    "slices that overlap": lambda x: np.multiply.reduceat(x, [2, 0, 1, 1], axis=0),
    "no slices": lambda x: np.multiply.reduceat(x, [], axis=1)}


@each("function", FUNCTIONS.values(), ids=FUNCTIONS)
@each("place", [lambda f: f, cytape.function], ids=["eager", "function"])
@pytest.mark.filterwarnings("ignore::cytape.errors.UnconnectedGradientWarning")
def test_modes_agree_to_third_order_also_at_zeros(function, place):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4))
    x[1, 2] = x[2, 2] = x[0, 0] = 0
    t, u, v = rng.normal(size=(3, 3, 4))
    seed = rng.normal(size=np.shape(function(x)))

    def total(x):
        return ops.sum(function(x) * seed)

    def moved(f, t):
        return lambda x: cytape.jvp(f, (x,), (t,))[1]

    def back(f, t):
        return lambda x: ops.sum(cytape.grad(f)(x) * t)

    for directions in (t, u), (t, u, v):
        found = []
        for first, *later in itertools.product([moved, back], repeat=len(directions)):
            f = first(total, directions[0])
            for mode, direction in zip(later, directions[1:], strict=True):
                f = mode(f, direction)
            found.append(float(place(f)(x)))
        np.testing.assert_allclose(found, found[0], 1e-10, 1e-12)


@each(shape=[(0, 3), (3, 0)], function=[ops.prod, FUNCTIONS["of columns"], FUNCTIONS["cumulative"],
                                      FUNCTIONS["of axes apart"], FUNCTIONS["no slices"]])
@pytest.mark.filterwarnings("ignore::cytape.errors.UnconnectedGradientWarning")
def test_tangents_of_arrays_without_elements_to_third_order(function, shape):
    x, f = np.ones(shape), function
    expected = np.shape(function(x))
    for _ in range(3):
        f = lambda x, f=f: cytape.jvp(f, (x,), (np.ones(shape),))[1]  # noqa: E731
        assert f(cytape.constant(x)).shape == expected
        assert cytape.grad(lambda x: ops.sum(f(x)))(x).shape == shape  # noqa: B023
