"""Shapes that do not fit, in traced gradients: which need not run what NumPy refuses to."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from tests.cases import each

MASK = np.array([[True, False, True], [False, False, False]])


def filled(write, w, shape=(2, 3)):
    z = cnp.zeros(shape)
    write(z, w)
    return z


CALLS = [
    (lambda w: filled(lambda z, w: z.__setitem__(slice(None), w), w), (3, 2)),
    (lambda w: filled(lambda z, w: z.__setitem__(0, w), w), (2,)),
    (lambda w: filled(lambda z, w: z.__setitem__(..., w), w), (2, 1, 3)),
    (
        lambda w: filled(lambda z, w: z.__setitem__(([0, 1, 2, 3], slice(0, 2)), w), w, (4, 2)),
        (2, 4)), (lambda w: filled(lambda z, w: z.__setitem__(MASK, w), w), (3,)),
    (lambda w: filled(np.copyto, w), (3, 2)),
    (lambda w: filled(lambda z, w: np.put_along_axis(z, np.array([[0], [1]]), w, 1), w), (3, 1)),
    (lambda w: cnp.zeros((2, 3)).at[:].set(w), (3, 2)), (lambda w: np.bincount([0, 1], w), (3,)),
    (lambda w: np.einsum("ii", w), (1, 3)), (lambda w: np.einsum("iji->j", w), (3, 2, 1))]


def raised(function, w):
    with pytest.raises(Exception) as error:  # noqa: B017 (which type, eager code knows)
        function(w)
    return error.type


@each("call, shape", CALLS)
def test_they_are_refused_as_by_eager_code(call, shape):
    def weighted(w):
        y = call(w)
        return np.sum(y * np.arange(1.0, y.size + 1).reshape(y.shape))

    w = np.ones(shape)
    expected = raised(cytape.grad(weighted), w)
    for traced in (cytape.function(cytape.grad(weighted)), cytape.grad(cytape.function(weighted))):
        assert raised(traced, w) is expected
    assert raised(cytape.vmap(cytape.grad(weighted)), w[None]) is expected


def test_an_assignment_that_does_not_fit_says_so_where_it_stands():
    gradient = cytape.function(cytape.grad(lambda w: np.sum(filled(np.copyto, w) * MASK)))
    with pytest.raises(ValueError, match=r"from shape \(3, 2\) into shape \(2, 3\)"):
        gradient(np.ones((3, 2)))


@each("shape, fits", [((3, 2), False), ((2, 3), True), ((1, 3), True)])
def test_shapes_that_only_a_run_tells(shape, fits):
    gradient = cytape.function(
        cytape.grad(lambda w: np.sum(filled(np.copyto, w) * MASK)),
        input_signature=[cytape.Spec.of((None, None), float)])
    if fits:
        assert gradient(np.ones(shape)).shape == shape
    else:
        with pytest.raises(ValueError, match=r"one of shape \(3, 2\) to shape \(2, 3\)"):
            gradient(np.ones(shape))


def test_axes_in_excess_of_which_only_a_run_tells_that_they_have_one_element():
    write = cytape.function(
        lambda w: filled(np.copyto, w, (3,)), input_signature=[cytape.Spec.of((None, 3), float)])
    np.testing.assert_array_equal(write(np.ones((1, 3))), np.ones(3))
    with pytest.raises(ValueError):
        write(np.ones((2, 3)))


def test_how_many_axes_a_part_has_must_be_known():
    write = cytape.function(
        lambda w: filled(np.copyto, w), input_signature=[cytape.Spec.of(None, float)])
    with pytest.raises(SymbolicTensorError, match="how many axes"):
        write(np.ones((2, 3)))
