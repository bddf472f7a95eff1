"""StructuralOp: everything follows from the pieces, for operands of every layout."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph import Graph, Session
from cytape.ops.adjoints.deferred_derivatives import transposed_moves_op
from cytape.ops.engine.op_kinds import structural
from cytape.tensor.values.spec import Spec
from tests.cases import each
from tests.ways import gradient, watching


def _mirrored(results, operands):
    """Everything twice: as it is, and the other way round; the middle is read twice, and kept."""
    x = operands[0]
    yield results[0][: len(x)], x
    yield results[0][len(x) :], x[::-1]


def mirror(x):
    return np.concatenate([x, x[::-1]])


mirror_op = structural(
    "DeclaredMirror", mirror, _mirrored,
    shape_rule=lambda x: Spec.of((2 * x.shape[0], *x.shape[1:]), x.dtype))
ends_op = structural(  # two results, with zeros in them; the inner part of the input is left out
    "DeclaredEnds", lambda x: (np.append(x[:1], 0), np.append(0, x[-1:])),
    lambda results, operands: [(results[0][:1], operands[0][:1]),
                               (results[1][1:], operands[0][-1:])],
    shape_rule=lambda x: (Spec.of((2,), x.dtype),) * 2)
sum_op = structural(  # written more than once: a sum
    "DeclaredSumOfRows", lambda x: x.sum(0),
    lambda results, operands: [(np.broadcast_to(results[0], operands[0].shape), operands[0])],
    shape_rule=lambda x: Spec.of(x.shape[1:], x.dtype))

DTYPES = ["float16", "float32", "float64", "complex64", "complex128", "longdouble"]


def layouts(dtype):
    """Give the same numbers in several layouts of memory."""
    x = np.arange(12).reshape(4, 3).astype(dtype)
    wide = np.zeros((8, 6), dtype)
    wide[::2, ::2] = x
    return {"C": x, "F": np.asfortranarray(x), "strided": wide[::2, ::2],
            "turned": x[::-1, ::-1].copy()[::-1, ::-1]}


@each(layout=["C", "F", "strided", "turned"], dtype=[*DTYPES, "int64", "bool"])
def test_every_layout_and_dtype(dtype, layout):
    x = layouts(dtype)[layout]
    result = mirror_op(cytape.constant(x)).numpy()
    np.testing.assert_array_equal(result, mirror(x))
    assert result.dtype == x.dtype


@each(layout=["C", "F", "strided", "turned"], dtype=DTYPES)
def test_both_modes_to_second_order(dtype, layout):
    x = layouts(dtype)[layout]
    weights = np.linspace(-1, 1, 24).reshape(8, 3).astype(dtype)

    def f(x):
        return np.sum(mirror_op(x) ** 2 * weights).real

    both = weights[:4] + weights[:3:-1]
    tolerance = 2e-2 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(cytape.grad(f)(x), np.conj(2 * x * both), tolerance, tolerance)
    t = np.ones_like(x)
    _, tangent = cytape.jvp(mirror_op, (x,), (t,))
    np.testing.assert_array_equal(tangent, mirror(t))
    if not dtype.startswith("c") and dtype not in ("float16", "longdouble"):
        hvp = cytape.hessian_vector_product(f)(x, t)
        np.testing.assert_allclose(hvp, 2 * both, 1e-5, 1e-5)


@each("shape", [(2, 3), (40, 30)])
def test_tensors_of_other_layouts_are_followed_under_their_own_id(shape):
    """An operand that is copied before the move stays the tensor that was passed."""
    x = cytape.constant(np.asfortranarray(np.arange(float(np.prod(shape))).reshape(shape)))
    with cytape.GradientTape() as outer, cytape.ForwardAccumulator(x, x) as accumulator:
        outer.watch(x)
        y = cnp.reshape(cnp.transpose(x), (-1,)) * cnp.reshape(x, (-1,))
    swapped = x.numpy().T.reshape(-1), x.numpy().reshape(-1)
    np.testing.assert_array_equal(y.numpy(), swapped[0] * swapped[1])
    np.testing.assert_array_equal(accumulator.jvp(y).numpy(), 2 * swapped[0] * swapped[1])
    expected = swapped[0].reshape(shape) + swapped[1].reshape(shape[::-1]).T
    np.testing.assert_array_equal(outer.gradient(y, x).numpy(), expected)


def test_batches_of_tangents():
    x = np.arange(3.0)
    expected = mirror(np.eye(3))
    np.testing.assert_array_equal(cytape.jacfwd(mirror_op)(x), expected)
    np.testing.assert_array_equal(cytape.jacfwd(lambda x: ends_op(x)[1])(x), [[0] * 3, [0, 0, 1]])
    traced = cytape.function(cytape.jacfwd(mirror_op))
    np.testing.assert_array_equal(np.asarray(traced(x)), expected)


def test_as_many_axes_as_there_can_be():
    """A tile has two axes for each of its operand's, and a batch of tangents has one more."""
    x = np.arange(4.0).reshape((2, 2) + (1,) * 30)
    reps = (2,) + (1,) * 31
    expected = np.tile(np.eye(4).reshape(x.shape + (4,)), (*reps, 1))
    result = cytape.jacfwd(lambda v: np.tile(np.reshape(v, x.shape), reps).ravel())(x.ravel())
    np.testing.assert_array_equal(result, expected.reshape(8, 4))


