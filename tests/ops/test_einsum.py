"""Einstein's notation: its forms, errors and conventions; specs_linalg.py has the values."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import cytape
import cytape.numpy as cnp
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import gradient


@each("arguments", [
    lambda x, y: (x, [0, 1], y, [1, 2], [0, 2]), lambda x, y: (x, [0, 1], y, [1, 2]),
    lambda x, y: (x, [30, 1], y, [1, 2]),
    lambda x, y: (x, [Ellipsis, 1], y, [1, 2], [Ellipsis, 2])])
def test_einsum_takes_lists_for_subscripts(arguments):
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    result = np.einsum(*arguments(cytape.constant(x), y))
    np.testing.assert_array_equal(result.numpy(), np.einsum(*arguments(x, y)))
    np.testing.assert_array_equal(
        gradient(lambda t: np.einsum(*arguments(t, y)), x), np.broadcast_to(y.sum(1), (2, 3)))


def test_a_missing_operand_is_named_in_functions():
    with pytest.raises(ValueError, match="is of 2 operands, got 1"):
        cytape.function(lambda x: np.einsum("ij,ij", x))(np.eye(2))


def test_an_order_in_memory_is_not_for_tensors():
    x = cytape.constant(np.ones((2, 2)))
    with pytest.raises(TypeError, match="order"):
        cnp.einsum("ij->ji", x, order="F")


@each(traced=[False, True], options=[
    {"dtype": "float64"}, {"dtype": float}, {"dtype": None}, {"dtype": complex},
    {"dtype": "float32", "casting": "same_kind"}, {"casting": "no"}])
def test_the_dtype_that_is_computed_in(options, traced):
    x, y = np.arange(4, dtype=np.float32).reshape(2, 2) / 3, np.arange(2, dtype=np.float32)

    def f(x, y):
        return np.einsum("ij,j->i", x, y, **options)

    run = cytape.function(f) if traced else f
    expected = np.einsum("ij,j->i", x, y, **options)
    found = run(cytape.constant(x), y)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, 1e-6)
    gradient = cytape.grad(lambda x: np.sum(np.real(run(x, y))))(x)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, [y, y])


def test_a_dtype_that_does_not_hold_the_operands_is_numpys_error():
    x = np.ones((2, 2))
    for call in (lambda x: np.einsum("ij->i", x, dtype="float32"),
                 lambda x: np.einsum("ij->i", x, dtype="int64", casting="same_kind")):
        with pytest.raises(TypeError) as expected:
            call(x)
        with pytest.raises(TypeError, match="Iterator operand 0 dtype") as found:
            call(cytape.constant(x))
        assert str(found.value) == str(expected.value)


def test_the_same_operand_several_times():
    check_grads(lambda x: np.einsum("ij,kj,ik->", x, x, x), [np.arange(4.0).reshape(2, 2)])


# -- products of matrices, and views ---------------------------------------------------------------


def nodes_of(subscripts, *shapes):
    graph = cytape.Graph()
    with graph.as_default():
        operands = [cytape.placeholder(np.float64, shape) for shape in shapes]
        cnp.einsum(subscripts, *operands)
    return [op.type for op in graph.get_operations()][len(shapes):]


@each("subscripts, shapes, expected", [
    ("ij,jk->ik", [(2, 3), (3, 4)], ["MatMul"]), ("ij,jk", [(2, 3), (3, 4)], ["MatMul"]),
    ("ij,jk->ki", [(2, 3), (3, 4)], ["Transpose", "Transpose", "MatMul"]),
    ("ji,jk->ik", [(3, 2), (3, 4)], ["Transpose", "MatMul"]),
    ("ij,kj->ik", [(2, 3), (4, 3)], ["Transpose", "MatMul"]),
    ("ij,j->i", [(2, 3), (3,)], ["MatMul"]), ("j,ij->i", [(3,), (2, 3)], ["Transpose", "MatMul"]),
    ("i,i->", [(3,), (3,)], ["MatMul"]),
    ("ij,ij->", [(2, 3), (2, 3)], ["Reshape", "Reshape", "MatMul"]),
    ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)], ["MatMul"]),
    ("...ij,...kj", [(5, 2, 3), (5, 4, 3)], ["Transpose", "MatMul"]),
    ("bij,bjk->bki", [(5, 2, 3), (5, 3, 4)], ["Transpose", "Transpose", "MatMul"]),
    ("bij,jk->bik", [(5, 2, 3), (3, 4)], ["Reshape", "MatMul", "Reshape"]),
    ("bij,jk->kib", [(50, 20, 30), (30, 40)], ["Reshape", "MatMul", "Reshape", "Transpose"]),
    ("ijk,jkl->il", [(9, 20, 30), (20, 30, 9)], ["Reshape", "Reshape", "MatMul"]),
    ("ij,jk->ik", [(2, 1), (3, 4)], ["Einsum"]), ("ij,jk->ik", [(None, 3), (3, 4)], ["Einsum"]),
    ("ij,jk->i", [(2, 3), (3, 4)], ["Sum", "MatMul"]),
    ("ii,ij->j", [(3, 3), (3, 4)], ["Diagonal", "MatMul"]),
    ("i,j->ij", [(2,), (3,)], ["Reshape", "Multiply"]),
    ("ij,ij->i", [(2, 3), (2, 3)], ["Multiply", "Sum"]), ("ij->ij", [(2, 3)], []),
    ("ij->ji", [(2, 3)], ["Transpose"]), ("ii->i", [(3, 3)], ["Diagonal"]),
    ("...ii->...i", [(2, 3, 3)], ["Diagonal"]), ("iji->ij", [(3, 2, 3)], ["Diagonal", "Transpose"]),
    ("iii->i", [(3, 3, 3)], ["Diagonal", "Diagonal"]), ("ij->i", [(2, 3)], ["Sum"]),
    ("ii", [(3, 3)], ["Diagonal", "Sum"]), ("ii->i", [(None, 3)], ["CheckedExtents", "Diagonal"])])
def test_subscripts_computed_as_matrix_products_or_views(subscripts, shapes, expected):
    assert nodes_of(subscripts, *shapes) == expected
    if any(None in shape for shape in shapes):
        return
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for shape in shapes]
    result = cnp.einsum(subscripts, *map(cytape.constant, arrays))
    np.testing.assert_allclose(result.numpy(), np.einsum(subscripts, *arrays), 1e-12, 1e-12)
    if max(array.size for array in arrays) < 1000:
        check_grads(lambda *operands: cnp.einsum(subscripts, *operands), arrays, order=2)


def test_the_gradient_of_a_sum_of_products_is_a_product_of_matrices():
    graph = cytape.Graph()
    with graph.as_default():
        x, y = [cytape.placeholder(np.float64, shape) for shape in ((60, 20, 30), (30, 40))]
        cytape.gradients(cnp.einsum("bij,jk->bik", x, y), [x, y])
    assert "Einsum" not in [op.type for op in graph.get_operations()]


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_random_sums_of_products_are_numpys(data):
    terms = data.draw(st.lists(st.text("abcd", max_size=3), min_size=1, max_size=3))
    letters = sorted(set("".join(terms)))
    output = data.draw(st.permutations(letters))[:data.draw(st.integers(0, len(letters)))]
    sizes = {letter: data.draw(st.integers(1, 3)) for letter in letters}
    subscripts = f"{','.join(terms)}->{''.join(output)}"
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=[sizes[letter] for letter in term]) for term in terms]
    operands = [cytape.constant(array) for array in arrays]
    assume("".join(terms))  # NumPy takes no term without a letter alone
    expected = np.einsum(subscripts, *arrays)
    np.testing.assert_allclose(cnp.einsum(subscripts, *operands).numpy(), expected, 1e-9, 1e-12)
    traced = cytape.function(lambda *xs: cnp.einsum(subscripts, *xs))
    np.testing.assert_allclose(traced(*operands).numpy(), expected, 1e-9, 1e-12)
    check_grads(lambda *xs: cnp.einsum(subscripts, *xs), arrays)


def test_several_axes_of_stacks_may_be_summed():  # bij,bij->b is the gradient of b,bij->bij
    rng = np.random.default_rng(0)
    scales, matrices = rng.normal(size=5), rng.normal(size=(5, 2, 3))
    np.testing.assert_array_equal(
        gradient(lambda x: cnp.sum(cnp.einsum("b,bij->bij", x, matrices)), scales),
        matrices.sum((1, 2)))


def test_extents_that_are_known_in_a_run_are_multiplied_as_matrices():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(3, 5))
    graph = cytape.Graph()
    with graph.as_default():
        x = cytape.placeholder(np.float64, (None, 3))
        y = cnp.einsum("ij,jk->ik", x, b)
    np.testing.assert_array_equal(cytape.Session(graph).run(y, {x: a}), a @ b)


def test_one_operand_of_extents_that_a_run_tells_is_summed_in_pairs():
    a = np.full(10**6, 0.1, np.float32)  # NumPy's einsum is off by half, as it adds in order
    graph = cytape.Graph()
    with graph.as_default():
        x = cytape.placeholder(np.float32, (None,))
        y = cnp.einsum("i->", x)
    np.testing.assert_array_equal(cytape.Session(graph).run(y, {x: a}), np.sum(a))


@each("optimize", [False, True, "greedy", "optimal", ["einsum_path", (1, 2), (0, 1)]])
def test_three_operands_are_multiplied_in_pairs_in_the_order_that_is_asked_for(optimize):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for shape in ((2, 3), (3, 4), (4, 5))]
    result = cnp.einsum("ij,jk,kl->il", *map(cytape.constant, arrays), optimize=optimize)
    np.testing.assert_allclose(result.numpy(), np.linalg.multi_dot(arrays), 1e-12)


@each("dtypes", [(np.float32, np.float64), (np.int32, np.float64),
                                    (np.float64, np.complex64), (bool, np.float32)])
def test_operands_of_several_dtypes_meet_as_numpys(dtypes):
    a, b = (np.arange(4.0).reshape(2, 2).astype(dtype) for dtype in dtypes)
    result = cnp.einsum("ij,kj->ik", cytape.constant(a), b)
    np.testing.assert_array_equal(result.numpy(), np.einsum("ij,kj->ik", a, b), strict=True)


@each("dtype", [np.int32, np.float16, bool])
def test_other_dtypes_are_summed_as_numpy_does(dtype):
    x = np.ones((3, 300)).astype(dtype)
    result = np.einsum("ij,kj->ik", cytape.constant(x), x)
    np.testing.assert_array_equal(result.numpy(), np.einsum("ij,kj->ik", x, x), strict=True)
