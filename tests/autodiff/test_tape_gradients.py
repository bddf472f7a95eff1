"""Gradients and Jacobians that a GradientTape computes."""

import gc
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import cytape
from cytape.errors import InvalidGradientError
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.cases import each


def test_D_2_13_targets_are_summed_and_results_packed_like_the_sources():
    x, y = cytape.constant(3.0), cytape.constant(5.0)
    with ways.watching(x, y, persistent=True) as tape:
        square = x * x
        targets = [2 * x, 3 * y]
    assert float(tape.gradient(square, x)) == 6.0
    assert [float(g) for g in tape.gradient(targets, [x, y])] == [2.0, 3.0]
    assert float(tape.gradient({"a": square, "b": targets}, x)) == 8.0

    Pair = namedtuple("Pair", "first second")
    packed = tape.gradient(targets, {"b": (x, [y, x]), "a": Pair(y, x)})
    assert list(packed) == ["b", "a"]
    assert isinstance(packed["b"], tuple)
    assert [float(packed["b"][0]), *map(float, packed["b"][1])] == [2.0, 3.0, 2.0]
    assert isinstance(packed["a"], Pair)
    assert (float(packed["a"].first), float(packed["a"].second)) == (3.0, 2.0)
    assert type(tape.gradient(square, OrderedDict(x=x))) is OrderedDict


def test_D_2_14_targets_that_are_sources():
    x, y = cytape.constant(3.0), cytape.constant(5.0)
    tape, y_squared = ways.taped(lambda x, y: y * y, x, y, persistent=True)
    assert float(tape.gradient(x, x)) == 1.0
    assert float(tape.gradient([y, y], y)) == 2.0
    assert [float(g) for g in tape.gradient([x, y, y_squared], [x, y])] == [1.0, 11.0]
    x = cytape.constant(2.0)
    tape, targets = ways.taped(lambda x: [x, x * x], x)
    assert float(tape.gradient(targets, x)) == 5.0


def test_D_2_14_unrelated_strings_change_nothing():
    x, text = cytape.constant(3.0), cytape.constant("text")
    tape, y = ways.taped(lambda x: x * x, x, persistent=True)
    assert float(tape.gradient([y, text], x)) == 6.0
    gradients = tape.gradient(y, [x, text])
    assert float(gradients[0]) == 6.0
    assert gradients[1] is None


def test_D_2_15_output_gradients_seed_the_targets():
    x, y = cytape.constant(3.0), cytape.constant(2.0)
    tape, targets = ways.taped(lambda x: [x * y, x], x, persistent=True)
    assert float(tape.gradient(targets, x, output_gradients=[1, 2])) == 4.0
    assert float(tape.gradient(targets, x, [cytape.constant(1.0), np.float32(2)])) == 4.0
    assert float(tape.gradient(targets, x, [None, 2.0])) == 4.0
    assert float(tape.gradient(x, x, output_gradients=7.0)) == 7.0
    assert tape.gradient(x, x, output_gradients=7.0).dtype == np.float64


@each("dtype", [np.float64, np.float32])
def test_D_2_15_sparse_output_gradients(dtype):
    x = cytape.constant(np.ones((3, 2)))
    tape, y = ways.taped(lambda x: 2.0 * x, x, persistent=True)
    seed = cytape.IndexedSlices(
        cytape.constant(np.ones((2, 2), dtype)), cytape.constant([0, 0]), (3, 2))
    assert tape.gradient(y, x, seed).numpy().tolist() == [[4.0, 4.0], [0.0, 0.0], [0.0, 0.0]]
    assert (tape.gradient(x, x, seed) is seed) == (dtype is np.float64)
    with pytest.raises(InvalidGradientError, match="shape"):
        tape.gradient(y[:2], x, seed)


