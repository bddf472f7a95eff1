"""The VSpace of tensors: sums, ones and zeros of gradients, dense and sparse, in every dtype."""

import itertools

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.core import VSpace
from cytape.errors import TapeStateError
from cytape.ops.engine.tensor_vspace import TensorVSpace, compute_gradients, tensor_vspace
from cytape.ops.sparse_sums import densify
from cytape.tensor.recording.state import Recorder
from cytape.tensor.tensor import live_tensors, tensor_of
from tests.cases import each
from tests.ways import gradient, taped, watching

DTYPES = ["float16", "float32", "float64", "longdouble", "complex64", "complex128"]
SHAPES = [(), (3,), (2, 3), (0, 3), (5000,)]


def as_array(gradient):
    return cytape.convert_to_tensor(gradient).numpy()


def test_there_is_one_vspace_of_tensors():
    assert type(tensor_vspace) is TensorVSpace
    assert isinstance(tensor_vspace, VSpace)


# -- ones and zeros --------------------------------------------------------------------------------


@each(dtype=DTYPES, shape=SHAPES)
def test_a_target_is_seeded_with_ones_of_its_shape_and_dtype(dtype, shape):
    x = cytape.constant(np.full(shape, 2, dtype))
    with cytape.GradientTape() as tape:
        tape.watch(x)
    seed = tape.gradient(x, x)
    assert seed.spec is x.spec
    np.testing.assert_array_equal(seed.numpy(), np.ones(shape))


@each(dtype=DTYPES, shape=[(4,), (4, 3), (4, 0), (4, 2000)])
def test_an_unused_output_has_zeros(dtype, shape):
    x = cytape.constant(np.full(shape, 2, dtype))
    with watching(x) as tape:
        first, _ = cnp.split(x, 2)
    gradient = tape.gradient(first, x)
    assert gradient.spec is x.spec
    np.testing.assert_array_equal(gradient.numpy()[:2], np.ones((2, *shape[1:])))
    np.testing.assert_array_equal(gradient.numpy()[2:], np.zeros((2, *shape[1:])))


# -- sums ------------------------------------------------------------------------------------------


@each(recorded=[False, True], n_terms=[2, 3, 7], dtype=DTYPES, shape=SHAPES)
def test_gradients_of_several_consumers_are_summed(shape, dtype, n_terms, recorded):
    x = cytape.constant(np.ones(shape, dtype))
    factors = np.arange(1, n_terms + 1).astype(dtype)
    with watching(x, persistent=True) as tape:
        y = [x * factor for factor in factors]
        gradient = tape.gradient(y, x)
    if not recorded:
        gradient = tape.gradient(y, x)
    assert gradient.spec is x.spec
    np.testing.assert_array_equal(gradient.numpy(), np.full(shape, factors.sum()))


@each("lay_out", [
    lambda x: x.T, lambda x: x[::-1], lambda x: cnp.broadcast_to(x[0], (3, 3)) * 1.0,
    lambda x: cnp.transpose(x[:, ::-1])])
def test_terms_may_lie_in_memory_in_any_way(lay_out):
    x = cytape.constant(np.ones((3, 3)))
    weights = np.arange(9.0).reshape(3, 3)
    tape, y = taped(lambda x: [x * weights, lay_out(x) * weights, x], x)
    gradient = tape.gradient(y, x)
    expected = sum(cytape.grad(lambda x, f=f: np.sum(f(x)))(np.ones((3, 3))) for f in [
        lambda x: x * weights, lambda x: lay_out(x) * weights, lambda x: x])
    np.testing.assert_allclose(gradient.numpy(), expected)


