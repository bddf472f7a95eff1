"""Operands that are repeated along axes, and the errors of shapes that do not fit."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.ops.refusals import same_error


@pytest.mark.parametrize(("name", "argument"), [
    ("broadcast_to", (3, 3)), ("broadcast_to", (3,)), ("broadcast_arrays", np.ones(4))])
def test_shapes_that_do_not_fit_raise_numpys_error(name, argument):
    same_error(getattr(cnp, name), getattr(np, name), np.ones((2, 3)), argument)


def test_a_subclass_may_be_kept():
    x = np.ones((2, 3))
    assert cnp.broadcast_to(x, (2, 2, 3), subok=True).shape == (2, 2, 3)
    result = cnp.broadcast_to(cytape.constant(x), (2, 2, 3), subok=True)
    np.testing.assert_array_equal(result, np.ones((2, 2, 3)))
