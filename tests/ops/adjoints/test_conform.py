"""Making gradients fit: sums, broadcasts and casts, each of which undoes another."""

import numpy as np

import cytape
from cytape import Spec
from cytape.ops.adjoints.conform import broadcast_to, cast, fill_like, sum_to
from cytape.ops.engine.op_kinds import OPS
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

BROADCASTS = [  # a shape and one it broadcasts to
    ((), ()), ((), (2, 3)), ((1,), (3,)), ((3,), (2, 3)), ((2, 1), (2, 3)), ((1, 1), (2, 3)),
    ((1, 3), (4, 2, 3)), ((2, 1, 3), (4, 2, 5, 3)), ((1,), (0,)), ((2, 1), (2, 0)),
    ((0, 1), (0, 3)),
]


def to(shape):
    return Spec.of(shape, float)


@each("small, large", BROADCASTS)
@each("convert", [np.asarray, cytape.constant])
def test_sum_to_undoes_broadcasting(small, large, convert):
    x = np.random.default_rng(0).normal(size=small)
    y = np.random.default_rng(1).normal(size=large)
    wide, narrow = broadcast_to(convert(x), large), sum_to(convert(y), to(small))
    assert (wide.shape, narrow.shape) == (large, small)
    np.testing.assert_array_equal(np.asarray(wide), np.broadcast_to(x, large))
    # Adjoint: <y, B x> = <B' y, x>.
    np.testing.assert_allclose(np.sum(y * np.asarray(wide)), np.sum(np.asarray(narrow) * x))


@each("small, large", BROADCASTS)
def test_they_are_each_others_derivatives(small, large):
    rng = np.random.default_rng(0)
    check_grads(lambda x: broadcast_to(x, large), [rng.normal(size=small)], order=2)
    check_grads(lambda x: sum_to(x, to(small)), [rng.normal(size=large)], order=2)


def test_values_that_fit_are_returned_unchanged():
    x = cytape.constant(np.ones((2, 3)))
    assert sum_to(x, to((2, 3))) is x
    assert broadcast_to(x, (2, 3)) is x
    assert cast(x, np.dtype(float)) is x


@each("before, after, expected", [
    ("float32", "float64", [1.5, -2.0]), ("float64", "float16", [1.5, -2.0]),
    ("complex128", "float32", [1.5, -2.0]), ("float32", "complex64", [1.5, -2.0]),
    ("float64", "int64", [1, -2]), ("int8", "float64", [1, -2])])
@each("convert", [np.asarray, cytape.constant])
def test_cast(before, after, expected, convert):
    x = np.array([1.5, -2.0]).astype(before) + (0.5j if before == "complex128" else 0)
    result = cast(convert(x), np.dtype(after))
    assert result.dtype == after
    np.testing.assert_array_equal(np.asarray(result), expected)


def test_a_cast_number_is_a_number_of_that_dtype():
    assert cast(cytape.constant(2), np.dtype("float32")).dtype == np.float32
    x = cytape.constant([1.0, 2.0])
    assert np.add(x, 1, dtype="float32").numpy().tolist() == [2.0, 3.0]
    assert np.add(x, 1, dtype="float32").dtype == np.float32
    assert np.multiply(2.0, x, dtype=np.complex64).dtype == np.complex64


@each("before, after", [
    ("float64", "float32"), ("float32", "float64"), ("complex128", "float64"),
    ("float64", "complex128"), ("complex64", "complex128")])
def test_the_gradient_of_a_cast_has_the_dtype_of_its_input(before, after):
    x = cytape.constant(np.array([1.0, 2.0], before))
    gradient = ways.gradient(lambda x: cast(x, np.dtype(after)) * np.array([3.0, 4.0], after), x)
    assert gradient.dtype == before
    np.testing.assert_array_equal(gradient.numpy(), [3, 4])


@each("name", ["SumTo", "BroadcastTo", "Cast"])
def test_they_save_nothing(name):
    assert OPS[name].linear
    assert OPS[name].saved_inputs == ()
    assert OPS[name].saved_outputs == ()


@each(shape=[(), (2, 3), (None, 3), None], dtype=["float32", "complex128", "int64"])
def test_fill_like_needs_no_known_extents(shape, dtype):
    graph = cytape.Graph()
    with graph.as_default():
        x = cytape.placeholder(dtype, shape)
        filled = cytape.identity(fill_like(x, 1))
    assert (filled.dtype, filled.shape) == (np.dtype(dtype), shape)
    value = np.zeros((2, 3) if shape != () else (), dtype)
    np.testing.assert_array_equal(
        cytape.Session(graph).run(filled, {x: value}), np.ones_like(value))