def test_summing_leaves_the_terms_as_they_are():
    x = cytape.constant(np.ones(5000))
    seeds = [cytape.constant(np.full(5000, float(i))) for i in range(1, 4)]
    tape, y = taped(lambda x: [cnp.positive(x) for _ in seeds], x, persistent=True)
    gradient = tape.gradient(y, x, output_gradients=seeds)
    np.testing.assert_array_equal(gradient.numpy(), np.full(5000, 6.0))
    for i, seed in enumerate(seeds):
        np.testing.assert_array_equal(seed.numpy(), np.full(5000, i + 1.0))
    again = tape.gradient(y, x, output_gradients=seeds)
    assert not np.shares_memory(again.numpy(), gradient.numpy())


def test_the_same_gradient_twice_is_doubled():
    x = cytape.constant([1.0, 2.0])
    assert gradient(lambda x: x + x, x).numpy().tolist() == [2.0, 2.0]


def test_a_gradient_that_passes_through_is_not_copied():
    seed = cytape.constant(np.ones(5000))
    x = cytape.constant(np.ones(5000))
    tape, y = taped(lambda x: x + 1.0, x)
    assert np.shares_memory(tape.gradient(y, x, output_gradients=seed).numpy(), seed.numpy())


def test_terms_of_nan_and_infinity():
    x = cytape.constant([1.0, 1.0])
    tape, y = taped(lambda x: [x * np.inf, x * -np.inf, x * np.array([0.0, np.nan])], x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [np.nan, np.nan])


def test_a_sum_can_be_differentiated_again():
    x = cytape.constant(2.0)
    outer, first = taped(lambda x: gradient(lambda x: x * x * x + x * x + 5.0 * x, x), x)
    assert (float(first), float(outer.gradient(first, x))) == (21.0, 14.0)


# -- sparse gradients ------------------------------------------------------------------------------


def gathers(n_sparse, n_dense, recorded=False):
    """The gradient of a table that is read sparsely and densely."""
    table = cytape.constant(np.ones((4, 2)))
    with watching(table, persistent=True) as tape:
        y = [cytape.gather(table, [i, 3]) * float(i + 1) for i in range(n_sparse)]
        y += [table * 10.0 for _ in range(n_dense)]
        if recorded:
            return tape.gradient(y, table)
    return tape.gradient(y, table)


@each("recorded", [False, True])
@each("n_sparse, n_dense", [(1, 0), (2, 0), (3, 0), (1, 1), (2, 3)])
def test_sparse_gradients_stay_sparse_until_a_dense_one_comes(n_sparse, n_dense, recorded):
    gradient = gathers(n_sparse, n_dense, recorded)
    assert isinstance(gradient, cytape.IndexedSlices if n_dense == 0 else cytape.Tensor)
    expected = np.full((4, 2), 10.0 * n_dense)
    for i in range(n_sparse):
        expected[[i, 3]] += i + 1
    np.testing.assert_array_equal(as_array(gradient), expected)


def test_a_sparse_gradient_on_its_way_becomes_dense():
    x = cytape.constant(np.ones((4, 2)))
    tape, y = taped(lambda x: cytape.gather(x * 3.0, [1, 1]), x)
    gradient = tape.gradient(y, x)
    assert type(gradient) is cytape.Tensor
    np.testing.assert_array_equal(gradient.numpy(), 6 * np.eye(4)[1][:, None] * np.ones(2))


def test_sparse_gradients_of_a_large_table_stay_small():
    table = cytape.constant(np.zeros((1_000_000, 4), np.float32))
    tape, y = taped(lambda table: [cytape.gather(table, [i]) for i in range(20)], table)
    gradient = tape.gradient(y, table)
    assert isinstance(gradient, cytape.IndexedSlices)
    assert gradient.values.shape == (20, 4)


def test_a_sparse_gradient_through_a_variable():
    v = cytape.Variable(np.ones((4, 2)))
    v.assign(np.zeros((4, 2)))
    tape, y = taped(lambda: cytape.gather(v, [2, 2]))
    np.testing.assert_array_equal(densify(tape.gradient(y, v)).numpy()[2], [2, 2])


# -- asked by the tape -----------------------------------------------------------------------------