def test_many_results_some_of_them_zero():
    x = np.arange(1.0, 5.0)
    first, last = ends_op(cytape.constant(x))
    np.testing.assert_array_equal(first.numpy(), [1, 0])
    np.testing.assert_array_equal(last.numpy(), [0, 4])
    gradient = cytape.grad(lambda x: np.sum(ends_op(x)[0] * 3) + np.sum(ends_op(x)[1] ** 2))(x)
    np.testing.assert_array_equal(gradient, [3, 0, 0, 8])
    only_one = cytape.grad(lambda x: np.sum(ends_op(x)[1] ** 2))(x)
    np.testing.assert_array_equal(only_one, [0, 0, 0, 8])


@each("dtype", ["float16", "float32", "complex128"])
def test_gradients_of_repeated_elements_are_summed(dtype):
    x = np.full((3000, 2), 1.0, dtype)
    if dtype != "float16":  # whose sums NumPy rounds at every step
        np.testing.assert_array_equal(sum_op(cytape.constant(x)).numpy(), [3000, 3000])
    assert cytape.grad(lambda x: np.sum(sum_op(x) * 2).real)(x).tolist() == [[2, 2]] * 3000


def test_many_halves_are_summed_in_single_precision():
    x = np.ones(2, "float16")
    gradient = cytape.grad(lambda x: np.sum(np.broadcast_to(x, (5000, 2))).astype("float32"))(x)
    np.testing.assert_array_equal(gradient, [5000, 5000])


@each("shape", [(0,), (1,), (5,)])
def test_in_graphs_without_python(shape):
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float64", shape)
        y = mirror_op(x)
        gradient = cytape.gradients(y * np.arange(2.0 * shape[0]), x)[0]
    data = np.arange(1.0, shape[0] + 1)
    with Session(graph) as session:
        for _ in range(2):
            a, b = session.run([y, gradient], {x: data})
    np.testing.assert_array_equal(a, mirror(data))
    weights = np.arange(2.0 * shape[0])
    np.testing.assert_array_equal(b, weights[: shape[0]] + weights[shape[0] :][::-1])


def test_an_attribute_that_is_equal_but_not_the_same_has_moves_of_its_own():
    x = cytape.constant(np.ones((2, 3)))
    assert cnp.reshape(x, (3, 2)).shape == (3, 2)
    with pytest.raises(TypeError):
        cnp.reshape(x, (3.0, 2.0))
    assert cnp.stack([x, x], 1).shape == cnp.stack([x, x], True).shape


def test_attributes_of_other_names_have_moves_of_their_own():
    part = structural(
        "DeclaredPart",
        lambda x, *, first=None, last=None: x[:first] if last is None else x[-last:],
        None, shape_rule=lambda x, *, first=None, last=None: Spec.of((first or last,), x.dtype))
    cut = structural(
        "DeclaredCut", lambda x, *, start, stop: x[start:stop], None,
        shape_rule=lambda x, *, start, stop: Spec.of((max(stop - start, 0),), x.dtype))
    x = cytape.constant(np.arange(10.0))
    for _ in range(2):
        assert part(x, first=2).numpy().tolist() == [0, 1]
        assert part(x, last=2).numpy().tolist() == [8, 9]
        assert cut(x, start=2, stop=5).numpy().tolist() == [2, 3, 4]
        assert cut(x, stop=2, start=5).numpy().tolist() == []
        assert cut(x, stop=5, start=2).numpy().tolist() == [2, 3, 4]


@each("pieces, shape_rule", [
    (lambda results, operands: [(results[0], no_such_name)], lambda x: x),  # noqa: F821
    (lambda results, operands: [(results[0], operands[0].copy())], lambda x: x),
    (lambda results, operands: [(results[0], operands[0][[2, 1, 0]])], lambda x: x),
    (lambda results, operands: [(results[0], operands[0] * 2)], lambda x: x),
    (lambda results, operands: [(np.zeros(0), np.zeros(0))], lambda x: x),
    (lambda results, operands: [(results[0][:0], operands[0][operands[0] != operands[0]])],
     lambda x: x),
    (lambda results, operands: [(results[0][1], operands[0][2])], lambda x: x),
    (lambda results, operands: None, lambda x: x), (None, lambda x: x.no_such_attribute),
])
@pytest.mark.filterwarnings("ignore:an op named")  # there is one for each case
def test_a_declaration_that_fails_is_no_secret(pieces, shape_rule):
    op = structural("DeclaredWrongly", lambda x: x[::-1], pieces, shape_rule=shape_rule)
    x = cytape.constant(np.arange(3.0))
    for _ in range(2):
        with pytest.raises(ValueError, match="pieces or the shape rule of op 'DeclaredWrongly'"):
            op(x)


