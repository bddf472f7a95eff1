"""The VSpace of tensors: sums, ones and zeros of gradients, dense and sparse, in every dtype."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.core import VSpace
from cytape.errors import TapeStateError
from cytape.ops.gradients import TensorVSpace, compute_gradients, tensor_vspace
from cytape.ops.sparse import densify
from cytape.tensor.state import Recorder
from cytape.tensor.tensor import live_tensors

DTYPES = ["float16", "float32", "float64", "longdouble", "complex64", "complex128"]
SHAPES = [(), (3,), (2, 3), (0, 3), (5000,)]


def as_array(gradient):
    return cytape.convert_to_tensor(gradient).numpy()


def test_there_is_one_vspace_of_tensors():
    assert type(tensor_vspace) is TensorVSpace
    assert isinstance(tensor_vspace, VSpace)


# -- ones and zeros --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_target_is_seeded_with_ones_of_its_shape_and_dtype(dtype, shape):
    x = cytape.constant(np.full(shape, 2, dtype))
    with cytape.GradientTape() as tape:
        tape.watch(x)
    seed = tape.gradient(x, x)
    assert seed.spec is x.spec
    np.testing.assert_array_equal(seed.numpy(), np.ones(shape))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 0), (4, 2000)])
def test_an_output_that_nobody_used_has_zeros(dtype, shape):
    x = cytape.constant(np.full(shape, 2, dtype))
    with cytape.GradientTape() as tape:
        tape.watch(x)
        first, _ = cnp.split(x, 2)
    gradient = tape.gradient(first, x)
    assert gradient.spec is x.spec
    np.testing.assert_array_equal(gradient.numpy()[:2], np.ones((2, *shape[1:])))
    np.testing.assert_array_equal(gradient.numpy()[2:], np.zeros((2, *shape[1:])))


# -- sums ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("n_terms", [2, 3, 7])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_several_consumers_are_summed(shape, dtype, n_terms, recorded):
    x = cytape.constant(np.ones(shape, dtype))
    factors = np.arange(1, n_terms + 1).astype(dtype)
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = [x * factor for factor in factors]
        gradient = tape.gradient(y, x)
    if not recorded:
        gradient = tape.gradient(y, x)
    assert gradient.spec is x.spec
    np.testing.assert_array_equal(gradient.numpy(), np.full(shape, factors.sum()))


@pytest.mark.parametrize("lay_out", [
    lambda x: x.T, lambda x: x[::-1], lambda x: cnp.broadcast_to(x[0], (3, 3)) * 1.0,
    lambda x: cnp.transpose(x[:, ::-1]),
])
def test_terms_may_lie_in_memory_in_any_way(lay_out):
    x = cytape.constant(np.ones((3, 3)))
    weights = np.arange(9.0).reshape(3, 3)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = [x * weights, lay_out(x) * weights, x]
    gradient = tape.gradient(y, x)
    expected = sum(cytape.grad(lambda x, f=f: np.sum(f(x)))(np.ones((3, 3))) for f in [
        lambda x: x * weights, lambda x: lay_out(x) * weights, lambda x: x])
    np.testing.assert_allclose(gradient.numpy(), expected)


def test_summing_leaves_the_terms_as_they_are():
    x = cytape.constant(np.ones(5000))
    seeds = [cytape.constant(np.full(5000, float(i))) for i in range(1, 4)]
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = [cnp.positive(x) for _ in seeds]
    gradient = tape.gradient(y, x, output_gradients=seeds)
    np.testing.assert_array_equal(gradient.numpy(), np.full(5000, 6.0))
    for i, seed in enumerate(seeds):
        np.testing.assert_array_equal(seed.numpy(), np.full(5000, i + 1.0))
    again = tape.gradient(y, x, output_gradients=seeds)
    assert not np.shares_memory(again.numpy(), gradient.numpy())


def test_the_same_gradient_twice_is_doubled():
    x = cytape.constant([1.0, 2.0])
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = x + x
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 2.0]


def test_a_gradient_that_passes_through_is_not_copied():
    seed = cytape.constant(np.ones(5000))
    x = cytape.constant(np.ones(5000))
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = x + 1.0
    assert np.shares_memory(tape.gradient(y, x, output_gradients=seed).numpy(), seed.numpy())


def test_terms_of_nan_and_infinity():
    x = cytape.constant([1.0, 1.0])
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = [x * np.inf, x * -np.inf, x * np.array([0.0, np.nan])]
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [np.nan, np.nan])


def test_a_sum_can_be_differentiated_again():
    x = cytape.constant(2.0)
    with cytape.GradientTape() as outer:
        outer.watch(x)
        with cytape.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x + x * x + 5.0 * x
        first = inner.gradient(y, x)
    assert (float(first), float(outer.gradient(first, x))) == (21.0, 14.0)


# -- sparse gradients ------------------------------------------------------------------------------


def gathers(n_sparse, n_dense, recorded=False):
    """The gradient of a table that is read sparsely and densely."""
    table = cytape.constant(np.ones((4, 2)))
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(table)
        y = [cytape.gather(table, [i, 3]) * float(i + 1) for i in range(n_sparse)]
        y += [table * 10.0 for _ in range(n_dense)]
        if recorded:
            return tape.gradient(y, table)
    return tape.gradient(y, table)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("n_sparse, n_dense", [(1, 0), (2, 0), (3, 0), (1, 1), (2, 3)])
def test_sparse_gradients_stay_sparse_until_a_dense_one_comes(n_sparse, n_dense, recorded):
    gradient = gathers(n_sparse, n_dense, recorded)
    assert isinstance(gradient, cytape.IndexedSlices if n_dense == 0 else cytape.Tensor)
    expected = np.full((4, 2), 10.0 * n_dense)
    for i in range(n_sparse):
        expected[[i, 3]] += i + 1
    np.testing.assert_array_equal(as_array(gradient), expected)


def test_a_sparse_gradient_on_its_way_becomes_dense():
    x = cytape.constant(np.ones((4, 2)))
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = cytape.gather(x * 3.0, [1, 1])
    gradient = tape.gradient(y, x)
    assert type(gradient) is cytape.Tensor
    np.testing.assert_array_equal(gradient.numpy(), 6 * np.eye(4)[1][:, None] * np.ones(2))


def test_sparse_gradients_of_a_large_table_stay_small():
    table = cytape.constant(np.zeros((1_000_000, 4), np.float32))
    with cytape.GradientTape() as tape:
        tape.watch(table)
        y = [cytape.gather(table, [i]) for i in range(20)]
    gradient = tape.gradient(y, table)
    assert isinstance(gradient, cytape.IndexedSlices)
    assert gradient.values.shape == (20, 4)


def test_a_sparse_gradient_through_a_variable():
    v = cytape.Variable(np.ones((4, 2)))
    v.assign(np.zeros((4, 2)))
    with cytape.GradientTape() as tape:
        y = cytape.gather(v, [2, 2])
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
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(x)
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
def test_what_cannot_have_a_gradient_takes_no_part(square, data):
    recorder, x, y = square([1.0, 2.0], persistent=True)
    other = cytape.constant(data)
    found = compute_gradients(recorder, [other, y], [x, other])
    assert found[0].numpy().tolist() == [2.0, 4.0]
    assert found[1] is None


@pytest.mark.parametrize("persistent, keep, again", [
    (False, False, False), (False, True, True), (True, False, True),
])
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