def test_the_tape_works_with_ids_and_specs():
    x = cytape.constant([1.0, 2.0])
    recorder = Recorder()
    recorder.watch(x.id)
    recorder.push()
    y = x * x
    recorder.pop()
    before = live_tensors()
    (gradient,) = compute_gradients(recorder, [y], [x], [cytape.constant([1.0, 10.0])])
    assert gradient.numpy().tolist() == [2.0, 40.0]
    assert live_tensors() == before + 1


def test_no_gradient_outlives_the_computation():
    x = cytape.constant(np.ones(3))
    before = live_tensors()
    with watching(x, persistent=True) as tape:
        y = x
        for _ in range(50):
            y = cnp.sin(y) * x + y
    for _ in range(3):
        gradient = tape.gradient(y, x)
        assert live_tensors() == before + 2
    del gradient
    assert live_tensors() == before + 1


@pytest.fixture
def square():
    """Return a function that records x * x and gives recorder, x and y."""

    def square(x, persistent=False):
        x = cytape.constant(x)
        recorder = Recorder(persistent)
        recorder.watch(x.id)
        recorder.push()
        y = x * x
        recorder.pop()
        return recorder, x, y

    return square


# -- compute_gradients -----------------------------------------------------------------------------


def test_gradients_come_in_the_order_of_the_sources(square):
    recorder, x, y = square([1.0, 2.0], persistent=True)
    stranger = cytape.constant(1.0)
    found = compute_gradients(recorder, [y], [stranger, y, x, x])
    assert found[0] is None
    assert [g.numpy().tolist() for g in found[1:]] == [[1.0, 1.0], [2.0, 4.0], [2.0, 4.0]]
    assert compute_gradients(recorder, [], [x]) == [None]
    assert compute_gradients(recorder, [y], []) == []


def test_targets_are_weighted_and_summed(square):
    recorder, x, y = square([1.0, 2.0], persistent=True)
    weight = cytape.constant([10.0, 100.0])
    (found,) = compute_gradients(recorder, [y, x, y], [x], [weight, None, None])
    assert found.numpy().tolist() == [2 * 10 + 1 + 2, 4 * 100 + 1 + 4]
    (found,) = compute_gradients(recorder, [x], [x], [weight])
    assert found.numpy().tolist() == [10.0, 100.0]


@pytest.mark.parametrize("data", [[1, 2], ["a", "b"], [True, False]])
def test_integers_and_strings_take_no_part(square, data):
    recorder, x, y = square([1.0, 2.0], persistent=True)
    other = cytape.constant(data)
    found = compute_gradients(recorder, [other, y], [x, other])
    assert found[0].numpy().tolist() == [2.0, 4.0]
    assert found[1] is None


@pytest.mark.parametrize("persistent, keep, again", [
    (False, False, False), (False, True, True), (True, False, True)])
def test_a_recorder_may_be_kept(square, persistent, keep, again):
    recorder, x, y = square([1.0, 2.0], persistent)
    for attempt in range(2):
        if attempt and not again:
            with pytest.raises(TapeStateError):
                compute_gradients(recorder, [y], [x], keep=keep)
        else:
            (found,) = compute_gradients(recorder, [y], [x], keep=keep)
            assert found.numpy().tolist() == [2.0, 4.0]
    assert recorder.num_ops == (1 if again else 0)


# -- shared arrays are not written to --------------------------------------------------------------

SIZED = pytest.mark.parametrize("size", [1, 8, 9, 40, 600, 2049, 10_000])
VALUES = np.array([0.5, -1.0, 2.0, 0.25, 3.0])

