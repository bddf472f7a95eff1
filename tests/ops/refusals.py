"""Calls that NumPy refuses, which tensors refuse with an error of the same type."""

import numpy as np
import pytest

import cytape


def refuses(call, array):
    """Check that a call raises for a tensor what it raises for an array."""
    with np.errstate(all="ignore"):
        with pytest.raises(Exception) as expected:  # noqa: B017 (of which type it is, NumPy knows)
            call(array)
        with pytest.raises(expected.type):
            call(cytape.constant(array))


def same_error(function, numpy_function, x, *args, **kwargs):
    """Check that a tensor raises what NumPy raises on the array, in its words."""
    with pytest.raises(Exception) as expected:  # noqa: PT011
        numpy_function(x, *args, **kwargs)
    with pytest.raises(type(expected.value)) as actual:
        function(cytape.constant(x), *args, **kwargs)
    assert str(actual.value) == str(expected.value)
