"""Parts of arrays in plans, forward and backward, at known places and at computed ones."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.model.graph import Graph
from tests.cases import each, sampled
from tests.graph.plans import assert_as_reference, plan_of
from tests.graph.programs import new_graph

RNG = np.random.default_rng(0)
SHAPE = 30, 20, 4
INDICES = {
    "rows": RNG.integers(-30, 30, 50),
    "rows of int16": np.array([3, -1, 3], np.int16),
    "a matrix of rows": RNG.integers(0, 30, (7, 9)),
    "no rows": np.zeros(0, int),
    "one row many times": np.zeros(1000, int),
    "columns": (slice(None), RNG.integers(-20, 20, 33)),
    "elements": (RNG.integers(-30, 30, 40), RNG.integers(0, 20, 40), RNG.integers(0, 4, 40)),
    "of two axes": (RNG.integers(0, 30, (6, 1)), RNG.integers(0, 20, 5)),
    "the last axis": (slice(None), slice(None), np.array([2, 0, 2, 1, 3])),
    "a mask": RNG.uniform(size=SHAPE) < 0.3,
    "a mask of none": np.zeros(SHAPE, bool),
}
ADDED = "float64", "float32", "complex128", "longdouble"


def read_and_put_back(index, dtype, weigh):
    """The part that an index names, and the gradient of a weighted sum of it."""
    graph = Graph()
    x = graph.placeholder(dtype, SHAPE)
    with graph.as_default():
        part = x[index]
        weights = graph.placeholder(dtype, part.shape)
        seed = weights * 2 if weigh else np.broadcast_to(cnp.ravel(x)[5], part.shape)
        (gradient,) = cytape.gradients(part, x, seed)
    arrays = [RNG.integers(-9, 9, of.shape).astype(dtype) for of in (x, weights)]
    if np.dtype(dtype).kind == "c":
        arrays = [array * (1 - 2j) for array in arrays]
    return graph, [x, weights], [part, part.T[..., None] * 2, gradient, gradient * 2], arrays


@each("index", INDICES.values(), ids=INDICES)
@each(dtype=ADDED, weigh=[True, False])
def test_parts_and_their_gradients(index, dtype, weigh):
    graph, feeds, fetches, arrays = read_and_put_back(index, dtype, weigh)
    plan = assert_as_reference(graph, feeds, fetches, arrays)
    if dtype.startswith("float") and np.size(arrays[1]):
        assert plan.n_calls == 0
    for result, expected in zip(
            plan.run(arrays)[::2], [arrays[0][index], gradient_of(index, arrays, weigh)],
            strict=True):
        np.testing.assert_array_equal(result, expected)


def gradient_of(index, arrays, weigh):
    x, weights = arrays
    total = np.zeros_like(x)
    np.add.at(total, index, weights * 2 if weigh else np.full_like(weights, x.ravel()[5]))
    return total


@each("dtype", ["int64", "bool", "int8", "float16", "uint32"])
def test_parts_of_any_numbers(dtype):
    array = RNG.integers(0, 2, SHAPE).astype(dtype)
    for index in INDICES.values():
        graph = Graph()
        x = graph.placeholder(dtype, SHAPE)
        assert_as_reference(graph, [x], [x[index]], [array])


def test_strided_operands():
    array = RNG.normal(size=(20, 30, 4))
    graph, x = new_graph(array.shape)
    turned = cnp.swapaxes(x, 0, 1)[:, :, ::-1]
    parts = [turned[index] for index in INDICES.values()]
    assert_as_reference(graph, [x], parts, [array])


def test_many_terms_of_one_number_are_as_if_added_one_by_one():
    """Where they meet more often than is counted, and where counts tell what that comes to."""
    for many in (255, 256, 300):
        places = np.repeat([7, 300, 511], [many, 3, 1])
        graph = Graph()
        x, s = graph.placeholder("float64", (512,)), graph.placeholder("float64", ())
        with graph.as_default():
            part = x[np.concatenate([places, np.arange(128)])]
            (gradient,) = cytape.gradients(part, x, np.broadcast_to(s, part.shape))
        array = RNG.normal(size=512)
        expected = np.zeros(512)
        np.add.at(expected, np.concatenate([places, np.arange(128)]), 0.1)
        for result in plan_of(graph, [x, s], [gradient]).run([array, np.array(0.1)]):
            np.testing.assert_array_equal(result, expected)


def test_multiples_that_no_place_has_are_not_computed():
    graph = Graph()
    x, s = graph.placeholder("float64", (512,)), graph.placeholder("float64", ())
    with graph.as_default():
        part = x[np.arange(512)]
        (gradient,) = cytape.gradients(part, x, np.broadcast_to(s, part.shape))
    with np.errstate(all="raise"):
        (result,) = plan_of(graph, [x, s], [gradient]).run([np.ones(512), np.array(1e308)])
    np.testing.assert_array_equal(result, np.full(512, 1e308))


def test_rows_of_one_number_are_shown():
    """A gradient that is alike along its rows takes the memory of a column."""
    graph, x = new_graph((40, 50))
    with graph.as_default():
        gradient = cytape.gradients(cnp.sum(x[np.array([3, 3, -1] * 10)]), x)[0]
    plan = assert_as_reference(graph, [x], [gradient, gradient.T + 1.0], [np.ones((40, 50))])
    for _ in range(2):
        gradient = plan.run([np.ones((40, 50))])[0].numpy()
        assert gradient.strides == (8, 0)
        np.testing.assert_array_equal(gradient[:, 7], 20.0 * (np.arange(40) == 3)
                                      + 10.0 * (np.arange(40) == 39))


@each("place", [5, -6])
def test_a_place_that_is_out_of_bounds_is_an_error_when_it_runs(place):
    graph, x = new_graph((5, 3))
    plan = plan_of(graph, [x], [cnp.take(x, np.array([0, place]), axis=0) * 2.0])
    with pytest.raises(IndexError, match=f"index {place} is out of bounds for axis 0"):
        plan.run([np.ones((5, 3))])


@each(axis=[0, 1, 2], mode=["raise", "wrap", "clip"])
def test_slices_along_an_axis(axis, mode):
    array = RNG.normal(size=SHAPE)
    places = RNG.integers(-3 if mode != "raise" else 0, 4, (3, 5))
    graph, x = new_graph(SHAPE)
    with graph.as_default():
        part = cnp.take(x, places, axis=axis, mode=mode)
        weighted = cytape.gradients(part, x, part * 2.0)[0]
        alike = cytape.gradients(cnp.sum(part), x)[0]
    fetches = [part, *(cytape.convert_to_tensor(each) * 1.0 for each in (weighted, alike))]
    plan = assert_as_reference(graph, [x], fetches, [array])
    assert mode != "raise" or plan.n_calls <= 2 * (axis == 0)  # where gradients are slices
    np.testing.assert_array_equal(
        plan.run([array])[0], np.take(array, places, axis=axis, mode=mode))


def test_counts_with_weights():
    places = RNG.integers(0, 300, 900)
    graph, x = new_graph((900,))
    with graph.as_default():
        y = cnp.bincount(places, x)
        gradients = [cytape.gradients(y, x)[0], cytape.gradients(y, x, y * 2.0)[0]]
    plan = assert_as_reference(graph, [x], [y, *gradients], [RNG.normal(size=900)])
    assert plan.n_calls == 0


def test_arrays_being_filled_are_read_at_rows():
    graph, x = new_graph((6, 3))
    with graph.as_default():
        y = x.at[2].set(np.ones(3))
        parts = [y[np.array([2, 0, 2])], y.at[0].set(np.zeros(3))[np.array([0, 5])]]
    assert_as_reference(graph, [x], parts, [RNG.normal(size=(6, 3))])


# ---- places that are computed

@each(dtype=["float64", "float32", "int64", "bool"], index=[
    lambda i, j: i, lambda i, j: (i, j), lambda i, j: (i, -1), lambda i, j: (0, j),
    lambda i, j: (i, j, i), lambda i, j: (slice(None), i), lambda i, j: (i, slice(None)),
    lambda i, j: (slice(None), i, j)])
def test_elements_are_read(index, dtype):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder(dtype, (4, 5, 6))
        i, j = graph.placeholder("int64", ()), graph.placeholder("int64", ())
        part = x[index(i, j)]
    array = np.random.default_rng(0).integers(0, 2, (4, 5, 6)).astype(dtype)
    for places in ((0, 0), (3, 4), (-1, -5), (2, -2)):
        plan = assert_as_reference(graph, [x, i, j], [part], [array, *map(np.array, places)])
        assert plan.n_calls == 0


@each("places", [(4, 0), (-5, 0), (0, 5), (0, -6)])
def test_places_beyond_are_errors(places):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (4, 5))
        i, j = graph.placeholder("int64", ()), graph.placeholder("int64", ())
        part = x[i, j] * 2.0
    plan = plan_of(graph, [x, i, j], [part])
    for _ in range(2):
        with pytest.raises(IndexError, match="is out of bounds for axis") as raised:
            plan.run([np.ones((4, 5)), *map(np.array, places)])
        assert any("GetItem" in note for note in raised.value.__notes__)
        assert plan.run([np.ones((4, 5)), np.array(1), np.array(2)])[0].item() == 2.0


@each("uses", [1, 2])
def test_gradients_are_added_where_the_element_is(uses):
    with cytape.Graph().as_default() as graph:
        x, w = graph.placeholder("float64", (4, 3)), graph.placeholder("float64", (3,))
        i, j = graph.placeholder("int64", ()), graph.placeholder("int64", ())
        y = cnp.sum(x[i] * w) + cnp.sum(x[j] ** 3) + cnp.sum(cnp.sin(x))
        (slope,) = cytape.gradients(y, [x])
        fetches = [slope, cnp.sum(slope * x, axis=0)][:uses]
    rng = np.random.default_rng(0)
    for places in ((1, 1), (0, -1)):
        assert_as_reference(graph, [x, w, i, j], fetches, [
            rng.normal(size=(4, 3)), rng.normal(size=3), *map(np.array, places)])


def test_a_sum_of_nothing_else_is_zero_elsewhere():
    with cytape.Graph().as_default() as graph:
        x, i = graph.placeholder("float64", (4,)), graph.placeholder("int64", ())
        (slope,) = cytape.gradients(x[i] ** 2, [x])
    plan = plan_of(graph, [x, i], [slope])
    assert plan.n_calls == 0
    for _ in range(2):
        assert plan.run([np.arange(4.0), np.array(-1)])[0].tolist() == [0, 0, 0, 6]


@each("n", [3, 400])
def test_loops_over_elements(n):
    def total(x):
        _, y = cytape.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, cnp.tanh(y + x[i])),
            (cytape.constant(0), cytape.constant(0.0)))
        return y

    x = np.linspace(-1, 1, n)
    with cytape.Graph().as_default() as graph:
        given = graph.placeholder("float64", (n,))
        (slope,) = cytape.gradients(total(given), [given])
    plan = plan_of(graph, [given], [slope])
    assert plan.n_calls == 0
    for _ in range(2):
        np.testing.assert_allclose(
            plan.run([x])[0], cytape.grad(total)(cytape.constant(x)), rtol=1e-12)


def test_a_place_beyond_in_a_loop_is_an_error_of_the_op():
    @cytape.function
    def f(x):
        return cytape.while_loop(
            lambda i, y: i < 9, lambda i, y: (i + 1, y + x[i]), (cytape.constant(0), x[0]))[1]

    for _ in range(3):
        with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0") as raised:
            f(np.ones(4))
        assert any("GetItem" in note for note in raised.value.__notes__)


@each("dtype", ["float16", "float32", "float64"])
@each("beside", [False, True])
@each("part", [
    lambda x, i: x[i], lambda x, i: x[:, i], lambda x, i: x[i, 0], lambda x, i: x[-1, i],
    lambda x, i: x[i, i], lambda x, i: x[i.reshape((-1, 10))], lambda x, i: x[i[:1]],
    lambda x, i: x[i[7], i[8]], lambda x, i: cnp.take(x, i, axis=1),
    lambda x, i: cnp.take_along_axis(x, i.reshape((3, -1)), axis=1),
    lambda x, i: cytape.vmap(lambda j: x[:, j])(i),
    lambda x, i: cytape.cond(i[0] < 3, lambda: x[i] * 2, lambda: x[i])], ids=range(12))
def test_sums_at_places_are_rounded_as_in_a_call(part, beside, dtype):
    """Terms at one place are summed before other terms, in single precision if they have half."""
    def total(x, i):
        terms = part(x, i).astype("float32")
        return cnp.sum(terms * terms) + (cnp.sum(cnp.exp(x)) if beside else 0)

    f = cytape.grad(total)
    x, i = RNG.normal(size=(3, 3)).astype(dtype), RNG.integers(-3, 3, 3000)
    expected = f(x, i % 3)
    for result in f(x, i % 3), cytape.function(f)(x, i % 3):
        np.testing.assert_array_equal(result, expected)


@each("dtype", ["float16", "float32", "float64"])
@each("index", [lambda i: i, lambda i: (slice(None), i), lambda i: (i, 1), lambda i: (i, i)])
def test_values_added_at_places_are_rounded_as_in_a_call(index, dtype):
    def f(x, i, values):
        y = x * 2
        np.add.at(y, index(i), values)
        return y

    arrays = np.ones((3, 3), dtype), RNG.integers(0, 2, 5000), np.ones(5000, dtype)
    if index(0) == 0:
        arrays = *arrays[:2], np.ones((5000, 3), dtype)
    expected = f(*map(cytape.constant, arrays))
    assert np.max(expected) > 2100
    np.testing.assert_array_equal(cytape.function(f)(*arrays), expected)


@each("dtype", ["float16", "float32"])
def test_no_term_of_a_sum_at_one_place_is_lost(dtype):
    x, i = np.ones((3, 3), dtype), np.zeros(5000, np.int64)
    for part in (
            lambda x, i: x[i], lambda x, i: x[:, i],
            lambda x, i: cytape.TensorArray(x.dtype, 3).unstack(x).gather(i)):
        f = cytape.grad(lambda x, i, part=part: cnp.sum(part(x, i).astype("float32")))
        for result in f(x, i), cytape.function(f)(x, i):
            assert set(np.ravel(result).tolist()) == {0, 5000}


@sampled(4, dtype=["float64", "float32", "complex128", "int64", "bool"],
         n_places=[1, 256, 257, 600],
         row=[(), (2,), (9,)])
def test_many_places_that_a_run_tells(row, n_places, dtype):
    """For rows of one, few, and more numbers, and more places than are found at once."""
    for index in (lambda i: i, lambda i: (slice(None), i), lambda i: (i, -1), lambda i: (i, i)):
        x = RNG.integers(-9, 9, (5, 5, *row)).astype(dtype)
        places = RNG.integers(-5, 5, n_places)
        graph = Graph()
        given, i = graph.placeholder(dtype, x.shape), graph.placeholder("int64", (n_places,))
        with graph.as_default():
            fetches = [given[index(i)]]
            if given.spec.trainable:
                fetches += cytape.gradients(fetches[0], given, fetches[0] * 2)
        plan = assert_as_reference(graph, [given, i], fetches, [x, places])
        assert plan.n_calls == 0
        np.testing.assert_array_equal(plan.run([x, places])[0], x[index(places)])
        if len(fetches) > 1:
            expected = np.zeros_like(x)
            np.add.at(expected, index(places), x[index(places)] * 2)
            np.testing.assert_array_equal(plan.run([x, places])[1], expected)
        for place in 5, -6:
            places[n_places // 2] = place
            with pytest.raises(IndexError, match=f"index {place} is out of bounds for axis"):
                plan.run([x, places])


@each("row", [(), (3,)])
def test_many_rows_are_written_and_cleared(row):
    def f(values, places):
        array = cytape.TensorArray("float64", 600, element_shape=row)
        return array.scatter(places, values).stack() ** 2

    values, places = RNG.normal(size=(600, *row)), RNG.permutation(600)
    expected = np.zeros_like(values)
    expected[places] = values ** 2
    np.testing.assert_array_equal(cytape.function(f)(values, places), expected)
    slope = cytape.function(cytape.grad(lambda *args: cnp.sum(f(*args))))(values, places)
    np.testing.assert_array_equal(slope, 2 * values)