SHARED = {  # by what x and y = sin(x) are used, and the derivatives by both
    "x*x": (lambda x, y: x * x, lambda x, y: 2 * x, None),
    "x+x": (lambda x, y: x + x, lambda x, y: 2, None),
    "x-x": (lambda x, y: x - x, lambda x, y: 0, None),
    "x/x": (lambda x, y: x / x, lambda x, y: 0, None),
    "x*x*x": (lambda x, y: x * x * x, lambda x, y: 3 * x**2, None),
    "x-y": (lambda x, y: x - y, lambda x, y: 1, lambda x, y: -1),
    "y-x": (lambda x, y: y - x, lambda x, y: -1, lambda x, y: 1),
    "x+y": (lambda x, y: x + y, lambda x, y: 1, lambda x, y: 1),
    "x+y twice": (lambda x, y: [x + y, x + y], lambda x, y: 2, lambda x, y: 2),
    "x and y": (lambda x, y: [x, y], lambda x, y: 1, lambda x, y: 1),
    "(x+1)+(x+2)": (lambda x, y: (x + 1.0) + (x + 2.0), lambda x, y: 2, None),
    "(x+1)-(x*y)": (lambda x, y: (x + 1.0) - x * y, lambda x, y: 1 - y, lambda x, y: -x),
    "(y-1)*2-(x-y)": (lambda x, y: (y - 1.0) * 2.0 - (x - y), lambda x, y: -1, lambda x, y: 3),
    "(x+y)*(x-y)": (lambda x, y: (x + y) * (x - y), lambda x, y: 2 * x, lambda x, y: -2 * y),
    "y*y-y": (lambda x, y: y * y - y, None, lambda x, y: 2 * y - 1),
    "max(x, y)": (lambda x, y: cnp.maximum(x, y), lambda x, y: x >= y, lambda x, y: x < y),
    "max(x, x)": (lambda x, y: cnp.maximum(x, x), lambda x, y: 1, None),
    "where": (lambda x, y: cnp.where(x > 0, x, y), lambda x, y: x > 0, lambda x, y: x <= 0),
    "reshaped": (lambda x, y: cnp.reshape(x, (-1, 1)) + cnp.reshape(y, (-1, 1)),
                 lambda x, y: 1, lambda x, y: 1),
    "reversed": (lambda x, y: x[::-1] + y, lambda x, y: 1, lambda x, y: 1),
    "of many": (lambda x, y: [x * k for k in range(1, 8)] + [y + x] * 3,
                lambda x, y: 28 + 3, lambda x, y: 3),
    "stacked": (lambda x, y: cnp.stack([x, y, x]), lambda x, y: 2, lambda x, y: 1),
}


NOT_ASKED_FOR = object()


@SIZED
@pytest.mark.parametrize("use", SHARED)
def test_every_kind_of_sharing(use, size):
    """The same numbers again and again, none of which changes once it is handed out."""
    function, by_x, by_y = SHARED[use]
    x = cytape.constant(np.resize(VALUES, size))
    with watching(x, persistent=True) as tape:
        y = cnp.sin(x)
        z = function(x, y)
        recorded = tape.gradient(z, [x, y])
    a, b = x.numpy(), y.numpy()
    direct = 0 if by_x is None else by_x(a, b)
    through = None if by_y is None else by_y(a, b) * np.ones(size)
    expected = [direct + (0 if through is None else through * np.cos(a)) * np.ones(size), through]
    inputs = [a.copy(), b.copy()]
    handed_out = [recorded]
    for sources in ([x, y], [y, x], [x], [y], [x, y, x, y]):
        found = dict(zip([id(s) for s in sources], tape.gradient(z, sources), strict=True))
        handed_out.append([found.get(id(s), NOT_ASKED_FOR) for s in (x, y)])
    for gradients, wanted in itertools.product(handed_out, [0, 1]):
        if gradients[wanted] is NOT_ASKED_FOR:
            continue
        if expected[wanted] is None:
            assert gradients[wanted] is None
        else:
            np.testing.assert_allclose(gradients[wanted].numpy(), expected[wanted], 1e-12, 1e-12)
    np.testing.assert_array_equal(a, inputs[0])
    np.testing.assert_array_equal(b, inputs[1])


