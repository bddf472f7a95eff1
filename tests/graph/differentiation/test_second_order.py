"""Hessians and their products with vectors, as ops of a graph."""

import numpy as np
import pytest

import cytape
from cytape.graph import hessian_vector_product
from cytape.tensor.recording.state import building_into
from tests.graph.programs import evaluate, new_graph, types_of


@pytest.fixture
def matrix(rng):
    return rng.normal(size=(4, 4))


@pytest.fixture
def rng():
    return np.random.default_rng(3)


# ---- hessians


def test_d_4d_01_of_a_quadratic_form(graph, matrix, rng):
    x = cytape.constant(rng.normal(size=4))
    [hessian] = cytape.hessians(x @ matrix @ x, x)
    np.testing.assert_allclose(evaluate(hessian), matrix + matrix.T)


def test_d_4d_01_one_per_x(graph, rng):
    matrices = [rng.normal(size=(n, n)) for n in (1, 2, 3)]
    xs = [cytape.constant(rng.normal(size=len(a))) for a in matrices]
    y = sum([x @ a @ x for a, x in zip(matrices, xs, strict=True)])
    hessians = evaluate(cytape.hessians(y, xs))
    for hessian, a in zip(hessians, matrices, strict=True):
        np.testing.assert_allclose(hessian, a + a.T)


def test_d_4d_01_of_a_matrix_it_has_four_axes(graph, rng):
    value = rng.normal(size=(2, 3))
    x = cytape.constant(value)
    [hessian] = cytape.hessians(np.sum(np.sin(x) * x[:, :1]), x)
    assert hessian.shape == (2, 3, 2, 3)
    with building_into(None):
        expected = cytape.hessian(lambda x: cytape.numpy.sum(cytape.numpy.sin(x) * x[:, :1]))(value)
    np.testing.assert_allclose(evaluate(hessian), expected)


def test_d_4d_01_of_half_the_squared_norm_it_is_the_identity(graph, rng):
    x = cytape.constant(rng.normal(size=(3, 2)))
    [hessian] = cytape.hessians(0.5 * np.sum(x * x), x)
    np.testing.assert_array_equal(evaluate(hessian), np.eye(6).reshape(3, 2, 3, 2))


def test_of_a_number(graph):
    x = cytape.constant(3.0)
    assert evaluate(cytape.hessians(x * x * x, x)) == [18.0]


def test_of_several_ys_it_is_that_of_the_sum(graph):
    x = cytape.constant(np.float32(3.0))
    [hessian] = cytape.hessians([x * x, x * x * x], [x])
    assert hessian.dtype == np.float32
    assert evaluate(hessian) == 20.0


def test_with_respect_to_a_variable(graph):
    v = cytape.Variable([1.0, 2.0])
    [hessian] = cytape.hessians(np.sum(v**3), v)
    np.testing.assert_array_equal(evaluate(hessian), [[6.0, 0.0], [0.0, 12.0]])


def test_where_the_gradient_is_sparse(graph):
    table = cytape.constant([1.0, 2.0, 3.0])
    [hessian] = cytape.hessians(np.sum(cytape.gather(table, [0, 2, 2]) ** 2), table)
    np.testing.assert_array_equal(evaluate(hessian), np.diag([2.0, 0.0, 4.0]))


def test_with_respect_to_a_tensor_on_the_way(graph):
    x = cytape.constant([1.0, 2.0])
    y = 3.0 * x
    hessian_x, hessian_y = cytape.hessians(np.sum(y * y * y), [x, y])
    np.testing.assert_allclose(evaluate(hessian_x), np.diag([162.0, 324.0]))
    np.testing.assert_allclose(evaluate(hessian_y), np.diag([18.0, 36.0]))


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
@pytest.mark.parametrize("linear", [
    lambda x: x, lambda x: np.sum(3.0 * x), lambda x: np.sum(x * cytape.stop_gradient(x)),
    lambda x: cytape.cond(np.sum(x) > 0, lambda: 2.0 * x, lambda: -x),
    lambda x: cytape.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0), (0, x))[1],
])  # fmt: skip
def test_of_a_linear_function_it_is_zero(graph, linear, shape):
    value = np.ones(shape, np.float32)
    x = cytape.placeholder("float32", shape)
    v = cytape.Variable(value)
    [hessian, of_variable] = cytape.hessians([linear(x), linear(v)], [x, v])
    products = hessian_vector_product([linear(x), linear(v)], [x, v], [value, value])
    for found, wanted in [(hessian, 2 * shape), (of_variable, 2 * shape), *[
            (product, shape) for product in products]]:
        array = cytape.Session(graph).run(found, {x: value})
        assert (array.shape, array.dtype) == (wanted, np.float32)
        np.testing.assert_array_equal(array, np.zeros(wanted))


def test_where_an_x_is_linear_beside_others(graph):
    x, y = cytape.constant([1.0, 2.0]), cytape.constant(3.0)
    total = np.sum(x) * y + y**3 + np.sum(2.0 * x)
    of_x, of_y = cytape.hessians(total, [x, y])
    np.testing.assert_array_equal(evaluate(of_x), np.zeros((2, 2)))
    assert evaluate(of_y) == 18.0
    product, of_y = hessian_vector_product(total, [x, y], [[1.0, 1.0], 0.0])
    np.testing.assert_array_equal(evaluate(product), [0.0, 0.0])
    assert evaluate(of_y) == 2.0


def test_products_with_linear_functions_of_unknown_extents(graph):
    x = cytape.placeholder("float64", (None,))
    [product] = hessian_vector_product(np.sum(3.0 * x), x, x)
    np.testing.assert_array_equal(cytape.Session(graph).run(product, {x: [1.0, 2.0]}), [0.0, 0.0])


