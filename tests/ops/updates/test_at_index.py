"""x.at[index]: what NumPy's assignments and ufunc.at do, as functions that are differentiated."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.cases import each, sampled
from tests.ops.specs_indexing import INDICES

# Of what is set nowhere.
pytestmark = pytest.mark.filterwarnings("ignore::cytape.errors.UnconnectedGradientWarning")

SHAPE = (4, 3, 2)
RNG = np.random.default_rng(5)
X = RNG.uniform(1, 2, SHAPE)
UFUNCS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "power": np.power, "min": np.minimum, "max": np.maximum}


@each("value", [np.uint8(3), True, 3, np.array([1, 2], np.uint16), [True, False]], ids=str)
def test_subtrahends_may_be_unsigned(value):
    expected = np.array([10.0, 20.0])
    expected -= np.asarray(value, float)
    np.testing.assert_array_equal(
        cytape.constant([10.0, 20.0]).at[:].subtract(value).numpy(), expected)
    np.testing.assert_array_equal(cytape.function(
        lambda x: x.at[:].subtract(value))(cytape.constant([10.0, 20.0])).numpy(), expected)


def values_for(index):
    shape = np.zeros(SHAPE)[index].shape
    return RNG.uniform(0.5, 2.5, shape)


def by_numpy(method, x, index, values):
    result = np.array(x)
    if method == "set":
        result[index] = values
    else:
        UFUNCS[method].at(result, index, values)
    return result


def check(f, reference, x, v):
    """Compare values, both modes and second order with differences of a function of arrays."""
    step, dx, dv = 1e-6, RNG.normal(size=x.shape), RNG.normal(size=v.shape)
    weights = RNG.normal(size=reference(x, v).shape)
    np.testing.assert_allclose(f(cytape.constant(x), v).numpy(), reference(x, v), rtol=1e-14)

    def loss(x, v):
        return cnp.sum(cnp.arctan(f(x, v)) * weights)

    def loss_of_arrays(x, v):
        return np.sum(np.arctan(reference(x, v)) * weights)

    slope = (loss_of_arrays(x + step * dx, v + step * dv)
             - loss_of_arrays(x - step * dx, v - step * dv)) / (2 * step)
    _, tangent = cytape.jvp(loss, (x, v), (dx, dv))
    of_x, of_v = cytape.grad(loss, (0, 1))(x, v)
    np.testing.assert_allclose(tangent, slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(np.sum(of_x * dx) + np.sum(of_v * dv), slope, rtol=1e-6, atol=1e-8)
    gradient = cytape.grad(loss, (0, 1))
    _, (xx, xv) = cytape.jvp(gradient, (x, v), (dx, dv))
    above, below = gradient(x + step * dx, v + step * dv), gradient(x - step * dx, v - step * dv)
    np.testing.assert_allclose(xx, (above[0] - below[0]) / (2 * step), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(xv, (above[1] - below[1]) / (2 * step), rtol=1e-5, atol=1e-7)
    batch = cytape.jacfwd(lambda v: f(cytape.constant(x), v))(v)
    np.testing.assert_allclose(batch, cytape.jacrev(lambda v: f(cytape.constant(x), v))(v))


@sampled(4, index=INDICES, method=["set", *UFUNCS])
def test_updates_are_those_of_numpy(method, index):
    check(lambda x, v: getattr(cytape.convert_to_tensor(x).at[index], method)(v),
          lambda x, v: by_numpy(method, x, index, v), X, values_for(index))


@sampled(4, index=INDICES, method=["set", *UFUNCS])
def test_the_same_in_a_traced_function_and_of_unknown_extents(method, index):
    def update(x, v):
        return getattr(x.at[index], method)(v)

    v = values_for(index)
    expected = by_numpy(method, X, index, v)
    np.testing.assert_allclose(cytape.function(update)(cytape.constant(X), v).numpy(), expected)
    gradient = cytape.grad(lambda x, v: cnp.sum(update(x, v) ** 2), (0, 1))
    for found, wanted in zip(cytape.function(gradient)(X, v), gradient(X, v), strict=True):
        np.testing.assert_allclose(found, wanted)
    specs = [cytape.Spec.of((None, 3, 2), "float64"), cytape.Spec.of(v.shape, "float64")]
    if method not in ("divide", "power"):
        found = cytape.function(update, input_signature=specs)(X, v)
        np.testing.assert_allclose(found, expected)


TENSORS = {
    "number": (np.array(2), ()), "negative": (np.array(-1), ()), "rows": (np.array([0, 3, 0]), ()),
    "mask": (np.array([True, False, True, True]), ())}


@each("method", ["set", "add", "multiply", "min", "max"])
@each("index, _", TENSORS.values(), ids=TENSORS)
def test_tensors_as_indices(method, index, _):
    v = values_for(index)

    def update(x, i, v):
        return getattr(x.at[i], method)(v)

    expected = by_numpy(method, X, index, v)
    np.testing.assert_allclose(
        update(cytape.constant(X), cytape.constant(index), v).numpy(), expected)
    traced = cytape.function(update)
    np.testing.assert_allclose(
        traced(cytape.constant(X), cytape.constant(index), v).numpy(), expected)
    check(lambda x, v: traced(cytape.convert_to_tensor(x), cytape.constant(index), v),
          lambda x, v: by_numpy(method, x, index, v), X, v)


INDICES_IN_GRAPHS = {
    "row and column": lambda i, j: (i, j), "row and part": lambda i, j: (i, slice(1, None)),
    "column": lambda i, j: (slice(None), j), "bounds": lambda i, j: slice(i, None),
    "bounds of a row": lambda i, j: (i, slice(None, j)), "last": lambda i, j: (Ellipsis, j),
    "new axis": lambda i, j: (None, i), "row and list": lambda i, j: (i, [0, 2])}


MEETING_BESIDE_NUMBERS = {
    "row and places": lambda i, j: (i, [0, 0, 2]), "row and one place": lambda i, j: (i, [-1, 2]),
    "place and row": lambda i, j: ([0, 3, 0], j), "apart": lambda i, j: (i, slice(1, None), [0, 0]),
    "bounds": lambda i, j: ([2, 2], slice(j, None)), "different": lambda i, j: (i, [2, 0])}


@each("method", ["set", "add", "multiply", "min", "max"])
@each("index", MEETING_BESIDE_NUMBERS.values(), ids=MEETING_BESIDE_NUMBERS)
def test_places_that_meet_beside_numbers_that_only_a_run_tells(method, index):
    i, j = 2, 1
    v = values_for(index(i, j))

    def update(x, i, j, v):
        return getattr(x.at[index(i, j)], method)(v)

    traced = cytape.function(update)
    check(lambda x, v: traced(
        cytape.convert_to_tensor(x), cytape.constant(i), cytape.constant(j), v),
        lambda x, v: by_numpy(method, x, index(i, j), v), X, v)
    unknown = cytape.function(update, input_signature=[
        cytape.Spec.of((None, 3, 2), float), cytape.Spec.of((), int),
        cytape.Spec.of((), int), cytape.Spec.of(v.shape, float)])
    np.testing.assert_allclose(unknown(X, i, j, v), by_numpy(method, X, index(i, j), v))


def test_the_last_one_written_to_a_place_in_a_loop_has_the_gradient():
    def total(p):
        def step(i, a):
            a = a.copy()
            a[i, np.array([0, 0])] = p
            return i + 1, a

        return cnp.sum(cytape.while_loop(
            lambda i, a: i < 3, step, (0, cytape.constant(np.zeros((3, 3)))))[1])

    assert cytape.function(cytape.grad(total))(2.0) == cytape.grad(total)(2.0) == 3.0
    rows = cytape.vmap(cytape.grad(
        lambda p, i: cnp.sum(cytape.constant(np.zeros((3, 3))).at[i, np.array([0, 0])].set(p))),
        in_axes=(None, 0))
    assert rows(2.0, np.array([0, 1])).tolist() == [1.0, 1.0]


@each("index", INDICES_IN_GRAPHS.values(), ids=INDICES_IN_GRAPHS)
def test_numbers_that_only_a_run_tells(index):
    i, j = 2, 1
    v = values_for(index(i, j))
    traced = cytape.function(lambda x, i, j, v: x.at[index(i, j)].set(v))
    check(lambda x, v: traced(
        cytape.convert_to_tensor(x), cytape.constant(i), cytape.constant(j), v),
        lambda x, v: by_numpy("set", x, index(i, j), v), X, v)


def test_of_values_that_meet_the_last_one_has_the_gradient():
    x = cytape.constant(np.zeros(3))
    gradient = cytape.grad(lambda v: cnp.sum(x.at[[0, 0, 2]].set(v) * np.array([5.0, 6.0, 7.0])))
    np.testing.assert_array_equal(gradient(np.ones(3)), [0.0, 5.0, 7.0])


def test_get_reads_the_part():
    np.testing.assert_array_equal(cytape.constant(X).at[1, ::2].get().numpy(), X[1, ::2])


def test_the_tensor_itself_stays_as_it_is():
    x = cytape.constant(X)
    x.at[0].set(0.0)
    np.testing.assert_array_equal(x.numpy(), X)


def test_values_are_cast_as_numpy_does():
    x = cytape.constant([1, 2, 3])
    assert x.at[0].set(2.7).numpy().tolist() == [2, 2, 3]
    assert cytape.constant(np.ones(2, "float32")).at[0].add(2.0).dtype == np.float32
    with pytest.raises(TypeError, match="same_kind"):
        x.at[0].add(0.5)
    with pytest.raises(TypeError, match="divide.*same_kind"):
        x.at[0].divide(2)


def test_errors_of_numpy():
    x = cytape.constant(X)
    with pytest.raises(IndexError, match="out of bounds"):
        x.at[7].set(1.0)
    with pytest.raises(ValueError, match="broadcast"):
        x.at[0].set(np.ones(7))
    with pytest.raises(ValueError, match="broadcast"):
        x.at[0, 0].set(np.ones((2, 1, 2)))
    assert x.at[0, 0].set(np.ones((1, 1, 2))).shape == SHAPE
    with pytest.raises(TypeError, match="power"):
        cytape.function(lambda x, i: x.at[i].power(2.0))(x, cytape.constant([0, 1]))
    with pytest.raises(TypeError, match="beside a tensor"):
        cytape.function(lambda x, i: x.at[i, [0, 0]].power(2.0))(x, cytape.constant(0))
    np.testing.assert_allclose(
        cytape.function(lambda x, i: x.at[i, [2, 0]].power(2.0))(x, cytape.constant(1)).numpy(),
        by_numpy("power", X, (1, [2, 0]), 2.0))


def test_a_variable_is_read():
    v = cytape.Variable([1.0, 2.0])
    with cytape.GradientTape() as tape:
        y = cnp.sum(v.at[0].set(5.0) ** 2)
    assert tape.gradient(y, v).numpy().tolist() == [0.0, 4.0]
    assert v.numpy().tolist() == [1.0, 2.0]


def test_in_branches_and_loops():
    @cytape.function
    def f(x, p):
        y = cytape.cond(p > 0, lambda: x.at[0].set(p), lambda: x.at[1].multiply(p))
        return cytape.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, y.at[i].add(y[i - 1])), (0, y))[1]

    def by_hand(x, p):
        y = np.array(x)
        if p > 0:
            y[0] = p
        else:
            y[1] *= p
        for i in range(3):
            y[i] += y[i - 1]
        return y

    x = np.array([1.0, 2.0, 3.0])
    for p in (2.0, -2.0):
        np.testing.assert_allclose(f(cytape.constant(x), np.array(p)).numpy(), by_hand(x, p))
        jacobian = cytape.jacrev(f, 1)(x, np.array(p))
        slope = (by_hand(x, p + 1e-6) - by_hand(x, p - 1e-6)) / 2e-6
        np.testing.assert_allclose(jacobian, slope, rtol=1e-6)
        np.testing.assert_allclose(cytape.jacfwd(f, 1)(x, np.array(p)), slope, rtol=1e-6)