@SIZED
@pytest.mark.parametrize("persistent", [False, True])
def test_gradients_of_intermediates_stay_as_they_were_handed_out(size, persistent):
    x = cytape.constant(np.resize(VALUES, size))
    functions = [cnp.sin, lambda t: t + 1.0, lambda t: t - x, lambda t: t * t, cnp.negative,
                 lambda t: t + t, cnp.exp, cnp.positive]
    with cytape.GradientTape(persistent) as tape:
        tape.watch(x)
        chain = [x]
        for function in functions:
            chain.append(function(chain[-1]))
    gradients = tape.gradient(chain[-1], chain)
    copies = [gradient.numpy().copy() for gradient in gradients]
    a, total = x.numpy(), np.ones(size)
    s = np.sin(a) + 1 - a
    expected = [total, total]
    for slope in (np.exp(-2 * s * s), 2, -1, 2 * s, 1, 1, np.cos(a)):
        total = total * slope
        expected.append(total)
    expected[-1] = expected[-1] - expected[5]  # x is subtracted, too
    for slope, wanted in zip(gradients[::-1], expected, strict=True):
        np.testing.assert_allclose(slope.numpy(), wanted, 1e-9, 1e-9)
    for _ in range(3):
        if persistent:
            tape.gradient(chain[-1], chain[::2])
        cnp.exp(x) * x + x
    for slope, copy in zip(gradients, copies, strict=True):
        np.testing.assert_array_equal(slope.numpy(), copy)


@SIZED
def test_output_gradients_belong_to_the_user(size):
    x = cytape.constant(np.resize(VALUES, size))
    array = np.resize(VALUES[::-1], size).copy()
    for given in (array, cytape.constant(array), tensor_of(array), tensor_of(array[::-1])):
        before = np.array(given.numpy() if isinstance(given, cytape.Tensor) else given)
        for function in (lambda x: x, cnp.positive, cnp.negative, lambda x: x * x, lambda x: x - x,
                         lambda x: x + 1.0, lambda x: [x, x], lambda x: [x + 1.0, x * 2.0],
                         lambda x: x[::-1] + x):
            tape, z = taped(function, x, persistent=True)
            seeds = [given] * len(z) if isinstance(z, list) else given
            first = tape.gradient(z, x, output_gradients=seeds)
            copy = first.numpy().copy()
            again = tape.gradient(z, x, output_gradients=seeds)
            np.testing.assert_array_equal(again.numpy(), copy)
            np.testing.assert_array_equal(first.numpy(), copy)
        now = given.numpy() if isinstance(given, cytape.Tensor) else given
        np.testing.assert_array_equal(now, before)


@SIZED
def test_an_array_that_is_given_may_change_afterwards(size):
    x, seed = cytape.constant(np.resize(VALUES, size)), np.ones(size)
    tape, y = taped(lambda x: x + 1.0, x)
    gradient = tape.gradient(y, x, output_gradients=seed)
    seed += 5
    np.testing.assert_array_equal(gradient.numpy(), np.ones(size))


@SIZED
@pytest.mark.parametrize("returned", ["array", "view", "tensor", "twice", "received", "doubled"])
def test_gradients_kept_by_a_custom_gradient_are_not_written_to(size, returned):
    kept = {"array": np.full(size, 3.0), "received": []}
    kept["view"] = np.full((2, size), 3.0)[1]
    kept["tensor"] = cytape.constant(np.full(size, 3.0))

    @cytape.custom_gradient
    def function(a, b):
        def gradient(dy):
            kept["received"].append(dy)
            if returned == "received":
                return dy, dy
            if returned == "doubled":
                return dy * 2.0, dy
            if returned == "twice":
                return kept["array"], kept["array"]
            return kept[returned], kept[returned] * 1.0

        return a + b, gradient

    x = cytape.constant(np.resize(VALUES, size))
    with watching(x, persistent=True) as tape:
        a, b = x + 1.0, cnp.positive(x)
        y = function(a, b)
        z = [y, a * 2.0, b * 5.0, y + a, x * 7.0, function(x, x)]
        recorded = tape.gradient(z, [x, a, b, y])
    plain = [tape.gradient(z, [x, a, b, y]) for _ in range(2)]
    by_y = 2.0
    of_one = {"received": (1, 1), "doubled": (2, 1)}.get(returned, (3, 3))
    of_two = {"received": (2, 2), "doubled": (4, 2)}.get(returned, (3, 3))
    by_a, by_b = of_two[0] + 2 + 1, of_two[1] + 5
    expected = [by_a + by_b + 7 + sum(of_one), by_a, by_b, by_y]
    for gradients in (recorded, *plain):
        for slope, wanted in zip(gradients, expected, strict=True):
            np.testing.assert_array_equal(slope.numpy(), np.full(size, wanted))
    for name in ("array", "view", "tensor"):
        now = kept[name].numpy() if name == "tensor" else kept[name]
        np.testing.assert_array_equal(now, np.full(size, 3.0))
    assert {float(dy.numpy().ravel()[0]) for dy in kept["received"]} == {1.0, 2.0}
    for dy in kept["received"]:
        assert np.ptp(dy.numpy()) == 0