@each(("output_gradients", "message"), [
    ([1.0], "1 entries for 2 targets"), ([1.0, 1.0, 1.0], "3 entries for 2 targets"),
    ([1.0, np.ones(3)], r"\[1\] has shape \(3,\), its target \(2,\)"),
    ([1.0, object()], r"\[1\] cannot be converted"),
    ([1j, None], r"\[0\] is complex128, its target float64"),
])
def test_D_2_15_output_gradients_that_do_not_fit(output_gradients, message):
    x = cytape.constant([1.0, 2.0])
    tape, targets = ways.taped(lambda x: [np.sum(x), x * x], x)
    with pytest.raises(InvalidGradientError, match=message):
        tape.gradient(targets, x, output_gradients)
    assert tape.gradient(targets, x).numpy().tolist() == [3.0, 5.0]  # the tape was not consumed


def test_D_2_16_unconnected_sources():
    x = cytape.constant([[1.0, 2.0], [3.0, 4.0]])
    v = cytape.Variable(np.ones((2, 2), np.float32))
    other = cytape.constant(2.0)
    tape, y = ways.taped(lambda x, other: other * other, x, other, persistent=True)
    assert tape.gradient(y, [x, v]) == [None, None]
    assert tape.gradient(y, x, unconnected_gradients="none") is None
    for zero in ("zero", cytape.UnconnectedGradients.ZERO):
        for source in (x, v):
            gradient = tape.gradient(y, source, unconnected_gradients=zero)
            assert gradient.numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]
            assert gradient.dtype == source.dtype
    with pytest.raises(ValueError, match="'nonsense'"):
        tape.gradient(y, x, unconnected_gradients="nonsense")


def test_D_2_17_empty_and_missing_targets():
    x = cytape.constant(3.0)
    tape, y = ways.taped(lambda x: x * x, x, persistent=True)
    with pytest.raises(TypeError, match="NoneType"):
        tape.gradient(None, x)
    assert tape.gradient([], [x, x]) == [None, None]
    assert tape.gradient([], []) == []
    assert tape.gradient(y, []) == []
    assert tape.gradient(y, {}) == {}


@each("cut", [
    lambda x: x.astype(np.int64),
    lambda x: x.astype(np.int64).astype(np.float64),
    lambda x: x > 2, lambda x: np.argmax(x), lambda x: cytape.stop_gradient(x),
])
def test_D_2_18_only_differentiable_paths_count(cut):
    x = cytape.constant([1.0, 5.0])
    with ways.watching(x, persistent=True) as tape:
        y = cut(x)
        z = y * x
    assert tape.gradient(y, x) is None
    np.testing.assert_array_equal(tape.gradient(z, x).numpy(), np.broadcast_to(y.numpy(), 2))


def test_D_2_18_where_chooses_the_path():
    for value, expected in ((5.0, 1.0), (50.0, 100.0)):
        x = cytape.constant(value)
        assert float(ways.gradient(lambda x: np.where(x < 10, x, x * x), x)) == expected


def test_D_2_21_an_inner_gradient_is_differentiable_inside_the_outer_block():
    x = cytape.constant(5.0)
    outer, first = ways.taped(lambda x: ways.gradient(lambda x: x * x, x), x)
    assert float(first) == 10.0
    assert float(outer.gradient(first, x)) == 2.0


def test_D_2_21_an_inner_gradient_taken_after_the_outer_block():
    x = cytape.constant(5.0)
    with ways.watching(x) as outer:
        inner, y = ways.taped(lambda x: x * x, x)
    first = inner.gradient(y, x)
    assert outer.gradient(first, x) is None


@each("use_pfor", [True, False])
def test_D_2_22_jacobian(use_pfor):
    x, y = cytape.constant([1.0, 2.0]), cytape.constant([3.0, 4.0])
    with cytape.GradientTape(persistent=not use_pfor) as tape:
        tape.watch([x, y])
        z = x * x * y
    packed = tape.jacobian(z, {"x": x, "y": [y]}, experimental_use_pfor=use_pfor)
    assert packed["x"].numpy().tolist() == [[6.0, 0.0], [0.0, 16.0]]
    assert packed["y"][0].numpy().tolist() == [[1.0, 0.0], [0.0, 4.0]]


