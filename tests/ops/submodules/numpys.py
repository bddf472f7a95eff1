"""Calls that NumPy refuses, which tensors refuse in the same words."""

import numpy as np
import pytest

import cytape


def refuses_alike(call, *arrays, in_graphs=True):
    """Check that a call raises for tensors, and for symbols, what it raises for arrays."""
    with pytest.raises((ValueError, TypeError, IndexError)) as expected, np.errstate(all="ignore"):
        call(*arrays)
    with pytest.raises(type(expected.value)) as found:
        call(*map(cytape.constant, arrays))
    assert str(found.value).split() == str(expected.value).split()
    if in_graphs:
        with pytest.raises(type(expected.value)):
            cytape.function(call)(*map(cytape.constant, arrays))
