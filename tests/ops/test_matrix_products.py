"""Matrix products: what the op table does not state."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError
from tests.cases import each
from tests.ways import gradient, taped, watching

RANKS = [((), ()), ((), (3,)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2))]


@each("function", [np.dot, np.inner, np.outer, np.vdot, np.kron, np.tensordot])
@each(("a", "b"), RANKS)
def test_a_pair_of_ranks_gives_numpys_result_or_numpys_error(function, a, b):
    a, b = np.ones(a), np.ones(b)
    try:
        expected = function(a, b)
    except (ValueError, IndexError) as error:
        with pytest.raises(type(error)):
            function(cytape.constant(a), cytape.constant(b))
    else:
        result = function(cytape.constant(a), b)
        assert result.shape == np.shape(expected)
        np.testing.assert_array_equal(result.numpy(), expected)


def test_out_is_no_array_for_tensors():
    x = cytape.constant(np.ones((2, 2)))
    with watching(x):
        for call in (cnp.matmul, cnp.vecdot, cnp.matvec, cnp.vecmat, cnp.conj):
            with pytest.raises(DetachedError, match="with out="):
                call(x, *[x] * (call is not cnp.conj), out=np.ones((2, 2)))


def test_plain_arrays_take_all_of_numpys_options():
    x, out = np.ones((2, 2)), np.zeros((2, 2))
    assert cnp.matmul(x, x, out=out, dtype=np.float64) is out
    assert cnp.vecdot(x, x, axis=0, dtype=np.float32).dtype == np.float32


def test_an_operator_of_an_array_and_a_tensor():
    a, x = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    np.testing.assert_array_equal(gradient(lambda t: a @ t, x), a.sum(0))
    np.testing.assert_array_equal(gradient(lambda t: t @ a, np.arange(2.0)), a.sum(1))


def test_an_integer_operand_has_no_gradient():
    x, n = cytape.constant(np.ones((2, 2))), cytape.constant([1, 2])
    tape, y = taped(lambda x: x @ n, x)
    gradients = tape.gradient(y, [x, n])
    np.testing.assert_array_equal(gradients[0].numpy(), [[1, 2], [1, 2]])
    assert gradients[1] is None