@each("method", ["jacobian", "batch_jacobian"])
def test_D_2_23_row_by_row_needs_a_persistent_tape(method):
    x = cytape.constant([[1.0, 2.0]])
    tape, y = ways.taped(lambda x: x * x, x)
    with pytest.raises(RuntimeError, match="persistent"):
        getattr(tape, method)(y, x, experimental_use_pfor=False)
    assert getattr(tape, method)(y, x) is not None


@each("persistent", [True, False])
def test_D_2_23_jacobian_inside_the_block(persistent):
    x = cytape.constant(3.0)
    with cytape.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        z = x**4
        jacobian = tape.jacobian(z, x)
    assert float(jacobian) == 108.0


def test_a_jacobian_can_be_differentiated():
    x = cytape.constant([1.0, 2.0])
    with ways.watching(x) as outer:
        inner, y = ways.taped(lambda x: x**3, x)
        jacobian = inner.jacobian(y, x)
    second = outer.jacobian(jacobian, x).numpy()
    expected = np.zeros((2, 2, 2))
    expected[[0, 1], [0, 1], [0, 1]] = [6.0, 12.0]
    np.testing.assert_allclose(second, expected)


@each("target", [None, [1.0], "text", np.ones(2)])
def test_a_jacobian_has_one_tensor_as_target(target):
    x = cytape.constant([[1.0, 2.0]])
    tape, y = ways.taped(lambda x: x * x, x)
    with pytest.raises(TypeError, match=type(target).__name__):
        tape.jacobian(target, x)
    with pytest.raises(TypeError, match=type(target).__name__):
        tape.batch_jacobian(target, x)
    with pytest.raises(TypeError, match="list"):
        tape.batch_jacobian(y, [x])
    assert tape.jacobian(y, x).shape == (1, 2, 1, 2)


@each("use_pfor", [True, False])
def test_D_2_24_batch_jacobian(use_pfor):
    x = cytape.constant([[1.0, 2.0], [3.0, 4.0]])
    y = cytape.constant([[3.0, 4.0], [5.0, 6.0]])
    with ways.watching(x, persistent=True) as tape:
        z = x * x * y
        wide = x[:, :, None] * np.ones(3)
        empty = x[:, :0]
    jacobian = tape.batch_jacobian(z, x, experimental_use_pfor=use_pfor)
    assert jacobian.numpy().tolist() == [[[6.0, 0.0], [0.0, 16.0]], [[30.0, 0.0], [0.0, 48.0]]]
    expected = np.broadcast_to(np.eye(2)[:, None, :], (2, 2, 3, 2))
    np.testing.assert_array_equal(tape.batch_jacobian(wide, x).numpy(), expected)
    assert tape.batch_jacobian(empty, x).shape == (2, 0, 2)
    assert tape.batch_jacobian(z, y) is None
    assert tape.batch_jacobian(z, y, unconnected_gradients="zero").shape == (2, 2, 2)


@each(
    ("target_shape", "source_shape"), [((3, 2), (2, 2)), ((2,), (2, 2)), ((2, 2), (2,)), ((), ())])
def test_D_2_24_batch_jacobian_of_shapes_without_a_common_batch(target_shape, source_shape):
    x = cytape.constant(np.ones(source_shape))
    y = cytape.constant(np.ones(target_shape))
    tape, z = ways.taped(lambda x: y * np.sum(x), x)
    with pytest.raises(ValueError, match="same first one"):
        tape.batch_jacobian(z, x)


def test_a_gradient_uses_the_value_that_a_variable_had_when_it_was_read():
    v = cytape.Variable(3.0)
    with cytape.GradientTape(persistent=True) as tape:
        y = v * v
        v.assign(10.0)
        z = v * v
    assert float(tape.gradient(y, v)) == 6.0
    assert float(tape.gradient(z, v)) == 20.0
    assert float(tape.gradient([y, z], v)) == 26.0


def test_a_variable_as_target():
    v, w = cytape.Variable(3.0), cytape.Variable(4.0)
    tape, y = ways.taped(lambda: v * w, persistent=True)
    assert float(tape.gradient(v, v)) == 1.0
    assert tape.gradient(v, w) is None
    assert float(tape.gradient([y, v], v)) == 5.0