@pytest.mark.filterwarnings("ignore:an op named")
def test_a_declaration_that_fails_says_why():
    for part, cause in [
            (lambda x: x[x > 0], "piece 0 is a copy"), (lambda x: x[1], r"write x\[k, ...\]")]:
        op = structural("DeclaredWrongly", lambda x: x[::-1],
                        lambda results, operands, part=part: [(results[0], part(operands[0]))],
                        shape_rule=lambda x: x)
        with pytest.raises(ValueError, match=cause):
            op(cytape.constant(np.arange(3.0)))


def test_attributes_nested_without_end_are_an_error():
    x = cytape.constant(np.ones((3, 3)))
    deep = (0,)
    for _ in range(100_000):
        deep = (deep,)
    with pytest.raises((RecursionError, TypeError, ValueError)):
        cytape.numpy.reshape(x, deep)


def test_the_error_of_the_forward_function_comes_first():
    op = structural("DeclaredOfMatrices", lambda x: x[:, 0], None, shape_rule=lambda x: x[0])
    with pytest.raises(IndexError):
        op(cytape.constant(np.arange(3.0)))


def test_layouts_are_forgotten_when_there_are_many():
    for n in range(1, 1500):
        assert cnp.flip(cytape.constant(np.arange(float(n)))).numpy()[0] == n - 1


def test_a_large_view_shares_memory_and_a_small_one_does_not():
    large, small = (cytape.constant(np.zeros((n, n))) for n in (100, 3))
    assert np.shares_memory(large.numpy(), cnp.transpose(large).numpy())
    assert not np.shares_memory(small.numpy(), cnp.transpose(small).numpy())
    assert not np.shares_memory(large.numpy(), cnp.concatenate([large, large]).numpy())


def test_an_array_beside_a_tensor_is_copied():
    x, array = cytape.constant(np.zeros(2)), np.ones(2)
    joined = cnp.concatenate([x, array])
    array[:] = 5
    np.testing.assert_array_equal(joined.numpy(), [0, 0, 1, 1])


@each("x, y", [
    (np.array(["abcdefghij"]), np.array(["abcdefghij", "k"])),
    (np.array([b"abc"] * 40), np.array([b"abcde"])),
    (np.array([1, 2], "M8[s]"), np.array([1], "M8[D]")),
    (np.array([1], "m8[D]"), np.array([1], "m8[s]")), (np.array([True]), np.array([2]))])
def test_items_that_are_no_numbers_are_numpys(x, y):
    for function in (lambda x, y: np.concatenate([x, y]), lambda x, y: np.flip(y),
                     lambda x, y: np.reshape(y, (1, -1)), lambda x, y: np.roll(y, 1)):
        expected = function(x, y)
        traced = cytape.function(function)
        for call in (function, traced, traced):
            result = call(cytape.constant(x), cytape.constant(y)).numpy()
            np.testing.assert_array_equal(result, expected)
            assert result.dtype == expected.dtype


@each("n", [3, 1000])
def test_a_join_of_nothing_and_an_array_does_not_show_the_array(n):
    w, array, nothing = cytape.constant(np.ones(n)), np.arange(float(n)), np.empty(0)
    with watching(w, persistent=True) as tape:
        y = np.sum(w * np.hstack([cytape.constant(nothing), array]))
        empty = cytape.constant(nothing)
        tape.watch(empty)
        joined = np.sum(np.hstack([empty, array]))
    assert tape.gradient(joined, empty).shape == (0,)  # it is followed under its own id
    array[:] = -1
    np.testing.assert_array_equal(tape.gradient(y, w).numpy(), np.arange(float(n)))


@pytest.mark.filterwarnings("ignore:an op named")
def test_replaced_ops_keep_their_moves():
    def part(start):
        return structural("DeclaredTwo", lambda x: x[start : start + 2], None,
                          shape_rule=lambda x: Spec.of((2,), x.dtype))

    def twice(op):
        x = cytape.constant(np.arange(4.0))
        with watching(x):
            return gradient(lambda x: np.sum(op(x) ** 2), x).numpy().tolist()

    first = part(0)
    assert twice(first) == [0, 2, 0, 0]
    second = part(2)
    assert twice(second) == [0, 0, 4, 6] and twice(first) == [0, 2, 0, 0]


def test_numbers_are_not_weak_in_a_stack():
    x = cytape.constant(np.float32(1.5))
    for function in (cnp.stack, cytape.function(cnp.stack)):
        assert function([x, 1, 2.5]).dtype == np.stack([np.float32(1.5), 1, 2.5]).dtype


def test_gradients_of_integers_that_would_be_summed():
    attrs = {"of": mirror_op.key, "shapes": ((4, 3),), "attrs": ()}
    with pytest.raises(TypeError, match="elements of int64 would be added in one place"):
        transposed_moves_op(cytape.constant(np.ones((8, 3), int)), **attrs)


def test_gradients_of_other_shapes_than_the_outputs():
    attrs = {"of": mirror_op.key, "shapes": ((4, 3),), "attrs": ()}
    with pytest.raises(ValueError, match=r"has outputs .*\(8, 3\).*, not the gradients"):
        transposed_moves_op(cytape.constant(np.ones((2, 3))), **attrs)
