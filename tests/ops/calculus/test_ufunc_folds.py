"""Folds that begin anew: values, warnings and derivatives of each slice."""

import numpy as np
import pytest

import cytape
from cytape.ops.calculus.ufunc_folds import fold_op
from cytape.testing import check_grads
from tests.cases import each

BEGINS = np.array([True, False, False, True, False])


@each("name, ufunc", [("Divide", np.divide), ("Logaddexp", np.logaddexp)])
@each(axis=[0, 1], place=[lambda f: f, cytape.function])
def test_each_slice_is_folded_alone(name, ufunc, axis, place):
    x = np.random.default_rng(1).uniform(0.6, 1.6, (5, 5))
    expected = np.concatenate(
        [ufunc.accumulate(part, axis) for part in np.split(x, [3], axis)], axis)
    f = place(lambda x: fold_op(x, BEGINS, name=name, axis=axis))
    np.testing.assert_allclose(np.asarray(f(x)), expected)
    check_grads(f, [x], order=2)


def test_warnings_are_numpys():
    x = cytape.constant(np.array([1.0, 0.0, 2.0, 1.0, 2.0]))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        y = fold_op(x, BEGINS, name="Divide", axis=0)
    np.testing.assert_array_equal(y, [1, np.inf, np.inf, 1, 0.5])


@each("begins", [np.ones((2, 5)), np.ones((5, 1)), np.ones(6), np.array(True)])
def test_slices_that_begin_elsewhere_than_on_the_axis_are_refused(begins):
    """A file of a graph may say so: results were written to beyond their end."""
    with pytest.raises((TypeError, ValueError)):
        fold_op(np.ones(5), begins, name="Fmod", axis=0)
    with pytest.raises(TypeError):
        fold_op(np.ones(5), BEGINS, BEGINS, name="Fmod", axis=0)