def test_sparse_gradients_as_target():
    table = cytape.constant([[1.0], [2.0], [3.0]])
    with ways.watching(table) as outer:
        first = ways.gradient(lambda table: np.sum(cytape.gather(table, [0, 0, 2]) ** 3), table)
        assert isinstance(first, cytape.IndexedSlices)
    second = outer.gradient(first, table)
    assert second.to_tensor().numpy().tolist() == [[12.0], [0.0], [18.0]]


def test_complex_gradients_follow_the_convention_of_the_conjugate():
    # TensorFlow's: conj(d/dz) for holomorphic functions. JAX and autograd give the conjugate of it.
    z = cytape.constant(7 + 3j)
    with ways.watching(z, persistent=True) as tape:
        square = z * z
        modulus = np.real(z * np.conj(z))
        exponential = np.exp(z)
        real = np.real(z)
        imaginary = np.imag(z)
    assert complex(tape.gradient(square, z)) == 14 - 6j
    assert complex(tape.gradient(square, z, output_gradients=1j)) == 1j * (14 - 6j)
    assert complex(tape.gradient(modulus, z)) == 14 + 6j  # the direction of steepest ascent
    assert complex(tape.gradient(exponential, z)) == pytest.approx(np.conj(np.exp(7 + 3j)))
    assert complex(tape.gradient(real, z)) == 1
    assert complex(tape.gradient(imaginary, z)) == 1j


def test_the_gradient_of_a_real_source_is_real():
    x = cytape.constant(2.0)
    gradient = ways.gradient(lambda x: (x * (1 + 2j)) ** 2, x)
    assert gradient.dtype == np.float64
    assert float(gradient) == (2 * 2.0 * (1 + 2j) ** 2).real


@each("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
@each("shape", [(), (0,), (1,), (2, 3), (2, 0, 3)])
def test_a_gradient_has_dtype_and_shape_of_its_source(dtype, shape):
    x = cytape.constant(np.ones(shape, dtype))
    gradient = ways.gradient(lambda x: np.sum(2.0 * x * np.ones((2,) + shape, np.float32)), x)
    assert gradient.shape == shape
    assert gradient.dtype == dtype


class Broken(Exception):
    """Raised inside a backward pass."""


@cytape.custom_gradient
def broken(x):
    """Return x; its gradient fails."""

    def grad_fn(dy):
        raise Broken("in the backward pass")

    return x * 1.0, grad_fn


@each("error", [Broken, KeyboardInterrupt, MemoryError])
def test_an_error_inside_a_gradient_leaves_everything_usable(error):
    v = cytape.Variable(2.0)

    @cytape.custom_gradient
    def fails_once(x):
        def grad_fn(dy):
            if failures:
                raise failures.pop()
            return dy

        return x * 1.0, grad_fn

    failures = [error("first")]
    with cytape.GradientTape() as outer:
        tape, y = ways.taped(lambda: fails_once(v * v) * v, persistent=True)
        with pytest.raises(error, match="first"):
            tape.gradient(y, v)
        first = tape.gradient(y, v)
        z = first * v
    assert float(first) == 12.0
    assert float(outer.gradient(z, v)) == 36.0  # d(3 v^3)/dv
    v.assign(3.0)
    tape, y = ways.taped(lambda: v * v)
    assert float(tape.gradient(y, v)) == 6.0


def test_an_error_inside_a_gradient_uses_up_a_tape_that_is_not_persistent():
    x = cytape.constant(np.ones(3))
    gc.collect()
    before = live_tensors()
    tape, y = ways.taped(lambda x: np.sum(broken(np.tanh(np.tanh(x)))), x)
    with pytest.raises(Broken):
        tape.gradient(y, x)
    with pytest.raises(RuntimeError):
        tape.gradient(y, x)
    del y
    assert live_tensors() == before


def test_an_error_inside_a_jacobian():
    x = cytape.constant(np.ones(3))
    tape, y = ways.taped(broken, x)
    with pytest.raises(Broken):
        tape.jacobian(y, x)
    tape, y = ways.taped(lambda x: x * x, x)
    np.testing.assert_array_equal(tape.jacobian(y, x).numpy(), 2 * np.eye(3))