@each("size", [4, 300, 3000])
@each("order", [*itertools.permutations(range(4))], ids=str)
def test_sparse_and_dense_gradients_in_any_order(order, size):
    functions = [
        lambda x: cytape.gather(x, [0, 3, 3]), lambda x: x * x, lambda x: x + 1.0,
        lambda x: cytape.gather(x, [3]) * 2.0]
    x = cytape.constant(np.resize(VALUES, (size, 2)))
    with watching(x, persistent=True) as tape:
        z = cnp.positive(x)
        y = [functions[i](z) for i in order]
        recorded = tape.gradient(y, [x, z])
    expected = 2 * x.numpy() + 1
    expected[0] += 1
    expected[3] += 4
    for gradients in (recorded, tape.gradient(y, [x, z]), tape.gradient(y, [z, x])):
        for slope in gradients:
            np.testing.assert_allclose(as_array(slope), expected, 1e-14)


@SIZED
def test_gradients_of_a_gradient_computed_without_recording(size):
    """The inner computation is recorded, the outer one is not; both read the same values."""
    x = cytape.constant(np.resize(VALUES, size))
    v = np.resize(VALUES[::-1], size)
    with watching(x, persistent=True) as outer:
        with watching(x, persistent=True) as inner:
            y = np.sum(cnp.sin(x) * x * x + x[::-1] * cnp.exp(-x))
        first = inner.gradient(y, x)
        again = inner.gradient(y, x)
    plain = inner.gradient(y, x)
    np.testing.assert_allclose(first.numpy(), plain.numpy(), 1e-12, 1e-12)
    np.testing.assert_array_equal(first.numpy(), again.numpy())
    second = outer.gradient(first, x, output_gradients=v)
    step = 1e-5
    shifted = [cytape.grad(lambda x: np.sum(np.sin(x) * x * x + x[::-1] * np.exp(-x)))(
        x.numpy() + h * v) for h in (step, -step)]
    np.testing.assert_allclose(
        second.numpy(), (np.asarray(shifted[0]) - np.asarray(shifted[1])) / (2 * step), 1e-6, 1e-6)
    np.testing.assert_array_equal(
        outer.gradient(first, x, output_gradients=v).numpy(), second.numpy())


@SIZED
def test_variables_share_as_tensors_do(size):
    v = cytape.Variable(np.resize(VALUES, size))
    with cytape.GradientTape(persistent=True) as tape:
        y = v * v + v
        v.assign(np.ones(size))
        z = [y, v - y, v[::-1] * 1.0, np.sum(v), v]
    first = tape.gradient(z, v)
    expected = np.full(size, 1.0 + 1 + 1 + 1)
    np.testing.assert_allclose(first.numpy(), expected)
    copy = first.numpy().copy()
    second = tape.gradient([y, v], v)
    np.testing.assert_allclose(second.numpy(), 2 * np.resize(VALUES, size) + 2)
    np.testing.assert_array_equal(first.numpy(), copy)