def test_d_4d_02_without_a_first_derivative_it_is_an_error(graph):
    x, other = cytape.constant([1.0, 2.0]), cytape.constant([1.0, 2.0])
    with pytest.raises(ValueError, match=r"no derivative with respect to xs\[1\]"):
        cytape.hessians(x[0] ** 2, [x, other])
    for option in "zero", cytape.UnconnectedGradients.ZERO:
        _, zeros = cytape.hessians(x[0] ** 2, [x, other], unconnected_gradients=option)
        np.testing.assert_array_equal(evaluate(zeros), np.zeros((2, 2)))
        _, zeros = hessian_vector_product(
            x[0] ** 2, [x, other], [x, x], unconnected_gradients=option)
        np.testing.assert_array_equal(evaluate(zeros), [0.0, 0.0])


def test_a_shape_that_is_not_known_is_an_error(graph):
    x = cytape.placeholder("float64", (None,))
    with pytest.raises(ValueError, match=r"shape.*xs\[0\] is \(None,\)"):
        cytape.hessians(np.sum(x * x), x)


def test_the_number_of_ops_does_not_depend_on_that_of_the_elements():
    sizes = []
    for n in (2, 50):
        graph, x = new_graph((n,))
        cytape.hessians(np.sum(np.sin(x) * np.exp(x)), x)
        sizes.append(graph.n_nodes)
    assert sizes[0] == sizes[1]


def test_hessians_do_not_follow_each_other():
    sizes = []
    for n in (1, 2, 3, 4):
        graph, x = new_graph((2,))
        y = np.sum(np.sin(x))
        before = graph.n_nodes
        cytape.hessians(y, [x] * n)
        sizes.append(graph.n_nodes - before)
    np.testing.assert_array_equal(np.diff(sizes), sizes[1] - sizes[0])


def test_in_eager_mode_it_is_a_runtime_error():
    x = cytape.constant(3.0)
    with pytest.raises(RuntimeError, match="GradientTape"):
        cytape.hessians(x * x, x)
    with pytest.raises(RuntimeError, match="GradientTape"):
        hessian_vector_product(x * x, x, x)


def test_ops_live_in_a_scope(graph):
    x, v = cytape.constant(3.0), cytape.constant(1.0)
    y = x * x
    before = graph.n_nodes
    cytape.hessians(y, x)
    hessian_vector_product(y, x, v, name="product")
    names = [op.name for op in graph.get_operations()[before:]]
    assert {name.partition("/")[0] for name in names} == {"hessians", "product"}


# ---- products with vectors


def test_d_4d_02_of_a_quadratic_form_with_a_vector(graph, matrix, rng):
    x, v = cytape.constant(rng.normal(size=4)), rng.normal(size=4)
    [product] = hessian_vector_product(x @ matrix @ x, [x], [cytape.constant(v)])
    np.testing.assert_allclose(evaluate(product), (matrix + matrix.T) @ v)


def test_d_4d_02_blocks_off_the_diagonal_count(graph):
    x, y = cytape.constant(2.0), cytape.constant(3.0)
    v, w = cytape.constant(10.0), cytape.constant(100.0)
    # The Hessian of x**2 y is [[2 y, 2 x], [2 x, 0]].
    assert evaluate(hessian_vector_product(x * x * y, [x, y], [v, w])) == [460.0, 40.0]


def test_d_4d_02_the_vector_counts_as_a_constant(graph):
    x = cytape.constant(2.0)
    assert evaluate(hessian_vector_product(x * x * x, x, x * x)) == [48.0]


@pytest.mark.parametrize("vs", [1, 3])
def test_d_4d_02_another_number_of_vectors_is_an_error(graph, vs):
    x, y = cytape.constant(2.0), cytape.constant(3.0)
    with pytest.raises(ValueError, match=f"each of the 2 xs, got {vs}"):
        hessian_vector_product(x * x * y, [x, y], [x] * vs)


def test_d_4d_02_where_nothing_depends_on_an_x(graph):
    x, y = cytape.constant(2.0), cytape.constant(3.0)
    product, nothing = hessian_vector_product(x * x, [x, y], [x, x])
    assert (evaluate(product), nothing) == (4.0, None)


def test_a_product_with_a_sparse_gradient(graph):
    table = cytape.constant([1.0, 2.0, 3.0])
    y = np.sum(cytape.gather(table, [0, 2, 2]) ** 3)
    [product] = hessian_vector_product(y, table, cytape.constant([1.0, 10.0, 100.0]))
    product = product.to_tensor() if isinstance(product, cytape.IndexedSlices) else product
    np.testing.assert_allclose(evaluate(product), [6.0, 0.0, 3600.0])


def test_options_are_passed_on(graph):
    x = cytape.constant(2.0)
    y = x * x
    before = graph.n_nodes
    [product] = hessian_vector_product(y * x, [x], [x], gate_gradients=True)
    assert "Tuple" in types_of(graph, before)
    assert evaluate(product) == 24.0
    assert evaluate(hessian_vector_product(y * x, x, x, stop_gradients=y)) == [0.0]


def test_in_a_function_with_respect_to_what_it_captured(graph):
    v = cytape.Variable([1.0, 2.0])
    x = cytape.constant([3.0, 4.0])
    y = x * x

    @cytape.function
    def second():
        return cytape.hessians(np.sum(y * x * v), x)

    np.testing.assert_allclose(evaluate(second()[0]), np.diag([18.0, 48.0]))
