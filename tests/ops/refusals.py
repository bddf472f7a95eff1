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
