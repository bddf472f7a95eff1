"""Functions that ask for an array: tensors stay tensors, arrays become what NumPy makes of them."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from tests.cases import each


@each("name", ["asanyarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "require"])
def test_of_tensors_and_of_arrays(name):
    function = getattr(cnp, name)
    x = cytape.constant([1.0, 2.0])
    assert type(function(x)) is cytape.Tensor
    assert function(x, np.float32).dtype == np.float32
    assert function([x, x]).shape == (2, 2)
    assert type(function([1.0, 2.0])) is np.ndarray
    assert cytape.grad(lambda x: np.sum(function(x)))(np.ones(2)).tolist() == [1, 1]


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="infs or NaNs"):
        cnp.asarray_chkfinite(cytape.constant([1.0, np.nan]))


@each("imaginary, kind", [(1e-15, "f"), (0.5, "c")])
def test_the_real_part_of_what_is_nearly_real(imaginary, kind):
    z = np.array([1.0, 2.0 + 1j * imaginary])
    found = np.real_if_close(cytape.constant(z))
    assert found.dtype == np.real_if_close(z).dtype
    assert found.dtype.kind == kind


def test_real_if_close_cannot_tell_in_a_trace():
    with pytest.raises(SymbolicTensorError, match="real_if_close: .*take tensor.real"):
        cytape.function(np.real_if_close)(np.array(1.0 + 0j))
    assert cytape.function(np.real_if_close)(np.array(1.0)) == 1.0
